package pass

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// identify learns which object is carried: from the record, or from the template before there is one.
func (d *Decision) identify() error {
	ref := d.record.workload
	if ref == nil {
		manifest, err := plan.Manifest(d.spec)
		if err != nil {
			return err
		}
		if err := plan.Allowed(manifest, d.in.Kinds); err != nil {
			return err
		}
		ref = plan.Reference(manifest)
	}
	d.record.workload = ref
	same := d.here == d.spec
	if d.spec = d.known(d.spec); same {
		d.here = d.spec
	} else {
		d.here = d.in.Aliases.Written(d.spec, d.record.migration.From)
	}
	d.work.query, d.work.kind = plan.Query(d.spec, *ref, d.in.Kinds)
	return d.sameInstallation()
}

// resolveBackend finds the backend. A workload that runs stays with its own until a hand-over is through; one on which nothing runs
// is left.
func (d *Decision) resolveBackend() error {
	owner, next := d.in.FleetWorkload.Status.Backend, d.in.FleetWorkload.Spec.Backend
	if owner == "" || owner == next || !d.in.FleetWorkload.DeletionTimestamp.IsZero() {
		return d.use(cmp.Or(owner, next))
	}
	if err := d.use(owner); err != nil {
		return err
	}
	side, err := d.side(SideRead{Backend: owner, Fleet: true, Query: &d.work.query})
	if err != nil {
		return err // to have it read: what a backend that is away says, use has returned already
	}
	if len(side.Observed.Clusters) > 0 {
		return nil
	}
	if err := d.sure(owner, side); err != nil {
		return err
	}
	if _, err := d.side(SideRead{Backend: next}); errors.Is(err, errEnough) || errors.Is(err, backends.ErrNotConfigured) {
		return d.missing(next, err)
	}
	d.leave(owner, next)
	return errEnough
}

// sure has the backend's API server asked before nothing there is believed: what was sent a moment ago may not be in a cache yet.
func (d *Decision) sure(backend string, side *Side) error {
	if side.Live || len(guard.Decided(d.record.placement)) == 0 {
		return nil
	}
	query := d.work.query
	query.Counterpart = backends.CounterpartActive
	d.Reads.Sides = append(d.Reads.Sides, SideRead{Backend: backend, Fleet: true, Query: &query})
	return errEnough
}

// leave gives a backend up on which nothing runs, for another one. What was set up there, such as a placement, is removed first.
func (d *Decision) leave(owner, next string) {
	d.Orders = []Order{{Backend: owner, Delete: &Deletion{Query: d.work.query, Policy: v1alpha1.DeletionPolicyOrphan}}}
	d.conclude = func(outcomes map[string]Outcome) error {
		done := outcomes[owner]
		if done.Err != nil {
			return fmt.Errorf("leave the backend: %w", done.Err)
		}
		if d.waiting = done.Progress.Waiting; done.Progress.Done {
			d.record.backend = next
		}
		return nil
	}
}

// use takes the backend of that name, with the clusters' names as it has them.
func (d *Decision) use(name string) error {
	d.backend = name
	d.here = d.in.Aliases.Written(d.spec, name)
	d.work.query.Selectors = placement.Selectors(d.here.Spec.Placement)
	_, err := d.side(SideRead{Backend: name})
	return d.missing(name, err)
}

// claim records backend and workload: from then on they are found again whatever the spec says. Until that is recorded nothing is sent.
func (d *Decision) claim() error {
	if d.unclaimed() {
		d.record.backend = d.backend
	}
	return nil
}

func (d *Decision) unclaimed() bool { return !d.claimed() || d.in.FleetWorkload.Status.Workload == nil }

// observe has the fleet and the workload's reports read. It comes first, so that they are shown even when the spec turns out to be wrong.
func (d *Decision) observe() error {
	d.work.query.Companions = d.in.rehearsed
	side, err := d.side(SideRead{Backend: d.backend, Fleet: true, Query: &d.work.query})
	if err != nil {
		return err
	}
	d.fleet, d.observed = side.Fleet, side.Observed
	return nil
}

// understand reads the spec. Which object a FleetWorkload carries cannot change once something was sent.
func (d *Decision) understand() error {
	p, err := plan.New(d.spec, d.in.Kinds)
	if err != nil {
		return err
	}
	if got, want := plan.Reference(p.Template), d.record.workload; *got != *want {
		if !d.observed.Found {
			if err := d.sure(d.backend, d.in.Sides[d.backend]); err != nil {
				return err
			}
			d.record.workload = got
			return errEnough
		}
		if ObjectKey(*got) == ObjectKey(*want) {
			return d.takeVersion(got)
		}
		return stall(v1alpha1.ReasonInvalidTemplate,
			"spec.template: apiVersion, kind and name of a running workload cannot change from %s %s %q to %s %s %q; create another FleetWorkload for it",
			want.APIVersion, want.Kind, want.Name, got.APIVersion, got.Kind, got.Name)
	}
	p.Query.Workload.NamespaceLabels = d.namespaceLabels
	if d.work.plan, err = p.With(d.here); err != nil {
		return err
	}
	d.work.asked, err = d.work.plan.Asked()
	d.work.asked.OnlyApproved = d.record.change != nil && d.unapproved == ""
	return err
}

// takeVersion records another version of the object that is carried, once each cluster that has it, or was told to, is known to serve that one.
// Elsewhere the change could not be carried out: OCM's agent and Karmada leave the object as it is, and say so again and again.
func (d *Decision) takeVersion(next *v1alpha1.WorkloadReference) error {
	gv, err := schema.ParseGroupVersion(next.APIVersion)
	if err != nil {
		return stall(v1alpha1.ReasonInvalidTemplate, "spec.template.apiVersion %q: %s", next.APIVersion, err)
	}
	has := guard.Decided(d.record.placement) // an observation may be from before what was sent a moment ago
	maps.DeleteFunc(has, func(cluster string, _ int32) bool {
		_, known := d.fleet.Get(cluster)
		return !known
	})
	for _, c := range d.observed.Clusters {
		has[c.Cluster] = 0
	}
	lacking := slices.Sorted(maps.Keys(has))
	lacking = slices.DeleteFunc(lacking, func(cluster string) bool {
		return slices.Contains(d.observed.Selection.Serves[cluster], gv.Version)
	})
	if len(lacking) > 0 {
		return stall(v1alpha1.ReasonInvalidTemplate,
			"spec.template.apiVersion %q: %s %q runs as %s, and backend %q does not know that these clusters serve the other version: %s. "+
				"Nothing was changed: install that version there first, or write apiVersion: %s",
			next.APIVersion, next.Kind, next.Name, d.record.workload.APIVersion, d.backend, brief.List(lacking), d.record.workload.APIVersion)
	}
	d.record.workload = next
	return errEnough
}
