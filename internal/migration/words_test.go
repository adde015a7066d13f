package migration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// begun is a migration of m1, in its only wave, that came to a phase at a time.
func begun(phase v1alpha1.MigrationPhase, when time.Time) v1alpha1.MigrationStatus {
	wave := int32(1)
	rec := v1alpha1.MigrationStatus{From: "a", To: "b", Phase: phase, WaveStartedAt: at(when), Clusters: []v1alpha1.MigrationClusterStatus{
		{Name: "m1", Wave: &wave, Phase: phase},
	}}
	if phase != v1alpha1.MigrationPhaseShadowing {
		rec.Wave = &wave
		rec.Clusters[0].Before = &v1alpha1.MigrationEvidence{UID: "u", PodRevision: "p", Health: v1alpha1.HealthHealthy, Ready: ptr.To(int32(4))}
	}
	return rec
}

// healthy is a target that runs everything as it ran before.
func healthy() Report {
	return Report{Rendered: true, Current: true, Asked: ptr.To(int32(4)), Evidence: v1alpha1.MigrationEvidence{
		UID: "u", PodRevision: "p", Health: v1alpha1.HealthHealthy, Ready: ptr.To(int32(4)),
	}}
}

func input(after time.Duration, p Pair) Input {
	return Input{
		Now: now.Add(after), Forward: true, Waves: []Wave{{Soak: soak}}, Timeout: timeout, Clusters: map[string]Pair{"m1": p},
	}
}

// TestWhatObservingWaitsFor: before a cluster is handed over people read what is missing.
func TestWhatObservingWaitsFor(t *testing.T) {
	runs := Report{Rendered: true, Current: true, Evidence: v1alpha1.MigrationEvidence{UID: "u"}}
	observes := Report{Presence: backends.PresenceReleased, Rendered: true, Evidence: v1alpha1.MigrationEvidence{UID: "u"}}
	for name, c := range map[string]struct {
		source, target func(*Report)
		want           string
	}{
		"nothing":                  {nil, nil, ""},
		"gone from both":           {func(r *Report) { r.Presence = backends.PresenceUnknown }, func(r *Report) { r.Presence = backends.PresenceUnknown }, ""},
		"gone from the old one":    {func(r *Report) { *r = Report{Presence: backends.PresenceUnknown} }, nil, ""},
		"named by the old one":     {func(r *Report) { *r = Report{Presence: backends.PresenceNamed} }, nil, ""},
		"not known to the new one": {nil, func(r *Report) { r.Presence = backends.PresenceUnknown }, "the new backend does not know the cluster any more"},
		"no report":                {func(r *Report) { r.Current = false }, nil, "the present backend does not report on the present manifest"},
		"another manifest":         {func(r *Report) { r.Rendered = false }, nil, "the present backend does not report on the present manifest"},
		"still removing":           {nil, func(r *Report) { r.Presence = backends.PresenceRemoving }, "the new backend still removes what it had there"},
		"nothing there":            {nil, func(r *Report) { r.Presence = backends.PresenceAbsent }, "the new backend has no object with this manifest yet"},
		"another manifest there":   {nil, func(r *Report) { r.Rendered = false }, "the new backend has no object with this manifest yet"},
		"it may write":             {nil, func(r *Report) { r.Presence = backends.PresenceActive }, "the new backend has not confirmed that it does not write"},
		"it may write, and why":    {nil, func(r *Report) { r.Presence, r.Message = backends.PresenceActive, "no agent" }, "the new backend has not confirmed that it does not write: no agent"},
		"it says too much": {
			nil, func(r *Report) { r.Presence, r.Message = backends.PresenceActive, strings.Repeat("x", 900) },
			"the new backend has not confirmed that it does not write: " + strings.Repeat("x", 800),
		},
		"another object":    {nil, func(r *Report) { r.Evidence.UID = "v" }, "the backends speak of different objects: u and v"},
		"an unknown object": {nil, func(r *Report) { r.Evidence.UID = "" }, ""},
	} {
		p := Pair{Source: runs, Target: observes}
		if c.source != nil {
			c.source(&p.Source)
		}
		if c.target != nil {
			c.target(&p.Target)
		}
		want := v1alpha1.MigrationPhaseShadowing
		if c.want == "" {
			want = v1alpha1.MigrationPhaseHandingOver
		}
		rec, _ := Decide(begun(v1alpha1.MigrationPhaseShadowing, now), input(0, p))
		if rec.Phase != want || rec.Clusters[0].Message != c.want {
			t.Errorf("%s: %s, %q", name, rec.Phase, rec.Clusters[0].Message)
		}
	}
}

// TestWhatIsOverdueIsSaid: observing fails nothing; people are told once it takes longer than a wave may.
func TestWhatIsOverdueIsSaid(t *testing.T) {
	p := Pair{Source: Report{Rendered: true, Current: true}, Target: Report{Presence: backends.PresenceAbsent}}
	for after, want := range map[time.Duration]struct {
		after time.Duration
		says  string
	}{
		time.Minute:           {timeout - time.Minute, ""},
		timeout - time.Second: {time.Second, ""},
		timeout:               {0, "cluster m1: not within 10m0s: the new backend has no object with this manifest yet"},
		2 * timeout:           {0, "cluster m1: not within 10m0s: the new backend has no object with this manifest yet"},
	} {
		rec, orders := Decide(begun(v1alpha1.MigrationPhaseShadowing, now), input(after, p))
		if rec.Phase != v1alpha1.MigrationPhaseShadowing || orders.RequeueAfter != want.after || orders.Overdue != want.says {
			t.Errorf("after %s: %s, again after %s, %q", after, rec.Phase, orders.RequeueAfter, orders.Overdue)
		}
	}
	untimed := begun(v1alpha1.MigrationPhaseShadowing, now)
	untimed.WaveStartedAt = nil
	if rec, orders := Decide(untimed, input(time.Hour, p)); orders.RequeueAfter != timeout || rec.WaveStartedAt == nil {
		t.Errorf("time begins when it is looked at first: again after %s", orders.RequeueAfter)
	}
}

// TestWhatAWaveWaitsFor: what the new backend has not shown yet, of a cluster that is handed over.
func TestWhatAWaveWaitsFor(t *testing.T) {
	released := Report{Presence: backends.PresenceReleased}
	for name, c := range map[string]struct {
		change func(*v1alpha1.MigrationClusterStatus, *Pair)
		want   string
	}{
		"nothing": {func(*v1alpha1.MigrationClusterStatus, *Pair) {}, ""},
		"gone": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) {
			p.Source.Presence, p.Target.Presence = backends.PresenceUnknown, backends.PresenceUnknown
		}, ""},
		"the old one":    {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Source.Presence = backends.PresenceActive }, "the present backend has not confirmed that it has stopped"},
		"removing":       {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Source.Presence = backends.PresenceRemoving }, "the present backend has not confirmed that it has stopped"},
		"leaving":        {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Source.Presence = backends.PresenceLeaving }, ""},
		"not taken over": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Presence = backends.PresenceReleased }, "the new backend has not taken it over"},
		"not applied": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) {
			p.Target.Current, p.Target.Message = false, "forbidden"
		}, "the new backend has not taken it over: forbidden"},
		"another manifest": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Rendered = false }, "the new backend has not taken it over"},
		"on its way": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) {
			p.Target.Evidence.Health = v1alpha1.HealthProgressing
		}, "it is Progressing"},
		"ill": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Evidence.Health = v1alpha1.HealthDegraded }, "it is Degraded"},
		"as ill as before": {func(c *v1alpha1.MigrationClusterStatus, p *Pair) {
			c.Before.Health, p.Target.Evidence.Health = v1alpha1.HealthDegraded, v1alpha1.HealthDegraded
		}, ""},
		"worse than before": {func(c *v1alpha1.MigrationClusterStatus, p *Pair) {
			c.Before.Health, p.Target.Evidence.Health = v1alpha1.HealthProgressing, v1alpha1.HealthDegraded
		}, "it is Degraded"},
		"not known before": {func(c *v1alpha1.MigrationClusterStatus, p *Pair) {
			c.Before, p.Target.Evidence.Health, p.Target.Evidence.Ready = nil, v1alpha1.HealthProgressing, ptr.To(int32(1))
		}, "it is Progressing"},
		"fewer pods": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Evidence.Ready = ptr.To(int32(3)) }, "3 pods are ready; before it were 4"},
		"fewer are wanted": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) {
			p.Target.Evidence.Ready, p.Target.Asked = ptr.To(int32(3)), ptr.To(int32(3))
		}, ""},
		"fewer than that": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) {
			p.Target.Evidence.Ready, p.Target.Asked = ptr.To(int32(2)), ptr.To(int32(3))
		}, "2 pods are ready; before it were 4"},
		"more are wanted":     {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Asked = ptr.To(int32(9)) }, ""},
		"no number was asked": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Asked = nil }, ""},
		"no number is known":  {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Evidence.Ready = nil }, ""},
		"no number was before": {func(c *v1alpha1.MigrationClusterStatus, p *Pair) {
			c.Before.Ready, p.Target.Evidence.Ready = nil, ptr.To(int32(0))
		}, ""},
		"a revision unknown": {func(_ *v1alpha1.MigrationClusterStatus, p *Pair) { p.Target.Evidence.PodRevision = "" }, ""},
	} {
		rec, p := begun(v1alpha1.MigrationPhaseHandingOver, now), Pair{Source: released, Target: healthy()}
		c.change(&rec.Clusters[0], &p)
		want := v1alpha1.MigrationPhaseVerifying
		if c.want != "" {
			want = v1alpha1.MigrationPhaseHandingOver
		}
		next, orders := Decide(rec, input(time.Minute, p))
		if next.Phase != want || next.Clusters[0].Message != c.want || c.want != "" && orders.RequeueAfter != timeout-time.Minute {
			t.Errorf("%s: %s, %q, again after %s", name, next.Phase, next.Clusters[0].Message, orders.RequeueAfter)
		}
		if late, _ := Decide(rec, input(timeout, p)); c.want != "" && late.Failure != "cluster m1: not within 10m0s: "+c.want {
			t.Errorf("%s, too long: %s, %q", name, late.Phase, late.Failure)
		}
	}
}

// TestWhatIsReplacedFailsAtOnce: another object, or pods of another revision, are what a hand-over must never come to.
func TestWhatIsReplacedFailsAtOnce(t *testing.T) {
	object, pods := healthy(), healthy()
	object.Evidence.UID, pods.Evidence.PodRevision = "v", "q"
	for want, report := range map[string]Report{
		"cluster m1: the object was u and is v":         object,
		"cluster m1: its pods' revision was p and is q": pods,
	} {
		for _, phase := range []v1alpha1.MigrationPhase{v1alpha1.MigrationPhaseHandingOver, v1alpha1.MigrationPhaseVerifying} {
			for pause, then := range map[bool]v1alpha1.MigrationPhase{false: v1alpha1.MigrationPhaseRollingBack, true: phase} {
				in := input(0, Pair{Source: Report{Presence: backends.PresenceAbsent}, Target: report})
				in.Pause = pause
				if next, _ := Decide(begun(phase, now), in); next.Failure != want || next.Phase != then {
					t.Errorf("%s, to pause %v: %s, %q", phase, pause, next.Phase, next.Failure)
				}
			}
		}
		stale := report
		stale.Current = false
		next, _ := Decide(begun(v1alpha1.MigrationPhaseHandingOver, now), input(0, Pair{Source: Report{Presence: backends.PresenceAbsent}, Target: stale}))
		if next.Failure != "" {
			t.Errorf("what is not current tells nothing: %q", next.Failure)
		}
	}
}

// TestAFreezeCostsAWaveNoTime: the time in which a backend could not be read does not count.
func TestAFreezeCostsAWaveNoTime(t *testing.T) {
	waits := Pair{Source: Report{Presence: backends.PresenceReleased}, Target: Report{Presence: backends.PresenceReleased}}
	rec := begun(v1alpha1.MigrationPhaseHandingOver, now)
	pass := func(after time.Duration, unavailable string) Orders {
		in := input(after, waits)
		in.Unavailable = unavailable
		var orders Orders
		rec, orders = Decide(rec, in)
		return orders
	}
	pass(4*time.Minute, "b")
	pass(50*time.Minute, "b")
	if orders := pass(64*time.Minute, ""); rec.Failure != "" || orders.RequeueAfter != 6*time.Minute {
		t.Errorf("%q, again after %s", rec.Failure, orders.RequeueAfter)
	}
	if pass(70*time.Minute, ""); rec.Failure == "" {
		t.Error("it never ends")
	}
	for phase, owns := range map[v1alpha1.MigrationPhase]bool{v1alpha1.MigrationPhaseReleasing: true, v1alpha1.MigrationPhaseVerifying: false} {
		in := input(0, waits)
		in.Unavailable = "a"
		if _, orders := Decide(begun(phase, now), in); orders.TargetOwns != owns || orders.Source != ActNothing || orders.Target != ActNothing {
			t.Errorf("frozen while %s: %+v", phase, orders)
		}
	}
	untimed := begun(v1alpha1.MigrationPhaseShadowing, now)
	untimed.WaveStartedAt, untimed.FrozenSince = nil, at(now)
	if next, _ := Decide(untimed, input(time.Hour, waits)); next.FrozenSince != nil {
		t.Error("it stays frozen")
	}
}

// TestASoakIsAsLongAsAsked: it ends when its time is over, and not before; a person's word is waited for without an end.
func TestASoakIsAsLongAsAsked(t *testing.T) {
	rec := begun(v1alpha1.MigrationPhaseVerifying, now)
	rec.PassingSince = at(now)
	p := Pair{Source: Report{Presence: backends.PresenceAbsent}, Target: healthy()}
	for after, want := range map[time.Duration]struct {
		phase v1alpha1.MigrationPhase
		after time.Duration
	}{
		0:                  {v1alpha1.MigrationPhaseVerifying, soak},
		soak - time.Second: {v1alpha1.MigrationPhaseVerifying, time.Second},
		soak:               {v1alpha1.MigrationPhaseReleasing, 0},
	} {
		if next, orders := Decide(rec, input(after, p)); next.Phase != want.phase || orders.RequeueAfter != want.after {
			t.Errorf("after %s: %s, again after %s", after, next.Phase, orders.RequeueAfter)
		}
	}
	late := p
	late.Target.Evidence.Ready = ptr.To(int32(3))
	for after, failure := range map[time.Duration]string{
		soak: "", soak + timeout - time.Second: "", soak + timeout: "cluster m1: not within 10m0s after its soak: 3 pods are ready; before it were 4",
	} {
		next, orders := Decide(rec, input(after, late))
		if next.Failure != failure || failure == "" && orders.RequeueAfter != soak+timeout-after {
			t.Errorf("late after %s: %q, again after %s", after, next.Failure, orders.RequeueAfter)
		}
	}
	silent := p
	silent.Target.Current = false
	if next, _ := Decide(rec, input(0, silent)); next.Clusters[0].Message != "the new backend does not report on it" {
		t.Errorf("%q", next.Clusters[0].Message)
	}
	unwatched := rec
	unwatched.PassingSince = nil
	if next, orders := Decide(unwatched, input(time.Hour, p)); next.Phase != v1alpha1.MigrationPhaseVerifying || orders.RequeueAfter != soak {
		t.Errorf("a soak that begins: %s, again after %s", next.Phase, orders.RequeueAfter)
	}
}

// TestARetryIsAPersons: a wave that failed is tried again when a person asks for just that.
func TestARetryIsAPersons(t *testing.T) {
	for _, phase := range []v1alpha1.MigrationPhase{v1alpha1.MigrationPhaseRolledBack, v1alpha1.MigrationPhaseVerifying} {
		rec := begun(phase, time.Unix(77, 0))
		rec.Failure = "cluster m1: it is Degraded"
		p := Pair{Source: Report{Presence: backends.PresenceReleased, Current: true}, Target: healthy()}
		asks, _ := Decide(rec, input(0, p))
		if asks.Approval != "retry-wave-1-77" || asks.Failure == "" || asks.Phase != phase {
			t.Errorf("%s: asks for %q", phase, asks.Approval)
		}
		in := input(0, p)
		in.Approval = "pass-wave-1-77"
		if next, _ := Decide(asks, in); next.Failure == "" {
			t.Errorf("%s: tried again by %q", phase, in.Approval)
		}
		in.Approval = "retry-wave-1-77"
		if next, _ := Decide(asks, in); next.Failure != "" || next.Approval != "" || next.WaveStartedAt.Unix() == 77 {
			t.Errorf("%s: %s, %q, %q", phase, next.Phase, next.Failure, next.Approval)
		}
	}
	untimed := begun(v1alpha1.MigrationPhaseRolledBack, now)
	untimed.Failure, untimed.WaveStartedAt = "why", nil
	if next, _ := Decide(untimed, input(0, Pair{})); next.Approval != "retry-wave-1-0" {
		t.Errorf("without a time it asks for %q", next.Approval)
	}
}

// TestWhatIsRememberedIsBounded: ten migrations, and the clusters of the last one only.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	var history []v1alpha1.MigrationRecord
	for n := range 12 {
		rec := begun(v1alpha1.MigrationPhaseReleasing, now)
		rec.History, rec.From = history, string(rune('a'+n))
		in := input(0, Pair{Source: Report{Presence: backends.PresenceAbsent}, Target: healthy()})
		in.SourceGone = true
		next, orders := Decide(rec, in)
		history = next.History
		if !orders.Ended || len(history) != min(n+1, 10) || history[0].From != rec.From || len(history[0].Clusters) != 1 ||
			history[0].Clusters[0].Phase != v1alpha1.MigrationPhaseCompleted || n > 0 && history[1].Clusters != nil {
			t.Fatalf("the %dth: %+v", n, history)
		}
	}
	for name, report := range map[string]func(*Report){
		"marks are left":  func(r *Report) { r.Marked = true },
		"nobody can tell": func(r *Report) { r.Current = false },
	} {
		p := Pair{Source: Report{Presence: backends.PresenceAbsent}, Target: healthy()}
		report(&p.Target)
		in := input(0, p)
		in.SourceGone = true
		if _, orders := Decide(begun(v1alpha1.MigrationPhaseReleasing, now), in); orders.Ended || !orders.TargetOwns || orders.Source != ActRelease {
			t.Errorf("%s: %+v", name, orders)
		}
		p.Target.Presence = backends.PresenceUnknown
		in.Clusters["m1"] = p
		if _, orders := Decide(begun(v1alpha1.MigrationPhaseReleasing, now), in); !orders.Ended {
			t.Errorf("%s on a cluster that is gone: %+v", name, orders)
		}
	}
}

// TestStrategies: what a spec says of waves, and what holds when it says nothing.
func TestStrategies(t *testing.T) {
	if Timeout(nil) != 10*time.Minute || Timeout(&v1alpha1.MigrationStrategy{}) != 10*time.Minute || Pauses(nil) || Pauses(&v1alpha1.MigrationStrategy{}) {
		t.Error("without a strategy")
	}
	if !Pauses(&v1alpha1.MigrationStrategy{OnFailure: v1alpha1.FailureActionPause}) {
		t.Error("it does not pause")
	}
	waves := Waves(&v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{{Approval: v1alpha1.ApprovalPolicyManual}, {}}})
	if len(waves) != 3 || !waves[0].Manual || waves[1].Manual || waves[2] != (Wave{}) {
		t.Errorf("%+v", waves)
	}
}

// TestWhoMayWrite: one side at most, and the source keeps what the target never had.
func TestWhoMayWrite(t *testing.T) {
	const own, adopt, observe = backends.ModeOwn, backends.ModeAdopt, backends.ModeObserve
	const active, released, absent, named = backends.PresenceActive, backends.PresenceReleased, backends.PresenceAbsent, backends.PresenceNamed
	before := &v1alpha1.MigrationEvidence{}
	for name, c := range map[string]struct {
		phase          v1alpha1.MigrationPhase
		before         *v1alpha1.MigrationEvidence
		source, target backends.Presence
		want           Modes
	}{
		"observed, never had":               {v1alpha1.MigrationPhaseShadowing, nil, active, active, Modes{own, observe}},
		"observed anew, and still held":     {v1alpha1.MigrationPhaseShadowing, before, released, active, Modes{observe, observe}},
		"observed anew, and let go":         {v1alpha1.MigrationPhaseShadowing, before, released, released, Modes{adopt, observe}},
		"handed over, and still held":       {v1alpha1.MigrationPhaseHandingOver, before, active, released, Modes{observe, observe}},
		"handed over, and let go":           {v1alpha1.MigrationPhaseHandingOver, before, released, released, Modes{observe, adopt}},
		"verified":                          {v1alpha1.MigrationPhaseVerifying, before, absent, active, Modes{observe, adopt}},
		"going back, and still held":        {v1alpha1.MigrationPhaseRollingBack, before, released, active, Modes{observe, observe}},
		"going back, and let go":            {v1alpha1.MigrationPhaseRollingBack, before, released, absent, Modes{adopt, observe}},
		"going back, never had":             {v1alpha1.MigrationPhaseRollingBack, nil, active, released, Modes{own, observe}},
		"going back, never had, still held": {v1alpha1.MigrationPhaseRollingBack, nil, active, active, Modes{observe, observe}},
		"handed over, and the old one would be back with its cluster": {v1alpha1.MigrationPhaseHandingOver, before, named, released, Modes{observe, observe}},
		"going back, and the new one would be back with its cluster":  {v1alpha1.MigrationPhaseRollingBack, before, released, named, Modes{observe, observe}},
		"gone back": {v1alpha1.MigrationPhaseRolledBack, before, active, released, Modes{adopt, observe}},
	} {
		cluster := v1alpha1.MigrationClusterStatus{Phase: c.phase, Before: c.before}
		if got := modes(cluster, Pair{Source: Report{Presence: c.source}, Target: Report{Presence: c.target}}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestTheSourceIsLeftAlone: while the target begins to observe, the source has nothing to do, unless it is not through with a change.
func TestTheSourceIsLeftAlone(t *testing.T) {
	runs, nothing := Report{Rendered: true, Current: true}, Report{Presence: backends.PresenceAbsent}
	for name, c := range map[string]struct {
		phase  v1alpha1.MigrationPhase
		before *v1alpha1.MigrationEvidence
		source Report
		want   Act
	}{
		"it runs":                 {v1alpha1.MigrationPhaseShadowing, nil, runs, ActNothing},
		"another manifest":        {v1alpha1.MigrationPhaseShadowing, nil, Report{Current: true}, ActApply},
		"not applied":             {v1alpha1.MigrationPhaseShadowing, nil, Report{Rendered: true}, ActApply},
		"it was the target's":     {v1alpha1.MigrationPhaseShadowing, &v1alpha1.MigrationEvidence{}, runs, ActApply},
		"it is being handed over": {v1alpha1.MigrationPhaseHandingOver, &v1alpha1.MigrationEvidence{}, runs, ActApply},
		"not even with evidence":  {v1alpha1.MigrationPhaseHandingOver, nil, runs, ActApply},
	} {
		rec := begun(c.phase, now)
		rec.Clusters[0].Before = c.before
		if _, orders := Decide(rec, input(0, Pair{Source: c.source, Target: nothing})); orders.Source != c.want || orders.Target != ActApply {
			t.Errorf("%s: %+v", name, orders)
		}
	}
}

// TestKeptNames: what is kept of a spec is found by its name, and taken for no other spec, FleetWorkload or generation.
func TestKeptNames(t *testing.T) {
	fw := &v1alpha1.FleetWorkload{}
	fw.Name, fw.UID = "web", "u"
	other := fw.DeepCopy()
	other.UID = "v"
	spec := v1alpha1.FleetWorkloadSpec{Backend: "b", Replicas: ptr.To(int32(3)), Suspend: ptr.To(true)}
	spec.Template.Raw = []byte(`{}`)
	kept := Kept(spec)
	if kept.Backend != "" || kept.Replicas != nil || kept.Suspend != nil || string(kept.Template.Raw) != `{}` || spec.Replicas == nil {
		t.Errorf("%+v of %+v", kept, spec)
	}
	name, err := KeptName(fw, kept, 7)
	if err != nil || !strings.HasPrefix(name, "web-migration-7-") {
		t.Fatalf("%s, %v", name, err)
	}
	edited := *kept.DeepCopy()
	edited.Template.Raw = []byte(`{"a":1}`)
	if !Names(name, fw, kept) || Names(name, other, kept) || Names(name, fw, edited) || Names(name+"x", fw, kept) {
		t.Error("it names another spec, or not this one")
	}
	broken := kept
	broken.Template.Raw = []byte(`{`)
	if name, err := KeptName(fw, broken, 7); err == nil || Names(name, fw, broken) {
		t.Errorf("what cannot be written has the name %s", name)
	}
}

// TestLongRevisionsOfPodsAreToldApart: what is kept of one has a bound, and two that differ at their ends only are two. One that an older
// operator has recorded whole is the same still.
func TestLongRevisionsOfPodsAreToldApart(t *testing.T) {
	name := strings.Repeat("w", 200)
	short := func(revision string) string {
		return evidence(Report{Evidence: v1alpha1.MigrationEvidence{PodRevision: revision}}).PodRevision
	}
	for revision, want := range map[string]bool{"": true, "web-1": true, name[:63]: true, name[:64]: false, name + "-1": false} {
		if got := short(revision); (got == revision) != want || len(got) > 63 {
			t.Errorf("%s is kept as %s", revision, got)
		}
	}
	for _, before := range []string{name + "-1", short(name + "-1")} {
		c := &v1alpha1.MigrationClusterStatus{Name: "m1", Before: &v1alpha1.MigrationEvidence{PodRevision: before}}
		for revision, want := range map[string]bool{name + "-1": false, name + "-2": true, "": false} {
			p := Pair{Target: Report{Current: true, Evidence: v1alpha1.MigrationEvidence{PodRevision: revision}}}
			if why := replaced(c, p); (why != "") != want || len(why) > 200 {
				t.Errorf("%s, then %s: %q", before, revision, why)
			}
		}
	}
}

// TestMessagesOfManyClustersFit: what all clusters share counts once, and what each says for itself is shortened, and says so.
func TestMessagesOfManyClustersFit(t *testing.T) {
	for name, test := range map[string]struct {
		message func(i int) string
		whole   int
	}{
		"the same":  {func(int) string { return strings.Repeat("x", 900) }, 1000},
		"none":      {func(int) string { return "" }, 1000},
		"all short": {func(i int) string { return fmt.Sprintf("%04d", i) }, 1000},
		"all long":  {func(i int) string { return fmt.Sprintf("%04d%s", i, strings.Repeat("x", 900)) }, 9},
	} {
		clusters := make([]v1alpha1.MigrationClusterStatus, 1000)
		for i := range clusters {
			clusters[i].Message = test.message(i)
		}
		fitMessages(clusters)
		whole, bytes, seen := 0, 0, map[string]bool{}
		for i, c := range clusters {
			switch {
			case c.Message == test.message(i):
				whole++
			case !strings.HasSuffix(c.Message, "..."):
				t.Fatalf("%s: %q does not say that it is shortened", name, c.Message)
			}
			if !seen[c.Message] {
				bytes, seen[c.Message] = bytes+len(c.Message), true
			}
		}
		if whole != test.whole || bytes > maxMessages {
			t.Errorf("%s: %d are whole, %d bytes", name, whole, bytes)
		}
	}
}
