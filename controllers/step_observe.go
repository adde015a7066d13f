package controllers

import (
	"context"
	"fmt"
)

// observe reads the fleet and the workload's reports. It runs even when the spec turns out to be wrong.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	fleet, err := s.driver.Clusters(ctx)
	if err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	observed, err := s.driver.Observe(ctx, s.query)
	if err != nil {
		return fmt.Errorf("read reports: %w", err)
	}
	s.fleet, s.observed = &fleet, &observed
	return nil
}

// apply lets the driver take its next step.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	desired := s.plan.Desired(s.targets)
	desired.Companions, desired.Keep = s.companions, s.keep
	progress, err := s.driver.Apply(ctx, desired)
	if err != nil {
		return err
	}
	s.waiting, s.backendAgain = progress.Waiting, sooner(s.backendAgain, progress.Again)
	if len(s.looking) > 0 {
		s.waiting = s.awaitsLook(progress.Waiting)
	}
	return nil
}
