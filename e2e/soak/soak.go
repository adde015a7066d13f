// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
)

// soak is one run.
type soak struct {
	opts  options
	out   *report
	dir   string
	fleet *lab.Fleet
	// clusters are the API servers by name, with an administrator's rights.
	clusters  map[string]*cluster
	operators *operators
	processes *processes
	judge     *judge
	lanes     *lanes
}

// run does everything in order.
func run(ctx context.Context, opts options, plan choice.Plan, out *report) (err error) {
	dir := os.Getenv(envKeep)
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fleetworkload-soak-"); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find the folder of logs: %w", err)
	}
	s := &soak{opts: opts, out: out, dir: dir}
	fleet, down, err := theFleet(ctx, dir, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down()) }()
	s.fleet = fleet
	if err := s.stage(ctx, dir); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	// What runs beside the actions ends with them.
	running, end := context.WithCancel(ctx)
	defer s.operators.close()
	defer end()
	watching, blind := context.WithCancel(running)
	defer blind()
	s.judge.watch(watching, s)
	s.processes.keep(running)
	if err := s.operators.start(running); err != nil {
		return err
	}
	out.clock.start()
	s.lanes = newLanes(running)
	s.act(ctx, plan)
	err = s.finish(ctx, plan)
	if os.Getenv(envLabDir) != "" {
		blind()
		s.lanes.close()
		s.tidy(context.WithoutCancel(ctx))
	}
	return err
}

// act carries out the choices, each at its time.
func (s *soak) act(ctx context.Context, plan choice.Plan) {
	for _, step := range plan.Steps {
		select {
		case <-ctx.Done():
			return
		case <-s.out.enough:
			return
		case <-time.After(time.Until(s.out.clock.at(step.At))):
		}
		s.carryOut(step.Action)
	}
}
