// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"maps"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

// Effects of taints: both let alone what runs.
const (
	// TaintNew keeps new workloads away.
	TaintNew = "new"
	// TaintAll wants running ones to leave as well; without spec.placement.failover they do not.
	TaintAll = "all"
)

// Ways in which connections of the operators fail.
const (
	CutRefuse       = "refused"
	CutBlackhole    = "swallowed"
	CutThrottle     = "throttled"
	CutUnauthorized = "unauthorized"
)

// The servers that operators are connected to, each by a connection of its own.
const (
	ServerManagement = "management"
	ServerKarmada    = history.Karmada
	ServerOCM        = history.OCM
)

// etcd is behind all API servers: without it there is nobody to ask.
const etcd = "etcd"

// clusterEvents are the kinds of choices about clusters.
func clusterEvents() []kind {
	return []kind{
		{"label off", 10, setLabel(false)},
		{"label on", 8, setLabel(true)},
		{"taint", 4, taint},
		{"lose", 5, lose},
		{"leave", 3, leave},
		{"join", 6, join},
	}
}

// faults are the kinds of choices about what fails.
func faults() []kind {
	operators := []string{OperatorA, OperatorB}
	return []kind{
		{"kill operator", 6, kill(operators)},
		// Past 15 seconds the other one gets the lease, and the two race for it.
		{"stop operator", 5, halt(operators, history.Stop, history.Continue, 8)},
		{"end operator", 2, halt(operators, history.End, history.Start, 6)},
		{"unlease", 1, unlease},
		{"cut", 5, cut},
		{"kill component", 8, kill(Components())},
		{"stop component", 6, halt(Components(), history.Stop, history.Continue, 5)},
		{"restart API server", 3, halt(apiServers(), history.End, history.Start, 3)},
	}
}

// Components are the processes of the fleet that fail, but for those of the visitor.
func Components() []string {
	all := append(apiServers(),
		"hub-kube-controller-manager", "ocm-registration", "ocm-placement", "ocm-work-manager", "ocm-heartbeat",
		"karmada-kube-controller-manager", "karmada-aggregated-apiserver", "karmada-webhook", "karmada-controller-manager", "karmada-scheduler")
	for _, member := range Members() {
		for _, part := range []string{
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kruise-manager", "workflow-controller", "work-agent",
		} {
			all = append(all, member+"-"+part)
		}
	}
	return all
}

func apiServers() []string { return []string{"hub-kube-apiserver", "karmada-kube-apiserver", etcd} }

// breaks is an action with what heals it, some steps later.
func (m *model) breaks(d dice, a, heal history.Action, most int) (*history.Action, *fault) {
	if len(m.faults) >= maxFaults {
		return nil, nil
	}
	return &a, &fault{heal: heal, due: m.step + d.between(1, most)}
}

// broken tells whether a process or a cluster is broken already.
func (m *model) broken(name string) bool {
	return slices.ContainsFunc(m.faults, func(f fault) bool {
		cluster := f.heal.Cluster
		return f.heal.Process == name || f.heal.Process == name+"-kube-apiserver" ||
			cluster != "" && (cluster == name || strings.HasPrefix(name, cluster+"-"))
	})
}

func kill(processes []string) func(dice, *model) (*history.Action, *fault) {
	return func(d dice, m *model) (*history.Action, *fault) {
		process := d.word(processes...)
		if m.broken(process) || len(m.faults) >= maxFaults {
			return nil, nil
		}
		return &history.Action{Kind: "kill", Verb: history.Kill, Process: process}, nil
	}
}

func halt(processes []string, begin, end history.Verb, most int) func(dice, *model) (*history.Action, *fault) {
	return func(d dice, m *model) (*history.Action, *fault) {
		process := d.word(processes...)
		if m.broken(process) {
			return nil, nil
		}
		return m.breaks(d,
			history.Action{Kind: string(begin), Verb: begin, Process: process},
			history.Action{Kind: string(end), Verb: end, Process: process}, most)
	}
}

func unlease(_ dice, m *model) (*history.Action, *fault) {
	if len(m.faults) >= maxFaults {
		return nil, nil
	}
	return &history.Action{Kind: "unlease", Verb: history.Unlease, Process: "lease"}, nil
}

func cut(d dice, m *model) (*history.Action, *fault) {
	server := d.word(ServerManagement, ServerKarmada, ServerOCM)
	mode := d.word(CutRefuse, CutBlackhole, CutThrottle, CutUnauthorized)
	if m.broken(server) {
		return nil, nil
	}
	return m.breaks(d,
		history.Action{Kind: "cut", Verb: history.Cut, Process: server, Mode: mode},
		history.Action{Kind: "mend", Verb: history.Mend, Process: server}, 6)
}

// becomes is an action after which a cluster is another.
func becomes(name string, verb history.Verb, cluster string, c history.Cluster) history.Action {
	return history.Action{Kind: name, Verb: verb, Cluster: cluster, Fact: &c}
}

// labelling is a label of a workload that chooses by it, to be given to a cluster or taken.
type labelling struct {
	s      *slot
	action history.Action
}

// labellings are all that can be done.
func (m *model) labellings(kind string, on bool) []*labelling {
	var all []*labelling
	for _, s := range m.all(live) {
		for _, cluster := range m.facts.Names() {
			c := m.facts[cluster]
			if !s.spec.Clusters.ByLabel || !c.Joined || c.Labels[s.key] == on {
				continue
			}
			c.Labels = maps.Clone(c.Labels)
			if c.Labels == nil {
				c.Labels = map[history.Key]bool{}
			}
			if c.Labels[s.key] = on; !on {
				delete(c.Labels, s.key)
			}
			a := becomes(kind, history.Label, cluster, c)
			a.Workload = s.key
			all = append(all, &labelling{s, a})
		}
	}
	return all
}

// setLabel gives or takes a label. Every other loss is one that must be held, if there is one.
func setLabel(on bool) func(dice, *model) (*history.Action, *fault) {
	kind := map[bool]string{true: "label on", false: "label off"}[on]
	return func(d dice, m *model) (*history.Action, *fault) {
		all := m.labellings(kind, on)
		var held []*labelling
		for _, l := range all {
			if _, is := share.Asked(l.s.key, l.s.spec, l.s.base, m.after(l.action)); is {
				l.action.Mode = "held"
				held = append(held, l)
			}
		}
		if !on && len(held) > 0 && d.chance(50) {
			all = held
		}
		l := pick(d, all)
		if l == nil {
			return nil, nil
		}
		return &l.action, nil
	}
}

func taint(d dice, m *model) (*history.Action, *fault) {
	cluster := d.word(m.facts.Names()...)
	c := m.facts[cluster]
	if !c.Available() {
		return nil, nil
	}
	tainted := c
	tainted.Tainted = true
	a := becomes("taint", history.Taint, cluster, tainted)
	a.Mode = d.word(TaintNew, TaintAll)
	return m.breaks(d, a, history.Action{Kind: "untaint", Verb: history.Untaint, Cluster: cluster}, 8)
}

func lose(d dice, m *model) (*history.Action, *fault) {
	cluster := d.word(m.facts.Names()...)
	c := m.facts[cluster]
	if !c.Available() || m.broken(cluster) {
		return nil, nil
	}
	c.Lost = true
	return m.breaks(d, becomes("lose", history.Lose, cluster, c), history.Action{Kind: "return", Verb: history.Return, Cluster: cluster}, 14)
}

// leave takes the visitor out of the fleet, when enough runs elsewhere.
func leave(_ dice, m *model) (*history.Action, *fault) {
	if !m.facts[Visitor].Available() || m.broken(Visitor) {
		return nil, nil
	}
	a := becomes("leave", history.Leave, Visitor, history.Cluster{})
	for _, s := range m.all(live) {
		if _, held := share.Asked(s.key, s.spec, s.base, m.after(a)); held {
			return nil, nil
		}
	}
	return &a, nil
}

func join(_ dice, m *model) (*history.Action, *fault) {
	if m.facts[Visitor].Joined {
		return nil, nil
	}
	a := becomes("join", history.Join, Visitor, history.Cluster{Joined: true})
	return &a, nil
}

// healed is what a heal makes of the facts, which may have changed meanwhile.
func (m *model) healed(a history.Action) history.Action {
	c := m.facts[a.Cluster]
	switch a.Verb {
	case history.Return:
		c.Lost = false
		a.Fact = &c
	case history.Untaint:
		c.Tainted = false
		a.Fact = &c
	default:
	}
	return a
}
