package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copied measures what comes after a creation, which itself would take too long: the FleetWorkloads are created on the one cluster that there is.
// Then the others join, and have what that one has. The operator finds it there when it starts.
func (s *scale) copied(ctx context.Context, clusters int) error {
	_, err := s.step(ctx, "on one cluster", s.names, metav1.ConditionTrue, func(ctx context.Context) error {
		return s.each(ctx, s.names, func(ctx context.Context, name string) error { return s.workload(name).create(ctx) })
	})
	if err != nil {
		return err
	}
	small, err := s.operator.figures(ctx)
	if err != nil {
		return err
	}
	if err := s.operator.stop(); err != nil {
		return err
	}
	if err := s.joinWithCopies(ctx, clusters); err != nil {
		return err
	}
	found, err := s.takenUp(ctx)
	if err != nil {
		return err
	}
	pairs := float64(len(s.names) * clusters)
	s.line("taken up, most memory, MiB", float64(found.memory)/(1<<20), 1024)
	s.line("taken up, most memory for each ManifestWork, KiB", float64(found.memory-small.memory)/(1<<10)/pairs, 6)
	if err := s.restart(ctx); err != nil {
		return err
	}
	if err := s.atRest(ctx); err != nil {
		return err
	}
	if err := s.changeOf(ctx, "change one", s.names[:1]); err != nil {
		return err
	}
	if err := s.loseOne(ctx); err != nil {
		return err
	}
	return s.besideBareClient(ctx)
}

// manifestWorks are stored by this name.
var manifestWorks = schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}

// takenUp starts the operator and waits until all FleetWorkloads are Ready on all clusters, and nothing is left to do.
func (s *scale) takenUp(ctx context.Context) (scaleFigures, error) {
	start := time.Now()
	s.seen.begin(s.names, metav1.ConditionTrue, len(s.hub.clusters), 0)
	if err := s.operator.start(ctx); err != nil {
		return scaleFigures{}, err
	}
	if err := s.seen.await(ctx, s.patience()); err != nil {
		return scaleFigures{}, fmt.Errorf("take up the copies: %w", err)
	}
	first, last := s.seen.times()
	if err := s.settled(ctx, 0); err != nil {
		return scaleFigures{}, err
	}
	f, err := s.operator.figures(ctx)
	f.first, f.clock = first.Sub(start), last.Sub(start)
	fmt.Fprintf(s.progress, "%-14s %s\n", "taken up", f)
	return f, err
}

// joinWithCopies registers the clusters that are missing, with the first one's ManifestWorks, and waits until OCM has chosen them.
func (s *scale) joinWithCopies(ctx context.Context, clusters int) error {
	start := time.Now()
	var works []*workv1.ManifestWork
	stored, err := s.hub.lab.Stored(ctx, manifestWorks, s.hub.clusters[0])
	if err != nil {
		return err
	}
	for _, one := range stored {
		work := &workv1.ManifestWork{}
		if err := json.Unmarshal(one.Value, work); err != nil {
			return fmt.Errorf("read %s: %w", one.Key, err)
		}
		works = append(works, work)
	}
	for i := len(s.hub.clusters); i < clusters; i++ {
		s.hub.clusters = append(s.hub.clusters, fmt.Sprintf("cluster-%04d", i))
	}
	all := s.members.expect(len(works)*clusters, answered)
	err = s.parallel(ctx, clusters-1, func(ctx context.Context, i int) error {
		cluster := s.hub.clusters[i+1]
		copies, err := copiesFor(works, cluster)
		if err != nil {
			return err
		}
		return errors.Join(s.hub.lab.Store(ctx, manifestWorks, cluster, copies), s.hub.join(ctx, cluster))
	})
	if err != nil {
		return err
	}
	if err := s.members.awaitFor(ctx, all, s.patience()); err != nil {
		return err
	}
	fmt.Fprintf(s.progress, "%-14s %s for %d ManifestWorks\n", "copied", time.Since(start).Round(time.Millisecond), len(works)*(clusters-1))
	var list clusterv1beta1.PlacementList
	if err := s.hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list Placements: %w", err)
	}
	for i := range list.Items {
		err := s.hub.await(ctx, &list.Items[i], func() error {
			if chosen := int(list.Items[i].Status.NumberOfSelectedClusters); chosen != clusters {
				return fmt.Errorf("it has %d of %d clusters", chosen, clusters)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copiesFor are ManifestWorks as another cluster has them, with its agent's answer, by name.
func copiesFor(works []*workv1.ManifestWork, cluster string) (map[string][]byte, error) {
	copies := map[string][]byte{}
	for _, work := range works {
		work = work.DeepCopy()
		work.Namespace, work.UID = cluster, uuid.NewUUID()
		var err error
		if work.Status, err = statusOf(work, metav1.Now()); err != nil {
			return nil, err
		}
		if copies[work.Name], err = json.Marshal(work); err != nil {
			return nil, fmt.Errorf("copy ManifestWork %s: %w", work.Name, err)
		}
	}
	return copies, nil
}
