package interpreter

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzState: no object, however malformed, makes an interpreter panic, or report Healthy without evidence. Run it with
// go test -fuzz FuzzState ./internal/interpreter.
func FuzzState(f *testing.F) {
	for _, test := range states {
		raw, err := json.Marshal(test.object(f).Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, int32(-1))
		f.Add(raw, int32(3))
	}
	f.Add([]byte(`{"spec":{"topology":{"subsets":[{"name":"a","replicas":"200%"},null,5]},"updateStrategy":{"manualUpdate":{"partitions":{"a":-1}}}},"status":{"conditions":[null]}}`), int32(0))
	f.Add([]byte(`{"spec":null,"metadata":[],"status":{"observedGeneration":1e400}}`), int32(0))
	kinds := append(registry(f).Kinds(),
		registry(f).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Gadget"}),
		registry(f).For(schema.GroupVersionKind{Group: kruiseGroup, Version: "v9", Kind: "CloneSet"}),
		gadget(f))
	f.Fuzz(func(t *testing.T, raw []byte, desired int32) {
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil || object == nil {
			return
		}
		u := &unstructured.Unstructured{Object: object}
		for _, kind := range kinds {
			report := ReportOf(u)
			if desired >= 0 {
				report.Desired = &desired
			}
			check(t, kind, report)
			check(t, kind, Report{Status: report.Status})
			_, _ = Dependencies(kind, u)
		}
	})
}

// check holds a State against what evidence there is.
func check(t *testing.T, kind *Kind, report Report) {
	t.Helper()
	before, _ := json.Marshal(report)
	s, err := kind.State(report)
	again, _ := kind.State(report)
	if !reflect.DeepEqual(s, again) {
		t.Fatalf("%s: %+v, then %+v", kind.GVK(), s, again)
	}
	if after, _ := json.Marshal(report); string(after) != string(before) {
		t.Fatalf("%s: the report was changed from %s to %s", kind.GVK(), before, after)
	}
	if s.Health == "" || (err != nil && s.Health != unknown) {
		t.Fatalf("%s: %+v, %v", kind.GVK(), s, err)
	}
	if s.Health != healthy {
		return
	}
	evidence := func(ok bool, what string) {
		if !ok {
			t.Fatalf("%s: healthy, but %s: %+v of %v", kind.GVK(), what, s, report.Status)
		}
	}
	evidence(len(report.Status) > 0, "nothing was reported")
	if kind.observes {
		observed, err := whole(report.Status[fieldObservedGeneration], 0, maxLong)
		evidence(err == nil, "no generation was observed")
		if g, err := whole(report.Status[fieldGeneration], 0, maxLong); err == nil {
			evidence(observed >= g, "an older generation was observed")
		}
	}
	if kind.Counts.Available != "" && kind.described == nil && s.Desired != nil {
		wanted := *s.Desired
		if kind.Definition.Kind == "DaemonSet" {
			wanted = *s.Replicas // created progressively
		}
		evidence(s.Available != nil && *s.Available >= wanted, "pods are not available")
		evidence(s.Ready != nil && *s.Ready >= *s.Available && *s.Replicas >= *s.Ready, "its numbers contradict each other")
	}
}

// gadget is a kind of the configuration with every sort of rule.
func gadget(tb testing.TB) *Kind {
	tb.Helper()
	gvk := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}
	return registry(tb, widget()).For(gvk)
}

// TestRandomStatuses: on statuses of every kind, with absent, null, wrong and huge fields, health never lies, and
// whatever decoded the numbers, nested and flat say the same.
func TestRandomStatuses(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for _, kind := range registry(t).Kinds() {
		count := map[string]int{}
		for range 2000 {
			status := randomStatus(r, kind, 3)
			manifest := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"replicas": int64(r.Intn(4)), "paused": r.Intn(5) == 0, "suspend": r.Intn(5) == 0,
			}}}
			report := Report{Manifest: manifest, Status: status}
			check(t, kind, report)
			state, errRead := kind.State(report)
			count[string(state.Health)]++
			decoded, errDecoded := kind.State(Report{Manifest: manifest, Status: floats(t, status)})
			if (errDecoded == nil) != (errRead == nil) {
				t.Fatalf("%s: %v: with float64 %v, with int64 %v", kind.GVK(), status, errDecoded, errRead)
			}
			if errRead == nil {
				if !reflect.DeepEqual(decoded, state) {
					t.Fatalf("%s: %v: with float64 %+v, with int64 %+v", kind.GVK(), status, decoded, state)
				}
				if again, _ := kind.State(flat(kind, report)); again.Message != state.Message {
					t.Fatalf("%s: %v: nested %+v, flat %+v", kind.GVK(), status, state, again)
				}
			}
		}
		if count["Healthy"] == 0 || count["Progressing"]+count["Degraded"] == 0 || count["Unknown"] == 0 {
			t.Errorf("%s: the statuses are not varied: %v", kind.GVK(), count)
		}
	}
}
