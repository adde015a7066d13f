package interpreter

import (
	"encoding/json"
	"math/rand"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// aggregated decodes what clusters report, as drivers do, and combines it. "" is of a cluster that has not reported.
func aggregated(tb testing.TB, kind *Kind, reports ...string) Fleet {
	tb.Helper()
	statuses := make([]map[string]any, len(reports))
	for i, raw := range reports {
		if raw == "" {
			continue
		}
		if err := utiljson.Unmarshal([]byte(raw), &statuses[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return kind.Aggregate(statuses)
}

func TestAggregate(t *testing.T) {
	const (
		complete = `{"startTime":"2026-01-01T00:00:02Z","completionTime":"2026-01-01T00:00:03Z","succeeded":2,` +
			`"conditions":[{"type":"Complete","status":"True"}]}`
		later = `{"startTime":"2026-01-01T00:00:04Z","completionTime":"2026-01-01T00:00:09Z","succeeded":5,` +
			`"conditions":[{"status":"True","type":"Complete"}]}`
		failed = `{"startTime":"2026-01-01T00:00:01Z","failed":1,"conditions":[{"status":"True","type":"Failed"}]}`
		silent = ""
	)
	type outcome struct {
		value    any
		clusters int
	}
	for name, test := range map[string]struct {
		reports  []string
		reported int
		want     map[string]outcome
	}{
		"no clusters": {nil, 0, map[string]outcome{"succeeded": {nil, 0}, "conditionComplete": {nil, 0}, "completionTime": {nil, 0}}},
		"one is silent": {[]string{complete, silent}, 1, map[string]outcome{
			"succeeded": {int64(2), 1}, "failed": {int64(0), 1}, "completionTime": {nil, 1},
			"conditionComplete": {nil, 1}, // the silent one may not be complete
			"conditionFailed":   {nil, 1}, // the silent one may have failed
		}},
		"one is silent, one has failed": {[]string{complete, failed, silent}, 2, map[string]outcome{
			"succeeded": {int64(2), 2}, "startTime": {"2026-01-01T00:00:01Z", 2},
			"conditionComplete": {"False", 2}, "conditionFailed": {"True", 2},
		}},
		"all are complete": {[]string{complete, later}, 2, map[string]outcome{
			"succeeded": {int64(7), 2}, "startTime": {"2026-01-01T00:00:02Z", 2}, "completionTime": {"2026-01-01T00:00:09Z", 2},
			"conditionComplete": {"True", 2}, "conditionFailed": {"False", 2},
		}},
		"one says that it has not failed": {[]string{complete, `{"succeeded":1,"conditions":[{"type":"Complete","status":"Unknown"},{"type":"Failed","status":"False"}]}`}, 2,
			map[string]outcome{"conditionComplete": {"False", 2}, "conditionFailed": {"False", 2}}},
		"what cannot be read is no report": {[]string{complete, `{"succeeded":"five"}`}, 1, map[string]outcome{
			"succeeded": {int64(2), 1}, "conditionComplete": {nil, 1},
		}},
		"nothing that is known is no report": {[]string{complete, `{"unheard":"of"}`}, 1, map[string]outcome{"succeeded": {int64(2), 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := aggregated(t, kindOf(t, "batch/v1", "Job"), test.reports...)
			if fleet.Clusters != len(test.reports) || fleet.Reported != test.reported {
				t.Errorf("%d of %d reported, want %d of %d", fleet.Reported, fleet.Clusters, test.reported, len(test.reports))
			}
			got := map[string]outcome{}
			for _, f := range fleet.Fields {
				if _, asked := test.want[f.Name]; asked {
					got[f.Name] = outcome{f.Value(), f.Clusters}
				}
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAggregateThatCannotBe: Karmada could never write a status with a sum that the field does not hold.
func TestAggregateThatCannotBe(t *testing.T) {
	fleet := aggregated(t, kindOf(t, "batch/v1", "Job"), `{"succeeded":2147483647,"failed":1}`, `{"succeeded":1,"failed":1}`)
	if s := fleet.Status(); s["succeeded"] != nil || s["failed"] != int64(2) {
		t.Errorf("got %v", s)
	}
}

func TestAggregateThatJustCan(t *testing.T) {
	if s := aggregated(t, kindOf(t, "batch/v1", "Job"), `{"succeeded":2147483646}`, `{"succeeded":1}`).Status(); s["succeeded"] != int64(2147483647) {
		t.Errorf("got %v", s)
	}
}

func TestAggregateEqualAndWorst(t *testing.T) {
	clones := kindOf(t, kruise1, "CloneSet")
	if s := aggregated(t, clones).Status(); s["updateRevision"] != nil {
		t.Errorf("no cluster gives %v", s)
	}
	if revision, there := aggregated(t, clones, `{"observedGeneration":1}`).Status()["updateRevision"]; there {
		t.Errorf("a cluster that does not say gives %q", revision)
	}
	a, b := `{"updateRevision":"a","observedGeneration":1}`, `{"updateRevision":"b","observedGeneration":1}`
	if s := aggregated(t, clones, a, a).Status(); s["updateRevision"] != "a" {
		t.Errorf("got %v", s)
	}
	if s := aggregated(t, clones, a, b).Status(); s["updateRevision"] != nil {
		t.Errorf("clusters that do not agree give %v", s)
	}
	var reports []string
	for _, phase := range []string{"completed", "running", "paused", "failed", "exploded"} {
		reports = append(reports, `{"phase":"`+phase+`"}`)
		if s := aggregated(t, kindOf(t, kruise1, "BroadcastJob"), reports...).Status(); s["phase"] != phase {
			t.Errorf("the worst is %v, want %s", s["phase"], phase)
		}
	}
}

// TestAggregateBooleans: they combine as conditions do, and come out as booleans.
func TestAggregateBooleans(t *testing.T) {
	d := widget()
	d.Status = []StatusField{
		{Name: "open", Path: "status.open", Type: TypeBool, Combine: Any}, {Name: "cold", Path: "status.cold", Type: TypeBool, Combine: All},
		{Name: "locked", Path: "status.locked", Type: TypeBool, Combine: Equal},
	}
	const open, cold, warm = `{"open":true,"cold":true,"locked":false}`, `{"open":false,"cold":true,"locked":true}`, `{"open":false,"cold":false,"locked":true}`
	for name, test := range map[string]struct {
		reports []string
		want    map[string]any
	}{
		"no clusters":    {nil, map[string]any{"open": nil, "cold": nil, "locked": nil}},
		"one is open":    {[]string{open, cold}, map[string]any{"open": true, "cold": true, "locked": nil}},
		"one is warm":    {[]string{cold, warm}, map[string]any{"open": false, "cold": false, "locked": true}},
		"one is silent":  {[]string{cold, ""}, map[string]any{"open": nil, "cold": nil, "locked": true}},
		"none is locked": {[]string{open, open}, map[string]any{"open": true, "cold": true, "locked": false}},
	} {
		kind := registry(t, d).For(schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind})
		got := map[string]any{}
		for _, f := range aggregated(t, kind, test.reports...).Fields {
			got[f.Name] = f.Value()
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAggregateOfLists: what is counted is how many there are, whether a cluster reports the list or its length.
func TestAggregateOfLists(t *testing.T) {
	const scheduled = `{"lastScheduleTime":"2026-01-01T00:00:00Z"`
	fleet := aggregated(t, kindOf(t, "batch/v1", "CronJob"), scheduled+`,"active":[{"name":"a"},{"name":"b"}]}`, scheduled+`,"activeJobs":3}`, scheduled+`}`)
	i := slices.IndexFunc(fleet.Fields, func(f FleetField) bool { return f.Name == "activeJobs" })
	if i < 0 || fleet.Fields[i].Value() != int64(5) || fleet.Fields[i].Clusters != 3 {
		t.Errorf("got %+v", fleet.Fields)
	}
}

// TestAggregateIsOrderless: the order of clusters never matters, nor whether whole numbers were decoded as int64 or as
// float64, and what cannot be read counts as not reported.
func TestAggregateIsOrderless(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, kind := range registry(t).Kinds() {
		for range 300 {
			statuses := make([]map[string]any, r.Intn(8))
			for i := range statuses {
				if r.Intn(8) > 0 {
					statuses[i] = randomStatus(r, kind, 1)
				}
			}
			want := kind.Aggregate(statuses)
			others := make([]map[string]any, len(statuses))
			for i, j := range r.Perm(len(statuses)) {
				others[i] = floats(t, statuses[j])
				if _, err := kind.Fields(Report{Status: statuses[j]}); err != nil {
					others[i] = nil
				}
			}
			got := kind.Aggregate(others)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Fleet{})); diff != "" {
				t.Fatalf("%s: of %v: %s", kind.GVK(), statuses, diff)
			}
			for generation := range int64(4) {
				if want.Observed(generation) != got.Observed(generation) {
					t.Fatalf("%s: of %v: generation %d is observed or not", kind.GVK(), statuses, generation)
				}
			}
		}
	}
}

// floats is a status as encoding/json decodes it, with float64 for every number.
func floats(tb testing.TB, status map[string]any) map[string]any {
	tb.Helper()
	raw, err := json.Marshal(status)
	if err != nil {
		tb.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// randomStatus makes a status of the kind's fields, flat or nested. wrong is the share of fields, in percent, that are
// null, of the wrong type, or huge.
func randomStatus(r *rand.Rand, kind *Kind, wrong int) map[string]any {
	root := map[string]any{"status": map[string]any{}}
	// Whole and consistent statuses are among them, or hardly any would be healthy.
	whole, base := r.Intn(3) == 0, int64(r.Intn(4))
	for _, f := range kind.Status {
		if r.Intn(3) == 0 && (!whole || f.Type == TypeString) {
			continue
		}
		var v any
		switch f.Type {
		case TypeCount:
			v = make([]any, r.Intn(3))
		case TypeInt:
			if v = base; !whole && r.Intn(2) == 0 {
				v = int64(r.Intn(4))
			}
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
	kind := kindOf(t, kruise1, "CloneSet")
	if aggregated(t, kind).Observed(0) {
		t.Error("without clusters nothing is observed")
	}
	const m1 = `{"observedGeneration":5,"generation":5,"resourceTemplateGeneration":3}`
	if f := aggregated(t, kind, m1); !f.Observed(3) || f.Observed(4) {
		t.Error("m1 has observed generation 3 of the template")
	}
	if aggregated(t, kind, m1, `{"observedGeneration":6,"generation":7,"resourceTemplateGeneration":3}`).Observed(3) {
		t.Error("m2 has not")
	}
	if aggregated(t, kind, m1, `{"observedGeneration":6,"generation":7,"resourceTemplateGeneration":1}`).Observed(1) {
		t.Error("m2 has not taken note of its first generation yet")
	}
	if aggregated(t, kind, m1, `{"observedGeneration":7,"generation":7,"resourceTemplateGeneration":2}`).Observed(3) {
		t.Error("m2 has an older one")
	}
	if aggregated(t, kind, m1, "").Observed(3) {
		t.Error("m2 has not reported")
	}
}

// TestTotal: what is not known is left out, and a sum that no field holds is not known.
func TestTotal(t *testing.T) {
	for name, test := range map[string]struct {
		numbers []*int32
		sum     *int32
		known   int
	}{
		"none":         {nil, nil, 0},
		"none known":   {[]*int32{nil, nil}, nil, 0},
		"some known":   {[]*int32{ptr(int32(2)), nil, ptr(int32(0)), ptr(int32(3))}, ptr(int32(5)), 3},
		"the most":     {[]*int32{ptr(int32(maxInt - 1)), ptr(int32(1))}, ptr(int32(maxInt)), 2},
		"one too many": {[]*int32{ptr(int32(maxInt)), ptr(int32(1))}, nil, 2},
	} {
		sum, known := Total(test.numbers...)
		if diff := cmp.Diff(test.sum, sum); diff != "" || known != test.known {
			t.Errorf("%s: %d known %s", name, known, diff)
		}
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
