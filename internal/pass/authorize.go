package pass

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// authorize holds everything back unless the ServiceAccount that the spec names may create what is shipped, and get what is read.
func (d *Decision) authorize(needs []plan.Need) error {
	account := d.spec.Spec.ServiceAccountName
	if account == "" {
		return nil
	}
	var refused []string
	for _, access := range d.accesses(account, needs) {
		switch answer, known := d.in.Access[access]; {
		case !known:
			d.Reads.Access = append(d.Reads.Access, access)
		case answer.Err != nil:
			return d.standStill(fmt.Errorf("spec.serviceAccountName %q: ask whether it may %s: %w", account, access.text(), answer.Err))
		case !answer.Allowed:
			refused = append(refused, access.text())
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
			"namespace %s on the management cluster, or name another one", account, firstOf(refused), d.in.FleetWorkload.Namespace),
	})
}

// accesses are all that the account must be allowed, each once.
func (d *Decision) accesses(account string, needs []plan.Need) []Access {
	kind, namespace := d.work.kind, d.in.FleetWorkload.Namespace
	workload := Access{ServiceAccount: account, Verb: "create", Group: kind.Group, Resource: kind.Resource, Namespace: namespace}
	if kind.ClusterScoped {
		workload.Namespace = ""
	}
	all := []Access{workload}
	for _, c := range d.work.plan.Companions {
		all = append(all, Access{
			ServiceAccount: account, Verb: "create", Group: c.Object.GroupVersionKind().Group, Resource: c.Resource, Namespace: namespace,
		})
	}
	for _, n := range needs {
		all = append(all, Access{
			ServiceAccount: account, Verb: "get", Group: n.Group, Resource: n.Resource(), Namespace: namespace, Name: n.Name,
		})
	}
	slices.SortFunc(all, func(a, b Access) int { return strings.Compare(a.text(), b.text()) })
	return slices.Compact(all)
}

// text words it as RBAC does.
func (a Access) text() string {
	text := a.Verb + " " + a.Resource
	if a.Group != "" {
		text += "." + a.Group
	}
	if a.Name != "" {
		text += " " + a.Name
	}
	return text
}

// standStill stops a hand-over's clock, too, and returns why.
func (d *Decision) standStill(why error) error {
	if d.handOver != nil {
		d.freeze(d.backend)
	}
	return why
}
