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
	for i, name := range s.carriers() {
		if err := r.use(s, name); err != nil {
			return err
		}
		query := s.query
		query.Alone = i > 0 // while clusters change hands they may be both backends' shadows
		progress, err := s.driver.Delete(ctx, query, policy)
		if err != nil || !progress.Done {
			s.waiting = progress.Waiting
			return err
		}
	}
	s.gone = true
	return nil
}

// carriers are the backends that may have something of the workload: during a hand-over two, the one last that could write
// all of it first.
func (s *scope) carriers() []string {
	m := s.fw.Status.Migration
	switch {
	case !handsOver(s.fw):
		return []string{s.backend}
	case m.Phase == v1alpha1.MigrationPhaseReleasing:
		return []string{m.From, m.To}
	default:
		return []string{m.To, m.From}
	}
}
