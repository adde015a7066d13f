package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// maxSteps bounds the work of one choice, in looks at one topology of one cluster; it is shared out to the groups of a placement. On
// one processor it lasts about a tenth of a second.
const maxSteps = 10_000_000

// budget is what is left of a bound on work.
type budget struct{ left int }

// spend takes from the budget. It is false when nothing is left.
func (b *budget) spend(steps int) bool {
	b.left = max(0, b.left-steps)
	return b.left > 0
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

// allows tells whether there may be n groups.
func (b bound) allows(n int) bool { return b.max == 0 || n <= b.max }

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
		if b.min >= r.clusters.min {
			r.clusters.field, r.clusters.constraint, r.clusters.min = b.field, c, b.min
		}
		if b.max > 0 && r.clusters.allows(b.max) {
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

// candidate is a cluster that can be taken.
type candidate struct {
	name    string
	running bool
	// pinned ones stay whatever is chosen, so that they are taken first.
	pinned bool
	// groups are what the topologies make of it: the places of its values among all, sorted.
	groups []int
	// class is the same for candidates that are alike in all topologies.
	class int
}

// candidates are the clusters as the rules see them, sorted by name.
func (r rules) candidates(pool []backends.Cluster, s Situation) []candidate {
	all := make([]candidate, len(pool))
	for i, c := range pool {
		all[i] = candidate{
			name: c.Name, running: s.Running[c.Name], pinned: slices.Contains(s.Pinned, c.Name), groups: make([]int, len(r.topologies)),
		}
	}
	for t, b := range r.topologies {
		values := make([]string, len(pool))
		for i, c := range pool {
			values[i] = topologyOf(c, b.constraint)
		}
		sorted := slices.Compact(slices.Sorted(slices.Values(values)))
		for i, value := range values {
			all[i].groups[t], _ = slices.BinarySearch(sorted, value)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(slices.Compare(a.groups, b.groups), cmp.Compare(a.name, b.name))
	})
	for i := 1; i < len(all); i++ {
		all[i].class = all[i-1].class
		if !slices.Equal(all[i].groups, all[i-1].groups) {
			all[i].class++
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.name, b.name) })
	return all
}

// pick takes clusters from the pool: as many as the spread constraints and the number of clusters allow, those that run
// the workload first, then evenly over what is spread over, then by name. Where taking one after the other leads to nothing that
// meets the constraints, all ways are searched, within the budget.
func (r rules) pick(pool []candidate, b *budget) ([]string, error) {
	if len(pool) == 0 {
		return nil, nil
	}
	pinned := map[string]bool{}
	for _, c := range pool {
		if c.pinned {
			pinned[c.name] = true
		}
	}
	within := r.within(pool, pinned)
	taken := r.take(within, pinned, []criterion{isWanted, covers, isRare}, b)
	unmet := r.check(taken)
	if unmet == nil {
		return namesOf(taken), nil
	}
	if len(taken) < len(within) {
		if taken = r.take(within, pinned, []criterion{isPinned, covers, isWanted, isRare}, b); r.check(taken) == nil {
			return namesOf(taken), nil
		}
	}
	core, err := r.search(pool, b)
	if err != nil {
		unmet.Message += ", and " + err.Error()
	}
	if core == nil {
		return nil, unmet
	}
	return namesOf(r.take(r.within(pool, core), core, []criterion{isWanted, covers, isRare}, b)), nil
}

// within is the part of the pool that has no more groups than allowed: kept are the groups of the core, then those that run most, then
// those with most clusters.
func (r rules) within(pool []candidate, core map[string]bool) []candidate {
	for t, b := range r.topologies {
		type group struct{ id, core, running, all int }
		groups := make([]group, 0, len(pool))
		at := map[int]int{}
		for _, c := range pool {
			i, known := at[c.groups[t]]
			if !known {
				i, at[c.groups[t]] = len(groups), len(groups)
				groups = append(groups, group{id: c.groups[t]})
			}
			groups[i].all++
			if c.running {
				groups[i].running++
			}
			if core[c.name] {
				groups[i].core = 1
			}
		}
		if b.allows(len(groups)) {
			continue
		}
		slices.SortFunc(groups, func(x, y group) int {
			return cmp.Or(cmp.Compare(y.core, x.core), cmp.Compare(y.running, x.running), cmp.Compare(y.all, x.all), cmp.Compare(x.id, y.id))
		})
		keep := map[int]bool{}
		for _, g := range groups[:b.max] {
			keep[g.id] = true
		}
		pool = slices.DeleteFunc(slices.Clone(pool), func(c candidate) bool { return !keep[c.groups[t]] })
	}
	return pool
}

// standing is how a cluster stands to those taken already.
type standing struct {
	// wanted is 2 for one of the core, or pinned, 1 for one that runs the workload.
	wanted int
	// covers is how many constraints that lack groups would get one more.
	covers int
	// like is how many of those taken are in the same group of the first constraint.
	like int
}

// criterion compares two clusters; the smaller one is taken first.
type criterion func(a, b standing) int

func isWanted(a, b standing) int { return cmp.Compare(b.wanted, a.wanted) }
func isPinned(a, b standing) int { return cmp.Compare(b.wanted/2, a.wanted/2) }
func covers(a, b standing) int   { return cmp.Compare(b.covers, a.covers) }
func isRare(a, b standing) int   { return cmp.Compare(a.like, b.like) }

// take takes clusters one by one, the best by the criteria and then by name. Of those that stand alike only the first is looked at.
func (r rules) take(pool []candidate, core map[string]bool, order []criterion, b *budget) []candidate {
	if r.clusters.allows(len(pool)) {
		return pool
	}
	queues := r.queues(pool, core)
	tally := newTally(pool, len(r.topologies))
	taken := make([]candidate, 0, r.clusters.max)
	for len(taken) < r.clusters.max {
		b.spend(len(queues) * (1 + len(r.topologies)))
		best, top := -1, standing{}
		for i, q := range queues {
			s := r.standing(q.waiting[0], q.wanted, tally)
			if best < 0 || better(s, top, order) || !better(top, s, order) && q.waiting[0].name < queues[best].waiting[0].name {
				best, top = i, s
			}
		}
		c := queues[best].waiting[0]
		tally.add(c)
		taken = append(taken, c)
		if queues[best].waiting = queues[best].waiting[1:]; len(queues[best].waiting) == 0 {
			queues = slices.Delete(queues, best, best+1)
		}
	}
	return taken
}

// queue are clusters that stand alike to whatever is taken, by name.
type queue struct {
	wanted  int
	waiting []candidate
}

func (r rules) queues(pool []candidate, core map[string]bool) []queue {
	type alike struct{ class, wanted int }
	var queues []queue
	at := map[alike]int{}
	for _, c := range pool {
		key := alike{class: c.class}
		switch {
		case core[c.name]:
			key.wanted = 2
		case c.running:
			key.wanted = 1
		}
		i, known := at[key]
		if !known {
			i, at[key] = len(queues), len(queues)
			queues = append(queues, queue{wanted: key.wanted})
		}
		queues[i].waiting = append(queues[i].waiting, c)
	}
	return queues
}

// tally counts those taken, by topology and group, and the groups that have any.
type tally struct {
	taken  [][]int
	groups []int
}

func newTally(pool []candidate, topologies int) *tally {
	t := &tally{taken: make([][]int, topologies), groups: make([]int, topologies)}
	for i := range topologies {
		most := 0
		for _, c := range pool {
			most = max(most, c.groups[i])
		}
		t.taken[i] = make([]int, most+1)
	}
	return t
}

func (t *tally) add(c candidate) {
	for i, group := range c.groups {
		if t.taken[i][group]++; t.taken[i][group] == 1 {
			t.groups[i]++
		}
	}
}

func (t *tally) remove(c candidate) {
	for i, group := range c.groups {
		if t.taken[i][group]--; t.taken[i][group] == 0 {
			t.groups[i]--
		}
	}
}

func (r rules) standing(c candidate, wanted int, counts *tally) standing {
	s := standing{wanted: wanted}
	for i, b := range r.topologies {
		n := counts.taken[i][c.groups[i]]
		if n == 0 && counts.groups[i] < b.min {
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
func (r rules) check(taken []candidate) *backends.Error {
	counts := newTally(taken, len(r.topologies))
	for _, c := range taken {
		counts.add(c)
	}
	for i, b := range append(slices.Clone(r.topologies), r.clusters) {
		found := len(taken)
		if i < len(r.topologies) {
			found = counts.groups[i]
		}
		if found < b.min {
			return &backends.Error{
				Code: backends.CodePlacementNotMet, Field: b.field + ".minGroups", Value: fmt.Sprint(b.min),
				Message: fmt.Sprintf("the clusters that can be taken, %s, have %d different values of %s",
					brief.List(namesOf(taken)), found, titleOf(b.constraint)),
				Remedy: "lower minGroups, raise numberOfClusters, or choose more clusters",
			}
		}
	}
	return nil
}

func namesOf(clusters []candidate) []string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

var errGaveUp = errors.New("not all combinations of clusters were tried, which would take too long")
