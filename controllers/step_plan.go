package controllers

import (
	"context"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// understand reads the spec. Which object a FleetWorkload carries cannot change once something was sent.
func (r *Reconciler) understand(_ context.Context, s *scope) error {
	p, err := plan.New(s.fw, r.Kinds)
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
	s.plan = p
	return nil
}

// chooseClusters takes over the backend's choice and gives each cluster its share. While there is none, the placement
// is set up and members are left as they are; an empty choice is held (law 2).
func (r *Reconciler) chooseClusters(ctx context.Context, s *scope) error {
	if err := plan.CheckNames(s.fw.Spec, *s.fleet); err != nil {
		return err
	}
	selection := s.observed.Selection
	if !selection.Settled {
		s.stop = true
		if err := r.apply(ctx, s); err != nil {
			return err
		}
		s.waiting = selection.Message
		return nil
	}
	if len(selection.Clusters) == 0 {
		return noCluster(s)
	}
	targets, err := s.plan.Targets(*s.fleet, selection.Clusters)
	if err != nil {
		return err
	}
	s.targets = targets
	return nil
}

func noCluster(s *scope) error {
	held := ""
	if s.observed.Found {
		held = " What runs is left alone."
	}
	if len(s.fleet.Clusters) == 0 {
		return stall(v1alpha1.ReasonNoClusterSelected,
			"spec.placement: the backend %q knows no clusters.%s Join clusters to it", s.backend, held)
	}
	why := s.observed.Selection.Message
	if why != "" {
		why = " (" + why + ")"
	}
	return stall(v1alpha1.ReasonNoClusterSelected,
		"spec.placement: no cluster of backend %q matches%s.%s Correct the placement, or the clusters' labels; the backend knows: %s",
		s.backend, why, held, plan.List(*s.fleet))
}
