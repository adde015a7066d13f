package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var (
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	cloneSetKind   = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
)

func manifest(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
}

func status(replicas, ready, updated, available int64) map[string]any {
	return map[string]any{
		"replicas": replicas, "readyReplicas": ready, "updatedReplicas": updated, "availableReplicas": available,
	}
}

func TestState(t *testing.T) {
	tests := map[string]struct {
		kind    schema.GroupVersionKind
		spec    map[string]any
		status  map[string]any
		health  v1alpha1.Health
		message string
	}{
		"all replicas updated and available": {
			deploymentKind, map[string]any{"replicas": int64(3)}, status(3, 3, 3, 3), v1alpha1.HealthHealthy, "",
		},
		"counters left out are zero, as the API server omits them": {
			deploymentKind, map[string]any{"replicas": int64(3)}, map[string]any{"observedGeneration": int64(1)},
			v1alpha1.HealthProgressing, "0 of 3 updated",
		},
		"zero replicas wanted and none there": {
			deploymentKind, map[string]any{"replicas": int64(0)}, map[string]any{}, v1alpha1.HealthHealthy, "",
		},
		"replicas left out means one": {
			deploymentKind, map[string]any{}, status(1, 1, 1, 1), v1alpha1.HealthHealthy, "",
		},
		"old pods still there": {
			deploymentKind, map[string]any{"replicas": int64(2)}, status(3, 3, 2, 3), v1alpha1.HealthProgressing, "1 more than 2 wanted",
		},
		"updated but not available": {
			deploymentKind, map[string]any{"replicas": int64(2)}, status(2, 1, 2, 1), v1alpha1.HealthProgressing, "1 of 2 available",
		},
		"paused in the middle": {
			deploymentKind, map[string]any{"replicas": int64(2), "paused": true}, status(2, 2, 1, 2), v1alpha1.HealthSuspended, "paused with 1 of 2 updated",
		},
		"paused with nothing to update is healthy": {
			deploymentKind, map[string]any{"replicas": int64(2), "paused": true}, status(2, 2, 2, 2), v1alpha1.HealthHealthy, "",
		},
		"a CloneSet held at its partition has done what was asked": {
			cloneSetKind, map[string]any{"replicas": int64(10), "updateStrategy": map[string]any{"partition": "50%"}}, status(10, 10, 5, 10),
			v1alpha1.HealthHealthy, "update held at its partition: 5 of 10 updated as asked",
		},
		"a CloneSet with more updated than its partition asks is done too": {
			cloneSetKind, map[string]any{"replicas": int64(10), "updateStrategy": map[string]any{"partition": int64(8)}}, status(10, 10, 5, 10),
			v1alpha1.HealthHealthy, "update held at its partition: 5 of 10 updated as asked",
		},
		"a CloneSet short of its partition is on the way": {
			cloneSetKind, map[string]any{"replicas": int64(10), "updateStrategy": map[string]any{"partition": int64(4)}}, status(10, 10, 5, 10),
			v1alpha1.HealthProgressing, "5 of 6 updated",
		},
		"a paused CloneSet waits for a person": {
			cloneSetKind, map[string]any{"replicas": int64(4), "updateStrategy": map[string]any{"paused": true}}, status(4, 4, 1, 4),
			v1alpha1.HealthSuspended, "paused with 1 of 4 updated",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind, ok := For(test.kind)
			if !ok {
				t.Fatalf("%s is not known", test.kind)
			}
			got, err := kind.State(Report{Manifest: manifest(test.spec), Status: test.status})
			if err != nil {
				t.Fatal(err)
			}
			if got.Health != test.health || got.Message != test.message {
				t.Errorf("got %s %q, want %s %q", got.Health, got.Message, test.health, test.message)
			}
		})
	}
}

func TestStateRefusesWhatItCannotRead(t *testing.T) {
	for name, report := range map[string]Report{
		"a counter of the wrong type": {Manifest: manifest(map[string]any{}), Status: map[string]any{"replicas": "three"}},
		"a spec of the wrong type":    {Manifest: manifest(map[string]any{"replicas": "three"}), Status: map[string]any{}},
		"a partition that is no number": {
			Manifest: manifest(map[string]any{"updateStrategy": map[string]any{"partition": "half"}}), Status: map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if state, err := (cloneSet{}).State(report); err == nil {
				t.Errorf("got %+v, want an error", state)
			}
		})
	}
}

func TestKeptOldRoundsAsOpenKruise(t *testing.T) {
	// From CalculatePartitionReplicas of OpenKruise v1.8.3 (pkg/util/tools.go).
	for _, test := range []struct {
		partition string
		replicas  int32
		want      int32
	}{
		{"0%", 10, 0}, {"50%", 3, 2}, {"99%", 10, 9}, {"100%", 10, 10}, {"1%", 1, 1}, {"30%", 0, 0}, {"34%", 3, 2},
	} {
		kind := manifest(map[string]any{"replicas": int64(test.replicas), "updateStrategy": map[string]any{"partition": test.partition}})
		state, err := (cloneSet{}).State(Report{Manifest: kind, Status: status(int64(test.replicas), int64(test.replicas), int64(test.replicas-test.want), int64(test.replicas))})
		if err != nil {
			t.Fatal(err)
		}
		if state.Health != v1alpha1.HealthHealthy {
			t.Errorf("partition %s of %d: %d updated should be enough, got %q", test.partition, test.replicas, test.replicas-test.want, state.Message)
		}
	}
}

func TestReplicas(t *testing.T) {
	kind, _ := For(deploymentKind)
	for name, test := range map[string]struct {
		value any
		want  int32
		given bool
		fails bool
	}{
		"absent":       {nil, 0, false, false},
		"zero":         {int64(0), 0, true, false},
		"some":         {int64(7), 7, true, false},
		"negative":     {int64(-1), 0, false, true},
		"a string":     {"7", 0, false, true},
		"a fraction":   {1.5, 0, false, true},
		"out of range": {int64(5_000_000_000), 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest(map[string]any{})
			if test.value != nil {
				m = manifest(map[string]any{"replicas": test.value})
			}
			got, given, err := Replicas(kind, m)
			if got != test.want || given != test.given || (err != nil) != test.fails {
				t.Errorf("got %d, %t, %v", got, given, err)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	kind, _ := For(cloneSetKind)
	m := manifest(map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web", "tier": "a"}}})
	if diff := cmp.Diff("app=web,tier=a", Selector(kind, m)); diff != "" {
		t.Error(diff)
	}
	if got := Selector(kind, manifest(map[string]any{})); got != "" {
		t.Errorf("no selector gave %q", got)
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"spec":{"replicas":3},"status":{"replicas":3}}`))
	f.Add([]byte(`{"spec":{"updateStrategy":{"partition":"NaN%"}},"status":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(append([]byte(`{"apiVersion":"v1","kind":"X","o":`), append(raw, '}')...)); err != nil {
			return
		}
		o, _ := obj.Object["o"].(map[string]any)
		spec, _ := o["spec"].(map[string]any)
		reported, _ := o["status"].(map[string]any)
		for _, gvk := range []schema.GroupVersionKind{deploymentKind, cloneSetKind} {
			kind, _ := For(gvk)
			state, err := kind.State(Report{Manifest: manifest(spec), Status: reported})
			if err == nil && state.Health == v1alpha1.HealthHealthy && state.Available < state.Replicas && state.Available < 0 {
				t.Errorf("healthy without evidence: %+v", state)
			}
		}
	})
}
