package pass

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
)

// guard holds a removal of a large share of the replicas that no change of the spec asked for (law 2). A person confirms it with an
// annotation that carries the removal's token. While the workload is suspended nothing is removed at all.
func (d *Decision) guard() error {
	if suspended(d.in.FleetWorkload) {
		return nil
	}
	in := guard.In{
		Record: d.record.placement, Asked: d.work.asked, Runs: d.runs(), Reports: d.reported(), Next: d.next(),
		Chosen: slices.Concat(d.placed.choice.Clusters, d.placed.held, d.pinned()), Excluded: d.placed.excluded, FailedOver: d.placed.choice.GivenUp,
		Confirmation: d.in.FleetWorkload.Annotations[v1alpha1.AnnotationConfirmRemoval], MaxPercent: d.in.MaxRemovalPercent,
	}
	if in.Record == nil {
		// What is kept for now is given up all the same, once others run in its place.
		later := in
		later.Next = maps.Clone(in.Next)
		maps.DeleteFunc(later.Next, func(cluster string, _ int32) bool { return slices.Contains(d.placed.held, cluster) })
		if _, removal := guard.Check(later); removal != nil {
			return d.hold(removal)
		}
	}
	record, removal := guard.Check(in)
	if removal != nil {
		return d.hold(removal)
	}
	record.Group = d.placed.choice.Group
	d.noteAdopts(record.Clusters)
	d.confirm(record)
	record.Companions = d.companionsOf(d.record.placement)
	return d.decided(guard.WithRemovals(record, d.placed.removals))
}

// confirm notes which clusters are left because a person has confirmed it.
func (d *Decision) confirm(record v1alpha1.PlacementRecord) {
	before := d.record.placement
	if before == nil || ptr.Deref(record.ConfirmedRemovals, 0) == ptr.Deref(before.ConfirmedRemovals, 0) {
		return
	}
	for i, t := range d.placed.targets {
		if t.Reason == v1alpha1.RemovalDeselected || t.Reason == v1alpha1.RemovalClusterLeft {
			d.placed.targets[i].Reason, d.placed.removals[t.Cluster] = v1alpha1.RemovalConfirmed, v1alpha1.RemovalConfirmed
		}
	}
}

// decided remembers a decision. What is new of it is written before anything follows from it, so that it is not made anew from what is
// half carried out.
func (d *Decision) decided(record v1alpha1.PlacementRecord) error {
	before := d.in.FleetWorkload.Status.Placement
	d.record.placement = &record
	recorded := guard.Removals(before)
	unsaid := false
	for cluster, reason := range guard.Removals(&record) {
		unsaid = unsaid || recorded[cluster] != reason
	}
	unsaid = unsaid || before != nil && slices.ContainsFunc(record.Companions, func(c v1alpha1.WorkloadReference) bool {
		return !slices.Contains(before.Companions, c)
	})
	if before == nil || unsaid || !maps.Equal(guard.Decided(before), guard.Decided(&record)) {
		d.waiting, d.end.GoesOn = fmt.Sprintf("backend %s to take up the decision", d.backend), true
		return errEnough
	}
	return nil
}

// hold stops the pass at a removal that nobody asked for. It looks again, since room that others leave sends no event.
func (d *Decision) hold(removal *guard.Removal) error {
	fw := d.in.FleetWorkload
	return &stalled{reason: v1alpha1.ReasonRemovalHeld, again: true, message: fmt.Sprintf(
		"%s: this would take %d of %d replicas away, which no change of the spec asks for; nothing was changed. Correct the clusters' labels or "+
			"availability on backend %q, or confirm with: kubectl annotate fleetworkload %s -n %s %s=%s --overwrite",
		removal, removal.Lost, removal.Total, d.backend, fw.Name, fw.Namespace, v1alpha1.AnnotationConfirmRemoval, removal.Token)}
}

// runs are the clusters that have the workload, with the replicas that they run. What was held back from the start runs nowhere.
func (d *Decision) runs() map[string]int32 {
	runs := map[string]int32{}
	for _, o := range d.observed.Clusters {
		if !o.Removing() && o.Probe == nil && !neverSent(o) {
			runs[o.Cluster] = running(o.Status, o.Asked)
		}
	}
	return runs
}

// reported is how many replicas the targets' clusters say that they run; 1 of kinds without.
func (d *Decision) reported() map[string]int32 {
	reports := map[string]int32{}
	for _, t := range d.placed.targets {
		o, is := d.observed.Of(t.Cluster)
		if !is || o.Removing() || o.Probe != nil {
			continue
		}
		state := d.interpret(d.backend, t, o)
		switch {
		case state == nil:
		case t.Replicas == nil:
			reports[t.Cluster] = 1
		default:
			reports[t.Cluster] = ptr.Deref(state.Replicas, running(o.Status, o.Asked))
		}
	}
	return reports
}

// next is what each cluster is to run after the pass. One that is only asked is left as it is, as is one of which nothing is said.
func (d *Decision) next() map[string]int32 {
	next := maps.Clone(d.placed.vanished)
	if next == nil {
		next = map[string]int32{}
	}
	for cluster, n := range d.placed.pinned {
		next[cluster] = ptr.Deref(n, 1)
	}
	for _, t := range d.placed.targets {
		switch {
		case t.Mode == backends.ModeRemove:
		case !t.Mode.Owns():
			if n, is := guard.Decided(d.record.placement)[t.Cluster]; is {
				next[t.Cluster] = n
			}
		case t.Replicas == nil:
			next[t.Cluster] = 1
		default:
			next[t.Cluster] = *t.Replicas
		}
	}
	return next
}

// running is how many replicas a cluster runs. Without a report, what was asked of it counts; kinds without replicas
// count as one.
func running(status map[string]any, asked *int32) int32 {
	if n, ok := status["replicas"].(int64); ok && n > 0 {
		return int32(min(n, math.MaxInt32))
	}
	if asked != nil {
		return *asked
	}
	return 1
}
