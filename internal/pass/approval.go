package pass

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
)

const (
	// approvalHolds is how long what a change comes to can be approved.
	approvalHolds = 24 * time.Hour
	// mostPlanned is how many clusters status.change lists.
	mostPlanned = 50
	// mostSummary bounds what a status says in a line of what a spec comes to, or of why it does not.
	mostSummary = 2048
	// mostGiven bounds what is repeated of an approval that stands for nothing: anybody may have written it.
	mostGiven = 63
)

// Planned is what a spec comes to.
type Planned struct {
	// Problem is why it would not be carried out; empty when it would.
	Problem string
	// Edited is true when it asks for other clusters, or another division, than when the spec was last carried out.
	Edited bool
	// Unsettled is true while the backend has not chosen clusters.
	Unsettled bool
	// Clusters are those on which something changes, by name.
	Clusters []v1alpha1.PlannedCluster
	// Companions are what becomes of the objects that travel with it.
	Companions []PlannedCompanion
}

// approved is a FleetWorkload as if its spec had been approved, whatever that takes out.
func approved(fw *v1alpha1.FleetWorkload, now time.Time) (*v1alpha1.FleetWorkload, error) {
	hash, err := hashOf(Approvable(fw.Spec))
	if is := fw.Status.Change; is != nil && is.ApprovedHash == hash {
		return fw, err
	}
	next := *fw
	next.Status.Change = &v1alpha1.ChangeStatus{ApprovedHash: hash}
	next.Status.Placement = guard.WithApproved(fw.Status.Placement, func(string) bool { return true }, metav1.NewTime(now))
	return &next, err
}

// PlanOf rehearses a FleetWorkload's spec as if it were not suspended. read answers what is asked. Nothing of in is changed.
func PlanOf(in In, read func(*In, Reads)) Planned {
	fw := *in.FleetWorkload
	fw.Spec.Suspend = nil
	in.FleetWorkload = &fw
	return rehearsed(in, read)
}

func rehearsed(in In, read func(*In, Reads)) Planned {
	d, problem := Rehearse(in, read)
	switch {
	case problem != nil:
		return Planned{Problem: problem.Message}
	case d.placed.choice == nil || len(d.Orders) == 0 || d.Orders[0].Apply == nil:
		return Planned{Unsettled: true}
	}
	before := in.FleetWorkload.Status.Placement
	p := Planned{Edited: before == nil || before.ClustersHash != d.work.asked.Clusters || before.DivisionHash != d.work.asked.Division}
	for _, row := range d.Rows(before) {
		if row.Action != "" {
			p.Clusters = append(p.Clusters, v1alpha1.PlannedCluster{
				Name: row.Cluster, Action: row.Action, Replicas: row.Replicas, ReplicasBefore: row.ReplicasBefore, Reason: row.Reason,
			})
		}
	}
	// The status is read by people who need not be allowed to read what the pods refer to.
	p.Companions = d.Companions(false)
	return p
}

// Row is what becomes of one cluster.
type Row struct {
	Cluster string
	// Action is empty when nothing is done there; Held, Conflict and Unsaid say why, where it is for no lack of a difference.
	Action                   v1alpha1.PlannedAction
	Replicas, ReplicasBefore *int32
	Reason                   v1alpha1.RemovalReason
	// Held clusters keep what they run; those in Conflict have somebody else's object of that name; nothing is said of Unsaid ones.
	Held, Conflict, Unsaid bool
}

// Rows say what an order to apply does to each cluster, by name. Without one they say nothing. before is what was decided last.
func (d *Decision) Rows(before *v1alpha1.PlacementRecord) (rows []Row) {
	if len(d.Orders) == 0 || d.Orders[0].Apply == nil {
		return nil
	}
	targets, decided := d.Orders[0].Apply.Targets, guard.Decided(before)
	for _, t := range targets {
		var o *backends.ClusterObservation
		if d.observed != nil {
			if found, is := d.observed.Of(t.Cluster); is {
				// A backend may ask a held cluster for what comes next already.
				if n, was := decided[t.Cluster]; was && found.Held && found.Asked != nil {
					found.Asked = &n
				}
				o = &found
			}
		}
		rows = append(rows, rowOf(t, o, d.Revision()))
	}
	if d.observed != nil {
		for _, o := range d.observed.Clusters {
			if !slices.ContainsFunc(targets, func(t backends.Target) bool { return t.Cluster == o.Cluster }) {
				rows = append(rows, Row{Cluster: o.Cluster, Replicas: o.Asked, ReplicasBefore: o.Asked, Unsaid: true})
			}
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Cluster, b.Cluster) })
	return rows
}

// rowOf compares a target with what its cluster reports, if anything.
func rowOf(t backends.Target, o *backends.ClusterObservation, revision string) Row {
	there := o != nil && !o.Removing() && (o.Probe == nil || o.Probe.Exists) && !neverSent(*o) && !onlyNamed(*o)
	row := Row{Cluster: t.Cluster, Replicas: t.Replicas, Reason: t.Reason}
	if there && o.Probe == nil {
		row.ReplicasBefore = o.Asked
	}
	switch {
	case t.Mode == backends.ModeRemove:
		row.Action, row.Replicas = v1alpha1.PlannedRemove, nil
	case t.Mode == backends.ModeHold:
		row.Held, row.Replicas = true, row.ReplicasBefore
	case o != nil && o.Conflict:
		row.Conflict = true
	case !there && (t.Mode == backends.ModeAdopt || t.Mode == backends.ModeProbe && (o == nil || o.Probe == nil || !o.Probe.Answered)):
		row.Action = v1alpha1.PlannedCreateOrAdopt
	case !there:
		row.Action = v1alpha1.PlannedCreate
	case o.Probe != nil:
		row.Action = v1alpha1.PlannedAdopt
	case runs(*o) != revision:
		row.Action = v1alpha1.PlannedUpdate
	case ptr.Deref(o.Asked, -1) != ptr.Deref(t.Replicas, -1):
		row.Action = v1alpha1.PlannedScale
	}
	return row
}

// neverSent tells whether what a backend holds for a cluster was held back from the start.
func neverSent(o backends.ClusterObservation) bool {
	return o.Held && o.Status == nil && o.Applied != metav1.ConditionTrue && o.Probe == nil
}

// onlyNamed tells whether a backend knows that the workload goes to a cluster and has made nothing for it there yet: Karmada's binding is before
// its Works, and companions are before the workload.
func onlyNamed(o backends.ClusterObservation) bool {
	return o.Applied == metav1.ConditionUnknown && o.Asked == nil && o.Revision == "" && o.Status == nil && o.Probe == nil
}

// runs is the revision that a cluster has: of a held one the backend may have another one ready.
func runs(o backends.ClusterObservation) string {
	if o.Held && (o.Runs != "" || o.Applied != metav1.ConditionTrue) {
		return o.Runs
	}
	return o.Revision
}

// awaitApproval has a change of the spec wait until a person has approved what it comes to (spec.approval). Until then the workload is left
// as if it were suspended.
func (d *Decision) awaitApproval() error {
	fw := d.in.FleetWorkload
	if fw.Spec.Approval != v1alpha1.ApprovalPolicyManual {
		d.record.change = nil
		return nil
	}
	hash, err := hashOf(Approvable(fw.Spec))
	if err != nil {
		return err
	}
	before := ptr.Deref(d.record.change, v1alpha1.ChangeStatus{})
	if before.ApprovedHash == hash {
		d.record.change = &v1alpha1.ChangeStatus{ApprovedHash: hash, Approved: before.Approved}
		return nil
	}
	planned := d.planned()
	if planned == nil {
		d.Reads.Plan = true
		return errEnough
	}
	// What was carried out before anybody had to approve it, and is carried out still, needs no approval.
	if before.ApprovedHash == "" && d.record.revision != nil && planned.same() {
		d.record.change = &v1alpha1.ChangeStatus{ApprovedHash: hash}
		return nil
	}
	return d.keepWaiting(hash, before, *planned)
}

// planned is what the spec comes to; nil until it was read. A change of spec.backend is rehearsed by nobody: it moves what there is.
func (d *Decision) planned() *Planned {
	fw := d.in.FleetWorkload
	if fw.Status.Backend == "" || fw.Status.Backend == fw.Spec.Backend {
		return d.in.Planned
	}
	p := &Planned{}
	shares := guard.Decided(d.record.placement)
	for _, name := range d.recordedClusters() {
		if n, has := shares[name]; has {
			p.Clusters = append(p.Clusters, v1alpha1.PlannedCluster{Name: name, Action: v1alpha1.PlannedMove, Replicas: &n, ReplicasBefore: &n})
		}
	}
	p.Companions = d.movedCompanions(p.Clusters)
	return p
}

// keepWaiting leaves everything as it is, and says what waits. An approval is recorded before anything follows from it.
func (d *Decision) keepWaiting(hash string, before v1alpha1.ChangeStatus, planned Planned) error {
	fw := d.in.FleetWorkload
	next, err := d.changeOf(hash, before, planned)
	if err != nil {
		return err
	}
	d.record.change = &next
	held := *fw
	held.Spec.Suspend = ptr.To(true)
	d.in.FleetWorkload, d.spec, d.here = &held, &held, &held
	next.Superseded = d.superseded(before, next)
	given := fw.Annotations[v1alpha1.AnnotationApproveChange]
	switch {
	case next.Approval == "":
		d.unapproved = "a change of the spec waits for approval, and cannot be approved yet: " + next.Message
	case given == next.Approval:
		d.record.change = &v1alpha1.ChangeStatus{ApprovedHash: hash, Approved: given}
		d.record.placement = guard.WithApproved(d.record.placement, planned.takesOut, d.now)
		d.unapproved, d.requeueAfter = "a change of the spec was approved, which is recorded first", time.Second
	default:
		d.unapproved = fmt.Sprintf("%sa change of the spec waits for approval: %s; approve it with: kubectl annotate fleetworkload %s -n %s %s=%s --overwrite",
			ofAnother(given, next), next.Message, fw.Name, fw.Namespace, v1alpha1.AnnotationApproveChange, next.Approval)
		d.requeueAfter = backends.Sooner(d.requeueAfter, next.ExpiresAt.Sub(d.now.Time))
	}
	return nil
}

// superseded is what could be approved last, unless that can be approved again.
func (d *Decision) superseded(before, next v1alpha1.ChangeStatus) *v1alpha1.SupersededChange {
	last := before.Superseded
	if before.Approval != "" && before.Approval != next.Approval {
		last = &v1alpha1.SupersededChange{Approval: before.Approval, Message: before.Message, Reason: v1alpha1.SupersededOutcomeChanged}
		switch fw := d.in.FleetWorkload; {
		case ptr.Deref(fw.Status.ObservedGeneration, 0) != fw.Generation:
			last.Reason = v1alpha1.SupersededSpecEdited
		case before.ExpiresAt != nil && !d.now.Before(before.ExpiresAt):
			last.Reason = v1alpha1.SupersededExpired
		}
	}
	if last != nil && last.Approval == next.Approval {
		return nil
	}
	return last
}

// sinceThen says what has become of a superseded change.
var sinceThen = map[v1alpha1.SupersededReason]string{
	v1alpha1.SupersededSpecEdited:     "the spec was edited since",
	v1alpha1.SupersededOutcomeChanged: "it comes to something else now",
	v1alpha1.SupersededExpired:        "nobody approved it in time",
}

// ofAnother says that somebody has approved something else than what waits: what that was, and what has changed since. The annotation may
// still have what was approved and carried out before.
func ofAnother(given string, change v1alpha1.ChangeStatus) string {
	switch last := change.Superseded; {
	case given == "" || given == change.Approved:
		return ""
	case last != nil && given == last.Approval:
		return fmt.Sprintf("what was approved (%s: %s) is no longer what would be done, as %s: ", given, last.Message, sinceThen[last.Reason])
	default:
		return fmt.Sprintf("what the annotation approves (%s) is not what waits: ", brief.Cut(given, mostGiven))
	}
}

// changeOf is how the change stands. What was offered for approval stays so for as long as it is the same.
func (d *Decision) changeOf(hash string, before v1alpha1.ChangeStatus, planned Planned) (v1alpha1.ChangeStatus, error) {
	next := v1alpha1.ChangeStatus{ApprovedHash: before.ApprovedHash, Approved: before.Approved, Message: planned.summary()}
	if planned.Problem != "" || planned.Unsettled {
		next.ExpiresAt = before.ExpiresAt // what was approved meanwhile is good again when it comes to the same
		return next, nil
	}
	next.Clusters, next.Truncated = planned.shownClusters()
	next.Companions, next.CompanionsTruncated = shownCompanions(planned.Companions)
	if before.ExpiresAt != nil && d.now.Before(before.ExpiresAt) {
		token, err := planned.token(hash, *before.ExpiresAt)
		if err != nil {
			return next, err
		}
		if token == before.Approval || before.Approval == "" {
			next.Approval, next.ExpiresAt = token, before.ExpiresAt
			return next, nil
		}
	}
	until := metav1.NewTime(d.now.Add(approvalHolds))
	token, err := planned.token(hash, until)
	next.Approval, next.ExpiresAt = token, &until
	return next, err
}

// shownClusters are those that a status has room for, and how many more there are.
func (p Planned) shownClusters() (shown []v1alpha1.PlannedCluster, more *int32) {
	shown = p.Clusters[:min(len(p.Clusters), mostPlanned)]
	return shown, countOf(len(p.Clusters) - len(shown))
}

// countOf is a count as a status has it: absent when there is nothing to count.
func countOf(n int) *int32 {
	if n == 0 {
		return nil
	}
	return ptr.To(int32(n))
}

// takesOut tells whether a cluster would be left.
func (p Planned) takesOut(cluster string) bool {
	return slices.ContainsFunc(p.Clusters, func(c v1alpha1.PlannedCluster) bool {
		return c.Name == cluster && c.Action == v1alpha1.PlannedRemove
	})
}

// same tells whether nothing changes on clusters, now or when they change.
func (p Planned) same() bool {
	return p.Problem == "" && !p.Unsettled && !p.Edited && len(p.Clusters) == 0 && !slices.ContainsFunc(p.Companions, PlannedCompanion.differs)
}

// token stands for a spec, and for what it does to each cluster and to each companion. Numbers of replicas are no part of it: scaling does not
// wait for a person, and would make each approval come too late.
func (p Planned) token(hash string, until metav1.Time) (string, error) {
	all := []string{hash, fmt.Sprint(until.Unix())}
	for _, c := range p.Clusters {
		all = append(all, c.Name, string(c.Action), string(c.Reason))
	}
	for _, c := range p.Companions {
		row, err := hashOf([]any{c.PlannedCompanion, c.content})
		if err != nil {
			return "", err
		}
		all = append(all, row)
	}
	return hashOf(all)
}

// summary is what the change comes to, in a line.
func (p Planned) summary() string {
	return brief.Cut(strings.ToValidUTF8(p.inWords(), ""), mostSummary)
}

func (p Planned) inWords() string {
	switch {
	case p.Problem != "":
		return p.Problem
	case p.Unsettled:
		return "the backend has not chosen clusters yet"
	}
	companions := summaryOf(p.Companions)
	switch {
	case companions == "" && len(p.Clusters) == 0:
		return "nothing changes on any cluster"
	case len(p.Clusters) == 0:
		return "the workload stays as it is on each cluster; companions: " + companions
	case companions != "":
		return p.onClusters() + "; companions: " + companions
	default:
		return p.onClusters()
	}
}

// onClusters says what becomes of the workload.
func (p Planned) onClusters() string {
	by, actions := map[v1alpha1.PlannedAction][]string{}, []v1alpha1.PlannedAction(nil)
	for _, c := range p.Clusters {
		if by[c.Action] == nil {
			actions = append(actions, c.Action)
		}
		by[c.Action] = append(by[c.Action], c.Name)
	}
	slices.SortFunc(actions, func(a, b v1alpha1.PlannedAction) int { return cmp.Compare(a, b) })
	parts := make([]string, 0, len(actions))
	for _, a := range actions {
		parts = append(parts, fmt.Sprintf("%s on %s", a, brief.List(by[a])))
	}
	return strings.Join(parts, ", ")
}

// Approvable is what of a spec waits for approval: all but what must work at once.
func Approvable(spec v1alpha1.FleetWorkloadSpec) v1alpha1.FleetWorkloadSpec {
	spec.Replicas, spec.Placement.Paused, spec.Migration, spec.DeletionPolicy = nil, nil, nil, ""
	spec.Suspend, spec.Approval, spec.RevisionHistoryLimit = nil, "", nil
	return spec
}

// hashOf is a short hash of a value's JSON.
func hashOf(value any) (string, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("hash what waits for approval: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:16], nil
}
