package retire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/backends"
)

// workOf is a ManifestWork of m1 with one Deployment, as the agent has applied it.
func workOf(change func(*workv1.ManifestWork)) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "m1", Name: "w", Generation: 3}}
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`),
	}}}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Group: "apps", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"},
	}}
	w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 3}}
	if change != nil {
		change(w)
	}
	return w
}

func orphans(policy workv1.DeletePropagationPolicyType, rules ...workv1.OrphaningRule) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: policy, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules}}
	}
}

func TestDependents(t *testing.T) {
	web := func(change func(*backends.Dependent)) []backends.Dependent {
		d := backends.Dependent{
			Cluster: "m1", Kind: "Deployment", Namespace: "shop", Name: "web", Fate: backends.FateRemoved,
			Owner:    backends.Owner{Kind: "ManifestWork", Namespace: "m1", Name: "w"},
			Preserve: "set deleteOption.propagationPolicy to Orphan",
		}
		if change != nil {
			change(&d)
		}
		return []backends.Dependent{d}
	}
	left := web(func(d *backends.Dependent) { d.Fate = backends.FateLeft })
	labelled := func(key, value string) func(*workv1.ManifestWork) {
		return func(w *workv1.ManifestWork) { w.Labels = map[string]string{key: value} }
	}
	for name, test := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   []backends.Dependent
	}{
		"a user's":                   {nil, web(nil)},
		"that stays":                 {orphans(workv1.DeletePropagationPolicyTypeOrphan), left},
		"of which this one stays":    {orphans(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, workv1.OrphaningRule{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}), left},
		"of which another one stays": {orphans(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, workv1.OrphaningRule{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "api"}), web(nil)},
		"that is to go, written out": {orphans(workv1.DeletePropagationPolicyTypeForeground), web(nil)},
		"that the agent only reads":  {func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = readOnlyConfig("web") }, nil},
		"of which it reads another":  {func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = readOnlyConfig("api") }, web(nil)},
		"a replica set's": {labelled("work.open-cluster-management.io/manifestworkreplicaset", "shop.all"), web(func(d *backends.Dependent) {
			d.Owner = backends.Owner{Kind: "ManifestWorkReplicaSet", Namespace: "shop", Name: "all"}
		})},
		"an add-on's": {labelled("open-cluster-management.io/addon-name", "policy"), web(func(d *backends.Dependent) {
			d.Owner, d.Own, d.Preserve = backends.Owner{Kind: "ManagedClusterAddOn", Namespace: "m1", Name: "policy"}, true, ""
		})},
		"shared by FleetWorkloads": {labelled("fleetworkload.io/managed-by", "fleetworkload"), web(func(d *backends.Dependent) {
			d.Owner, d.Own, d.Preserve = backends.Owner{Kind: "FleetWorkload"}, true, ""
		})},
		"a FleetWorkload's": {func(w *workv1.ManifestWork) { w.Annotations = map[string]string{"fleetworkload.io/owner": "shop/web"} }, web(func(d *backends.Dependent) {
			d.Owner, d.Preserve = backends.Owner{Kind: "FleetWorkload", Namespace: "shop", Name: "web"}, ""
		})},
		"that stays once the agent knows": {func(w *workv1.ManifestWork) { orphans(workv1.DeletePropagationPolicyTypeOrphan)(w); w.Generation = 4 }, web(func(d *backends.Dependent) { d.Note = "the agent has not confirmed yet that it leaves it" })},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Dependents(workOf(test.change))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func readOnlyConfig(name string) []workv1.ManifestConfigOption {
	return []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: name},
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
	}}
}

func TestPreserve(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{workv1.Install, workv1alpha1.Install} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	work := workOf(orphans(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, workv1.OrphaningRule{Resource: "deployments", Name: "web"}))
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	h := &Hub{client: fake.NewClientBuilder().WithScheme(known).WithObjects(work, set).Build()}
	for _, owner := range []backends.Owner{{Kind: "ManifestWork", Namespace: "m1", Name: "w"}, {Kind: "ManifestWorkReplicaSet", Namespace: "shop", Name: "all"}} {
		if err := h.Preserve(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
	}
	for _, obj := range []client.Object{work, set} {
		if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
	}
	want := &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	if diff := cmp.Diff([]*workv1.DeleteOption{want, want}, []*workv1.DeleteOption{work.Spec.DeleteOption, set.Spec.ManifestWorkTemplate.DeleteOption}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := h.Preserve(t.Context(), backends.Owner{Kind: "ManagedClusterAddOn", Namespace: "m1", Name: "policy"}); err == nil {
		t.Error("an add-on is preserved")
	}
}
