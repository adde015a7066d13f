// Package placement decides which of a backend's clusters run a workload: fallback groups, taints, lost clusters, spread
// constraints and the number of clusters mean the same on every backend (law 9). The backend's part is to say which
// clusters the selectors choose. It is pure, and sticky: what runs stays where it is as long as the spec allows it.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// DefaultTolerationSeconds is for how long a cluster may be lost when spec.placement.failover does not say it.
const DefaultTolerationSeconds = 300

// Situation is what a choice depends on beside the spec.
type Situation struct {
	// Fleet is what the backend knows.
	Fleet backends.Fleet
	// Chosen is the backend's choice for the placement's selectors.
	Chosen backends.Selection
	// Missing are clusters of Chosen that are there only because they were a moment ago: the group that runs keeps them, whether they
	// match or not.
	Missing []string
	// Running are the clusters that have the workload, those that it is leaving excepted.
	Running map[string]bool
	// Paused are the clusters on which nothing changes; Pinned those of them that have the workload, and keep it.
	Paused, Pinned []string
	// Group is the group that was chosen last, empty when none was.
	Group string
	// Divided is true when replicas of a lost cluster can go to the others, but for those that are Numbered: they run a number of their own.
	Divided  bool
	Numbered []string
	// MaxLostPercent is the share of the fleet that may be lost for failover to go on: when more is, the fault may lie
	// between the backend and its clusters.
	MaxLostPercent int32
	Now            time.Time
}

// Choice are the clusters to run on.
type Choice struct {
	// Group is the group they are of; empty without groups.
	Group string
	// Clusters are sorted. Without any, Message says why.
	Clusters []string
	// GivenUp have the workload and are lost, and Clusters take their place. Sorted.
	GivenUp []string
	// Message says what was left out and why, for a person.
	Message string
	// RequeueAfter is after what time the choice may be another one; 0 when time alone changes nothing.
	RequeueAfter time.Duration
}

func selectorOf(s *v1alpha1.ClusterSelector) v1alpha1.ClusterSelector {
	if s == nil {
		return v1alpha1.ClusterSelector{}
	}
	return *s
}

func groupsOf(p v1alpha1.Placement) []v1alpha1.ClusterGroup {
	if len(p.Groups) > 0 {
		return p.Groups
	}
	return []v1alpha1.ClusterGroup{{Clusters: p.Clusters}}
}

// Choose decides. The first group that can take the workload gets it, beginning with the one that has it. An error is a
// *backends.Error: no group can meet the spread constraints.
func Choose(p v1alpha1.Placement, s Situation) (Choice, error) {
	groups := groupsOf(p)
	first := max(0, slices.IndexFunc(groups, func(g v1alpha1.ClusterGroup) bool { return g.Name == s.Group }))
	var none []string
	var unmet error
	var lost *Choice
	var again time.Duration
	for i := range groups {
		t, err := newTrial(p, s, groups[(first+i)%len(groups)])
		if err != nil {
			return Choice{}, err
		}
		again = backends.Sooner(again, t.again)
		c, err := t.choose()
		switch {
		case err != nil:
			unmet = cmp.Or(unmet, err)
		case len(c.Clusters) == 0:
			none = append(none, c.Message)
		case len(intersection(c.Clusters, t.lost)) > 0 && t.takers(c.Clusters) == 0:
			// What runs there stays, unless a further group can take it.
			lost = cmp.Or(lost, &c)
		default:
			return complete(p, s, c, again), nil
		}
	}
	switch {
	case lost != nil:
		return complete(p, s, *lost, again), nil
	case unmet != nil:
		return Choice{}, unmet
	default:
		return Choice{Message: strings.Join(slices.Compact(none), "; "), RequeueAfter: again}, nil
	}
}

// complete adds what is lost in any group and not chosen.
func complete(p v1alpha1.Placement, s Situation, c Choice, again time.Duration) Choice {
	c.RequeueAfter = again
	if p.Failover == nil {
		return c
	}
	t := &trial{placement: p, situation: s}
	for _, name := range s.Chosen.Clusters {
		cluster, known := s.Fleet.Get(name)
		if !known || !s.Running[name] || slices.Contains(c.Clusters, name) || slices.Contains(s.Pinned, name) {
			continue
		}
		if lost, _ := t.lostSince(cluster); lost {
			c.GivenUp = append(c.GivenUp, name)
		}
	}
	c.RequeueAfter = backends.Sooner(again, t.again)
	return c
}

// trial is the choice within one group.
type trial struct {
	group     string
	placement v1alpha1.Placement
	situation Situation
	rules     rules
	// budget bounds the work of choosing.
	budget *budget
	// pool are the clusters that can be taken; lost those among them that may be given up, the longest lost first.
	pool []candidate
	lost []string
	// left are the clusters left out, by the reason.
	left  map[string][]string
	again time.Duration
}

func newTrial(p v1alpha1.Placement, s Situation, g v1alpha1.ClusterGroup) (*trial, error) {
	m, err := backends.NewMatcher(g.Clusters)
	if err != nil {
		return nil, &backends.Error{Code: backends.CodeInvalidPlacement, Field: "spec.placement", Value: g.Name,
			Message: "the selector of clusters is not valid", Remedy: "correct it", Err: err}
	}
	t := &trial{group: g.Name, placement: p, situation: s, left: map[string][]string{}, rules: newRules(p),
		budget: &budget{left: maxSteps / len(groupsOf(p))}}
	var pool []backends.Cluster
	since := map[string]time.Time{}
	for _, name := range s.Chosen.Clusters {
		c, known := s.Fleet.Get(name)
		stays := g.Name == s.Group && slices.Contains(s.Missing, name)
		if !known || !stays && !m.Matches(c) {
			continue
		}
		if why := t.refuse(c); why != "" {
			t.left[why] = append(t.left[why], name)
			continue
		}
		pool = append(pool, c)
		if s.Running[name] && p.Failover != nil && !slices.Contains(s.Pinned, name) {
			if lost, at := t.lostSince(c); lost {
				t.lost = append(t.lost, name)
				since[name] = at
			}
		}
	}
	t.pool = t.rules.candidates(pool, s)
	slices.SortStableFunc(t.lost, func(a, b string) int { return since[a].Compare(since[b]) })
	return t, nil
}

// refuse says why a cluster cannot be taken; it is empty when it can. What runs there stays.
func (t *trial) refuse(c backends.Cluster) string {
	for _, constraint := range t.placement.Spread {
		if constraint.By != v1alpha1.SpreadByCluster && topologyOf(c, constraint) == "" {
			return "has no " + titleOf(constraint)
		}
	}
	switch {
	case slices.Contains(t.situation.Paused, c.Name) && !slices.Contains(t.situation.Pinned, c.Name):
		return "paused by spec.placement.paused"
	case t.situation.Running[c.Name]:
		return ""
	case c.Leaving || c.Ready != metav1.ConditionTrue:
		return "not ready"
	case t.untolerated(c.Taints):
		return "tainted, and spec.placement.tolerations does not tolerate it"
	default:
		return t.situation.Chosen.Unsupported[c.Name]
	}
}

func (t *trial) choose() (Choice, error) {
	chosen, err := t.rules.pick(t.pool, t.budget)
	if err != nil {
		return Choice{}, err
	}
	lost, message := t.lost, t.message()
	if len(lost) > 0 && tooMany(t.situation) {
		message = join(message, fmt.Sprintf("more than %d%% of the backend's clusters are lost at once, so that failover waits",
			t.situation.MaxLostPercent))
		lost = nil
	}
	pool, found := t.pool, true
	for found {
		pool, chosen, found = t.replace(pool, chosen, lost)
	}
	if len(lost) > 0 && t.budget.left == 0 {
		message = join(message, "not all ways to replace lost clusters were tried, which would take too long")
	}
	return Choice{Group: t.group, Clusters: chosen, Message: message}, nil
}

// replace finds lost clusters that others can take the place of: all together, or else one. Without anything in its place a
// cluster is kept.
func (t *trial) replace(pool []candidate, chosen, lost []string) ([]candidate, []string, bool) {
	in := intersection(lost, chosen)
	if len(in) == 0 {
		return pool, chosen, false
	}
	for i := -1; i < len(in) && t.budget.spend(len(pool)*(1+len(t.rules.topologies))); i++ {
		gone := lost
		if i >= 0 {
			gone = in[i : i+1]
		}
		without := slices.DeleteFunc(slices.Clone(pool), func(c candidate) bool { return slices.Contains(gone, c.name) })
		if other, err := t.rules.pick(without, t.budget); err == nil && t.replaces(other, chosen) {
			return without, other, true
		}
	}
	return pool, chosen, false
}

// replaces tells whether a choice without a lost cluster makes up for it.
func (t *trial) replaces(without, with []string) bool {
	fewer := len(intersection(without, t.lost)) < len(intersection(with, t.lost))
	if t.situation.Divided {
		return fewer && t.takers(without) > 0
	}
	return fewer && len(without) >= len(with)
}

// takers counts the clusters of a choice that can take replicas: those that are neither lost nor paused, and have no number of their own.
func (t *trial) takers(chosen []string) int {
	return len(chosen) - len(intersection(chosen, slices.Concat(t.lost, t.situation.Pinned, t.situation.Numbered)))
}

func intersection(names, others []string) []string {
	var both []string
	for _, name := range names {
		if slices.Contains(others, name) {
			both = append(both, name)
		}
	}
	return both
}

// tooMany is true when so many clusters are lost that the backend itself is the likelier cause.
func tooMany(s Situation) bool {
	var lost, all int
	for _, c := range s.Fleet.Clusters {
		if c.Leaving {
			continue
		}
		all++
		if c.Ready != metav1.ConditionTrue {
			lost++
		}
	}
	return lost*100 > all*int(s.MaxLostPercent)
}

// message says what was left out.
func (t *trial) message() string {
	var parts []string
	for _, why := range sortedKeys(t.left) {
		parts = append(parts, brief.List(t.left[why])+": "+why)
	}
	if len(parts) == 0 {
		return ""
	}
	return "left out: " + strings.Join(parts, "; ")
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
