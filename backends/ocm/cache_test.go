package ocm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// emptyCache has nothing.
type emptyCache struct{ cache.Cache }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// indexedCache has what a fake API server has.
type indexedCache struct {
	cache.Cache
	hub client.Client
}

func (c indexedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.hub.List(ctx, list, opts...)
}

// TestDelivering: who delivers an object to a cluster is found among those that have the same bucket.
func TestDelivering(t *testing.T) {
	manifest := func(name string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": name}}
	}
	like := 1 // another one in the bucket of 0
	for bucket(identity(manifest(fmt.Sprint(like)))) != bucket(identity(manifest("0"))) {
		like++
	}
	var works []client.Object
	for _, cluster := range []string{"m1", "m2"} {
		for i := range like + 1 {
			work := newObject(manifestWorkGVK, cluster, fmt.Sprint("work-", i))
			work.Object["spec"] = map[string]any{"workload": map[string]any{"manifests": []any{manifest(fmt.Sprint(i))}}}
			works = append(works, work)
		}
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(manifestWorkGVK, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(manifestWorkGVK.GroupVersion().WithKind("ManifestWorkList"), &unstructured.UnstructuredList{})
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(works...).
		WithIndex(unstructuredOf(manifestWorkGVK), indexObject, indexes()[indexObject]).Build()
	d := &Driver{cache: indexedCache{hub: hub}}
	for _, name := range []string{"0", fmt.Sprint(like), "nobody's"} {
		found, err := d.delivering(t.Context(), "m2", manifest(name))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, work := range found {
			names = append(names, work.GetNamespace()+"/"+work.GetName())
		}
		if want := []string{"m2/work-" + name}; name == "nobody's" && len(names) > 0 || name != "nobody's" && !slices.Equal(names, want) {
			t.Errorf("%s: %v", name, names)
		}
	}
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
	d.successors.Add(types.NamespacedName{Namespace: "shop", Name: "fw-web-1"}, workload)
	if got := told("fw-web-1"); !slices.Equal(got, []types.NamespacedName{workload}) {
		t.Errorf("told %v, want %v", got, workload)
	}
	if got := told("fw-api-1"); len(got) > 0 {
		t.Errorf("told %v of a Placement that nobody waits for", got)
	}
	d.successors.Drop(workload, nil)
	if got := told("fw-web-1"); len(got) > 0 {
		t.Errorf("told %v, who waits no longer", got)
	}
}

// TestALabelThatWasTakenOff: without the label by which the cache has it, an object would be awaited for ever: a ManifestWork and a
// companion's to be shown, a Placement to be followed by another one, and all of them to go. What is somebody else's stays unlabelled.
func TestALabelThatWasTakenOff(t *testing.T) {
	desired := wantedDelivery()
	desired.Companions = []backends.Companion{{Object: (&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop"},
	}}), Resource: "configmaps"}}
	key := desired.Key
	p, err := newPlan(desired, Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(workv1.Install(scheme), clusterv1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	work, companionWork := p.targets[0].work.DeepCopy(), p.targets[0].companionWorks[0]
	work.SetNamespace("m1")
	for name, test := range map[string]struct {
		obj *unstructured.Unstructured
		// conflicts says that it cannot be told apart from somebody else's when its UID is another one.
		conflicts bool
		look      func(*Driver) error
	}{
		"a ManifestWork that is to be made": {work, true, func(d *Driver) error { return d.createWork(t.Context(), work, key) }},
		"a companion's that is to be made": {companionWork.work, true, func(d *Driver) error {
			return d.createCompanionWork(t.Context(), companionWork, companionWork.work.DeepCopy(), companions.Need{}, key)
		}},
		"a Placement that is to be made": {p.placement, false, func(d *Driver) error {
			_, waiting, err := d.applyPlacement(t.Context(), p)
			if len(waiting) != 1 {
				t.Errorf("waits for %q", waiting)
			}
			return err
		}},
		"a ManifestWork that is to go": {work, false, func(d *Driver) error {
			_, err := d.leftOnHub(t.Context(), manifestWorkGVK, key)
			return err
		}},
		"a companion's that is to go": {companionWork.work, false, func(d *Driver) error {
			_, err := d.leftOnHub(t.Context(), manifestWorkGVK, key)
			return err
		}},
		"a Placement that is to go": {p.placement, false, func(d *Driver) error {
			_, err := d.leftOnHub(t.Context(), placementGVK, key)
			return err
		}},
	} {
		for _, uid := range []types.UID{key.UID, "other"} {
			live := test.obj.DeepCopy()
			labels := live.GetLabels()
			delete(labels, v1alpha1.LabelManagedBy)
			labels[v1alpha1.LabelUID] = string(uid)
			live.SetLabels(labels)
			d := &Driver{
				hub:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).Build(),
				cache: oneDecision{placement: p.placement.GetName()},
			}
			err := test.look(d)
			if refused := backends.CodeOf(err) == backends.CodeNameConflict; refused != (test.conflicts && uid != key.UID) || err != nil && !refused {
				t.Errorf("%s, of %s: %v", name, uid, err)
			}
			got := unstructuredOf(live.GroupVersionKind())
			if err := d.hub.Get(t.Context(), client.ObjectKeyFromObject(live), got); err != nil {
				t.Fatal(err)
			}
			if shown := got.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator; shown != (uid == key.UID) {
				t.Errorf("%s, of %s: labels %v", name, uid, got.GetLabels())
			}
		}
	}
}

// oneDecision has a PlacementDecision of a Placement, and nothing else.
type oneDecision struct {
	emptyCache

	placement string
}

func (c oneDecision) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if decisions, is := list.(*clusterv1beta1.PlacementDecisionList); is {
		decisions.Items = []clusterv1beta1.PlacementDecision{{ObjectMeta: metav1.ObjectMeta{Name: c.placement + "-1"}}}
	}
	return nil
}
