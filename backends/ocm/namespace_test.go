package ocm

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestANamespaceIsFreedOnce at the end of a hand-over: the mark is taken, then dropped, and then nothing is written any more, whoever
// has workloads in it.
func TestANamespaceIsFreedOnce(t *testing.T) {
	rendered := renderNamespaceWork("m1", backends.Workload{Namespace: "shop", NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}})
	label := func(work *unstructured.Unstructured) (value string, is bool) {
		value, is, _ = unstructured.NestedString(firstManifest(work), "metadata", "labels", managedByKarmada)
		return value, is
	}
	for _, live := range []*unstructured.Unstructured{nil, rendered} {
		if got := unmanagedNamespace(rendered, live, true, false); got != rendered || strategyOf(got) != workv1.UpdateStrategyTypeCreateOnly {
			t.Errorf("no hand-over ends, and it is %v", got)
		}
	}
	taken := unmanagedNamespace(rendered, rendered, true, true)
	if value, is := label(taken); !is || value != "" || strategyOf(taken) != workv1.UpdateStrategyTypeServerSideApply {
		t.Fatalf("the mark is not taken: %v", taken)
	}
	if labels, _, _ := unstructured.NestedStringMap(firstManifest(taken), "metadata", "labels"); len(labels) != 1 {
		t.Errorf("the agent is to write the labels %v, which are the member's by now", labels)
	}
	if _, is := label(rendered); is || taken.GetAnnotations()[annotationHash] == rendered.GetAnnotations()[annotationHash] {
		t.Error("what was rendered has changed, or has the same hash")
	}
	for _, ends := range []bool{true, false} {
		if same := unmanagedNamespace(rendered, taken, false, ends); !equalSpecs(taken, same) {
			t.Errorf("not applied yet, and it is %v", same)
		}
		dropped := unmanagedNamespace(rendered, taken, true, ends)
		if _, is := label(dropped); is || dropped.GetAnnotations()[annotationUnmanaged] != markDropped ||
			strategyOf(dropped) != workv1.UpdateStrategyTypeServerSideApply {
			t.Errorf("the mark is not dropped: %v", dropped)
		}
		if same := unmanagedNamespace(rendered, dropped, true, ends); !equalSpecs(dropped, same) {
			t.Errorf("it goes on: %v", same)
		}
	}
	if again := unmanagedNamespace(rendered, nil, true, true); again.GetAnnotations()[annotationUnmanaged] != markTaken {
		t.Errorf("made anew by a hand-over that ends, it is %v", again)
	}
}

func equalSpecs(a, b *unstructured.Unstructured) bool {
	return a.GetAnnotations()[annotationHash] == b.GetAnnotations()[annotationHash] &&
		a.GetAnnotations()[annotationUnmanaged] == b.GetAnnotations()[annotationUnmanaged]
}
