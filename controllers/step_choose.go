package controllers

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/division"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// chooseClusters takes over the backend's choice. While there is none, the placement is set up and members are left as
// they are; an empty choice is held (law 2).
func (r *Reconciler) chooseClusters(ctx context.Context, s *scope) error {
	if err := checkNames(s); err != nil {
		return err
	}
	selection := s.observed.Selection
	if !selection.Settled {
		if err := r.apply(ctx, s); err != nil {
			return err
		}
		s.waiting = selection.Message
		s.stop = true
		return nil
	}
	if len(selection.Clusters) == 0 {
		return noCluster(s)
	}
	s.chosen = slices.Sorted(slices.Values(selection.Clusters))
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
	message := s.observed.Selection.Message
	if message != "" {
		message = " (" + message + ")"
	}
	return stall(v1alpha1.ReasonNoClusterSelected,
		"spec.placement: no cluster of backend %q matches%s.%s Correct the placement, or the clusters' labels; the backend knows: %s",
		s.backend, message, held, namesOf(s.fleet))
}

func namesOf(fleet *backends.Fleet) string {
	const most = 10
	names := ""
	for i, c := range fleet.Clusters {
		if i == most {
			return fmt.Sprintf("%s and %d more", names, len(fleet.Clusters)-most)
		}
		if i > 0 {
			names += ", "
		}
		names += c.Name
	}
	return names
}

// checkNames refuses names of clusters that the backend does not know: a workload that silently misses a cluster, or
// runs without its override there, is worse than one that says so.
func checkNames(s *scope) error {
	check := func(field string, selector *v1alpha1.ClusterSelector) error {
		if selector == nil {
			return nil
		}
		for i, name := range selector.Names {
			if _, known := s.fleet.Get(name); !known {
				return stall(v1alpha1.ReasonClusterNotFound,
					"%s.names[%d] %q: backend %q knows no such cluster; it knows: %s. Correct the name, or take it out",
					field, i, name, s.backend, namesOf(s.fleet))
			}
		}
		return nil
	}
	if err := check("spec.placement.clusters", s.fw.Spec.Placement.Clusters); err != nil {
		return err
	}
	if d := s.fw.Spec.Placement.Division; d != nil {
		for i, w := range d.Weights {
			if err := check(fmt.Sprintf("spec.placement.division.weights[%d].clusters", i), w.Clusters); err != nil {
				return err
			}
		}
	}
	for i, o := range s.fw.Spec.Overrides {
		if err := check(fmt.Sprintf("spec.overrides[%d].clusters", i), o.Clusters); err != nil {
			return err
		}
	}
	return nil
}

// divide gives each chosen cluster its replicas and its manifest.
func (r *Reconciler) divide(_ context.Context, s *scope) error {
	shares, err := s.shares()
	if err != nil {
		return err
	}
	targets := make([]backends.Target, 0, len(s.chosen))
	for _, name := range s.chosen {
		cluster, known := s.fleet.Get(name)
		if !known {
			return fmt.Errorf("the backend chose cluster %q that it does not list", name)
		}
		target := backends.Target{Cluster: name, Hold: s.suspended(), Ownership: backends.OwnershipOwn}
		if n, divided := shares[name]; divided {
			target.Replicas = &n
		}
		if target.Manifest, err = s.overrides.Target(s.template, cluster); err != nil {
			return err
		}
		if target.Replicas != nil {
			if err := interpreter.SetReplicas(s.kind, target.Manifest, *target.Replicas); err != nil {
				return fmt.Errorf("set replicas for cluster %s: %w", name, err)
			}
		}
		targets = append(targets, target)
	}
	s.targets = dropEmpty(targets, s)
	return nil
}

// shares are the replicas of each chosen cluster; nil for kinds without replicas.
func (s *scope) shares() (map[string]int32, error) {
	if s.replicas == nil {
		return nil, nil
	}
	out := make(map[string]int32, len(s.chosen))
	if s.division() == v1alpha1.DivisionTypeDuplicated {
		for _, name := range s.chosen {
			out[name] = *s.replicas
		}
		return out, nil
	}
	var weights []v1alpha1.ClusterWeight
	if d := s.fw.Spec.Placement.Division; d != nil {
		weights = d.Weights
	}
	clusters := make([]backends.Cluster, 0, len(s.chosen))
	for _, name := range s.chosen {
		if c, known := s.fleet.Get(name); known {
			clusters = append(clusters, c)
		}
	}
	shares, err := division.Weights(weights, clusters)
	if err != nil {
		return nil, err
	}
	divided, err := division.Divide(*s.replicas, shares)
	if err != nil {
		return nil, stall(v1alpha1.ReasonNoClusterSelected,
			"spec.placement.division.weights: no weight applies to any of the chosen clusters; add an entry that selects one of them")
	}
	return divided, nil
}

// dropEmpty leaves out clusters that get nothing of a divided total, as Karmada does. When the total is zero, every
// cluster keeps its object with zero replicas.
func dropEmpty(targets []backends.Target, s *scope) []backends.Target {
	if s.replicas == nil || *s.replicas == 0 || s.division() == v1alpha1.DivisionTypeDuplicated {
		return targets
	}
	return slices.DeleteFunc(targets, func(t backends.Target) bool { return t.Replicas != nil && *t.Replicas == 0 })
}
