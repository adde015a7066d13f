package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerers is how many statuses are written at once.
const answerers = 10

// members stands in for the work agents of all clusters, and tells when the ManifestWorks are as expected.
type members struct {
	hub   client.Client
	queue workqueue.TypedInterface[types.NamespacedName]

	mu       sync.Mutex
	works    map[types.NamespacedName]*workv1.ManifestWork
	manner   manner
	expected map[*expectation]bool
	failed   chan error
}

// manner is what the clusters' agents answer for now; the rest they answer later.
type manner int

const (
	answerAll manner = iota
	// answerQuestions is answering ManifestWorks that only ask.
	answerQuestions
	answerNothing
)

// due tells whether a ManifestWork is to be answered now.
func (m manner) due(work *workv1.ManifestWork) bool {
	return !answered(work) && (m == answerAll || m == answerQuestions && asks(work))
}

// expectation is met when as many ManifestWorks match as are wanted.
type expectation struct {
	match   func(*workv1.ManifestWork) bool
	want    int
	matched map[types.NamespacedName]bool
	// found gets each ManifestWork that matches for the first time; it has room for all of them.
	found chan<- *workv1.ManifestWork
	// met is closed at the time in at; first is when the first one matched.
	met       chan struct{}
	first, at time.Time
}

// startMembers watches ManifestWorks and answers them until ctx ends.
func startMembers(ctx context.Context, cfg *rest.Config, hub client.Client) (*members, error) {
	m := &members{
		hub: hub, queue: workqueue.NewTyped[types.NamespacedName](), works: map[types.NamespacedName]*workv1.ManifestWork{},
		expected: map[*expectation]bool{}, failed: make(chan error, 1),
	}
	watches, err := cache.New(cfg, cache.Options{Scheme: hub.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("watch ManifestWorks: %w", err)
	}
	informer, err := watches.GetInformer(ctx, &workv1.ManifestWork{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch ManifestWorks: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: m.see, UpdateFunc: func(_, now any) { m.see(now) }, DeleteFunc: m.forget,
	}); err != nil {
		return nil, fmt.Errorf("watch ManifestWorks: %w", err)
	}
	go func() {
		if err := watches.Start(ctx); err != nil {
			m.fail(fmt.Errorf("watch ManifestWorks: %w", err))
		}
	}()
	for range answerers {
		go m.answerAll(ctx)
	}
	context.AfterFunc(ctx, m.queue.ShutDown)
	if !watches.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch ManifestWorks: %w", context.Cause(ctx))
	}
	return m, nil
}

func (m *members) see(obj any) {
	work, ok := obj.(*workv1.ManifestWork)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(work)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.works[key] = work
	for e := range m.expected {
		m.check(e, key, work)
	}
	if m.manner.due(work) {
		m.queue.Add(key)
	}
}

func (m *members) forget(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	work, ok := obj.(*workv1.ManifestWork)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(work)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, key)
	for e := range m.expected {
		m.check(e, key, nil)
	}
}

// check enters one ManifestWork, nil when it is gone, into an expectation. It is called with the lock held.
func (m *members) check(e *expectation, key types.NamespacedName, work *workv1.ManifestWork) {
	switch {
	case work == nil || !e.match(work):
		delete(e.matched, key)
	case !e.matched[key]:
		e.matched[key] = true
		if e.first.IsZero() {
			e.first = time.Now()
		}
		if e.found != nil {
			e.found <- work
		}
	}
	m.settle(e)
}

func (m *members) settle(e *expectation) {
	if len(e.matched) == e.want {
		e.at = time.Now()
		close(e.met)
		delete(m.expected, e)
	}
}

// expect begins to look for ManifestWorks. What is there already counts.
func (m *members) expect(want int, match func(*workv1.ManifestWork) bool) *expectation {
	e := &expectation{match: match, want: want, matched: map[types.NamespacedName]bool{}, met: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, work := range m.works {
		if match(work) {
			e.matched[key] = true
		}
	}
	m.expected[e] = true
	m.settle(e)
	return e
}

// notify sends the first so many ManifestWorks that match from now on.
func (m *members) notify(found chan<- *workv1.ManifestWork, want int, match func(*workv1.ManifestWork) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expected[&expectation{
		match: match, want: want, found: found, matched: map[types.NamespacedName]bool{}, met: make(chan struct{}),
	}] = true
}

// await waits until the expectation is met.
func (m *members) await(ctx context.Context, e *expectation) error {
	return m.awaitFor(ctx, e, patience)
}

func (m *members) awaitFor(ctx context.Context, e *expectation, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	select {
	case <-e.met:
		return nil
	case err := <-m.failed:
		return err
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.expected, e)
		return fmt.Errorf("%d of %d ManifestWorks are as expected: %w", len(e.matched), e.want, context.Cause(ctx))
	}
}

func (m *members) setManner(manner manner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.manner = manner
	for key, work := range m.works {
		if manner.due(work) {
			m.queue.Add(key)
		}
	}
}

// toAnswer is the ManifestWork when it is to be answered.
func (m *members) toAnswer(key types.NamespacedName) *workv1.ManifestWork {
	m.mu.Lock()
	defer m.mu.Unlock()
	if work := m.works[key]; work != nil && m.manner.due(work) {
		return work
	}
	return nil
}

func (m *members) answerAll(ctx context.Context) {
	for {
		key, end := m.queue.Get()
		if end {
			return
		}
		if work := m.toAnswer(key); work != nil {
			if err := m.answer(ctx, work); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				m.fail(fmt.Errorf("answer ManifestWork %s: %w", key, err))
			}
		}
		m.queue.Done(key)
	}
}

func (m *members) answer(ctx context.Context, work *workv1.ManifestWork) error {
	status, err := statusOf(work, metav1.Now())
	if err != nil {
		return err
	}
	after := work.DeepCopy()
	after.Status = status
	return m.hub.Status().Patch(ctx, after, client.MergeFrom(work))
}

func (m *members) fail(err error) {
	select {
	case m.failed <- err:
	default:
	}
}
