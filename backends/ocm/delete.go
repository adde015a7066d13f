package ocm

import (
	"context"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
)

// Delete implements backends.Driver.
func (d *Driver) Delete(
	ctx context.Context, query backends.Query, policy v1alpha1.DeletionPolicy,
) (backends.Progress, error) {
	if err := d.ready(ctx); err != nil {
		return backends.Progress{}, err
	}
	works, err := d.worksOf(ctx, query.Key)
	if err != nil {
		return backends.Progress{}, err
	}
	if len(works) > 0 {
		return d.deleteWorks(ctx, query.Key, works, intent{policy: policy, alone: query.Alone()})
	}
	companionWorks, err := d.companionWorksOf(ctx, query.Key)
	if err != nil {
		return backends.Progress{}, err
	}
	if waiting, err := d.deleteCompanionWorks(ctx, query.Key, intent{policy: policy, alone: query.Alone()}, companionWorks); err != nil || len(waiting) > 0 {
		return progress(waiting), err
	}
	if unseen, err := d.unseenCompanionWorks(ctx, query.Key); err != nil || unseen {
		return backends.Progress{Waiting: "the cache to show the companions"}, err
	}
	placements, err := d.placementsOf(ctx, query.Key)
	if err != nil {
		return backends.Progress{}, err
	}
	d.prerequisiteUsers.Drop(query.Key.NamespacedName, nil)
	d.successors.Drop(query.Key.NamespacedName, nil)
	if len(placements) > 0 {
		if err := d.deletePlacements(ctx, query, placements); err != nil {
			return backends.Progress{}, err
		}
	}
	if err := d.pruneBindings(ctx, query.Key); err != nil {
		return backends.Progress{}, err
	}
	if len(placements) > 0 {
		// A FleetWorkload of the same name would still meet them in the cache.
		return backends.Progress{Waiting: "the hub to finish the removal of Placements"}, nil
	}
	// The cache may be behind what was written a moment ago, and after Done nobody looks again.
	for _, gvk := range []schema.GroupVersionKind{manifestWorkGVK, placementGVK} {
		left, err := d.leftOnHub(ctx, gvk, query.Key)
		if err != nil {
			return backends.Progress{}, err
		}
		if left {
			return backends.Progress{Waiting: "the hub to finish the removal of " + gvk.Kind + "s"}, nil
		}
	}
	return backends.Progress{Done: true}, nil
}

func (d *Driver) deleteWorks(
	ctx context.Context, key backends.Key, works []*unstructured.Unstructured, in intent,
) (backends.Progress, error) {
	fleet, err := d.fleet(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	jobs := map[string]*unstructured.Unstructured{}
	for _, work := range works {
		jobs[work.GetNamespace()] = work
	}
	var late atomic.Bool
	waiting, err := inParallel(ctx, jobs, func(cluster string, work *unstructured.Unstructured) (string, error) {
		if behind, err := d.behind(ctx, cluster, key, work); behind {
			late.Store(true)
			return waitsForCache, err
		}
		here := in
		here.ready = fleet.InContact(cluster)
		return d.removeWork(ctx, work, here)
	})
	if err == nil && len(waiting) == 0 {
		waiting = []string{"the hub to finish the removal"}
	}
	return lookingAgain(progress(waiting), late.Load()), err
}

// deletePlacements removes what is shared and no longer needed first: as long as a Placement is there, a Delete that
// was cut off goes on here.
func (d *Driver) deletePlacements(ctx context.Context, query backends.Query, placements []*unstructured.Unstructured) error {
	if err := d.sweepPrerequisites(ctx, query.Workload); err != nil {
		return err
	}
	for _, placement := range placements {
		if placement.GetDeletionTimestamp() != nil {
			continue
		}
		if err := d.remove(ctx, placement); err != nil {
			return err
		}
	}
	return nil
}

// pruneBindings removes our set bindings with the last FleetWorkload of the namespace, unless somebody else has Placements there, which may
// choose by them: without a binding OCM takes their workloads away. The cache has our own Placements only, and it may be behind.
func (d *Driver) pruneBindings(ctx context.Context, key backends.Key) error {
	placements, err := d.list(ctx, listOf(placementGVK), client.InNamespace(key.Namespace))
	if err != nil {
		return err
	}
	for _, placement := range placements {
		if placement.GetLabels()[v1alpha1.LabelUID] != string(key.UID) {
			return nil
		}
	}
	bindings, err := d.list(ctx, listOf(bindingGVK), client.InNamespace(key.Namespace),
		client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	if err != nil || len(bindings) == 0 {
		return err
	}
	if used, err := d.choosesFor(ctx, key); err != nil || used {
		return err
	}
	for _, binding := range bindings {
		if binding.GetDeletionTimestamp() == nil {
			if err := d.remove(ctx, binding); err != nil {
				return err
			}
		}
	}
	return nil
}

// choosesFor tells whether the hub has a Placement in the namespace that is not the workload's.
func (d *Driver) choosesFor(ctx context.Context, key backends.Key) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementGVK.GroupVersion().WithKind("PlacementList"))
	if err := d.hub.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return false, explain("list Placements of namespace "+key.Namespace, err)
	}
	return slices.ContainsFunc(list.Items, func(p metav1.PartialObjectMetadata) bool {
		return p.Labels[v1alpha1.LabelUID] != string(key.UID)
	}), nil
}

// leftOnHub tells whether the hub has an object of the workload that no cache shows. One that none would show for ever shows again.
func (d *Driver) leftOnHub(ctx context.Context, gvk schema.GroupVersionKind, key backends.Key) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := d.hub.List(ctx, list, client.MatchingLabels{v1alpha1.LabelUID: string(key.UID)})
	if err != nil {
		return false, explain("list "+gvk.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		if _, err := caches.ShowAgain(ctx, d.hub, &list.Items[i], key.UID); err != nil {
			return true, explain("label "+gvk.Kind, err)
		}
	}
	return len(list.Items) > 0, nil
}
