package pass

import (
	"fmt"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// authorize holds everything back unless the ServiceAccount that the spec names may create what is shipped, and get what is read.
func (d *Decision) authorize(needs []plan.Need) error {
	account := d.spec.Spec.ServiceAccountName
	if account == "" {
		return nil
	}
	var refused []string
	for _, right := range d.work.plan.Rights(needs) {
		access := Access{ServiceAccount: account, Right: right}
		switch answer, known := d.in.Access[access]; {
		case !known:
			d.Reads.Access = append(d.Reads.Access, access)
		case answer.Err != nil:
			return d.standStill(fmt.Errorf("spec.serviceAccountName %q: ask whether it may %s: %w", account, right.String(), answer.Err))
		case !answer.Allowed:
			refused = append(refused, right.String())
		}
	}
	if len(d.Reads.Access) > 0 {
		return errEnough
	}
	if len(refused) == 0 {
		return nil
	}
	return d.standStill(&stalled{
		reason: v1alpha1.ReasonServiceAccountForbidden, again: true,
		message: fmt.Sprintf("spec.serviceAccountName %q: this ServiceAccount may not %s. Nothing is changed meanwhile. Give it a Role with that in "+
			"namespace %s on the management cluster, or name another one", account, brief.List(refused), d.in.FleetWorkload.Namespace),
	})
}

// standStill stops a hand-over's clock, too, and returns why.
func (d *Decision) standStill(why error) error {
	if d.handOver != nil {
		d.freeze(d.backend)
	}
	return why
}
