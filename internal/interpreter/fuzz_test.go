package interpreter

import (
	"bytes"
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
			if _, err := Dependencies(kind, u); err != nil {
				continue
			}
			_, _, _ = PartitionOf(kind, u)
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
		evidence(*s.Available >= wanted, "pods are not available")
	}
}

// gadget is a kind of the configuration with every sort of rule.
func gadget(tb testing.TB) *Kind {
	tb.Helper()
	gvk := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}
	return registry(tb, widget()).For(gvk)
}

// FuzzScan: the scanner of raw JSON agrees with the decoder on what a status says, and on what is no status.
func FuzzScan(f *testing.F) {
	r := rand.New(rand.NewSource(3))
	kinds := registry(f).Kinds()
	for i, kind := range kinds {
		for range 20 {
			raw, err := json.Marshal(randomStatus(r, kind, 10))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw, uint(i))
		}
	}
	for _, text := range []string{
		`{}`, `[]`, `null`, ``, `{`, `{"a":}`, `{"replicas":1.0}`, `{"replicas":1e0}`, `{"replicas":01}`, `{"replicas":-0}`, `{"replicas":3,}`,
		`{"conditions":null}`, `{"conditions":[{"status":"True","type":"Complete"},{"type":"Complete","status":"False"}]}`,
		`{"\u0072eplicas":4}`, `{"phase":"\ud800"}`, `{"phase":"a\"b\\"}`, "{\"phase\":\"\xff\"}", "{\"phase\":\"a\nb\"}", `{"replicas":1}x`,
		`{"x":[1,2,{"y":[]},"z",true,false,null,-1.5e-3]}`, `{"updateStatus":{"updatedRevision":"r"}}`, `{"updateStatus":[]}`,
		`{"replicas":123456789012345678901234567890}`, `{"replicas":2147483647}`, `{"replicas":2147483648}`,
	} {
		f.Add([]byte(text), uint(0))
		f.Add([]byte(text), uint(7))
	}
	f.Fuzz(func(t *testing.T, raw []byte, n uint) {
		kind := kinds[n%uint(len(kinds))]
		scanned, read := make([]value, len(kind.Status)), make([]value, len(kind.Status))
		errScan := kind.scan.scan(raw, scanned, nil)
		var status map[string]any
		errRead := json.Unmarshal(raw, &status)
		if duplicates(raw) {
			return // API servers never write a key twice
		}
		if errRead == nil && status != nil {
			errRead = kind.readStatus(status, read)
		}
		if status == nil {
			if errScan == nil {
				t.Fatalf("%s: %q was read", kind.GVK(), raw)
			}
			return
		}
		if (errScan == nil) != (errRead == nil) {
			t.Fatalf("%s: %q: scanned %v, decoded %v", kind.GVK(), raw, errScan, errRead)
		}
		if errScan == nil && !reflect.DeepEqual(scanned, read) {
			t.Fatalf("%s: %q: scanned %v, decoded %v", kind.GVK(), raw, scanned, read)
		}
	})
}

// duplicates tells whether some object has a key twice: then marshalling what was decoded gives fewer keys.
func duplicates(raw []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	return hasDuplicates(decoder)
}

func hasDuplicates(d *json.Decoder) bool {
	type frame struct {
		keys   map[string]bool
		isKey  bool
		object bool
	}
	var stack []frame
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		top := len(stack) - 1
		if top >= 0 && stack[top].object {
			if key, ok := token.(string); ok && stack[top].isKey {
				if stack[top].keys[key] {
					return true
				}
				stack[top].keys[key] = true
				stack[top].isKey = false
				continue
			}
			stack[top].isKey = true
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, frame{keys: map[string]bool{}, isKey: true, object: true})
		case json.Delim('['):
			stack = append(stack, frame{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}

// TestRandomStatuses: on statuses of every kind, with absent, null, wrong and huge fields, health never lies, and raw
// JSON, nested and flat say the same.
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
			raw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			errScan := kind.scan.scan(raw, make([]value, len(kind.Status)), nil)
			if (errScan == nil) != (errRead == nil) {
				t.Fatalf("%s: %s: scanned %v, read %v", kind.GVK(), raw, errScan, errRead)
			}
			if errRead == nil {
				if again, _ := kind.State(flat(kind, report)); again.Message != state.Message {
					t.Fatalf("%s: %s: nested %+v, flat %+v", kind.GVK(), raw, state, again)
				}
			}
		}
		if count["Healthy"] == 0 || count["Progressing"]+count["Degraded"] == 0 || count["Unknown"] == 0 {
			t.Errorf("%s: the statuses are not varied: %v", kind.GVK(), count)
		}
	}
}
