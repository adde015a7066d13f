// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Processes are the process ids of the fleet's components by name, 0 of one that has died. Unlike Status it costs nothing.
func (f *Fleet) Processes() (map[string]int, error) {
	s, err := loadState(f.dir)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int, len(s.Processes))
	for name, p := range s.Processes {
		if ids[name] = 0; p.alive() {
			ids[name] = p.PID
		}
	}
	return ids, nil
}

// Revive starts one component of the fleet again, unless it runs, and returns when it is ready.
func (f *Fleet) Revive(ctx context.Context, component string) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.provide(ctx); err != nil {
		return err
	}
	units, err := f.fleetUnits()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(units, func(u unit) bool { return u.name == component && u.command != nil })
	if i < 0 {
		return fmt.Errorf("the fleet has no component %s", component)
	}
	return f.run(ctx, units[i:i+1])
}

// Stop ends components at once. Revive or Up starts them again, with what they have stored.
func (f *Fleet) Stop(ctx context.Context, components ...string) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, name := range components {
		p := f.state.process(name)
		if p == nil {
			return fmt.Errorf("the fleet has no component %s", name)
		}
		if err := p.kill(); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		if err := awaitDead(ctx, p); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	return nil
}

// agents are the names of the agents in the members.
var agents = map[string]string{"karmada": karmadaAgent, "ocm": "work-agent"}

// ComponentsOf are the names of all components of Karmada, or of OCM, with the agents in the members. The API server that is the
// management cluster too is not among OCM's.
func (f *Fleet) ComponentsOf(backend string) ([]string, error) {
	s, err := loadState(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range s.Processes {
		if strings.HasPrefix(name, backend+"-") || strings.HasSuffix(name, "-"+agents[backend]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
