package ocm

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
