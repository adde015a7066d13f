// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

// adoptions are the workloads that are about to be taken over where an earlier FleetWorkload has left them. What leaves a cluster
// before it is taken over there would stay, and be nobody's: rightly, and nothing that the oracle could tell from a defect.
type adoptions struct {
	mu   sync.Mutex
	open map[history.Key]int
}

func (o *adoptions) add(k history.Key, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[history.Key]int{}
	}
	o.open[k] += n
}

func (o *adoptions) pending(k history.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[k] > 0
}

// awaitAdopted has what follows in the workload's lane wait until it runs as asked.
func (s *soak) awaitAdopted(ctx context.Context, a history.Action) error {
	if a.Kind != choice.Adopt {
		return nil
	}
	fw, err := s.read(ctx, a.Workload)
	if err != nil {
		return err
	}
	if differs := s.judge.differs(a.Workload); !isReady(fw) || differs != "" {
		return fmt.Errorf("%s is not adopted yet: %s %s", a.Workload, differs, conditions(fw))
	}
	s.adoptions.add(a.Workload, -1)
	return nil
}

// awaitAdoption has a cluster's label wait for the adoption of its workload, unless that may have to wait for the cluster.
func (s *soak) awaitAdoption(_ context.Context, a history.Action) error {
	cluster := s.judge.facts()[a.Cluster]
	if s.adoptions.pending(a.Workload) && cluster.Available() {
		return fmt.Errorf("%s is being adopted", a.Workload)
	}
	return nil
}
