package ocm

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// bringing is a ManifestWork with a CustomResourceDefinition.
func bringing(cluster, name, deletion string) *unstructured.Unstructured {
	work := newObject(manifestWorkGVK, cluster, name)
	work.SetLabels(nil)
	work.Object["spec"] = map[string]any{
		"deleteOption": map[string]any{"propagationPolicy": deletion},
		"workload": map[string]any{"manifests": []any{
			map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "webs.example.com"}},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "webs.example.com", "namespace": "default"}},
		}},
	}
	// The agent has carried it out.
	work.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Applied", "status": "True", "observedGeneration": int64(0)}}}
	return work
}

// TestDefinitionsThatWouldGo: others' ManifestWorks bring them, unless they orphan them. They are listed once a minute, whoever asks.
func TestDefinitionsThatWouldGo(t *testing.T) {
	ours := bringing("m3", "ours", "Foreground")
	ours.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	lists := 0
	d := &Driver{hub: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	}).WithObjects(bringing("m1", "theirs", "Foreground"), bringing("m2", "orphaned", "Orphan"), ours).Build()}
	now := time.Now()
	for at, want := range []int{1, 1, 2} {
		going, err := d.definitions(t.Context(), now.Add(time.Duration(at)*40*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, dependent := range going {
			found = append(found, dependent.Cluster+" "+dependent.Kind+" "+dependent.Name+" "+dependent.Owner.Name)
		}
		if !slices.Equal(found, []string{"m1 CustomResourceDefinition webs.example.com theirs"}) || lists != want {
			t.Errorf("it would go: %q, after %d lists, want %d", found, lists, want)
		}
	}
}
