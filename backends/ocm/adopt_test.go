package ocm

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

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
	if got := carrying(works, object("Deployment", "web")); got != nil {
		t.Errorf("%q carries it", got.GetName())
	}
	works = append(works, work("theirs", "", object("Service", "web"), object("Deployment", "web")))
	if got := carrying(works, object("Deployment", "web")); got == nil || got.GetName() != "theirs" {
		t.Errorf("%v carries it", got)
	}
}

// A ManifestWork that a set has made is changed through the set.
func TestCarriedBySaysWhatToDo(t *testing.T) {
	for labels, want := range map[string]string{
		"":         "kubectl delete manifestwork theirs -n m1",
		"shop.all": "kubectl delete manifestworkreplicaset all -n shop",
	} {
		other := &unstructured.Unstructured{Object: map[string]any{}}
		other.SetNamespace("m1")
		other.SetName("theirs")
		other.SetLabels(map[string]string{"work.open-cluster-management.io/manifestworkreplicaset": labels})
		if err := carriedBy(other, map[string]any{"kind": "DaemonSet"}); !strings.Contains(err.Error(), want) {
			t.Errorf("label %q: %v does not say %q", labels, err, want)
		}
	}
}

func TestBegins(t *testing.T) {
	live := &unstructured.Unstructured{}
	reads, delivers := state{strategy: workv1.UpdateStrategyTypeReadOnly}, state{strategy: workv1.UpdateStrategyTypeServerSideApply}
	for name, test := range map[string]struct {
		m    move
		live *unstructured.Unstructured
		s    state
		want bool
	}{
		"the first":                  {deliver, nil, state{}, true},
		"the first, which only asks": {move{write: writeWork, strategy: workv1.UpdateStrategyTypeReadOnly}, nil, state{}, false},
		"after it was only read":     {deliver, live, reads, true},
		"goes on":                    {deliver, live, delivers, false},
		"nothing":                    {move{strategy: workv1.UpdateStrategyTypeServerSideApply}, nil, state{}, false},
	} {
		if got := test.m.begins(test.live, test.s); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
