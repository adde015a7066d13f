// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
)

const (
	// lookAfter is how often the fleet's processes are looked at.
	lookAfter = time.Second
	// reviveTime is how long a component may take to be ready. Another one that is broken may keep it from that, so that
	// it is not waited for any longer: nobody else gets at the fleet meanwhile.
	reviveTime = 15 * time.Second
)

// processes are the components of the fleet. What has died is started again, unless it was ended on purpose.
type processes struct {
	fleet *lab.Fleet
	out   *report

	mu    sync.Mutex
	ended map[string]bool
	// revived counts how often something was started again.
	revived int
}

// newProcesses refuses a fleet that lacks a component of which choices are made.
func newProcesses(fleet *lab.Fleet, out *report) (*processes, error) {
	p := &processes{fleet: fleet, out: out, ended: map[string]bool{}}
	ids, err := fleet.Processes()
	if err != nil {
		return nil, err
	}
	for _, name := range choice.Components() {
		if ids[name] == 0 {
			return nil, fmt.Errorf("the fleet has no component %s that runs", name)
		}
	}
	return p, nil
}

// keep starts again what has died, until ctx ends.
func (p *processes) keep(ctx context.Context) {
	go func() {
		ticker := time.NewTicker(lookAfter)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				p.reviveAll(ctx)
			}
		}
	}()
}

func (p *processes) reviveAll(ctx context.Context) {
	ids, err := p.fleet.Processes()
	if err != nil {
		p.out.say("look at the fleet: %v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if ids[name] != 0 || p.isEnded(name) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, reviveTime)
		err := p.fleet.Revive(limited, name)
		cancel()
		if err != nil && ctx.Err() == nil {
			p.out.say("%s is started again but not ready yet: %.200v", name, err)
		}
		p.forgetFailures(ids, name)
		p.mu.Lock()
		p.revived++
		p.mu.Unlock()
	}
}

// forgetFailures starts a cluster's controllers anew with its API server. Their garbage collector tries again what has failed
// meanwhile, each time after twice as long, up to 17 minutes (client-go util/workqueue, DefaultTypedControllerRateLimiter), and a
// StatefulSet waits until a pod of its name is gone. A cluster that loses its API server every other minute has that often.
func (p *processes) forgetFailures(ids map[string]int, name string) {
	cluster, is := strings.CutSuffix(name, "-kube-apiserver")
	controllers := cluster + "-kube-controller-manager"
	if !is || ids[controllers] == 0 {
		return
	}
	if err := p.signal(controllers, syscall.SIGKILL); err != nil {
		p.out.say("%v", err)
	}
}

func (p *processes) isEnded(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[name]
}

// allow says whether a component is started again.
func (p *processes) allow(name string, may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[name] = !may
}

// signal sends a signal to a component; one that has died is left alone.
func (p *processes) signal(name string, sig syscall.Signal) error {
	ids, err := p.fleet.Processes()
	if err != nil {
		return err
	}
	pid := ids[name]
	if pid == 0 {
		return nil
	}
	// Each component has a session of its own, with all that it may have started.
	if err := syscall.Kill(-pid, sig); err != nil {
		return fmt.Errorf("send %s to %s, process %d: %w", sig, name, pid, err)
	}
	return nil
}

// awaitRunning returns nil once a component runs.
func (p *processes) awaitRunning(name string) error {
	ids, err := p.fleet.Processes()
	if err == nil && ids[name] == 0 {
		err = fmt.Errorf("%s does not run yet", name)
	}
	return err
}

// release lets go on what was halted, so that nothing is left behind on a fleet that goes on.
func (p *processes) release() {
	p.mu.Lock()
	clear(p.ended)
	p.mu.Unlock()
	ids, err := p.fleet.Processes()
	if err != nil {
		return
	}
	for name := range ids {
		_ = p.signal(name, syscall.SIGCONT)
	}
}
