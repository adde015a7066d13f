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

// holds tells in which namespaces nothing new should begin, and after how long that is to be asked again; nil is for none.
type holds func() (held func(namespace string) bool, again time.Duration)

// newQueue makes a controller's queue for that many workers, in which no namespace holds up another, and what has begun goes before what has
// not. The queue is client-go's, with its delays, retries and metrics. The one that controller-runtime would take may hang when it is shut down
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3538).
func newQueue(workers int, stage func(reconcile.Request) fair.Stage, hold holds) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
				Name: name, Queue: newFairQueue(name, workers, stage, hold),
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
	hold   holds
	// opens is when what is held back is looked at again.
	opens *time.Timer
}

func newFairQueue(name string, workers int, stage func(reconcile.Request) fair.Stage, hold holds) *fairQueue {
	order := fair.NewQueue(max(workers, 1), func(r reconcile.Request) string { return r.Namespace }, stage)
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
	held, again := q.hold()
	q.order.Hold(held)
	ready := q.order.Ready()
	if !ready && held != nil && q.opens == nil {
		q.opens = time.AfterFunc(again, func() {
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
	// mostUnanswered is for how many clusters' answers FleetWorkloads may wait while others begin: a hub with two cores takes half a minute for as
	// many, and more would only make the first of them late. A namespace that has less than its share of them under way may begin until it is twice as many.
	mostUnanswered = 1000
	// answersWithin is how long those of a FleetWorkload count after a pass has taken what its backend last told, and longestCount how long in all: agents
	// may be slow, and clusters gone, and others must not wait for them.
	answersWithin = 30 * time.Second
	longestCount  = 2 * time.Minute
	// ofLate is how long after the last answer, or its begin, a FleetWorkload keeps workers busy.
	ofLate = time.Minute
)

// begun are the FleetWorkloads on the way to what their specs say: the last pass has left them neither Ready nor Stalled, nor with clusters alone to wait
// for that cannot be reached.
type begun struct {
	mu sync.Mutex
	by map[types.NamespacedName]unanswered
	// edited are those that somebody has created, edited or deleted since the last pass, with the generation.
	edited map[types.NamespacedName]int64
}

// unanswered is in how many of its clusters that can be reached a FleetWorkload is not applied yet, since when it is on its way, and when that number last fell.
type unanswered struct {
	clusters       int32
	since, answers time.Time
	// told is true when its backend has told something that no pass has taken yet, and silent is since when nothing more has come. A cluster that is
	// asked first has told something, and has nothing applied.
	told   bool
	silent time.Time
	// waits is true when its clusters are chosen, and nothing is sent to them before it is its turn.
	waits bool
}

// counts is for how long it counts from now on.
func (u unanswered) counts(now time.Time) time.Duration {
	left := longestCount - now.Sub(u.since)
	if u.told {
		return left
	}
	return min(left, answersWithin-now.Sub(u.silent))
}

// note takes the status that a pass has left.
func (b *begun) note(key types.NamespacedName, status v1alpha1.FleetWorkloadStatus, now time.Time) {
	clusters := toAnswer(status)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.edited[key] <= pointer.Deref(status.ObservedGeneration, 0) {
		delete(b.edited, key)
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) ||
		awaitsUnreachable(status) {
		delete(b.by, key)
		return
	}
	if b.by == nil {
		b.by = map[types.NamespacedName]unanswered{}
	}
	u, known := b.by[key]
	begins := !known || u.clusters == 0 && clusters > 0
	if begins {
		u.since = now
	}
	if begins || clusters < u.clusters {
		u.answers = now
	}
	if begins || clusters < u.clusters || u.told {
		u.told, u.silent = false, now
	}
	u.clusters, u.waits = clusters, false
	b.by[key] = u
}

// toAnswer is on how many of the clusters that can be reached the manifest is not.
func toAnswer(status v1alpha1.FleetWorkloadStatus) int32 {
	c := status.ClusterSummary
	if c == nil {
		return 0
	}
	return max(0, pointer.Deref(c.Total, 0)-pointer.Deref(c.Applied, 0)-pointer.Deref(c.Stale, 0))
}

// awaitsUnreachable tells whether clusters that cannot be reached are all that is waited for.
func awaitsUnreachable(status v1alpha1.FleetWorkloadStatus) bool {
	return toAnswer(status) == 0 && find(status.Conditions, v1alpha1.ConditionReady).Reason == v1alpha1.ReasonStale
}

// wait has a FleetWorkload whose clusters are chosen wait for its turn. A small one waits for none while there is room for it.
func (b *begun) wait(key types.NamespacedName, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u, known := b.by[key]
	if !known || u.clusters == 0 || u.clusters < manyAnswers && b.underWay(now).all < 2*mostUnanswered {
		return
	}
	u.waits = true
	b.by[key] = u
}

// begin lets the turn of one that waits begin.
func (b *begun) begin(key types.NamespacedName, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u := b.by[key]; u.waits {
		u.waits, u.since, u.answers, u.told, u.silent = false, now, now, false, now
		b.by[key] = u
	}
}

// told notes that a backend has told something of a FleetWorkload.
func (b *begun) told(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u, known := b.by[key]; known {
		u.told = true
		b.by[key] = u
	}
}

// placed tells whether it is known to which clusters a FleetWorkload goes.
func placed(status v1alpha1.FleetWorkloadStatus) bool {
	return status.ClusterSummary != nil && pointer.Deref(status.ClusterSummary.Total, 0) > 0
}

func (b *begun) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, key)
	delete(b.edited, key)
}

// edit notes an edit, which the next pass is to see.
func (b *begun) edit(key types.NamespacedName, generation int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.edited == nil {
		b.edited = map[types.NamespacedName]int64{}
	}
	b.edited[key] = generation
}

// stage tells whether a FleetWorkload is on its way, was edited, or waits for its turn to begin.
func (b *begun) stage(key types.NamespacedName) fair.Stage {
	b.mu.Lock()
	defer b.mu.Unlock()
	u, known := b.by[key]
	_, edited := b.edited[key]
	switch {
	case known && !u.waits:
		return fair.Begun
	case edited:
		return fair.Edited
	case known:
		return fair.New
	default:
		return fair.Other
	}
}

// unanswered is for how many clusters' answers a FleetWorkload waits.
func (b *begun) unanswered(key types.NamespacedName) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[key].clusters
}

// onItsWay is for how long a FleetWorkload is on its way, 0 when it is not.
func (b *begun) onItsWay(key types.NamespacedName, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u, known := b.by[key]; known {
		return now.Sub(u.since)
	}
	return 0
}

// holds tells whether nothing new should begin in a namespace.
func (b *begun) holds(namespace string, now time.Time) bool {
	held, _ := b.hold(now)
	return held != nil && held(namespace)
}

// hold tells in which namespaces nothing new should begin, and for how long, since enough is under way that agents have not answered yet: to begin
// everything at once makes all of it late. held is nil for none.
func (b *begun) hold(now time.Time) (held func(namespace string) bool, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.underWay(now)
	if u.all < mostUnanswered {
		return nil, 0
	}
	return func(namespace string) bool {
		has := u.of[namespace]
		return u.all >= 2*mostUnanswered || has > 0 && int(has)*len(u.of) >= mostUnanswered
	}, u.again
}

// underWay is for how many clusters' answers FleetWorkloads wait that count: in all, by namespace, and for how long from now on at least. In all, a
// namespace counts for mostUnanswered at most, so that none holds up the others alone, however large its FleetWorkloads are.
type underWay struct {
	all   int32
	of    map[string]int32
	again time.Duration
}

func (b *begun) underWay(now time.Time) underWay {
	under := underWay{of: map[string]int32{}, again: answersWithin}
	for key, u := range b.by {
		if left := u.counts(now); left > 0 && u.clusters > 0 && !u.waits {
			under.of[key.Namespace] += u.clusters
			under.again = min(under.again, left)
		}
	}
	for _, clusters := range under.of {
		under.all += min(clusters, mostUnanswered)
	}
	return under
}

// more is how many FleetWorkloads are on their way, beside this one, that have no worker to themselves: at least one while those wait for many answers,
// since they keep the backend busy.
func (b *begun) more(beside types.NamespacedName, workers int, now time.Time) int {
	others, unanswered := b.others(beside, now)
	if more := others + 1 - max(workers, 1); more > 0 || unanswered < mostUnanswered/2 {
		return max(0, more)
	}
	return 1
}

// others are how many FleetWorkloads have come along on their way of late, beside this one, and for how many answers those wait. One that does not
// come along, such as one whose pods never start, makes nobody wait.
func (b *begun) others(beside types.NamespacedName, now time.Time) (others int, unanswered int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, u := range b.by {
		if key != beside && !u.waits && now.Sub(u.answers) < ofLate {
			others, unanswered = others+1, unanswered+u.clusters
		}
	}
	return others, unanswered
}

// pauses are until when a FleetWorkload is left alone by what backends tell: as long as its last pass took, and longer while many clusters are
// to answer, or many others are on their way. Where hundreds answer one by one, a pass takes all that came meanwhile.
type pauses struct {
	mu    sync.Mutex
	until map[types.NamespacedName]time.Time
	// told are the FleetWorkloads that a pass is at work on beside others, with what brings another one when a backend has told something of them
	// meanwhile, else nil. That waits for the pause after the pass: half of all passes would come right after the one before, otherwise.
	told map[types.NamespacedName]func(after time.Duration)
}

const (
	// longestPause bounds one: a pass that waited for a slow API server costs nobody else more.
	longestPause = time.Second
	// answersAWhile is how many clusters that are to answer make a pause longer by the time of a pass.
	answersAWhile = 10
	// pauseForOthers is how much longer a pause is for each other FleetWorkload that is on its way, until that is longestForOthers: backends and API
	// servers are busy with those, and a pass would find little that is new.
	pauseForOthers   = 100 * time.Millisecond
	longestForOthers = 4 * time.Second
	// together is how long the first word of a backend waits for others': clusters carry out one step within moments of each other.
	together = 20 * time.Millisecond
)

// begin notes a pass that begins beside others.
func (p *pauses) begin(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told == nil {
		p.told = map[types.NamespacedName]func(time.Duration){}
	}
	p.told[key] = nil
}

// takes tells whether a pass is at work that calls again when it ends, however it does.
func (p *pauses) takes(key types.NamespacedName, again func(after time.Duration)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, at := p.told[key]
	if at {
		p.told[key] = again
	}
	return at
}

// after notes a pass that has ended while so many clusters are to answer, and so many others are on their way.
func (p *pauses) after(key types.NamespacedName, began, ended time.Time, unanswered int32, others int) {
	pause := min(longestPause, ended.Sub(began)*time.Duration(1+unanswered/answersAWhile))
	forOthers := min(longestForOthers, time.Duration(others)*pauseForOthers)
	if others > 0 && unanswered >= manyAnswers {
		forOthers = max(forOthers, statusPace) // nor would what it finds be written
	}
	if again := p.end(key, ended.Add(pause+forOthers)); again != nil {
		again(max(together, pause+forOthers))
	}
}

// end begins the pause after a pass, and returns what brings another one when something was told meanwhile.
func (p *pauses) end(key types.NamespacedName, until time.Time) (again func(after time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[types.NamespacedName]time.Time{}
	}
	p.until[key], again = until, p.told[key]
	delete(p.told, key)
	return again
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
	delete(p.told, key)
}
