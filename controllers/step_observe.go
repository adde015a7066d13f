package controllers

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/backends"
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

// shipped are the companions, but for clusters that are only asked what they run: nothing is sent there before that is known.
func (s *scope) shipped() []backends.Companion {
	if len(s.looking) == 0 {
		return s.companions
	}
	shipped := make([]backends.Companion, 0, len(s.companions))
	for _, c := range s.companions {
		needed := []string{} // nil would mean all of them
		for _, t := range s.targets {
			if c.NeededOn(t.Cluster) && !slices.Contains(s.looking, t.Cluster) {
				needed = append(needed, t.Cluster)
			}
		}
		c.Clusters = needed
		shipped = append(shipped, c)
	}
	return shipped
}

// apply lets the driver take its next step.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	desired := s.plan.Desired(s.targets)
	desired.Companions, desired.Keep = s.shipped(), s.keep
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
