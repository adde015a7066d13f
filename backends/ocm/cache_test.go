package ocm

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// emptyCache has nothing.
type emptyCache struct{ cache.Cache }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A Placement that was deleted is made again once its decisions are gone. They are the last to tell, and their Placement, by
// which a workload is found, is not there any more.
func TestDecisionsOfFormerPlacements(t *testing.T) {
	d := &Driver{cache: emptyCache{}}
	d.synced.Store(true)
	workload := types.NamespacedName{Namespace: "shop", Name: "web"}
	decision := func(placement string) *clusterv1beta1.PlacementDecision {
		return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: placement + "-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
		}}
	}
	told := func(placement string) (keys []types.NamespacedName) {
		notify := func(key types.NamespacedName) { keys = append(keys, key) }
		d.changed(t.Context(), nil, decision(placement), notify, func() { t.Error("the fleet has not changed") })
		return keys
	}
	d.successors.add(types.NamespacedName{Namespace: "shop", Name: "fw-web-1"}, workload)
	if got := told("fw-web-1"); !slices.Equal(got, []types.NamespacedName{workload}) {
		t.Errorf("told %v, want %v", got, workload)
	}
	if got := told("fw-api-1"); len(got) > 0 {
		t.Errorf("told %v of a Placement that nobody waits for", got)
	}
	d.successors.drop(workload, nil)
	if got := told("fw-web-1"); len(got) > 0 {
		t.Errorf("told %v, who waits no longer", got)
	}
}

// TestALabelThatWasTakenOff: without it a ManifestWork is in no cache, and would be made again on every pass.
func TestALabelThatWasTakenOff(t *testing.T) {
	key := wantedDelivery().Key
	live := newOwnedObject(manifestWorkGVK, key, "m1", workName(key))
	labels := live.GetLabels()
	delete(labels, v1alpha1.LabelManagedBy)
	live.SetLabels(labels)
	d := &Driver{hub: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(live).Build()}
	p, err := newPlan(wantedDelivery(), Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	work := p.targets[0].work.DeepCopy()
	work.SetNamespace("m1")
	if err := d.createWork(t.Context(), work, key); err != nil {
		t.Fatal(err)
	}
	got := unstructuredOf(manifestWorkGVK)
	if err := d.hub.Get(t.Context(), client.ObjectKeyFromObject(live), got); err != nil {
		t.Fatal(err)
	}
	if got.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator {
		t.Errorf("labels %v", got.GetLabels())
	}
}
