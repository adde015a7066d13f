package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/fair"
)

// newQueue makes a controller's queue for that many workers, in which no namespace holds up another, and what has begun goes before what has
// not. It is client-go's, with its delays, retries and metrics. The one that controller-runtime would take may hang when it is shut down
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3538).
func newQueue(workers int, begun func(reconcile.Request) bool) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
				Name: name, Queue: newFairQueue(name, workers, begun),
			}),
		})
	}
}

// fairQueue tells the fair order who is done, and lets workers wait while all that waits is held back. client-go's queue alone tells the
// order of neither, and would give a worker whatever waits.
type fairQueue struct {
	*workqueue.Typed[reconcile.Request]

	// change is told when something may have become ready. Its lock is taken before that of Typed, and keeps the order.
	change *sync.Cond
	order  *fair.Queue[reconcile.Request]
}

func newFairQueue(name string, workers int, begun func(reconcile.Request) bool) *fairQueue {
	order := fair.New(max(workers, 1), func(r reconcile.Request) string { return r.Namespace }, begun)
	return &fairQueue{
		Typed:  workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: order}),
		change: sync.NewCond(&sync.Mutex{}),
		order:  order,
	}
}

// Add lets a request wait.
func (q *fairQueue) Add(item reconcile.Request) {
	q.change.L.Lock()
	defer q.change.L.Unlock()
	q.Typed.Add(item)
	q.change.Signal()
}

// Get waits until a request may have this worker, and returns it. After the shutdown it returns whatever is left.
func (q *fairQueue) Get() (reconcile.Request, bool) {
	q.change.L.Lock()
	defer q.change.L.Unlock()
	for !q.order.Ready() && !q.ShuttingDown() {
		q.change.Wait()
	}
	return q.Typed.Get() // at once
}

// Done frees the request's worker. That may let more than one go on: several workers may wait while all that waits is held back.
func (q *fairQueue) Done(item reconcile.Request) {
	q.change.L.Lock()
	defer q.change.L.Unlock()
	q.order.Done(item)
	q.Typed.Done(item)
	q.change.Broadcast()
}

// Len tells how many requests wait.
func (q *fairQueue) Len() int {
	q.change.L.Lock()
	defer q.change.L.Unlock()
	return q.Typed.Len()
}

// ShutDown lets workers go when nothing is left.
func (q *fairQueue) ShutDown() {
	q.Typed.ShutDown()
	q.wakeAll()
}

// ShutDownWithDrain does the same, and waits for them.
func (q *fairQueue) ShutDownWithDrain() {
	q.Typed.ShutDownWithDrain()
	q.wakeAll()
}

func (q *fairQueue) wakeAll() {
	q.change.L.Lock()
	defer q.change.L.Unlock()
	q.change.Broadcast()
}

// begun are the FleetWorkloads on the way to what their specs say: the last pass has left them neither Ready nor Stalled.
type begun struct {
	mu sync.Mutex
	by map[types.NamespacedName]bool
}

// note takes the conditions that a pass has left.
func (b *begun) note(key types.NamespacedName, conditions []metav1.Condition) {
	if meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) {
		b.forget(key)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[types.NamespacedName]bool{}
	}
	b.by[key] = true
}

func (b *begun) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, key)
}

func (b *begun) has(req reconcile.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[req.NamespacedName]
}
