// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"maps"
	"slices"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

// Finding is a known defect of the operator, with the choices that would only find it once more.
type Finding struct {
	// ID is its number in the list of findings.
	ID string
	// Leaves says which choices are left out.
	Leaves string
	found  func(m *model, a history.Action) bool
}

// Findings are those that are not mended yet. A finding goes from here with its mend.
func Findings() []Finding {
	return []Finding{
		{"A2", "edits of replicas and placement while a removal is held", editsHeld},
		{"A3", "labels and clusters that come and go so that more than half goes in several steps, or by shares that fall, or after a person " +
			"once agreed, and what goes from a workload that other clusters have joined", walks},
		{"C12", "a total below the number of clusters, and the visitor's leave, while a workload changes its backend", strands},
		{"N1", "a total that gives a share to other clusters, while a workload changes its backend", spreads},
		{"N2", "edits of replicas while a workload changes its backend, and a change of backend while one of its clusters is lost", starves},
		{"N4", "a take-over with fewer replicas than clusters to divide them over", adoptsFew},
		{"N3", "companions that are taken from a suspended workload", forgets},
	}
}

// change is what an action does to one live workload.
type change struct {
	s             *slot
	before, after history.Spec
	now, then     history.Facts
}

// changes are what an action does to live workloads.
func (m *model) changes(a history.Action) []change {
	var all []change
	for _, s := range m.all(live) {
		c := change{s: s, before: s.spec, after: s.spec, now: m.facts, then: m.after(a)}
		if a.Verb == history.Apply && a.Workload == s.key {
			c.after = *a.Spec
		}
		all = append(all, c)
	}
	return all
}

func editsHeld(m *model, a history.Action) bool {
	return slices.ContainsFunc(m.changes(a), func(c change) bool {
		return m.held(c.s) && !c.before.SamePlaces(c.after)
	})
}

func walks(m *model, a history.Action) bool {
	return a.Fact != nil && slices.ContainsFunc(m.changes(a), func(c change) bool {
		target := share.Of(c.s.key, c.after, c.then)
		if gone, _ := share.Removed(share.Of(c.s.key, c.before, c.now), target); gone > 0 && c.s.grown {
			return true // the oracle does not count clusters that have joined since the spec was carried out
		}
		if !share.Held(share.Of(c.s.key, c.after, c.s.base), target) {
			return false
		}
		running, _ := share.Asked(c.s.key, c.before, c.s.base, c.now)
		agreed := slices.Contains(c.s.confirmed, targets(c.s, c.then))
		return agreed || !leavesMostAtOnce(running, target)
	})
}

// leavesMostAtOnce tells whether the clusters that go run more than half: that much is held today.
func leavesMostAtOnce(running, target share.Shares) bool {
	stays := share.Shares{}
	for name := range target {
		stays[name] = running[name]
	}
	return share.Held(running, stays)
}

func strands(m *model, a history.Action) bool {
	return slices.ContainsFunc(m.changes(a), func(c change) bool {
		if !m.moving(c.s) {
			return false
		}
		clusters := len(share.Chosen(c.s.key, c.after.Clusters, c.then))
		few := c.after.Divided && c.after.Replicas < clusters && c.after.Replicas < c.before.Replicas
		_, placed := share.Of(c.s.key, c.before, c.now)[a.Cluster]
		return few || a.Verb == history.Leave && placed
	})
}

// adoptsFew: Karmada makes no Work for a cluster that gets nothing, and so nobody asks that cluster what it runs.
func adoptsFew(m *model, a history.Action) bool {
	return slices.ContainsFunc(m.slots, func(s *slot) bool {
		if a.Verb != history.Apply || a.Workload != s.key || !a.Spec.Adopt || !a.Spec.Divided {
			return false
		}
		return a.Spec.Replicas < len(share.Chosen(s.key, a.Spec.Clusters, m.facts))
	})
}

// forgets: what a suspended workload no longer lists stays, and after a change of backend that comes before it goes nobody removes it.
func forgets(m *model, a history.Action) bool {
	return slices.ContainsFunc(m.changes(a), func(c change) bool {
		fewer := c.after.Companions < c.before.Companions || c.before.Dependencies && !c.after.Dependencies
		return c.before.Suspended && c.after.Suspended && fewer
	})
}

// spreads: while a workload changes its backend its replicas are divided over the clusters that had some when that began. What
// the others should have had moves there at the end.
func spreads(m *model, a history.Action) bool {
	return slices.ContainsFunc(m.changes(a), func(c change) bool {
		if !m.moving(c.s) || c.before.Replicas == c.after.Replicas {
			return false
		}
		before, after := share.Of(c.s.key, c.before, c.now), share.Of(c.s.key, c.after, c.then)
		return !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	})
}

// starves tells whether a hand-over would wait for ever: the target never confirms that it observes an object that the source no
// longer brings up to date.
func starves(m *model, a history.Action) bool {
	return slices.ContainsFunc(m.changes(a), func(c change) bool {
		if m.moving(c.s) && c.before.Replicas != c.after.Replicas {
			return true
		}
		lost := slices.ContainsFunc(c.now.Names(), func(name string) bool {
			_, runs := share.Of(c.s.key, c.before, c.now)[name]
			return c.now[name].Lost && runs
		})
		return c.before.Backend != c.after.Backend && lost
	})
}
