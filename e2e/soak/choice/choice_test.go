// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

func told(p Plan) []string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, fmt.Sprintf("%s %s", s.At, s.Action))
	}
	for _, a := range p.End {
		lines = append(lines, a.String())
	}
	return lines
}

func TestASeedMakesTheSameChoices(t *testing.T) {
	const length = 10 * time.Minute
	one, again, other := told(Make(7, length, false)), told(Make(7, length, false)), told(Make(8, length, false))
	if !slices.Equal(one, again) {
		t.Error("the same seed makes other choices")
	}
	if slices.Equal(one, other) {
		t.Error("another seed makes the same choices")
	}
	if n := len(one); n < 150 || n > 300 {
		t.Errorf("%d choices in %s", n, length)
	}
}

// A shorter soak begins like a longer one.
func TestChoicesDoNotDependOnTheLength(t *testing.T) {
	short, long := Make(3, time.Minute, false).Steps, Make(3, 5*time.Minute, false).Steps
	for i, s := range short {
		if s.Action.String() != long[i].Action.String() || s.At != long[i].At {
			t.Fatalf("step %d: %s, then %s", i, s.Action, long[i].Action)
		}
	}
}

func TestEveryKindIsChosen(t *testing.T) {
	chosen := map[string]int{}
	for seed := range uint64(20) {
		for _, s := range Make(seed, 20*time.Minute, false).Steps {
			chosen[s.Action.Kind]++
		}
	}
	want := []string{"kill", "stop", "continue", "end", "start", "cut", "mend", "unlease", "return", "untaint"}
	for _, k := range append(edits(), clusterEvents()...) {
		want = append(want, k.name)
	}
	for _, name := range want {
		if chosen[name] == 0 {
			t.Errorf("%q is never chosen", name)
		}
	}
}

// Whatever is chosen: few things are broken at once, everything is healed at the end, and every spec can be carried out.
func TestPlansHoldTogether(t *testing.T) {
	for seed := range uint64(50) {
		p := Make(seed, 10*time.Minute, seed%2 == 0)
		broken := map[string]bool{}
		see := func(a history.Action) {
			switch a.Verb {
			case history.Stop, history.End, history.Cut, history.Taint, history.Lose:
				broken[a.Lane()] = true
			case history.Continue, history.Start, history.Mend, history.Untaint, history.Return:
				delete(broken, a.Lane())
			default:
			}
			if len(broken) > maxFaults {
				t.Errorf("seed %d: %v are broken at once", seed, slices.Sorted(maps.Keys(broken)))
			}
			if s := a.Spec; s != nil && (s.Replicas < 1 || slices.Contains(s.Clusters.Names, Visitor) || s.Weights[Visitor] != 0) {
				t.Errorf("seed %d: %s", seed, a)
			}
		}
		for _, s := range p.Steps {
			see(s.Action)
		}
		for _, a := range p.End {
			see(a)
		}
		if len(broken) > 0 {
			t.Errorf("seed %d: %v are never healed", seed, slices.Sorted(maps.Keys(broken)))
		}
	}
}

// running is a model with one workload that runs, and the workload.
func running(spec history.Spec) (*model, *slot) {
	m := newModel()
	s := m.slots[0]
	if spec.Replicas == 0 {
		spec.Replicas = 6
	}
	spec.Kind, spec.Backend = s.kind, history.OCM
	m.apply(history.Action{Verb: history.Apply, Workload: s.key, Spec: &spec}, nil)
	return m, s
}

func labelOff(m *model, s *slot, cluster string) history.Action {
	c := m.facts[cluster]
	c.Labels = maps.Clone(c.Labels)
	delete(c.Labels, s.key)
	a := becomes("label off", history.Label, cluster, c)
	a.Workload = s.key
	return a
}

func edited(s *slot, change func(*history.Spec)) history.Action {
	spec := s.spec.Clone()
	change(&spec)
	return history.Action{Verb: history.Apply, Workload: s.key, Spec: &spec}
}

var byLabel = history.Selection{ByLabel: true}

func TestUnjudged(t *testing.T) {
	lower := func(spec *history.Spec) { spec.Replicas = 3 }
	for name, c := range map[string]struct {
		name   string
		spec   history.Spec
		before []string // clusters that lose their label first
		action func(m *model, s *slot) history.Action
		want   bool
	}{
		"replicas while held": {"held", history.Spec{Clusters: byLabel}, []string{"member1", "member2"}, func(_ *model, s *slot) history.Action { return edited(s, lower) }, true},
		"image while held": {"held", history.Spec{Clusters: byLabel}, []string{"member1", "member2"}, func(_ *model, s *slot) history.Action {
			return edited(s, func(spec *history.Spec) { spec.Pods.Image = "x" })
		}, false},
		"the first label":  {"steps", history.Spec{Clusters: byLabel}, nil, func(m *model, s *slot) history.Action { return labelOff(m, s, "member1") }, false},
		"the second label": {"steps", history.Spec{Clusters: byLabel}, []string{"member1"}, func(m *model, s *slot) history.Action { return labelOff(m, s, "member2") }, true},
		"a label after another cluster joined": {"steps", history.Spec{Clusters: byLabel}, nil, func(m *model, s *slot) history.Action {
			s.grown = true
			return labelOff(m, s, "member1")
		}, true},
		"most at once": {"steps", history.Spec{Divided: true, Weights: map[string]int{"member1": 1, "member2": 1, "member3": 4}, Clusters: byLabel}, nil,
			func(m *model, s *slot) history.Action { return labelOff(m, s, "member3") }, false},
	} {
		m, s := running(c.spec)
		for _, cluster := range c.before {
			m.apply(labelOff(m, s, cluster), nil)
		}
		all := AllUnjudged()
		u := all[slices.IndexFunc(all, func(u Unjudged) bool { return u.Name == c.name })]
		if got := u.is(m, c.action(m, s)); got != c.want {
			t.Errorf("%s: %s is %v", name, c.name, got)
		}
	}
}
