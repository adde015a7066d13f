package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// identify learns which object is carried: from the record, or from the template before there is one.
func (r *Reconciler) identify(_ context.Context, s *scope) error {
	ref := s.record.workload
	if ref == nil {
		manifest, err := plan.Manifest(s.fw)
		if err != nil {
			return err
		}
		if err := plan.Allowed(manifest, r.Kinds); err != nil {
			return err
		}
		ref = plan.Reference(manifest)
	}
	s.query, s.kind = plan.Query(s.fw, *ref, r.Kinds)
	s.record.workload = ref
	return nil
}

// resolveBackend finds the driver. A workload that is carried stays with its backend.
func (r *Reconciler) resolveBackend(ctx context.Context, s *scope) error {
	owner := s.fw.Status.Backend
	if owner == "" || owner == s.fw.Spec.Backend || !s.fw.DeletionTimestamp.IsZero() {
		return r.use(s, cmp.Or(owner, s.fw.Spec.Backend))
	}
	if err := r.use(s, owner); err != nil {
		return err
	}
	if err := r.leave(ctx, s, owner); err != nil || s.stop {
		return err
	}
	s.record.backend = ""
	return r.use(s, s.fw.Spec.Backend)
}

// leave gives a backend up on which nothing runs. What was set up there, such as a placement, is removed first.
func (r *Reconciler) leave(ctx context.Context, s *scope, owner string) error {
	observed, err := s.driver.Observe(ctx, s.query)
	if err != nil {
		return fmt.Errorf("look for the workload on its backend: %w", err)
	}
	if len(observed.Clusters) > 0 {
		return stall(v1alpha1.ReasonMigrationNotSupported,
			"spec.backend %q: the workload runs on backend %q, and moving a running workload is not supported yet; set spec.backend back to %q",
			s.fw.Spec.Backend, owner, owner)
	}
	progress, err := s.driver.Delete(ctx, s.query, v1alpha1.DeletionPolicyOrphan)
	if err != nil {
		return fmt.Errorf("leave the backend: %w", err)
	}
	s.waiting, s.stop = progress.Waiting, !progress.Done
	return nil
}

// use takes the backend of that name for this pass.
func (r *Reconciler) use(s *scope, name string) error {
	s.backend = name
	driver, err := r.Backends.Driver(name)
	if errors.Is(err, backends.ErrNotConfigured) {
		return stall(v1alpha1.ReasonBackendNotFound,
			"spec.backend %q: no such backend; configured are: %s. Choose one of them, or add it to the operator's configuration",
			name, cmp.Or(strings.Join(r.Backends.Names(), ", "), "none"))
	}
	s.driver = driver
	return err
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
