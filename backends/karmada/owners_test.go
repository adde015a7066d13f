package karmada

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// TestEventsAreForAllWhoLook: a FleetWorkload that is refused, since the workload is another one's, takes nobody's events away.
func TestEventsAreForAllWhoLook(t *testing.T) {
	var w watches
	var told []string
	w.notify = func(n types.NamespacedName) { told = append(told, n.Name) }
	expect := func(want ...string) {
		t.Helper()
		told = nil
		w.tell(bindingOf(testQuery().Workload))
		if slices.Sort(told); !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	}
	rightful, other := testQuery(), testQuery()
	other.Key = backends.Key{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: "a-copy"}, UID: "other"}
	w.remember(rightful)
	w.remember(other)
	expect("a-copy", rightful.Key.Name)
	w.forget(other)
	expect(rightful.Key.Name)
	w.forget(rightful)
	expect()
}

// TestAWorkloadThatIsACompanion: Karmada would make its own Work of the companion work, under the feet of who has the companion.
func TestAWorkloadThatIsACompanion(t *testing.T) {
	desired := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 1}, share{cluster: "m2", replicas: 1})
	other := backends.Key{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: "other"}, UID: "other"}
	for name, test := range map[string]struct {
		shared bool
		edit   func(*workv1alpha1.Work)
		want   string
	}{
		"another's":           {false, func(*workv1alpha1.Work) {}, "on m2 already, as a companion of FleetWorkload " + other.String()},
		"what pods refer to":  {true, func(*workv1alpha1.Work) {}, "FleetWorkloads whose pods refer to it"},
		"Karmada's own":       {false, func(w *workv1alpha1.Work) { delete(w.Labels, companions.Label) }, ""},
		"one that is claimed": {false, func(w *workv1alpha1.Work) { w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "1" }, ""},
	} {
		c, err := renderCompanionWork(other, "m2", backends.Companion{Object: desired.Template, Shared: test.shared}, false)
		if err != nil {
			t.Fatal(err)
		}
		test.edit(c.work)
		err = refuseCarried(desired, func(at types.NamespacedName) (*workv1alpha1.Work, error) {
			if at != (types.NamespacedName{Namespace: c.work.Namespace, Name: c.work.Name}) {
				return nil, nil
			}
			return c.work, nil
		})
		if test.want == "" && err != nil || test.want != "" && (backends.CodeOf(err) != backends.CodeNameConflict || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTwoGroupsOneBinding: the names of Karmada's bindings have no group (names.GenerateBindingName), so that two StatefulSets of one name
// meet there, which no member would mind. The first one keeps the binding; the second is told, hears of it, and takes nothing with it.
func TestTwoGroupsOneBinding(t *testing.T) {
	of := func(name, group, version string) backends.Query {
		q := testQuery()
		q.Key = backends.Key{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: name}, UID: types.UID(name)}
		q.Workload.GVK = schema.GroupVersionKind{Group: group, Version: version, Kind: "StatefulSet"}
		return q
	}
	first, second := of("first", "apps", "v1"), of("second", "apps.kruise.io", "v1beta1")
	if bindingOf(first.Workload) != bindingOf(second.Workload) {
		t.Fatal("they do not meet")
	}
	elsewhere := second.Workload
	elsewhere.Namespace = "other"
	if bindingOf(first.Workload) == bindingOf(elsewhere) {
		t.Error("two namespaces meet")
	}
	template := func(q backends.Query) *unstructured.Unstructured {
		obj := newObject(q.Workload.GVK, q.Workload.Namespace, q.Workload.Name, q.Key)
		obj.SetUID("template of " + q.Key.UID)
		return obj
	}
	w := newWork(&workv1alpha1.Work{Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{
		RawExtension: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"fleetworkload.io/uid":"first"}}}`)},
	}}}}})
	live := func(q backends.Query) currentState {
		b := &workv1alpha2.ResourceBinding{}
		b.Name, b.Namespace = bindingName(q.Workload), testNamespace
		b.Annotations = map[string]string{scopeOf(first.Workload).claim: policyName(first)}
		b.Spec.Resource = workv1alpha2.ObjectReference{
			APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: testNamespace, Name: testName, UID: template(first).GetUID(),
		}
		return currentState{template: template(q), binding: b, works: []work{w}}
	}
	if err := checkOwners(first, live(first)); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := checkOwners(second, live(second)); backends.CodeOf(err) != backends.CodeNameConflict {
		t.Errorf("the second: %v", err)
	}
	if own := live(first).own(first); own.binding == nil || len(own.works) != 1 {
		t.Errorf("the first has %+v", own)
	}
	own := live(second).own(second)
	if own.binding != nil || len(own.works) != 0 {
		t.Errorf("the second has %+v", own)
	}
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyOrphan} {
		step := decideDelete(second, policy, own, backends.Fleet{}, time.Now())
		if len(step.release) > 0 || slices.ContainsFunc(step.writes, func(w write) bool { return w.object.GetLabels()[v1alpha1.LabelUID] != "second" }) {
			t.Errorf("%s takes more with it: %+v", policy, step)
		}
	}
}

// TestALabelThatWasTakenOff: without the label by which the cache has it, the template would be awaited for ever when it is to go, and a
// policy would stay.
func TestALabelThatWasTakenOff(t *testing.T) {
	q := testQuery()
	rendered := mustRender(t, desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 1}))
	for _, uid := range []string{testUID, "other"} {
		for _, lost := range []*unstructured.Unstructured{rendered.template, rendered.policy, rendered.override} {
			live := currentState{template: rendered.template, policy: rendered.policy, override: rendered.override}
			for _, have := range []**unstructured.Unstructured{&live.template, &live.policy, &live.override} {
				if *have == lost {
					*have = nil
				}
			}
			unlabelled := lost.DeepCopy()
			unlabelled.SetLabels(map[string]string{v1alpha1.LabelUID: uid})
			d := &Driver{client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(unlabelled).Build()}
			waiting, err := d.showAgain(t.Context(), q, live)
			if err != nil || strings.Contains(waiting, "the cache to show "+lost.GetKind()) != (uid == testUID) {
				t.Errorf("%s of %s: waits for %q, %v", lost.GetKind(), uid, waiting, err)
			}
			got := reference(lost.GetAPIVersion(), lost.GetKind(), lost.GetNamespace(), lost.GetName())
			if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			if shown := got.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator; shown != (uid == testUID) {
				t.Errorf("%s of %s: labels %v", lost.GetKind(), uid, got.GetLabels())
			}
		}
	}
}
