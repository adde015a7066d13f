package pass

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// travel is what travels along with the workload.
type travel struct {
	companions []backends.Companion
	// prune says which others go.
	prune backends.Prune
	// lacking is what pods need and the management cluster lacks; notes are about the rest.
	lacking []plan.Need
	notes   []string
	// versions are those that were read of what pods refer to, by ObjectKey.
	versions map[string]string
}

// gather collects what travels along: companions of the spec, and what the pods refer to as it is now. A target that
// would start without something is held, and keeps what it runs.
func (d *Decision) gather() error {
	if suspended(d.in.FleetWorkload) {
		return nil
	}
	p := d.work.plan
	d.travel.companions = slices.Clone(p.Companions)
	switch {
	case !d.rolledOut(), len(d.placed.pinned) > 0: // those of paused clusters stay as well
		d.travel.prune = backends.PruneNone
	case !p.Propagates():
		// What was sent before is in use still, and nobody else has put it there.
		d.travel.prune = backends.PruneOwn
	default:
		d.travel.prune = backends.PruneAll
	}
	needs, err := d.needs()
	if err != nil {
		return err
	}
	if err := plan.CheckCompanionObjects("spec.dependencies", len(p.Companions)+len(needs), len(d.wanted())); err != nil {
		return err
	}
	d.Refers = &needs
	if err := d.authorize(needs); err != nil {
		return err
	}
	for _, n := range needs {
		if _, known := d.in.Objects[n.String()]; !known {
			d.Reads.Objects = append(d.Reads.Objects, n)
		}
	}
	if len(d.Reads.Objects) > 0 {
		return errEnough
	}
	for _, n := range needs {
		if err := d.take(n, d.in.Objects[n.String()]); err != nil {
			return err
		}
	}
	if err := plan.CheckDependencies(d.travel.companions[len(p.Companions):], len(d.wanted())); err != nil {
		return err
	}
	plan.SortCompanions(d.travel.companions)
	return nil
}

// needs are what the pods refer to and is to be sent.
func (d *Decision) needs() ([]plan.Need, error) {
	if !d.work.plan.Propagates() {
		return []plan.Need{}, nil
	}
	needs, err := d.work.plan.Needs(slices.DeleteFunc(slices.Clone(d.wanted()), d.leftAsItIs))
	return d.sent(needs), err
}

// sent leaves out what the administrator has never sent.
func (d *Decision) sent(needs []plan.Need) []plan.Need {
	return slices.DeleteFunc(needs, func(n plan.Need) bool { return slices.Contains(d.in.LeaveOut, n.Kind) })
}

// leftAsItIs tells whether the target's cluster is paused.
func (d *Decision) leftAsItIs(t backends.Target) bool { return d.pins(t.Cluster) }

// wanted are the targets that are to have the workload.
func (d *Decision) wanted() []backends.Target {
	return backends.Desired{Targets: d.placed.targets}.Wanted()
}

// take adds what was found for a need, or remembers that it is missing.
func (d *Decision) take(n plan.Need, source Object) error {
	if source.Err != nil {
		return unreadable(n, source)
	}
	if source.Found == nil {
		d.lack(n)
		return nil
	}
	c, note := n.Companion(source.Found)
	if c != nil {
		d.travel.companions = append(d.travel.companions, *c)
		if d.travel.versions == nil {
			d.travel.versions = map[string]string{}
		}
		d.travel.versions[ObjectKey(*plan.Reference(c.Object))] = string(source.Found.GetUID()) + "/" + source.Found.GetResourceVersion()
	}
	if note != "" {
		d.travel.notes = append(d.travel.notes, note)
	}
	return nil
}

// lack holds the targets that need what is missing. What was sent of it before stays.
func (d *Decision) lack(n plan.Need) {
	if n.Optional {
		return
	}
	d.travel.lacking, d.travel.prune = append(d.travel.lacking, n), backends.PruneNone
	d.placed.targets = slices.Clone(d.placed.targets)
	for i, t := range d.placed.targets {
		if t.Mode.Owns() && (n.Clusters == nil || slices.Contains(n.Clusters, t.Cluster)) {
			d.placed.targets[i].Mode = backends.ModeHold
		}
	}
}

// rolledOut tells whether no target can have a pod of an earlier revision, which may need what is no longer listed.
func (d *Decision) rolledOut() bool {
	states := map[string]bool{}
	for _, r := range d.reports() {
		o := r.Observed
		states[r.Name] = o != nil && o.Current && o.Applied == metav1.ConditionTrue && o.Revision == d.work.plan.Revision &&
			r.State != nil && r.State.Health == v1alpha1.HealthHealthy && (r.State.Updated == nil || r.State.UpToDate != nil && *r.State.UpToDate)
	}
	return !slices.ContainsFunc(d.wanted(), func(t backends.Target) bool { return !states[t.Cluster] })
}

// unreadable says why the management cluster does not give an object.
func unreadable(n plan.Need, o Object) error {
	if !o.Forbidden {
		return fmt.Errorf("spec.dependencies: %w", o.Err)
	}
	return &stalled{
		reason: v1alpha1.ReasonDependencyForbidden, again: true,
		message: fmt.Sprintf("spec.dependencies: the pods refer to %s, and the operator may not read objects of this kind on the "+
			"management cluster; grant it get, list and watch on %s there (config/rbac/management), or leave the kind out in the "+
			"operator's configuration under dependencies.leaveOut", n, n.Resource()),
	}
}

// shipped are the companions, but for clusters that are only asked what they run, since nothing is sent there before that is known, and for
// paused ones.
func (d *Decision) shipped() []backends.Companion {
	if len(d.placed.probed)+len(d.placed.pinned) == 0 {
		return d.travel.companions
	}
	shipped := make([]backends.Companion, 0, len(d.travel.companions))
	for _, c := range d.travel.companions {
		needed := []string{} // nil would mean all of them
		for _, t := range d.wanted() {
			if c.NeededOn(t.Cluster) && !slices.Contains(d.placed.probed, t.Cluster) && !d.pins(t.Cluster) {
				needed = append(needed, t.Cluster)
			}
		}
		c.Clusters = needed
		shipped = append(shipped, c)
	}
	return shipped
}

// reportMissing ends a pass in which something was missing. The driver has held back what needs it.
func (d *Decision) reportMissing() error {
	if len(d.travel.lacking) == 0 {
		return nil
	}
	names := make([]string, len(d.travel.lacking))
	for i, n := range d.travel.lacking {
		names[i] = n.String()
	}
	return stall(v1alpha1.ReasonDependencyMissing,
		"spec.dependencies: the pods refer to %s, not found in namespace %q of the management cluster; until then nothing is started or "+
			"changed on %s, and what runs goes on. Create what is missing there, mark the reference optional, or set spec.dependencies to Ignore",
		brief.List(names), d.in.FleetWorkload.Namespace, d.waitingClusters())
}

func (d *Decision) waitingClusters() string {
	var names []string
	for _, t := range d.placed.targets {
		if t.Mode == backends.ModeHold && !d.pins(t.Cluster) {
			names = append(names, t.Cluster)
		}
	}
	return cmp.Or(brief.List(names), "any cluster")
}
