package pass

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// TestAFailureGivesTheTurnBack: a move that has not begun, and that nobody goes on with, keeps no other one waiting.
func TestAFailureGivesTheTurnBack(t *testing.T) {
	for name, test := range map[string]struct {
		begins *beginning
		fail   func(*Decision) error
		want   TurnChange
	}{
		"it was to begin, and is not carried out": {&beginning{}, func(d *Decision) error {
			return d.concludeApply(map[string]Outcome{"one": {Err: errors.New("refused")}})
		}, TurnEnds},
		"it is not carried out": {nil, func(d *Decision) error {
			return d.concludeApply(map[string]Outcome{"one": {Err: errors.New("refused")}})
		}, TurnKept},
		"it was to begin, and its spec is not kept": {&beginning{}, func(d *Decision) error { return d.Fail(errors.New("refused")).Err }, TurnEnds},
		"something else is not kept":                {nil, func(d *Decision) error { return d.Fail(errors.New("refused")).Err }, TurnKept},
	} {
		d := moving(t)
		d.handOver, d.in.FleetWorkload.Status.Migration, d.begins = nil, nil, test.begins
		d.work.kind, d.end.Keep = d.work.plan.Kind, &KeptSpec{Name: "kept"}
		if err := test.fail(d); err == nil || !strings.HasSuffix(err.Error(), "refused") {
			t.Errorf("%s: %v", name, err)
		}
		if got := d.end.Turn; got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// beingRead is of a backend whose objects are read for the first time.
func beingRead() error {
	return &backends.Error{Code: backends.CodeNotReady, Message: "its objects are being read", Filling: true}
}

// TestWhenItLooksAgain: soon, but never at once, where no event may tell of the mending; otherwise an event or the queue brings it back.
func TestWhenItLooksAgain(t *testing.T) {
	refusal := func(code backends.Code) error { return &backends.Error{Code: code} }
	waitsForTurn := func(d *Decision) { d.begins = &beginning{waitsForTurn: true} }
	for name, test := range map[string]struct {
		err        error
		starting   bool
		filling    bool
		change     func(*Decision)
		least, top time.Duration
		backsOff   bool
	}{
		"nothing is amiss":          {},
		"it waits for a backend":    {change: func(d *Decision) { d.waiting = "an agent" }, least: 30 * time.Second, top: 2 * time.Minute},
		"it waits for its turn":     {change: waitsForTurn, least: 2 * time.Minute, top: 10 * time.Minute},
		"it waits for both":         {change: func(d *Decision) { waitsForTurn(d); d.waiting = "its turn" }, least: 2 * time.Minute, top: 10 * time.Minute},
		"a cluster may be given up": {change: func(d *Decision) { d.placed.choice = &placement.Choice{RequeueAfter: time.Second} }, least: time.Second, top: time.Second},
		"a removal may be over":     {change: func(d *Decision) { d.requeueAfter = 2 * time.Second }, least: 2 * time.Second, top: 2 * time.Second},
		"a wave may have soaked": {change: func(d *Decision) {
			d.handOver = &handOver{orders: migration.Orders{RequeueAfter: time.Second}}
			d.placed.choice = &placement.Choice{RequeueAfter: time.Millisecond}
		}, least: time.Second, top: time.Second},
		"the spec is wrong":            {err: refusal(backends.CodeInvalidTemplate)},
		"a right is missing":           {err: refusal(backends.CodeForbidden), least: 5 * time.Second, top: time.Minute},
		"it is away":                   {err: refusal(backends.CodeUnavailable), least: 5 * time.Second, top: time.Minute},
		"it is not ready":              {err: refusal(backends.CodeNotReady), least: 5 * time.Second, top: time.Minute},
		"the operator starts":          {err: refusal(backends.CodeNotReady), starting: true, least: 50 * time.Millisecond, top: 5 * time.Second},
		"its objects are being read":   {err: beingRead(), filling: true, least: 5 * time.Second, top: time.Minute},
		"they are, and something else": {err: refusal(backends.CodeNotReady), filling: true, least: 5 * time.Second, top: time.Minute},
		"they are, for ever":           {err: beingRead(), least: 5 * time.Second, top: time.Minute},
		"the operator starts, denied":  {err: refusal(backends.CodeForbidden), starting: true, least: 5 * time.Second, top: time.Minute},
		"nobody knows":                 {err: errors.New("what"), backsOff: true},
	} {
		d := moving(t)
		d.handOver, d.in.FleetWorkload.Status.Migration, d.record.migration = nil, nil, nil
		d.work.kind, d.err, d.in.Starting, d.in.Filling = d.work.plan.Kind, test.err, test.starting, test.filling
		if test.change != nil {
			test.change(d)
		}
		got := d.result()
		if got.RequeueAfter < test.least || got.RequeueAfter > test.top || (got.Err != nil) != test.backsOff {
			t.Errorf("%s: after %s, %v", name, got.RequeueAfter, got.Err)
		}
		if unchanged := test.starting && backends.CodeOf(test.err) == backends.CodeNotReady || test.filling && backends.Filling(test.err); got.Unchanged != unchanged {
			t.Errorf("%s: the status stays: %v", name, got.Unchanged)
		}
	}
}

// TestScaleIsOfWhatWasAsked: of a workload that each cluster runs in full, spec.replicas is what one of them runs.
func TestScaleIsOfWhatWasAsked(t *testing.T) {
	for division, want := range map[v1alpha1.DivisionType]int32{v1alpha1.DivisionTypeDivided: 4, v1alpha1.DivisionTypeDuplicated: 2} {
		d := moving(t)
		d.handOver, d.in.FleetWorkload.Status.Migration, d.record.migration = nil, nil, nil
		d.work.kind, d.in.FleetWorkload.Spec.Placement.Division.Type = d.work.plan.Kind, division
		var err error
		if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, []string{"m1", "m2"}, map[string]int32{"m1": 2, "m2": 2}); err != nil {
			t.Fatal(err)
		}
		d.observed.Clusters = reports(d, "m1", "m2")
		if got := d.result().Status.Scale; got == nil || ptr.Deref(got.Replicas, -1) != want {
			t.Errorf("%s: %+v", division, got)
		}
	}
}

// TestWhatIsSaidOfTheChoice: clusters that are missing for a moment are named, and only then.
func TestWhatIsSaidOfTheChoice(t *testing.T) {
	const lacks = "no longer chosen, and left as they are for 30 seconds in case they come back: m2"
	for name, test := range map[string]struct {
		missing, unused, want []string
	}{
		"all are there":                {nil, nil, []string{"2 clusters"}},
		"one is missing":               {[]string{"m2"}, nil, []string{"2 clusters", lacks}},
		"an override is for none":      {nil, []string{"spec.overrides[0]"}, []string{"2 clusters", "spec.overrides[0]: selects none of the chosen clusters"}},
		"one is missing, one for none": {[]string{"m2"}, []string{"o"}, []string{"2 clusters", "o: selects none of the chosen clusters", lacks}},
	} {
		d := moving(t)
		d.work.kind, d.placed.choice = d.work.plan.Kind, &placement.Choice{Message: "2 clusters"}
		d.placed.missing, d.placed.unused = test.missing, test.unused
		if got := d.facts(nil).Choice; !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestReportsBeforeAndAfterTargetsAreKnown: before, what a cluster has is taken for what is wanted, and that is not remembered.
func TestReportsBeforeAndAfterTargetsAreKnown(t *testing.T) {
	d := moving(t)
	d.work.kind, d.observed.Clusters = d.work.plan.Kind, reports(d, "m1", "m2")
	d.observed.Clusters[1].Presence = backends.PresenceRemoving
	if got := d.reports(); len(got) != 2 || !got[0].Target || *got[0].Desired != 2 || got[1].Target {
		t.Errorf("before: %+v", got)
	}
	d.placed.targets = []backends.Target{{Cluster: "m1", Mode: backends.ModeRemove}, {Cluster: "m2"}}
	if got := d.reports(); len(got) != 2 || got[0].Target || got[0].Desired != nil || !got[1].Target {
		t.Errorf("after: %+v", got)
	}
}

// TestAFailedOverCluster: is one that is left and cannot be reached, or is not listed any more, where failover is asked for.
func TestAFailedOverCluster(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		want   bool
	}{
		"out of reach": {func(d *Decision) { d.fleet.Clusters[1].Ready = metav1.ConditionUnknown }, true},
		"not listed":   {func(d *Decision) { d.fleet.Clusters = d.fleet.Clusters[:1] }, true},
		"in reach":     {func(*Decision) {}, false},
		"without failover": {func(d *Decision) {
			d.fleet.Clusters, d.in.FleetWorkload.Spec.Placement.Failover = d.fleet.Clusters[:1], nil
		}, false},
		"still wanted":            {func(d *Decision) { d.fleet.Clusters, d.placed.targets[1].Mode = d.fleet.Clusters[:1], backends.ModeOwn }, false},
		"targets are not known":   {func(d *Decision) { d.fleet.Clusters, d.placed.targets = d.fleet.Clusters[:1], nil }, false},
		"given up, and in reach":  {func(d *Decision) { d.placed.choice = &placement.Choice{GivenUp: []string{"m2"}} }, true},
		"others are given up now": {func(d *Decision) { d.placed.choice = &placement.Choice{GivenUp: []string{"m1"}} }, false},
	} {
		d := moving(t)
		d.work.kind, d.observed.Clusters = d.work.plan.Kind, reports(d, "m2")
		d.in.FleetWorkload.Spec.Placement.Failover = &v1alpha1.Failover{}
		d.placed.targets = []backends.Target{{Cluster: "m1"}, {Cluster: "m2", Mode: backends.ModeRemove}}
		test.change(d)
		for _, r := range d.reports() {
			if r.Name == "m2" && r.GivenUp != test.want {
				t.Errorf("%s: given up: %v", name, r.GivenUp)
			}
		}
	}
}

// TestAHandOverIsShownBeforeItsBackendsAreRead: it goes on while one of them is away, and one that has not begun is no migration.
func TestAHandOverIsShownBeforeItsBackendsAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		want   bool
	}{
		"its backends are read":     {func(*Decision) {}, true},
		"one of them is away":       {func(d *Decision) { d.handOver = nil }, true},
		"it has not begun":          {func(d *Decision) { d.handOver, d.record.migration.Phase = nil, v1alpha1.MigrationPhaseValidating }, false},
		"nothing is to change hand": {func(d *Decision) { d.handOver, d.record.migration = nil, nil }, false},
	} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		test.change(d)
		if got := d.facts(nil).Migrating; strings.HasPrefix(got, "moving from backend one to two") != test.want || (got != "") != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestASilentClusterHasNoState (law 4): silence is not a report of nothing.
func TestASilentClusterHasNoState(t *testing.T) {
	d := moving(t)
	d.work.kind, d.observed.Clusters = d.work.plan.Kind, reports(d, "m1", "m2")
	d.observed.Clusters[1].Status = nil
	for _, r := range d.reports() {
		if (r.State != nil) != (r.Name == "m1") {
			t.Errorf("%s: %+v", r.Name, r.State)
		}
	}
}

// TestWhatAClusterIsMeasuredBy (law 4): the number that it is to run by now, or else the one that it was asked for; without either nobody knows.
func TestWhatAClusterIsMeasuredBy(t *testing.T) {
	three := int32(3)
	for name, test := range map[string]struct {
		target  backends.Target
		asked   *int32
		left    *backends.Left
		desired int32
	}{
		"by its target":             {backends.Target{Replicas: &three}, ptr.To(int32(2)), nil, 3},
		"by what it was told":       {backends.Target{}, &three, nil, 3},
		"by nothing known":          {backends.Target{}, nil, nil, -1},
		"by what somebody has left": {backends.Target{Replicas: &three}, &three, &backends.Left{Replicas: ptr.To(int32(5))}, 5},
		"by its target, unreported": {backends.Target{Replicas: &three}, &three, &backends.Left{}, 3},
	} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		o := reports(d, "m1")[0]
		o.Asked, o.Left = test.asked, test.left
		if got := d.interpret("one", test.target, o); got == nil || ptr.Deref(got.Desired, -1) != test.desired {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTheOtherBackend (law 12): it is said which backend a workload leaves behind, from when it is to move until it has; and then whether
// that migration has looked at all that runs. That is read from records, so that it stays over restarts and without that backend.
func TestTheOtherBackend(t *testing.T) {
	const completed, rolledBack = v1alpha1.MigrationPhaseCompleted, v1alpha1.MigrationPhaseRolledBack
	m := func(phase v1alpha1.MigrationPhase, history ...v1alpha1.MigrationRecord) *v1alpha1.MigrationStatus {
		return &v1alpha1.MigrationStatus{From: "one", To: "two", Phase: phase, History: history}
	}
	ended := func(phase v1alpha1.MigrationPhase) v1alpha1.MigrationRecord {
		return v1alpha1.MigrationRecord{From: "one", To: "two", Phase: phase, Clusters: []v1alpha1.MigrationClusterStatus{
			{Name: "m1", TargetName: "there"}, {Name: "m2"},
		}}
	}
	earlier := v1alpha1.MigrationRecord{From: "three", To: "one", Phase: completed}
	still := func(other string) *aggregate.Other { return &aggregate.Other{Name: other, Moving: true} }
	past := func(other string, unasked ...string) *aggregate.Other {
		return &aggregate.Other{Name: other, Unasked: unasked}
	}
	for name, test := range map[string]struct {
		wants, has string
		record     *v1alpha1.MigrationStatus
		runs       string
		want       *aggregate.Other
	}{
		"it has never moved":                       {"one", "one", nil, "m1", nil},
		"it has no backend":                        {"one", "", nil, "", nil},
		"another backend is asked for":             {"two", "one", nil, "m1", nil},
		"it was thought of":                        {"one", "one", m(v1alpha1.MigrationPhaseValidating), "m1", nil},
		"it is thought of":                         {"two", "one", m(v1alpha1.MigrationPhaseValidating), "m1", still("one")},
		"it moves":                                 {"two", "one", m(v1alpha1.MigrationPhaseShadowing), "m1", still("one")},
		"its new backend has it":                   {"two", "two", m(v1alpha1.MigrationPhaseReleasing), "m1", still("one")},
		"it is too late to turn back":              {"one", "two", m(v1alpha1.MigrationPhaseReleasing), "m1", still("one")},
		"it turns back":                            {"one", "one", m(v1alpha1.MigrationPhaseRollingBack), "m1", still("two")},
		"it turns back for a third":                {"three", "one", m(v1alpha1.MigrationPhaseRollingBack), "m1", still("two")},
		"a wave went back":                         {"two", "one", m(rolledBack), "m1", still("one")},
		"it moves, and its spec cannot be read":    {"", "one", m(v1alpha1.MigrationPhaseShadowing), "m1", still("one")},
		"it moves again":                           {"two", "one", m(v1alpha1.MigrationPhaseShadowing, earlier), "m1", still("one")},
		"it has moved":                             {"two", "two", m("", ended(completed), earlier), "there m2", past("one")},
		"it has moved, and its spec is unreadable": {"", "two", m("", ended(completed)), "there", past("one")},
		"it was turned back":                       {"one", "one", m("", ended(rolledBack), earlier), "m1 m2", past("two")},
		"it has moved, and has come to others":     {"two", "two", m("", ended(completed)), "there m4 m3", past("one", "m3", "m4")},
		"it was turned back, and has come":         {"one", "one", m("", ended(rolledBack)), "m1 m3", past("two", "m3")},
		"it goes by the names of its backend":      {"two", "two", m("", ended(completed)), "m1 m2", past("one", "m1")},
		"it has moved, and is to go back":          {"one", "two", m(v1alpha1.MigrationPhaseValidating, ended(completed)), "m2", still("two")},
		"it has moved, and back is asked for":      {"one", "two", m("", ended(completed)), "m2", still("two")},
		"it went back while it ran nowhere":        {"one", "one", m("", ended(completed)), "", past("two")},
		"and runs again":                           {"one", "one", m("", ended(completed)), "m2", past("two", "m2")},
		"it went on while it ran nowhere":          {"three", "three", m("", ended(completed)), "m2", past("two", "m2")},
	} {
		d := moving(t)
		d.in.FleetWorkload.Spec.Backend, d.record.backend, d.record.migration, d.handOver = test.wants, test.has, test.record, nil
		d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m9", Replicas: ptr.To(int32(0))}, {Name: "m8"}}}
		for _, cluster := range strings.Fields(test.runs) {
			d.record.placement.Clusters = append(d.record.placement.Clusters, v1alpha1.ClusterShare{Name: cluster, Replicas: ptr.To(int32(2))})
		}
		if got := d.other(); !equality.Semantic.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestWhatHoldsAReleaseUpIsSaid: the marks of the backend that goes, as its heir reports them.
func TestWhatHoldsAReleaseUpIsSaid(t *testing.T) {
	for phase, want := range map[v1alpha1.MigrationPhase][]string{
		v1alpha1.MigrationPhaseHandingOver: nil,
		v1alpha1.MigrationPhaseReleasing:   {"cluster m2: a, b"},
		v1alpha1.MigrationPhaseRollingBack: {"cluster m1: c"},
	} {
		d := moving(t)
		d.work.kind, d.record.migration.Phase = d.work.plan.Kind, phase
		d.handOver.source.observed.Clusters = []backends.ClusterObservation{{Cluster: "m1", Marks: []string{"c"}}}
		d.handOver.target.observed.Clusters = []backends.ClusterObservation{{Cluster: "m1"}, {Cluster: "m2", Marks: []string{"b", "a"}}}
		if got := d.facts(nil).Other; got == nil || !slices.Equal(got.Marks, want) {
			t.Errorf("%s: %+v, want %q", phase, got, want)
		}
	}
}

// TestFacts: what a status says beside reports.
func TestFacts(t *testing.T) {
	d := moving(t)
	d.work.kind, d.observed.Notes, d.work.plan.Notes = d.work.plan.Kind, []string{"the backend's"}, []string{"the plan's"}
	if got := d.facts(nil); !slices.Equal(got.Notes, []string{"the backend's", "the plan's"}) || got.Migrating == "" {
		t.Errorf("in a hand-over it notes %q, and says of it %q", got.Notes, got.Migrating)
	}
	d.handOver = nil
	if got := d.facts(nil).Migrating; got == "" {
		t.Error("before both backends are read, nothing is said of a hand-over")
	}
	d.record.migration.Phase = v1alpha1.MigrationPhaseValidating
	if got := d.facts(nil).Migrating; got != "" {
		t.Errorf("of a move that has not begun it says %q", got)
	}
	if got := d.facts(nil); got.Settled || !got.Reported {
		t.Errorf("before replicas are divided it says %+v", got)
	}
	d.placed.targets = []backends.Target{{Cluster: "m1"}}
	if !d.facts(nil).Settled {
		t.Error("that replicas are divided is not said")
	}
	if d.observed = nil; d.facts(nil).Reported {
		t.Error("what nobody was asked for is taken for a report")
	}
}

// TestAPausedClusterIsReported: as one that is wanted with what it keeps, once that is decided.
func TestAPausedClusterIsReported(t *testing.T) {
	d := moving(t)
	d.work.kind, d.observed.Clusters, d.placed.pinned = d.work.plan.Kind, reports(d, "m1"), map[string]*int32{"m1": ptr.To(int32(7))}
	if got := d.reports()[0]; got.Paused || *got.Desired != 2 {
		t.Errorf("before anything is decided: %+v", got)
	}
	d.placed.targets = []backends.Target{{Cluster: "m1", Mode: backends.ModeRemove}}
	if got := d.reports()[0]; !got.Paused || !got.Target || *got.Desired != 7 {
		t.Errorf("decided: %+v", got)
	}
}
