package interpreter

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cloneStatus is the status of a CloneSet as Karmada's own interpreter reflects it.
func cloneStatus(n int) []byte {
	return fmt.Appendf(nil, `{"availableReplicas":%d,"currentRevision":"sample-59df6bd888","expectedUpdatedReplicas":%d,"generation":3,`+
		`"labelSelector":"app=sample,test=cloneset","observedGeneration":3,"readyReplicas":%d,"replicas":%d,"resourceTemplateGeneration":3,`+
		`"updateRevision":"sample-59df6bd888","updatedReadyReplicas":%d,"updatedReplicas":%d}`, n, n, n, n, n, n)
}

func put(tb testing.TB, fold *Fold, cluster, raw string) {
	tb.Helper()
	if err := fold.PutRaw(cluster, []byte(raw)); err != nil {
		tb.Fatal(err)
	}
}

func TestFold(t *testing.T) {
	fold := NewFold(kindOf(t, "batch/v1", "Job"))
	field := func(name string) FleetField {
		t.Helper()
		for _, f := range fold.Fleet().Fields {
			if f.Name == name {
				return f
			}
		}
		t.Fatalf("no field %s", name)
		return FleetField{}
	}
	expect := func(name string, want any, clusters int) {
		t.Helper()
		if f := field(name); f.Value() != want || f.Clusters != clusters {
			t.Errorf("%s is %v of %d clusters, want %v of %d", name, f.Value(), f.Clusters, want, clusters)
		}
	}
	expect("succeeded", nil, 0)
	expect("conditionComplete", nil, 0)
	fold.Miss("m3")
	put(t, fold, "m1", `{"startTime":"2026-01-01T00:00:02Z","completionTime":"2026-01-01T00:00:03Z","succeeded":2,"conditions":[{"type":"Complete","status":"True"}]}`)
	expect("succeeded", int64(2), 1)
	expect("failed", int64(0), 1)
	expect("conditionComplete", nil, 1) // m3 may not be complete
	expect("conditionFailed", nil, 1)   // m3 may have failed
	expect("completionTime", nil, 1)
	put(t, fold, "m2", `{"startTime":"2026-01-01T00:00:01Z","failed":1,"conditions":[{"status":"True","type":"Failed"}]}`)
	expect("succeeded", int64(2), 2)
	expect("conditionComplete", "False", 2)
	expect("conditionFailed", "True", 2)
	expect("startTime", "2026-01-01T00:00:01Z", 2)
	put(t, fold, "m2", `{"startTime":"2026-01-01T00:00:04Z","succeeded":5,"completionTime":"2026-01-01T00:00:09Z","conditions":[{"status":"True","type":"Complete"}]}`)
	fold.Remove("m3")
	expect("succeeded", int64(7), 2)
	expect("conditionComplete", "True", 2)
	expect("conditionFailed", "False", 2)
	expect("startTime", "2026-01-01T00:00:02Z", 2)
	expect("completionTime", "2026-01-01T00:00:09Z", 2)
	if err := fold.PutRaw("m2", []byte(`{"succeeded":"five"}`)); err == nil {
		t.Error("a number of the wrong type is an error")
	}
	expect("succeeded", int64(2), 1)
	if f := fold.Fleet(); f.Clusters != 2 || f.Reported != 1 {
		t.Errorf("%d of %d reported, want 1 of 2", f.Reported, f.Clusters)
	}
	put(t, fold, "m2", `{"unheard":"of"}`)
	if f := fold.Fleet(); f.Reported != 1 {
		t.Error("a status without any field that is known is no report")
	}
}

func TestFoldEqualAndWorst(t *testing.T) {
	clones := NewFold(kindOf(t, kruise1, "CloneSet"))
	put(t, clones, "m1", `{"updateRevision":"a","observedGeneration":1}`)
	put(t, clones, "m2", `{"updateRevision":"a","observedGeneration":1}`)
	if s := clones.Fleet().Status(); s["updateRevision"] != "a" {
		t.Errorf("got %v", s)
	}
	put(t, clones, "m2", `{"updateRevision":"b","observedGeneration":1}`)
	if s := clones.Fleet().Status(); s["updateRevision"] != nil {
		t.Errorf("clusters that do not agree give %v", s)
	}
	jobs := NewFold(kindOf(t, kruise1, "BroadcastJob"))
	for i, phase := range []string{"completed", "running", "paused", "failed", "exploded"} {
		put(t, jobs, fmt.Sprint("m", i), `{"phase":"`+phase+`"}`)
		if s := jobs.Fleet().Status(); s["phase"] != phase {
			t.Errorf("the worst is %v, want %s", s["phase"], phase)
		}
	}
}

// TestFoldIsOrderless: whatever the order of reports, and whatever was reported before, the outcome is that of a fold
// over the last reports.
func TestFoldIsOrderless(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, kind := range registry(t).Kinds() {
		fold := NewFold(kind)
		last := map[string]map[string]any{}
		for range 300 {
			cluster := fmt.Sprint("m", r.Intn(8))
			switch r.Intn(10) {
			case 0:
				fold.Remove(cluster)
				delete(last, cluster)
			case 1:
				fold.Miss(cluster)
				last[cluster] = nil
			default:
				last[cluster] = randomStatus(r, kind, 0)
				if err := fold.Put(cluster, last[cluster]); err != nil {
					t.Fatal(err)
				}
			}
		}
		fresh := NewFold(kind)
		for cluster, status := range last {
			raw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			if err := fresh.PutRaw(cluster, raw); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(fresh.Fleet(), fold.Fleet()); diff != "" {
			t.Errorf("%s: %s", kind.GVK(), diff)
		}
		for generation := range int64(4) {
			if fresh.Observed(generation) != fold.Observed(generation) {
				t.Errorf("%s: observed differs", kind.GVK())
			}
		}
	}
}

// randomStatus makes a status of the kind's fields, flat or nested. wrong is the share of fields, in percent, that are
// null, of the wrong type, or huge.
func randomStatus(r *rand.Rand, kind *Kind, wrong int) map[string]any {
	root := map[string]any{"status": map[string]any{}}
	for _, f := range kind.Status {
		if r.Intn(3) == 0 {
			continue
		}
		var v any
		switch f.Type {
		case TypeInt:
			v = int64(r.Intn(4))
		case TypeLong:
			v = int64(r.Intn(3))
		case TypeBool:
			v = r.Intn(2) == 0
		default:
			v = []string{"True", "False", "", "a", "Running", "Succeeded", "Failed", "completed", "2026-01-01T00:00:00Z"}[r.Intn(9)]
		}
		if r.Intn(100) < wrong {
			v = []any{nil, "x", int64(-1), int64(1) << 60, 1.5, true, []any{}, map[string]any{"a": "b"}, "9", 1e300}[r.Intn(10)]
		}
		if f.Name == fieldGeneration || (f.Name != f.At && r.Intn(2) == 0) {
			root["status"].(map[string]any)[f.Name] = v
			continue
		}
		f.Path.put(root, v)
	}
	status := root["status"].(map[string]any)
	if r.Intn(100) < wrong {
		status["conditions"] = []any{"x", nil, map[string]any{"type": 5}, map[string]any{"status": "True"}}
	}
	return status
}

func TestObserved(t *testing.T) {
	fold := NewFold(kindOf(t, kruise1, "CloneSet"))
	if fold.Observed(0) {
		t.Error("without clusters nothing is observed")
	}
	put(t, fold, "m1", `{"observedGeneration":5,"generation":5,"resourceTemplateGeneration":3}`)
	if !fold.Observed(3) || fold.Observed(4) {
		t.Error("m1 has observed generation 3 of the template")
	}
	put(t, fold, "m2", `{"observedGeneration":6,"generation":7,"resourceTemplateGeneration":3}`)
	if fold.Observed(3) {
		t.Error("m2 has not")
	}
	fold.Miss("m2")
	if fold.Observed(3) {
		t.Error("m2 has not reported")
	}
}

func TestWorstHealth(t *testing.T) {
	if got := WorstHealth(); got != unknown {
		t.Errorf("no clusters are %s", got)
	}
	if got := WorstHealth(healthy, suspended, healthy); got != suspended {
		t.Errorf("got %s", got)
	}
	if got := WorstHealth(healthy, unknown, progressing); got != unknown {
		t.Errorf("got %s", got)
	}
	if got := WorstHealth(healthy, degraded, unknown); got != degraded {
		t.Errorf("got %s", got)
	}
}

func BenchmarkFold(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		raw := make([][]byte, n)
		names := make([]string, n)
		maps := make([]map[string]any, n)
		for i := range raw {
			raw[i], names[i] = cloneStatus(i%7), fmt.Sprintf("member-%d", i)
			if err := json.Unmarshal(raw[i], &maps[i]); err != nil {
				b.Fatal(err)
			}
		}
		kind := kindOf(b, kruise1, "CloneSet")
		b.Run(fmt.Sprintf("raw/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			defer cpu(b)()
			for b.Loop() {
				fold := NewFold(kind)
				for i := range raw {
					if err := fold.PutRaw(names[i], raw[i]); err != nil {
						b.Fatal(err)
					}
				}
				if fold.Fleet().Reported != n {
					b.Fatal("not all were read")
				}
			}
		})
		b.Run(fmt.Sprintf("flat/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			defer cpu(b)()
			for b.Loop() {
				fold := NewFold(kind)
				for i := range maps {
					if err := fold.Put(names[i], maps[i]); err != nil {
						b.Fatal(err)
					}
				}
				_ = fold.Fleet()
			}
		})
		b.Run(fmt.Sprintf("incremental/%d", n), func(b *testing.B) {
			fold := NewFold(kind)
			for i := range raw {
				put(b, fold, names[i], string(raw[i]))
			}
			b.ReportAllocs()
			defer cpu(b)()
			i := 0
			for b.Loop() {
				i++
				if err := fold.PutRaw(names[i%n], raw[(i+i/n)%n]); err != nil {
					b.Fatal(err)
				}
				_ = fold.Fleet()
			}
		})
	}
}

// cpu reports processor time beside wall time: on a busy machine it is the one to go by.
func cpu(b *testing.B) func() {
	b.Helper()
	now := func() int64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	start := now()
	return func() { b.ReportMetric(float64(now()-start)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkState(b *testing.B) {
	kind := kindOf(b, kruise1, "CloneSet")
	report := ReportOf(states["clone: held"].object(b))
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		if s, err := kind.State(report); err != nil || s.Reason != ReasonPartitionReached {
			b.Fatal(s, err)
		}
	}
}
