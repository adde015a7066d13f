package bulk

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// run is a migration of FleetWorkloads with one-letter names, driven by words.
type run struct {
	*Migration
	now time.Time
}

func of(rules Rules, all ...*v1alpha1.FleetWorkload) *run { return &run{New(rules, all, noon), noon} }

// start begins whoever is to begin, and says who that was. Nobody begins twice.
func (r *run) start() string {
	var names []string
	for range len(r.All()) + 1 {
		step := r.Next(r.now)
		if step.Start == nil {
			break
		}
		names = append(names, step.Start.Name)
		r.See(at(step.Start.Name, asked, notLooked), r.now)
	}
	return strings.Join(names, " ")
}

func (r *run) see(name string, changes ...change) { r.See(at(name, changes...), r.now) }

func four() []*v1alpha1.FleetWorkload {
	return []*v1alpha1.FleetWorkload{at("a"), at("b"), at("c"), at("d")}
}

func TestNext(t *testing.T) {
	verifying := moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)
	waits := []change{asked, verifying, asks}
	failed := []change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack), fails, asks}
	failing := []change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRollingBack), fails}
	for name, tc := range map[string]struct {
		rules func(*Rules)
		then  func(*run)
		// want is who begins after that; over whether nothing is awaited then.
		want string
		over bool
	}{
		"as many as may":                 {nil, func(*run) {}, "", false},
		"the next when one has arrived":  {nil, func(r *run) { r.see("a", onOCM) }, "c", false},
		"not while it is released":       {nil, func(r *run) { r.see("a", onOCM, moves("karmada", "ocm", v1alpha1.MigrationPhaseReleasing)) }, "", false},
		"who waits holds up nobody":      {nil, func(r *run) { r.see("a", waits...); r.see("b", waits...) }, "c d", false},
		"who goes on again counts again": {nil, func(r *run) { r.see("a", waits...); r.see("a", append(waits, approved)...) }, "", false},
		"who is deleted is not awaited":  {nil, func(r *run) { r.Gone(keyOf(at("a")), noon) }, "c", false},
		"one failure stops it":           {nil, func(r *run) { r.see("a", failed...) }, "", false},
		"one that goes back does too":    {nil, func(r *run) { r.see("a", failing...); r.see("b", onOCM) }, "", false},
		"also when it goes on":           {nil, func(r *run) { r.see("a", failed...); r.Next(noon); r.see("a", onOCM) }, "", false},
		"who is under way is awaited":    {nil, func(r *run) { r.see("a", failed...); r.see("b", onOCM) }, "", true},
		"one failure may be":             {func(r *Rules) { r.MaxFailures = 1 }, func(r *run) { r.see("a", failed...) }, "c", false},
		"one that goes back has a place": {func(r *Rules) { r.MaxFailures = 1 }, func(r *run) { r.see("a", failing...) }, "", false},
		"two may not":                    {func(r *Rules) { r.MaxFailures = 1 }, func(r *run) { r.see("a", failed...); r.see("b", failed...) }, "", true},
		"refused is failed":              {nil, func(r *run) { r.see("a", onOCM); r.Refuse(keyOf(at("c")), "forbidden", noon); r.see("b", onOCM) }, "", true},
		"a new place is for the first":   {nil, func(r *run) { r.see("a", onOCM); r.see("c", frozen) }, "d", false},
		"who was kept is in its place":   {nil, func(r *run) { r.see("c", frozen); r.see("a", onOCM); r.see("c") }, "c", false},
		"not waited for":                 {func(r *Rules) { r.Leave, r.AtOnce = true, 4 }, func(*run) {}, "", true},
		"left when the last has begun":   {func(r *Rules) { r.Leave = true }, func(*run) {}, "", false},
		"not waited for when stopped":    {func(r *Rules) { r.Leave = true }, func(r *run) { r.see("a", failed...) }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := toOCM
			if tc.rules != nil {
				tc.rules(&rules)
			}
			r := of(rules, four()...)
			if got := r.start(); got != strings.Join([]string{"a", "b", "c", "d"}[:rules.AtOnce], " ") {
				t.Fatalf("first begin: %s", got)
			}
			tc.then(r)
			if got := r.start(); got != tc.want {
				t.Errorf("then begin: %q, want %q", got, tc.want)
			}
			if step := r.Next(noon); step.Over != tc.over {
				t.Errorf("over: %v", step.Over)
			}
		})
	}
}

// It ends when all that is left waits for a person.
func TestEndsWithThoseThatWait(t *testing.T) {
	r := of(toOCM, at("a"), at("b", onOCM), at("c", frozen))
	r.start()
	r.see("a", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying), asks)
	if !r.Next(noon).Over || r.Outcome() != OutcomeIncomplete {
		t.Errorf("outcome %s, counts %+v", r.Outcome(), r.Counts())
	}
	want := Counts{Chosen: 3, AlreadyThere: 1, Waiting: 1, Skipped: 1, Clusters: 6, HandedOver: 3}
	if diff := cmp.Diff(want, r.Counts(), cmpopts.IgnoreUnexported(Counts{})); diff != "" {
		t.Error(diff)
	}
}

// Time alone makes a failure of one that is stalled, and a mended one goes on.
func TestPatience(t *testing.T) {
	r := of(toOCM, four()...)
	r.start()
	stalled := []change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseValidating), stalls(v1alpha1.ReasonMigrationNotPossible, noon)}
	r.see("a", stalled...)
	if step := r.Next(noon.Add(20 * time.Second)); step.PollAfter != 40*time.Second || r.Counts().Failed != 0 {
		t.Errorf("it is asked again after %s, counts %+v", step.PollAfter, r.Counts())
	}
	r.see("b", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseValidating), stalls(v1alpha1.ReasonMigrationNotPossible, noon.Add(-10*time.Second)))
	if step := r.Next(noon.Add(20 * time.Second)); step.PollAfter != 30*time.Second {
		t.Errorf("of two the patience with the one that is stalled longer ends first, and it is asked again after %s", step.PollAfter)
	}
	r.see("b", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseShadowing))
	r.News()
	if step := r.Next(noon.Add(time.Minute)); step.Start != nil || step.PollAfter != 0 || r.Counts().Failed != 1 || !r.Stopped() {
		t.Errorf("step %+v, counts %+v", step, r.Counts())
	}
	if news := r.News(); len(news) != 1 || news[0].State != Failed || news[0].FleetWorkload.Name != "a" {
		t.Errorf("news: %+v", news)
	}
	r.see("a", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseShadowing))
	if r.Counts().Failed != 0 || r.Counts().UnderWay != 2 || r.Outcome() != OutcomeStopped {
		t.Errorf("outcome %s, counts %+v", r.Outcome(), r.Counts())
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		r.see(name, onOCM)
	}
	if r.Outcome() != OutcomeComplete {
		t.Errorf("all are there, and the outcome is %s", r.Outcome())
	}
}

// Its outcome by what became of each.
func TestOutcome(t *testing.T) {
	verifying := moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)
	for name, tc := range map[string]struct {
		rules Rules
		then  func(*run)
		want  Outcome
	}{
		"both have arrived":               {toOCM, func(r *run) { r.see("a", onOCM); r.see("b", onOCM) }, OutcomeComplete},
		"one has, the other one is gone":  {toOCM, func(r *run) { r.see("a", onOCM); r.Gone(keyOf(at("b")), noon) }, OutcomeComplete},
		"one is deleted, the other waits": {toOCM, func(r *run) { r.see("a", deleted); r.see("b", asked, verifying, asks) }, OutcomeIncomplete},
		"one fails, the other arrives":    {toOCM, func(r *run) { r.see("a"); r.see("b", onOCM) }, OutcomeStopped},
		"one is not waited for":           {Rules{To: "ocm", AtOnce: 2, Leave: true}, func(r *run) { r.see("a", onOCM) }, OutcomeLeft},
	} {
		r := of(tc.rules, at("a"), at("b"))
		r.start()
		tc.then(r)
		if step := r.Next(noon); !step.Over || r.Outcome() != tc.want {
			t.Errorf("%s: over %v, outcome %s, want %s", name, step.Over, r.Outcome(), tc.want)
		}
	}
}

// What a person is shown stands in the order of the migration; who rests or has arrived is left out.
func TestNotable(t *testing.T) {
	verifying := moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)
	var all []*v1alpha1.FleetWorkload
	for _, name := range strings.Split("abcdefghijkl", "") {
		all = append(all, at(name))
	}
	rules := toOCM
	rules.AtOnce, rules.MaxFailures = 10, 10
	r := of(rules, all...)
	if first := r.start(); first != "a b c d e f g h i j" {
		t.Fatalf("first begin: %s", first)
	}
	r.see("b", onOCM)
	r.see("d", asked, verifying, asks)
	r.see("f", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRollingBack), fails)
	r.see("h") // somebody set spec.backend back
	var got []string
	for _, e := range r.Notable() {
		got = append(got, e.FleetWorkload.Name+" "+string(e.State))
	}
	want := []string{"a UnderWay", "c UnderWay", "d WaitsForPerson", "e UnderWay", "f Failing", "g UnderWay", "h Failed", "i UnderWay", "j UnderWay"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A phase is told once for each wave, from when it was seen first.
func TestPhases(t *testing.T) {
	after := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	in := func(phase v1alpha1.MigrationPhase, wave *int32) change {
		return func(fw *v1alpha1.FleetWorkload) {
			moves("karmada", "ocm", phase)(fw)
			fw.Status.Migration.Wave = wave
		}
	}
	one, two := ptr.To[int32](1), ptr.To[int32](2)
	r := of(toOCM, at("a"))
	for s, c := range []change{
		in(v1alpha1.MigrationPhaseValidating, nil), in(v1alpha1.MigrationPhaseValidating, nil),
		in(v1alpha1.MigrationPhaseVerifying, one), in(v1alpha1.MigrationPhaseVerifying, one), in(v1alpha1.MigrationPhaseVerifying, two),
		moves("karmada", "k2", v1alpha1.MigrationPhaseReleasing), // another migration
	} {
		r.See(at("a", asked, c), after(s))
	}
	want := []Phase{{v1alpha1.MigrationPhaseValidating, nil, after(0)}, {v1alpha1.MigrationPhaseVerifying, one, after(2)}, {v1alpha1.MigrationPhaseVerifying, two, after(4)}}
	if diff := cmp.Diff(want, r.All()[0].Phases); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLeft(t *testing.T) {
	r := of(toOCM, four()...)
	r.start()
	if got := r.Left(noon); got != 0 {
		t.Errorf("nobody knows yet, and it says %s", got)
	}
	r.now = noon.Add(time.Minute)
	r.see("a", onOCM)
	r.start() // c
	for after, want := range map[time.Duration]time.Duration{
		// b's minute is over, c has its own before it, and d after that.
		time.Minute: time.Minute, 90 * time.Second: 45 * time.Second,
	} {
		if got := r.Left(noon.Add(after)); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
	r.see("b", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying), asks)
	r.start() // d
	r.now = noon.Add(time.Hour)
	r.see("b", onOCM)
	if got := r.Left(r.now); got != time.Second {
		t.Errorf("what a person took tells nothing of others, and it says %s", got)
	}
}

// One took a minute and another one three: each of the others is taken to take two.
func TestLeftByTheMean(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(*run)
		want time.Duration
	}{
		"two have just begun, and two are to": {func(*run) {}, 4 * time.Minute},
		"one goes back, and has its minutes":  {func(r *run) { r.see("c", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRollingBack), fails) }, 4 * time.Minute},
		"one waits for a person, and not here": {func(r *run) {
			r.see("c", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying), asks)
			r.start()
		}, 3 * time.Minute},
	} {
		rules := toOCM
		rules.MaxFailures = 1
		r := of(rules, at("a"), at("b"), at("c"), at("d"), at("e"), at("f"))
		r.start()
		r.See(at("a", onOCM), noon.Add(time.Minute))
		r.See(at("b", onOCM), noon.Add(3*time.Minute))
		r.now = noon.Add(3 * time.Minute)
		r.start() // c d
		tc.then(r)
		if got := r.Left(r.now); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A report has what is on record of the clusters: of the migration that is under way, or else of the newest one, if it is to the backend.
func TestRecordedClusters(t *testing.T) {
	history := func(to string) change {
		return func(fw *v1alpha1.FleetWorkload) {
			if fw.Status.Migration == nil {
				fw.Status.Migration = &v1alpha1.MigrationStatus{}
			}
			fw.Status.Migration.History = []v1alpha1.MigrationRecord{{To: to, Phase: v1alpha1.MigrationPhaseCompleted, Clusters: []v1alpha1.MigrationClusterStatus{{Name: "old"}}}}
		}
	}
	for name, tc := range map[string]struct {
		fw   []change
		want string
	}{
		"none":                             {nil, ""},
		"under way":                        {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)}, "m1 m2"},
		"under way, after an earlier one":  {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying), history("ocm")}, "m1 m2"},
		"over":                             {[]change{onOCM, history("ocm")}, "old"},
		"over, and elsewhere":              {[]change{history("k2")}, ""},
		"leaves again, after it was there": {[]change{moves("ocm", "karmada", v1alpha1.MigrationPhaseVerifying), history("ocm")}, "old"},
	} {
		var got []string
		for _, c := range of(toOCM, at("a", tc.fw...)).Report(OutcomeLeft, noon, noon).Workloads[0].Clusters {
			got = append(got, c.Name)
		}
		if joined := strings.Join(got, " "); joined != tc.want {
			t.Errorf("%s: %q, want %q", name, joined, tc.want)
		}
	}
}

func TestReport(t *testing.T) {
	seen := func(uid string, ready int32) *v1alpha1.MigrationEvidence {
		return &v1alpha1.MigrationEvidence{UID: uid, PodRevision: "r1", Ready: &ready, Restarts: ptr.To(ready)}
	}
	r := of(toOCM, at("a"), at("b"), at("c", onOCM))
	r.start()
	r.now = noon.Add(time.Second)
	r.see("a", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseShadowing))
	r.see("a", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseShadowing))
	r.now = noon.Add(2 * time.Second)
	r.see("a", asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying))
	r.now = noon.Add(3 * time.Second)
	clusters := []v1alpha1.MigrationClusterStatus{
		{Name: "m1", Before: seen("1", 3), After: seen("1", 4)}, {Name: "m2", Before: seen("2", 3), After: seen("3", 2)},
		{Name: "m3", Before: seen("4", 3), After: seen("4", 3)},
	}
	r.see("a", onOCM, func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Migration = &v1alpha1.MigrationStatus{History: []v1alpha1.MigrationRecord{{
			From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseCompleted, FinishedAt: metav1.Time{Time: noon.Add(3 * time.Second)}, Clusters: clusters,
		}}}
	})
	r.see("b")
	one := ptr.To[int32](1)
	want := Report{
		To: "ocm", Outcome: OutcomeStopped, StartedAt: noon, EndedAt: noon.Add(4 * time.Second),
		Summary:  Counts{Chosen: 3, Moved: 1, AlreadyThere: 1, Failed: 1, Clusters: 6, HandedOver: 4},
		Evidence: Evidence{Clusters: 3, SameObject: 2, OtherObject: 1, SamePods: 3, FewerReady: 1, Restarts: ptr.To(0)},
		Workloads: []Workload{
			{
				Namespace: "shop", Name: "a", From: "karmada", To: "ocm", Result: Moved, StartedAt: noon, EndedAt: noon.Add(3 * time.Second), Clusters: clusters,
				Phases: []Phase{
					{v1alpha1.MigrationPhaseShadowing, one, noon.Add(time.Second)}, {v1alpha1.MigrationPhaseVerifying, one, noon.Add(2 * time.Second)},
				},
			},
			{
				Namespace: "shop", Name: "b", From: "karmada", To: "ocm", Result: Failed, StartedAt: noon,
				Message: "spec.backend was set to karmada meanwhile; a GitOps controller that owns the field does that: change it in its source",
			},
			{Namespace: "shop", Name: "c", To: "ocm", Result: AlreadyThere},
		},
	}
	r.Next(r.now)
	if diff := cmp.Diff(want, r.Report(r.Outcome(), noon, noon.Add(4*time.Second)), cmpopts.IgnoreUnexported(Counts{})); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
