package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// writers is how many requests the bare client has under way at once.
const writers = 10

// Images before and after the change. Neither is part of the other.
const (
	firstImage  = "registry.example.com/shop/web:1.27.0"
	secondImage = "registry.example.com/shop/web:1.28.0"
)

// side brings a workload to all clusters.
type side interface {
	// prepare does what is not measured.
	prepare(ctx context.Context, name string) error
	// create asks for the workload of that name with the first image, change for the second one.
	create(ctx context.Context) error
	change(ctx context.Context) error
	// settle waits until the side has taken in what all clusters have reported.
	settle(ctx context.Context) error
	remove(ctx context.Context) error
}

// byOperator is a FleetWorkload.
type byOperator struct {
	hub      *hub
	workload *v1alpha1.FleetWorkload
}

func (s *byOperator) prepare(_ context.Context, name string) error {
	s.workload = &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.workload.Spec = v1alpha1.FleetWorkloadSpec{
		Backend: backend, DeletionPolicy: v1alpha1.DeletionPolicyOrphan,
		Template:  runtime.RawExtension{Raw: manifest(name, firstImage)},
		Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
	}
	return nil
}

func (s *byOperator) create(ctx context.Context) error {
	if err := s.hub.Create(ctx, s.workload); err != nil {
		return fmt.Errorf("create FleetWorkload %s: %w", s.workload.Name, err)
	}
	return nil
}

func (s *byOperator) change(ctx context.Context) error { return s.changeTo(ctx, secondImage) }

func (s *byOperator) changeTo(ctx context.Context, image string) error {
	before := s.workload.DeepCopy()
	s.workload.Spec.Template.Raw = manifest(s.workload.Name, image)
	if err := s.hub.Patch(ctx, s.workload, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change the image of FleetWorkload %s: %w", s.workload.Name, err)
	}
	return nil
}

func (s *byOperator) settle(ctx context.Context) error {
	return s.hub.await(ctx, s.workload, func() error {
		ready := meta.FindStatusCondition(s.workload.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != s.workload.Generation {
			return fmt.Errorf("its condition Ready is %+v", ready)
		}
		return nil
	})
}

func (s *byOperator) remove(ctx context.Context) error {
	if err := s.hub.Delete(ctx, s.workload); err != nil {
		return fmt.Errorf("delete FleetWorkload %s: %w", s.workload.Name, err)
	}
	return s.hub.awaitGone(ctx, s.workload)
}

// manifest is the workload.
func manifest(name, image string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{"name":%[1]q},"spec":{"replicas":3,`+
		`"selector":{"matchLabels":{"app":%[1]q}},"updateStrategy":{"type":"InPlaceIfPossible","maxUnavailable":"25%%"},`+
		`"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"main","image":%[2]q,`+
		`"env":[{"name":"LOG_LEVEL","value":"warn"}],"ports":[{"containerPort":8080,"protocol":"TCP"}],`+
		`"resources":{"requests":{"cpu":"50m","memory":"64Mi"}}}]}}}}`, name, image)
}

// model is what the operator has written for a FleetWorkload that stays: whoever is compared writes the same.
type model struct {
	// name of the FleetWorkload. It is replaced by that of the workload to write.
	name      string
	works     []*workv1.ManifestWork
	placement clusterv1beta1.PlacementSpec
}

// copyOf is the operator's ManifestWork for one cluster as others write it.
func (m *model) copyOf(work *workv1.ManifestWork, name, writer string) (*workv1.ManifestWork, error) {
	raw, err := json.Marshal(workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name, Labels: work.Labels, Annotations: work.Annotations},
		Spec:       work.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("copy ManifestWork of %s: %w", work.Namespace, err)
	}
	copied := &workv1.ManifestWork{}
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte(m.name), []byte(name)), copied); err != nil {
		return nil, fmt.Errorf("copy ManifestWork of %s: %w", work.Namespace, err)
	}
	// The operator does not look at it.
	copied.Labels[v1alpha1.LabelManagedBy] = writer
	return copied, nil
}

// bareWriter manages what a bare client writes.
const bareWriter = "bare-client"

// byBareClient is a client that knows the ManifestWorks and writes them in parallel.
type byBareClient struct {
	hub   *hub
	model *model
	works map[string]*workv1.ManifestWork
	// patches change the image.
	patches map[string][]byte
}

func (s *byBareClient) prepare(_ context.Context, name string) error {
	s.works, s.patches = map[string]*workv1.ManifestWork{}, map[string][]byte{}
	for _, work := range s.model.works {
		copied, err := s.model.copyOf(work, name, bareWriter)
		if err != nil {
			return err
		}
		if err := s.add(copied, firstImage, secondImage); err != nil {
			return err
		}
	}
	return nil
}

// add has a ManifestWork written, and its image changed.
func (s *byBareClient) add(work *workv1.ManifestWork, from, to string) error {
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"workload": work.Spec.Workload}})
	if err != nil {
		return fmt.Errorf("render patch for %s: %w", work.Namespace, err)
	}
	s.works[work.Namespace], s.patches[work.Namespace] = work, bytes.ReplaceAll(raw, []byte(from), []byte(to))
	return nil
}

func (s *byBareClient) create(ctx context.Context) error {
	return s.hub.each(ctx, func(ctx context.Context, cluster string) error {
		if err := s.hub.Create(ctx, s.works[cluster]); err != nil {
			return fmt.Errorf("create ManifestWork in %s: %w", cluster, err)
		}
		return nil
	})
}

func (s *byBareClient) change(ctx context.Context) error {
	return s.hub.each(ctx, func(ctx context.Context, cluster string) error {
		if err := s.hub.Patch(ctx, s.works[cluster], client.RawPatch(types.MergePatchType, s.patches[cluster])); err != nil {
			return fmt.Errorf("patch ManifestWork in %s: %w", cluster, err)
		}
		return nil
	})
}

func (s *byBareClient) settle(context.Context) error { return nil }

func (s *byBareClient) remove(ctx context.Context) error {
	return s.hub.each(ctx, func(ctx context.Context, cluster string) error {
		if err := s.hub.Delete(ctx, s.works[cluster]); err != nil {
			return fmt.Errorf("delete ManifestWork in %s: %w", cluster, err)
		}
		return nil
	})
}

// byAskingClient is a bare client that asks each cluster for the object before it writes it, as the operator does.
type byAskingClient struct {
	byBareClient
	members *members
	// deliver are patches that make a ManifestWork write what it asked for.
	deliver map[string][]byte
}

func (s *byAskingClient) prepare(ctx context.Context, name string) error {
	if err := s.byBareClient.prepare(ctx, name); err != nil {
		return err
	}
	s.deliver = map[string][]byte{}
	for cluster, work := range s.works {
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{"manifestConfigs": work.Spec.ManifestConfigs}})
		if err != nil {
			return fmt.Errorf("render patch for %s: %w", cluster, err)
		}
		s.deliver[cluster] = raw
		work.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	}
	return nil
}

func (s *byAskingClient) create(ctx context.Context) error {
	answers := make(chan *workv1.ManifestWork, len(s.works))
	name := s.works[s.hub.clusters[0]].Name
	s.members.notify(answers, len(s.works), func(work *workv1.ManifestWork) bool {
		return work.Name == name && asks(work) && answered(work)
	})
	delivered := make(chan error, 1)
	go func() {
		delivered <- s.hub.each(ctx, func(ctx context.Context, _ string) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case work := <-answers:
				if err := s.hub.Patch(ctx, work, client.RawPatch(types.MergePatchType, s.deliver[work.Namespace])); err != nil {
					return fmt.Errorf("patch ManifestWork in %s: %w", work.Namespace, err)
				}
				return nil
			}
		})
	}()
	if err := s.byBareClient.create(ctx); err != nil {
		return err
	}
	return <-delivered
}

// byReplicaSet is a ManifestWorkReplicaSet with a Placement like the operator's.
type byReplicaSet struct {
	hub       *hub
	model     *model
	placement *clusterv1beta1.Placement
	set       *workv1alpha1.ManifestWorkReplicaSet
}

func (s *byReplicaSet) prepare(_ context.Context, name string) error {
	work, err := s.model.copyOf(s.model.works[0], name, "replica-set")
	if err != nil {
		return err
	}
	s.placement = &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s.model.placement,
	}
	s.set = &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.set.Spec.ManifestWorkTemplate = work.Spec
	s.set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: name}}
	s.set.Spec.PlacementRefs[0].RolloutStrategy.Type = "All"
	return nil
}

func (s *byReplicaSet) create(ctx context.Context) error {
	for _, obj := range []client.Object{s.placement, s.set} {
		if err := s.hub.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

func (s *byReplicaSet) change(ctx context.Context) error {
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"manifestWorkTemplate": map[string]any{
		"workload": s.set.Spec.ManifestWorkTemplate.Workload,
	}}})
	if err != nil {
		return fmt.Errorf("render patch of ManifestWorkReplicaSet %s: %w", s.set.Name, err)
	}
	patch := client.RawPatch(types.MergePatchType, bytes.ReplaceAll(raw, []byte(firstImage), []byte(secondImage)))
	if err := s.hub.Patch(ctx, s.set, patch); err != nil {
		return fmt.Errorf("patch ManifestWorkReplicaSet %s: %w", s.set.Name, err)
	}
	return nil
}

func (s *byReplicaSet) settle(context.Context) error { return nil }

func (s *byReplicaSet) remove(ctx context.Context) error {
	if err := s.hub.Delete(ctx, s.set); err != nil {
		return fmt.Errorf("delete ManifestWorkReplicaSet %s: %w", s.set.Name, err)
	}
	if err := s.hub.awaitGone(ctx, s.set); err != nil {
		return err
	}
	if err := s.hub.Delete(ctx, s.placement); err != nil {
		return fmt.Errorf("delete Placement %s: %w", s.placement.Name, err)
	}
	return s.hub.awaitGone(ctx, s.placement)
}

// readModel reads what the operator has written for a FleetWorkload.
func readModel(ctx context.Context, h *hub, workload *v1alpha1.FleetWorkload) (*model, error) {
	m := &model{name: workload.Name}
	if err := h.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
		return nil, fmt.Errorf("read FleetWorkload %s: %w", workload.Name, err)
	}
	labels := client.MatchingLabels{v1alpha1.LabelUID: workload.Status.Identity}
	var placements clusterv1beta1.PlacementList
	if err := h.List(ctx, &placements, labels); err != nil {
		return nil, fmt.Errorf("list Placements: %w", err)
	}
	var works workv1.ManifestWorkList
	if err := h.List(ctx, &works, labels); err != nil {
		return nil, fmt.Errorf("list ManifestWorks: %w", err)
	}
	if len(placements.Items) != 1 || len(works.Items) != len(h.clusters) {
		return nil, fmt.Errorf("the operator has %d Placements and %d ManifestWorks, want 1 and %d",
			len(placements.Items), len(works.Items), len(h.clusters))
	}
	m.placement = placements.Items[0].Spec
	for i := range works.Items {
		m.works = append(m.works, &works.Items[i])
	}
	if slices.ContainsFunc(m.works, asks) {
		return nil, errors.New("the operator has ManifestWorks that only ask")
	}
	return m, nil
}
