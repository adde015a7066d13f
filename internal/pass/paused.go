package pass

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// pause finds the clusters on which nothing changes (spec.placement.paused). One that is being left already goes on being left. What was
// decided for one counts before its backend shows it: it may be on its way.
func (d *Decision) pause() error {
	pauses, err := placement.NewPauses(d.here.Spec.Placement)
	if err != nil {
		return err
	}
	for _, c := range d.fleet.Clusters {
		if pauses.Has(c) {
			d.placed.paused = append(d.placed.paused, c.Name)
		}
	}
	d.placed.pinned = map[string]*int32{}
	for name := range guard.Decided(d.record.placement) {
		if slices.Contains(d.placed.paused, name) {
			d.placed.pinned[name] = d.keeps(backends.ClusterObservation{Cluster: name})
		}
	}
	for _, o := range d.observed.Clusters {
		c, known := d.fleet.Get(o.Cluster)
		if !known {
			c.Name = o.Cluster
		}
		if delete(d.placed.pinned, o.Cluster); !o.Removing() && o.Probe == nil && pauses.Has(c) {
			d.placed.pinned[o.Cluster] = d.keeps(o)
		}
	}
	return nil
}

// keeps are the replicas that a paused cluster was given last; nil for kinds without. A backend may show a decision half carried out.
func (d *Decision) keeps(o backends.ClusterObservation) *int32 {
	n, decided := guard.Decided(d.record.placement)[o.Cluster]
	if d.work.plan.Replicas == nil || !decided {
		return d.heldReplicas(o)
	}
	return &n
}

// pinned are the names of the paused clusters that have the workload, sorted; nil without any.
func (d *Decision) pinned() []string { return slices.Sorted(maps.Keys(d.placed.pinned)) }

// pins tells whether a cluster is paused and has the workload.
func (d *Decision) pins(cluster string) bool {
	_, pinned := d.placed.pinned[cluster]
	return pinned
}

// unpinned are the names without those of paused clusters that have the workload.
func (d *Decision) unpinned(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), d.pins)
}

// holdPinned gives the paused clusters that their backend lists what they keep.
func (d *Decision) holdPinned() (held []backends.Target, err error) {
	for _, name := range d.pinned() {
		cluster, known := d.fleet.Get(name)
		if !known {
			continue // nothing is said of it, and it stays as it is (R16)
		}
		target, err := d.work.plan.Held(cluster, d.placed.pinned[name])
		if err != nil {
			return nil, err
		}
		held = append(held, target)
	}
	return held, nil
}

// kept is how many replicas the paused clusters keep of those that are divided.
func (d *Decision) kept() int32 {
	var sum int64
	for _, n := range d.placed.pinned {
		if n != nil {
			sum += int64(*n)
		}
	}
	return int32(min(sum, math.MaxInt32))
}

// notePaused says which clusters are paused, and which of them are kept although the spec does not choose them.
func (d *Decision) notePaused() (notes []string) {
	if len(d.placed.pinned) == 0 {
		return nil
	}
	notes = append(notes, "left as they are by spec.placement.paused: "+brief.List(d.pinned()))
	beside := slices.DeleteFunc(d.pinned(), func(name string) bool {
		return slices.Contains(d.placed.choice.Clusters, name) && !slices.Contains(d.placed.missing, name)
	})
	if len(beside) > 0 {
		notes = append(notes, "to be left once they are no longer paused: "+brief.List(beside))
	}
	return notes
}

// withheld says which replicas are not as the spec asks because clusters are paused; empty when all are.
func (d *Decision) withheld() string {
	p := d.work.plan
	if p == nil || p.Replicas == nil || len(d.placed.pinned) == 0 || d.placed.targets == nil {
		return ""
	}
	asked := *p.Replicas
	if p.Division() == v1alpha1.DivisionTypeDuplicated {
		var other []string
		for _, name := range d.pinned() {
			if n := d.placed.pinned[name]; n != nil && *n != p.Each(name) {
				other = append(other, fmt.Sprintf("%s keeps %d", name, *n))
			}
		}
		if len(other) == 0 {
			return ""
		}
		return fmt.Sprintf("%d replicas are asked for, and what is paused has another number: %s", asked, brief.List(other))
	}
	var given int64
	for _, n := range d.next() {
		given += int64(n)
	}
	if given == int64(asked) {
		return ""
	}
	return fmt.Sprintf("%d replicas are asked for and %d given: paused clusters keep %d (%s)", asked, given, d.kept(), brief.List(d.pinned()))
}

// refusePaused words what a pause has against a hand-over; empty when nothing.
func (d *Decision) refusePaused() string {
	if len(d.placed.pinned) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.placement.paused: %s must not change, and nothing that is paused changes hands; take it out of "+
		"spec.placement.paused", brief.List(d.pinned()))
}
