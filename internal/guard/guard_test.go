package guard

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// replicas reads "m1:2 m2:3".
func replicas(t *testing.T, text string) map[string]int32 {
	t.Helper()
	out := map[string]int32{}
	for _, field := range strings.Fields(text) {
		name, number, _ := strings.Cut(field, ":")
		var n int32
		if _, err := fmt.Sscan(number, &n); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		out[name] = n
	}
	return out
}

// step is one pass, and what is expected of it.
type step struct {
	// asked are the clusters that are asked for, how they divide, and the number, as in "all duplicated 2".
	asked string
	// next is what the placement makes of that; chosen are the clusters of it that get nothing.
	next, chosen string
	failedOver   string
	// runs is what clusters say afterwards that they run; empty when that is what they are to.
	runs    string
	confirm bool
	// held is what would be lost; empty when nothing is held.
	held string
}

func TestCheck(t *testing.T) {
	const dup, div = "all duplicated ", "all divided "
	tests := map[string][]step{
		"what the spec narrows goes": {
			{asked: dup + "2", next: "m1:2 m2:2 m3:2"},
			{asked: "one duplicated 2", next: "m1:2"},
		},
		"a scale-up excuses no cluster": {
			{asked: dup + "2", next: "m1:2 m2:2 m3:2"},
			{asked: dup + "2", next: "m1:2", held: "m2 (2 to 0), m3 (2 to 0) 4/6"},
			{asked: dup + "3", next: "m1:3", held: "m2 (2 to 0), m3 (2 to 0) 4/6"},
		},
		"a scale-down excuses no cluster": {
			{asked: dup + "4", next: "m1:4 m2:4 m3:4"},
			{asked: dup + "2", next: "m1:2", held: "m2 (2 to 0), m3 (2 to 0) 4/6"},
			{asked: dup + "2", next: "m1:2 m2:2 m3:2"},
		},
		"other weights excuse no cluster": {
			{asked: div + "6", next: "m1:2 m2:2 m3:2"},
			{asked: "all uneven 6", next: "m1:6", held: "m2 (2 to 0), m3 (2 to 0) 4/6"},
			{asked: "all uneven 6", next: "m1:4 m2:1 m3:1"},
			{asked: "all uneven 6", next: "m1:6"},
		},
		"clusters that go one by one": {
			{asked: dup + "1", next: "a:1 b:1 c:1 d:1 e:1 f:1"},
			{asked: dup + "1", next: "b:1 c:1 d:1 e:1 f:1"},
			{asked: dup + "1", next: "c:1 d:1 e:1 f:1"},
			{asked: dup + "1", next: "d:1 e:1 f:1"},
			{asked: dup + "1", next: "e:1 f:1", held: "a (1 to 0), b (1 to 0), c (1 to 0), d (1 to 0) 4/6"},
			{asked: dup + "1", next: "a:1 e:1 f:1", held: "b (1 to 0), c (1 to 0), d (1 to 0) 4/6"}, // a runs nothing yet
			{asked: dup + "1", next: "a:1 d:1 e:1 f:1"},
			{asked: dup + "1", next: "a:1 e:1 f:1"},
		},
		"one by one, and scaled between": {
			{asked: dup + "2", next: "a:2 b:2 c:2 d:2"},
			{asked: dup + "2", next: "b:2 c:2 d:2"},
			{asked: dup + "4", next: "b:4 c:4 d:4"},
			{asked: dup + "4", next: "c:4 d:4"},
			{asked: dup + "2", next: "c:2 d:2"},
			{asked: dup + "2", next: "d:2", held: "a (2 to 0), b (2 to 0), c (2 to 0) 6/8"},
		},
		"one by one, divided, and scaled between": {
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "12", next: "b:6 c:6"},
			{asked: div + "24", next: "b:12 c:12"},
			{asked: div + "24", next: "c:24", held: "a (4 to 0), b (10 to 0) 14/24"}, // 2 of b's were a's before
			{asked: div + "24", next: "a:8 b:8 c:8"},
			{asked: div + "24", next: "a:12 c:12"},
		},
		"one by one, divided, and scaled a little while the second goes": {
			{asked: div + "6", next: "a:2 b:2 c:2"},
			{asked: div + "6", next: "b:3 c:3"},
			{asked: div + "5", next: "b:3 c:2"},
			{asked: div + "5", next: "b:5", held: "a (2 to 0), c (2 to 0) 3/5"},
			{asked: div + "5", next: "c:5", held: "a (2 to 0), b (2 to 0) 3/5"},
			{asked: div + "5", next: "a:2 b:2 c:1"},
			{asked: div + "5", next: "a:3 b:2"},
		},
		"one by one, divided, and halved between": {
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "12", next: "b:6 c:6"},
			{asked: div + "6", next: "b:3 c:3"}, // one of each was a's
			{asked: div + "6", next: "c:6", held: "a (4 to 0), b (2 to 0) 4/6"},
		},
		"one by one, divided, scaled to nothing and back": {
			{asked: div + "6", next: "a:2 b:2 c:2"},
			{asked: div + "6", next: "b:3 c:3"},
			{asked: div + "0", next: "b:0 c:0"},
			{asked: div + "6", next: "b:3 c:3"},
			{asked: div + "6", next: "b:6"},
		},
		"one by one, divided, and scaled again before anything has grown": {
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "12", next: "b:6 c:6"},
			{asked: div + "20", next: "b:10 c:10", runs: "b:6 c:6"},
			{asked: div + "24", next: "b:12 c:12"},
			{asked: div + "24", next: "c:24", held: "a (4 to 0), b (10 to 0) 14/24"},
		},
		"clusters that come and go are counted as they are": {
			{asked: dup + "1", next: "a:1 b:1 c:1"},
			{asked: dup + "1", next: "b:1 c:1"},
			{asked: dup + "1", next: "a:1 b:1 c:1"},
			{asked: dup + "1", next: "a:1 c:1"},
			{asked: dup + "1", next: "a:1 b:1 c:1"},
			{asked: dup + "1", next: "a:1 b:1"},
		},
		"most of what runs, after others have joined": {
			{asked: div + "8", next: "a:8"},
			{asked: div + "8", next: "a:4 b:4"},
			{asked: div + "8", next: "a:3 b:3 c:2"},
			{asked: div + "8", next: "a:8", held: "b (4 to 0), c (2 to 0) 5/8"},
			{asked: div + "8", next: "a:8", confirm: true},
		},
		"most of what runs, one after the other, after others have joined": {
			{asked: div + "3", next: "a:3"},
			{asked: div + "3", next: "a:2 b:1"},
			{asked: div + "3", next: "a:1 b:1 c:1"},
			{asked: div + "3", next: "a:2 c:1"},
			{asked: div + "3", next: "a:3"}, // two of them run there
			{asked: div + "3", next: "b:3", held: "a (3 to 0), c (1 to 0) 3/3"},
		},
		"clusters join one by one": {
			{asked: div + "12", next: "a:12"},
			{asked: div + "12", next: "a:6 b:6"},
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "12", next: "a:3 b:3 c:3 d:3"},
			{asked: div + "12", next: "b:4 c:4 d:4"},
			{asked: div + "12", next: "c:6 d:6"},
			{asked: div + "12", next: "d:12", held: "a (12 to 0), b (6 to 0), c (4 to 0) 9/12"},
		},
		"what joins counts once it runs": {
			{asked: div + "12", next: "a:12"},
			{asked: div + "12", next: "a:6 b:6", runs: "a:6 b:1"},
			{asked: div + "12", next: "a:4 b:4 c:4", held: "a (12 to 4) 7/12"},
		},
		"what an edit adds counts once it runs": {
			{asked: "one duplicated 2", next: "a:2"},
			{asked: dup + "2", next: "a:2 b:2 c:2", runs: "a:2"},
			{asked: dup + "2", next: "b:2 c:2", held: "a (2 to 0) 2/2"},
			{asked: dup + "2", next: "a:2 b:2 c:2"},
			{asked: dup + "2", next: "b:2 c:2"},
		},
		"what comes back counts once it runs": {
			{asked: dup + "1", next: "a:1 b:1"},
			{asked: dup + "1", next: "a:1"},
			{asked: dup + "1", next: "a:1 b:1", runs: "a:1"},
			{asked: dup + "1", next: "b:1", held: "a (1 to 0) 2/2"},
			{asked: dup + "1", next: "a:1 b:1"},
			{asked: dup + "1", next: "b:1"},
		},
		"nothing that runs less than it was is held": {
			{asked: div + "4", next: "a:2 b:2"},
			{asked: div + "4", next: "a:4"},
			{asked: div + "40", next: "a:40", runs: "a:2"},
			{asked: div + "40", next: "a:40 b:0", runs: "a:40"},
		},
		"nothing is asked for, after others have joined": {
			{asked: div + "6", next: "a:6"},
			{asked: div + "6", next: "a:3 b:3"},
			{asked: div + "0", next: "a:0 b:0"},
		},
		"clusters that joined count": {
			{asked: dup + "2", next: "a:2"},
			{asked: dup + "2", next: "a:2 b:2 c:2 d:2"},
			{asked: dup + "2", next: "a:2", held: "b (2 to 0), c (2 to 0), d (2 to 0) 6/8"},
		},
		"a label that weights hang on": {
			{asked: div + "100", next: "a:98 b:1 c:1"},
			{asked: div + "100", next: "a:34 b:33 c:33", held: "a (98 to 34) 64/100"},
		},
		"clusters that join and take shares": {
			{asked: div + "12", next: "a:12"},
			{asked: div + "12", next: "a:4 b:4 c:4", held: "a (12 to 4) 8/12"},
		},
		"a scale-down may leave clusters without replicas": {
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "1", next: "a:1", chosen: "b c"},
			{asked: div + "12", next: "a:4 b:4 c:4"},
		},
		"a scale-down that packs": {
			{asked: div + "40", next: "a:8 b:8 c:8 d:8 e:8"},
			{asked: div + "10", next: "a:8 b:2", chosen: "c d e"},
			{asked: div + "40", next: "a:20 b:20", chosen: "c d e"},
		},
		"a scale-down excuses the number it asks for": {
			{asked: div + "10", next: "a:9 b:1"},
			{asked: div + "9", next: "a:1 b:8", held: "a (9 to 1) 7/9"},
		},
		"to zero and back": {
			{asked: dup + "2", next: "a:2 b:2"},
			{asked: dup + "0", next: "a:0 b:0"},
			{asked: dup + "2", next: "a:2 b:2"},
			{asked: dup + "2", next: "a:2"},
		},
		"failover is asked for, and so is what comes back": {
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "12", next: "c:12", failedOver: "a b"},
			{asked: div + "12", next: "a:4 b:4 c:4"},
			{asked: div + "12", next: "a:12", held: "b (4 to 0), c (4 to 0) 8/12"},
		},
		"a cluster that failover gives up and that stays counts as before": {
			{asked: div + "6", next: "a:2 b:2 c:2"},
			{asked: div + "6", next: "a:3 b:3"},
			{asked: div + "6", next: "a:3 b:3", failedOver: "a", runs: "a:2 b:3"},
			{asked: div + "6", next: "a:3 b:3"},
			{asked: div + "6", next: "a:6", held: "b (2 to 0), c (2 to 0) 4/6"},
		},
		"a confirmation is used up": {
			{asked: dup + "2", next: "a:2 b:2 c:2"},
			{asked: dup + "2", next: "a:2", held: "b (2 to 0), c (2 to 0) 4/6"},
			{asked: dup + "2", next: "a:2", confirm: true},
			{asked: dup + "2", next: "a:2 b:2 c:2"},
			{asked: dup + "2", next: "a:2", held: "b (2 to 0), c (2 to 0) 4/6"},
		},
		"a confirmation names its removal": {
			{asked: dup + "2", next: "a:2 b:2 c:2 d:2"},
			{asked: dup + "2", next: "a:2", held: "b (2 to 0), c (2 to 0), d (2 to 0) 6/8"},
			{asked: dup + "2", next: "b:2", confirm: true, held: "a (2 to 0), c (2 to 0), d (2 to 0) 6/8"},
		},
		"half may go": {
			{asked: dup + "1", next: "a:1 b:1"},
			{asked: dup + "1", next: "a:1"},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var record *v1alpha1.PlacementRecord
			var token, confirmation string // the annotation stays on the object
			var reports map[string]int32
			for i, s := range steps {
				in := s.in(t, record)
				in.Reports = reports
				if s.confirm {
					confirmation = token
				}
				in.Confirmation = confirmation
				next, removal := Check(in)
				got := ""
				if removal != nil {
					got, token = fmt.Sprintf("%s %d/%d", removal, removal.Lost, removal.Total), removal.Token
				}
				if got != s.held {
					t.Fatalf("step %d: held %q, want %q; the record is %+v", i, got, s.held, in.Record)
				}
				if removal != nil {
					continue
				}
				in.Record, in.Confirmation, in.Reports = &next, "", replicas(t, cmp.Or(s.runs, s.next))
				then, removal := Check(in)
				in.Record = &then
				if again, _ := Check(in); removal != nil || !reflect.DeepEqual(again, then) {
					t.Fatalf("step %d: the next pass holds %v, the one after it remembers something else: %+v, not %+v", i, removal, again, then)
				}
				record, reports = &then, in.Reports
			}
		})
	}
}

func (s step) in(t *testing.T, record *v1alpha1.PlacementRecord) In {
	t.Helper()
	in := In{Record: record, Next: replicas(t, s.next), FailedOver: strings.Fields(s.failedOver), MaxPercent: 50}
	if _, err := fmt.Sscan(s.asked, &in.Asked.Clusters, &in.Asked.Division, &in.Asked.Replicas); err != nil {
		t.Fatal(err)
	}
	in.Asked.Divided = in.Asked.Division != "duplicated"
	in.Chosen = strings.Fields(s.chosen)
	for name := range in.Next {
		in.Chosen = append(in.Chosen, name)
	}
	return in
}

// TestWithoutARecord: what runs is the measure, as after a restore of the management cluster.
func TestWithoutARecord(t *testing.T) {
	in := In{
		Asked: Asked{Clusters: "all", Division: "duplicated", Replicas: 2}, Runs: replicas(t, "a:2 b:2 c:2"), Next: replicas(t, "a:2"),
		Chosen: []string{"a"}, MaxPercent: 50,
	}
	if _, removal := Check(in); removal == nil || removal.Lost != 4 {
		t.Errorf("%+v", removal)
	}
}

// TestOwnNumbersCount (law 2): a cluster with a number of its own counts with that, whatever the others are scaled to.
func TestOwnNumbersCount(t *testing.T) {
	own, two := replicas(t, "c:6"), int32(2)
	record := &v1alpha1.PlacementRecord{ClustersHash: "all", DivisionHash: "own", Replicas: &two}
	for name, n := range replicas(t, "a:2 b:2 c:6") {
		record.Clusters = append(record.Clusters, v1alpha1.ClusterShare{Name: name, Baseline: &n, Replicas: &n})
	}
	in := In{
		Record: record, Asked: Asked{Clusters: "all", Division: "own", Replicas: 1, Own: own}, Next: replicas(t, "a:1 b:1"),
		Chosen: []string{"a", "b"}, MaxPercent: 50,
	}
	if _, removal := Check(in); removal == nil || removal.Lost != 6 || removal.Total != 8 {
		t.Errorf("scaled while it goes: %+v", removal)
	}
	in.Next, in.Chosen = replicas(t, "a:1 b:1 c:1"), []string{"a", "b", "c"}
	in.Asked = Asked{Clusters: "all", Division: "other", Replicas: 1, Own: replicas(t, "c:1")}
	if _, removal := Check(in); removal != nil {
		t.Errorf("asked for, and held: %+v", removal)
	}
}

// TestAnEditExcusesNoLostLabel: what had been deselected before an edit has not gone by it, unless the edit names it.
func TestAnEditExcusesNoLostLabel(t *testing.T) {
	two, lost := int32(2), metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	record := &v1alpha1.PlacementRecord{ClustersHash: "all", DivisionHash: "duplicated", Replicas: &two}
	for _, name := range []string{"a", "b", "c", "d"} {
		row := v1alpha1.ClusterShare{Name: name, Baseline: &two, Replicas: &two}
		if name != "a" {
			row.DeselectedAt = &lost
		}
		record.Clusters = append(record.Clusters, row)
	}
	in := In{
		Record: record, Asked: Asked{Clusters: "most", Division: "duplicated", Replicas: 2}, Next: replicas(t, "a:2"),
		Chosen: []string{"a"}, MaxPercent: 50,
	}
	if _, removal := Check(in); removal == nil || removal.Lost != 6 {
		t.Errorf("%+v", removal)
	}
	in.Excluded = []string{"b", "c", "d"}
	if _, removal := Check(in); removal != nil {
		t.Errorf("asked for, and held: %+v", removal)
	}
}

// TestOnlyWhatWasApprovedGoes: what falls out after a person was told what an edit takes out goes by no edit, and not at once.
func TestOnlyWhatWasApprovedGoes(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	told := func(names ...string) *v1alpha1.PlacementRecord {
		return WithApproved(recorded(8, row("a", 2, 2), row("b", 2, 2), row("c", 2, 2), row("d", 2, 2)), func(name string) bool {
			return slices.Contains(names, name)
		}, now)
	}
	asked := Asked{Clusters: "most", Division: "divided", Replicas: 8, Divided: true, OnlyApproved: true}
	for name, test := range map[string]struct {
		told     []string
		excluded []string
		// lost is what of it is held; stays is what goes on for a moment.
		lost  int64
		stays string
	}{
		"all of it":                   {told: []string{"b", "c", "d"}},
		"one of three":                {told: []string{"b"}, lost: 4, stays: "c:2 d:2"},
		"none":                        {lost: 6, stays: "b:2 c:2 d:2"},
		"none, and the spec names it": {excluded: []string{"b", "c", "d"}},
	} {
		in := In{
			Record: told(test.told...), Asked: asked, Next: replicas(t, "a:8"), Reports: replicas(t, "a:2 b:2 c:2 d:2"), Chosen: []string{"a"},
			Excluded: test.excluded, MaxPercent: 50,
		}
		_, removal := Check(in)
		if removal == nil {
			removal = &Removal{}
		}
		if removal.Lost != test.lost {
			t.Errorf("%s: %d would go, want %d", name, removal.Lost, test.lost)
		}
		got := Deselect(in.Record, asked, Selection{
			Clusters: []string{"a"}, Matching: []string{"a"}, Excluded: test.excluded, Now: now,
			Fleet: backends.Fleet{Clusters: []backends.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}},
		})
		if !maps.Equal(got.Vanished, replicas(t, test.stays)) {
			t.Errorf("%s: %v stays for now, want %s", name, got.Vanished, test.stays)
		}
	}
	again := WithApproved(told("b", "c"), func(name string) bool { return name == "d" }, now)
	if again.Clusters[1].RemovalApprovedAt != nil || again.Clusters[3].RemovalApprovedAt == nil || WithApproved(nil, nil, now) != nil {
		t.Errorf("after another approval: %+v", again.Clusters)
	}
	in := In{Record: told("b"), Asked: asked, Next: replicas(t, "a:3 b:1 c:2 d:2"), Chosen: []string{"a", "b", "c", "d"}, MaxPercent: 50}
	if record, removal := Check(in); removal != nil || record.Clusters[1].RemovalApprovedAt != nil {
		t.Errorf("once it was carried out: %+v, held %v", record.Clusters, removal)
	}
}

// TestDeselect: what is missing for a moment is gone on with.
func TestDeselect(t *testing.T) {
	begin := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	asked := Asked{Clusters: "all"}
	record := &v1alpha1.PlacementRecord{ClustersHash: "all", Clusters: []v1alpha1.ClusterShare{
		{Name: "a", Replicas: new(int32)}, {Name: "b", Replicas: new(int32)}, {Name: "gone", Replicas: new(int32)}, {Name: "left"},
	}}
	ask := func(record *v1alpha1.PlacementRecord, asked Asked, after time.Duration, matching string, chosen ...string) Deselected {
		return Deselect(record, asked, Selection{
			Clusters: chosen, Fleet: backends.Fleet{Clusters: []backends.Cluster{{Name: "a"}, {Name: "b"}, {Name: "left"}}},
			Matching: strings.Fields(matching), Now: metav1.NewTime(begin.Add(after)),
		})
	}
	first := ask(record, asked, 0, "a", "a")
	if !slices.Equal(first.Clusters, []string{"a", "b"}) || !slices.Equal(first.Missing, []string{"b"}) || first.RequeueAfter != Patience {
		t.Errorf("a moment ago: %+v", first)
	}
	if record.Clusters[1].DeselectedAt != nil {
		t.Error("the record was changed")
	}
	for name, test := range map[string]struct {
		got  Deselected
		want []string
	}{
		"a little later":                       {ask(first.Record, asked, Patience-time.Second, "a", "a"), []string{"a", "b"}},
		"long enough":                          {ask(first.Record, asked, Patience, "a", "a"), []string{"a"}},
		"taken out by an edit":                 {ask(record, Asked{Clusters: "a"}, 0, "a", "a"), []string{"a"}},
		"still matched after an edit":          {ask(record, Asked{Clusters: "most"}, 0, "a b", "a"), []string{"a", "b"}},
		"chosen again":                         {ask(first.Record, asked, time.Second, "a b", "a", "b"), []string{"a", "b"}},
		"chosen, and no longer matched":        {Deselected{Clusters: ask(record, asked, 0, "a", "a", "b").Missing}, []string{"b"}},
		"nothing was carried out":              {ask(nil, asked, 0, "a b", "a"), []string{"a"}},
		"since when is forgotten once it back": {ask(ask(first.Record, asked, 9*time.Second, "a b", "a", "b").Record, asked, Patience, "a", "a"), []string{"a", "b"}},
	} {
		if !slices.Equal(test.got.Clusters, test.want) {
			t.Errorf("%s: %v, want %v", name, test.got.Clusters, test.want)
		}
	}
}

// TestUnrecordedAndUnlisted: after a status was lost, as by a restore, a cluster that is not listed for a moment keeps what it runs too.
func TestUnrecordedAndUnlisted(t *testing.T) {
	begin := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	asked := Asked{Clusters: "all", Division: "duplicated", Replicas: 2}
	runs := replicas(t, "a:2 gone:3")
	ask := func(record *v1alpha1.PlacementRecord, after time.Duration) Deselected {
		return Deselect(record, asked, Selection{
			Clusters: []string{"a"}, Fleet: backends.Fleet{Clusters: []backends.Cluster{{Name: "a"}}}, Matching: []string{"a"}, Runs: runs,
			Now: metav1.NewTime(begin.Add(after)),
		})
	}
	want := replicas(t, "gone:3")
	first := ask(nil, 0)
	if !maps.Equal(first.Vanished, want) || first.RequeueAfter != Patience || first.Record != nil {
		t.Errorf("without a record: %+v", first)
	}
	record, removal := Check(In{Asked: asked, Runs: runs, Next: replicas(t, "a:2 gone:3"), Chosen: []string{"a"}, MaxPercent: 50})
	if removal != nil {
		t.Fatalf("%+v", removal)
	}
	second := ask(&record, time.Second)
	if !maps.Equal(second.Vanished, want) || second.RequeueAfter != Patience {
		t.Errorf("with the first record: %+v", second)
	}
	if late := ask(second.Record, time.Second+Patience); len(late.Vanished) != 0 {
		t.Errorf("for ever: %+v", late)
	}
	two := int32(2)
	other := ask(&v1alpha1.PlacementRecord{ClustersHash: "all", Clusters: []v1alpha1.ClusterShare{{Name: "a", Replicas: &two}}}, 0)
	if !maps.Equal(other.Vanished, want) || len(ask(other.Record, Patience).Vanished) != 0 {
		t.Errorf("a record without its row: %+v", other)
	}
	leaves := &v1alpha1.PlacementRecord{ClustersHash: "all", Clusters: []v1alpha1.ClusterShare{{Name: "gone", Removal: v1alpha1.RemovalDeselected}}}
	if got := ask(leaves, 0); len(got.Vanished) != 0 {
		t.Errorf("what leaves already came back: %+v", got)
	}
}

// TestNothingGoesWithoutARecord (law 2): when the record is lost, what runs counts, whatever the spec says now. Failover alone was asked for.
func TestNothingGoesWithoutARecord(t *testing.T) {
	for name, test := range map[string]struct {
		divided  bool
		replicas int32
		next     map[string]int32
		excluded []string
		lost     []string
		held     bool
	}{
		"it runs as asked":               {true, 6, map[string]int32{"m1": 4, "m2": 2}, nil, nil, false},
		"it grows":                       {true, 9, map[string]int32{"m1": 6, "m2": 3}, nil, nil, false},
		"one comes":                      {true, 8, map[string]int32{"m1": 4, "m2": 2, "m3": 2}, nil, nil, false},
		"a small share moves":            {true, 6, map[string]int32{"m1": 3, "m2": 3}, nil, nil, true},
		"a small share is not chosen":    {true, 6, map[string]int32{"m1": 6}, nil, nil, true},
		"the spec does not name it":      {true, 6, map[string]int32{"m1": 6}, []string{"m2"}, nil, true},
		"fewer are asked for":            {true, 5, map[string]int32{"m1": 3, "m2": 2}, nil, nil, true},
		"fewer are asked for of each":    {false, 2, map[string]int32{"m1": 2, "m2": 2}, nil, nil, true},
		"another takes a lost one's":     {true, 6, map[string]int32{"m1": 6}, nil, []string{"m2"}, false},
		"a person has confirmed nothing": {true, 1, map[string]int32{"m1": 1}, nil, nil, true},
	} {
		in := In{
			Asked: Asked{Clusters: "all", Division: "even", Replicas: test.replicas, Divided: test.divided},
			Runs:  map[string]int32{"m1": 4, "m2": 2}, Reports: map[string]int32{"m1": 4, "m2": 2},
			Chosen: []string{"m1", "m2"}, Next: test.next, Excluded: test.excluded, FailedOver: test.lost, MaxPercent: 50,
		}
		_, removal := Check(in)
		if held := removal != nil; held != test.held {
			t.Errorf("%s: held: %v", name, held)
			continue
		}
		if removal == nil {
			continue
		}
		in.Confirmation = removal.Token
		if record, held := Check(in); held != nil || *record.ConfirmedRemovals != 1 {
			t.Errorf("%s: a person has confirmed it, and it is held: %v", name, held)
		}
	}
}
