package karmada

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestWhatKarmadaSaysThatClustersServe: an incomplete list without the group proves nothing, a complete one does.
func TestWhatKarmadaSaysThatClustersServe(t *testing.T) {
	const kruise = "apps.kruise.io"
	enabled := func(groupVersion string, resources ...string) clusterv1alpha1.APIEnablement {
		e := clusterv1alpha1.APIEnablement{GroupVersion: groupVersion}
		for _, name := range resources {
			e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Name: name})
		}
		return e
	}
	cluster := func(name string, complete metav1.ConditionStatus, apis ...clusterv1alpha1.APIEnablement) clusterv1alpha1.Cluster {
		c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.APIEnablements = apis
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: complete}}
		return c
	}
	got := servedBy([]clusterv1alpha1.Cluster{
		cluster("all", metav1.ConditionTrue, enabled(kruise+"/v1beta1", "statefulsets"), enabled("apps/v1", "deployments"), enabled(kruise+"/v1alpha1", "statefulsets", "clonesets")),
		cluster("none", metav1.ConditionTrue, enabled("apps/v1", "deployments")),
		cluster("some", metav1.ConditionFalse, enabled(kruise+"/v1alpha1", "clonesets")),
		cluster("unknown", metav1.ConditionFalse, enabled("apps/v1", "deployments")),
	}, kruise)
	alpha := schema.GroupVersion{Group: kruise, Version: "v1alpha1"}
	want := map[string]backends.Served{
		"all": {Whole: true, Resources: []schema.GroupVersionResource{
			alpha.WithResource("clonesets"), alpha.WithResource("statefulsets"), {Group: kruise, Version: "v1beta1", Resource: "statefulsets"},
		}},
		"none": {Whole: true},
		"some": {Resources: []schema.GroupVersionResource{alpha.WithResource("clonesets")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}
