// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
