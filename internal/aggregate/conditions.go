package aggregate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// maxNamed is how many clusters a message names.
const maxNamed = 3

// setConditions puts the conditions into the status. A condition that did not change keeps its time.
func setConditions(status *v1alpha1.FleetWorkloadStatus, before v1alpha1.FleetWorkloadStatus, conditions []metav1.Condition) {
	out := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		c.Message = shorten(c.Message)
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		out = append(out, c)
	}
	status.Conditions = out
}

// summarize draws the conditions from rows and facts, in the order in which they stand in the status. The trio follows kstatus: Ready is
// never True while Reconciling or Stalled is, and these two exclude each other (sigs.k8s.io/cli-utils/pkg/kstatus/README.md).
func summarize(status v1alpha1.FleetWorkloadStatus, facts Facts) []metav1.Condition {
	scheduled, applied, healthy := scheduledCondition(facts), appliedCondition(status, facts), healthyCondition(status, facts)
	ready, reconciling, stalled := trio(status, facts, scheduled, applied, healthy)
	conditions := []metav1.Condition{ready, reconciling, stalled, scheduled, applied, healthy}
	if facts.Migrating != "" {
		conditions = append(conditions,
			condition(v1alpha1.ConditionMigrating, metav1.ConditionTrue, v1alpha1.ReasonMigrating, facts.Migrating))
	}
	if facts.Other != nil {
		conditions = append(conditions, independent(facts))
	}
	if drifted := drifted(facts); drifted != "" {
		conditions = append(conditions, condition(v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonChangedOnCluster, drifted))
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = facts.Generation
		conditions[i].LastTransitionTime = facts.Now
	}
	return conditions
}

// drifted says where others' changes stay, until there is something new to deliver there; empty when they do nowhere.
func drifted(facts Facts) string {
	var clusters []string
	for _, r := range facts.Reports {
		if r.Observed != nil && r.Observed.Left != nil {
			clusters = append(clusters, r.Name+": "+r.Observed.Left.Others)
		}
	}
	if len(clusters) == 0 {
		return ""
	}
	return fmt.Sprintf("%d clusters keep what somebody else has changed there, until there is something new to deliver to them; to have it put "+
		"back, set spec.drift to Correct: %s", len(clusters), list(clusters))
}

// independent tells whether the workload needs the other backend of a migration (law 12). The end of a migration vouches for the clusters
// that it had, and for what the workload has there: what others have, such as CRDs, and what has come since, is for kubectl fw backend
// retire to say.
func independent(facts Facts) metav1.Condition {
	other, ask := facts.Other, fmt.Sprintf("kubectl fw backend retire %s", facts.Other.Name)
	switch {
	case other.Moving:
		return condition(v1alpha1.ConditionIndependent, metav1.ConditionFalse, v1alpha1.ReasonMigrating,
			join(fmt.Sprintf("what runs on clusters may depend on backend %q until the migration is over", other.Name), list(other.Marks), facts.Waiting))
	case len(other.Unasked) > 0:
		return condition(v1alpha1.ConditionIndependent, metav1.ConditionUnknown, v1alpha1.ReasonJoinedSince,
			fmt.Sprintf("the workload has come to clusters where no migration has made sure that nothing depends on backend %q: %s; %s says what does",
				other.Name, list(other.Unasked), ask))
	default:
		return condition(v1alpha1.ConditionIndependent, metav1.ConditionTrue, v1alpha1.ReasonIndependent,
			fmt.Sprintf("when the migration ended, neither the workload nor its companions nor their namespace depended on backend %q; before you "+
				"switch it off, %s says what else does", other.Name, ask))
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// trio decides Ready, Reconciling and Stalled.
func trio(status v1alpha1.FleetWorkloadStatus, facts Facts, scheduled, applied, healthy metav1.Condition,
) (ready, reconciling, stalled metav1.Condition) {
	reason, message, isStalled := verdict(status, facts, scheduled, applied, healthy)
	ready = condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	reconciling = condition(v1alpha1.ConditionReconciling, metav1.ConditionFalse, v1alpha1.ReasonReconciled, "nothing left to do")
	stalled = condition(v1alpha1.ConditionStalled, metav1.ConditionFalse, v1alpha1.ReasonNotStalled, "nobody needs to act")
	switch {
	case reason == v1alpha1.ReasonReady:
		ready.Status = metav1.ConditionTrue
	case isStalled:
		reconciling.Message = "waiting for a person, see Stalled"
		stalled = condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	case reason == v1alpha1.ReasonSuspended:
		reconciling.Reason, reconciling.Message = v1alpha1.ReasonSuspended, "spec.suspend is true"
	case reason == v1alpha1.ReasonAwaitingApproval:
		reconciling.Reason, reconciling.Message = v1alpha1.ReasonAwaitingApproval, "a person has to approve a change of the spec"
	case reason == v1alpha1.ReasonPaused:
		reconciling.Reason, reconciling.Message = v1alpha1.ReasonPaused, "nothing left to do but on clusters of spec.placement.paused"
	default:
		if !facts.Reported {
			ready.Status = metav1.ConditionUnknown
		}
		reconciling = condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	}
	return ready, reconciling, stalled
}

// verdict is the one reason that people should read first.
func verdict(status v1alpha1.FleetWorkloadStatus, facts Facts, scheduled, applied, healthy metav1.Condition,
) (reason, message string, stalled bool) {
	if facts.Problem != nil {
		return facts.Problem.Reason, facts.Problem.Message, facts.Problem.Stalled
	}
	if facts.Deleting {
		return v1alpha1.ReasonDeleting, "deleting: " + facts.Waiting, false
	}
	if applied.Reason == v1alpha1.ReasonMemberConflict {
		return applied.Reason, applied.Message, true
	}
	if facts.Unapproved != "" {
		return v1alpha1.ReasonAwaitingApproval, facts.Unapproved, false
	}
	if facts.Migrating != "" {
		return v1alpha1.ReasonMigrating, join(facts.Migrating, facts.Waiting), false
	}
	stale := named(status.Clusters, func(r v1alpha1.ClusterStatus) bool { return r.Stale == metav1.ConditionTrue })
	if waitsForLost(facts) {
		facts.Waiting = ""
	}
	done := scheduled.Status == metav1.ConditionTrue && applied.Status == metav1.ConditionTrue &&
		healthy.Status == metav1.ConditionTrue && facts.Waiting == "" && facts.Reported
	switch {
	case done && stale == "" && facts.Paused == "":
		return v1alpha1.ReasonReady, healthy.Message, false
	case facts.Suspended:
		return v1alpha1.ReasonSuspended, "spec.suspend is true, so that changes wait: " + applied.Message, false
	case scheduled.Status != metav1.ConditionTrue:
		return scheduled.Reason, scheduled.Message, false
	case stale != "":
		return v1alpha1.ReasonStale, "clusters that cannot be reached: " + stale, false
	case applied.Status == metav1.ConditionFalse && applied.Reason != v1alpha1.ReasonPaused:
		return applied.Reason, applied.Message, false
	case applied.Status == metav1.ConditionUnknown || facts.Waiting != "":
		return v1alpha1.ReasonApplying, join(facts.Waiting, applied.Message), false
	case healthy.Status == metav1.ConditionTrue || healthy.Reason == v1alpha1.ReasonPaused: // else it would be Ready
		return v1alpha1.ReasonPaused, join("spec.placement.paused keeps clusters as they are", facts.Paused, applied.Message), false
	default:
		return healthy.Reason, healthy.Message, false
	}
}

// waitsForLost is true when some cluster that is given up still has to let the workload go. Then what the driver waits for
// says nothing about the others, and their rows say all.
func waitsForLost(facts Facts) bool {
	return slices.ContainsFunc(facts.Reports, func(r Report) bool { return r.GivenUp })
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func scheduledCondition(facts Facts) metav1.Condition {
	switch {
	case facts.Problem != nil && !facts.Settled:
		return condition(v1alpha1.ConditionScheduled, metav1.ConditionUnknown, facts.Problem.Reason, facts.Problem.Message)
	case facts.Settled:
		targets := 0
		for _, r := range facts.Reports {
			if r.Target {
				targets++
			}
		}
		return condition(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled,
			join(append([]string{fmt.Sprintf("%d clusters chosen", targets)}, facts.Choice...)...))
	default:
		return condition(v1alpha1.ConditionScheduled, metav1.ConditionUnknown, v1alpha1.ReasonScheduling,
			join("the backend chooses clusters", facts.Waiting))
	}
}

// appliedCondition speaks about the targets' manifests, and about clusters being left.
func appliedCondition(status v1alpha1.FleetWorkloadStatus, facts Facts) metav1.Condition {
	if !facts.Reported {
		return condition(v1alpha1.ConditionApplied, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "the backend cannot be read")
	}
	var conflicts, failed, open, paused []string
	targets := 0
	for _, r := range facts.Reports {
		o := r.Observed
		if r.Target {
			targets++
		}
		switch {
		case r.GivenUp:
		case o != nil && o.Conflict:
			conflicts = append(conflicts, r.Name)
		case o != nil && o.Applied == metav1.ConditionFalse && r.Target:
			failed = append(failed, r.Name+": "+o.Message)
		case r.lacks(status.Revision):
			paused = append(paused, r.Name)
		case r.Paused && o != nil && o.Applied != metav1.ConditionFalse: // it has the manifest
		case r.Target && (o == nil || o.Applied != metav1.ConditionTrue || o.Revision != status.Revision):
			open = append(open, r.Name)
		case !r.Target:
			open = append(open, r.Name+" (being left)")
		}
	}
	switch {
	case len(conflicts) > 0:
		return condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonMemberConflict,
			"an object of that name that is not this FleetWorkload's exists on "+list(conflicts)+
				"; remove it there, choose another name, or set spec.conflictPolicy to Adopt")
	case len(failed) > 0:
		return condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, list(failed))
	case targets == 0:
		return condition(v1alpha1.ConditionApplied, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "no cluster chosen yet")
	case len(open) == 0 && len(paused) > 0:
		return condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPaused,
			fmt.Sprintf("%d clusters have the manifest; paused without it: %s", targets-len(paused), list(paused)))
	case len(open) > 0:
		return condition(v1alpha1.ConditionApplied, metav1.ConditionUnknown, v1alpha1.ReasonApplying, "on the way to "+list(open))
	default:
		return condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied,
			fmt.Sprintf("%d clusters have the manifest", targets))
	}
}

// healthyCondition is the worst of the targets, with what stands against trusting it.
func healthyCondition(status v1alpha1.FleetWorkloadStatus, facts Facts) metav1.Condition {
	c, notes := worstHealth(status, facts), facts.Notes
	if c.Status == metav1.ConditionTrue && drifted(facts) != "" {
		notes = append([]string{"not all is as the spec says, see Drifted"}, notes...)
	}
	c.Message = join(append([]string{c.Message}, notes...)...)
	return c
}

func worstHealth(status v1alpha1.FleetWorkloadStatus, facts Facts) metav1.Condition {
	unknown := func(message string) metav1.Condition {
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, message)
	}
	if !facts.Reported {
		return unknown("the backend cannot be read")
	}
	summary := status.ClusterSummary
	if *summary.Scheduled == 0 {
		return unknown("no cluster chosen yet")
	}
	with := func(h v1alpha1.Health) string {
		return named(status.Clusters, func(r v1alpha1.ClusterStatus) bool { return r.Health == h })
	}
	degraded, missing := with(v1alpha1.HealthDegraded), with(v1alpha1.HealthUnknown)
	progressing, suspended := with(v1alpha1.HealthProgressing), with(v1alpha1.HealthSuspended)
	paused := named(status.Clusters, func(r v1alpha1.ClusterStatus) bool { return waitsPaused(r, status.Revision) })
	switch {
	case degraded != "":
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, v1alpha1.ReasonDegraded, degraded)
	case missing != "":
		return unknown(missing)
	case progressing != "":
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, v1alpha1.ReasonProgressing, progressing)
	case suspended != "" && paused == suspended:
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, v1alpha1.ReasonPaused, paused)
	case suspended != "":
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, v1alpha1.ReasonSuspended, suspended)
	case *summary.Healthy < *summary.Scheduled:
		return unknown("not all clusters have reported")
	case status.ReadyReplicas == nil: // a kind that counts no replicas
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy,
			fmt.Sprintf("healthy on %d clusters", *summary.Healthy))
	default:
		return condition(v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy,
			fmt.Sprintf("%s replicas ready on %d clusters", status.Ready, *summary.Healthy))
	}
}

// waitsPaused tells whether a cluster is paused and lacks the newest revision, or its number of replicas.
func waitsPaused(r v1alpha1.ClusterStatus, revision string) bool {
	return r.Paused == metav1.ConditionTrue && r.Health == v1alpha1.HealthSuspended &&
		(r.Applied != metav1.ConditionTrue || r.Revision != revision || hasOther(r.Replicas, r.Desired))
}

// named lists the rows that hold, with their messages, bounded.
func named(rows []v1alpha1.ClusterStatus, holds func(v1alpha1.ClusterStatus) bool) string {
	var names []string
	for _, r := range rows {
		if !holds(r) {
			continue
		}
		name := r.Name
		if r.Message != "" {
			name += ": " + r.Message
		}
		names = append(names, name)
	}
	return list(names)
}

func list(names []string) string {
	slices.Sort(names)
	return brief.First(names, maxNamed)
}
