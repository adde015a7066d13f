// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"slices"
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
