package ocm

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/interned"
)

// TestAStatusOfAnySizeIsBounded (laws 4 and 11): what somebody writes into the status of a ManifestWork with an agent's rights costs no more than a
// bound, and is not known rather than wrong.
func TestAStatusOfAnySizeIsBounded(t *testing.T) {
	deep := any("x")
	for range 20_000 {
		deep = []any{deep}
	}
	many := make([]any, 5000)
	for i := range many {
		many[i] = map[string]any{"type": "Applied", "status": "True"}
	}
	for name, test := range map[string]struct {
		status map[string]any
		kept   bool
	}{
		"small":                   {map[string]any{"conditions": []any{}}, true},
		"a huge string":           {map[string]any{"a": strings.Repeat("x", 1<<20)}, false},
		"thousands of conditions": {map[string]any{"conditions": many}, false},
		"many keys":               {map[string]any{"resourceStatus": map[string]any{strings.Repeat("k", 70<<10): nil}}, false},
		"deep":                    {map[string]any{"a": deep, "b": strings.Repeat("x", 30<<10)}, false},
	} {
		work := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "m1", "name": "w"}, "status": test.status}}
		for range 2 { // client-go may call it twice
			if _, err := packManifestWork(&interned.Values{}, work); err != nil {
				t.Fatal(err)
			}
		}
		if is := sizeOf(work.Object["status"]); is > backends.MostReported(1) {
			t.Errorf("%s: %d bytes are kept", name, is)
		}
		r, err := readWork(work)
		if err != nil {
			t.Fatal(err)
		}
		o := r.observe(backends.Workload{})
		if kept := r.tooMuch == 0; kept != test.kept || !kept && (o.Current || o.Applied != metav1.ConditionUnknown || o.Status != nil ||
			!strings.Contains(o.Message, "have its controller write less")) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
