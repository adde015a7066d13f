// SPDX-License-Identifier: Apache-2.0

// Package choice makes a soak's choices: what is edited, what happens to clusters, what fails, and when. They depend on the
// seed and on earlier choices alone, never on time or on what any cluster answers, so that the same seed makes the same
// choices. It is pure.
package choice

import (
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

// Visitor is the member that joins and leaves; specs do not name it.
const Visitor = "member4"

// Members are those that always belong to the fleet.
func Members() []string { return []string{"member1", "member2", "member3"} }

// The processes of the two operators.
const (
	OperatorA = "operator-a"
	OperatorB = "operator-b"
)

// maxFaults is how many things may be broken at the same time.
const maxFaults = 2

// state is what there is of a workload.
type state string

const (
	absent state = "absent"
	live   state = "live"
	// orphaned is one that runs, though its FleetWorkload has been deleted.
	orphaned state = "orphaned"
)

// slot is the place of one workload.
type slot struct {
	key   history.Key
	kind  history.Kind
	state state
	spec  history.Spec
	// base are the facts against which removals are measured.
	base history.Facts
	// grown is true when clusters were chosen since then that are not chosen under base.
	grown bool
	// ran is what it was to run when it was suspended or orphaned.
	ran share.Shares
	// confirmed are the sets of clusters to which a person has agreed.
	confirmed []string
}

// model is what the generator knows: what was asked for, and nothing of what came of it.
type model struct {
	facts  history.Facts
	slots  []*slot
	faults []fault
	step   int
	images int
}

// fault is something that is broken, with what heals it and the step at which that is due.
type fault struct {
	heal history.Action
	due  int
}

// Keys are the workloads of a soak.
func Keys() []history.Key {
	var keys []history.Key
	for _, s := range newModel().slots {
		keys = append(keys, s.key)
	}
	return keys
}

// Facts are those at the beginning: every cluster is there.
func Facts() history.Facts { return newModel().facts }

func newModel() *model {
	m := &model{facts: history.Facts{}}
	for _, name := range Members() {
		m.facts[name] = history.Cluster{Joined: true, Labels: map[history.Key]bool{}}
	}
	m.facts[Visitor] = history.Cluster{Joined: true}
	all := Members()
	for _, w := range []struct {
		namespace, name string
		kind            history.Kind
		// labelled are the clusters with its label. Of few, one may be all that a workload has.
		labelled []string
	}{
		{"soak-shop", "web", history.CloneSet, all},
		{"soak-shop", "cart", history.Deployment, all[:1]},
		{"soak-shop", "pay", history.AdvancedStatefulSet, all[:2]},
		{"soak-news", "feed", history.CloneSet, all[1:]},
		{"soak-news", "ads", history.Deployment, all[2:]},
		{"soak-bank", "ledger", history.AdvancedStatefulSet, all},
		{"soak-bank", "api", history.CloneSet, all[:2]},
		{"soak-bank", "jobs", history.Deployment, all[1:2]},
	} {
		s := &slot{key: history.Key{Namespace: w.namespace, Name: w.name}, kind: w.kind, state: absent}
		m.slots = append(m.slots, s)
		for _, name := range w.labelled {
			m.facts[name].Labels[s.key] = true
		}
	}
	return m
}

// all are the slots in a state.
func (m *model) all(in state) []*slot {
	return slices.DeleteFunc(slices.Clone(m.slots), func(s *slot) bool { return s.state != in })
}

func (m *model) slot(k history.Key) *slot {
	return m.slots[slices.IndexFunc(m.slots, func(s *slot) bool { return s.key == k })]
}

// held tells whether a removal waits for a person.
func (m *model) held(s *slot) bool {
	if s.state != live {
		return false
	}
	_, held := share.Asked(s.key, s.spec, s.base, m.facts)
	return held
}

// image is one that was never used before.
func (m *model) image() string {
	m.images++
	return fmt.Sprint(m.images)
}

// after are the facts when an action has been carried out.
func (m *model) after(a history.Action) history.Facts {
	if a.Fact == nil {
		return m.facts
	}
	return m.facts.After(a)
}

// apply makes an action's effect the model's.
func (m *model) apply(a history.Action, heal *fault) {
	switch a.Verb {
	case history.Apply:
		m.applySpec(m.slot(a.Workload), *a.Spec)
	case history.Delete:
		s := m.slot(a.Workload)
		s.state, s.ran = absent, nil
		if s.spec = a.Spec.Clone(); s.spec.Orphan {
			s.state, s.ran = orphaned, share.Of(s.key, s.spec, m.facts)
		}
	case history.Clear:
		m.slot(a.Workload).state = absent
	case history.Confirm:
		s := m.slot(a.Workload)
		s.base, s.grown, s.confirmed = m.facts, false, append(s.confirmed, targets(s, m.facts))
	default:
		m.facts = m.after(a)
		m.grow()
	}
	if heal != nil {
		m.faults = append(m.faults, *heal)
	}
}

func (m *model) applySpec(s *slot, spec history.Spec) {
	base := m.facts
	if s.state == live {
		base = share.Base(s.key, s.spec, spec, s.base, m.facts)
	}
	if spec.Suspended && !s.spec.Suspended {
		s.ran, _ = share.Asked(s.key, s.spec, s.base, m.facts)
	}
	if !spec.Suspended {
		s.ran = nil
	}
	if s.state != live || !s.spec.SameClusters(spec) {
		s.grown = false
	}
	s.state, s.spec, s.base = live, spec.Clone(), base
}

// grow notes which workloads clusters have joined.
func (m *model) grow() {
	for _, s := range m.all(live) {
		before := share.Chosen(s.key, s.spec.Clusters, s.base)
		for _, name := range share.Chosen(s.key, s.spec.Clusters, m.facts) {
			s.grown = s.grown || !slices.Contains(before, name)
		}
	}
}

// targets are the clusters of a workload in one word.
func targets(s *slot, facts history.Facts) string {
	return fmt.Sprint(share.Chosen(s.key, s.spec.Clusters, facts))
}
