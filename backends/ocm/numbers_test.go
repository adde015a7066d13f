package ocm

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/backends/backendtest/randomspec"
)

// TestNumbersReachTheMember: each number of a template, a companion and a patch is in the ManifestWorks as it was written.
func TestNumbersReachTheMember(t *testing.T) {
	first := randomspec.First(t)
	for seed := first; seed < first+300; seed++ {
		n := randomspec.NewNumbers(seed, "apps.kruise.io/v1alpha1", "CloneSet")
		d, err := n.Desired()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		objects, err := Render(d, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		compared := 0
		for _, work := range objects {
			manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
			for _, manifest := range manifests {
				content := manifest.(map[string]any)
				spec, _ := content["spec"].(map[string]any)
				for _, part := range []struct {
					want []byte
					got  any
				}{{n.Companion, content["numbers"]}, {n.Template, spec["numbers"]}, {n.Patched, spec["patched"]}} {
					if part.got == nil {
						continue
					}
					compared++
					if diff := randomspec.DifferentNumbers(part.want, part.got); diff != "" {
						t.Fatalf("seed %d, %s for %s: -want +got\n%s", seed, content["kind"], work.GetNamespace(), diff)
					}
				}
			}
		}
		if compared != 7 { // three clusters, and one of them is patched
			t.Fatalf("seed %d: %d parts were compared", seed, compared)
		}
	}
}
