package controllers

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/drift"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// drifts remember what was proven of the objects of each FleetWorkload. It is a help and no position: after a restart, what was changed
// meanwhile is not told.
type drifts struct {
	mu sync.Mutex
	by map[types.NamespacedName]drift.Memory
}

// look is called with each report.
func (d *drifts) look(key types.NamespacedName, reported []backends.ClusterObservation, generations bool, now time.Time) []drift.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[types.NamespacedName]drift.Memory{}
	}
	memory, changes := drift.Look(d.by[key], reported, generations, now)
	d.by[key] = memory
	return changes
}

// forget is called when a FleetWorkload is gone, or changes hands.
func (d *drifts) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, key)
}

// tellDrift tells what others have changed on clusters since the last pass. During a hand-over two backends write, so that nothing is told.
func (r *Reconciler) tellDrift(ctx context.Context, fw *v1alpha1.FleetWorkload, sides map[string]*pass.Side) {
	key, backend := client.ObjectKeyFromObject(fw), fw.Status.Backend
	if pass.HandsOver(fw) {
		r.drifts.forget(key)
		return
	}
	side := sides[backend]
	if side == nil || side.Observed == nil || fw.Status.Workload == nil {
		return
	}
	kind := r.Kinds.For(schema.FromAPIVersionAndKind(fw.Status.Workload.APIVersion, fw.Status.Workload.Kind))
	changes := r.drifts.look(key, side.Observed.Clusters, kind.GenerationTells, r.Clock.Now())
	if len(changes) == 0 {
		return
	}
	told := make([]string, len(changes))
	for i, change := range changes {
		told[i] = change.String()
		r.Drift.Changed(backend)
		log.FromContext(ctx).Info("Somebody else has changed an object", "backend", backend, "cluster", change.Cluster, "change", told[i])
	}
	r.Recorder.Eventf(fw, nil, "Warning", "ChangedOnCluster", "Observe", "%s", brief.Note(strings.Join(told, "; ")))
}
