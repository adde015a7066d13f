package pass

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/difference"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// Bounds of what status.change says of companions.
const (
	mostCompanions        = 50
	mostCompanionClusters = 5
	mostCompanionChanges  = 10
	// mostCompanionChange bounds one of the changes, in bytes.
	mostCompanionChange = 200
	// mostCompanionBytes bounds all of it: the status has more to tell.
	mostCompanionBytes = 12 << 10
	// mostCompanionSummary bounds what the message says of them.
	mostCompanionSummary = 1024
)

// PlannedCompanion is what becomes of one companion. It lists all clusters on which it becomes just that, and all changes.
type PlannedCompanion struct {
	v1alpha1.PlannedCompanion
	// Shared is true for what the pods refer to.
	Shared bool
	// content stands for what the object becomes.
	content string
}

// Acts tells whether anything becomes of the object.
func (p PlannedCompanion) Acts() bool {
	return p.Action != v1alpha1.CompanionLeave && p.Action != v1alpha1.CompanionHold
}

// differs tells whether the object is, or is to become, another one than it is on any cluster: on a paused one it waits.
func (p PlannedCompanion) differs() bool {
	return p.Acts() || p.Reason == v1alpha1.CompanionClusterPaused
}

// Companions say what an order to apply does to the companions: what changes, and what is left alone for a reason. Without an order they say
// nothing. Where a companion is not in the spec, its values are told only if the caller may see them.
func (d *Decision) Companions(values bool) []PlannedCompanion {
	if len(d.Orders) == 0 || d.Orders[0].Apply == nil || d.observed == nil || suspended(d.in.FleetWorkload) {
		return nil
	}
	r := companionRows{decision: d, values: values, rows: map[string]*PlannedCompanion{}}
	for _, t := range d.Orders[0].Apply.Targets {
		r.addTarget(t)
	}
	return r.sorted()
}

// companionRows collect what becomes of companions, the clusters together on which it is the same.
type companionRows struct {
	decision *Decision
	values   bool
	rows     map[string]*PlannedCompanion
}

// addTarget says what becomes of all companions of one cluster.
func (r *companionRows) addTarget(t backends.Target) {
	there := map[string]*backends.CompanionObservation{}
	if o, seen := r.decision.observed.Of(t.Cluster); seen {
		for i, c := range o.Companions {
			there[ObjectKey(*plan.Reference(c.Object))] = &o.Companions[i]
		}
	}
	if t.Mode != backends.ModeRemove {
		r.addWanted(t, there)
	}
	for _, o := range there {
		row := r.leaving(t, *o)
		row.Shared = o.Shared
		r.add(t.Cluster, *plan.Reference(o.Object), row)
	}
}

// addWanted says what becomes of the companions that a cluster is to have, and takes them out of those that are there.
func (r *companionRows) addWanted(t backends.Target, there map[string]*backends.CompanionObservation) {
	for _, c := range r.decision.travel.companions {
		if !c.NeededOn(t.Cluster) {
			continue
		}
		ref := *plan.Reference(c.Object)
		row := r.wanted(t, c, there[ObjectKey(ref)])
		row.Shared, row.content = c.Shared, r.decision.contentOf(c)
		r.add(t.Cluster, ref, row)
		delete(there, ObjectKey(ref))
	}
	for _, n := range r.decision.travel.lacking {
		if n.Clusters != nil && !slices.Contains(n.Clusters, t.Cluster) {
			continue
		}
		ref := v1alpha1.WorkloadReference{APIVersion: n.GroupVersion().String(), Kind: n.Kind, Name: n.Name}
		r.add(t.Cluster, ref, plannedTo(v1alpha1.CompanionHold, v1alpha1.CompanionMissing))
		delete(there, ObjectKey(ref))
	}
}

func plannedTo(action v1alpha1.CompanionAction, reason v1alpha1.CompanionReason) PlannedCompanion {
	return PlannedCompanion{PlannedCompanion: v1alpha1.PlannedCompanion{Action: action, Reason: reason}}
}

// wanted is what becomes of a companion that a cluster is to have. o is what the backend has of it, if anything.
func (r *companionRows) wanted(t backends.Target, c backends.Companion, o *backends.CompanionObservation) (row PlannedCompanion) {
	adopts := r.decision.spec.Spec.ConflictPolicy == v1alpha1.ConflictPolicyAdopt ||
		t.Mode == backends.ModeAdopt && !slices.Contains(c.Foreign, t.Cluster)
	switch {
	case (o == nil || o.Removing) && adopts:
		row.Action = v1alpha1.CompanionCreateOrAdopt
	case o == nil || o.Removing:
		row.Action = v1alpha1.CompanionCreate
	case o.Theirs == backends.TheirsBackend:
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionOtherBackends)
	case o.Theirs == backends.TheirsForeign && adopts:
		row.Action = v1alpha1.CompanionAdopt
	case o.Theirs == backends.TheirsForeign && c.Shared:
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionSomebodyElses)
	case o.Theirs == backends.TheirsForeign:
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionBlocksWorkload)
	default:
		if row.PlannedCompanion.Changes = plan.CompanionChanges(o.Object, c.Object, r.values || !c.Shared); row.PlannedCompanion.Changes != nil {
			row.Action = v1alpha1.CompanionUpdate
		}
	}
	if row.Action != "" && r.decision.pins(t.Cluster) {
		row.Action, row.Reason = v1alpha1.CompanionHold, v1alpha1.CompanionClusterPaused
	}
	return row
}

// leaving is what becomes of a companion that a cluster no longer needs. What is on its way out already is no news.
func (r *companionRows) leaving(t backends.Target, o backends.CompanionObservation) PlannedCompanion {
	reason := v1alpha1.CompanionNotListed
	if t.Mode == backends.ModeRemove {
		reason = v1alpha1.CompanionWorkloadRemoved
	}
	switch {
	case o.Removing, r.decision.pins(t.Cluster):
		return PlannedCompanion{}
	case t.Mode != backends.ModeRemove && o.Shared && !r.decision.work.plan.Propagates():
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionDependenciesIgnored)
	case o.Theirs == backends.TheirsBackend:
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionOtherBackends)
	case o.Theirs == backends.TheirsForeign:
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionSomebodyElses)
	case o.Others:
		return plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionUsedByOthers)
	case o.Object.GetKind() == "PersistentVolumeClaim":
		return plannedTo(v1alpha1.CompanionGiveUp, v1alpha1.CompanionKeepsData)
	case o.Elsewhere:
		return plannedTo(v1alpha1.CompanionGiveUp, v1alpha1.CompanionMayBeNeeded)
	default:
		return plannedTo(v1alpha1.CompanionDelete, reason)
	}
}

// add counts a cluster among those on which the same becomes of an object.
func (r *companionRows) add(cluster string, ref v1alpha1.WorkloadReference, row PlannedCompanion) {
	if row.Action == "" {
		return
	}
	key := strings.Join(append([]string{ObjectKey(ref), string(row.Action), string(row.Reason)}, row.PlannedCompanion.Changes...), "\n")
	known := r.rows[key]
	if known == nil {
		row.WorkloadReference = ref
		known = &row
		r.rows[key] = known
	}
	known.Clusters = append(known.Clusters, cluster)
}

// sorted has what changes first, so that it is shown where there is no room for all.
func (r *companionRows) sorted() []PlannedCompanion {
	all := make([]PlannedCompanion, 0, len(r.rows))
	for _, row := range r.rows {
		slices.Sort(row.Clusters)
		all = append(all, *row)
	}
	rank := func(p PlannedCompanion) int {
		if p.Action == v1alpha1.CompanionLeave {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b PlannedCompanion) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Action, b.Action), cmp.Compare(a.Reason, b.Reason), slices.Compare(a.Clusters, b.Clusters))
	})
	return all
}

// contentOf stands for what a companion holds. Of a Secret that pods refer to it is the version that was read: a hash of its values would let
// who may not read it guess them, and who edits the spec may.
func (d *Decision) contentOf(c backends.Companion) string {
	if c.Shared && difference.IsSecret(c.Object.Object) {
		return d.travel.versions[ObjectKey(*plan.Reference(c.Object))]
	}
	return plan.CompanionRevision(c.Object)
}

// movedCompanions are those that change hands with the workload: what is recorded of spec.companions, and what pods refer to.
func (d *Decision) movedCompanions(clusters []v1alpha1.PlannedCluster) []PlannedCompanion {
	if d.record.placement == nil || len(clusters) == 0 {
		return nil
	}
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	var moved []PlannedCompanion
	for _, ref := range d.record.placement.Companions {
		row := plannedTo(v1alpha1.CompanionMove, "")
		row.WorkloadReference, row.Clusters = ref, names
		moved = append(moved, row)
	}
	for _, n := range d.movedNeeds() {
		ref := v1alpha1.WorkloadReference{APIVersion: n.GroupVersion().String(), Kind: n.Kind, Name: n.Name}
		if slices.Contains(d.record.placement.Companions, ref) {
			continue
		}
		row := plannedTo(v1alpha1.CompanionMove, "")
		row.WorkloadReference, row.Clusters, row.Shared = ref, names, true
		moved = append(moved, row)
	}
	return moved
}

// movedNeeds are what the template refers to. What an override has single clusters refer to is left out: which those are, nobody has asked.
func (d *Decision) movedNeeds() []plan.Need {
	p, err := plan.New(d.in.FleetWorkload, d.in.Kinds)
	if err != nil || !p.Propagates() {
		return nil
	}
	needs, err := p.Needs([]backends.Target{{Manifest: p.Template}})
	if err != nil {
		return nil
	}
	return d.sent(needs)
}

// shownCompanions are as much of them as the status has room for, and how many more there are.
func shownCompanions(all []PlannedCompanion) (shown []v1alpha1.PlannedCompanion, more *int32) {
	size := 0
	for i, p := range all {
		row := bounded(p.PlannedCompanion)
		raw, err := json.Marshal(row)
		if size += len(raw); err != nil || len(shown) == mostCompanions || size > mostCompanionBytes {
			return shown, countOf(len(all) - i)
		}
		shown = append(shown, row)
	}
	return shown, nil
}

// bounded is a row with the first of its clusters and changes.
func bounded(row v1alpha1.PlannedCompanion) v1alpha1.PlannedCompanion {
	if more := len(row.Clusters) - mostCompanionClusters; more > 0 {
		row.Clusters, row.Truncated = row.Clusters[:mostCompanionClusters], ptr.To(int32(more))
	}
	lines := row.Changes
	if more := len(lines) - mostCompanionChanges; more > 0 {
		lines, row.ChangesTruncated = lines[:mostCompanionChanges], ptr.To(int32(more))
	}
	row.Changes = nil
	for _, line := range lines {
		row.Changes = append(row.Changes, brief.Cut(line, mostCompanionChange))
	}
	return row
}

// summaryOf says in a few words what becomes of companions; empty when nothing does.
func summaryOf(companions []PlannedCompanion) string {
	by, actions := map[v1alpha1.CompanionAction][]string{}, []v1alpha1.CompanionAction(nil)
	for _, c := range companions {
		if c.Action == v1alpha1.CompanionLeave {
			continue
		}
		if by[c.Action] == nil {
			actions = append(actions, c.Action)
		}
		if title := c.Kind + " " + c.Name; !slices.Contains(by[c.Action], title) {
			by[c.Action] = append(by[c.Action], title)
		}
	}
	slices.Sort(actions)
	parts := make([]string, 0, len(actions))
	for _, action := range actions {
		parts = append(parts, fmt.Sprintf("%s %s", action, brief.List(by[action])))
	}
	return brief.Cut(strings.Join(parts, ", "), mostCompanionSummary)
}
