// Package aggregate folds what clusters report into one status. It is pure: the order of clusters never matters, a
// cluster that has not reported is Unknown, and running it on its own output changes nothing.
package aggregate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// MaxRows is how many clusters the status lists; the counts are complete all the same.
const MaxRows = 100

// maxMessage keeps messages within the schema's bound.
const maxMessage = 1024

// maxMessages is how many bytes the messages of all rows have together. The rows that need attention most keep theirs longest.
const maxMessages = 24 << 10

// Report is what is known of one cluster.
type Report struct {
	Name string
	// Target is true when the cluster is to run the workload.
	Target bool
	// GivenUp is true when the cluster is lost and others have taken its place: it does not count any more.
	GivenUp bool
	// Paused is true when the cluster keeps what it runs (spec.placement.paused).
	Paused bool
	// Numbered is true when it has a number of its own: spec.replicas is not about it.
	Numbered bool
	// Desired replicas, nil when not known or the kind has none.
	Desired *int32
	// Removal is why the workload is taken off the cluster; empty when it is not.
	Removal v1alpha1.RemovalReason
	// Observed is nil when the backend has nothing of the workload for the cluster.
	Observed *backends.ClusterObservation
	// Cluster is nil when the backend does not know the cluster any more.
	Cluster *backends.Cluster
	// State is nil when there is no report that can be interpreted.
	State *interpreter.State
}

// Problem is why a pass ended before its end.
type Problem struct {
	Reason  string
	Message string
	// Stalled is true when a person must act.
	Stalled bool
}

// Other is the backend that a migration leaves behind.
type Other struct {
	Name string
	// Moving is true from when the workload is to move until it has.
	Moving bool
	// Marks is what of that backend is still known to be on clusters while it moves.
	Marks []string
	// Unasked are the clusters that run the workload and that the migration has not looked at.
	Unasked []string
}

// Facts is everything one pass has learned.
type Facts struct {
	Generation int64
	Now        metav1.Time
	Revision   string
	Selector   string
	// Duplicated is true when spec.replicas is each cluster's number.
	Duplicated bool
	// Problem is nil when the pass went through.
	Problem *Problem
	// Reported is false when the backend could not be read: rows of the status before are kept, marked stale.
	Reported bool
	// Reports has one entry for each cluster that is a target or has something of the workload.
	Reports []Report
	// Settled is true when clusters are chosen and replicas are divided.
	Settled bool
	// Choice says what the choice of clusters left out, and why.
	Choice []string
	// Waiting says what a write waits for; empty when nothing.
	Waiting string
	// Notes are the backend's, about how far reports are to be trusted.
	Notes []string
	// Migrating says how far a change of backend has come; empty when none is under way.
	Migrating string
	// Other is the backend that the workload is to be independent of; nil when it has never moved.
	Other *Other
	// Suspended is spec.suspend.
	Suspended bool
	// Unapproved says which change of the spec waits for a person to approve it, and how; empty when none does. Nothing is carried out then.
	Unapproved string
	// Paused says which replicas are not as the spec asks because clusters are paused; empty when all are.
	Paused string
	// Deleting is true once the FleetWorkload is being deleted.
	Deleting bool
}

// targets are the clusters that are to run the workload.
func (f Facts) targets() map[string]bool {
	targets := map[string]bool{}
	for _, r := range f.Reports {
		targets[r.Name] = r.Target
	}
	return targets
}

// scaled are the targets that spec.replicas is about; all of them when each has a number of its own.
func (f Facts) scaled() map[string]bool {
	scaled := map[string]bool{}
	for _, r := range f.Reports {
		if r.Target && !r.Numbered {
			scaled[r.Name] = true
		}
	}
	if len(scaled) == 0 {
		return f.targets()
	}
	return scaled
}

// Fleet returns the status that follows from facts. before is the status as it was; it is not changed.
func Fleet(before v1alpha1.FleetWorkloadStatus, facts Facts) v1alpha1.FleetWorkloadStatus {
	status := *before.DeepCopy()
	status.ObservedGeneration = &facts.Generation
	if facts.Revision != "" {
		status.Revision = facts.Revision
	}
	if facts.Reported {
		rows := make([]v1alpha1.ClusterStatus, 0, len(facts.Reports))
		for _, r := range facts.Reports {
			rows = append(rows, row(r, status.Revision))
		}
		fill(&status, facts, rows)
		status.Scale = scale(status, facts, rows)
	} else {
		markStale(&status, facts.Now)
	}
	judged := status
	judged.Clusters = counting(status.Clusters)
	setConditions(&status, before, summarize(judged, facts))
	fitMessages(status.Clusters)
	return status
}

// fitMessages shortens what the conditions were drawn from already.
func fitMessages(rows []v1alpha1.ClusterStatus) {
	messages := make([]string, 0, len(rows))
	for _, r := range rows {
		messages = append(messages, r.Message)
	}
	for i, m := range brief.Fit(messages, maxMessages) {
		rows[i].Message = m
	}
}

// counting are the rows that are not given up.
func counting(rows []v1alpha1.ClusterStatus) []v1alpha1.ClusterStatus {
	return slices.DeleteFunc(slices.Clone(rows), func(r v1alpha1.ClusterStatus) bool { return r.GivenUp == metav1.ConditionTrue })
}

// row is one cluster's line. Numbers of a report that is not current stay visible, but never as healthy.
func row(r Report, revision string) v1alpha1.ClusterStatus {
	out := v1alpha1.ClusterStatus{
		Name: r.Name, Desired: r.Desired, Applied: metav1.ConditionUnknown, Health: v1alpha1.HealthUnknown,
		Stale: metav1.ConditionFalse,
	}
	if reason := unreachable(r); reason != "" {
		out.Stale = metav1.ConditionTrue
		out.Message = reason
	}
	if r.GivenUp {
		out.GivenUp = metav1.ConditionTrue
		out.Message = "given up, other clusters have taken its place: " + cmp.Or(out.Message, "tainted")
	}
	o := r.Observed
	if o == nil {
		out.Message = cmp.Or(out.Message, "nothing sent to the cluster yet")
		return out
	}
	out.Revision, out.Applied = o.Revision, o.Applied
	if r.Paused {
		out.Paused = metav1.ConditionTrue
		if o.Runs != "" && o.Applied != metav1.ConditionFalse {
			out.Revision, out.Applied = o.Runs, metav1.ConditionTrue
		}
	}
	if r.State != nil {
		s := *r.State
		out.Replicas, out.Ready, out.Updated, out.Available = s.Replicas, s.Ready, s.Updated, s.Available
		if out.Desired == nil {
			out.Desired = s.Desired
		}
	}
	switch {
	case out.Stale == metav1.ConditionTrue || r.GivenUp:
	case o.Removing() || !r.Target:
		out.Health, out.Message = v1alpha1.HealthProgressing, cmp.Or(o.Message, removing(r.Removal))
	case o.Applied == metav1.ConditionFalse:
		out.Health, out.Message = v1alpha1.HealthDegraded, cmp.Or(o.Message, "the cluster refused the manifest")
	case r.lacks(revision):
		out.Health, out.Message = v1alpha1.HealthSuspended, fmt.Sprintf("%s: revision %s waits", pausedMessage, revision)
	case r.State == nil && o.Held:
		out.Message = "held back, nothing is sent to the cluster"
	case r.State == nil:
		out.Message = cmp.Or(o.Message, "no report from the cluster yet")
	case r.Paused && (o.Current || o.Runs != ""):
		out.Health, out.Message = r.State.Health, join(pausedMessage, r.State.Message)
		if out.Health == v1alpha1.HealthProgressing && hasOther(out.Replicas, out.Desired) {
			out.Health = v1alpha1.HealthSuspended // it was paused before it got its number
		}
	case !o.Current || o.Applied != metav1.ConditionTrue || (revision != "" && o.Revision != revision):
		out.Health, out.Message = v1alpha1.HealthProgressing, cmp.Or(o.Message, "waiting for a report on the newest manifest")
	default:
		out.Health, out.Message = r.State.Health, r.State.Message
	}
	if o.Left != nil {
		out.Message = join(leftMessage(*o.Left), out.Message)
	}
	out.Message = shorten(out.Message)
	return out
}

// leftMessage says that somebody else's change stays.
func leftMessage(left backends.Left) string {
	return "left as somebody else has changed it there (spec.drift Report): " + left.Others
}

// pausedMessage says that a cluster is paused.
const pausedMessage = "paused by spec.placement.paused"

// hasOther tells whether both numbers are known and differ.
func hasOther(is, wanted *int32) bool { return is != nil && wanted != nil && *is != *wanted }

// lacks tells whether a paused cluster runs, as far as is known, another revision than this one.
func (r Report) lacks(revision string) bool {
	o := r.Observed
	switch {
	case !r.Paused || revision == "" || o == nil || o.Applied == metav1.ConditionFalse:
		return false
	case o.Runs != "":
		return o.Runs != revision
	default:
		return o.Applied != metav1.ConditionTrue || o.Revision != revision
	}
}

// removing says that a cluster is left, and why.
func removing(why v1alpha1.RemovalReason) string {
	const text = "being removed from the cluster"
	switch why {
	case v1alpha1.RemovalSpecChanged:
		return text + ": spec.placement was edited and does not choose it"
	case v1alpha1.RemovalDeselected:
		return text + ": it has changed, and spec.placement does not choose it any more"
	case v1alpha1.RemovalClusterLeft:
		return text + ": the backend does not know it any more"
	case v1alpha1.RemovalNoReplicas:
		return text + ": it gets none of the replicas"
	case v1alpha1.RemovalFailedOver:
		return text + ": other clusters have taken its place"
	case v1alpha1.RemovalConfirmed:
		return text + ": a person has confirmed it"
	default:
		return text
	}
}

func unreachable(r Report) string {
	switch {
	case r.Cluster == nil:
		return "the backend does not know this cluster any more; last known numbers"
	case r.Cluster.Ready != metav1.ConditionTrue:
		message := "the cluster cannot be reached, these are its last known numbers"
		if r.Cluster.Message != "" {
			message += " (" + r.Cluster.Message + ")"
		}
		return message
	default:
		return ""
	}
}

func shorten(message string) string { return brief.Cut(message, maxMessage) }

// fill writes rows and everything that is counted from them.
func fill(status *v1alpha1.FleetWorkloadStatus, facts Facts, rows []v1alpha1.ClusterStatus) {
	previous := map[string]v1alpha1.ClusterStatus{}
	for _, r := range status.Clusters {
		previous[r.Name] = r
	}
	for i := range rows {
		rows[i].LastTransitionTime = transition(previous[rows[i].Name], rows[i], facts.Now)
	}
	status.ClusterSummary = count(rows, facts.targets(), status.Revision)
	sum(status, counting(rows))
	slices.SortFunc(rows, func(a, b v1alpha1.ClusterStatus) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(a.Name, b.Name))
	})
	status.Truncated = nil
	if len(rows) > MaxRows {
		status.Truncated = ptr(int32(len(rows) - MaxRows))
		rows = rows[:MaxRows]
	}
	status.Clusters = rows
}

func transition(before, after v1alpha1.ClusterStatus, now metav1.Time) *metav1.Time {
	if before.LastTransitionTime != nil && before.Applied == after.Applied && before.Health == after.Health &&
		before.Stale == after.Stale {
		return before.LastTransitionTime
	}
	return &now
}

// urgency sorts rows: what needs attention comes first.
func urgency(r v1alpha1.ClusterStatus) int {
	switch {
	case r.Applied == metav1.ConditionFalse || r.Health == v1alpha1.HealthDegraded:
		return 0
	case r.Stale == metav1.ConditionTrue:
		return 1
	case r.Health == v1alpha1.HealthUnknown:
		return 2
	case r.Health == v1alpha1.HealthProgressing:
		return 3
	case r.Health == v1alpha1.HealthSuspended:
		return 4
	default:
		return 5
	}
}

func count(rows []v1alpha1.ClusterStatus, targets map[string]bool, revision string) *v1alpha1.ClusterSummary {
	var total, scheduled, applied, healthy, stale, upToDate int32
	for _, r := range rows {
		total++
		if r.Stale == metav1.ConditionTrue {
			stale++
		}
		if !targets[r.Name] {
			continue
		}
		scheduled++
		if r.Applied == metav1.ConditionTrue && r.Revision == revision {
			applied++
			if r.Stale == metav1.ConditionFalse && r.Health != v1alpha1.HealthUnknown {
				upToDate++
			}
		}
		if r.Health == v1alpha1.HealthHealthy {
			healthy++
		}
	}
	return &v1alpha1.ClusterSummary{
		Total: &total, Scheduled: &scheduled, Applied: &applied, Healthy: &healthy, Stale: &stale, UpToDate: &upToDate,
	}
}

// sum adds up what clusters reported. A number that no cluster reported stays absent, and so does a sum that cannot be.
func sum(status *v1alpha1.FleetWorkloadStatus, rows []v1alpha1.ClusterStatus) {
	add := func(field func(v1alpha1.ClusterStatus) *int32) *int32 {
		numbers := make([]*int32, 0, len(rows))
		for _, r := range rows {
			numbers = append(numbers, field(r))
		}
		total, _ := interpreter.Total(numbers...)
		return total
	}
	status.DesiredReplicas = add(func(r v1alpha1.ClusterStatus) *int32 { return r.Desired })
	status.Replicas = add(func(r v1alpha1.ClusterStatus) *int32 { return r.Replicas })
	status.ReadyReplicas = add(func(r v1alpha1.ClusterStatus) *int32 { return r.Ready })
	status.UpdatedReplicas = add(func(r v1alpha1.ClusterStatus) *int32 { return r.Updated })
	status.AvailableReplicas = add(func(r v1alpha1.ClusterStatus) *int32 { return r.Available })
	status.Ready = fmt.Sprintf("%s/%s", show(status.ReadyReplicas), show(status.DesiredReplicas))
	status.ClustersReady = fmt.Sprintf("%d/%d", *status.ClusterSummary.Healthy, *status.ClusterSummary.Scheduled)
}

// scale is nil when there is nothing to show.
func scale(status v1alpha1.FleetWorkloadStatus, facts Facts, rows []v1alpha1.ClusterStatus) *v1alpha1.ScaleStatus {
	out := v1alpha1.ScaleStatus{Selector: facts.Selector, Replicas: status.Replicas}
	if out.Selector == "" && status.Scale != nil {
		out.Selector = status.Scale.Selector
	}
	if facts.Duplicated {
		out.Replicas = average(rows, facts.scaled())
	}
	if out == (v1alpha1.ScaleStatus{}) {
		return nil
	}
	return &out
}

// average is how many replicas one of the targets runs that have reported, rounded up; nil when none has.
func average(rows []v1alpha1.ClusterStatus, targets map[string]bool) *int32 {
	var total, reported int64
	for _, r := range counting(rows) {
		if targets[r.Name] && r.Replicas != nil {
			total, reported = total+int64(*r.Replicas), reported+1
		}
	}
	if reported == 0 {
		return nil
	}
	return ptr(int32((total + reported - 1) / reported))
}

func show(n *int32) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// markStale keeps what was last known, as such.
func markStale(status *v1alpha1.FleetWorkloadStatus, now metav1.Time) {
	for i, r := range status.Clusters {
		if r.Stale == metav1.ConditionTrue {
			continue
		}
		status.Clusters[i].Stale = metav1.ConditionTrue
		status.Clusters[i].Health = v1alpha1.HealthUnknown
		status.Clusters[i].Message = "the backend cannot be read; last known numbers"
		status.Clusters[i].LastTransitionTime = &now
	}
	if s := status.ClusterSummary; s != nil && s.Total != nil {
		s.Stale, s.Healthy, s.UpToDate = ptr(*s.Total), ptr(int32(0)), ptr(int32(0))
		status.ClustersReady = fmt.Sprintf("0/%s", show(s.Scheduled))
	}
}

func ptr[T any](v T) *T { return &v }
