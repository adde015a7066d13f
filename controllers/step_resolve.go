package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// identify learns which object is carried: from the record, or from the template before there is one.
func (r *Reconciler) identify(_ context.Context, s *scope) error {
	ref := s.record.workload
	if ref == nil {
		manifest, err := plan.Manifest(s.spec)
		if err != nil {
			return err
		}
		if err := plan.Allowed(manifest, r.Kinds); err != nil {
			return err
		}
		ref = plan.Reference(manifest)
	}
	s.query, s.kind = plan.Query(s.spec, *ref, r.Kinds)
	s.record.workload = ref
	return nil
}

// resolveBackend finds the driver. A workload that runs stays with its backend until a hand-over is through.
func (r *Reconciler) resolveBackend(ctx context.Context, s *scope) error {
	owner := s.fw.Status.Backend
	if owner == "" || owner == s.fw.Spec.Backend || !s.fw.DeletionTimestamp.IsZero() {
		return r.use(s, cmp.Or(owner, s.fw.Spec.Backend))
	}
	if err := r.use(s, owner); err != nil {
		return err
	}
	left, err := r.leave(ctx, s)
	if err != nil || !left || s.stop {
		return err
	}
	s.record.backend = ""
	return r.use(s, s.fw.Spec.Backend)
}

// leave gives a backend up on which nothing runs. What was set up there, such as a placement, is removed first.
func (r *Reconciler) leave(ctx context.Context, s *scope) (left bool, err error) {
	observed, err := s.driver.Observe(ctx, s.query)
	if err != nil {
		return false, fmt.Errorf("look for the workload on its backend: %w", err)
	}
	if len(observed.Clusters) > 0 {
		return false, nil
	}
	progress, err := s.driver.Delete(ctx, s.query, v1alpha1.DeletionPolicyOrphan)
	if err != nil {
		return false, fmt.Errorf("leave the backend: %w", err)
	}
	s.waiting, s.stop = progress.Waiting, !progress.Done
	return true, nil
}

// use takes the backend of that name for this pass.
func (r *Reconciler) use(s *scope, name string) error {
	s.backend = name
	r.translate(s)
	driver, err := r.Backends.Driver(name)
	if errors.Is(err, backends.ErrNotConfigured) {
		return stall(v1alpha1.ReasonBackendNotFound,
			"spec.backend %q: no such backend; configured are: %s. Choose one of them, or add it to the operator's configuration",
			name, cmp.Or(strings.Join(r.Backends.Names(), ", "), "none"))
	}
	s.driver = driver
	return err
}

// translate takes the clusters' names as the backend of this pass has them.
func (r *Reconciler) translate(s *scope) {
	s.here = r.Aliases.Written(s.spec, s.backend)
	s.query.Selectors = placement.Selectors(s.here.Spec.Placement)
}

// claim records backend and workload before anything is sent: from then on they are found again whatever the spec
// says. Our own watch brings us back.
func (r *Reconciler) claim(_ context.Context, s *scope) error {
	if s.record.backend == "" || s.fw.Status.Workload == nil {
		s.record.backend = s.backend
		s.stop = true
	}
	return nil
}
