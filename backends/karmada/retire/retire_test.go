package retire

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// workOf is a Work of member m1 with one manifest.
func workOf(name, manifest string, change func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: name, Finalizers: []string{"karmada.io/execution-controller", "other/one"}},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{
			Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}},
		}},
	}
	if change != nil {
		change(w)
	}
	return w
}

func controlled(kind, name string) func(*workv1alpha1.Work) {
	yes := true
	return func(w *workv1alpha1.Work) {
		w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: "u", Controller: &yes}}
	}
}

const namespaceShop = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`

func TestDependents(t *testing.T) {
	yes := true
	manifest := func(annotations string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","annotations":{` + annotations + `}}}`
	}
	web := func(owner backends.Owner, preserve string) []backends.Dependent {
		return []backends.Dependent{{
			Cluster: "m1", Kind: "Deployment", Namespace: "shop", Name: "web", Owner: owner, Fate: backends.FateRemoved, Preserve: preserve,
		}}
	}
	const policies = "set spec.preserveResourcesOnDeletion"
	for name, test := range map[string]struct {
		work *workv1alpha1.Work
		want []backends.Dependent
	}{
		"a FleetWorkload's": {
			workOf("w", manifest(`"fleetworkload.io/owner":"shop/web"`), nil),
			web(backends.Owner{Kind: "FleetWorkload", Namespace: "shop", Name: "web"}, ""),
		},
		"a policy's": {
			workOf("w", manifest(`"propagationpolicy.karmada.io/namespace":"shop","propagationpolicy.karmada.io/name":"p"`), nil),
			web(backends.Owner{Kind: "PropagationPolicy", Namespace: "shop", Name: "p"}, policies),
		},
		"a cluster policy's": {
			workOf("w", manifest(`"clusterpropagationpolicy.karmada.io/name":"p"`), nil),
			web(backends.Owner{Kind: "ClusterPropagationPolicy", Name: "p"}, policies),
		},
		"a dependency's": {
			workOf("w", manifest(``), func(w *workv1alpha1.Work) {
				w.Annotations = map[string]string{"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "b"}
			}),
			web(backends.Owner{Kind: "ResourceBinding", Namespace: "shop", Name: "b"}, ""),
		},
		"nobody's": {workOf("w", manifest(``), nil), web(backends.Owner{Kind: "Work", Namespace: "karmada-es-m1", Name: "w"}, "")},
		"preserved": {
			workOf("w", manifest(``), func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = &yes }),
			[]backends.Dependent{{
				Cluster: "m1", Kind: "Deployment", Namespace: "shop", Name: "web", Fate: backends.FateLeft,
				Owner: backends.Owner{Kind: "Work", Namespace: "karmada-es-m1", Name: "w"},
			}},
		},
		"another's object, which Karmada leaves alone": {
			workOf("w", manifest(``), func(w *workv1alpha1.Work) {
				w.Status.Conditions = []metav1.Condition{{
					Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
					Message: "Failed to apply all manifests (0/1): resource already exists, Karmada will not manage this resource",
				}}
			}), nil,
		},
		"of an object that could not be written": {
			workOf("w", manifest(``), func(w *workv1alpha1.Work) {
				w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Message: "timeout"}}
			}), web(backends.Owner{Kind: "Work", Namespace: "karmada-es-m1", Name: "w"}, ""),
		},
		"Karmada's own": {
			workOf("w", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"karmada-impersonator"}}`, controlled("Cluster", "m1")),
			[]backends.Dependent{{
				Cluster: "m1", Kind: "ClusterRole", Name: "karmada-impersonator", Fate: backends.FateRemoved, Own: true,
				Owner: backends.Owner{Kind: "Cluster", Name: "m1"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Dependents(test.work)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// controlPlane is one with these objects, and with a member that answers as told.
func controlPlane(t *testing.T, answer http.HandlerFunc, objects ...client.Object) *ControlPlane {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, workv1alpha1.Install, policyv1alpha1.Install} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	members, err := memberAccess(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return &ControlPlane{client: fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build(), members: members}
}

// A namespace from which a hand-over has taken Karmada's mark is free; one of which the member does not tell is not.
func TestNamespacesAreLookedAt(t *testing.T) {
	answers := func(status int, labels string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if want := "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/namespaces/shop"; r.URL.Path != want {
				t.Errorf("asked for %s, want %s", r.URL.Path, want)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if status == http.StatusOK {
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{` + labels + `}}}`))
				return
			}
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(status), Reason: reasons[status]})
		}
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		note   string // of the one that goes; empty when none does
	}{
		"Karmada's":       {answers(http.StatusOK, `"karmada.io/managed":"true"`), "with everything in it"},
		"free":            {answers(http.StatusOK, `"a":"b"`), ""},
		"not there":       {answers(http.StatusNotFound, ""), ""},
		"not to be asked": {answers(http.StatusForbidden, ""), "it may be free of Karmada already, but the member cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := controlPlane(t, test.answer, workOf("ns", namespaceShop, controlled("Namespace", "shop"))).Dependents(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.note == "" && len(found) > 0:
				t.Errorf("%+v goes", found)
			case test.note != "" && (len(found) != 1 || !strings.HasPrefix(found[0].Note, test.note) || found[0].Preserve == ""):
				t.Errorf("found %+v", found)
			}
		})
	}
}

var reasons = map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden}

func TestPreserve(t *testing.T) {
	none := func(http.ResponseWriter, *http.Request) {}
	t.Run("a policy", func(t *testing.T) {
		policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
		c := controlPlane(t, none, policy)
		if err := c.Preserve(t.Context(), backends.Owner{Kind: "PropagationPolicy", Namespace: "shop", Name: "p"}); err != nil {
			t.Fatal(err)
		}
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			t.Fatal(err)
		}
		if p := policy.Spec.PreserveResourcesOnDeletion; p == nil || !*p {
			t.Error("the policy does not preserve")
		}
	})
	t.Run("a namespace", func(t *testing.T) {
		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		mine := workOf("ns", namespaceShop, controlled("Namespace", "shop"))
		mine.Finalizers = mine.Finalizers[:1]
		another := workOf("ns2", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}}`, controlled("Namespace", "other"))
		c := controlPlane(t, none, shop, mine, another)
		if err := c.Preserve(t.Context(), backends.Owner{Kind: "Namespace", Name: "shop"}); err != nil {
			t.Fatal(err)
		}
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
			t.Fatal(err)
		}
		if shop.Labels["namespace.karmada.io/skip-auto-propagation"] != "true" {
			t.Errorf("labels %v", shop.Labels)
		}
		var left workv1alpha1.WorkList
		if err := c.client.List(t.Context(), &left); err != nil {
			t.Fatal(err)
		}
		if len(left.Items) != 1 || left.Items[0].Name != "ns2" || len(left.Items[0].Finalizers) != 2 {
			t.Errorf("left: %+v", left.Items)
		}
	})
	t.Run("what cannot be", func(t *testing.T) {
		if err := controlPlane(t, none).Preserve(t.Context(), backends.Owner{Kind: "Work", Namespace: "karmada-es-m1", Name: "w"}); err == nil {
			t.Error("no error")
		}
	})
}
