// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

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
