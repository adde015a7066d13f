package jsondiff_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/overridemanager"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// TestKarmadaTurnsFromIntoTo sends random differences through an OverridePolicy as Karmada's API server would store it,
// and through Karmada's own override manager.
func TestKarmadaTurnsFromIntoTo(t *testing.T) {
	for seed := range int64(5000) {
		from, to := randomPair(seed)
		for _, o := range []object{from, to} {
			o["apiVersion"], o["kind"], o["metadata"] = "apps/v1", "Deployment", object{"name": "web", "namespace": "shop"}
		}
		got := &unstructured.Unstructured{Object: plain(t, from)}
		manager := overridemanager.New(policyClient{policy: policyOf(t, jsondiff.Diff(from, to))}, &record.FakeRecorder{})
		if _, _, err := manager.ApplyOverridePolicies(got, "m1"); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(plain(t, to), plain(t, got.Object)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// policyOf returns a policy with the operations as plaintext overriders, after a round trip through JSON: that is where
// a null value would get lost, if it did.
func policyOf(t *testing.T, ops []jsondiff.Op) policyv1alpha1.OverridePolicy {
	t.Helper()
	var plaintext []policyv1alpha1.PlaintextOverrider
	for _, op := range ops {
		overrider := policyv1alpha1.PlaintextOverrider{Path: op.Path, Operator: policyv1alpha1.OverriderOperator(op.Op)}
		if op.Op != jsondiff.OpRemove {
			raw, err := json.Marshal(op.Value)
			if err != nil {
				t.Fatal(err)
			}
			overrider.Value = apiextensionsv1.JSON{Raw: raw}
		}
		plaintext = append(plaintext, overrider)
	}
	var policy policyv1alpha1.OverridePolicy
	policy.Name, policy.Namespace = "web", "shop"
	policy.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}},
		Overriders:    policyv1alpha1.Overriders{Plaintext: plaintext},
	}}
	encoded, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	var stored policyv1alpha1.OverridePolicy
	if err := json.Unmarshal(encoded, &stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// policyClient answers what the override manager asks: one cluster and one policy.
type policyClient struct {
	client.Client
	policy policyv1alpha1.OverridePolicy
}

func (c policyClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*clusterv1alpha1.Cluster).Name = key.Name
	return nil
}

func (c policyClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if policies, ok := list.(*policyv1alpha1.OverridePolicyList); ok {
		policies.Items = []policyv1alpha1.OverridePolicy{c.policy}
	}
	return nil
}
