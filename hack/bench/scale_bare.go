package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// bareClient is how long a bare client takes for the same ManifestWorks, which it asks with and then has delivered, until all clusters have answered.
// The operator has written a model of them before, with what all workloads of a kind and namespace share.
func (s *scale) bareClient(ctx context.Context) (time.Duration, error) {
	const resident = "resident"
	first := &byOperator{hub: s.hub}
	if err := first.prepare(ctx, resident); err != nil {
		return 0, err
	}
	if _, err := s.step(ctx, resident, []string{resident}, metav1.ConditionTrue, first.create); err != nil {
		return 0, err
	}
	m, err := readModel(ctx, s.hub, first.workload)
	if err != nil {
		return 0, err
	}
	sides := make([]*byAskingClient, len(s.names))
	for i, name := range s.names {
		sides[i] = &byAskingClient{byBareClient: byBareClient{hub: s.hub, model: m}, members: s.members}
		if err := sides[i].prepare(ctx, "bare-"+name); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	all := s.members.expect(len(sides)*len(s.hub.clusters), func(work *workv1.ManifestWork) bool {
		return work.Labels[v1alpha1.LabelManagedBy] == bareWriter && !asks(work) && answered(work)
	})
	if err := s.askAndDeliver(ctx, sides); err != nil {
		return 0, err
	}
	if err := s.members.awaitFor(ctx, all, s.patience()); err != nil {
		return 0, err
	}
	clock := all.at.Sub(start)
	fmt.Fprintf(s.progress, "%-14s %s\n", "bare client", clock.Round(time.Millisecond))
	return clock, s.removeBare(ctx)
}

// askAndDeliver writes each ManifestWork twice: with a question, and when it is answered with the workload.
func (s *scale) askAndDeliver(ctx context.Context, sides []*byAskingClient) error {
	pairs := len(sides) * len(s.hub.clusters)
	byName := map[types.NamespacedName]*byAskingClient{}
	for _, side := range sides {
		for cluster, work := range side.works {
			byName[types.NamespacedName{Namespace: cluster, Name: work.Name}] = side
		}
	}
	answers := make(chan *workv1.ManifestWork, pairs)
	s.members.notify(answers, pairs, func(work *workv1.ManifestWork) bool {
		return work.Labels[v1alpha1.LabelManagedBy] == bareWriter && asks(work) && answered(work)
	})
	return s.parallel(ctx, 2*pairs, func(ctx context.Context, i int) error {
		if i < pairs {
			work := sides[i/len(s.hub.clusters)].works[s.hub.clusters[i%len(s.hub.clusters)]]
			return s.hub.Create(ctx, work)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case work := <-answers:
			patch := byName[client.ObjectKeyFromObject(work)].deliver[work.Namespace]
			return s.hub.Patch(ctx, work, client.RawPatch(types.MergePatchType, patch))
		}
	})
}

// removeBare takes the bare client's ManifestWorks away.
func (s *scale) removeBare(ctx context.Context) error {
	gone := s.members.expect(0, func(work *workv1.ManifestWork) bool { return work.Labels[v1alpha1.LabelManagedBy] == bareWriter })
	err := s.hub.each(ctx, func(ctx context.Context, cluster string) error {
		return s.hub.DeleteAllOf(ctx, &workv1.ManifestWork{}, client.InNamespace(cluster), client.MatchingLabels{v1alpha1.LabelManagedBy: bareWriter})
	})
	if err != nil {
		return err
	}
	return s.members.awaitFor(ctx, gone, s.patience())
}

// parallel does n pieces of work in order, several at once.
func (s *scale) parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, writers, n, func(i int) {
		if err := do(ctx, i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// besideBareClient compares the changes that were made one by one with those of a bare client. The operator is stopped: it would put its own back.
func (s *scale) besideBareClient(ctx context.Context) error {
	if err := s.operator.stop(); err != nil {
		return err
	}
	var took []time.Duration
	for _, name := range s.changing() {
		clock, err := s.changeByBareClient(ctx, name)
		if err != nil {
			return fmt.Errorf("change by a bare client: %w", err)
		}
		took = append(took, clock)
	}
	s.printMedian("by bare client", took)
	s.line("one change, the median, beside a bare client", median(s.one).Seconds()/median(took).Seconds(), 1.5)
	return nil
}

// changeByBareClient is how long a bare client takes for one FleetWorkload's ManifestWorks, until all clusters have answered.
func (s *scale) changeByBareClient(ctx context.Context, name string) (time.Duration, error) {
	m, err := readModel(ctx, s.hub, s.workload(name).workload)
	if err != nil {
		return 0, err
	}
	const image = secondImage + "-bare"
	bare := &byBareClient{hub: s.hub, works: map[string]*workv1.ManifestWork{}, patches: map[string][]byte{}}
	for _, work := range m.works {
		if err := bare.add(work, besideImage, image); err != nil {
			return 0, err
		}
	}
	is := delivered(name, image)
	all := s.members.expect(len(m.works), func(work *workv1.ManifestWork) bool { return is(work) && answered(work) })
	start := time.Now()
	if err := bare.change(ctx); err != nil {
		return 0, err
	}
	if err := s.members.awaitFor(ctx, all, s.patience()); err != nil {
		return 0, err
	}
	return all.at.Sub(start), nil
}
