package pass

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// chooseClusters takes over the backend's choice and gives each cluster its share. While there is none, the placement
// is set up and members are left as they are; an empty choice is held (law 2).
func (d *Decision) chooseClusters() error {
	if err := plan.CheckNames(d.here.Spec, *d.fleet); err != nil {
		return err
	}
	if err := d.pause(); err != nil {
		return err
	}
	selection := d.observed.Selection
	if !selection.Settled {
		return d.setUpPlacement(selection)
	}
	if err := d.bound(&selection); err != nil {
		return err
	}
	if err := d.debounce(&selection); err != nil {
		return err
	}
	choice, err := d.choose(selection)
	if err != nil {
		return err
	}
	d.placed.choice = &choice
	if len(choice.Clusters) == 0 || d.editsClusters() && d.allMissing(choice.Clusters) {
		return d.noCluster(choice.Message)
	}
	targets, err := d.divide(d.unpinned(choice.Clusters))
	if err != nil {
		return err
	}
	if d.placed.unused, err = d.work.plan.Unused(*d.fleet, choice.Clusters); err != nil {
		return err
	}
	left, err := d.leaving(targets)
	if err != nil {
		return err
	}
	pinned, err := d.holdPinned()
	if err != nil {
		return err
	}
	d.placed.targets = slices.Concat(targets, left, pinned)
	slices.SortFunc(d.placed.targets, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	d.noteVersions()
	return nil
}

// allMissing tells whether no cluster is chosen but those that are gone on with for a moment: an edit that chooses nothing else removes
// nothing.
func (d *Decision) allMissing(chosen []string) bool {
	return !slices.ContainsFunc(chosen, func(c string) bool { return !slices.Contains(d.placed.missing, c) })
}

// setUpPlacement has the backend choose; members stay as they are.
func (d *Decision) setUpPlacement(selection backends.Selection) error {
	if d.unclaimed() {
		return errEnough
	}
	held, err := d.heldUnsettled()
	if err != nil {
		return err
	}
	desired := d.work.plan.Desired(held)
	desired.Companions = nil
	d.Orders = []Order{{Backend: d.backend, Apply: &desired}}
	d.conclude = func(outcomes map[string]Outcome) error {
		done := outcomes[d.backend]
		if done.Err != nil {
			return fmt.Errorf("choose clusters: %w", done.Err)
		}
		d.requeueAfter = backends.Sooner(d.requeueAfter, done.Progress.RequeueAfter)
		if d.waiting = done.Progress.Waiting; d.waiting == "" {
			d.waiting = selection.Message
		}
		return nil
	}
	return errEnough
}

// heldUnsettled are the paused clusters that have the workload, and while it is suspended all that have it, or may get it from what was
// decided before: neither needs a choice.
func (d *Decision) heldUnsettled() (held []backends.Target, err error) {
	if !suspended(d.in.FleetWorkload) {
		return d.holdPinned()
	}
	removals := guard.Removals(d.record.placement)
	for _, o := range d.observed.Clusters {
		cluster, known := d.fleet.Get(o.Cluster)
		_, decided := removals[o.Cluster]
		if o.Removing() || o.Probe != nil || !known && !decided {
			continue
		}
		cluster.Name = o.Cluster
		target, err := d.work.plan.Held(cluster, d.heldReplicas(o))
		if err != nil {
			return nil, err
		}
		held = append(held, target)
	}
	unseen, err := d.holdUnseen()
	return slices.Concat(held, unseen), err
}

// holdUnseen gives the clusters that are to run something by what was decided last, and of which the backend shows nothing yet, what was
// decided: while it is suspended, what is on its way must not arrive.
func (d *Decision) holdUnseen() (held []backends.Target, err error) {
	shares, removals := guard.Decided(d.record.placement), guard.Removals(d.record.placement)
	for _, o := range d.observed.Clusters {
		delete(shares, o.Cluster)
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		cluster, known := d.fleet.Get(name)
		if _, decided := removals[name]; !known && !decided {
			continue
		}
		cluster.Name = name
		target, err := d.work.plan.Held(cluster, d.heldReplicas(backends.ClusterObservation{Cluster: name}))
		if err != nil {
			return nil, err
		}
		held = append(held, target)
	}
	return held, nil
}

// noteVersions tells when the clusters do not serve the kind alike: what runs it there, such as OpenKruise, differs.
func (d *Decision) noteVersions() {
	by := map[string][]string{}
	for _, t := range d.placed.targets {
		if versions := d.observed.Selection.Serves[t.Cluster]; len(versions) > 0 {
			text := strings.Join(versions, " and ")
			by[text] = append(by[text], t.Cluster)
		}
	}
	if len(by) < 2 {
		return
	}
	var parts []string
	for _, text := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, text+" on "+brief.List(by[text]))
	}
	d.travel.notes = append(d.travel.notes, fmt.Sprintf("note: the clusters have different versions of what runs a %s: it is served as %s",
		d.work.plan.Template.GetKind(), strings.Join(parts, ", as ")))
}

// choose decides which of the clusters that the backend found run the workload.
func (d *Decision) choose(selection backends.Selection) (placement.Choice, error) {
	situation := placement.Situation{
		Fleet: *d.fleet, Chosen: selection, Missing: d.placed.missing, Running: d.observed.Running(), Group: d.group(),
		Paused: d.placed.paused, Pinned: d.pinned(),
		Divided: d.work.plan.Division() == v1alpha1.DivisionTypeDivided, Numbered: slices.Collect(maps.Keys(d.work.asked.Own)),
		MaxLostPercent: d.in.MaxRemovalPercent, Now: d.now.Time,
	}
	return placement.Choose(d.here.Spec.Placement, situation)
}

// bound leaves clusters out that the namespace may not use. One that has the workload, may have it, or is named stays as it is, and so does
// everything else, until a person has decided: an administrator's change removes nothing.
func (d *Decision) bound(selection *backends.Selection) error {
	var reached, left, outside []string
	recorded := d.recordedClusters()
	for _, name := range selection.Clusters {
		cluster, _ := d.fleet.Get(name)
		_, present := d.observed.Of(name)
		switch {
		case d.terms.Reaches(cluster.Labels):
			reached = append(reached, name)
		case slices.Contains(recorded, name), present, d.isNamed(name):
			outside = append(outside, name)
		default:
			left = append(left, name)
		}
	}
	if len(outside) > 0 {
		return d.standStill(stall(v1alpha1.ReasonNotAllowed, "%s", d.terms.Clusters(outside)))
	}
	if len(left) > 0 {
		selection.Clusters = reached
		d.travel.notes = append(d.travel.notes, "note: the placement chooses clusters that this namespace may not use, and does without them: "+brief.List(left))
	}
	return nil
}

// recordedClusters are those that were decided on before.
func (d *Decision) recordedClusters() (all []string) {
	if d.record.placement == nil {
		return nil
	}
	for _, c := range d.record.placement.Clusters {
		all = append(all, c.Name)
	}
	return all
}

// isNamed tells whether the spec chooses a cluster by its name.
func (d *Decision) isNamed(cluster string) bool {
	return slices.ContainsFunc(d.work.query.Selectors, func(s v1alpha1.ClusterSelector) bool { return slices.Contains(s.Names, cluster) })
}

// group is the one that runs the workload.
func (d *Decision) group() string {
	if d.record.placement == nil {
		return ""
	}
	return d.record.placement.Group
}

// debounce goes on with clusters that the backend has stopped choosing only a moment ago.
func (d *Decision) debounce(selection *backends.Selection) error {
	matching, err := d.fleet.Select(d.work.query.Selectors...)
	if err != nil {
		return fmt.Errorf("match the backend's clusters: %w", err)
	}
	d.placed.excluded = d.excluded()
	s := guard.Deselect(d.record.placement, d.work.asked, guard.Selection{
		Clusters: selection.Clusters, Fleet: *d.fleet, Matching: matching, Excluded: d.placed.excluded, Runs: d.runs(), Now: d.now,
	})
	selection.Clusters, d.placed.missing, d.placed.vanished, d.record.placement = s.Clusters, s.Missing, s.Vanished, s.Record
	d.requeueAfter = backends.Sooner(d.requeueAfter, s.RequeueAfter)
	return nil
}

// leaving says what becomes of the clusters that have something of the workload and are not wanted: they keep what they run for now, or
// are left for a reason. Nothing is said of one that the backend does not list for a moment, or at all while nothing may be removed.
func (d *Decision) leaving(targets []backends.Target) ([]backends.Target, error) {
	var left []backends.Target
	d.placed.removals = map[string]v1alpha1.RemovalReason{}
	holds, wanted := d.holds(targets), names(targets)
	vanished := func(cluster string) bool { _, is := d.placed.vanished[cluster]; return is }
	for _, o := range d.observed.Clusters {
		cluster, known := d.fleet.Get(o.Cluster)
		cluster.Name = o.Cluster
		_, decided := guard.Removals(d.record.placement)[o.Cluster]
		switch {
		case slices.Contains(wanted, o.Cluster), vanished(o.Cluster), d.pins(o.Cluster):
		case o.Probe != nil && !o.Removing() && suspended(d.in.FleetWorkload): // a question harms nothing, and is taken back later
		case o.Removing() || o.Probe != nil || known && !holds(o.Cluster) || !known && !suspended(d.in.FleetWorkload):
			reason := d.reasonToLeave(o.Cluster, known)
			d.placed.removals[o.Cluster] = reason
			left = append(left, backends.Target{Cluster: o.Cluster, Mode: backends.ModeRemove, Reason: reason})
		case known, decided: // an order to leave it may be on its way
			target, err := d.work.plan.Held(cluster, d.heldReplicas(o))
			if err != nil {
				return nil, err
			}
			d.placed.held = append(d.placed.held, o.Cluster)
			left = append(left, target)
		}
	}
	if !suspended(d.in.FleetWorkload) {
		return left, nil
	}
	unseen, err := d.holdUnseen()
	for _, t := range unseen {
		if !slices.Contains(wanted, t.Cluster) && !vanished(t.Cluster) && !d.pins(t.Cluster) {
			d.placed.held = append(d.placed.held, t.Cluster)
			left = append(left, t)
		}
	}
	return left, err
}

// excluded are the clusters that the spec does not choose whatever labels they have.
func (d *Decision) excluded() []string {
	var all []string
	for _, c := range d.fleet.Clusters {
		if !slices.ContainsFunc(d.work.query.Selectors, func(s v1alpha1.ClusterSelector) bool {
			return (len(s.Names) == 0 || slices.Contains(s.Names, c.Name)) && !slices.Contains(s.Exclude, c.Name)
		}) {
			all = append(all, c.Name)
		}
	}
	return all
}

// reasonToLeave is the reason that was recorded, for as long as the leaving lasts, or else the one of now.
func (d *Decision) reasonToLeave(cluster string, known bool) v1alpha1.RemovalReason {
	if reason, recorded := guard.Removals(d.record.placement)[cluster]; recorded {
		return reason
	}
	choice := d.placed.choice
	switch {
	case !known:
		return v1alpha1.RemovalClusterLeft
	case slices.Contains(choice.GivenUp, cluster):
		return v1alpha1.RemovalFailedOver
	case slices.Contains(choice.Clusters, cluster):
		return v1alpha1.RemovalNoReplicas
	case d.editsClusters() && !d.deselected(cluster), slices.Contains(d.placed.excluded, cluster):
		return v1alpha1.RemovalSpecChanged
	default:
		return v1alpha1.RemovalDeselected
	}
}

// editsClusters tells whether the spec asks for other clusters than when it was last carried out. Of what an earlier life runs nobody knows.
func (d *Decision) editsClusters() bool {
	if d.record.placement == nil {
		return len(d.runs()) == 0
	}
	return d.record.placement.ClustersHash != d.work.asked.Clusters
}

// deselected tells whether a cluster has fallen out of the placement by no edit of the spec.
func (d *Decision) deselected(cluster string) bool {
	return d.record.placement != nil && !slices.Contains(d.placed.excluded, cluster) &&
		slices.ContainsFunc(d.record.placement.Clusters, func(c v1alpha1.ClusterShare) bool { return c.Name == cluster && d.work.asked.FellOut(c) })
}

// holds returns what tells of a cluster that is not wanted whether it keeps what it runs for now: all do while the workload is
// suspended; lost ones for good when they are never purged, otherwise until the others are healthy, unless the spec asks for it.
func (d *Decision) holds(targets []backends.Target) func(cluster string) bool {
	if suspended(d.in.FleetWorkload) {
		return func(string) bool { return true }
	}
	failover := d.in.FleetWorkload.Spec.Placement.Failover
	if failover == nil || failover.Purge == v1alpha1.PurgePolicyImmediate {
		return func(string) bool { return false }
	}
	removals, never, healthy := guard.Removals(d.record.placement), failover.Purge == v1alpha1.PurgePolicyNever, d.healthy(targets)
	return func(cluster string) bool {
		_, decided := removals[cluster]
		lost := slices.Contains(d.placed.choice.GivenUp, cluster)
		// One that is chosen and gets nothing is asked to give its replicas up: others have them now.
		asked := d.editsClusters() && !d.deselected(cluster) || slices.Contains(d.placed.choice.Clusters, cluster)
		return never && lost || !never && !healthy && !decided && (lost || !asked)
	}
}

// heldReplicas are those of a cluster that keeps what it runs; nil for kinds without.
func (d *Decision) heldReplicas(o backends.ClusterObservation) *int32 {
	if o.Asked != nil || d.work.plan.Replicas == nil {
		return o.Asked
	}
	n, is := guard.Decided(d.record.placement)[o.Cluster]
	if !is {
		n = running(o.Status, o.Asked)
	}
	return &n
}

// healthy tells whether every target has its manifest and runs well, by the last word of its cluster. Whether that word is
// current is not asked: the removal that this decides about may hold dispatching back for a moment, and must not undo itself.
func (d *Decision) healthy(targets []backends.Target) bool {
	if len(targets) == 0 {
		return false // all others are paused
	}
	for _, t := range targets {
		o, known := d.observed.Of(t.Cluster)
		if !known {
			return false
		}
		state := d.interpret(d.backend, t, o)
		if o.Revision != d.work.plan.Revision || !equality.Semantic.DeepEqual(o.Asked, t.Replicas) || state == nil || state.Health != v1alpha1.HealthHealthy {
			return false
		}
	}
	return true
}

func names(targets []backends.Target) []string {
	all := make([]string, 0, len(targets))
	for _, t := range targets {
		all = append(all, t.Cluster)
	}
	return all
}

// noCluster refuses a placement that chooses nothing.
func (d *Decision) noCluster(why string) error {
	held := ""
	if len(d.observed.Clusters) > 0 {
		held = " What runs is left alone."
	}
	if len(d.fleet.Clusters) == 0 {
		return stall(v1alpha1.ReasonNoClusterSelected,
			"spec.placement: the backend %q knows no clusters.%s Join clusters to it", d.backend, held)
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return stall(v1alpha1.ReasonNoClusterSelected,
		"spec.placement: no cluster of backend %q matches%s.%s Correct the placement, or the clusters' labels; the backend knows: %s",
		d.backend, why, held, plan.List(*d.fleet))
}
