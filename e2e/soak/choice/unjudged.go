// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"slices"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

// Unjudged are choices that the soak's oracle cannot judge: what it allows depends on the facts when the spec was carried out and on those of
// now, and not on the steps between. The oracle of internal/pass/histories follows each step, and judges them.
type Unjudged struct {
	// Name is a short one; Choices says which they are.
	Name, Choices string
	is            func(m *model, a history.Action) bool
}

// AllUnjudged are those that are left out.
func AllUnjudged() []Unjudged {
	return []Unjudged{
		{"held", "edits of replicas and placement while a removal is held", editsHeld},
		{"steps", "labels and clusters that come and go so that more than half goes in several steps, or by shares that fall, or after a person " +
			"once agreed, and what goes from a workload that other clusters have joined", walks},
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

// leavesMostAtOnce tells whether the clusters that go run more than half: that much is held, whatever went before.
func leavesMostAtOnce(running, target share.Shares) bool {
	stays := share.Shares{}
	for name := range target {
		stays[name] = running[name]
	}
	return share.Held(running, stays)
}
