package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// maxCombinations bounds how many ways to keep within maxGroups are tried.
const maxCombinations = 2000

// pick takes clusters from the pool: as many as the spread constraints and the number of clusters allow, those that run
// the workload first, then evenly over what is spread over, then by name.
func pick(p v1alpha1.Placement, pool []backends.Cluster, running map[string]bool) ([]string, error) {
	r := newRules(p)
	var unmet error
	tried := 0
	var found []string
	r.within(0, pool, running, func(pool []backends.Cluster) bool {
		tried++
		for _, order := range [][]criterion{{isRunning, covers, isRare}, {covers, isRunning, isRare}} {
			taken := r.take(pool, running, order)
			err := r.check(taken)
			if err == nil {
				found = namesOf(taken)
				return true
			}
			unmet = cmp.Or(unmet, err)
		}
		return tried >= maxCombinations
	})
	if found == nil && len(pool) > 0 {
		return nil, unmet
	}
	return found, nil
}

// rules are spread constraints and the number of clusters, as bounds.
type rules struct {
	topologies []bound
	clusters   bound
}

// bound is on the number of groups of clusters; max is 0 without an upper one.
type bound struct {
	constraint v1alpha1.SpreadConstraint
	field      string
	min, max   int
}

func newRules(p v1alpha1.Placement) rules {
	r := rules{clusters: bound{min: 1}}
	if p.NumberOfClusters != nil {
		r.clusters.max = int(*p.NumberOfClusters)
	}
	for i, c := range p.Spread {
		b := bound{constraint: c, field: fmt.Sprintf("spec.placement.spread[%d]", i), min: 1}
		if c.MinGroups != nil {
			b.min = int(*c.MinGroups)
		}
		if c.MaxGroups != nil {
			b.max = int(*c.MaxGroups)
		}
		if c.By != v1alpha1.SpreadByCluster {
			r.topologies = append(r.topologies, b)
			continue
		}
		r.clusters.field, r.clusters.constraint = b.field, c
		r.clusters.min = max(r.clusters.min, b.min)
		if b.max > 0 && (r.clusters.max == 0 || b.max < r.clusters.max) {
			r.clusters.max = b.max
		}
	}
	return r
}

// topologyOf is the value of what a constraint counts; empty when the cluster has none.
func topologyOf(c backends.Cluster, s v1alpha1.SpreadConstraint) string {
	switch s.By {
	case v1alpha1.SpreadByRegion:
		return c.Attributes[v1alpha1.AttributeRegion]
	case v1alpha1.SpreadByZone:
		// Zones of different regions may have the same name.
		if zone := c.Attributes[v1alpha1.AttributeZone]; zone != "" {
			return c.Attributes[v1alpha1.AttributeRegion] + "/" + zone
		}
		return ""
	case v1alpha1.SpreadByProvider:
		return c.Attributes[v1alpha1.AttributeProvider]
	case v1alpha1.SpreadByLabel:
		return c.Labels[s.Label]
	default:
		return c.Name
	}
}

func titleOf(s v1alpha1.SpreadConstraint) string {
	switch s.By {
	case v1alpha1.SpreadByRegion:
		return "region"
	case v1alpha1.SpreadByZone:
		return "zone"
	case v1alpha1.SpreadByProvider:
		return "provider"
	case v1alpha1.SpreadByLabel:
		return "label " + s.Label
	default:
		return "cluster"
	}
}

// within visits the parts of the pool that have no more groups than allowed, the best first, until visit is satisfied.
func (r rules) within(i int, pool []backends.Cluster, running map[string]bool, visit func([]backends.Cluster) bool) bool {
	if i == len(r.topologies) {
		return visit(pool)
	}
	b := r.topologies[i]
	values := r.ranked(b, pool, running)
	if b.max == 0 || len(values) <= b.max {
		return r.within(i+1, pool, running, visit)
	}
	return combinations(len(values), b.max, func(indexes []int) bool {
		keep := map[string]bool{}
		for _, index := range indexes {
			keep[values[index]] = true
		}
		part := slices.DeleteFunc(slices.Clone(pool), func(c backends.Cluster) bool { return !keep[topologyOf(c, b.constraint)] })
		return r.within(i+1, part, running, visit)
	})
}

// ranked are the values of a topology: those that run most come first, then those with most clusters.
func (r rules) ranked(b bound, pool []backends.Cluster, running map[string]bool) []string {
	runs, all := map[string]int{}, map[string]int{}
	for _, c := range pool {
		value := topologyOf(c, b.constraint)
		all[value]++
		if running[c.Name] {
			runs[value]++
		}
	}
	values := make([]string, 0, len(all))
	for value := range all {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(runs[b], runs[a]), cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	return values
}

// combinations visits k of n in lexical order until visit is satisfied.
func combinations(n, k int, visit func([]int) bool) bool {
	indexes := make([]int, k)
	for i := range indexes {
		indexes[i] = i
	}
	for {
		if visit(indexes) {
			return true
		}
		i := k - 1
		for i >= 0 && indexes[i] == n-k+i {
			i--
		}
		if i < 0 {
			return false
		}
		indexes[i]++
		for j := i + 1; j < k; j++ {
			indexes[j] = indexes[j-1] + 1
		}
	}
}

// standing is how a cluster stands to those taken already.
type standing struct {
	running bool
	// covers is how many constraints that lack groups would get one more.
	covers int
	// like is how many of those taken are in the same group of the first constraint.
	like int
}

// criterion compares two clusters; the smaller one is taken first.
type criterion func(a, b standing) int

func isRunning(a, b standing) int {
	switch {
	case a.running == b.running:
		return 0
	case a.running:
		return -1
	default:
		return 1
	}
}

func covers(a, b standing) int { return cmp.Compare(b.covers, a.covers) }
func isRare(a, b standing) int { return cmp.Compare(a.like, b.like) }

// take takes clusters one by one, the best by the criteria and then by name.
func (r rules) take(pool []backends.Cluster, running map[string]bool, order []criterion) []backends.Cluster {
	n := len(pool)
	if r.clusters.max == 0 || n <= r.clusters.max {
		return pool
	}
	rest := slices.SortedFunc(slices.Values(pool), func(a, b backends.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	var taken []backends.Cluster
	counts := make([]map[string]int, len(r.topologies))
	for i := range counts {
		counts[i] = map[string]int{}
	}
	for len(taken) < r.clusters.max {
		best := 0
		for i := 1; i < len(rest); i++ {
			if better(r.standing(rest[i], counts, running), r.standing(rest[best], counts, running), order) {
				best = i
			}
		}
		for i, b := range r.topologies {
			counts[i][topologyOf(rest[best], b.constraint)]++
		}
		taken = append(taken, rest[best])
		rest = slices.Delete(rest, best, best+1)
	}
	return taken
}

func (r rules) standing(c backends.Cluster, counts []map[string]int, running map[string]bool) standing {
	s := standing{running: running[c.Name]}
	for i, b := range r.topologies {
		n := counts[i][topologyOf(c, b.constraint)]
		if n == 0 && len(counts[i]) < b.min {
			s.covers++
		}
		if i == 0 {
			s.like = n
		}
	}
	return s
}

func better(a, b standing, order []criterion) bool {
	for _, compare := range order {
		if n := compare(a, b); n != 0 {
			return n < 0
		}
	}
	return false
}

// check fails when there are fewer groups than asked for.
func (r rules) check(taken []backends.Cluster) error {
	for _, b := range append(slices.Clone(r.topologies), r.clusters) {
		values := map[string]bool{}
		for _, c := range taken {
			values[topologyOf(c, b.constraint)] = true
		}
		if len(values) >= b.min || len(taken) == 0 {
			continue
		}
		return &backends.Error{
			Code: backends.CodePlacementNotMet, Field: b.field + ".minGroups", Value: fmt.Sprint(b.min),
			Message: fmt.Sprintf("the clusters that can be taken, %s, have %d different values of %s",
				list(namesOf(taken)), len(values), titleOf(b.constraint)),
			Remedy: "lower minGroups, raise numberOfClusters, or choose more clusters",
		}
	}
	return nil
}

func namesOf(clusters []backends.Cluster) []string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
