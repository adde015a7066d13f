package placement

import (
	"cmp"
	"slices"
)

// search looks for clusters that meet the constraints, as few as it takes: the core, to which others of the same groups can be added. It
// is exact: without a core and without an error there is none. The problem is NP-hard (three topologies and a number of clusters ask for a
// three-dimensional matching; two topologies with upper bounds for a biclique), so that it is given up when the budget is spent.
//
// It is a depth-first search over classes of clusters that are alike, the most promising first, that leaves out what cannot lead to a
// core any more.
func (r rules) search(pool []candidate, b *budget) (core map[string]bool, err error) {
	if !r.clusters.allows(r.clusters.min) {
		return nil, nil
	}
	s := &searcher{rules: r, budget: b, taken: newTally(pool, len(r.topologies)), classes: classesOf(pool)}
	s.slots = len(s.classes)
	if r.clusters.max > 0 {
		s.slots = min(s.slots, r.clusters.max)
	}
	rest := make([]int, len(s.classes))
	for i := range rest {
		rest[i] = i
	}
	found, err := s.extend(rest)
	if !found {
		return nil, err
	}
	core = map[string]bool{}
	for _, i := range s.core {
		core[s.classes[i].first.name] = true
	}
	return core, nil
}

// class are clusters that are alike in all topologies. The first one runs the workload, if any does.
type class struct {
	first candidate
	size  int
}

func classesOf(pool []candidate) []class {
	var classes []class
	at := map[int]int{}
	for _, c := range pool {
		i, known := at[c.class]
		if !known {
			i, at[c.class] = len(classes), len(classes)
			classes = append(classes, class{first: c})
		}
		classes[i].size++
		if c.running && !classes[i].first.running {
			classes[i].first = c
		}
	}
	return classes
}

type searcher struct {
	rules   rules
	budget  *budget
	classes []class
	// core are the classes that are taken, slots how many more can be.
	core  []int
	slots int
	taken *tally
}

// extend takes more of the rest until the constraints are met.
func (s *searcher) extend(rest []int) (bool, error) {
	for {
		if !s.budget.spend((3*len(s.classes) + 6*len(rest)) * (1 + len(s.rules.topologies))) {
			return false, errGaveUp
		}
		if s.met() {
			return true, nil
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(i int) bool { return !s.useful(i) })
		if !s.reachable(rest) {
			return false, nil
		}
		best := slices.MinFunc(rest, s.compare)
		s.add(best)
		rest = slices.DeleteFunc(rest, func(i int) bool { return i == best })
		if found, err := s.extend(rest); found || err != nil {
			return found, err
		}
		s.remove(best)
	}
}

func (s *searcher) add(i int) {
	s.core, s.slots = append(s.core, i), s.slots-1
	s.taken.add(s.classes[i].first)
}

func (s *searcher) remove(i int) {
	s.core, s.slots = s.core[:len(s.core)-1], s.slots+1
	s.taken.remove(s.classes[i].first)
}

// met tells whether there are enough groups, and enough clusters in them.
func (s *searcher) met() bool {
	for t, b := range s.rules.topologies {
		if s.taken.groups[t] < b.min {
			return false
		}
	}
	return s.covered() >= s.rules.clusters.min
}

// covered counts the clusters that have no groups but those taken.
func (s *searcher) covered() int {
	n := 0
	for _, c := range s.classes {
		if s.gain(c, false) == 0 {
			n += c.size
		}
	}
	return n
}

// gain is how many groups a class adds; only where groups lack, or in any topology.
func (s *searcher) gain(c class, lacking bool) int {
	n := 0
	for t, b := range s.rules.topologies {
		if s.taken.taken[t][c.first.groups[t]] == 0 && (!lacking || s.taken.groups[t] < b.min) {
			n++
		}
	}
	return n
}

// useful tells whether a class adds a group, and none too many.
func (s *searcher) useful(i int) bool {
	for t, b := range s.rules.topologies {
		if s.taken.taken[t][s.classes[i].first.groups[t]] == 0 && !b.allows(s.taken.groups[t]+1) {
			return false
		}
	}
	return s.gain(s.classes[i], false) > 0
}

// reachable is false when the rest cannot add enough, whichever of it is taken.
func (s *searcher) reachable(rest []int) bool {
	if len(rest) == 0 || s.slots == 0 {
		return false
	}
	clusters := s.covered()
	for i, c := range s.classes { // one that is not taken itself may be covered by others
		if s.useful(i) {
			clusters += c.size
		}
	}
	if clusters < s.rules.clusters.min {
		return false
	}
	gains, lack := make([]int, 0, len(rest)), 0
	for _, i := range rest {
		gains = append(gains, s.gain(s.classes[i], true))
	}
	for t, b := range s.rules.topologies {
		need := b.min - s.taken.groups[t]
		if need <= 0 {
			continue
		}
		lack += need
		if need > min(s.slots, s.fresh(rest, t)) {
			return false
		}
	}
	slices.SortFunc(gains, func(a, b int) int { return cmp.Compare(b, a) })
	for _, gain := range gains[:min(s.slots, len(gains))] {
		lack -= gain
	}
	return lack <= 0
}

// fresh counts the groups of one topology that the rest would add.
func (s *searcher) fresh(rest []int, t int) int {
	seen := make([]bool, len(s.taken.taken[t]))
	n := 0
	for _, i := range rest {
		group := s.classes[i].first.groups[t]
		if s.taken.taken[t][group] == 0 && !seen[group] {
			seen[group] = true
			n++
		}
	}
	return n
}

// compare puts first what runs the workload, then what adds most of what lacks, then the largest.
func (s *searcher) compare(i, j int) int {
	a, b := s.classes[i], s.classes[j]
	runs := func(c class) int {
		if c.first.running {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(runs(a), runs(b)), cmp.Compare(s.gain(b, true), s.gain(a, true)), cmp.Compare(b.size, a.size),
		cmp.Compare(a.first.name, b.first.name))
}
