package pass

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// divide gives each chosen cluster its share. With conflictPolicy Adopt a cluster is asked what it runs before anything is
// written there: what runs already counts as what the cluster was asked to run before.
//
// Until it is decided what each is to run, all chosen ones have to answer, since the shares of all hang on the answers. Later on
// those that are added are asked, and the others go on meanwhile.
func (d *Decision) divide(chosen []string) ([]backends.Target, error) {
	adopts := d.work.plan.Adopts() && d.in.Sides[d.backend].Features[backends.FeatureModes]
	if adopts && !d.owns() && !d.dividedAnswers(chosen) {
		d.placed.probed = slices.DeleteFunc(slices.Concat(chosen, d.unpinned(d.leftOut(chosen))), func(c string) bool { return !d.mustProbe(c) })
		if len(d.placed.probed) > 0 {
			return d.work.plan.Probes(*d.fleet, chosen)
		}
	}
	targets, err := d.shares(chosen)
	if err != nil || !adopts {
		return targets, err
	}
	for i, t := range targets {
		if d.mustProbe(t.Cluster) {
			targets[i].Mode = backends.ModeProbe
			d.placed.probed = append(d.placed.probed, t.Cluster)
		}
	}
	return targets, nil
}

// shares gives each chosen cluster what it is to run. While a cluster is missing for a moment, the others keep what was decided: it would be
// taken from them again when that one is back. By a number of its own it gets no more than it has: it may be left in a moment.
func (d *Decision) shares(chosen []string) ([]backends.Target, error) {
	if len(chosen) == 0 {
		return nil, nil // all of them are paused
	}
	decided, most := guard.Decided(d.record.placement), map[string]int32{}
	for _, name := range d.placed.missing {
		most[name] = decided[name]
	}
	if len(d.placed.vanished)+len(d.unpinned(d.placed.missing)) == 0 || d.edited() {
		return d.work.plan.Beside(d.kept()).NoMore(most).Targets(*d.fleet, chosen, d.current())
	}
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(c string) bool { _, has := decided[c]; return !has })
	return d.work.plan.Pinned(*d.fleet, chosen, decided)
}

// edited tells whether the spec asks for anything else of clusters and replicas than when it was last carried out.
func (d *Decision) edited() bool {
	r, asked := d.record.placement, d.work.asked
	return r == nil || r.ClustersHash != asked.Clusters || r.DivisionHash != asked.Division || r.Replicas == nil || *r.Replicas != asked.Replicas
}

// current is what clusters were asked to run before: what was decided last, and of those about which nothing was, what the backend
// says. A backend may show a decision half carried out; what was given nothing counts as nothing, whatever the backend still shows.
func (d *Decision) current() map[string]int32 {
	current := d.observed.Replicas()
	if record := d.record.placement; record != nil {
		for _, row := range record.Clusters {
			if o, _ := d.observed.Of(row.Name); o.Probe != nil {
				continue
			}
			delete(current, row.Name)
			if row.Replicas != nil {
				current[row.Name] = *row.Replicas
			}
		}
	}
	return current
}

// leftOut are the clusters that would have been chosen could they be reached: nobody knows what they run. Where only some
// of the clusters are wanted, others have been chosen in their place.
func (d *Decision) leftOut(chosen []string) (lost []string) {
	if p := d.here.Spec.Placement; p.NumberOfClusters != nil || len(p.Groups) > 0 || len(p.Spread) > 0 {
		return nil
	}
	for _, name := range d.observed.Selection.Clusters {
		if c, known := d.fleet.Get(name); known && c.Ready != metav1.ConditionTrue && !slices.Contains(chosen, name) {
			lost = append(lost, name)
		}
	}
	return lost
}

// owns tells whether any cluster has, or is about to have, a member object that is the workload's own.
func (d *Decision) owns() bool {
	return slices.ContainsFunc(d.observed.Clusters, func(o backends.ClusterObservation) bool {
		return o.Probe == nil && !o.Removing() && !o.Conflict
	})
}

// dividedAnswers tells whether the answers of all chosen clusters were divided already, which is recorded. One that is given nothing is let go
// of then, and its answer with it, maybe before the first of the others is owned.
func (d *Decision) dividedAnswers(chosen []string) bool {
	return d.record.placement != nil && !d.edited() && slices.ContainsFunc(d.record.placement.Clusters, func(row v1alpha1.ClusterShare) bool {
		return row.ConflictPolicy == v1alpha1.ConflictPolicyAdopt && slices.Contains(chosen, row.Name)
	})
}

// mustProbe tells whether the cluster is to be asked, or asked on. While nothing may be dispatched the question stays: its
// answer would be lost.
func (d *Decision) mustProbe(cluster string) bool {
	o, seen := d.observed.Of(cluster)
	return !seen || o.Conflict || o.Probe != nil && (!d.told(o) || suspended(d.in.FleetWorkload)) || o.Probe == nil && d.unasked(o)
}

// unasked tells whether an order from before conflictPolicy was Adopt is on its way to a cluster, and nothing is known of what is there:
// it refuses what is somebody else's, and would take that over now.
func (d *Decision) unasked(o backends.ClusterObservation) bool {
	if d.record.placement == nil || o.Applied == metav1.ConditionTrue || o.Status != nil {
		return false
	}
	return slices.ContainsFunc(d.record.placement.Clusters, func(row v1alpha1.ClusterShare) bool {
		return row.Name == o.Cluster && row.Replicas != nil && row.ConflictPolicy != v1alpha1.ConflictPolicyAdopt
	})
}

// noteAdopts notes of which clusters conflictPolicy Adopt may take over what they have.
func (d *Decision) noteAdopts(rows []v1alpha1.ClusterShare) {
	owned := map[string]bool{}
	for _, t := range d.placed.targets {
		owned[t.Cluster] = t.Mode.Owns()
	}
	for i := range rows {
		owns, said := owned[rows[i].Name]
		switch {
		case !d.work.plan.Adopts(), said && !owns:
			rows[i].ConflictPolicy = ""
		case owns:
			rows[i].ConflictPolicy = v1alpha1.ConflictPolicyAdopt
		}
	}
}

// told tells whether the cluster has answered, and can be reached still.
func (d *Decision) told(o backends.ClusterObservation) bool {
	return o.Probe != nil && o.Probe.Answered && d.fleet.InContact(o.Cluster)
}

// awaitsProbe says what a probe waits for, with the driver's word.
func (d *Decision) awaitsProbe(driver string) string {
	var lost, late []string
	for _, name := range d.placed.probed {
		if c, known := d.fleet.Get(name); !known || c.Ready != metav1.ConditionTrue {
			lost = append(lost, name)
			continue
		}
		late = append(late, name)
	}
	var parts []string
	if len(late) > 0 {
		parts = append(parts, brief.List(late)+" to tell what runs there already")
	}
	if len(lost) > 0 {
		parts = append(parts, brief.List(lost)+", out of contact, to tell what runs there already; take it out of spec.placement to go on without")
	}
	text := "conflictPolicy Adopt: " + strings.Join(parts, "; ")
	if driver != "" {
		text += " (" + driver + ")"
	}
	return text
}

// taking is a cluster whose running member object is about to be taken over.
type taking struct {
	cluster string
	// runs is nil when that could not be told.
	runs   *int32
	shares int32
}

// takes are the chosen clusters whose member objects are about to be taken over. With any other policy nothing is, whatever clusters were
// asked before.
func (d *Decision) takes() (all []taking) {
	if !d.work.plan.Adopts() {
		return nil
	}
	for _, o := range d.observed.Clusters {
		if !d.told(o) || !o.Probe.Exists || !slices.Contains(d.placed.choice.Clusters, o.Cluster) {
			continue
		}
		t := taking{cluster: o.Cluster, runs: o.Probe.Replicas}
		target, is := targetOf(d.placed.targets, o.Cluster)
		if is && target.Mode != backends.ModeRemove && !target.Mode.Owns() {
			continue
		}
		if is && target.Replicas != nil {
			t.shares = *target.Replicas
		}
		all = append(all, t)
	}
	return all
}

func targetOf(targets []backends.Target, cluster string) (backends.Target, bool) {
	i := slices.IndexFunc(targets, func(t backends.Target) bool { return t.Cluster == cluster })
	if i < 0 {
		return backends.Target{}, false
	}
	return targets[i], true
}

// guardAdoption holds a take-over that would take pods away from what runs in a cluster, or of which that is not known. A
// person confirms it with an annotation that carries the token of the numbers to be.
func (d *Decision) guardAdoption() error {
	var held []string
	wanted := make([]string, 0, len(d.placed.targets))
	takes := d.takes()
	for _, t := range takes {
		switch {
		case t.runs == nil:
			held = append(held, fmt.Sprintf("%s runs a number that could not be told, and would be given %d", t.cluster, t.shares))
		case *t.runs > t.shares:
			held = append(held, fmt.Sprintf("%s runs %d and would be given %d", t.cluster, *t.runs, t.shares))
		}
	}
	if len(held) == 0 {
		return nil
	}
	for _, t := range d.placed.targets {
		if t.Mode != backends.ModeRemove {
			wanted = append(wanted, fmt.Sprintf("%s=%d", t.Cluster, *t.Replicas))
		}
	}
	token, err := plan.Hash("adopt", wanted)
	if err != nil {
		return err
	}
	fw := d.in.FleetWorkload
	if fw.Annotations[v1alpha1.AnnotationConfirmRemoval] == token {
		return nil
	}
	return &stalled{reason: v1alpha1.ReasonAdoptionHeld, again: true, message: fmt.Sprintf(
		"conflictPolicy Adopt: taking over what runs on backend %q already would take pods away: %s. Nothing was written. %s, or confirm with: "+
			"kubectl annotate fleetworkload %s -n %s %s=%s --overwrite",
		d.backend, brief.List(held), d.toKeep(takes), fw.Name, fw.Namespace, v1alpha1.AnnotationConfirmRemoval, token)}
}

// toKeep says how to keep what runs.
func (d *Decision) toKeep(takes []taking) string {
	var total, most int32
	var weights, numbered []string
	for _, t := range takes {
		if t.runs == nil {
			return "Correct spec.replicas and spec.placement.division by what they run"
		}
		if d.work.plan.Numbered(t.cluster) && *t.runs > t.shares {
			numbered = append(numbered, fmt.Sprintf("%s: %d", t.cluster, *t.runs))
		}
		total, most = total+*t.runs, max(most, *t.runs)
		weights = append(weights, fmt.Sprintf("%s: %d", t.cluster, *t.runs))
	}
	if len(numbered) > 0 {
		return fmt.Sprintf("Raise spec.overrides[].replicas to what runs (%s)", brief.List(numbered))
	}
	if d.work.plan.Division() == v1alpha1.DivisionTypeDuplicated {
		return fmt.Sprintf("Set spec.replicas to %d or more, give clusters what they run with spec.overrides[].replicas, or divide them "+
			"(spec.placement.division)", most)
	}
	where := fmt.Sprintf("set spec.placement.division.preference to AvailableCapacity, or spec.placement.division.weights to what runs (%s)",
		brief.List(weights))
	if total > *d.work.plan.Replicas {
		return fmt.Sprintf("Set spec.replicas to %d or more; to keep them where they are, %s", total, where)
	}
	return "To keep them where they are, " + where
}
