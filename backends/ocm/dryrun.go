package ocm

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// DryRun lists what stands against carrying desired out: cluster sets that are not bound, versions of the kind that clusters
// are known not to serve, and what the hub's API server refuses.
func (d *Driver) DryRun(ctx context.Context, desired backends.Desired) (against []string, err error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	desired.Companions = nil // they are applied while nothing is handed over yet, and their errors are their own
	p, err := newPlan(desired, d.opts)
	if err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // it is what stands against it
	}
	if against, err = d.unbound(ctx, desired.Key.Namespace); err != nil {
		return nil, err
	}
	served, err := d.serves(ctx, desired.Workload, clustersIn(desired.Targets))
	if err != nil {
		return nil, err
	}
	for _, t := range desired.Targets {
		if versions := served[t.Cluster]; versions != nil && !slices.Contains(versions, desired.Workload.GVK.Version) {
			against = append(against, fmt.Sprintf("cluster %s is %s", t.Cluster, backends.Without(desired.Workload.GVK)))
		}
	}
	refused, err := d.dryRunAll(ctx, p)
	return append(against, refused...), err
}

func clustersIn(targets []backends.Target) []string {
	names := make([]string, 0, len(targets))
	for _, t := range targets {
		names = append(names, t.Cluster)
	}
	slices.Sort(names)
	return names
}

// unbound says that a Placement of the namespace could choose no cluster at all. Which clusters are in a set only the
// placement controller decides.
func (d *Driver) unbound(ctx context.Context, namespace string) (against []string, err error) {
	sets, err := d.boundSets(ctx, namespace)
	if err != nil || len(sets)+len(d.opts.ClusterSets) > 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("no ManagedClusterSet is bound in namespace %s of the hub: create a ManagedClusterSetBinding there, or "+
		"configure cluster sets for this backend", namespace)}, nil
}

// dryRunAll has the hub try the Placement and each cluster's ManifestWork.
func (d *Driver) dryRunAll(ctx context.Context, p plan) (against []string, err error) {
	why, err := ssa.DryRun(ctx, d.hub, p.placement)
	if err != nil {
		return nil, err
	}
	if why != "" {
		against = append(against, why)
	}
	works := map[string]*unstructured.Unstructured{}
	for _, t := range p.targets {
		works[t.cluster] = t.work
	}
	refused, err := inParallel(ctx, works, func(_ string, work *unstructured.Unstructured) (string, error) {
		return ssa.DryRun(ctx, d.hub, work)
	})
	return append(against, refused...), err
}
