package migration

import (
	"testing"
	"time"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// A cluster that is scaled while its wave soaks has pods that are not ready yet. That is no failure.
func TestPodsThatComeDuringASoakAreWaitedFor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ready, wave := int32(4), int32(1)
	before := v1alpha1.MigrationEvidence{UID: "u", Ready: &ready, Health: v1alpha1.HealthHealthy}
	rec := v1alpha1.MigrationStatus{
		From: "a", To: "b", Phase: v1alpha1.MigrationPhaseVerifying, Wave: &wave, WaveStartedAt: at(now), PassingSince: at(now),
		Clusters: []v1alpha1.MigrationClusterStatus{{Name: "m1", Wave: &wave, Phase: v1alpha1.MigrationPhaseVerifying, Before: &before}},
	}
	decide := func(after time.Duration, ready int32, health v1alpha1.Health) v1alpha1.MigrationStatus {
		desired := int32(6)
		next, _ := Decide(rec, Input{
			Now: now.Add(after), Forward: true, Waves: []Wave{{Soak: time.Minute}}, Timeout: time.Hour,
			Clusters: map[string]Pair{"m1": {Source: Report{Presence: backends.PresenceAbsent}, Target: Report{
				Rendered: true, Current: true, Asked: &desired,
				Evidence: v1alpha1.MigrationEvidence{UID: "u", Ready: &ready, Health: health},
			}}},
		})
		return next
	}
	for name, c := range map[string]struct {
		after  time.Duration
		ready  int32
		health v1alpha1.Health
		phase  v1alpha1.MigrationPhase
	}{
		"it is waited for":              {time.Second, 4, v1alpha1.HealthProgressing, v1alpha1.MigrationPhaseVerifying},
		"also when the soak is over":    {2 * time.Minute, 5, v1alpha1.HealthProgressing, v1alpha1.MigrationPhaseVerifying},
		"but not for ever":              {2 * time.Hour, 5, v1alpha1.HealthProgressing, v1alpha1.MigrationPhaseRollingBack},
		"a pod that went may come back": {time.Second, 3, v1alpha1.HealthProgressing, v1alpha1.MigrationPhaseVerifying},
		"or stays away for too long":    {2 * time.Hour, 3, v1alpha1.HealthHealthy, v1alpha1.MigrationPhaseRollingBack},
		"what is ill is not waited for": {time.Second, 4, v1alpha1.HealthDegraded, v1alpha1.MigrationPhaseRollingBack},
		"it passes":                     {2 * time.Minute, 6, v1alpha1.HealthHealthy, v1alpha1.MigrationPhaseReleasing},
	} {
		if got := decide(c.after, c.ready, c.health); got.Phase != c.phase {
			t.Errorf("%s: it is %s, %q", name, got.Phase, got.Failure)
		}
	}
}

// A wave that waits for a person may be approved while the migration is frozen, by a lost backend or because it is suspended.
func TestApprovalOutlivesAFreeze(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wave := int32(1)
	before := v1alpha1.MigrationEvidence{UID: "u"}
	rec := v1alpha1.MigrationStatus{
		From: "a", To: "b", Phase: v1alpha1.MigrationPhaseVerifying, Wave: &wave, WaveStartedAt: at(now), PassingSince: at(now),
		Clusters: []v1alpha1.MigrationClusterStatus{{Name: "m1", Wave: &wave, Phase: v1alpha1.MigrationPhaseVerifying, Before: &before}},
	}
	pass := func(after time.Duration, unavailable, approval string) {
		rec, _ = Decide(rec, Input{
			Now: now.Add(after), Forward: true, Waves: []Wave{{Manual: true}}, Timeout: time.Hour, Unavailable: unavailable, Approval: approval,
			Clusters: map[string]Pair{"m1": {Source: Report{Presence: backends.PresenceAbsent}, Target: Report{Rendered: true, Current: true, Evidence: before}}},
		})
	}
	pass(time.Second, "", "")
	asked := rec.Approval
	if asked == "" {
		t.Fatal("nobody is asked")
	}
	pass(time.Minute, "b", asked)
	if rec.FrozenSince == nil {
		t.Fatal("it is not frozen")
	}
	pass(10*time.Minute, "", "another")
	if rec.Approval != asked {
		t.Errorf("asked for %q, and for %q after it", asked, rec.Approval)
	}
	pass(11*time.Minute, "", asked)
	if rec.Phase != v1alpha1.MigrationPhaseReleasing {
		t.Errorf("it is %s", rec.Phase)
	}
}

// What is missing for a moment while a wave waits for a person, who may be away for a week, fails nothing and lets nothing go on.
func TestAWaveThatWaitsForAPersonIsNotFailedByTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	two, one, wave := int32(2), int32(1), int32(1)
	rec := v1alpha1.MigrationStatus{
		From: "a", To: "b", Phase: v1alpha1.MigrationPhaseVerifying, Wave: &wave, WaveStartedAt: at(now), PassingSince: at(now),
		Clusters: []v1alpha1.MigrationClusterStatus{{
			Name: "m1", Wave: &wave, Phase: v1alpha1.MigrationPhaseVerifying, Before: &v1alpha1.MigrationEvidence{UID: "u", Ready: &two},
		}},
	}
	pass := func(after time.Duration, ready *int32, approval string) {
		rec, _ = Decide(rec, Input{
			Now: now.Add(after), Forward: true, Waves: []Wave{{Manual: true}}, Timeout: time.Hour, Approval: approval,
			Clusters: map[string]Pair{"m1": {Source: Report{Presence: backends.PresenceAbsent}, Target: Report{
				Rendered: true, Current: true, Evidence: v1alpha1.MigrationEvidence{UID: "u", Ready: ready},
			}}},
		})
	}
	pass(time.Second, &two, "")
	asked := rec.Approval
	pass(100*time.Hour, &one, asked)
	if rec.Phase != v1alpha1.MigrationPhaseVerifying || asked == "" {
		t.Fatalf("a pod is missing: it is %s, %q, and asked for %q", rec.Phase, rec.Failure, asked)
	}
	pass(101*time.Hour, &two, asked)
	if rec.Phase != v1alpha1.MigrationPhaseReleasing {
		t.Errorf("it is back: it is %s, %q", rec.Phase, rec.Failure)
	}
}

// A wave that breaks while it waits for a person no longer asks to be let go on.
func TestWhatBreaksAsksNoLonger(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wave := int32(1)
	rec := v1alpha1.MigrationStatus{
		From: "a", To: "b", Phase: v1alpha1.MigrationPhaseVerifying, Wave: &wave, WaveStartedAt: at(now), PassingSince: at(now),
		Approval: "pass-wave-1-1", Clusters: []v1alpha1.MigrationClusterStatus{{
			Name: "m1", Wave: &wave, Phase: v1alpha1.MigrationPhaseVerifying, Before: &v1alpha1.MigrationEvidence{UID: "u"},
		}},
	}
	next, _ := Decide(rec, Input{
		Now: now, Forward: true, Waves: []Wave{{Manual: true}}, Timeout: time.Hour,
		Clusters: map[string]Pair{"m1": {Source: Report{Presence: backends.PresenceAbsent}, Target: Report{
			Rendered: true, Current: true, Evidence: v1alpha1.MigrationEvidence{UID: "another"},
		}}},
	})
	if next.Failure == "" || next.Phase != v1alpha1.MigrationPhaseRollingBack || next.Approval != "" {
		t.Errorf("it is %s, failed with %q, and asks for %q", next.Phase, next.Failure, next.Approval)
	}
}

// A source that has confirmed that it does not write may have to confirm it anew, as when its manifest changes. That is no failure of the wave.
func TestASourceThatConfirmsAnewIsWaitedFor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wave := int32(1)
	before := v1alpha1.MigrationEvidence{UID: "u", Health: v1alpha1.HealthHealthy}
	rec := v1alpha1.MigrationStatus{
		From: "a", To: "b", Phase: v1alpha1.MigrationPhaseVerifying, Wave: &wave, WaveStartedAt: at(now), PassingSince: at(now),
		Clusters: []v1alpha1.MigrationClusterStatus{{Name: "m1", Wave: &wave, Phase: v1alpha1.MigrationPhaseVerifying, Before: &before}},
	}
	for name, c := range map[string]struct {
		after  time.Duration
		source backends.Presence
		phase  v1alpha1.MigrationPhase
	}{
		"while it soaks":             {time.Second, backends.PresenceActive, v1alpha1.MigrationPhaseVerifying},
		"also when the soak is over": {2 * time.Minute, backends.PresenceActive, v1alpha1.MigrationPhaseVerifying},
		"but not for ever":           {2 * time.Hour, backends.PresenceActive, v1alpha1.MigrationPhaseRollingBack},
		"it has":                     {2 * time.Minute, backends.PresenceAbsent, v1alpha1.MigrationPhaseReleasing},
	} {
		next, _ := Decide(rec, Input{
			Now: now.Add(c.after), Forward: true, Waves: []Wave{{Soak: time.Minute}}, Timeout: time.Hour,
			Clusters: map[string]Pair{"m1": {
				Source: Report{Presence: c.source, Rendered: true}, Target: Report{Rendered: true, Current: true, Evidence: before},
			}},
		})
		if next.Phase != c.phase {
			t.Errorf("%s: it is %s, %q", name, next.Phase, next.Failure)
		}
	}
}
