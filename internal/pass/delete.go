package pass

import (
	"cmp"
	"fmt"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// deletion ends when the backend has nothing of the workload left.
func (d *Decision) deletion() []step {
	return []step{
		{"look for anything sent", d.nothingSent},
		{"identify workload", d.identify},
		{"resolve backend", d.resolveBackend},
		{"observe", d.observe},
		{"delete", d.delete},
	}
}

// nothingSent ends the deletion of a FleetWorkload that never claimed a backend, unless an earlier life of it did: nothing was ever sent.
func (d *Decision) nothingSent() error {
	if d.claimed() {
		return nil
	}
	if err := d.identify(); err != nil {
		d.end.Gone = true
		return errEnough
	}
	err := d.recover()
	d.end.Gone = err == nil
	if err == nil {
		return errEnough
	}
	return err
}

// delete orders all that may have something of the workload to give it up, one after the other.
func (d *Decision) delete() error {
	policy := cmp.Or(d.in.FleetWorkload.Spec.DeletionPolicy, v1alpha1.DeletionPolicyDelete)
	for i, name := range d.deletedFrom() {
		query := d.work.query
		query.Selectors = placement.Selectors(d.in.Aliases.Written(d.spec, name).Spec.Placement)
		if i > 0 { // while clusters change hands both backends may only observe them
			query.Counterpart = backends.CounterpartGone
		}
		d.Orders = append(d.Orders, Order{Backend: name, Delete: &Deletion{Query: query, Policy: policy}, OnlyAfter: i > 0})
	}
	d.conclude = d.concludeDeletion
	return nil
}

func (d *Decision) concludeDeletion(outcomes map[string]Outcome) error {
	for _, order := range d.Orders {
		done := outcomes[order.Backend]
		d.backend = order.Backend
		if done.Err != nil {
			return fmt.Errorf("delete: %w", d.missing(order.Backend, done.Err))
		}
		if !done.Progress.Done {
			d.waiting = done.Progress.Waiting
			return nil
		}
	}
	d.end.Gone = true
	return nil
}

// deletedFrom are the backends that may have something of the workload: during a hand-over two, the one last that could write
// all of it first.
func (d *Decision) deletedFrom() []string {
	m := d.in.FleetWorkload.Status.Migration
	switch {
	case !HandsOver(d.in.FleetWorkload):
		return []string{d.backend}
	case m.Phase == v1alpha1.MigrationPhaseReleasing:
		return []string{m.From, m.To}
	default:
		return []string{m.To, m.From}
	}
}
