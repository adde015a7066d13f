package placement

import (
	"fmt"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// MaxRequirements bounds the values and expressions of the label selectors of a placement, and of all overrides: each is asked of each
// cluster.
const MaxRequirements = 10_000

// Selectors are the selectors of a placement; a cluster that any one of them chooses may run the workload. There are none while
// CheckSelectors refuses the placement: a backend is not asked about what no cluster can be held against.
func Selectors(p v1alpha1.Placement) []v1alpha1.ClusterSelector {
	if CheckSelectors(p) != nil {
		return nil
	}
	var all []v1alpha1.ClusterSelector
	for _, g := range groupsOf(p) {
		all = append(all, selectorOf(g.Clusters))
	}
	return all
}

// CheckSelectors refuses label selectors that are none, or take too long. Errors are *backends.Error.
func CheckSelectors(p v1alpha1.Placement) error {
	total := 0
	for i, g := range groupsOf(p) {
		if _, err := backends.NewMatcher(g.Clusters); err != nil {
			field := "spec.placement.clusters"
			if len(p.Groups) > 0 {
				field = fmt.Sprintf("spec.placement.groups[%d].clusters", i)
			}
			return &backends.Error{Code: backends.CodeInvalidPlacement, Field: field, Message: "the selector of clusters is not valid",
				Remedy: "correct it", Err: err}
		}
		total += Requirements(g.Clusters)
	}
	if _, err := NewPauses(p); err != nil {
		return err
	}
	total += Requirements(p.Paused)
	if p.Division != nil {
		for _, w := range p.Division.Weights {
			total += Requirements(w.Clusters)
		}
	}
	if total > MaxRequirements {
		return TooManyRequirements(backends.CodeInvalidPlacement, "spec.placement", total)
	}
	return nil
}

// Requirements counts the expressions of a label selector, and their values.
func Requirements(s *v1alpha1.ClusterSelector) int {
	if s == nil || s.Selector == nil {
		return 0
	}
	n := len(s.Selector.MatchLabels)
	for _, e := range s.Selector.MatchExpressions {
		n += 1 + len(e.Values)
	}
	return n
}

// TooManyRequirements is the refusal of so many of them.
func TooManyRequirements(code backends.Code, field string, n int) error {
	return &backends.Error{
		Code: code, Field: field, Value: fmt.Sprint(n),
		Message: fmt.Sprintf("the label selectors have too many expressions and values, and the limit is %d", MaxRequirements),
		Remedy:  "name the clusters, or give them a label that they have in common",
	}
}
