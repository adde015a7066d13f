package plan

import (
	"cmp"
	"fmt"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// CheckNames refuses names of clusters that the backend does not know: a workload that silently misses a cluster, or
// runs without its override there, is worse than one that says so.
func CheckNames(spec v1alpha1.FleetWorkloadSpec, fleet backends.Fleet) error {
	known := make(map[string]bool, len(fleet.Clusters))
	for _, c := range fleet.Clusters {
		known[c.Name] = true
	}
	check := func(field string, selector *v1alpha1.ClusterSelector) error {
		if selector == nil {
			return nil
		}
		for i, name := range selector.Names {
			if !known[name] {
				return &backends.Error{
					Code: backends.CodeClusterNotFound, Field: fmt.Sprintf("%s.names[%d]", field, i), Value: name,
					Message: "the backend knows no such cluster; it knows: " + List(fleet),
					Remedy:  "correct the name, or take it out",
				}
			}
		}
		return nil
	}
	if err := check("spec.placement.clusters", spec.Placement.Clusters); err != nil {
		return err
	}
	for i, g := range spec.Placement.Groups {
		if err := check(fmt.Sprintf("spec.placement.groups[%d].clusters", i), g.Clusters); err != nil {
			return err
		}
	}
	if d := spec.Placement.Division; d != nil {
		for i, w := range d.Weights {
			if err := check(fmt.Sprintf("spec.placement.division.weights[%d].clusters", i), w.Clusters); err != nil {
				return err
			}
		}
	}
	for i, o := range spec.Overrides {
		if err := check(fmt.Sprintf("spec.overrides[%d].clusters", i), o.Clusters); err != nil {
			return err
		}
	}
	return nil
}

// List names the clusters of a fleet, the first ten of them.
func List(fleet backends.Fleet) string {
	names := make([]string, len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		names[i] = c.Name
	}
	return cmp.Or(brief.First(names, 10), "no clusters")
}
