package pass

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
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
	selection := d.observed.Selection
	if !selection.Settled {
		return d.setUpPlacement(selection)
	}
	if err := d.debounce(&selection); err != nil {
		return err
	}
	choice, err := d.choose(selection)
	if err != nil {
		return err
	}
	d.placed.choice = &choice
	if len(choice.Clusters) == 0 {
		return d.noCluster(choice.Message)
	}
	targets, err := d.divide(choice.Clusters)
	if err != nil {
		return err
	}
	if d.placed.unused, err = d.work.plan.Unused(*d.fleet, choice.Clusters); err != nil {
		return err
	}
	held, err := d.held(targets)
	if err != nil {
		return err
	}
	d.placed.targets = append(targets, held...)
	slices.SortFunc(d.placed.targets, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	d.noteVersions()
	return nil
}

// setUpPlacement has the backend choose; members stay as they are.
func (d *Decision) setUpPlacement(selection backends.Selection) error {
	desired := d.work.plan.Desired(nil)
	desired.Companions = nil
	d.Orders = []Order{{Backend: d.backend, Apply: &desired}}
	d.conclude = func(outcomes map[string]Outcome) error {
		done := outcomes[d.backend]
		if done.Err != nil {
			return fmt.Errorf("choose clusters: %w", done.Err)
		}
		d.again = sooner(d.again, done.Progress.Again)
		if d.waiting = done.Progress.Waiting; d.waiting == "" {
			d.waiting = selection.Message
		}
		return nil
	}
	return errEnough
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
		parts = append(parts, text+" on "+firstOf(by[text]))
	}
	d.travel.notes = append(d.travel.notes, fmt.Sprintf("note: the clusters have different versions of what runs a %s: it is served as %s",
		d.work.plan.Template.GetKind(), strings.Join(parts, ", as ")))
}

// choose decides which of the clusters that the backend found run the workload.
func (d *Decision) choose(selection backends.Selection) (placement.Choice, error) {
	situation := placement.Situation{
		Fleet: *d.fleet, Chosen: selection, Missing: d.placed.missing, Running: d.observed.Running(), Group: d.group(),
		Divided: d.work.plan.Division() == v1alpha1.DivisionTypeDivided, MaxLostPercent: d.in.MaxRemovalPercent, Now: d.now.Time,
	}
	return placement.Choose(d.here.Spec.Placement, situation)
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
	s := guard.Deselect(d.record.placement, d.work.asked, guard.Selection{
		Clusters: selection.Clusters, Fleet: *d.fleet, Matching: matching, Now: d.now,
	})
	selection.Clusters, d.placed.missing, d.record.placement = s.Clusters, s.Missing, s.Record
	d.again = sooner(d.again, s.Again)
	return nil
}

// holds returns what tells of a cluster that is not chosen whether it is held for now.
func (d *Decision) holds(targets []backends.Target) func(cluster string) bool {
	if suspended(d.in.FleetWorkload) {
		return func(string) bool { return true }
	}
	failover := d.in.FleetWorkload.Spec.Placement.Failover
	if failover == nil || failover.Purge == v1alpha1.PurgePolicyImmediate {
		return func(string) bool { return false }
	}
	record := d.record.placement
	asked := record == nil || record.ClustersHash != d.work.asked.Clusters
	never, healthy := failover.Purge == v1alpha1.PurgePolicyNever, d.healthy(targets)
	return func(cluster string) bool {
		lost := slices.Contains(d.placed.choice.GivenUp, cluster)
		return never && lost || !never && !healthy && (lost || !asked)
	}
}

// held are the targets of clusters that are left, and keep what they run for now: all while the workload is suspended; lost ones for
// good when they are never purged, otherwise until the others are healthy, unless the spec asks for it.
func (d *Decision) held(targets []backends.Target) ([]backends.Target, error) {
	holds, wanted := d.holds(targets), names(targets)
	var held []backends.Target
	for _, o := range d.observed.Clusters {
		cluster, known := d.fleet.Get(o.Cluster)
		if o.Removing || o.Sight != nil || !known || slices.Contains(wanted, o.Cluster) || !holds(o.Cluster) {
			continue
		}
		target, err := d.work.plan.Kept(cluster, d.heldReplicas(o))
		if err != nil {
			return nil, err
		}
		d.placed.held = append(d.placed.held, o.Cluster)
		held = append(held, target)
	}
	return held, nil
}

// heldReplicas are those of a cluster that keeps what it runs; nil for kinds without.
func (d *Decision) heldReplicas(o backends.ClusterObservation) *int32 {
	if o.Desired != nil || d.work.plan.Replicas == nil {
		return o.Desired
	}
	n, is := guard.Decided(d.record.placement)[o.Cluster]
	if !is {
		n = running(o.Status, o.Desired)
	}
	return &n
}

// healthy tells whether every target has its manifest and runs well, by the last word of its cluster. Whether that word is
// current is not asked: the removal that this decides about may hold dispatching back for a moment, and must not undo itself.
func (d *Decision) healthy(targets []backends.Target) bool {
	for _, t := range targets {
		o, known := d.observed.Of(t.Cluster)
		if !known {
			return false
		}
		state := d.interpret(t, o)
		if o.Revision != d.work.plan.Revision || !equality.Semantic.DeepEqual(o.Desired, t.Replicas) || state == nil || state.Health != v1alpha1.HealthHealthy {
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
