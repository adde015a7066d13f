package controllers

import (
	"context"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// deleteSteps end when the backend has nothing of the workload left.
func (r *Reconciler) deleteSteps() []step {
	return []step{
		{"look for anything sent", r.nothingSent},
		{"identify workload", r.identify},
		{"resolve backend", r.resolveBackend},
		{"observe", r.observe},
		{"delete", r.delete},
	}
}

// nothingSent ends the deletion of a FleetWorkload that never claimed a backend: nothing was ever sent.
func (r *Reconciler) nothingSent(_ context.Context, s *scope) error {
	if s.fw.Status.Backend == "" {
		s.gone, s.stop = true, true
	}
	return nil
}

func (r *Reconciler) delete(ctx context.Context, s *scope) error {
	policy := s.fw.Spec.DeletionPolicy
	if policy == "" {
		policy = v1alpha1.DeletionPolicyDelete
	}
	progress, err := s.driver.Delete(ctx, s.query, policy)
	if err != nil {
		return err
	}
	s.gone, s.waiting = progress.Done, progress.Waiting
	return nil
}
