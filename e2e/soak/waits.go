// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
)

// awaitHandOver has an edit of replicas wait for the end of a hand-over. The choices leave such edits out (C12, N1 and N2 in
// choice/known.go) for as long as a hand-over takes as a rule; on a busy machine it takes longer.
func (s *soak) awaitHandOver(ctx context.Context, a history.Action) error {
	if s.opts.known {
		return nil
	}
	want, err := manifest.FleetWorkload(a.Workload, *a.Spec)
	if err != nil {
		return err
	}
	fw, err := s.read(ctx, a.Workload)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	m := fw.Status.Migration
	moving := m != nil && m.Phase != "" || fw.Status.Backend != "" && fw.Status.Backend != fw.Spec.Backend
	if moving && *fw.Spec.Replicas != *want.Spec.Replicas {
		return fmt.Errorf("%s is on its way to another backend: %s", a.Workload, conditions(fw))
	}
	return nil
}

// awaitAdopted has what follows in the workload's lane wait until what an earlier FleetWorkload has left is taken over. What leaves
// a cluster before that would stay and be nobody's: rightly, and the oracle could not tell it from a defect.
func (s *soak) awaitAdopted(ctx context.Context, a history.Action) error {
	if a.Kind != choice.Adopt {
		return nil
	}
	for name, cluster := range s.judge.facts() {
		if cluster.Joined && !cluster.Available() {
			return fmt.Errorf("nobody can tell what %s has of %s", name, a.Workload)
		}
	}
	fw, err := s.read(ctx, a.Workload)
	if err != nil {
		return err
	}
	if differs := s.judge.differs(a.Workload); !isReady(fw) || differs != "" {
		return fmt.Errorf("%s is not adopted yet: %s %s", a.Workload, differs, conditions(fw))
	}
	return nil
}
