// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"maps"
	"slices"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

// kind is one kind of choice.
type kind struct {
	name   string
	weight int
	// choose makes the choice, and says what heals it if it must be healed; it is nil when there is nothing to choose.
	choose func(d dice, m *model) (*history.Action, *fault)
}

// edits are the kinds of choices about FleetWorkloads.
func edits() []kind {
	return []kind{
		{"create", 12, create},
		edit("image", 9, setImage),
		edit("environment", 3, setEnvironment),
		edit("scale up", 8, scaleUp),
		edit("scale down", 7, scaleDown),
		edit("override", 8, override),
		edit("narrow", 6, narrow),
		edit("widen", 7, widen),
		edit("choose otherwise", 3, chooseOtherwise),
		edit("weights", 5, setWeights),
		edit("division", 2, setDivision),
		edit("waves", 3, setWaves),
		edit("suspend", 4, setSuspended(true)),
		edit("resume", 12, setSuspended(false)),
		edit("move", 16, move),
		edit("companions", 5, setCompanions),
		edit("dependencies", 4, setDependencies),
		{"delete", 5, remove(false)},
		{"abandon", 4, remove(true)},
		{Adopt, 14, adopt},
		{"clear", 4, clearOrphans},
		{"confirm", 14, confirm},
		{"settings", 3, touch},
	}
}

// edit makes a kind of a change of a live workload's spec; a change says whether there is anything to change.
func edit(name string, weight int, change func(d dice, m *model, s *slot, spec *history.Spec) bool) kind {
	return kind{name, weight, func(d dice, m *model) (*history.Action, *fault) {
		s := pick(d, m.all(live))
		if s == nil {
			return nil, nil
		}
		spec := s.spec.Clone()
		// Nothing to run on is held, and so is not worth asking for.
		if !change(d, m, s, &spec) || len(share.Of(s.key, spec, m.facts)) == 0 {
			return nil, nil
		}
		return &history.Action{Kind: name, Verb: history.Apply, Workload: s.key, Spec: &spec}, nil
	}}
}

const (
	mostDivided    = 9
	mostDuplicated = 4
)

func create(d dice, m *model) (*history.Action, *fault) {
	s := pick(d, m.all(absent))
	if s == nil {
		return nil, nil
	}
	spec := history.Spec{
		Backend: d.backend(), Kind: s.kind, Pods: history.Template{Image: m.image(), Env: "info"}, Clusters: d.selection(),
		Divided: d.chance(65), Replicas: d.between(1, mostDuplicated),
		Dependencies: d.chance(30), Waves: d.waves(),
	}
	if spec.Divided {
		spec.Replicas = d.between(2, mostDivided)
		if d.chance(50) {
			spec.Weights = d.weights()
		}
	}
	if d.chance(30) {
		spec.Companions = d.between(1, 2)
	}
	if len(share.Of(s.key, spec, m.facts)) == 0 {
		return nil, nil
	}
	return &history.Action{Kind: "create", Verb: history.Apply, Workload: s.key, Spec: &spec}, nil
}

func setImage(_ dice, m *model, _ *slot, spec *history.Spec) bool {
	spec.Pods.Image = m.image()
	return true
}

func setEnvironment(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	before := spec.Pods.Env
	spec.Pods.Env = d.word("info", "debug", "trace")
	return spec.Pods.Env != before
}

func scaleUp(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	most := mostDuplicated
	if spec.Divided {
		most = mostDivided
	}
	before := spec.Replicas
	spec.Replicas = max(before, min(most, before+d.between(1, 3)))
	return spec.Replicas > before
}

func scaleDown(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	before := spec.Replicas
	spec.Replicas = max(1, before-d.between(1, 3))
	return spec.Replicas < before
}

func override(d dice, m *model, _ *slot, spec *history.Spec) bool {
	cluster := d.word(Members()...)
	o, there := spec.Overrides[cluster]
	if there && d.chance(40) {
		delete(spec.Overrides, cluster)
		return true
	}
	before := o
	switch d.between(0, 2) {
	case 0:
		o.Image = m.image()
	case 1:
		o.Env = d.word("warn", "error")
	default:
		o.Label = d.word("canary", "stable")
	}
	if spec.Overrides == nil {
		spec.Overrides = map[string]history.Override{}
	}
	spec.Overrides[cluster] = o
	return o != before
}

func narrow(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	c := &spec.Clusters
	if len(c.Names) > 0 {
		c.Names = without(c.Names, d.word(c.Names...))
		return len(c.Names) > 0
	}
	name := d.word(Members()...)
	if slices.Contains(c.Exclude, name) {
		return false
	}
	c.Exclude = with(c.Exclude, name)
	return true
}

func widen(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	c := &spec.Clusters
	name := d.word(Members()...)
	switch {
	case len(c.Names) > 0 && !slices.Contains(c.Names, name):
		c.Names = with(c.Names, name)
		return true
	case slices.Contains(c.Exclude, name):
		c.Exclude = without(c.Exclude, name)
		return true
	default:
		return false
	}
}

func chooseOtherwise(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	before := spec.Clusters
	spec.Clusters = d.selection()
	return !spec.Clusters.Equal(before)
}

func setWeights(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	before := spec.Weights
	spec.Weights = nil
	if before == nil || d.chance(70) {
		spec.Weights = d.weights()
	}
	return spec.Divided && !maps.Equal(before, spec.Weights)
}

func setDivision(_ dice, _ *model, _ *slot, spec *history.Spec) bool {
	spec.Divided, spec.Weights = !spec.Divided, nil
	if !spec.Divided {
		spec.Replicas = min(spec.Replicas, mostDuplicated)
	}
	return true
}

func setWaves(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	before := spec.Waves
	spec.Waves = d.waves()
	return spec.Waves != before
}

func setSuspended(to bool) func(dice, *model, *slot, *history.Spec) bool {
	return func(_ dice, _ *model, _ *slot, spec *history.Spec) bool {
		before := spec.Suspended
		spec.Suspended = to
		return before != to
	}
}

func move(_ dice, _ *model, _ *slot, spec *history.Spec) bool {
	if spec.Backend == history.Karmada {
		spec.Backend = history.OCM
	} else {
		spec.Backend = history.Karmada
	}
	return true
}

func setCompanions(d dice, _ *model, _ *slot, spec *history.Spec) bool {
	before := spec.Companions
	spec.Companions = d.between(0, 2)
	return spec.Companions != before
}

func setDependencies(_ dice, _ *model, _ *slot, spec *history.Spec) bool {
	spec.Dependencies = !spec.Dependencies
	return true
}

// remove deletes a FleetWorkload. What is to be abandoned must run as it was asked to: what nobody can tell how it runs,
// nobody can take over again.
func remove(orphan bool) func(dice, *model) (*history.Action, *fault) {
	name := map[bool]string{false: "delete", true: "abandon"}[orphan]
	return func(d dice, m *model) (*history.Action, *fault) {
		s := pick(d, m.all(live))
		if s == nil || orphan && (s.spec.Suspended || m.held(s)) {
			return nil, nil
		}
		spec := s.spec.Clone()
		spec.Orphan = orphan
		return &history.Action{Kind: name, Verb: history.Delete, Workload: s.key, Spec: &spec}, nil
	}
}

// Adopt is the kind of choice that takes over what was abandoned.
const Adopt = "adopt"

// adopt makes a FleetWorkload again for what was abandoned, on either backend.
func adopt(d dice, m *model) (*history.Action, *fault) {
	s := pick(d, m.all(orphaned))
	if s == nil || !maps.Equal(s.ran, share.Of(s.key, s.spec, m.facts)) {
		return nil, nil
	}
	spec := s.spec.Clone()
	spec.Orphan, spec.Adopt, spec.Backend = false, true, d.backend()
	return &history.Action{Kind: Adopt, Verb: history.Apply, Workload: s.key, Spec: &spec}, nil
}

func clearOrphans(d dice, m *model) (*history.Action, *fault) {
	s := pick(d, m.all(orphaned))
	if s == nil {
		return nil, nil
	}
	return &history.Action{Kind: "clear", Verb: history.Clear, Workload: s.key, Spec: &s.spec}, nil
}

func confirm(d dice, m *model) (*history.Action, *fault) {
	s := pick(d, m.all(live))
	if s == nil || s.spec.Suspended || !m.held(s) || len(share.Of(s.key, s.spec, m.facts)) == 0 {
		return nil, nil
	}
	return &history.Action{Kind: "confirm", Verb: history.Confirm, Workload: s.key, Spec: &s.spec}, nil
}

func touch(d dice, m *model) (*history.Action, *fault) {
	namespace := pick(d, m.slots).key.Namespace
	return &history.Action{Kind: "settings", Verb: history.Touch, Workload: history.Key{Namespace: namespace}}, nil
}

func with(names []string, name string) []string {
	names = append(slices.Clone(names), name)
	slices.Sort(names)
	return names
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
