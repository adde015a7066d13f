package plan

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// TestAPauseIsAnEditOfTheDivision: it asks for no cluster to be left, and without one all is as it was.
func TestAPauseIsAnEditOfTheDivision(t *testing.T) {
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	asked := func(paused *v1alpha1.ClusterSelector) (clusters, division string) {
		p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Paused = paused }), kinds)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Asked()
		if err != nil {
			t.Fatal(err)
		}
		return a.Clusters, a.Division
	}
	clusters, division := asked(nil)
	if want, _ := Hash((*v1alpha1.Division)(nil)); division != want {
		t.Errorf("the hash of no division is %s, not %s", division, want)
	}
	seen := map[string]bool{division: true}
	for _, paused := range []*v1alpha1.ClusterSelector{{}, {Names: []string{"m1"}}, {Names: []string{"m2"}}} {
		c, d := asked(paused)
		if c != clusters || seen[d] {
			t.Errorf("%v: %s %s", paused, c, d)
		}
		seen[d] = true
	}
}

// TestAPauseMovesNothing (law 1): what is left for the others is divided as before, whichever clusters are paused.
func TestAPauseMovesNothing(t *testing.T) {
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(1))
	for range 2000 {
		total, n := int32(r.Intn(40)), 1+r.Intn(6)
		fleet, free, all := backends.Fleet{}, []string{}, []string{}
		division := &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided}
		for i := range n {
			name := fmt.Sprint("m", i)
			fleet.Clusters, all = append(fleet.Clusters, backends.Cluster{Name: name}), append(all, name)
			division.Weights = append(division.Weights, v1alpha1.ClusterWeight{
				Clusters: &v1alpha1.ClusterSelector{Names: []string{name}}, Weight: ptr(int32(1 + r.Intn(9))),
			})
		}
		p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Replicas, fw.Spec.Placement.Division = &total, division
		}), kinds)
		if err != nil {
			t.Fatal(err)
		}
		before, err := p.Shares(fleet, all, nil)
		if err != nil {
			t.Fatal(err)
		}
		pinned := int32(0)
		for _, name := range all {
			if r.Intn(2) == 0 {
				pinned += before[name]
			} else {
				free = append(free, name)
			}
		}
		if len(free) == 0 {
			continue
		}
		after, err := p.Beside(pinned).Shares(fleet, free, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range free {
			if after[name] != before[name] {
				t.Fatalf("%d over %v is %v, and beside what is paused %v", total, division.Weights, before, after)
			}
		}
	}
}
