package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
)

// TestNamesOfClustersAreKnown: wherever a spec names a cluster, one that the backend does not know is refused there.
func TestNamesOfClustersAreKnown(t *testing.T) {
	named := func(names ...string) *v1alpha1.ClusterSelector { return &v1alpha1.ClusterSelector{Names: names} }
	for want, spec := range map[string]v1alpha1.FleetWorkloadSpec{
		"": {
			Placement: v1alpha1.Placement{
				Clusters: named("m1"), Groups: []v1alpha1.ClusterGroup{{Clusters: named("m2")}, {}},
				Division: &v1alpha1.Division{Weights: []v1alpha1.ClusterWeight{{Clusters: named("m3")}}},
			},
			Overrides: []v1alpha1.Override{{}, {Clusters: named("m1", "m2")}},
		},
		`spec.placement.clusters.names[1] "m9"`:           {Placement: v1alpha1.Placement{Clusters: named("m1", "m9")}},
		`spec.placement.groups[1].clusters.names[0] "m9"`: {Placement: v1alpha1.Placement{Groups: []v1alpha1.ClusterGroup{{Clusters: named("m1")}, {Clusters: named("m9")}}}},
		`spec.placement.division.weights[0].clusters.names[0] "m9"`: {
			Placement: v1alpha1.Placement{Division: &v1alpha1.Division{Weights: []v1alpha1.ClusterWeight{{Clusters: named("m9")}}}},
		},
		`spec.overrides[1].clusters.names[0] "m9"`: {Overrides: []v1alpha1.Override{{}, {Clusters: named("m9")}}},
	} {
		err := CheckNames(spec, fleet)
		if want == "" && err != nil || want != "" && (backends.CodeOf(err) != backends.CodeClusterNotFound ||
			!strings.HasPrefix(err.Error(), want+": the backend knows no such cluster; it knows: m1, m2, m3; ")) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestAFleetIsListedInShort(t *testing.T) {
	of := func(n int) (fleet backends.Fleet) {
		for i := range n {
			fleet.Clusters = append(fleet.Clusters, backends.Cluster{Name: fmt.Sprint("m", i)})
		}
		return fleet
	}
	const ten = "m0, m1, m2, m3, m4, m5, m6, m7, m8, m9"
	for n, want := range map[int]string{0: "no clusters", 1: "m0", 2: "m0, m1", 10: ten, 11: ten + " and 1 more", 25: ten + " and 15 more"} {
		if got := List(of(n)); got != want {
			t.Errorf("%d clusters: %s", n, got)
		}
	}
}

// TestWhatASpecAsksFor: replicas, clusters and their division are told apart, so that an edit of one excuses no loss by another.
func TestWhatASpecAsksFor(t *testing.T) {
	ask := func(template string, change func(*v1alpha1.FleetWorkload)) guard.Asked {
		p, err := New(workload(template, change), kinds)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := p.Asked()
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	plain, eight, uneven := ask(deployment, nil), ask(deployment, divided(8)), ask(deployment, divided(9, weight(1, "m1")))
	elsewhere := ask(deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters.Names = []string{"m1"} })
	if plain.Divided || plain.Replicas != 1 || !eight.Divided || eight.Replicas != 8 || ask(sidecars, nil).Replicas != 1 {
		t.Errorf("%+v, %+v", plain, eight)
	}
	if plain.Clusters != eight.Clusters || eight.Clusters != uneven.Clusters || eight.Division == uneven.Division || plain.Division == eight.Division {
		t.Errorf("other weights: %+v, %+v, %+v", plain, eight, uneven)
	}
	if elsewhere.Clusters == plain.Clusters || elsewhere.Division != plain.Division {
		t.Errorf("other clusters: %+v, %+v", plain, elsewhere)
	}
	for policy, travels := range map[v1alpha1.DependencyPolicy]bool{v1alpha1.DependencyPolicyPropagate: true, v1alpha1.DependencyPolicyIgnore: false} {
		p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Dependencies = policy }), kinds)
		if err != nil || p.Propagates() != travels {
			t.Errorf("%s: %v, %v", policy, p.Propagates(), err)
		}
	}
}
