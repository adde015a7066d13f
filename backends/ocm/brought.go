package ocm

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/ocm/retire"
)

const (
	// broughtFresh is how long it is remembered which definitions others' ManifestWorks bring: they are not in the cache, and each may have
	// hundreds of kilobytes.
	broughtFresh = time.Minute
	broughtPage  = 200
)

// broughtDefinitions remember them.
type broughtDefinitions struct {
	mu    sync.Mutex
	at    time.Time
	going []backends.Dependent
}

// Brought finds others' ManifestWorks that have brought the definition of the workload's kind to clusters. Those of the operator itself orphan
// it.
func (d *Driver) Brought(ctx context.Context, workload backends.Workload, clusters []string) (brought []backends.Dependent, err error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	all, err := d.definitions(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	name := workload.Resource + "." + workload.GVK.Group
	for _, dependent := range all {
		if dependent.Name == name && slices.Contains(clusters, dependent.Cluster) {
			brought = append(brought, dependent)
		}
	}
	return brought, nil
}

// definitions are all that would go with others' ManifestWorks.
func (d *Driver) definitions(ctx context.Context, now time.Time) ([]backends.Dependent, error) {
	d.brought.mu.Lock()
	defer d.brought.mu.Unlock()
	if now.Sub(d.brought.at) < broughtFresh {
		return d.brought.going, nil
	}
	others, err := labels.NewRequirement(v1alpha1.LabelManagedBy, selection.NotEquals, []string{v1alpha1.ManagedByOperator})
	if err != nil {
		return nil, err
	}
	var going []backends.Dependent
	page := listOf(manifestWorkGVK)
	opts := &client.ListOptions{LabelSelector: labels.NewSelector().Add(*others), Limit: broughtPage}
	for {
		if err := d.hub.List(ctx, page, opts); err != nil {
			return nil, backends.Classify("list manifestworks of others", err)
		}
		for i := range page.Items {
			var work workv1.ManifestWork
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(page.Items[i].Object, &work); err != nil {
				continue // nobody else reads it either
			}
			going = append(going, backends.Going(retire.Dependents(&work), definitionGVK.Kind, "")...)
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	d.brought.at, d.brought.going = now, going
	return going, nil
}
