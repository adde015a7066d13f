package aggregate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// TestWhatIsLeftIsTold (spec.drift Report): the condition is there as long as something is left, names each cluster, and stands in the way of
// nothing; the row says it beside what is to be said of the object as it is.
func TestWhatIsLeftIsTold(t *testing.T) {
	byHand := func(who string) func(*Report) {
		return func(r *Report) { r.Observed.Left = &backends.Left{Others: who} }
	}
	left := facts(healthy("m1", 2), change(healthy("m2", 5), byHand("ann")), change(healthy("m3", 5), byHand("bob")))
	status := Fleet(v1alpha1.FleetWorkloadStatus{}, left)
	drifted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrifted)
	if drifted == nil || drifted.Status != metav1.ConditionTrue || !strings.HasPrefix(drifted.Message, "2 clusters keep") ||
		!strings.HasSuffix(drifted.Message, "m2: ann, m3: bob") || drifted.ObservedGeneration != 3 {
		t.Errorf("the condition is %+v", drifted)
	}
	readyNow := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if readyNow.Status != metav1.ConditionTrue || !strings.HasSuffix(readyNow.Message, "; not all is as the spec says, see Drifted") {
		t.Errorf("Ready is %+v", readyNow)
	}
	broken := facts(change(healthy("m1", 2), func(r *Report) {
		byHand("ann")(r)
		r.State.Health, r.State.Message = v1alpha1.HealthDegraded, "no image"
	}))
	after := Fleet(status, broken)
	if got := after.Clusters[0]; got.Health != v1alpha1.HealthDegraded ||
		got.Message != "left as somebody else has changed it there (spec.drift Report): ann; no image" {
		t.Errorf("the row is %s: %s", got.Health, got.Message)
	}
	if c := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionDrifted); !c.LastTransitionTime.Equal(&drifted.LastTransitionTime) {
		t.Errorf("it has begun anew: %+v", c)
	}
	if whole := Fleet(after, facts(healthy("m1", 2))); meta.FindStatusCondition(whole.Conditions, v1alpha1.ConditionDrifted) != nil {
		t.Error("nothing is left, and it is said")
	}
}

// TestWhatARowSays: what people read of one cluster.
func TestWhatARowSays(t *testing.T) {
	long := strings.Repeat("x", maxMessage)
	leaving := func(why v1alpha1.RemovalReason) func(*Report) {
		return func(r *Report) { r.Target, r.Removal = false, why }
	}
	for name, test := range map[string]struct {
		edit   func(*Report)
		health v1alpha1.Health
		stale  bool
		says   string
	}{
		"healthy":                   {func(*Report) {}, v1alpha1.HealthHealthy, false, ""},
		"what the kind says":        {func(r *Report) { r.State.Health, r.State.Message = v1alpha1.HealthSuspended, "paused" }, v1alpha1.HealthSuspended, false, "paused"},
		"nothing sent":              {func(r *Report) { r.Observed, r.State = nil, nil }, v1alpha1.HealthUnknown, false, "nothing sent to the cluster yet"},
		"no report":                 {func(r *Report) { r.State = nil }, v1alpha1.HealthUnknown, false, "no report from the cluster yet"},
		"no report, and why":        {func(r *Report) { r.State, r.Observed.Message = nil, "no agent" }, v1alpha1.HealthUnknown, false, "no agent"},
		"held, and never sent":      {func(r *Report) { r.State, r.Observed.Held = nil, true }, v1alpha1.HealthUnknown, false, "held back, nothing is sent to the cluster"},
		"held, and running":         {func(r *Report) { r.Observed.Held = true }, v1alpha1.HealthHealthy, false, ""},
		"a report of before":        {func(r *Report) { r.Observed.Current = false }, v1alpha1.HealthProgressing, false, "waiting for a report on the newest manifest"},
		"not known to be applied":   {func(r *Report) { r.Observed.Applied = metav1.ConditionUnknown }, v1alpha1.HealthProgressing, false, "waiting for a report on the newest manifest"},
		"another revision":          {func(r *Report) { r.Observed.Revision = "r0" }, v1alpha1.HealthProgressing, false, "waiting for a report on the newest manifest"},
		"refused":                   {func(r *Report) { r.Observed.Applied = metav1.ConditionFalse }, v1alpha1.HealthDegraded, false, "the cluster refused the manifest"},
		"refused, and why":          {func(r *Report) { r.Observed.Applied, r.Observed.Message = metav1.ConditionFalse, "no such kind" }, v1alpha1.HealthDegraded, false, "no such kind"},
		"not reachable, and why":    {func(r *Report) { r.Cluster = lost }, v1alpha1.HealthUnknown, true, "the cluster cannot be reached, these are its last known numbers (lease ran out)"},
		"not reachable":             {func(r *Report) { r.Cluster = &backends.Cluster{} }, v1alpha1.HealthUnknown, true, "the cluster cannot be reached, these are its last known numbers"},
		"not known":                 {func(r *Report) { r.Cluster = nil }, v1alpha1.HealthUnknown, true, "the backend does not know this cluster any more; last known numbers"},
		"given up with a taint":     {func(r *Report) { r.GivenUp = true }, v1alpha1.HealthUnknown, false, "given up, other clusters have taken its place: tainted"},
		"given up, not known":       {func(r *Report) { r.GivenUp, r.Cluster = true, nil }, v1alpha1.HealthUnknown, true, "given up, other clusters have taken its place: the backend does not know this cluster any more; last known numbers"},
		"being removed":             {func(r *Report) { r.Observed.Presence = backends.PresenceRemoving }, v1alpha1.HealthProgressing, false, "being removed from the cluster"},
		"left by an edit":           {leaving(v1alpha1.RemovalSpecChanged), v1alpha1.HealthProgressing, false, "being removed from the cluster: spec.placement was edited and does not choose it"},
		"left for its labels":       {leaving(v1alpha1.RemovalDeselected), v1alpha1.HealthProgressing, false, "being removed from the cluster: it has changed, and spec.placement does not choose it any more"},
		"left, not known":           {leaving(v1alpha1.RemovalClusterLeft), v1alpha1.HealthProgressing, false, "being removed from the cluster: the backend does not know it any more"},
		"left without replicas":     {leaving(v1alpha1.RemovalNoReplicas), v1alpha1.HealthProgressing, false, "being removed from the cluster: it gets none of the replicas"},
		"left for others":           {leaving(v1alpha1.RemovalFailedOver), v1alpha1.HealthProgressing, false, "being removed from the cluster: other clusters have taken its place"},
		"left by a person":          {leaving(v1alpha1.RemovalConfirmed), v1alpha1.HealthProgressing, false, "being removed from the cluster: a person has confirmed it"},
		"as much as a message says": {func(r *Report) { r.State.Message = long }, v1alpha1.HealthHealthy, false, long},
		"more than a message says":  {func(r *Report) { r.State.Message = long + "y" }, v1alpha1.HealthHealthy, false, long[3:] + "..."},
	} {
		row := Fleet(v1alpha1.FleetWorkloadStatus{}, facts(change(healthy("m1", 2), test.edit))).Clusters[0]
		if row.Health != test.health || (row.Stale == metav1.ConditionTrue) != test.stale || row.Message != test.says {
			t.Errorf("%s: %s, stale %s: %q", name, row.Health, row.Stale, row.Message)
		}
	}
	first := facts(healthy("m1", 2))
	first.Revision = ""
	if row := Fleet(v1alpha1.FleetWorkloadStatus{}, first).Clusters[0]; row.Health != v1alpha1.HealthHealthy {
		t.Errorf("before there is a revision to compare with: %+v", row)
	}
}

// TestRowsThatNeedAttentionComeFirst: and the counts are of all.
func TestRowsThatNeedAttentionComeFirst(t *testing.T) {
	health := func(name string, h v1alpha1.Health) Report {
		return change(healthy(name, 1), func(r *Report) { r.State.Health = h })
	}
	status := Fleet(v1alpha1.FleetWorkloadStatus{}, facts(
		healthy("a", 1),
		health("b", v1alpha1.HealthSuspended),
		health("c", v1alpha1.HealthProgressing),
		change(healthy("d", 1), func(r *Report) { r.Observed.Revision = "r0" }),
		change(healthy("e", 1), func(r *Report) { r.Target = false }),
		change(healthy("f", 1), func(r *Report) { r.State = nil }),
		change(healthy("g", 1), func(r *Report) { r.Cluster = lost }),
		health("h", v1alpha1.HealthDegraded),
		change(healthy("i", 1), func(r *Report) { r.Observed.Applied, r.Cluster = metav1.ConditionFalse, lost }),
	))
	var names []string
	for _, row := range status.Clusters {
		names = append(names, row.Name)
	}
	if got := strings.Join(names, ""); got != "higfcdeba" {
		t.Errorf("the order is %s", got)
	}
	want := &v1alpha1.ClusterSummary{
		Total: ptr(int32(9)), Scheduled: ptr(int32(8)), Applied: ptr(int32(6)), Healthy: ptr(int32(1)), Stale: ptr(int32(2)), UpToDate: ptr(int32(4)),
	}
	if diff := cmp.Diff(want, status.ClusterSummary); diff != "" || status.ClustersReady != "1/8" {
		t.Errorf("%s %s", status.ClustersReady, diff)
	}
}

func TestNoRowIsCutThatFits(t *testing.T) {
	f := facts()
	for i := range MaxRows {
		f.Reports = append(f.Reports, healthy(fmt.Sprintf("m%03d", i), 1))
	}
	if status := Fleet(v1alpha1.FleetWorkloadStatus{}, f); status.Truncated != nil || len(status.Clusters) != MaxRows {
		t.Errorf("%d rows, and cut: %v", len(status.Clusters), status.Truncated)
	}
}

// TestWhatConditionsSay: status, reason and message of conditions, of which a case names those that it is about.
func TestWhatConditionsSay(t *testing.T) {
	with := func(f Facts, edit func(*Facts)) Facts { edit(&f); return f }
	unsent := func(name string) Report {
		return change(healthy(name, 2), func(r *Report) { r.Observed, r.State = nil, nil })
	}
	health := func(h v1alpha1.Health, message string) Report {
		return change(healthy("m2", 2), func(r *Report) { r.State.Health, r.State.Message = h, message })
	}
	refused := change(healthy("m2", 2), func(r *Report) { r.Observed.Applied, r.Observed.Message = metav1.ConditionFalse, "no such kind" })
	for name, test := range map[string]struct {
		facts Facts
		want  []string
	}{
		"all is well": {facts(healthy("m1", 2), healthy("m2", 2), healthy("m3", 2)), []string{
			"Ready True Ready: 6/6 replicas ready on 3 clusters", "Reconciling False Reconciled: nothing left to do",
			"Stalled False NotStalled: nobody needs to act", "Scheduled True Scheduled: 3 clusters chosen",
			"Applied True Applied: 3 clusters have the manifest", "Healthy True Healthy: 6/6 replicas ready on 3 clusters",
		}},
		"a kind that counts no replicas": {
			facts(change(healthy("m1", 0), func(r *Report) { r.State = &interpreter.State{Health: v1alpha1.HealthHealthy} })),
			[]string{"Healthy True Healthy: healthy on 1 clusters"},
		},
		"as many as are named": {facts(unsent("m3"), unsent("m2"), unsent("m1")), []string{"Applied Unknown Applying: on the way to m1, m2, m3"}},
		"more than are named": {
			facts(unsent("m5"), unsent("m3"), unsent("m2"), unsent("m1"), unsent("m4")), []string{"Applied Unknown Applying: on the way to m1, m2, m3 and 2 more"},
		},
		"another revision": {
			facts(healthy("m1", 2), change(healthy("m2", 2), func(r *Report) { r.Observed.Revision = "r0" })),
			[]string{"Applied Unknown Applying: on the way to m2"},
		},
		"not known to be applied": {
			facts(change(healthy("m1", 2), func(r *Report) { r.Observed.Applied = metav1.ConditionUnknown })),
			[]string{"Applied Unknown Applying: on the way to m1", "Ready False Applying: on the way to m1"},
		},
		"a cluster being left": {
			facts(healthy("m1", 2), change(healthy("m2", 2), func(r *Report) { r.Target = false })),
			[]string{"Scheduled True Scheduled: 1 clusters chosen", "Applied Unknown Applying: on the way to m2 (being left)"},
		},
		"a cluster being left that refuses": {
			facts(healthy("m1", 2), change(refused, func(r *Report) { r.Target = false })),
			[]string{"Applied Unknown Applying: on the way to m2 (being left)"},
		},
		"refused": {facts(healthy("m1", 2), refused, unsent("m3")), []string{
			"Applied False ApplyFailed: m2: no such kind", "Ready False ApplyFailed: m2: no such kind", "Healthy False Degraded: m2: no such kind",
		}},
		"refused, and another cluster not reachable": {
			facts(refused, change(healthy("m3", 2), func(r *Report) { r.Cluster = lost })),
			[]string{"Ready False Stale: clusters that cannot be reached: m3: the cluster cannot be reached, these are its last known numbers (lease ran out)"},
		},
		"a foreign object": {
			facts(refused, change(healthy("m3", 2), func(r *Report) { r.Observed.Applied, r.Observed.Conflict = metav1.ConditionFalse, true })),
			[]string{
				"Applied False MemberConflict: an object of that name that is not this FleetWorkload's exists on m3; remove it there, choose another name, or set spec.conflictPolicy to Adopt",
				"Reconciling False Reconciled: waiting for a person, see Stalled",
			},
		},
		"no cluster": {facts(), []string{
			"Scheduled True Scheduled: 0 clusters chosen", "Applied Unknown Unknown: no cluster chosen yet", "Healthy Unknown Unknown: no cluster chosen yet",
		}},
		"degraded, and another one on its way": {
			facts(health(v1alpha1.HealthDegraded, "0 of 2"), change(healthy("m3", 2), func(r *Report) { r.State.Health = v1alpha1.HealthProgressing })),
			[]string{"Healthy False Degraded: m2: 0 of 2", "Ready False Degraded: m2: 0 of 2"},
		},
		"on its way": {facts(healthy("m1", 2), health(v1alpha1.HealthProgressing, "")), []string{"Healthy False Progressing: m2"}},
		"suspended":  {facts(healthy("m1", 2), health(v1alpha1.HealthSuspended, "paused")), []string{"Healthy False Suspended: m2: paused"}},
		"not known": {
			facts(health(v1alpha1.HealthProgressing, ""), change(healthy("m3", 2), func(r *Report) { r.State = nil })),
			[]string{"Healthy Unknown Unknown: m3: no report from the cluster yet"},
		},
		"more clusters than rows, and one that is not shown": {
			with(facts(), func(f *Facts) {
				for i := range MaxRows + 1 {
					f.Reports = append(f.Reports, change(healthy(fmt.Sprintf("m%03d", i), 1), func(r *Report) { r.State.Health = "" }))
				}
			}), []string{"Healthy Unknown Unknown: not all clusters have reported"},
		},
		"what was left out of the choice": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Choice = []string{"m2 is tainted", "m3 too"} }),
			[]string{"Scheduled True Scheduled: 1 clusters chosen; m2 is tainted; m3 too"},
		},
		"no choice yet": {
			with(facts(), func(f *Facts) { f.Settled, f.Waiting = false, "for a Placement" }),
			[]string{"Scheduled Unknown Scheduling: the backend chooses clusters; for a Placement", "Ready False Scheduling: the backend chooses clusters; for a Placement"},
		},
		"no choice yet, and nothing to wait for": {
			with(facts(), func(f *Facts) { f.Settled = false }), []string{"Scheduled Unknown Scheduling: the backend chooses clusters"},
		},
		"no choice for a problem": {
			with(facts(), func(f *Facts) { f.Settled, f.Problem = false, &Problem{Reason: "Why", Message: "because"} }),
			[]string{"Scheduled Unknown Why: because", "Ready False Why: because", "Reconciling True Why: because"},
		},
		"a problem behind the choice": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Problem = &Problem{Reason: "Why", Message: "because"} }),
			[]string{"Scheduled True Scheduled: 1 clusters chosen", "Ready False Why: because"},
		},
		"notes": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Notes = []string{"reports are late"} }),
			[]string{"Healthy True Healthy: 2/2 replicas ready on 1 clusters; reports are late"},
		},
		"a change of backend": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Migrating, f.Waiting = "wave 1", "for the gate" }),
			[]string{"Migrating True Migrating: wave 1", "Ready False Migrating: wave 1; for the gate"},
		},
		"a write that waits": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Waiting = "for the gate" }),
			[]string{"Ready False Applying: for the gate; 1 clusters have the manifest"},
		},
		"a write that waits for a cluster that is given up": {
			with(facts(healthy("m1", 2), change(healthy("m2", 2), func(r *Report) { r.GivenUp, r.Target = true, false })), func(f *Facts) { f.Waiting = "for m2" }),
			[]string{"Ready True Ready: 2/2 replicas ready on 1 clusters"},
		},
		"suspended with a change": {
			with(facts(unsent("m1")), func(f *Facts) { f.Suspended = true }), []string{
				"Ready False Suspended: spec.suspend is true, so that changes wait: on the way to m1", "Reconciling False Suspended: spec.suspend is true",
			},
		},
		"suspended with nothing to do": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Suspended = true }), []string{"Reconciling False Reconciled: nothing left to do"},
		},
		"a backend that cannot be read": {
			Facts{Now: now, Problem: &Problem{Reason: "Why", Message: "because"}},
			[]string{"Applied Unknown Unknown: the backend cannot be read", "Healthy Unknown Unknown: the backend cannot be read", "Ready Unknown Why: because"},
		},
		"deleting": {
			with(facts(healthy("m1", 2)), func(f *Facts) { f.Deleting, f.Waiting = true, "for m1" }), []string{"Ready False Deleting: deleting: for m1"},
		},
	} {
		status := Fleet(v1alpha1.FleetWorkloadStatus{}, test.facts)
		var said, kinds []string
		for _, c := range status.Conditions {
			said = append(said, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			kinds = append(kinds, c.Type)
		}
		for _, want := range test.want {
			if !slices.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, strings.Join(said, "\n"))
			}
		}
		all := []string{"Ready", "Reconciling", "Stalled", "Scheduled", "Applied", "Healthy", "Migrating"}
		if test.facts.Migrating == "" {
			all = all[:6]
		}
		if !slices.Equal(kinds, all) {
			t.Errorf("%s: %v", name, kinds)
		}
	}
}
