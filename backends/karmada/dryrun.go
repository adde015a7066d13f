package karmada

import (
	"context"
	"fmt"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// DryRun lists what stands against carrying desired out: the kind on the control plane and on the clusters, and what Karmada's
// API server refuses or would store otherwise.
func (d *Driver) DryRun(ctx context.Context, desired backends.Desired) (against []string, err error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return nil, err
	}
	desired.Companions = nil // they are applied while nothing is handed over yet, and their errors are their own
	objects, err := Render(desired)
	if err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // it is what stands against it
	}
	if selection, err := choose(desired.Query, clusters, currentState{}); err != nil {
		against = append(against, err.Error())
	} else {
		for _, t := range desired.Targets {
			if why, unsupported := selection.Unsupported[t.Cluster]; unsupported {
				against = append(against, fmt.Sprintf("cluster %s is %s", t.Cluster, why))
			}
		}
	}
	if err := d.kinds.check(desired.Workload.GVK); err != nil {
		if backends.CodeOf(err) != backends.CodeKindNotServed {
			return nil, err
		}
		return append(against, err.Error()), nil
	}
	for _, obj := range objects {
		why, err := ssa.DryRun(ctx, d.client, obj)
		if err != nil {
			return nil, err
		}
		if why != "" {
			against = append(against, why)
		}
	}
	return against, nil
}
