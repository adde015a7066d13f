package placement

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func constraint(by v1alpha1.SpreadTopology, label string, least, most int32) v1alpha1.SpreadConstraint {
	c := v1alpha1.SpreadConstraint{By: by, Label: label, MinGroups: &least}
	if most > 0 {
		c.MaxGroups = &most
	}
	return c
}

// puzzle draws clusters with labels of a few values, and constraints on them.
func puzzle(r *rand.Rand) (v1alpha1.Placement, []backends.Cluster, map[string]bool) {
	var p v1alpha1.Placement
	labels := 1 + r.IntN(3)
	for i := range labels {
		least := int32(1 + r.IntN(3))
		p.Spread = append(p.Spread, constraint(v1alpha1.SpreadByLabel, fmt.Sprint("l", i), least, max(0, least-1+int32(r.IntN(3)))))
		if m := p.Spread[i].MaxGroups; m != nil && *m < least {
			p.Spread[i].MaxGroups = nil
		}
	}
	if r.IntN(2) == 0 {
		p.Spread = append(p.Spread, constraint(v1alpha1.SpreadByCluster, "", int32(1+r.IntN(5)), 0))
	}
	if r.IntN(2) == 0 {
		n := int32(1 + r.IntN(5))
		p.NumberOfClusters = &n
	}
	pool, running := make([]backends.Cluster, 1+r.IntN(9)), map[string]bool{}
	for i := range pool {
		pool[i] = backends.Cluster{Name: fmt.Sprint("c", i), Labels: map[string]string{}}
		for j := range labels {
			pool[i].Labels[fmt.Sprint("l", j)] = fmt.Sprint(r.IntN(4))
		}
		running[pool[i].Name] = r.IntN(3) == 0
	}
	return p, pool, running
}

// meets tells whether the clusters are as the API's words have it.
func meets(p v1alpha1.Placement, clusters []backends.Cluster) bool {
	if p.NumberOfClusters != nil && len(clusters) > int(*p.NumberOfClusters) {
		return false
	}
	for _, s := range p.Spread {
		values := map[string]bool{}
		for _, c := range clusters {
			if s.By == v1alpha1.SpreadByCluster {
				values[c.Name] = true
			} else {
				values[c.Labels[s.Label]] = true
			}
		}
		if len(values) < int(*s.MinGroups) || s.MaxGroups != nil && len(values) > int(*s.MaxGroups) {
			return false
		}
	}
	return true
}

// TestPickIsExact: clusters are found exactly when some set of them meets the constraints, and they do.
func TestPickIsExact(t *testing.T) {
	solved, searched := 0, 0
	for seed := range uint64(5000) {
		p, pool, running := puzzle(rand.New(rand.NewPCG(seed, 1)))
		possible := false
		for set := 1; set < 1<<len(pool) && !possible; set++ {
			var some []backends.Cluster
			for left := set; left > 0; left &= left - 1 {
				some = append(some, pool[bits.TrailingZeros(uint(left))])
			}
			possible = meets(p, some)
		}
		r, b := newRules(p), &budget{left: maxSteps}
		candidates := r.candidates(pool, Situation{Running: running})
		names, err := r.pick(candidates, b)
		if (err == nil) != possible || b.left == 0 {
			t.Fatalf("seed %d: possible: %v, but %v, %v", seed, possible, names, err)
		}
		if err != nil {
			continue
		}
		solved++
		if r.check(r.take(r.within(candidates, nil), nil, []criterion{isWanted, covers, isRare}, b)) != nil {
			searched++
		}
		taken := slices.DeleteFunc(slices.Clone(pool), func(c backends.Cluster) bool { return !slices.Contains(names, c.Name) })
		if !meets(p, taken) {
			t.Fatalf("seed %d: %v do not meet the constraints", seed, names)
		}
		// What was chosen stays.
		for _, c := range pool {
			running[c.Name] = slices.Contains(names, c.Name)
		}
		again, err := r.pick(r.candidates(pool, Situation{Running: running}), b)
		if err != nil || len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(again, n) })) > 0 {
			t.Fatalf("seed %d: %v, and then %v, %v", seed, names, again, err)
		}
	}
	if solved < 1000 || searched < 50 {
		t.Errorf("%d puzzles were solved, %d of them by searching: the test tells little", solved, searched)
	}
}

// hard are clusters of which no eight cover eight values of each of three labels, which is hard to tell.
func hard(clusters, groups int) (v1alpha1.Placement, Situation) {
	n := int32(1000)
	p := v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}, NumberOfClusters: &n, Failover: &v1alpha1.Failover{}}
	for i := range groups {
		p.Groups = append(p.Groups, v1alpha1.ClusterGroup{Name: fmt.Sprint("g", i), Clusters: &v1alpha1.ClusterSelector{}})
	}
	s := Situation{Now: time.Unix(1e9, 0), Running: map[string]bool{}, MaxLostPercent: 100}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range clusters {
		c := backends.Cluster{Name: fmt.Sprintf("c%04d", i), Ready: metav1.ConditionTrue, Labels: map[string]string{}}
		for j := range 7 {
			c.Labels[fmt.Sprint("l", j)] = fmt.Sprint(r.IntN(clusters / 4))
		}
		s.Fleet.Clusters = append(s.Fleet.Clusters, c)
		s.Chosen.Clusters = append(s.Chosen.Clusters, c.Name)
	}
	for j := range int32(7) {
		p.Spread = append(p.Spread, constraint(v1alpha1.SpreadByLabel, fmt.Sprint("l", j), int32(clusters)/8, int32(clusters)/8))
	}
	p.Spread = append(p.Spread, constraint(v1alpha1.SpreadByCluster, "", int32(clusters)/2, 0))
	return p, s
}

// TestASearchThatIsGivenUpSaysSo counts steps, and not time.
func TestASearchThatIsGivenUpSaysSo(t *testing.T) {
	p, s := hard(200, 0)
	_, err := Choose(p, s)
	if backends.CodeOf(err) != backends.CodePlacementNotMet || !strings.Contains(err.Error(), errGaveUp.Error()) {
		t.Errorf("got %v", err)
	}
	p.Spread[0] = constraint(v1alpha1.SpreadByLabel, "l0", 60, 60)
	if _, err := Choose(p, s); backends.CodeOf(err) != backends.CodePlacementNotMet || strings.Contains(err.Error(), errGaveUp.Error()) {
		t.Errorf("there are fewer values than that: got %v", err)
	}
}

// TestReplacementsAreBounded: lost clusters for which nothing else will do are tried one by one, as far as the budget goes.
func TestReplacementsAreBounded(t *testing.T) {
	p, s := hard(400, 0)
	p.Spread, p.Failover.Purge = p.Spread[:1], v1alpha1.PurgePolicyNever
	p.Spread[0].MinGroups, p.Spread[0].MaxGroups, p.NumberOfClusters = nil, nil, nil
	for i := range s.Fleet.Clusters {
		s.Running[s.Fleet.Clusters[i].Name] = true
		if i%2 == 0 {
			s.Fleet.Clusters[i].Ready, s.Fleet.Clusters[i].ReadySince = metav1.ConditionFalse, time.Unix(1, 0)
		}
	}
	trial, err := newTrial(p, s, groupsOf(p)[0])
	if err != nil {
		t.Fatal(err)
	}
	// All at once, and each of the 200, is looked for among 400 clusters, of their own and by the label.
	const all = 201 * 400 * 2
	c, err := trial.choose()
	if spent := maxSteps - trial.budget.left; err != nil || len(c.Clusters) != 400 || c.Message != "" || spent < all {
		t.Errorf("%d clusters after %d steps, %v %q", len(c.Clusters), spent, err, c.Message)
	}
	trial.budget.left = all / 2
	if c, err := trial.choose(); err != nil || len(c.Clusters) != 400 || !strings.HasPrefix(c.Message, "not all ways to replace lost clusters were tried") {
		t.Errorf("%d clusters without the steps, %v %q", len(c.Clusters), err, c.Message)
	}
	trial.lost, trial.budget.left = nil, 0
	if c, err := trial.choose(); err != nil || c.Message != "" {
		t.Errorf("nothing to replace: %v %q", err, c.Message)
	}
}

// TestGroupsShareTheSteps: groups make no choice longer.
func TestGroupsShareTheSteps(t *testing.T) {
	p, s := hard(8, 16)
	total := 0
	for _, g := range p.Groups {
		trial, err := newTrial(p, s, g)
		if err != nil {
			t.Fatal(err)
		}
		total += trial.budget.left
	}
	if total > maxSteps {
		t.Errorf("%d steps, and the limit is %d", total, maxSteps)
	}
}

// BenchmarkChoose compares a choice that can be made at once with ones that cannot be made, in one run.
func BenchmarkChoose(b *testing.B) {
	for _, clusters := range []int{100, 200, 1000} {
		p, s := hard(clusters, 0)
		easy := p
		easy.Spread = easy.Spread[:1]
		sixteen, _ := hard(clusters, 16)
		sixteen.Clusters = nil
		for what, p := range map[string]v1alpha1.Placement{"easy": easy, "hard": p, "hard, 16 groups": sixteen} {
			b.Run(fmt.Sprintf("%d clusters, %s", clusters, what), func(b *testing.B) {
				for b.Loop() {
					_, _ = Choose(p, s)
				}
			})
		}
	}
}
