package plan

import (
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/override"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// Aliases are the names of clusters that backends call differently: of each such cluster, its name by backend.
type Aliases []map[string]string

// Check refuses aliases of which it cannot be said what a name means.
func (a Aliases) Check(field string) error {
	seen := map[string]int{}
	for i, entry := range a {
		if len(entry) < 2 {
			return fmt.Errorf("%s[%d]: a cluster's names on two backends or more are needed", field, i)
		}
		for backend, name := range entry {
			if j, twice := seen[name]; twice && j != i {
				return fmt.Errorf("%s[%d].%s: the name %q stands for another cluster in %s[%d]", field, i, backend, name, field, j)
			}
			seen[name] = i
		}
	}
	return nil
}

// On is what a backend calls the cluster that any backend calls by that name.
func (a Aliases) On(backend, name string) string {
	for _, entry := range a {
		for _, alias := range entry {
			if there, has := entry[backend]; has && alias == name {
				return there
			}
		}
	}
	return name
}

// Written returns the FleetWorkload with its clusters' names as a backend has them; it is not changed, and returned itself
// when there are no aliases.
func (a Aliases) Written(fw *v1alpha1.FleetWorkload, backend string) *v1alpha1.FleetWorkload {
	if len(a) == 0 {
		return fw
	}
	fw = fw.DeepCopy()
	for _, selector := range selectorsOf(&fw.Spec) {
		for _, names := range [][]string{selector.Names, selector.Exclude} {
			for i, name := range names {
				names[i] = a.On(backend, name)
			}
		}
	}
	return fw
}

// selectorsOf are all selectors of a spec.
func selectorsOf(spec *v1alpha1.FleetWorkloadSpec) []*v1alpha1.ClusterSelector {
	all := []*v1alpha1.ClusterSelector{spec.Placement.Clusters, spec.Placement.Paused}
	for i := range spec.Placement.Groups {
		all = append(all, spec.Placement.Groups[i].Clusters)
	}
	if d := spec.Placement.Division; d != nil {
		for i := range d.Weights {
			all = append(all, d.Weights[i].Clusters)
		}
	}
	for i := range spec.Overrides {
		all = append(all, spec.Overrides[i].Clusters)
	}
	if m := spec.Migration; m != nil {
		for i := range m.Waves {
			all = append(all, m.Waves[i].Clusters)
		}
	}
	return slices.DeleteFunc(all, func(s *v1alpha1.ClusterSelector) bool { return s == nil })
}

// With returns the plan with the selectors of fw, in which nothing but names of clusters may differ. The revision stays:
// what a cluster runs does not depend on what it is called.
func (p *Plan) With(fw *v1alpha1.FleetWorkload) (*Plan, error) {
	if fw == p.fw {
		return p, nil
	}
	out := *p
	out.fw, out.manifests, out.numbers = fw, newManifests(), numbers(fw.Spec.Overrides)
	out.Query.Selectors = placement.Selectors(fw.Spec.Placement)
	var err error
	out.overrides, err = override.Compile(fw.Spec.Overrides, p.paths())
	return &out, err
}
