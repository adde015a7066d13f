package bulk

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// State is what a FleetWorkload counts as.
type State string

const (
	// ToGo is one whose spec.backend is to be set.
	ToGo State = "ToGo"
	// UnderWay is one whose spec asks for the backend and that goes on by itself.
	UnderWay State = "UnderWay"
	// Waiting is one that goes on when a person says so. It keeps no other one from beginning.
	Waiting State = "WaitsForPerson"
	// Failing is one that has failed and is on its way back.
	Failing State = "Failing"
	// Failed is one that goes no further.
	Failed State = "Failed"
	// Moved is one that is on the backend, and was not at the beginning.
	Moved State = "Moved"
	// AlreadyThere is one that was on the backend at the beginning.
	AlreadyThere State = "AlreadyThere"
	// Deleted is one that is being deleted, is gone, or is no longer chosen by its labels: nothing is left to move.
	Deleted State = "Deleted"
	// Skipped is one that cannot begin, as things are. It begins in its turn when that changes.
	Skipped State = "Skipped"
)

// Standing is what a FleetWorkload counts as, and why, for a person.
type Standing struct {
	State   State
	Message string
	// Until is when time alone makes another one of it; zero when it does not.
	Until time.Time
}

// stand says what a FleetWorkload counts as.
func (r Rules) stand(e *entry, now time.Time) Standing {
	switch fw := e.FleetWorkload; {
	case e.gone:
		return Standing{State: Deleted, Message: "it was deleted meanwhile, or its labels no longer choose it"}
	case !fw.DeletionTimestamp.IsZero():
		return Standing{State: Deleted, Message: "it is being deleted"}
	case there(fw, r.To) && e.already:
		return Standing{State: AlreadyThere}
	case there(fw, r.To):
		return Standing{State: Moved}
	case fw.Spec.Backend == r.To:
		return r.underWay(fw, now)
	case e.tried:
		return changedMind(fw, r.To)
	default:
		return r.notBegun(fw, e.refused)
	}
}

// there tells whether the backend has it, or will without a hand-over.
func there(fw *v1alpha1.FleetWorkload, to string) bool {
	return fw.Spec.Backend == to && (fw.Status.Backend == to || fw.Status.Backend == "") && !handsOver(fw.Status.Migration)
}

func handsOver(m *v1alpha1.MigrationStatus) bool {
	return m != nil && m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating
}

// underWay is about one whose spec asks for the backend, and that is not there.
func (r Rules) underWay(fw *v1alpha1.FleetWorkload, now time.Time) Standing {
	m := fw.Status.Migration
	if m == nil {
		m = &v1alpha1.MigrationStatus{}
	}
	asks := m.Approval != "" && m.Approval != fw.Annotations[v1alpha1.AnnotationApproveMigration]
	failure := fmt.Sprintf("wave %d failed: %s", waveOf(m), m.Failure)
	switch {
	case m.Failure != "" && asks:
		return Standing{State: Failed, Message: failure}
	case m.Failure != "" && m.Approval == "":
		return Standing{State: Failing, Message: failure}
	case suspended(fw):
		return Standing{State: Waiting, Message: "spec.suspend is true: nothing changes hands"}
	case changeWaits(fw):
		return Standing{State: Waiting, Message: "the change of spec.backend waits for approval: " + fw.Status.Change.Message}
	case asks:
		return Standing{State: Waiting, Message: fmt.Sprintf("wave %d has passed and waits for approval", waveOf(m))}
	case m.Approval != "":
		return Standing{State: UnderWay, Message: "it was approved, and the operator has not seen that yet"}
	}
	if stalled := stalledNow(fw); stalled != nil {
		until := latest(&stalled.LastTransitionTime, m.StartedAt).Add(r.Patience)
		if !now.Before(until) {
			return Standing{State: Failed, Message: because(stalled)}
		}
		return Standing{State: UnderWay, Message: because(stalled), Until: until}
	}
	return Standing{State: UnderWay, Message: waitsFor(fw, m)}
}

// changeWaits tells whether a change of the spec waits for a person.
func changeWaits(fw *v1alpha1.FleetWorkload) bool {
	c := fw.Status.Change
	return c != nil && c.Approval != "" && c.Approval != fw.Annotations[v1alpha1.AnnotationApproveChange]
}

// waitsFor says what one that goes on by itself waits for, as far as that is known.
func waitsFor(fw *v1alpha1.FleetWorkload, m *v1alpha1.MigrationStatus) string {
	for _, c := range m.Clusters {
		if c.Message != "" {
			return fmt.Sprintf("cluster %s: %s", c.Name, c.Message)
		}
	}
	ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	if looked(fw) && ready != nil && ready.Status != metav1.ConditionTrue && (m.FrozenSince != nil || !handsOver(m)) {
		return because(ready)
	}
	return ""
}

// changedMind is about one whose spec asked for the backend before, and no longer does.
func changedMind(fw *v1alpha1.FleetWorkload, to string) Standing {
	s := Standing{State: Failed, Message: fmt.Sprintf("spec.backend was set to %s meanwhile; a GitOps controller that owns the field does that: "+
		"change it in its source", fw.Spec.Backend)}
	switch {
	case handsOver(fw.Status.Migration):
		s.State = Failing
	case turnedRound(fw, to) != nil:
		s.Message = "the migration was turned round: " + s.Message
	}
	return s
}

// notBegun is about one whose spec never asked for the backend.
func (r Rules) notBegun(fw *v1alpha1.FleetWorkload, refused string) Standing {
	skip := func(format string, args ...any) Standing {
		return Standing{State: Skipped, Message: fmt.Sprintf(format, args...)}
	}
	m, stalled := fw.Status.Migration, stalledNow(fw)
	switch {
	case fw.Status.Backend == "":
		return skip("no backend has it yet, so that there is nothing to hand over; set spec.backend to the one that is to have it")
	case handsOver(m) && m.From == fw.Spec.Backend:
		return skip("its migration to backend %s is being turned round", m.To)
	case handsOver(m):
		return skip("a migration from backend %s to %s is under way", m.From, m.To)
	case fw.Spec.Backend != fw.Status.Backend:
		return skip("a migration from backend %s to %s is to begin", fw.Status.Backend, fw.Spec.Backend)
	case suspended(fw):
		return skip("spec.suspend is true: nothing changes hands; set it to false")
	case pausedOn(fw) != "":
		return skip("spec.placement.paused: nothing changes hands while %s runs it and is paused; take it out of spec.placement.paused", pausedOn(fw))
	case stalled != nil:
		return skip("the present spec is not carried out, and waits for a person: %s", because(stalled))
	case refused != "":
		return Standing{State: Failed, Message: refused}
	}
	if last := turnedRound(fw, r.To); last != nil && !r.Retry {
		return skip("its last migration to backend %s was turned round at %s; move it by its name, or with --retry",
			r.To, last.FinishedAt.UTC().Format(time.RFC3339))
	}
	return Standing{State: ToGo}
}

// turnedRound is the newest migration when it was one to that backend, and went back.
func turnedRound(fw *v1alpha1.FleetWorkload, to string) *v1alpha1.MigrationRecord {
	if last := newest(fw); last != nil && last.To == to && last.Phase == v1alpha1.MigrationPhaseRolledBack {
		return last
	}
	return nil
}

// newest is the newest migration that is over; nil when there is none.
func newest(fw *v1alpha1.FleetWorkload) *v1alpha1.MigrationRecord {
	if m := fw.Status.Migration; m != nil && len(m.History) > 0 {
		return &m.History[0]
	}
	return nil
}

// cameTo is the newest migration when it brought the FleetWorkload to that backend.
func cameTo(fw *v1alpha1.FleetWorkload, to string) *v1alpha1.MigrationRecord {
	if last := newest(fw); last != nil && last.To == to && last.Phase == v1alpha1.MigrationPhaseCompleted {
		return last
	}
	return nil
}

// IsOf tells whether a FleetWorkload is a backend's, or has left it for the other one, or is about to.
func IsOf(fw *v1alpha1.FleetWorkload, backend, to string) bool {
	if there(fw, to) {
		last := cameTo(fw, to)
		return backend == to || last != nil && last.From == backend
	}
	return fromOf(fw, to) == backend
}

// fromOf is the backend that had it before the other one; empty when that is not known.
func fromOf(fw *v1alpha1.FleetWorkload, to string) string {
	m, last := fw.Status.Migration, cameTo(fw, to)
	switch {
	case m != nil && m.Phase != "" && m.To == to:
		return m.From
	case there(fw, to) && last != nil:
		return last.From
	case there(fw, to):
		return ""
	default:
		return fw.Status.Backend
	}
}

// begunAt is when a migration began: when the operator says so, otherwise now.
func begunAt(fw *v1alpha1.FleetWorkload, to string, now time.Time) time.Time {
	if m := fw.Status.Migration; m != nil && m.Phase != "" && m.To == to && m.StartedAt != nil {
		return m.StartedAt.Time
	}
	return now
}

// clustersOf counts the clusters, and those that are the backend's.
func clustersOf(fw *v1alpha1.FleetWorkload, to string) (all, handedOver int) {
	m := fw.Status.Migration
	if handsOver(m) {
		for _, c := range m.Clusters {
			theirs := c.Phase == v1alpha1.MigrationPhaseVerifying || c.Phase == v1alpha1.MigrationPhaseReleasing
			if theirs && m.To == to {
				handedOver++
			}
		}
		return len(m.Clusters), handedOver
	}
	if s := fw.Status.ClusterSummary; s != nil && s.Total != nil {
		all = int(*s.Total)
	}
	if fw.Status.Backend == to {
		return all, all
	}
	return all, 0
}

// sizeOf is how many clusters and how many replicas a FleetWorkload has, which count for many when they are not known.
func sizeOf(fw *v1alpha1.FleetWorkload) []int64 {
	size := []int64{math.MaxInt64, math.MaxInt64}
	if s := fw.Status.ClusterSummary; s != nil && s.Total != nil {
		size[0] = int64(*s.Total)
	}
	if n := fw.Status.DesiredReplicas; n != nil {
		size[1] = int64(*n)
	}
	return size
}

func suspended(fw *v1alpha1.FleetWorkload) bool { return fw.Spec.Suspend != nil && *fw.Spec.Suspend }

// looked tells whether the status is about the newest spec.
func looked(fw *v1alpha1.FleetWorkload) bool {
	return fw.Status.ObservedGeneration != nil && *fw.Status.ObservedGeneration == fw.Generation
}

// stalledNow is the condition while the operator waits for a person.
func stalledNow(fw *v1alpha1.FleetWorkload) *metav1.Condition {
	c := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue || !looked(fw) {
		return nil
	}
	return c
}

func because(c *metav1.Condition) string {
	return c.Reason + ": " + strings.Join(strings.Fields(c.Message), " ")
}

func latest(a, b *metav1.Time) time.Time {
	if b != nil && b.After(a.Time) {
		return b.Time
	}
	return a.Time
}

func waveOf(m *v1alpha1.MigrationStatus) int32 {
	if m.Wave == nil {
		return 0
	}
	return *m.Wave
}

// pausedOn is the first cluster that runs the workload and is paused; empty when none is.
func pausedOn(fw *v1alpha1.FleetWorkload) string {
	first := ""
	for _, c := range fw.Status.Clusters {
		if c.Paused == metav1.ConditionTrue && (first == "" || c.Name < first) {
			first = c.Name
		}
	}
	return first
}
