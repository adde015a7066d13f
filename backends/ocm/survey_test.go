package ocm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends"
)

// answering is a ManifestWork with the agent's rights for a kind, by which its cluster says in which versions it serves the kind.
func answering(cluster, resource, group string, versions ...string) *unstructured.Unstructured {
	work := newObject(manifestWorkGVK, cluster, rightsWorkName(group, resource))
	work.SetUID(types.UID(cluster + resource))
	work.SetResourceVersion("1")
	var values []any
	for _, version := range versions {
		values = append(values, map[string]any{"name": version, "fieldValue": map[string]any{"type": "Boolean", "boolean": true}})
	}
	work.Object["status"] = map[string]any{"resourceStatus": map[string]any{"manifests": []any{map[string]any{
		"resourceMeta": map[string]any{"kind": "CustomResourceDefinition"}, "statusFeedback": map[string]any{"values": values},
	}}}}
	return work
}

// TestWhatAgentsSayThatClustersServe: of a cluster that has not answered nothing is known, and of none all.
func TestWhatAgentsSayThatClustersServe(t *testing.T) {
	const kruise = "apps.kruise.io"
	got := new(reports).servedOf([]*unstructured.Unstructured{
		answering("m1", "statefulsets", kruise, "v1beta1", "v1alpha1"), answering("m1", "clonesets", kruise, "v1alpha1"),
		answering("m2", "clonesets", kruise), answering("m2", "workflows", "argoproj.io", "v1alpha1"),
	}, kruise)
	alpha := schema.GroupVersion{Group: kruise, Version: "v1alpha1"}
	want := map[string]backends.Served{"m1": {Resources: []schema.GroupVersionResource{
		alpha.WithResource("clonesets"), alpha.WithResource("statefulsets"), {Group: kruise, Version: "v1beta1", Resource: "statefulsets"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}
