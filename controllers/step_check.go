package controllers

import (
	"context"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// laterField is a field of the spec whose behaviour is not there yet. It is refused rather than ignored.
type laterField struct {
	path    string
	set     func(v1alpha1.FleetWorkloadSpec) bool
	instead string
}

func laterFields() []laterField {
	division := func(s v1alpha1.FleetWorkloadSpec) v1alpha1.DivisionPreference {
		if s.Placement.Division == nil {
			return ""
		}
		return s.Placement.Division.Preference
	}
	return []laterField{
		{"spec.companions", func(s v1alpha1.FleetWorkloadSpec) bool { return len(s.Companions) > 0 },
			"send them by their own means"},
		{"spec.dependencies", func(s v1alpha1.FleetWorkloadSpec) bool { return s.Dependencies == v1alpha1.DependencyPolicyPropagate },
			"set it to Ignore, and create ConfigMaps and Secrets on the clusters yourself"},
		{"spec.placement.groups", func(s v1alpha1.FleetWorkloadSpec) bool { return len(s.Placement.Groups) > 0 },
			"use spec.placement.clusters"},
		{"spec.placement.numberOfClusters", func(s v1alpha1.FleetWorkloadSpec) bool { return s.Placement.NumberOfClusters != nil },
			"name the clusters in spec.placement.clusters"},
		{"spec.placement.spread", func(s v1alpha1.FleetWorkloadSpec) bool { return len(s.Placement.Spread) > 0 },
			"name the clusters in spec.placement.clusters"},
		{"spec.placement.failover", func(s v1alpha1.FleetWorkloadSpec) bool { return s.Placement.Failover != nil },
			"leave it out: workloads stay with their clusters"},
		{"spec.placement.division.preference", func(s v1alpha1.FleetWorkloadSpec) bool {
			return division(s) == v1alpha1.DivisionPreferenceAggregated || division(s) == v1alpha1.DivisionPreferenceAvailableCapacity
		}, "use Weighted"},
		{"spec.overrides[].partition", func(s v1alpha1.FleetWorkloadSpec) bool {
			for _, o := range s.Overrides {
				if o.Partition != "" {
					return true
				}
			}
			return false
		}, "use spec.overrides[].patches on the partition's path"},
		{"spec.migration", func(s v1alpha1.FleetWorkloadSpec) bool { return s.Migration != nil },
			"leave it out until moving between backends is supported"},
	}
}

// checkSpec refuses what this version cannot carry out.
func (r *Reconciler) checkSpec(_ context.Context, s *scope) error {
	for _, field := range laterFields() {
		if field.set(s.fw.Spec) {
			return stall(v1alpha1.ReasonNotSupported, "%s: not supported yet, on backend %q or any other; %s",
				field.path, s.backend, field.instead)
		}
	}
	return nil
}
