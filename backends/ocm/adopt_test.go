package ocm

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func TestCarrying(t *testing.T) {
	object := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}}
	}
	work := func(name, managedBy string, manifests ...any) unstructured.Unstructured {
		w := unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"workload": map[string]any{"manifests": manifests}},
		}}
		w.SetName(name)
		w.SetLabels(map[string]string{v1alpha1.LabelManagedBy: managedBy})
		return w
	}
	works := []unstructured.Unstructured{
		work("ours", v1alpha1.ManagedByOperator, object("Deployment", "web")),
		work("others", "", object("Deployment", "api"), object("Service", "web")),
	}
	if got := carrying(works, object("Deployment", "web")); got != "" {
		t.Errorf("%q carries it", got)
	}
	works = append(works, work("theirs", "", object("Service", "web"), object("Deployment", "web")))
	if got := carrying(works, object("Deployment", "web")); got != "theirs" {
		t.Errorf("%q carries it", got)
	}
}
