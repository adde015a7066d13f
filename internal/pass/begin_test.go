package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// beginningTo is a pass on backend one of a FleetWorkload that is to move to another backend, and has not begun to.
func beginningTo(t *testing.T, to string) *Decision {
	t.Helper()
	d := moving(t)
	d.handOver, d.record.migration = nil, nil
	d.in.FleetWorkload.Spec.Backend, d.in.FleetWorkload.Status.Migration = to, nil
	var err error
	if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, []string{"m1", "m2"}, map[string]int32{"m1": 2, "m2": 2}); err != nil {
		t.Fatal(err)
	}
	there := backends.Fleet{Clusters: slices.Clone(d.fleet.Clusters)}
	features := backends.Features{backends.FeatureModes: true}
	d.in.Sides = map[string]*Side{"one": {Features: features, Fleet: d.fleet}, "two": {Features: features, Fleet: &there}}
	return d
}

// TestWhatStandsAgainstAMoveStandsUntilItIsExaminedAgain: while it is others' turn a FleetWorkload goes on saying what is to be mended,
// of the same move.
func TestWhatStandsAgainstAMoveStandsUntilItIsExaminedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		stands   bool
	}{
		"the same move":            {"one", "two", true},
		"a move to somewhere else": {"one", "three", false},
		"a move from elsewhere":    {"three", "two", false},
	} {
		d := beginningTo(t, "two")
		d.in.Turn, d.in.MigrationsAtOnce = new(bool), 3
		d.record.migration = &v1alpha1.MigrationStatus{
			From: test.from, To: test.to, Phase: v1alpha1.MigrationPhaseValidating, Problems: []string{"mend me"},
			Clusters: []v1alpha1.MigrationClusterStatus{{Name: "m1"}},
		}
		if err := d.validate(); err != nil {
			t.Fatal(err)
		}
		next := d.begins.next
		if (len(next.Problems) == 1) != test.stands || (len(next.Clusters) == 1) != test.stands {
			t.Errorf("%s: %q of %v", name, next.Problems, next.Clusters)
		}
		err := d.begin()
		var why *stalled
		if refused := errors.As(err, &why) && why.reason == v1alpha1.ReasonMigrationNotPossible; refused != test.stands || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
		if waits := strings.Contains(d.waiting, "its turn to move to backend two") && strings.Contains(d.waiting, "allows 3 migrations"); waits == test.stands {
			t.Errorf("%s: it waits for %q", name, d.waiting)
		}
		if again := d.lookAgain(); again != turnAnyway {
			t.Errorf("%s: it looks again in %s, and is woken for its turn", name, again)
		}
		if d.end.Turn != TurnKept {
			t.Errorf("%s: the place in the queue is lost: %s", name, d.end.Turn)
		}
	}
}

// TestAPreflightIsAskedForClustersThatWouldMove: the target tells what stands against them, and without any there is nothing to try.
func TestAPreflightIsAskedForClustersThatWouldMove(t *testing.T) {
	d := beginningTo(t, "two")
	d.begins = &beginning{next: d.thoughtOf()}
	if err := d.examine(); !errors.Is(err, errEnough) || d.Reads.Preflight == nil || d.Reads.Preflight.Backend != "two" {
		t.Fatalf("nothing is tried: %v, %+v", err, d.Reads.Preflight)
	}
	for _, target := range d.Reads.Preflight.Desired.Targets {
		if target.Mode != backends.ModeObserve {
			t.Errorf("a preflight would write to %s: %s", target.Cluster, target.Mode)
		}
	}
	d.in.Preflight = &Preflight{Against: []string{"no right"}}
	if err := d.examine(); err != nil || !slices.Equal(d.begins.next.Problems, []string{"backend two: no right"}) || len(d.begins.next.Clusters) != 2 {
		t.Errorf("%v, %+v", err, d.begins.next)
	}
	d = beginningTo(t, "two")
	d.begins, d.placed.targets = &beginning{next: d.thoughtOf()}, nil
	if err := d.examine(); err != nil || d.Reads.Preflight != nil {
		t.Errorf("without clusters: %v, %+v", err, d.Reads.Preflight)
	}
}

// TestAMoveThatIsTakenBackLeavesTheHistory: what is over stays on record, and what was thought of goes.
func TestAMoveThatIsTakenBackLeavesTheHistory(t *testing.T) {
	history := []v1alpha1.MigrationRecord{{From: "two", To: "one"}}
	for name, test := range map[string]struct {
		history []v1alpha1.MigrationRecord
		want    *v1alpha1.MigrationStatus
	}{
		"with a history": {history, &v1alpha1.MigrationStatus{History: history}},
		"without":        {nil, nil},
	} {
		d := beginningTo(t, "one")
		d.record.migration = &v1alpha1.MigrationStatus{
			From: "one", To: "two", Phase: v1alpha1.MigrationPhaseValidating, Problems: []string{"mend me"}, History: test.history,
		}
		if err := d.validate(); err != nil {
			t.Fatal(err)
		}
		got := d.record.migration
		if (got == nil) != (test.want == nil) || got != nil && (len(got.History) != 1 || got.To != "" || len(got.Problems) > 0) {
			t.Errorf("%s: %+v is left", name, got)
		}
		if d.end.Turn != TurnEnds {
			t.Errorf("%s: the turn is not given back", name)
		}
	}
}

// TestFew: a condition's message has room for so many problems, and says of how many it had none.
func TestFew(t *testing.T) {
	problems := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("p", i))
		}
		return all
	}
	for n, want := range map[int]string{
		1: "p0", 20: "p18; p19", 21: "p18; p19; and 1 more, see status.migration.problems", 30: "p19; and 10 more, see status.migration.problems",
	} {
		if got := few(problems(n)); !strings.HasSuffix(got, want) {
			t.Errorf("of %d: %q, want it to end with %q", n, got, want)
		}
	}
}

// TestAMoveIsThoughtOfSince: the same one since it was asked for, another one since now.
func TestAMoveIsThoughtOfSince(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.MigrationStatus)
		stays  bool
	}{
		"the same":                {func(*v1alpha1.MigrationStatus) {}, true},
		"to another backend":      {func(m *v1alpha1.MigrationStatus) { m.To = "three" }, false},
		"from another":            {func(m *v1alpha1.MigrationStatus) { m.From = "three" }, false},
		"one that was begun":      {func(m *v1alpha1.MigrationStatus) { m.Phase = v1alpha1.MigrationPhaseShadowing }, false},
		"nothing but its history": {func(m *v1alpha1.MigrationStatus) { *m = v1alpha1.MigrationStatus{History: m.History} }, false},
	} {
		d := beginningTo(t, "two")
		before := metav1.NewTime(d.now.Add(-time.Hour))
		d.record.migration = &v1alpha1.MigrationStatus{
			From: "one", To: "two", Phase: v1alpha1.MigrationPhaseValidating, StartedAt: &before, History: []v1alpha1.MigrationRecord{{From: "two", To: "one"}},
		}
		test.change(d.record.migration)
		next := d.thoughtOf()
		if stays := next.StartedAt.Equal(&before); stays != test.stays || !stays && !next.StartedAt.Equal(&d.now) || len(next.History) != 1 {
			t.Errorf("%s: since %s, %d in the history", name, next.StartedAt, len(next.History))
		}
	}
}

// TestProblemsThatDoNotFit: the last place in the list says how many more there are.
func TestProblemsThatDoNotFit(t *testing.T) {
	for count, last := range map[int]string{mostProblems: "problem 64", mostProblems + 1: "and 2 more", mostProblems + 9: "and 10 more"} {
		d := beginningTo(t, "two")
		d.begins = &beginning{next: d.thoughtOf()}
		var problems []string
		for i := range count {
			problems = append(problems, fmt.Sprintf("problem %d", i+1))
		}
		d.object(problems)
		if got := d.begins.next.Problems; len(got) != mostProblems || got[mostProblems-1] != last {
			t.Errorf("%d problems: %d are listed, the last is %q", count, len(got), got[len(got)-1])
		}
	}
}

// TestWhatWouldGoWithTheOldBackendStandsAgainstAMove (law 12): the definition of the workload's kind takes everything of it along.
func TestWhatWouldGoWithTheOldBackendStandsAgainstAMove(t *testing.T) {
	d := beginningTo(t, "two")
	d.begins = &beginning{next: d.thoughtOf()}
	if err := d.examine(); !errors.Is(err, errEnough) || d.Reads.Preflight.Source != "one" || !slices.Equal(d.Reads.Preflight.On, []string{"m1", "m2"}) {
		t.Fatalf("the present backend is not asked: %v, %+v", err, d.Reads.Preflight)
	}
	brought := backends.Dependent{
		Cluster: "m2", Kind: "CustomResourceDefinition", Name: "webs.example.com", Owner: backends.Owner{Kind: "ClusterPropagationPolicy", Name: "crds"},
	}
	preserved := brought
	preserved.Preserve = "set it"
	d.in.Preflight = &Preflight{Brought: []backends.Dependent{preserved, brought}}
	if err := d.examine(); err != nil {
		t.Fatal(err)
	}
	const want = "cluster m2: CustomResourceDefinition webs.example.com is from backend one (ClusterPropagationPolicy crds), and"
	if problems := d.begins.next.Problems; len(problems) != 2 || !strings.HasPrefix(problems[0], want) || !strings.Contains(problems[0], "(set it; kubectl fw backend retire one --preserve") ||
		strings.Contains(problems[1], "--preserve") {
		t.Errorf("what stands against it is %q", problems)
	}
}

// TestAMoveBegins: with its first step, once the present backend has carried the present spec out and has nothing to let go of.
func TestAMoveBegins(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		begins bool
		waits  string
	}{
		"all have it":          {func(*Decision) {}, true, ""},
		"one has another spec": {func(d *Decision) { d.observed.Clusters[1].Revision = "before" }, false, ""},
		"one has not taken it": {func(d *Decision) { d.observed.Clusters[1].Applied = metav1.ConditionUnknown }, false, ""},
		"one is to let it go": {func(d *Decision) { d.placed.targets = d.placed.targets[:1] }, false,
			"m2 to let go of the workload, before it moves to backend two"},
		"something is awaited": {func(d *Decision) { d.waiting = "the weather" }, false, "the weather"},
	} {
		d := beginningTo(t, "two")
		d.observed.Clusters = reports(d, "m1", "m2")
		d.begins = &beginning{next: d.thoughtOf()}
		test.change(d)
		if err := d.begin(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if begun := d.record.migration.Phase != v1alpha1.MigrationPhaseValidating; begun != test.begins || (d.end.Keep != nil) != begun || d.waiting != test.waits {
			t.Errorf("%s: it is %s, waits for %q and keeps %v", name, d.record.migration.Phase, d.waiting, d.end.Keep)
		}
		if ends := d.end.Turn == TurnEnds; ends == test.begins {
			t.Errorf("%s: its turn ends: %v", name, ends)
		}
	}
}

// TestWhatClustersAreToldInAHandOver: one that is held stays so for who owns it, and is not written by who only looks.
func TestWhatClustersAreToldInAHandOver(t *testing.T) {
	clusters := []v1alpha1.MigrationClusterStatus{{Name: "m2", TargetName: "a"}, {Name: "m1", TargetName: "b"}, {Name: "m3"}}
	for name, test := range map[string]struct{ decided, may, want backends.Mode }{
		"owned":          {backends.ModeOwn, backends.ModeOwn, backends.ModeOwn},
		"taken over":     {backends.ModeOwn, backends.ModeAdopt, backends.ModeAdopt},
		"held":           {backends.ModeHold, backends.ModeAdopt, backends.ModeHold},
		"held elsewhere": {backends.ModeHold, backends.ModeObserve, backends.ModeObserve},
	} {
		got := targetsOf([]backends.Target{{Cluster: "m1", Mode: test.decided}, {Cluster: "m2", Mode: test.decided}}, clusters,
			migration.NameOnTarget, func(string) backends.Mode { return test.may })
		if want := []backends.Target{{Cluster: "a", Mode: test.want}, {Cluster: "b", Mode: test.want}}; !cmp.Equal(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWhatStandsAgainstAMove (law 10): each thing that has to be mended first is named.
func TestWhatStandsAgainstAMove(t *testing.T) {
	away := errors.New("away")
	for name, test := range map[string]struct {
		change func(*Decision)
		want   string
	}{
		"nothing":               {func(*Decision) {}, ""},
		"it is suspended":       {func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }, "spec.suspend: while it is true nothing changes hands"},
		"a cluster is paused":   {func(d *Decision) { d.placed.pinned = map[string]*int32{"m1": nil} }, "spec.placement.paused: m1 must not change"},
		"a cluster is given up": {func(d *Decision) { d.placed.held = []string{"m2"} }, "spec.placement.failover: m2 was given up and keeps what it runs"},
		"something is left": {func(d *Decision) {
			d.observed.Clusters = []backends.ClusterObservation{{Cluster: "m2", Left: &backends.Left{Others: "by hand"}}}
		}, `spec.drift "Report": cluster m2 keeps what somebody else has changed there, which would be put back`},
		"the other backend is away":     {func(d *Decision) { d.in.Sides["two"].Err = away }, `backend "two": away`},
		"the other backend cannot tell": {func(d *Decision) { d.in.Preflight.Err = away }, "backend two: away"},
	} {
		d := beginningTo(t, "two")
		d.begins, d.in.Preflight = &beginning{next: d.thoughtOf()}, &Preflight{}
		test.change(d)
		if err := d.examine(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := d.begins.next.Problems; (len(got) != 0) != (test.want != "") || len(got) > 1 || !strings.HasPrefix(strings.Join(got, ""), test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAMoveIsLookedAtInItsTurn: looking asks the other backend, again and again for as long as the turn is waited for.
func TestAMoveIsLookedAtInItsTurn(t *testing.T) {
	d := beginningTo(t, "two")
	if err := d.validate(); !errors.Is(err, errEnough) || !d.Reads.Turn {
		t.Fatalf("it does not ask for its turn: %v", err)
	}
	d.in.Turn, d.Reads = ptr.To(true), Reads{}
	if err := d.validate(); !errors.Is(err, errEnough) || d.Reads.Turn || d.Reads.Preflight == nil {
		t.Fatalf("in its turn it asks for %+v, %v", d.Reads, err)
	}
	d.in.Preflight, d.Reads = &Preflight{}, Reads{}
	if err := d.validate(); err != nil || len(d.begins.next.Clusters) != 2 {
		t.Errorf("%d clusters are to move, %v", len(d.begins.next.Clusters), err)
	}
}

// TestAMoveThatCannotBeginGivesItsTurnBack: whoever has to mend it may take days.
func TestAMoveThatCannotBeginGivesItsTurnBack(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		failed string
		turn   TurnChange
	}{
		"nobody asks for one":         {func(d *Decision) { d.begins = nil }, "", TurnKept},
		"it cannot be looked at":      {func(d *Decision) { d.begins.err = errors.New("away") }, "away", TurnEnds},
		"something stands against it": {func(d *Decision) { d.begins.next.Problems = []string{"mend me"} }, "mend me", TurnEnds},
		"something does, out of turn": {func(d *Decision) { d.begins.next.Problems, d.begins.waitsForTurn = []string{"mend me"}, true }, "mend me", TurnKept},
	} {
		d := beginningTo(t, "two")
		d.begins = &beginning{next: d.thoughtOf()}
		test.change(d)
		if err := d.begin(); (err != nil) != (test.failed != "") || err != nil && !strings.HasSuffix(err.Error(), test.failed) || d.end.Turn != test.turn {
			t.Errorf("%s: its turn is %q, %v", name, d.end.Turn, err)
		}
	}
}
