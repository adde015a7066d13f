package placement

import (
	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Pauses tells which clusters spec.placement.paused chooses.
type Pauses struct{ matcher *backends.Matcher }

// NewPauses compiles it. Errors are *backends.Error.
func NewPauses(p v1alpha1.Placement) (Pauses, error) {
	if p.Paused == nil {
		return Pauses{}, nil
	}
	m, err := backends.NewMatcher(p.Paused)
	if err != nil {
		return Pauses{}, &backends.Error{Code: backends.CodeInvalidPlacement, Field: "spec.placement.paused",
			Message: "the selector of clusters is not valid", Remedy: "correct it", Err: err}
	}
	return Pauses{matcher: &m}, nil
}

// Has tells whether nothing is to change on the cluster. Of one that its backend does not list only the name counts.
func (p Pauses) Has(c backends.Cluster) bool { return p.matcher != nil && p.matcher.Matches(c) }
