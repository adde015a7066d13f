// Package controllers reconciles FleetWorkloads: read, decide, record, carry out, status. What a pass does is decided by internal/pass
// alone; here is what reads and writes, through the drivers of backends and the management cluster's API server.
package controllers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/fair"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/lenient"
	"github.com/fleetworkload/fleetworkload/internal/measure"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// How soon a pass that has failed runs again: each time after twice as long, between these two.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// Reconciler brings FleetWorkloads to what their spec says, one step a pass.
type Reconciler struct {
	client.Client
	// Live reads from the API server what the cache may not show yet.
	Live client.Reader
	// Backends finds the driver of a backend.
	Backends backends.Registry
	// Kinds knows the workload kinds.
	Kinds *interpreter.Registry
	// Installation is that of the operator.
	Installation string
	// Sources reads what pods refer to.
	Sources Sources
	// LeaveOut are kinds of dependencies that are never read nor sent.
	LeaveOut []string
	// Aliases are names of clusters that backends call differently.
	Aliases plan.Aliases
	// Tenancy bounds what namespaces may use.
	Tenancy tenancy.Tenancy
	// MigrationLimiter bounds how many FleetWorkloads are handed over at once.
	MigrationLimiter *MigrationLimiter
	// Recorder writes events.
	Recorder events.EventRecorder
	// Changes measures how long changes take; nil measures nothing.
	Changes *measure.Changes
	// Drift counts what others change on clusters; nil counts nothing.
	Drift *measure.Drift
	// Unread counts reports that cannot be read; nil counts nothing.
	Unread *measure.Unread
	// Tracer begins a span for each pass; nil traces nothing.
	Tracer trace.Tracer
	// Clock tells the time.
	Clock clock.PassiveClock
	// MaxRemovalPercent is the share of running replicas that may go away without a change of the spec.
	MaxRemovalPercent int32
	// Namespaces are those that are watched; nil watches all.
	Namespaces []string
	// Serves chooses by their labels the namespaces whose FleetWorkloads are reconciled; nil chooses all.
	Serves labels.Selector
	// Concurrency is how many FleetWorkloads are reconciled at once.
	Concurrency int
	// StartGrace is how long after the first pass a backend may be not ready yet without the status saying so; FillGrace is the same for one
	// that answers, and whose objects are still being read.
	StartGrace, FillGrace time.Duration

	first     atomic.Pointer[time.Time]
	written   writes
	conflicts conflicts
	drifts    drifts
	begun     begun
	pauses    pauses
	unkept    unkept
	shipped   shipped
	access    accesses
}

// BackendEvent says that something about a FleetWorkload changed, on a backend or among what its pods refer to. With the
// zero Name, all FleetWorkloads of the backend are meant.
type BackendEvent struct {
	Backend string
	Name    types.NamespacedName
}

// SetupWithManager registers the reconciler. Events of backends arrive on the channel.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, backendEvents <-chan event.TypedGenericEvent[BackendEvent]) error {
	for name, index := range map[string]client.IndexerFunc{backendIndex: indexBackends, objectIndex: indexObjects} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.FleetWorkload{}, name, index); err != nil {
			return fmt.Errorf("index fleetworkloads by %s: %w", name, err)
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.FleetWorkload{}, builder.WithPredicates(predicate.Funcs{CreateFunc: r.comes, UpdateFunc: r.matters, DeleteFunc: r.goes})).
		WatchesMetadata(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(r.requestsIn),
			builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Named("fleetworkload").
		WatchesRawSource(source.TypedChannel(backendEvents, handler.TypedFuncs[BackendEvent, reconcile.Request]{GenericFunc: r.told})).
		WatchesRawSource(source.TypedChannel(r.MigrationLimiter.wake, handler.TypedEnqueueRequestsFromMapFunc(r.requestsFor))).
		WithOptions(r.options()).
		Complete(r)
}

// options are how passes are run: how many at once, whose is next, and when one that has failed is tried again.
func (r *Reconciler) options() controller.Options {
	stage := func(req reconcile.Request) fair.Stage { return r.begun.stage(req.NamespacedName) }
	hold := func() (func(string) bool, time.Duration) { return r.begun.hold(r.Clock.Now()) }
	return controller.Options{
		MaxConcurrentReconciles: r.Concurrency,
		NewQueue:                newQueue(r.Concurrency, stage, hold),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile takes one FleetWorkload one step closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, span := r.tracePass(ctx, req.NamespacedName)
	defer span.End()
	res, err := r.pass(ctx, req)
	res, err = r.ended(req.NamespacedName, res, err)
	traceOutcome(span, res, err)
	return res, err
}

func (r *Reconciler) pass(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	fw := &v1alpha1.FleetWorkload{}
	if err := r.Get(ctx, req.NamespacedName, fw); err != nil {
		if apierrors.IsNotFound(err) {
			r.letGo(req.NamespacedName)
			r.written.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if serves, err := r.serves(ctx, req.Namespace); err != nil {
		return ctrl.Result{}, err
	} else if !serves {
		r.letGo(req.NamespacedName)
		r.written.leave(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if there, err := r.takeUp(ctx, req.NamespacedName); err != nil || !there {
		return ctrl.Result{}, err
	}
	return r.paced(ctx, fw)
}

// paced makes a pass, and has what a backend tells meanwhile wait for the pause after it.
func (r *Reconciler) paced(ctx context.Context, fw *v1alpha1.FleetWorkload) (reconcile.Result, error) {
	key, began := client.ObjectKeyFromObject(fw), r.Clock.Now()
	r.begun.begin(key, began)
	if others, _ := r.begun.others(key, began); others > 0 {
		r.pauses.begin(key)
	}
	defer func() { // after a panic, too
		ended := r.Clock.Now()
		others, _ := r.begun.others(key, ended)
		r.pauses.after(key, began, ended, r.begun.unanswered(key), others)
	}()
	return r.steps(ctx, fw)
}

// steps makes one step, and another one where that has recorded a decision.
func (r *Reconciler) steps(ctx context.Context, fw *v1alpha1.FleetWorkload) (reconcile.Result, error) {
	traceGeneration(ctx, fw)
	key, now := client.ObjectKeyFromObject(fw), r.Clock.Now()
	if since, ahead := r.written.ahead(fw); ahead {
		return r.behind(ctx, key, since), nil
	}
	if lenient.Problem(fw) == "" && fw.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(fw, v1alpha1.Finalizer) {
		if err := r.addFinalizer(ctx, fw); err != nil {
			return ctrl.Result{}, err
		}
	}
	held := !placed(fw.Status) && r.begun.holds(key.Namespace, now)
	res, goesOn, err := r.step(ctx, fw, !held)
	if held {
		r.begun.wait(key, r.Clock.Now())
	}
	if goesOn {
		// Once: a decision that has changed again waits for the event of its record, and others have their turn.
		res, _, err = r.step(ctx, fw, false)
	}
	return res, err
}

// step decides, carries out and writes the status. goesOn is true when fw is now as it was written, with a decision that nothing was ordered for:
// the next step need not wait until the cache shows that. It is never true without mayGoOn.
func (r *Reconciler) step(ctx context.Context, fw *v1alpha1.FleetWorkload, mayGoOn bool) (res reconcile.Result, goesOn bool, err error) {
	d, err := r.decide(ctx, fw)
	if err != nil {
		return ctrl.Result{}, false, err
	}
	if err := r.keep(ctx, fw, d.Keep); err != nil {
		return r.finish(ctx, fw, d.Fail(err))
	}
	outcomes := r.carryOut(ctx, d.Orders)
	if err := outdated(outcomes); err != nil && !r.conflicts.last(client.ObjectKeyFromObject(fw)) {
		return ctrl.Result{}, false, err
	}
	r.remember(ctx, fw, d)
	result := d.Conclude(outcomes)
	result.GoesOn = result.GoesOn && mayGoOn
	r.countUnread(d)
	if !result.Unchanged && !result.Gone {
		r.answer(ctx, fw, &result.Status)
	}
	if err := r.keep(ctx, fw, result.Keep); err != nil {
		return r.finish(ctx, fw, d.Fail(err))
	}
	return r.finish(ctx, fw, result)
}

// serves tells whether the FleetWorkloads of a namespace are this operator's.
func (r *Reconciler) serves(ctx context.Context, name string) (bool, error) {
	if r.Serves == nil || r.Serves.Empty() {
		return true, nil
	}
	namespace := namespaceMetadata()
	if err := r.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, fmt.Errorf("find out whose the FleetWorkloads of a namespace are: %w", err)
	}
	return r.Serves.Matches(labels.Set(namespace.Labels)), nil
}

// takeUp finds out how far others have come with a FleetWorkload of which nothing is known any more: the cache may be from before the last write.
// there is false when it is gone meanwhile. It is a list, for which the operator has the right anyhow.
func (r *Reconciler) takeUp(ctx context.Context, key types.NamespacedName) (there bool, err error) {
	if !r.written.unknown(key) {
		return true, nil
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkloadList"))
	err = r.Live.List(ctx, live, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name})
	if err != nil {
		return false, fmt.Errorf("read how far others have come with %s: %w", key, err)
	}
	if len(live.Items) == 0 {
		return false, nil // the cache will tell
	}
	r.written.remember(&live.Items[0], r.Clock.Now(), false)
	return true, nil
}

// letGo forgets what is known of a FleetWorkload that is gone, or another operator's.
func (r *Reconciler) letGo(key types.NamespacedName) {
	r.Sources.Refer(key, nil)
	r.MigrationLimiter.end(key)
	r.drifts.forget(key)
	r.Changes.Forget(key)
	r.begun.forget(key)
	r.pauses.forget(key)
	r.unkept.note(key, nil)
	r.shipped.forget(key)
}

// addFinalizer makes sure that nothing is left on a backend when the FleetWorkload goes. Nothing else of fw has changed since it was read: the
// pass goes on with it.
func (r *Reconciler) addFinalizer(ctx context.Context, fw *v1alpha1.FleetWorkload) error {
	written := fw.DeepCopy()
	controllerutil.AddFinalizer(written, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(fw, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, written, patch); err != nil {
		return fmt.Errorf("add finalizer to %s: %w", client.ObjectKeyFromObject(fw), err)
	}
	r.written.remember(written, r.Clock.Now(), true)
	fw.Finalizers, fw.ResourceVersion = written.Finalizers, written.ResourceVersion
	return nil
}
