package ocm

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
)

// TestACacheThatIsBehindIsNotBelieved (laws 3 and 8): nothing is decided on a ManifestWork from before it was written last; and one that the
// cache will never show, since it is gone or somebody took its labels off, is not awaited for ever.
func TestACacheThatIsBehindIsNotBelieved(t *testing.T) {
	key := backends.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "1"}
	work := func(version string, labels map[string]string) *unstructured.Unstructured {
		obj := unstructuredOf(manifestWorkGVK)
		obj.SetNamespace("m1")
		obj.SetName(workName(key))
		obj.SetResourceVersion(version)
		obj.SetLabels(labels)
		return obj
	}
	ours := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: "1"}
	for name, test := range map[string]struct {
		cached, hub  *unstructured.Unstructured
		early, later bool
	}{
		"created, and not shown":        {nil, work("10", ours), true, true},
		"changed, and not shown":        {work("9", ours), work("10", ours), true, true},
		"shown":                         {work("10", ours), work("10", ours), false, false},
		"gone before it was shown":      {nil, nil, true, false},
		"without the operator's label":  {nil, work("11", map[string]string{v1alpha1.LabelUID: "1"}), true, false},
		"with somebody else's UID":      {nil, work("11", map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: "2"}), true, false},
		"as it was on a restored hub":   {work("7", ours), work("7", ours), true, false},
		"restored, and not shown as is": {nil, work("7", ours), true, true},
	} {
		builder := fake.NewClientBuilder().WithScheme(runtime.NewScheme()) // the fake adds kinds to its scheme
		if test.hub != nil {
			builder = builder.WithObjects(test.hub)
		}
		clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
		d := &Driver{hub: builder.Build()}
		d.expected.Clock = clock
		d.expected.Wrote(work("10", ours))
		for _, look := range []struct {
			after time.Duration
			want  bool
		}{{0, test.early}, {expectations.Patience, test.later}} {
			clock.SetTime(clock.Now().Add(look.after))
			if behind, err := d.behind(t.Context(), "m1", key, test.cached); err != nil || behind != look.want {
				t.Errorf("%s, after %s: behind %t, %v", name, look.after, behind, err)
			}
		}
	}
}
