// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
)

// awaitHandOver has an edit of replicas wait for the end of a hand-over. The choices leave such edits out (C12, N1 and N2 in
// choice/known.go) for as long as a hand-over takes as a rule; on a busy machine it takes longer. One that is suspended ends only
// after an edit that may wait behind this one.
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
	suspended := fw.Spec.Suspend != nil && *fw.Spec.Suspend
	if handsOver(fw) && !suspended && *fw.Spec.Replicas != *want.Spec.Replicas {
		return fmt.Errorf("%s is on its way to another backend: %s", a.Workload, conditions(fw))
	}
	return nil
}

// awaitHandOvers has a cluster leave when nothing that runs there can be on its way to another backend (C12).
func (s *soak) awaitHandOvers(ctx context.Context, a history.Action) error {
	if s.opts.known {
		return nil
	}
	all := &v1alpha1.FleetWorkloadList{}
	if err := s.hub().List(ctx, all); err != nil {
		return fmt.Errorf("list FleetWorkloads: %w", err)
	}
	for i := range all.Items {
		if fw := &all.Items[i]; handsOver(fw) {
			return fmt.Errorf("%s stays while %s/%s is on its way to another backend: %s", a.Cluster, fw.Namespace, fw.Name, conditions(fw))
		}
	}
	return nil
}

// handsOver tells whether clusters may change hands.
func handsOver(fw *v1alpha1.FleetWorkload) bool {
	m := fw.Status.Migration
	return m != nil && m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating
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
