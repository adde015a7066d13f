package ocm

import (
	"context"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// maxWaiting bounds how many clusters a Waiting message names.
const maxWaiting = 5

// Apply implements backends.Driver.
func (d *Driver) Apply(ctx context.Context, desired backends.Desired) (backends.Progress, error) {
	if err := d.ready(ctx); err != nil {
		return backends.Progress{}, err
	}
	plan, err := newPlan(desired, d.opts)
	if err != nil {
		return backends.Progress{}, err
	}
	if err := d.refuseEarlier(ctx, desired.Key); err != nil {
		return backends.Progress{}, err
	}
	fleet, err := d.fleet(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	if err := refuseUnknown(desired.Selectors, fleet); err != nil {
		return backends.Progress{}, err
	}
	selected, waiting, err := d.applyPlacement(ctx, plan)
	shipped, wrong := d.shipDefinitions(ctx, desired.Query, selected.Unsupported)
	if waiting = append(waiting, shipped...); wrong != nil || err != nil && len(shipped) > 0 {
		return progress(waiting), wrong
	}
	if err != nil || len(desired.Targets) == 0 {
		return progress(waiting), err
	}
	more, behind, err := d.applyWorks(ctx, plan, fleet, selected)
	return lookingAgain(progress(append(waiting, more...)), behind), err
}

// lookingAgain looks again when the cache is behind: what it is to show may have gone before it was there, and then no event comes.
func lookingAgain(p backends.Progress, behind bool) backends.Progress {
	if behind {
		p.RequeueAfter = expectations.Patience
	}
	return p
}

func progress(waiting []string) backends.Progress {
	if len(waiting) == 0 {
		return backends.Progress{Done: true}
	}
	return backends.Progress{Waiting: brief.Clauses(waiting, maxWaiting)}
}
