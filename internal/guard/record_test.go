package guard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// recorded is a record of a divided number, with rows such as {Name: "a", Replicas: 3, Baseline: 3}.
func recorded(total int32, rows ...v1alpha1.ClusterShare) *v1alpha1.PlacementRecord {
	return &v1alpha1.PlacementRecord{ClustersHash: "all", DivisionHash: "divided", Replicas: &total, Clusters: rows}
}

func row(name string, baseline, decided int32) v1alpha1.ClusterShare {
	return v1alpha1.ClusterShare{Name: name, Baseline: &baseline, Replicas: &decided}
}

func left(name string, baseline int32) v1alpha1.ClusterShare {
	return v1alpha1.ClusterShare{Name: name, Baseline: &baseline}
}

func joining(r v1alpha1.ClusterShare) v1alpha1.ClusterShare {
	r.State = v1alpha1.ClusterShareJoining
	return r
}

func adopted(r v1alpha1.ClusterShare) v1alpha1.ClusterShare {
	r.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	return r
}

// TestWhatCounts: what is remembered of a cluster after a pass that is carried out.
func TestWhatCounts(t *testing.T) {
	for name, c := range map[string]struct {
		before, want  v1alpha1.ClusterShare
		next, reports int32
	}{
		"it goes on":                             {row("a", 3, 3), row("a", 3, 3), 3, 3},
		"it takes over":                          {row("a", 3, 3), row("a", 3, 6), 6, 3},
		"it has taken over":                      {row("a", 3, 6), row("a", 3, 6), 6, 6},
		"it comes back and runs nothing":         {left("a", 3), joining(row("a", 3, 2)), 2, 0},
		"it comes back and still runs that":      {left("a", 3), row("a", 3, 2), 2, 2},
		"it comes back and runs less":            {left("a", 3), joining(row("a", 3, 2)), 2, 1},
		"it comes back to more than it runs":     {left("a", 3), row("a", 3, 4), 4, 3},
		"it comes back and is given nothing":     {left("a", 3), joining(row("a", 3, 0)), 0, 0},
		"it is coming back":                      {joining(row("a", 3, 2)), joining(row("a", 3, 2)), 2, 1},
		"it has come back":                       {joining(row("a", 3, 2)), row("a", 2, 2), 2, 2},
		"it joins in part":                       {joining(row("a", 0, 4)), joining(row("a", 3, 4)), 4, 3},
		"it runs more than its share":            {joining(row("a", 0, 4)), row("a", 4, 4), 4, 9},
		"it had nothing to run, and has nothing": {row("a", 0, 0), joining(row("a", 0, 4)), 4, 0},
		"it had nothing to run, and runs a part": {row("a", 0, 0), joining(row("a", 1, 4)), 4, 1},
		"it is given nothing":                    {row("a", 3, 3), row("a", 3, 0), 0, 0},
		"it was adopted":                         {adopted(row("a", 3, 3)), adopted(row("a", 3, 3)), 3, 3},
	} {
		in := In{
			Record: recorded(9, c.before, row("b", 6, 6)), Asked: Asked{Clusters: "all", Division: "divided", Replicas: 9, Divided: true},
			Next: map[string]int32{"a": c.next, "b": 6}, Reports: map[string]int32{"a": c.reports, "b": 6}, Chosen: []string{"a", "b"}, MaxPercent: 50,
		}
		got, removal := Check(in)
		if removal != nil || !reflect.DeepEqual(got.Clusters[0], c.want) {
			t.Errorf("%s: %+v, held %v", name, got.Clusters[0], removal)
		}
	}
}

// TestWhatJoinsCountsWhileItIsHeld: what a cluster has come to run counts from the first pass that knows it, also from one that is held, and the
// removal names it.
func TestWhatJoinsCountsWhileItIsHeld(t *testing.T) {
	for reports, want := range map[int32]string{0: "a (10 to 2) 8/10", 5: "a (10 to 2), b (5 to 1) 7/10", 9: "a (10 to 2), b (5 to 1) 7/10"} {
		_, removal := Check(In{
			Record: recorded(10, row("a", 10, 5), joining(row("b", 0, 5))), Asked: Asked{Clusters: "all", Division: "divided", Replicas: 10, Divided: true},
			Next: map[string]int32{"a": 2, "b": 1, "c": 7}, Reports: map[string]int32{"a": 5, "b": reports}, Chosen: []string{"a", "b", "c"}, MaxPercent: 50,
		})
		if removal == nil {
			t.Errorf("%d run: nothing is held", reports)
		} else if got := fmt.Sprintf("%s %d/%d", removal, removal.Lost, removal.Total); got != want {
			t.Errorf("%d run: %s, want %s", reports, got, want)
		}
	}
}

// TestWhatEndsWithAnEdit: an edit forgets clusters that left long ago, and none that are leaving.
func TestWhatEndsWithAnEdit(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	leaving, gone := left("b", 3), left("c", 3)
	leaving.DeselectedAt, leaving.Removal, gone.DeselectedAt = &since, v1alpha1.RemovalDeselected, &since
	in := In{
		Record: recorded(9, row("a", 3, 9), leaving, gone), Asked: Asked{Clusters: "most", Division: "divided", Replicas: 9, Divided: true},
		Next: map[string]int32{"a": 9}, Reports: map[string]int32{"a": 9}, Chosen: []string{"a"}, MaxPercent: 50,
	}
	got, removal := Check(in)
	if removal != nil || len(got.Clusters) != 2 || got.Clusters[1].Name != "b" || *got.Clusters[1].Baseline != 3 || got.Clusters[1].DeselectedAt == nil {
		t.Errorf("%+v, held %v", got.Clusters, removal)
	}
}

func TestConfirmationsAreCounted(t *testing.T) {
	in := In{
		Record: recorded(4, row("a", 1, 1), row("b", 3, 3)), Asked: Asked{Clusters: "all", Division: "divided", Replicas: 4, Divided: true},
		Next: map[string]int32{"a": 4}, Reports: map[string]int32{"a": 1, "b": 3}, Chosen: []string{"a"}, MaxPercent: 50,
	}
	in.Record.ConfirmedRemovals = ptr.To(int32(2))
	_, removal := Check(in)
	if removal == nil {
		t.Fatal("not held")
	}
	in.Confirmation = removal.Token
	got, removal := Check(in)
	if removal != nil || *got.ConfirmedRemovals != 3 || len(got.Clusters) != 1 {
		t.Errorf("%+v, held %v", got, removal)
	}
	// Nothing goes, so that nothing is confirmed.
	in.Next = map[string]int32{"a": 1, "b": 3}
	in.before = Decided(in.Record)
	in.Confirmation = in.removal(in.counts(), 2).Token
	if got, _ := Check(in); *got.ConfirmedRemovals != 2 {
		t.Errorf("confirmed %d", *got.ConfirmedRemovals)
	}
}

func TestRemovalsOfARecord(t *testing.T) {
	record := recorded(3, row("b", 3, 3), left("c", 1))
	record.Clusters[0].Removal = v1alpha1.RemovalFailedOver
	got := WithRemovals(*record, map[string]v1alpha1.RemovalReason{"c": v1alpha1.RemovalDeselected, "a": v1alpha1.RemovalClusterLeft})
	want := map[string]v1alpha1.RemovalReason{"c": v1alpha1.RemovalDeselected, "a": v1alpha1.RemovalClusterLeft}
	if names := namesOf(got.Clusters); !slices.Equal(names, []string{"a", "b", "c"}) || !maps.Equal(Removals(&got), want) {
		t.Errorf("%v with %v", names, Removals(&got))
	}
	if record.Clusters[0].Removal != v1alpha1.RemovalFailedOver || len(Removals(nil)) != 0 || len(Decided(nil)) != 0 {
		t.Error("what was given is changed, or nothing is something")
	}
	if renamed := Renamed(record, func(name string) string { return map[string]string{"b": "z", "c": "y"}[name] }); !slices.Equal(namesOf(renamed.Clusters), []string{"y", "z"}) ||
		Renamed(nil, nil) != nil || record.Clusters[0].Name != "b" {
		t.Errorf("renamed: %+v", renamed)
	}
}

func namesOf(rows []v1alpha1.ClusterShare) (names []string) {
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

func TestARemovalIsListedInShort(t *testing.T) {
	five := strings.Fields("a b c d e")
	if got := (Removal{Clusters: five}).String(); got != "a, b, c, d, e" {
		t.Error(got)
	}
	if got := (Removal{Clusters: append(five, "f", "g")}).String(); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}

// TestDeselectLooksAgainAtTheFirstEnd: of several that are missing the first whose time is up decides when to look again, and what is missing
// after an edit that does not choose it is left as it is.
func TestDeselectLooksAgainAtTheFirstEnd(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	since := func(seconds int) *metav1.Time {
		return ptr.To(metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second)))
	}
	a, b, c := row("a", 1, 1), row("b", 2, 2), row("c", 3, 3)
	a.DeselectedAt, b.DeselectedAt, c.DeselectedAt = since(5), since(20), since(10)
	fleet := backends.Fleet{Clusters: []backends.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
	s := Selection{Clusters: []string{"d"}, Matching: []string{"d"}, Fleet: fleet, Now: metav1.NewTime(now)}
	got := Deselect(recorded(6, a, b, c), Asked{Clusters: "all"}, s)
	if got.RequeueAfter != Patience-20*time.Second || !slices.Equal(got.Missing, []string{"a", "b", "c"}) || len(got.Vanished) != 0 {
		t.Errorf("%+v", got)
	}
	got = Deselect(recorded(6, a, b, c), Asked{Clusters: "most"}, s)
	if want := map[string]int32{"a": 1, "b": 2, "c": 3}; !maps.Equal(got.Vanished, want) || !slices.Equal(got.Clusters, []string{"d"}) {
		t.Errorf("after an edit: %+v", got)
	}
}
