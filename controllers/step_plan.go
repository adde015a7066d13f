package controllers

import (
	"context"
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

// understand reads the spec. Which object a FleetWorkload carries cannot change once something was sent.
func (r *Reconciler) understand(_ context.Context, s *scope) error {
	p, err := plan.New(s.spec, r.Kinds)
	if err != nil {
		return err
	}
	if got, want := plan.Reference(p.Template), s.record.workload; *got != *want {
		if !s.observed.Found {
			s.record.workload, s.stop = got, true
			return nil
		}
		return stall(v1alpha1.ReasonInvalidTemplate,
			"spec.template: apiVersion, kind and name of a running workload cannot change from %s %s %q to %s %s %q; create another FleetWorkload for it",
			want.APIVersion, want.Kind, want.Name, got.APIVersion, got.Kind, got.Name)
	}
	if s.plan, err = p.With(s.here); err != nil {
		return err
	}
	s.asked, err = s.plan.Asked()
	return err
}

// chooseClusters takes over the backend's choice and gives each cluster its share. While there is none, the placement
// is set up and members are left as they are; an empty choice is held (law 2).
func (r *Reconciler) chooseClusters(ctx context.Context, s *scope) error {
	if err := plan.CheckNames(s.here.Spec, *s.fleet); err != nil {
		return err
	}
	selection := s.observed.Selection
	if !selection.Settled {
		s.stop = true
		if err := r.apply(ctx, s); err != nil {
			return err
		}
		if s.waiting == "" {
			s.waiting = selection.Message
		}
		return nil
	}
	if err := s.debounce(&selection); err != nil {
		return err
	}
	choice, err := r.choose(s, selection)
	if err != nil {
		return err
	}
	s.choice = &choice
	if len(choice.Clusters) == 0 {
		return noCluster(s, choice.Message)
	}
	targets, err := s.divide(choice.Clusters)
	if err != nil {
		return err
	}
	if s.unused, err = s.plan.Unused(*s.fleet, choice.Clusters); err != nil {
		return err
	}
	kept, err := s.kept(targets)
	if err != nil {
		return err
	}
	s.targets = append(targets, kept...)
	slices.SortFunc(s.targets, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	s.noteVersions()
	return nil
}

// noteVersions tells when the clusters do not serve the kind alike: what runs it there, such as OpenKruise, differs.
func (s *scope) noteVersions() {
	by := map[string][]string{}
	for _, t := range s.targets {
		if versions := s.observed.Selection.Serves[t.Cluster]; len(versions) > 0 {
			text := strings.Join(versions, " and ")
			by[text] = append(by[text], t.Cluster)
		}
	}
	if len(by) < 2 {
		return
	}
	var parts []string
	for _, text := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, text+" on "+bounded(by[text]))
	}
	s.notes = append(s.notes, fmt.Sprintf("note: the clusters have different versions of what runs a %s: it is served as %s",
		s.plan.Template.GetKind(), strings.Join(parts, ", as ")))
}

// choose decides which of the clusters that the backend found run the workload.
func (r *Reconciler) choose(s *scope, selection backends.Selection) (placement.Choice, error) {
	situation := placement.Situation{
		Fleet: *s.fleet, Chosen: selection, Missing: s.missing, Running: s.observed.Running(), Group: s.group(),
		Divided: s.plan.Division() == v1alpha1.DivisionTypeDivided, MaxLostPercent: r.MaxRemovalPercent, Now: s.now.Time,
	}
	return placement.Choose(s.here.Spec.Placement, situation)
}

// group is the one that runs the workload.
func (s *scope) group() string {
	if s.record.placement == nil {
		return ""
	}
	return s.record.placement.Group
}

// debounce goes on with clusters that the backend has stopped choosing only a moment ago.
func (s *scope) debounce(selection *backends.Selection) error {
	matching, err := s.fleet.Select(s.query.Selectors...)
	if err != nil {
		return fmt.Errorf("match the backend's clusters: %w", err)
	}
	d := guard.Deselect(s.record.placement, s.asked, guard.Selection{
		Clusters: selection.Clusters, Fleet: *s.fleet, Matching: matching, Now: s.now,
	})
	selection.Clusters, s.missing, s.record.placement = d.Clusters, d.Missing, d.Record
	s.backendAgain = sooner(s.backendAgain, d.Again)
	return nil
}

// staysFor returns what tells of a cluster that is not chosen whether it keeps the workload for now.
func (s *scope) staysFor(targets []backends.Target) func(cluster string) bool {
	if suspended(s.fw) {
		return func(string) bool { return true }
	}
	failover := s.fw.Spec.Placement.Failover
	if failover == nil || failover.Purge == v1alpha1.PurgePolicyImmediate {
		return func(string) bool { return false }
	}
	record := s.record.placement
	asked := record == nil || record.ClustersHash != s.asked.Clusters
	never, healthy := failover.Purge == v1alpha1.PurgePolicyNever, s.healthy(targets)
	return func(cluster string) bool {
		lost := slices.Contains(s.choice.GivenUp, cluster)
		return never && lost || !never && !healthy && (lost || !asked)
	}
}

// kept are the targets of clusters that are left, and keep what they run for now: all while the workload is suspended; lost ones for
// good when they are never purged, otherwise until the others are healthy, unless the spec asks for it.
func (s *scope) kept(targets []backends.Target) ([]backends.Target, error) {
	stays, wanted := s.staysFor(targets), names(targets)
	var kept []backends.Target
	for _, o := range s.observed.Clusters {
		cluster, known := s.fleet.Get(o.Cluster)
		if o.Removing || o.Sight != nil || !known || slices.Contains(wanted, o.Cluster) {
			continue
		}
		if !stays(o.Cluster) {
			continue
		}
		target, err := s.plan.Kept(cluster, s.keptReplicas(o))
		if err != nil {
			return nil, err
		}
		s.keeps = append(s.keeps, o.Cluster)
		kept = append(kept, target)
	}
	return kept, nil
}

// keptReplicas are those of a cluster that keeps what it runs; nil for kinds without.
func (s *scope) keptReplicas(o backends.ClusterObservation) *int32 {
	if o.Desired != nil || s.plan.Replicas == nil {
		return o.Desired
	}
	n, is := guard.Decided(s.record.placement)[o.Cluster]
	if !is {
		n = running(o.Status, o.Desired)
	}
	return &n
}

// healthy tells whether every target has its manifest and runs well, by the last word of its cluster. Whether that word is
// current is not asked: the removal that this decides about may hold dispatching back for a moment, and must not undo itself.
func (s *scope) healthy(targets []backends.Target) bool {
	for _, t := range targets {
		i := slices.IndexFunc(s.observed.Clusters, func(o backends.ClusterObservation) bool { return o.Cluster == t.Cluster })
		if i < 0 {
			return false
		}
		o := s.observed.Clusters[i]
		state := s.interpret(t, o)
		if o.Revision != s.plan.Revision || !equality.Semantic.DeepEqual(o.Desired, t.Replicas) || state == nil || state.Health != v1alpha1.HealthHealthy {
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

func noCluster(s *scope, why string) error {
	held := ""
	if len(s.observed.Clusters) > 0 {
		held = " What runs is left alone."
	}
	if len(s.fleet.Clusters) == 0 {
		return stall(v1alpha1.ReasonNoClusterSelected,
			"spec.placement: the backend %q knows no clusters.%s Join clusters to it", s.backend, held)
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return stall(v1alpha1.ReasonNoClusterSelected,
		"spec.placement: no cluster of backend %q matches%s.%s Correct the placement, or the clusters' labels; the backend knows: %s",
		s.backend, why, held, plan.List(*s.fleet))
}
