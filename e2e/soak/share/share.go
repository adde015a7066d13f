// SPDX-License-Identifier: Apache-2.0

// Package share works out from a spec and the facts of clusters who is to run how many replicas: the rules of
// docs/placement.md, written down once more and as simply as they can be, so that a mistake in the operator is not made here
// too. It is pure.
package share

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

// Shares are replicas by cluster; a cluster that gets none is not there.
type Shares map[string]int

// mostRemoved is the share of the running replicas, in percent, that may go without an edit that asks for it.
const mostRemoved = 50

// Of is what a spec asks for when every chosen cluster can be had.
func Of(k history.Key, s history.Spec, facts history.Facts) Shares {
	clusters := Chosen(k, s.Clusters, facts)
	weights := map[string]int{}
	for _, name := range clusters {
		weights[name] = 1
		if len(s.Weights) > 0 {
			weights[name] = s.Weights[name]
		}
	}
	if s.Divided {
		return Divide(s.Replicas, weights)
	}
	shares := Shares{}
	for _, name := range clusters {
		shares[name] = s.Replicas
	}
	return shares
}

// Chosen are the clusters that a selection chooses, sorted.
func Chosen(k history.Key, s history.Selection, facts history.Facts) []string {
	var chosen []string
	for _, name := range facts.Names() {
		c := facts[name]
		switch {
		case !c.Joined, slices.Contains(s.Exclude, name), len(s.Names) > 0 && !slices.Contains(s.Names, name), s.ByLabel && !c.Labels[k]:
		default:
			chosen = append(chosen, name)
		}
	}
	return chosen
}

// Cases are the sets of clusters that may be left out. There is more than one while clusters cannot be had, by the facts of now or those that a
// removal is measured by: one that runs the workload stays, and one that does not is left out; when the operator learns which of the two it is may
// take a while.
func Cases(k history.Key, s history.Spec, base, now history.Facts, runs func(cluster string) bool) [][]string {
	var open []string
	for _, facts := range []history.Facts{now, base} {
		for _, name := range Chosen(k, s.Clusters, facts) {
			if !facts[name].Available() && !runs(name) && !slices.Contains(open, name) {
				open = append(open, name)
			}
		}
	}
	all := [][]string{open}
	for subset := range 1<<len(open) - 1 {
		var out []string
		for i, name := range open {
			if subset&(1<<i) != 0 {
				out = append(out, name)
			}
		}
		all = append(all, out)
	}
	return all
}

// Without are the facts as if some clusters were not there.
func Without(facts history.Facts, out []string) history.Facts {
	for _, name := range out {
		facts = facts.With(name, history.Cluster{})
	}
	return facts
}

// Asked is what a spec asks for under the facts of now: what it asked for under those of base, when too much would go.
func Asked(k history.Key, s history.Spec, base, now history.Facts) (shares Shares, held bool) {
	before, after := Of(k, s, base), Of(k, s, now)
	if Held(before, after) {
		return before, true
	}
	return after, false
}

// Divide gives one replica after the other to the cluster with the strongest claim, by Webster's method: to one that has
// none before all others, then by weight/(2n+1), n being what it has. Among equal claims fewer replicas count more, then the
// smaller name.
func Divide(total int, weights map[string]int) Shares {
	names := slices.Sorted(maps.Keys(weights))
	names = slices.DeleteFunc(names, func(name string) bool { return weights[name] <= 0 })
	shares := Shares{}
	if len(names) == 0 {
		return shares
	}
	claim := func(a, b string) int {
		if none, other := shares[a] == 0, shares[b] == 0; none != other {
			return cmp.Compare(shares[a], shares[b])
		}
		return cmp.Or(
			cmp.Compare(weights[b]*(2*shares[a]+1), weights[a]*(2*shares[b]+1)),
			cmp.Compare(shares[a], shares[b]),
			cmp.Compare(a, b),
		)
	}
	for range total {
		shares[slices.MinFunc(names, claim)]++
	}
	return shares
}

// Removed is how many replicas go from clusters when one outcome follows another, and how many there were.
func Removed(before, after Shares) (gone, of int) {
	for name, n := range before {
		of += n
		gone += max(0, n-after[name])
	}
	return gone, of
}

// Held tells whether so much would go that it must be held unless an edit asks for it (law 2): more than half, or all.
func Held(before, after Shares) bool {
	gone, of := Removed(before, after)
	return of > 0 && (len(after) == 0 || gone*100 > of*mostRemoved)
}

// Base are the facts against which a removal is measured after an edit, from those before it. What counts is what ran when
// the spec was last carried out. An edit excuses just what it asks for: one that chooses clusters as before excuses none that has
// left, and one that comes while a removal is held does not let it go.
func Base(k history.Key, before, after history.Spec, base, now history.Facts) history.Facts {
	switch {
	case Held(Of(k, before, base), Of(k, before, now)):
		return base
	case !before.SameClusters(after):
		return now
	case before.SameDivision(after):
		return base
	}
	for _, name := range Chosen(k, after.Clusters, now) {
		if !slices.Contains(Chosen(k, after.Clusters, base), name) {
			base = base.With(name, now[name]) // the new division is over those that have joined, too
		}
	}
	return base
}
