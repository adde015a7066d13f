package aggregate

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

var now = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func healthy(name string, replicas int32) Report {
	return Report{
		Name: name, Target: true, Desired: &replicas,
		Cluster:  &backends.Cluster{Name: name, Ready: metav1.ConditionTrue},
		Observed: &backends.ClusterObservation{Cluster: name, Revision: "r1", Applied: metav1.ConditionTrue, Current: true, Status: map[string]any{}},
		State:    &interpreter.State{Replicas: &replicas, Ready: &replicas, Updated: &replicas, Available: &replicas, Health: v1alpha1.HealthHealthy},
	}
}

func facts(reports ...Report) Facts {
	return Facts{Generation: 3, Now: now, Revision: "r1", Reported: true, Settled: true, Reports: reports}
}

func ready(status v1alpha1.FleetWorkloadStatus) (metav1.ConditionStatus, string) {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	return c.Status, c.Reason
}

// change returns a report that differs.
func change(r Report, f func(*Report)) Report {
	o := *r.Observed
	r.Observed = &o
	f(&r)
	return r
}

var lost = &backends.Cluster{Name: "m2", Ready: metav1.ConditionUnknown, Message: "lease ran out"}

// paused is a cluster that keeps revision r0, or else the newest.
func paused(r Report, old bool) Report {
	return change(r, func(r *Report) {
		if r.Paused = true; old {
			r.Observed.Revision = "r0"
		}
	})
}

// holding is one of which the driver holds another manifest than the member has.
func holding(r Report, runs string) Report {
	return change(r, func(r *Report) {
		r.Observed.Held, r.Observed.Runs, r.Observed.Applied, r.Observed.Current = true, runs, metav1.ConditionUnknown, false
	})
}

func short(f Facts) Facts {
	f.Paused = "5 replicas are asked for and 3 given"
	return f
}

func TestOneVerdict(t *testing.T) {
	tests := map[string]struct {
		facts   Facts
		status  metav1.ConditionStatus
		reason  string
		stalled bool
	}{
		"everything healthy":            {facts(healthy("m1", 2), healthy("m2", 1)), metav1.ConditionTrue, v1alpha1.ReasonReady, false},
		"paused and up to date":         {facts(healthy("m1", 2), paused(healthy("m2", 1), false)), metav1.ConditionTrue, v1alpha1.ReasonReady, false},
		"paused and held as it is":      {facts(healthy("m1", 2), holding(paused(healthy("m2", 1), false), "r1")), metav1.ConditionTrue, v1alpha1.ReasonReady, false},
		"paused with an old revision":   {facts(healthy("m1", 2), paused(healthy("m2", 1), true)), metav1.ConditionFalse, v1alpha1.ReasonPaused, false},
		"paused, and another is held":   {facts(healthy("m1", 2), holding(paused(healthy("m2", 1), false), "r0")), metav1.ConditionFalse, v1alpha1.ReasonPaused, false},
		"paused, and nobody knows":      {facts(healthy("m1", 2), holding(paused(healthy("m2", 1), false), "")), metav1.ConditionFalse, v1alpha1.ReasonPaused, false},
		"paused, and replicas are away": {short(facts(healthy("m1", 2), paused(healthy("m2", 1), false))), metav1.ConditionFalse, v1alpha1.ReasonPaused, false},
		"paused before it was scaled": {
			facts(healthy("m1", 2), change(paused(healthy("m2", 1), false), func(r *Report) {
				r.Desired, r.State.Health = ptr(int32(3)), v1alpha1.HealthProgressing
			})),
			metav1.ConditionFalse, v1alpha1.ReasonPaused, false,
		},
		"paused, and others are on the way": {
			facts(change(healthy("m1", 2), func(r *Report) { r.Observed.Revision = "r0" }), paused(healthy("m2", 1), true)),
			metav1.ConditionFalse, v1alpha1.ReasonApplying, false,
		},
		"paused, and others are not healthy": {
			facts(change(healthy("m1", 2), func(r *Report) { r.State = &interpreter.State{Health: v1alpha1.HealthProgressing} }), paused(healthy("m2", 1), true)),
			metav1.ConditionFalse, v1alpha1.ReasonProgressing, false,
		},
		"paused, and a person must act": {
			facts(healthy("m1", 2), change(paused(healthy("m2", 1), true), func(r *Report) { r.Observed.Conflict, r.Observed.Applied = true, metav1.ConditionFalse })),
			metav1.ConditionFalse, v1alpha1.ReasonMemberConflict, true,
		},
		"paused and unreachable": {
			facts(healthy("m1", 2), change(paused(healthy("m2", 1), true), func(r *Report) { r.Cluster = lost })),
			metav1.ConditionFalse, v1alpha1.ReasonStale, false,
		},
		"nothing sent to one cluster": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Observed, r.State = nil, nil })),
			metav1.ConditionFalse, v1alpha1.ReasonApplying, false,
		},
		"one report for an older revision": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Observed.Revision = "r0" })),
			metav1.ConditionFalse, v1alpha1.ReasonApplying, false,
		},
		"one report that is not current": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Observed.Current = false })),
			metav1.ConditionFalse, v1alpha1.ReasonProgressing, false,
		},
		"one cluster not reachable, though its last report was healthy": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Cluster = lost })),
			metav1.ConditionFalse, v1alpha1.ReasonStale, false,
		},
		"one cluster unknown to the backend": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Cluster = nil })),
			metav1.ConditionFalse, v1alpha1.ReasonStale, false,
		},
		"a cluster refuses the manifest": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Observed.Applied, r.Observed.Message = metav1.ConditionFalse, "no matches for kind" })),
			metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, false,
		},
		"a foreign object in the way": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Observed.Applied, r.Observed.Conflict = metav1.ConditionFalse, true })),
			metav1.ConditionFalse, v1alpha1.ReasonMemberConflict, true,
		},
		"a cluster being left": {
			facts(healthy("m1", 2), change(healthy("m2", 1), func(r *Report) { r.Target = false })),
			metav1.ConditionFalse, v1alpha1.ReasonApplying, false,
		},
		"no cluster at all is not ready": {facts(), metav1.ConditionFalse, v1alpha1.ReasonApplying, false},
		"a write still waits": {
			func() Facts { f := facts(healthy("m1", 2)); f.Waiting = "for the gate"; return f }(),
			metav1.ConditionFalse, v1alpha1.ReasonApplying, false,
		},
		"a problem for a person": {
			func() Facts {
				f := facts(healthy("m1", 2))
				f.Problem = &Problem{Reason: v1alpha1.ReasonInvalidTemplate, Message: "x", Stalled: true}
				return f
			}(), metav1.ConditionFalse, v1alpha1.ReasonInvalidTemplate, true,
		},
		"the backend cannot be read": {
			Facts{Generation: 3, Now: now, Problem: &Problem{Reason: v1alpha1.ReasonBackendUnavailable, Message: "x"}},
			metav1.ConditionUnknown, v1alpha1.ReasonBackendUnavailable, false,
		},
		"suspended with a change waiting": {
			func() Facts {
				f := facts(change(healthy("m1", 2), func(r *Report) { r.Observed.Revision = "r0" }))
				f.Suspended = true
				return f
			}(), metav1.ConditionFalse, v1alpha1.ReasonSuspended, false,
		},
		"suspended with nothing waiting": {
			func() Facts { f := facts(healthy("m1", 2)); f.Suspended = true; return f }(), metav1.ConditionTrue, v1alpha1.ReasonReady, false,
		},
		"deleting": {
			func() Facts { f := facts(healthy("m1", 2)); f.Deleting = true; return f }(), metav1.ConditionFalse, v1alpha1.ReasonDeleting, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status := Fleet(v1alpha1.FleetWorkloadStatus{}, test.facts)
			gotStatus, gotReason := ready(status)
			if gotStatus != test.status || gotReason != test.reason {
				t.Errorf("Ready is %s %s, want %s %s", gotStatus, gotReason, test.status, test.reason)
			}
			if got := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled); got != test.stalled {
				t.Errorf("Stalled is %t, want %t", got, test.stalled)
			}
			if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReconciling) && (test.stalled || gotStatus == metav1.ConditionTrue) {
				t.Error("Reconciling is True beside Ready or Stalled")
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != 3 || c.Reason == "" || c.LastTransitionTime.IsZero() {
					t.Errorf("condition %+v is incomplete", c)
				}
			}
		})
	}
}

// TestSumsThatCannotBe: one member that reports nonsense makes the sum unknown. A negative one would be refused by the CRD,
// and no status could be written any more.
func TestSumsThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		m1, m2 int32
		want   *int32
		ready  string
	}{
		"the most that there can be": {math.MaxInt32 - 3, 3, ptr(int32(math.MaxInt32)), fmt.Sprintf("%d/%d", math.MaxInt32, math.MaxInt32)},
		"one more":                   {math.MaxInt32 - 2, 3, nil, "?/?"},
		"twice the most":             {math.MaxInt32, math.MaxInt32, nil, "?/?"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Fleet(v1alpha1.FleetWorkloadStatus{}, facts(healthy("m1", test.m1), healthy("m2", test.m2)))
			for number, got := range map[string]*int32{
				"replicas": s.Replicas, "ready": s.ReadyReplicas, "updated": s.UpdatedReplicas, "available": s.AvailableReplicas,
				"desired": s.DesiredReplicas,
			} {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s: %s", number, diff)
				}
			}
			if s.Ready != test.ready || len(s.Clusters) != 2 || *s.Clusters[0].Replicas != test.m1 {
				t.Errorf("READY is %s, want %s; rows %+v", s.Ready, test.ready, s.Clusters)
			}
		})
	}
}

// random draws a fleet in any state.
func random(r *rand.Rand, clusters int) Facts {
	f := facts()
	health := []v1alpha1.Health{v1alpha1.HealthHealthy, v1alpha1.HealthProgressing, v1alpha1.HealthDegraded, v1alpha1.HealthSuspended}
	states := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for i := range clusters {
		report := healthy(fmt.Sprintf("m%03d", i), r.Int31n(5))
		report.Target = r.Intn(5) > 0
		report.Cluster.Ready = states[r.Intn(4)]
		report.Observed.Applied = states[r.Intn(4)]
		report.Observed.Current = r.Intn(4) > 0
		report.State.Health = health[r.Intn(4)]
		if r.Intn(6) == 0 {
			report.Observed, report.State = nil, nil
		}
		f.Reports = append(f.Reports, report)
	}
	return f
}

func TestProperties(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 500 {
		f := random(r, r.Intn(8))
		status := Fleet(v1alpha1.FleetWorkloadStatus{}, f)

		shuffled := f
		shuffled.Reports = append([]Report(nil), f.Reports...)
		r.Shuffle(len(shuffled.Reports), func(i, j int) {
			shuffled.Reports[i], shuffled.Reports[j] = shuffled.Reports[j], shuffled.Reports[i]
		})
		if diff := cmp.Diff(status, Fleet(v1alpha1.FleetWorkloadStatus{}, shuffled)); diff != "" {
			t.Fatalf("the order of clusters matters: %s", diff)
		}
		later := f
		later.Now = metav1.NewTime(now.Add(time.Hour))
		if diff := cmp.Diff(status, Fleet(status, later)); diff != "" {
			t.Fatalf("a second run changes something: %s", diff)
		}
		before, _ := ready(status)
		worse := f
		failing := healthy("zzz", 1)
		failing.State.Health = v1alpha1.HealthDegraded
		worse.Reports = append(append([]Report(nil), f.Reports...), failing)
		if after, _ := ready(Fleet(v1alpha1.FleetWorkloadStatus{}, worse)); after == metav1.ConditionTrue || (before != metav1.ConditionTrue && after == metav1.ConditionTrue) {
			t.Fatal("a failing cluster left the fleet ready")
		}
		for _, row := range status.Clusters {
			if row.Health == v1alpha1.HealthHealthy && (row.Stale == metav1.ConditionTrue || row.Replicas == nil || row.Applied != metav1.ConditionTrue) {
				t.Fatalf("healthy without evidence: %+v", row)
			}
		}
	}
}

func TestThousandClustersStayBounded(t *testing.T) {
	f := facts()
	for i := range 1000 {
		f.Reports = append(f.Reports, healthy(fmt.Sprintf("m%04d", i), 2))
	}
	bad := healthy("m0999", 2)
	bad.State.Health, bad.State.Message = v1alpha1.HealthDegraded, strings.Repeat("x", 5000)
	f.Reports[999] = bad
	status := Fleet(v1alpha1.FleetWorkloadStatus{}, f)
	if len(status.Clusters) != MaxRows || *status.Truncated != 1000-MaxRows {
		t.Errorf("%d rows and %d cut", len(status.Clusters), *status.Truncated)
	}
	if status.Clusters[0].Name != "m0999" || len(status.Clusters[0].Message) > 1024 {
		t.Errorf("the first row is %s with a message of %d", status.Clusters[0].Name, len(status.Clusters[0].Message))
	}
	if *status.Replicas != 2000 || *status.ClusterSummary.Healthy != 999 || status.ClustersReady != "999/1000" {
		t.Errorf("counts are not complete: %d %d %s", *status.Replicas, *status.ClusterSummary.Healthy, status.ClustersReady)
	}
}

// TestMessagesOfAllRowsFit: rows that need attention most keep theirs, others say that theirs is shortened, and conditions lose nothing by it.
func TestMessagesOfAllRowsFit(t *testing.T) {
	f := facts()
	for i := range MaxRows {
		bad := healthy(fmt.Sprintf("m%04d", i), 2)
		bad.State.Health, bad.State.Message = v1alpha1.HealthDegraded, strings.Repeat("x", 600+i)
		if i < 90 {
			bad.State.Health = v1alpha1.HealthProgressing
		}
		if i == 99 {
			bad.State.Message = strings.Repeat("y", 900)
		}
		f.Reports = append(f.Reports, bad)
	}
	status := Fleet(v1alpha1.FleetWorkloadStatus{}, f)
	total, shortened := 0, 0
	for i, row := range status.Clusters {
		total += len(row.Message)
		switch {
		case len(row.Message) >= 600:
		case row.Health == v1alpha1.HealthDegraded || !strings.HasSuffix(row.Message, "..."):
			t.Fatalf("row %d is %s and has %d bytes of message", i, row.Health, len(row.Message))
		default:
			shortened++
		}
	}
	if total > maxMessages || total < maxMessages*9/10 || shortened < MaxRows/2 {
		t.Errorf("%d bytes of messages, %d are shortened", total, shortened)
	}
	if degraded := worstHealth(status, f).Message; strings.Contains(degraded, "...") {
		t.Errorf("the condition says %s", degraded)
	}
}

func TestALostBackendKeepsWhatWasKnown(t *testing.T) {
	known := Fleet(v1alpha1.FleetWorkloadStatus{}, facts(healthy("m1", 2), healthy("m2", 1)))
	gone := Fleet(known, Facts{Generation: 3, Now: now, Problem: &Problem{Reason: v1alpha1.ReasonBackendUnavailable, Message: "refused"}})
	if len(gone.Clusters) != 2 || *gone.Clusters[0].Ready != 2 || gone.Clusters[0].Stale != metav1.ConditionTrue {
		t.Errorf("rows are %+v", gone.Clusters)
	}
	if *gone.ReadyReplicas != 3 || *gone.ClusterSummary.Stale != 2 || gone.Revision != "r1" {
		t.Errorf("status is %+v", gone)
	}
	if known.Clusters[0].Stale == metav1.ConditionTrue {
		t.Error("the status before was changed")
	}
}

func TestNothingReportedIsNotZero(t *testing.T) {
	r := healthy("m1", 2)
	r.Observed, r.State = nil, nil
	status := Fleet(v1alpha1.FleetWorkloadStatus{}, facts(r))
	if status.ReadyReplicas != nil || status.Ready != "?/2" {
		t.Errorf("ready replicas are %v, shown as %s", status.ReadyReplicas, status.Ready)
	}
}

// TestScaleSpeaksOfOneUnit: what a HorizontalPodAutoscaler reads is in the unit of what it writes.
func TestScaleSpeaksOfOneUnit(t *testing.T) {
	silent := healthy("m4", 3)
	silent.Observed, silent.State = nil, nil
	left := healthy("m5", 5)
	left.Target = false
	f := facts(healthy("m1", 3), healthy("m2", 3), healthy("m3", 2), silent, left)
	f.Selector = "app=web"
	before := Fleet(v1alpha1.FleetWorkloadStatus{}, f)
	if s := before.Scale; *s.Replicas != 13 || s.Selector != "app=web" {
		t.Errorf("divided: %d of %q", *s.Replicas, s.Selector)
	}
	f.Duplicated, f.Selector = true, ""
	if s := Fleet(before, f).Scale; *s.Replicas != 3 || s.Selector != "app=web" {
		t.Errorf("duplicated: %d of %q", *s.Replicas, s.Selector)
	}
	numbered := healthy("m6", 9)
	numbered.Numbered = true
	f.Reports = append(f.Reports, numbered)
	if s := Fleet(before, f).Scale; *s.Replicas != 3 {
		t.Errorf("duplicated, beside a cluster with a number of its own: %d", *s.Replicas)
	}
	f.Reports = f.Reports[len(f.Reports)-1:]
	if s := Fleet(before, f).Scale; *s.Replicas != 9 {
		t.Errorf("each cluster has a number of its own: %d", *s.Replicas)
	}
	none := facts(silent)
	none.Duplicated = true
	if s := Fleet(v1alpha1.FleetWorkloadStatus{}, none).Scale; s != nil {
		t.Errorf("nothing is known: %+v", s)
	}
	gone := Fleet(before, Facts{Generation: 3, Now: now, Duplicated: true, Problem: &Problem{Reason: v1alpha1.ReasonBackendUnavailable, Message: "refused"}})
	if gone.Scale == nil || *gone.Scale.Replicas != 13 {
		t.Errorf("a backend that is lost: %+v", gone.Scale)
	}
}

// TestIndependent (law 12): it is said what the end of a migration vouches for, and no more; nothing when there was none.
func TestIndependent(t *testing.T) {
	for name, test := range map[string]struct {
		other   *Other
		waiting string
		want    string
	}{
		"it has never moved": {nil, "", "  : "},
		"it is to move": {&Other{Name: "one", Moving: true}, "",
			`Independent False Migrating: what runs on clusters may depend on backend "one" until the migration is over`},
		"it moves": {&Other{Name: "one", Moving: true, Marks: []string{"cluster m2: its label", "cluster m1: its label"}}, "namespace shop to be let go",
			`Independent False Migrating: what runs on clusters may depend on backend "one" until the migration is over; ` +
				`cluster m1: its label, cluster m2: its label; namespace shop to be let go`},
		"it has moved": {&Other{Name: "one"}, "for something",
			`Independent True Independent: when the migration ended, neither the workload nor its companions nor their namespace depended on backend "one"; ` +
				`before you switch it off, kubectl fw backend retire one says what else does`},
		"it has moved, and joined others": {&Other{Name: "one", Unasked: []string{"m7", "m3"}}, "",
			`Independent Unknown JoinedSince: the workload has come to clusters where no migration has made sure that nothing depends on backend "one": ` +
				`m3, m7; kubectl fw backend retire one says what does`},
	} {
		f := facts(healthy("m1", 2))
		f.Other, f.Waiting = test.other, test.waiting
		before := Fleet(v1alpha1.FleetWorkloadStatus{}, f)
		c := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionIndependent)
		if c == nil {
			c = &metav1.Condition{}
		}
		if got := fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
		f.Now = metav1.NewTime(now.Add(time.Hour))
		if diff := cmp.Diff(before.Conditions, Fleet(before, f).Conditions); diff != "" {
			t.Errorf("%s: it is written again: %s", name, diff)
		}
	}
}
