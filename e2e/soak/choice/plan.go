// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"maps"
	"math/rand/v2"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

const (
	// Pauses between choices.
	shortest, longest = 2 * time.Second, 5 * time.Second
	// crowd is how many workloads are created at the beginning, apart seconds one after the other.
	crowd = 6
	apart = 700 * time.Millisecond
	// tries is how often another choice is made when one cannot be.
	tries = 1000
)

// The random streams of a plan: choices do not depend on pauses.
const (
	choices = iota
	pauses
)

// Step is one choice with its time after the beginning.
type Step struct {
	At     time.Duration
	Action history.Action
}

// Plan is everything that one seed chooses.
type Plan struct {
	Steps []Step
	// End heals what is broken and held after the last step.
	End []history.Action
	// LeftOut counts choices that were not taken, by the name of Unjudged.
	LeftOut map[string]int
}

// Make makes the choices of a seed for a length of time. With unjudged it makes those too that the oracle cannot judge.
func Make(seed uint64, length time.Duration, unjudged bool) Plan {
	g := &generator{
		dice: dice{rand.New(rand.NewPCG(seed, choices))}, model: newModel(),
		kinds: append(append(edits(), clusterEvents()...), faults()...), leftOut: map[string]int{},
	}
	if !unjudged {
		g.unjudged = AllUnjudged()
	}
	pause := rand.New(rand.NewPCG(seed, pauses))
	p := Plan{LeftOut: g.leftOut}
	var at time.Duration
	for at < length {
		if len(p.Steps) < crowd {
			p.Steps = append(p.Steps, Step{At: at, Action: g.next(edits()[:1])})
			at += apart
			continue
		}
		p.Steps = append(p.Steps, Step{At: at, Action: g.next(g.kinds)})
		at += shortest + time.Duration(pause.Int64N(int64(longest-shortest)))
	}
	p.End = g.heal()
	return p
}

type generator struct {
	dice     dice
	model    *model
	kinds    []kind
	unjudged []Unjudged
	leftOut  map[string]int
}

// next makes one choice. What is due to be healed comes first.
func (g *generator) next(kinds []kind) history.Action {
	g.model.step++
	for i, f := range g.model.faults {
		if f.due <= g.model.step {
			g.model.faults = append(g.model.faults[:i:i], g.model.faults[i+1:]...)
			a := g.model.healed(f.heal)
			g.model.apply(a, nil)
			return a
		}
	}
	for range tries {
		a, heal := g.roll(kinds).choose(g.dice, g.model)
		if a == nil || g.leavesOut(*a) {
			continue
		}
		g.model.apply(*a, heal)
		return *a
	}
	// Nothing can be done but what always can.
	a, _ := touch(g.dice, g.model)
	return *a
}

// roll takes a kind by its weight.
func (g *generator) roll(kinds []kind) kind {
	all := 0
	for _, k := range kinds {
		all += k.weight
	}
	n := g.dice.IntN(all)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return kinds[0]
}

// leavesOut tells whether a choice is left out.
func (g *generator) leavesOut(a history.Action) bool {
	for _, u := range g.unjudged {
		if u.is(g.model, a) {
			g.leftOut[u.Name]++
			return true
		}
	}
	return false
}

// heal ends everything that keeps workloads from becoming ready.
func (g *generator) heal() []history.Action {
	m := g.model
	var all []history.Action
	do := func(a history.Action) {
		m.apply(a, nil)
		all = append(all, a)
	}
	for _, f := range m.faults {
		do(m.healed(f.heal))
	}
	m.faults = nil
	for _, s := range m.all(live) {
		if m.held(s) {
			g.giveBack(s, do)
		}
		if s.spec.Suspended {
			spec := s.spec.Clone()
			spec.Suspended = false
			do(history.Action{Kind: "resume", Verb: history.Apply, Workload: s.key, Spec: &spec})
		}
	}
	return all
}

// giveBack gives clusters the labels whose loss is held.
func (g *generator) giveBack(s *slot, do func(history.Action)) {
	for _, name := range s.base.Names() {
		c := g.model.facts[name]
		if !c.Joined || !s.base[name].Labels[s.key] || c.Labels[s.key] {
			continue
		}
		c.Labels = maps.Clone(c.Labels)
		if c.Labels == nil {
			c.Labels = map[history.Key]bool{}
		}
		c.Labels[s.key] = true
		a := becomes("label on", history.Label, name, c)
		a.Workload = s.key
		do(a)
	}
}
