package migration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// Side is one of the two backends of a migration that is thought of.
type Side struct {
	Name     string
	Features backends.Features
	Fleet    backends.Fleet
}

// Candidate is a migration that is thought of.
type Candidate struct {
	Source, Target Side
	// Plan is the workload with the clusters' names as the source has them, There with those of the target.
	Plan, There *plan.Plan
	Aliases     plan.Aliases
	// Targets are what the source's clusters run.
	Targets  []backends.Target
	Strategy *v1alpha1.MigrationStrategy
}

// Validate lists the clusters that would change hands, with their waves, and all that stands against it, for a person.
func (c Candidate) Validate() (clusters []v1alpha1.MigrationClusterStatus, problems []string) {
	for _, side := range []Side{c.Source, c.Target} {
		if !side.Features[backends.FeatureModes] {
			problems = append(problems, fmt.Sprintf("backend %s cannot hand workloads over", side.Name))
		}
	}
	problems = append(problems, c.sameMarks()...)
	matched := backends.Fleet{}
	for _, t := range c.Targets {
		own, _ := c.Source.Fleet.Get(t.Cluster)
		twin, known := Twin(own, c.Aliases.On(c.Target.Name, t.Cluster), c.Target.Fleet)
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("cluster %s is not known to backend %s: join it there, or tell its name there in "+
				"the operator's configuration under clusterAliases", t.Cluster, c.Target.Name))
			continue
		case twin.Ready != metav1.ConditionTrue:
			problems = append(problems, fmt.Sprintf("cluster %s is not ready on backend %s", twin.Name, c.Target.Name))
		}
		entry := v1alpha1.MigrationClusterStatus{Name: t.Cluster}
		if twin.Name != t.Cluster {
			entry.TargetName = twin.Name
		}
		clusters, matched.Clusters = append(clusters, entry), append(matched.Clusters, twin)
	}
	slices.SortFunc(matched.Clusters, func(a, b backends.Cluster) int { return strings.Compare(a.Name, b.Name) })
	problems = append(problems, c.chosen(clusters)...)
	problems = append(problems, c.otherwise(matched, clusters)...)
	c.assignWaves(clusters)
	return clusters, problems
}

// sameMarks says that nobody could tell on a member which of the two has an object.
func (c Candidate) sameMarks() []string {
	for marks, system := range map[backends.Feature]string{backends.FeatureKarmadaMarks: "Karmada", backends.FeatureOCMMarks: "OCM"} {
		if c.Source.Features[marks] && c.Target.Features[marks] {
			return []string{fmt.Sprintf("backends %s and %s are both of type %s, and on a cluster nobody can tell which of them has an object: move to "+
				"a backend of another type first, and from there to %s", c.Source.Name, c.Target.Name, system, c.Target.Name)}
		}
	}
	return nil
}

// Twin finds a cluster in another backend's fleet: by what both know as its identity, and otherwise by the name that it
// has there as far as is known.
func Twin(c backends.Cluster, name string, fleet backends.Fleet) (backends.Cluster, bool) {
	if c.Identity != "" {
		i := slices.IndexFunc(fleet.Clusters, func(t backends.Cluster) bool { return t.Identity == c.Identity })
		if i >= 0 {
			return fleet.Clusters[i], true
		}
	}
	twin, known := fleet.Get(name)
	if known && c.Identity != "" && twin.Identity != "" {
		return backends.Cluster{}, false // another cluster of that name
	}
	return twin, known
}

// NameOnTarget is the cluster's name on the backend that takes over.
func NameOnTarget(c v1alpha1.MigrationClusterStatus) string {
	if c.TargetName != "" {
		return c.TargetName
	}
	return c.Name
}

// chosen says where the placement would choose other clusters on the target.
func (c Candidate) chosen(clusters []v1alpha1.MigrationClusterStatus) (problems []string) {
	selectors := c.There.Query.Selectors
	chosen, err := c.Target.Fleet.Select(selectors...)
	if err != nil {
		return []string{err.Error()}
	}
	for _, cluster := range clusters {
		if name := NameOnTarget(cluster); !slices.Contains(chosen, name) {
			problems = append(problems, fmt.Sprintf("spec.placement does not choose cluster %s on backend %s", name, c.Target.Name))
		}
	}
	if unknown := c.Target.Fleet.Unknown(selectors...); len(unknown) > 0 {
		problems = append(problems, fmt.Sprintf("spec.placement names clusters that backend %s does not know: %s; choose by labels, or tell "+
			"their names there in the operator's configuration under clusterAliases", c.Target.Name, strings.Join(unknown, ", ")))
	}
	return problems
}

// otherwise says where the overrides would make another manifest on the target.
func (c Candidate) otherwise(matched backends.Fleet, clusters []v1alpha1.MigrationClusterStatus) (problems []string) {
	var names []string
	for _, cluster := range clusters {
		names = append(names, NameOnTarget(cluster))
	}
	there, err := c.There.Targets(matched, names, nil)
	if err != nil {
		return []string{err.Error()}
	}
	for _, cluster := range clusters {
		here, known := targetOf(c.Targets, cluster.Name)
		other, is := targetOf(there, NameOnTarget(cluster))
		if known && is && !reflect.DeepEqual(c.bare(here), c.bare(other)) {
			problems = append(problems, fmt.Sprintf("spec.overrides make another manifest of cluster %s on backend %s: its labels or "+
				"attributes differ there", cluster.Name, c.Target.Name))
		}
	}
	return problems
}

func targetOf(targets []backends.Target, cluster string) (backends.Target, bool) {
	i := slices.IndexFunc(targets, func(t backends.Target) bool { return t.Cluster == cluster })
	if i < 0 {
		return backends.Target{}, false
	}
	return targets[i], true
}

// bare is a target's manifest without its replicas: these stay as they are.
func (c Candidate) bare(t backends.Target) map[string]any {
	m := t.Manifest.DeepCopy()
	if path := c.Plan.Kind.ReplicasPath(); len(path) > 0 {
		unstructured.RemoveNestedField(m.Object, path...)
	}
	return m.Object
}

// assignWaves gives each cluster the number of its wave, from 1: of the first that selects it, or of one behind all of them.
func (c Candidate) assignWaves(clusters []v1alpha1.MigrationClusterStatus) {
	last := int32(1)
	if c.Strategy != nil {
		last += int32(len(c.Strategy.Waves))
	}
	for i := range clusters {
		clusters[i].Wave = &last
	}
	for n := range last - 1 {
		wave, number := c.Strategy.Waves[n], n+1
		left := sizeOf(wave.Size, len(clusters))
		for i := range clusters {
			cluster, _ := c.Source.Fleet.Get(clusters[i].Name)
			switch {
			case *clusters[i].Wave != last:
			case wave.Clusters != nil && selects(*wave.Clusters, cluster):
				clusters[i].Wave = &number
			case wave.Clusters == nil && left > 0:
				clusters[i].Wave = &number
				left--
			}
		}
	}
}

func selects(selector v1alpha1.ClusterSelector, c backends.Cluster) bool {
	matcher, err := backends.NewMatcher(&selector)
	return err == nil && matcher.Matches(c)
}

// sizeOf reads a wave's size: a number, or a percentage of all clusters, rounded up.
func sizeOf(size *intstr.IntOrString, total int) int {
	if size == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(size, total, true)
	if err != nil {
		return 0 // the schema admits nothing else
	}
	return n
}
