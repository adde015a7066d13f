package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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
func (d *drifts) look(key types.NamespacedName, reported []backends.ClusterObservation, generations bool, now time.Time) ([]drift.Change, []drift.PutBack) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[types.NamespacedName]drift.Memory{}
	}
	memory, changes, back := drift.Look(d.by[key], reported, generations, now)
	d.by[key] = memory
	return changes, back
}

// forget is called when a FleetWorkload is gone, or changes hands.
func (d *drifts) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, key)
}

// tellDrift tells what others have changed on clusters since the last pass, and what is whole again. During a hand-over two backends write, so that nothing is told.
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
	changes, back := r.drifts.look(key, side.Observed.Clusters, kind.GenerationTells, r.Clock.Now())
	for _, change := range changes {
		r.Drift.Changed(backend)
		log.FromContext(ctx).Info("Somebody else has changed an object", "backend", backend, "cluster", change.Cluster, "change", change.String())
	}
	for _, object := range back {
		log.FromContext(ctx).Info("An object is what is delivered again", "backend", backend, "cluster", object.Cluster, "object", object.String())
	}
	tell(r.Recorder, fw, corev1.EventTypeWarning, v1alpha1.ReasonChangedOnCluster, changes)
	tell(r.Recorder, fw, corev1.EventTypeNormal, v1alpha1.ReasonPutBackOnCluster, back)
}

// tell makes one event of all that a pass has seen of a kind.
func tell[T fmt.Stringer](recorder events.EventRecorder, fw *v1alpha1.FleetWorkload, severity, reason string, seen []T) {
	if len(seen) == 0 {
		return
	}
	told := make([]string, len(seen))
	for i, one := range seen {
		told[i] = one.String()
	}
	recorder.Eventf(fw, nil, severity, reason, "Observe", "%s", brief.Note(strings.Join(told, "; ")))
}
