package karmada

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestAStatusOfAnySizeIsBounded (laws 4 and 11): what a member's controllers write costs no more than a bound, neither in the cache nor when it is
// read, and is not known rather than wrong. One that only claims to be too large is read.
func TestAStatusOfAnySizeIsBounded(t *testing.T) {
	most := backends.MostReported(1)
	for name, test := range map[string]struct {
		raw      string
		clusters int
		read     bool
		says     string
	}{
		"small":                               {`{"replicas":1}`, 1, true, ""},
		"as large as may be":                  {`{"a":"` + strings.Repeat("x", most-8) + `"}`, 1, true, ""},
		"larger":                              {`{"a":"` + strings.Repeat("x", most) + `"}`, 1, false, ""},
		"a huge string":                       {`{"replicas":1,"a":"` + strings.Repeat("x", 1<<20) + `"}`, 1, false, ""},
		"thousands of conditions":             {`{"conditions":[{}` + strings.Repeat(`,{"type":"Ready","status":"True"}`, 5000) + `]}`, 1, false, ""},
		"deep":                                {`{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 1, false, "is not to be read"},
		"small, of many":                      {`{"replicas":1}`, 1000, true, ""},
		"large, of many":                      {`{"a":"` + strings.Repeat("x", 20<<10) + `"}`, 1000, false, ""},
		"one that claims to be large":         {sizeField + `5}`, 1, true, ""},
		"one that claims so with other words": {sizeField + `9999999999,"replicas":1}`, 1, true, ""},
	} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: executionPrefix + "m1"}}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(test.raw)}}}
		boundReport(w)
		if kept := len(w.Status.ManifestStatuses[0].Status.Raw); kept > most {
			t.Errorf("%s: %d bytes are kept", name, kept)
		}
		live := currentState{works: []work{newWork(w)}}
		for i := range test.clusters - 1 {
			live.works = append(live.works, newWork(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(executionPrefix, "x", i)}}))
		}
		got := reader{query: testQuery(), live: live}.read(live.works[0])
		if read := len(got.Status) > 0; read != test.read || !read && (got.Current || !strings.Contains(got.Message, cmp.Or(test.says, "have its controller write less"))) {
			t.Errorf("%s: status %.50v, current %t, %q", name, got.Status, got.Current, got.Message)
		}
	}
}
