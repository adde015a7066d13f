package karmada

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestEventsAreForAllWhoLook: a FleetWorkload that is refused, since the workload is another one's, takes nobody's events away.
func TestEventsAreForAllWhoLook(t *testing.T) {
	var w watches
	var told []string
	w.notify = func(n types.NamespacedName) { told = append(told, n.Name) }
	expect := func(want ...string) {
		t.Helper()
		told = nil
		w.tell(bindingOf(testQuery().Workload))
		if slices.Sort(told); !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	}
	rightful, other := testQuery(), testQuery()
	other.Key = backends.Key{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: "a-copy"}, UID: "other"}
	w.remember(rightful)
	w.remember(other)
	expect("a-copy", rightful.Key.Name)
	w.forget(other)
	expect(rightful.Key.Name)
	w.forget(rightful)
	if len(w.owners) != 0 {
		t.Errorf("remembered: %v", w.owners)
	}
}
