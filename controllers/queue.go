package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	pointer "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/fair"
)

// newQueue makes a controller's queue for that many workers, in which no namespace holds up another, and what has begun goes before what has
// not. hold is how long nothing more should begin, 0 when it may. The queue is client-go's, with its delays, retries and metrics. The one that
// controller-runtime would take may hang when it is shut down
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3538).
func newQueue(workers int, begun func(reconcile.Request) bool, hold func() time.Duration) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
				Name: name, Queue: newFairQueue(name, workers, begun, hold),
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
	hold   func() time.Duration
	// opens is when what is held back is looked at again.
	opens *time.Timer
}

func newFairQueue(name string, workers int, begun func(reconcile.Request) bool, hold func() time.Duration) *fairQueue {
	order := fair.New(max(workers, 1), func(r reconcile.Request) string { return r.Namespace }, begun)
	return &fairQueue{
		Typed:  workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: order}),
		change: sync.NewCond(&sync.Mutex{}),
		order:  order,
		hold:   hold,
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
	for !q.ready() && !q.ShuttingDown() {
		q.change.Wait()
	}
	return q.Typed.Get() // at once
}

func (q *fairQueue) ready() bool {
	hold := q.hold()
	q.order.Hold(hold > 0)
	ready := q.order.Ready()
	if !ready && hold > 0 && q.opens == nil {
		q.opens = time.AfterFunc(hold, func() {
			q.change.L.Lock()
			defer q.change.L.Unlock()
			q.opens = nil
			q.change.Broadcast()
		})
	}
	return ready
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

const (
	// mostUnanswered is for how many clusters' answers FleetWorkloads may wait while others begin. A hub with two cores takes about five
	// seconds for as many; more would only make the first of them late.
	mostUnanswered = 1000
	// answersWithin is how long those of a FleetWorkload count after it has got the last answer, and longestCount how long in all: agents may
	// be slow, and clusters gone, and others must not wait for them.
	answersWithin = 5 * time.Second
	longestCount  = 30 * time.Second
	// ofLate is how long after the last answer, or its begin, a FleetWorkload keeps workers busy.
	ofLate = time.Minute
)

// begun are the FleetWorkloads on the way to what their specs say: the last pass has left them neither Ready nor Stalled.
type begun struct {
	mu sync.Mutex
	by map[types.NamespacedName]unanswered
}

// unanswered is in how many of its clusters a FleetWorkload is not applied yet, since when it is on its way, and when that number last fell.
type unanswered struct {
	clusters       int32
	since, answers time.Time
}

// counts is for how long it counts from now on.
func (u unanswered) counts(now time.Time) time.Duration {
	return min(answersWithin-now.Sub(u.answers), longestCount-now.Sub(u.since))
}

// note takes the status that a pass has left.
func (b *begun) note(key types.NamespacedName, status v1alpha1.FleetWorkloadStatus, now time.Time) {
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) {
		b.forget(key)
		return
	}
	var clusters int32
	if c := status.ClusterSummary; c != nil {
		clusters = max(0, pointer.Deref(c.Total, 0)-pointer.Deref(c.Applied, 0))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[types.NamespacedName]unanswered{}
	}
	u, known := b.by[key]
	if !known {
		u.since = now
	}
	if !known || clusters < u.clusters {
		u.answers = now
	}
	u.clusters = clusters
	b.by[key] = u
}

func (b *begun) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, key)
}

func (b *begun) has(req reconcile.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, has := b.by[req.NamespacedName]
	return has
}

// unanswered is for how many clusters' answers a FleetWorkload waits.
func (b *begun) unanswered(key types.NamespacedName) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[key].clusters
}

// hold is how long nothing more should begin, since enough is under way that agents have not answered yet: to begin everything at once makes
// all of it late. It is 0 as soon as it may.
func (b *begun) hold(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all int32
	hold := answersWithin
	for _, u := range b.by {
		if u.clusters == 0 {
			continue
		}
		if left := u.counts(now); left > 0 {
			all += u.clusters
			hold = min(hold, left)
		}
	}
	if all < mostUnanswered {
		return 0
	}
	return hold
}

// more is how many more FleetWorkloads have come along on their way of late than workers there are. One that does not, such as one whose pods
// never start, makes nobody wait.
func (b *begun) more(workers int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := -max(workers, 1)
	for _, u := range b.by {
		if now.Sub(u.answers) < ofLate {
			more++
		}
	}
	return max(0, more)
}

// pauses are until when a FleetWorkload is left alone by what backends tell: as long as its last pass took, and longer while many clusters are
// to answer, or many others are on their way. Where hundreds answer one by one, a pass takes all that came meanwhile.
type pauses struct {
	mu    sync.Mutex
	until map[types.NamespacedName]time.Time
}

const (
	// longestPause bounds one: a pass that waited for a slow API server costs nobody else more.
	longestPause = time.Second
	// answersAWhile is how many clusters that are to answer make a pause longer by the time of a pass.
	answersAWhile = 10
	// pauseForOthers is how much longer a pause is for each FleetWorkload that is on its way and has no worker to itself, until that is
	// longestForOthers: backends and API servers are busy with those, and a pass would find little that is new.
	pauseForOthers   = 100 * time.Millisecond
	longestForOthers = 4 * time.Second
	// together is how long the first word of a backend waits for others': clusters carry out one step within moments of each other.
	together = 20 * time.Millisecond
)

// after notes a pass that has ended while so many clusters are to answer, and so many others wait for their turn.
func (p *pauses) after(key types.NamespacedName, began, ended time.Time, unanswered int32, others int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[types.NamespacedName]time.Time{}
	}
	pause := min(longestPause, ended.Sub(began)*time.Duration(1+unanswered/answersAWhile))
	forOthers := min(longestForOthers, time.Duration(others)*pauseForOthers)
	if others > 0 && unanswered >= manyAnswers {
		forOthers = max(forOthers, statusPace) // nor would what it finds be written
	}
	p.until[key] = ended.Add(pause + forOthers)
}

// left is how long the pause still is, and not above 0 when there is none.
func (p *pauses) left(key types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until[key].Sub(now)
}

func (p *pauses) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, key)
}
