package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	pointer "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/fair"
)

// fresh says that all is new.
func fresh(reconcile.Request) fair.Stage { return fair.New }

// open lets everything begin.
func open() (func(string) bool, time.Duration) { return nil, 0 }

// passes run in a controller with the reconciler's options, and last until they are ended.
type passes struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	end   chan struct{}

	mu      sync.Mutex
	started []string
}

// startPasses is called in a bubble. The team's passes end at once, all others when end says so. Who has had a pass wants another one.
func startPasses(t *testing.T) *passes {
	t.Helper()
	p := &passes{end: make(chan struct{})}
	options := (&Reconciler{Client: fake.NewFakeClient(), Concurrency: 8, Clock: clock.RealClock{}}).options()
	options.SkipNameValidation = ptr(true) // many tests, one name
	options.Reconciler = reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		p.mu.Lock()
		p.started = append(p.started, req.Namespace)
		p.mu.Unlock()
		p.queue.Add(req)
		if req.Namespace != "team" || p.count("team") == teamPasses {
			select {
			case <-p.end:
			case <-ctx.Done():
			}
		}
		return reconcile.Result{}, nil
	})
	c, err := controller.NewUnmanaged("queue-test", options)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.queue = q
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return p
}

func (p *passes) add(namespace string, requests int) {
	for i := range requests {
		p.queue.Add(request(namespace, fmt.Sprint(i)))
	}
	synctest.Wait()
}

// count is how many passes of a namespace, or of all, have started.
func (p *passes) count(namespace string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, of := range p.started {
		if namespace == "" || of == namespace {
			n++
		}
	}
	return n
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// teamPasses is how many passes a change of the team needs.
const teamPasses = 10

// TestAHostileNamespaceKeepsNoOtherWaiting: the team's change needs ten passes. Meanwhile other namespaces have two hundred FleetWorkloads
// each, whose passes never end by themselves and always want another one.
func TestAHostileNamespaceKeepsNoOtherWaiting(t *testing.T) {
	started, ended := map[int]int{}, map[int]int{}
	for _, hostile := range []int{0, 1, 2, 20} {
		synctest.Test(t, func(t *testing.T) {
			p := startPasses(t)
			for i := range hostile {
				p.add(fmt.Sprint("hostile-", i), 200)
			}
			before := p.count("")
			p.add("team", 1)
			for ; p.count("team") < teamPasses && ended[hostile] < 1000; ended[hostile]++ {
				p.end <- struct{}{}
				synctest.Wait()
			}
			started[hostile] = p.count("") - before
		})
	}
	t.Logf("started by number of hostile namespaces: %v, ended: %v", started, ended)
	for _, hostile := range []int{1, 2} {
		if started[hostile] > 2*started[0] {
			t.Errorf("%d hostile namespaces: %d passes start until the team is done, and without them %d", hostile, started[hostile], started[0])
		}
		if ended[hostile] > 0 {
			t.Errorf("%d hostile namespaces: the team waits for the end of %d passes", hostile, ended[hostile])
		}
	}
	// More namespaces than workers: then each has one turn before the team has its next one.
	if bound := teamPasses * (20 + 1); started[20] > bound {
		t.Errorf("20 hostile namespaces: %d passes start until the team is done, which is more than %d", started[20], bound)
	}
}

// TestWhoIsHeldBackGoesOn: two namespaces have three of eight workers each, and may not have more. When one pass ends, each may have one.
func TestWhoIsHeldBackGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFairQueue("", 8, fresh, open)
		defer q.ShutDown()
		for i := range 10 {
			q.Add(request("a", fmt.Sprint(i)))
			q.Add(request("b", fmt.Sprint(i)))
		}
		for range 6 {
			q.Get()
		}
		got := make(chan string, 2)
		for range 2 {
			go func() {
				req, _ := q.Get()
				got <- req.String()
			}()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("%s is not held back", <-got)
		}
		q.Done(request("b", "0"))
		synctest.Wait()
		if len(got) != 2 {
			t.Errorf("%d go on, want 2", len(got))
		}
	})
}

// TestQueueDelays: a request that has failed comes back when its time has come.
func TestQueueDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := newQueue(1, fresh, open)("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute))
		defer q.ShutDown()
		q.AddRateLimited(request("a", "failed"))
		q.AddAfter(request("b", "later"), time.Hour)
		for _, want := range []struct {
			name  string
			after time.Duration
		}{{"failed", time.Second}, {"later", time.Hour}} {
			req, shutdown := q.Get()
			if req.Name != want.name || shutdown || time.Since(start) != want.after {
				t.Errorf("%s after %s (shutdown %t), want %s after %s", req, time.Since(start), shutdown, want.name, want.after)
			}
			q.Done(req)
		}
		if n := q.NumRequeues(request("a", "failed")); n != 1 {
			t.Errorf("%d retries", n)
		}
	})
}

// TestQueueShutsDown: workers that wait go, and what is held back does not keep the operator.
func TestQueueShutsDown(t *testing.T) {
	for name, shutDown := range map[string]func(workqueue.TypedRateLimitingInterface[reconcile.Request]){
		"at once":    workqueue.TypedRateLimitingInterface[reconcile.Request].ShutDown,
		"with drain": workqueue.TypedRateLimitingInterface[reconcile.Request].ShutDownWithDrain,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(2, fresh, open)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				q.Add(request("a", "1"))
				q.Add(request("a", "2")) // one of two workers is kept for others
				served := make(chan string, 2)
				begin := make(chan struct{})
				var workers sync.WaitGroup
				for range 2 {
					workers.Go(func() {
						for {
							req, shutdown := q.Get()
							if shutdown {
								return
							}
							<-begin
							served <- req.Name
							q.Done(req)
						}
					})
				}
				synctest.Wait()
				if q.Len() != 1 {
					t.Errorf("%d wait, want 1", q.Len())
				}
				stopped := make(chan struct{})
				go func() {
					shutDown(q)
					close(stopped)
				}()
				synctest.Wait()
				close(begin)
				workers.Wait()
				<-stopped
				q.ShutDown() // also what delays
				if len(served) != 2 || q.Len() != 0 {
					t.Errorf("%d served, %d wait", len(served), q.Len())
				}
			})
		})
	}
}

// TestQueueIsMeasured: the metrics of every controller's queue are there, by its name.
func TestQueueIsMeasured(t *testing.T) {
	const name = "measured-queue"
	before := measured(t, name)
	q := newQueue(8, fresh, open)(name, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour))
	defer q.ShutDown()
	for i := range 8 {
		q.Add(request("a", fmt.Sprint(i)))
	}
	q.AddRateLimited(request("a", "failed"))
	for range 2 {
		req, _ := q.Get()
		q.Done(req)
	}
	q.Get()
	after := measured(t, name)
	for metric, want := range map[string]float64{
		"workqueue_depth": 5, "workqueue_adds_total": 8, "workqueue_retries_total": 1,
		"workqueue_queue_duration_seconds": 3, "workqueue_work_duration_seconds": 2,
	} {
		if got := after[metric] - before[metric]; got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
}

// measured are the metrics of a queue by their names; of histograms, how many values they have.
func measured(t *testing.T, queue string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "name" && label.GetValue() == queue {
					got[family.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return got
}

// TestWhatBeginsWaitsForAnswers: while a thousand clusters have not answered, nothing more begins, unless no answer comes or it takes too long.
func TestWhatBeginsWaitsForAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		// answers is how often one of the clusters answers; 0 is never.
		answers time.Duration
		// told is true when the backend tells something that does not make it fewer clusters.
		told bool
		// busy is true when no pass takes it.
		busy bool
		want time.Duration
	}{
		"no answer comes":        {want: answersWithin},
		"few answers come":       {answers: answersWithin - time.Second, want: longestCount},
		"questions are answered": {answers: answersWithin - time.Second, told: true, want: longestCount},
		"no pass takes it":       {answers: time.Second, told: true, busy: true, want: longestCount},
		"answers come too far":   {answers: answersWithin + time.Second, want: answersWithin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { beginsAfter(t, c.answers, c.told, c.busy, c.want) })
		})
	}
}

// TestStage: a FleetWorkload that waits for its turn is not held back any more when it is edited or deleted; nor is any other.
func TestStage(t *testing.T) {
	b := &begun{}
	lots := int32(manyAnswers)
	for _, name := range []string{"waits", "not placed", "begun", "edited"} {
		status := v1alpha1.FleetWorkloadStatus{}
		if name != "not placed" {
			status.ClusterSummary = &v1alpha1.ClusterSummary{Total: &lots}
		}
		b.note(request("a", name).NamespacedName, status, time.Now())
		if name != "begun" {
			b.wait(request("a", name).NamespacedName, time.Now())
		}
	}
	b.edit(request("a", "edited").NamespacedName, 2)
	for name, want := range map[string]fair.Stage{
		"none": fair.Other, "not placed": fair.Begun, "waits": fair.New, "begun": fair.Begun, "edited": fair.Edited,
	} {
		if got := b.stage(request("a", name).NamespacedName); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// TestAnEditGoesFirst: the pass that carries an edit out, also the first and the last one, does not wait for those that a cluster brings which all others have,
// too. It does so once.
func TestAnEditGoesFirst(t *testing.T) {
	updated := func(edit func(fw *v1alpha1.FleetWorkload)) func(r *Reconciler, fw *v1alpha1.FleetWorkload) {
		return func(r *Reconciler, fw *v1alpha1.FleetWorkload) {
			before := fw.DeepCopy()
			edit(fw)
			fw.ResourceVersion = "2"
			r.matters(event.UpdateEvent{ObjectOld: before, ObjectNew: fw})
		}
	}
	seen := func(generation int64) func(r *Reconciler, fw *v1alpha1.FleetWorkload) {
		return func(r *Reconciler, fw *v1alpha1.FleetWorkload) {
			fw.Status.ObservedGeneration = &generation
			r.comes(event.CreateEvent{Object: fw})
		}
	}
	for name, c := range map[string]struct {
		happens func(r *Reconciler, fw *v1alpha1.FleetWorkload)
		first   bool
	}{
		"the spec is edited":           {updated(func(fw *v1alpha1.FleetWorkload) { fw.Generation++ }), true},
		"an annotation is edited":      {updated(func(fw *v1alpha1.FleetWorkload) { fw.Annotations = map[string]string{"a": "b"} }), true},
		"the status is written":        {updated(func(fw *v1alpha1.FleetWorkload) { fw.Status.Ready = "1/3" }), false},
		"it is created":                {func(r *Reconciler, fw *v1alpha1.FleetWorkload) { r.comes(event.CreateEvent{Object: fw}) }, true},
		"it was edited while we slept": {seen(4), true},
		"it is there after a restart":  {seen(5), false},
		"it is gone":                   {func(r *Reconciler, fw *v1alpha1.FleetWorkload) { r.goes(event.DeleteEvent{Object: fw}) }, true},
	} {
		r := &Reconciler{Clock: clock.RealClock{}, Concurrency: 8}
		q := r.options().NewQueue("", r.options().RateLimiter)
		for i := range 50 {
			q.Add(request("a", fmt.Sprint(i)))
		}
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "30", UID: "u", Generation: 5, ResourceVersion: "1"}}
		c.happens(r, fw)
		req := request("a", "30")
		q.Add(req)
		if first, _ := q.Get(); first == req != c.first {
			t.Errorf("%s, and the first is %s", name, first)
		}
		before, now := fw.Generation-1, fw.Generation
		if r.begun.note(req.NamespacedName, v1alpha1.FleetWorkloadStatus{ObservedGeneration: &before, Conditions: ready()}, time.Now()); c.first && r.begun.stage(req.NamespacedName) != fair.Edited {
			t.Errorf("%s, and a pass from before is enough", name)
		}
		if r.begun.note(req.NamespacedName, v1alpha1.FleetWorkloadStatus{ObservedGeneration: &now, Conditions: ready()}, time.Now()); r.begun.stage(req.NamespacedName) != fair.Other {
			t.Errorf("%s, and it goes before others for ever", name)
		}
		q.ShutDown()
	}
}

func ready() []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
}

// TestALostClusterIsNotAwaited: who waits for clusters alone that cannot be reached is not on its way, and makes nobody wait.
func TestALostClusterIsNotAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		applied, stale int32
		unanswered     int32
		begun          bool
	}{
		"one of a hundred is lost":              {applied: 99, stale: 1},
		"one is lost, and others are to answer": {applied: 50, stale: 1, unanswered: 49, begun: true},
		"all are lost":                          {stale: 100},
	} {
		b, total, now := &begun{}, int32(100), time.Now()
		status := v1alpha1.FleetWorkloadStatus{
			ClusterSummary: &v1alpha1.ClusterSummary{Total: &total, Applied: &c.applied, Stale: &c.stale},
			Conditions:     []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStale}},
		}
		key := request("a", "b").NamespacedName
		b.note(key, status, now)
		others, unanswered := b.others(request("a", "c").NamespacedName, now)
		if is := b.stage(key) == fair.Begun; is != c.begun || is != (others == 1) || unanswered != c.unanswered || b.unanswered(key) != c.unanswered {
			t.Errorf("%s: begun %t, %d others, %d unanswered", name, is, others, unanswered)
		}
	}
}

// TestWhatIsHeldIsSentNothing: while enough is under way in its namespace, a new FleetWorkload has its clusters chosen and said, and is sent nothing before its turn.
// Then its answers count from there. A small one waits only while twice as much is under way.
func TestWhatIsHeldIsSentNothing(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		underWay  int32
		// another is the same in one more namespace.
		another int32
		held    bool
	}{
		"in another namespace": {namespace: "other", underWay: mostUnanswered},
		"a small one":          {namespace: key.Namespace, underWay: 2 * mostUnanswered},
		"no room":              {namespace: key.Namespace, underWay: mostUnanswered, another: mostUnanswered, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, now, held := newWorld(t), time.Now(), c.held
			w.Clock = clocktesting.NewFakePassiveClock(now)
			busy := types.NamespacedName{Namespace: c.namespace, Name: "busy"}
			w.begun.note(busy, v1alpha1.FleetWorkloadStatus{ClusterSummary: &v1alpha1.ClusterSummary{Total: &c.underWay}}, now)
			busy.Namespace = "another"
			w.begun.note(busy, v1alpha1.FleetWorkloadStatus{ClusterSummary: &v1alpha1.ClusterSummary{Total: &c.another}}, now)
			w.create(divide(8))
			for range 10 {
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				if placed(w.get().Status) {
					break
				}
				w.backend.Step() // it chooses the clusters
			}
			if stage := w.begun.stage(key); stage == fair.New != held {
				t.Errorf("its stage is %d, held %t", stage, held)
			}
			if w.backend.Step(); held && len(w.uids()) > 0 {
				t.Errorf("it is sent to its clusters: %v", w.uids())
			}
			if fw := w.get(); !placed(fw.Status) || len(fw.Status.Clusters) != 3 {
				t.Errorf("its status says nothing of its clusters: %+v", fw.Status)
			}
			later := now.Add(2 * longestCount)
			w.Clock = clocktesting.NewFakePassiveClock(later)
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if u := w.begun.by[key]; held && (u.waits || !u.since.Equal(later)) {
				t.Errorf("its turn has come, and it is %+v", u)
			}
			w.settle()
			w.membersRun("4 2 2")
		})
	}
}

// TestWhatBeginsWaitsInItsNamespace: a namespace with less than its share under way begins while another has a thousand clusters to answer, until
// two thousand are.
func TestWhatBeginsWaitsInItsNamespace(t *testing.T) {
	for _, c := range []struct {
		unanswered map[string]int32
		// begins are the namespaces of a, b and c in which something more may begin.
		begins string
	}{
		{map[string]int32{"a": 999}, "abc"},
		{map[string]int32{"a": 1000}, "bc"},
		{map[string]int32{"a": 900, "b": 100}, "bc"},
		{map[string]int32{"a": 500, "b": 500}, "c"},
		{map[string]int32{"a": 1400, "b": 499}, "bc"},
		{map[string]int32{"a": 1400, "b": 600}, "c"},
		{map[string]int32{"a": 1400, "b": 999}, "c"},
		{map[string]int32{"a": 1400, "b": 1000}, ""},
		{map[string]int32{"a": 5000}, "bc"},
		{map[string]int32{"a": 334, "b": 333, "c": 333}, "bc"},
	} {
		b, now, lots := &begun{}, time.Now(), int32(5000)
		b.note(request("b", "waits").NamespacedName, v1alpha1.FleetWorkloadStatus{ClusterSummary: &v1alpha1.ClusterSummary{Total: &lots}}, now)
		b.wait(request("b", "waits").NamespacedName, now)
		for namespace, clusters := range c.unanswered {
			b.note(request(namespace, "x").NamespacedName, v1alpha1.FleetWorkloadStatus{ClusterSummary: &v1alpha1.ClusterSummary{Total: &clusters}}, now)
		}
		held, _ := b.hold(now)
		begins := ""
		for _, namespace := range []string{"a", "b", "c"} {
			if held == nil || !held(namespace) {
				begins += namespace
			}
		}
		if begins != c.begins {
			t.Errorf("%v: something more may begin in %q, want %q", c.unanswered, begins, c.begins)
		}
	}
}

// beginsAfter has 1,200 clusters to answer, of which one does each time, or is only told of, and wants another to begin after that long.
func beginsAfter(t *testing.T, answers time.Duration, told, busy bool, want time.Duration) {
	t.Helper()
	b := &begun{}
	stage := func(req reconcile.Request) fair.Stage {
		if b.stage(req.NamespacedName) == fair.Begun {
			return fair.Begun
		}
		return fair.New
	}
	q := newFairQueue("", 8, stage, func() (func(string) bool, time.Duration) { return b.hold(time.Now()) })
	defer q.ShutDown()
	note := func(name string, clusters, applied int32) {
		b.note(request("a", name).NamespacedName, v1alpha1.FleetWorkloadStatus{
			ClusterSummary: &v1alpha1.ClusterSummary{Total: &clusters, Applied: &applied},
		}, time.Now())
	}
	note("large", 1200, 201)
	q.Add(request("a", "first"))
	if req, _ := q.Get(); req.Name != "first" {
		t.Errorf("%s, though 999 clusters have not answered", req.Name)
	}
	b.forget(request("a", "large").NamespacedName)
	note("large", 1200, 0)
	q.Add(request("a", "second"))
	q.Add(request("a", "large"))
	if req, _ := q.Get(); req.Name != "large" {
		t.Errorf("%s goes first, though 1,200 clusters have not answered", req.Name)
	}
	got, start := make(chan time.Duration, 1), time.Now()
	go func() {
		q.Get()
		got <- time.Since(start)
	}()
	for applied := int32(1); len(got) == 0 && time.Since(start) < 2*longestCount; applied++ {
		switch time.Sleep(cmp.Or(answers, longestCount)); {
		case told && busy && applied > 1:
		case told:
			b.told(request("a", "large").NamespacedName)
			if !busy {
				note("large", 1200, 0)
			}
		case answers > 0:
			note("large", 1200, applied)
		}
		synctest.Wait()
	}
	synctest.Wait()
	select {
	case took := <-got:
		if took != want {
			t.Errorf("the second went after %s, want %s", took, want)
		}
	default:
		t.Error("the second waits for ever")
		q.ShutDown()
	}
}

// TestMore: those on their way make others wait who have no worker to themselves, or have many clusters to answer.
func TestMore(t *testing.T) {
	for _, c := range []struct{ fleetWorkloads, clusters, more int }{
		{fleetWorkloads: 4, clusters: 3},
		{fleetWorkloads: 6, clusters: 3, more: 2},
		{fleetWorkloads: 1, clusters: 1000},
		{fleetWorkloads: 2, clusters: mostUnanswered / 2, more: 1},
		{fleetWorkloads: 2, clusters: mostUnanswered/2 - 1},
		{fleetWorkloads: 7, clusters: mostUnanswered / 2, more: 3},
	} {
		b, now, total := &begun{}, time.Now(), int32(c.clusters)
		for i := range c.fleetWorkloads {
			b.note(request("a", fmt.Sprint(i)).NamespacedName, v1alpha1.FleetWorkloadStatus{ClusterSummary: &v1alpha1.ClusterSummary{Total: &total}}, now)
		}
		if got := b.more(request("a", "0").NamespacedName, 4, now); got != c.more {
			t.Errorf("%+v: %d more", c, got)
		}
		if got := b.more(request("a", "0").NamespacedName, 4, now.Add(ofLate)); got != 0 {
			t.Errorf("%+v, a while ago: %d more", c, got)
		}
	}
}

// TestPauses: what a backend tells waits as long as the last pass took, longer while many clusters are to answer, and what is asked for by others
// does not.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{Clock: clock.RealClock{}, Concurrency: 8}
		options := r.options()
		q := options.NewQueue("", options.RateLimiter)
		defer q.ShutDown()
		short, large, long, other, crowded, slow := request("a", "short"), request("a", "large"), request("a", "long"), request("a", "other"), request("a", "crowded"), request("b", "slow")
		many := request("b", "many")
		r.pauses.after(short.NamespacedName, time.Now().Add(-100*time.Millisecond), time.Now(), answersAWhile-1, 0)
		r.pauses.after(large.NamespacedName, time.Now().Add(-100*time.Millisecond), time.Now(), 2*answersAWhile, 0)
		r.pauses.after(long.NamespacedName, time.Now().Add(-time.Minute), time.Now(), 0, 0)
		r.pauses.after(crowded.NamespacedName, time.Now(), time.Now(), 0, 6)
		r.pauses.after(many.NamespacedName, time.Now(), time.Now(), manyAnswers, 1)
		r.pauses.after(slow.NamespacedName, time.Now().Add(-time.Minute), time.Now(), 0, 400)
		start := time.Now()
		defer time.AfterFunc(time.Minute, q.ShutDown).Stop() // what has been forgotten never comes
		for _, req := range []reconcile.Request{slow, many, crowded, long, large, short, other, short} {
			r.told(t.Context(), event.TypedGenericEvent[BackendEvent]{Object: BackendEvent{Backend: "ocm", Name: req.NamespacedName}}, q)
		}
		for _, want := range []struct {
			req   reconcile.Request
			after time.Duration
		}{{other, together}, {short, 100 * time.Millisecond}, {large, 300 * time.Millisecond}, {crowded, 6 * pauseForOthers}, {long, longestPause}, {many, statusPace}, {slow, longestPause + longestForOthers}} {
			if req, _ := q.Get(); req != want.req || time.Since(start) != want.after {
				t.Errorf("%s after %s, want %s after %s", req, time.Since(start), want.req, want.after)
			}
		}
		if q.Len() != 0 {
			t.Errorf("%d are there twice", q.Len())
		}
	})
}

// TestWhatIsToldInAPassWaits: beside others, what a backend tells during a pass brings the next one after the pause, and not at once. It is never lost.
func TestWhatIsToldInAPassWaits(t *testing.T) {
	for name, c := range map[string]struct {
		others int
		fails  error
		panics bool
	}{
		"alone": {}, "beside others": {others: 6}, "a pass that fails": {others: 6, fails: errors.New("refused")},
		"a pass that does not come to its end": {others: 6, panics: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.Clock, w.Concurrency = clock.RealClock{}, 12 // each has a worker to itself
			w.create(divide(8))
			w.settle()
			time.Sleep(time.Minute)
			one := int32(1)
			for i := range c.others {
				w.begun.note(types.NamespacedName{Namespace: "other", Name: fmt.Sprint(i)}, v1alpha1.FleetWorkloadStatus{ClusterSummary: &v1alpha1.ClusterSummary{Total: &one}}, time.Now())
			}
			q := w.options().NewQueue("", w.options().RateLimiter)
			defer q.ShutDown()
			tell := func() {
				w.told(t.Context(), event.TypedGenericEvent[BackendEvent]{Object: BackendEvent{Backend: "one", Name: key}}, q)
				time.Sleep(together)
				synctest.Wait()
			}
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(16)) })
			w.through(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, cl client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if tell(); c.panics {
					panic("a defect")
				}
				return errors.Join(c.fails, cl.SubResource(sub).Patch(ctx, obj, patch, opts...))
			}})
			began := time.Now()
			func() {
				defer func() { _ = recover() }()
				if _, err := w.reconcile(); !errors.Is(err, c.fails) {
					t.Errorf("%s: %v", name, err)
				}
			}()
			for q.Len() == 0 && time.Since(began) < time.Minute {
				time.Sleep(together)
				synctest.Wait()
			}
			if waited := time.Since(began); waited < time.Duration(c.others)*pauseForOthers || waited > longestPause+longestForOthers || c.others == 0 && waited > 3*together {
				t.Errorf("%s: the next pass comes after %s", name, waited)
			}
			if q.Len() > 0 {
				req, _ := q.Get()
				q.Done(req)
			}
			time.Sleep(longestPause + longestForOthers)
			if tell(); q.Len() != 1 {
				t.Errorf("%s: what is told after a pass brings none", name)
			}
		})
	}
}

// TestNumbersAloneWait: a status that differs in numbers alone is written each second, or each few seconds while many clusters are to answer or
// others are on their way, and every other one at once.
func TestNumbersAloneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		statusOf := func(applied int32, change func(*v1alpha1.FleetWorkloadStatus)) v1alpha1.FleetWorkloadStatus {
			status := v1alpha1.FleetWorkloadStatus{
				Revision: "r1", ReadyReplicas: &applied,
				ClusterSummary: &v1alpha1.ClusterSummary{Total: pointer.To[int32](100), Applied: &applied},
				Clusters:       []v1alpha1.ClusterStatus{{Name: "a", Replicas: &applied}},
				Placement: &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{
					{Name: "a", Replicas: pointer.To[int32](2), State: v1alpha1.ClusterShareJoining}, {Name: "b", Replicas: pointer.To[int32](2)},
				}},
				Conditions: []metav1.Condition{{
					Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Progressing", Message: fmt.Sprint(applied, " of 100"),
				}},
			}
			if change != nil {
				change(&status)
			}
			return status
		}
		applied := func(s *v1alpha1.FleetWorkloadStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue})
		}
		kept := func(s *v1alpha1.FleetWorkloadStatus) {
			s.SpecRevision = &v1alpha1.SpecRevision{Number: pointer.To[int64](2)}
		}
		lost := func(of int32) func(*v1alpha1.FleetWorkloadStatus) {
			return func(s *v1alpha1.FleetWorkloadStatus) {
				s.ClusterSummary.Applied, s.ClusterSummary.Stale, s.Conditions[0].Reason = &of, pointer.To[int32](1), v1alpha1.ReasonStale
			}
		}
		for name, c := range map[string]struct {
			applied int32
			rows    int
			was     func(*v1alpha1.FleetWorkloadStatus)
			change  func(*v1alpha1.FleetWorkloadStatus)
			others  int
			stuck   bool
			words   bool
			reason  string
			way     time.Duration
			later   time.Duration
		}{
			"many are to answer":           {applied: 80, later: statusPace - time.Second/2},
			"few are to answer":            {applied: 81, later: numbersPace - time.Second/2},
			"few, beside many others":      {applied: 81, others: 40, later: numbersPace + 40*paceForOthers - time.Second/2},
			"beside others that are stuck": {applied: 81, others: 40, stuck: true, later: numbersPace - time.Second/2},
			"beside too many others":       {applied: 81, others: 400, later: longestPace - time.Second/2},
			"it arrives on one of few": {applied: 81, later: numbersPace - time.Second/2, change: func(s *v1alpha1.FleetWorkloadStatus) {
				s.Placement.Clusters[0] = v1alpha1.ClusterShare{Name: "a", Replicas: pointer.To[int32](2), Baseline: pointer.To[int32](2)}
			}},
			"it arrives on one of few, beside many others": {applied: 81, others: 10, later: numbersPace + 10*paceForOthers - time.Second/2, change: func(s *v1alpha1.FleetWorkloadStatus) {
				s.Placement.Clusters[0] = v1alpha1.ClusterShare{Name: "a", Replicas: pointer.To[int32](2), Baseline: pointer.To[int32](2)}
			}},
			"applied everywhere":                     {applied: 81, later: numbersPace - time.Second/2, change: applied},
			"kept, when nothing waits":               {applied: 81, change: kept},
			"kept, while many are to answer":         {applied: 50, later: statusPace - time.Second/2, change: kept},
			"kept alone, beside another":             {words: true, others: 1, later: longestPace - time.Second/2, change: kept},
			"applied everywhere, beside many others": {applied: 81, others: 10, later: numbersPace + 10*paceForOthers - time.Second/2, change: applied},
			"ready, beside many others":              {applied: 81, others: 10, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Conditions[0].Status = metav1.ConditionTrue }},
			"on all but one that is lost":            {applied: 81, reason: v1alpha1.ReasonStale, others: 10, change: lost(99)},
			"on most but one that is lost":           {applied: 81, reason: v1alpha1.ReasonStale, others: 10, later: numbersPace + 10*paceForOthers - time.Second/2, change: lost(98)},
			"as before, but one that is lost":        {words: true, was: lost(99), others: 10, later: numbersPace + 10*paceForOthers - time.Second/2},
			"another revision":                       {applied: 50, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Revision = "r2" }},
			"another reason":                         {applied: 50, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Conditions[0].Reason = "RemovalHeld" }},
			"many rows":                              {applied: 81, rows: manyAnswers, later: numbersPace - time.Second/2},
			"many rows, beside another":              {applied: 81, rows: manyAnswers, others: 1, later: longestPace - time.Second/2},
			"many rows, beside another, for long":    {applied: 81, rows: manyAnswers, others: 1, way: 40 * time.Second, later: 20*time.Second - time.Second/2},
			"many rows, beside another, for hours":   {applied: 81, rows: manyAnswers, others: 1, way: time.Hour, later: longestOfMany - time.Second/2},
			"many rows, in other words, for long":    {words: true, rows: manyAnswers, others: 1, way: 40 * time.Second, later: 20*time.Second - time.Second/2},
			"many rows, alone, for hours":            {applied: 81, rows: manyAnswers, way: time.Hour, later: numbersPace - time.Second/2},
			"few rows, beside another, for hours":    {applied: 81, others: 1, way: time.Hour, later: numbersPace + paceForOthers - time.Second/2},
			"few rows, beside another":               {applied: 81, rows: manyAnswers - 1, others: 1, later: numbersPace + paceForOthers - time.Second/2},
			"ready on many, beside another":          {applied: 81, rows: manyAnswers, others: 1, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Conditions[0].Status = metav1.ConditionTrue }},
			"as far, in a word":                      {applied: 50, later: statusPace - time.Second/2, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Conditions[0].Reason = v1alpha1.ReasonApplying }},
			"as far, in other words":                 {words: true, later: wordsPace - time.Second/2},
			"what a person is to do, in other words": {words: true, reason: v1alpha1.ReasonRemovalHeld, later: numbersPace - time.Second/2},
			"beside others, in other words":          {words: true, others: 1, later: longestPace - time.Second/2},
			"nothing is chosen":                      {applied: 50, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Placement = nil }},
			"it arrives on one": {applied: 50, later: statusPace - time.Second/2, change: func(s *v1alpha1.FleetWorkloadStatus) {
				s.Placement.Clusters[0] = v1alpha1.ClusterShare{Name: "a", Replicas: pointer.To[int32](2), Baseline: pointer.To[int32](2)}
			}},
			"one is given more":       {applied: 50, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Placement.Clusters[0].Replicas = pointer.To[int32](3) }},
			"one is measured by less": {applied: 50, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Placement.Clusters[1].Baseline = pointer.To[int32](1) }},
			"one is another":          {applied: 50, change: func(s *v1alpha1.FleetWorkloadStatus) { s.Placement.Clusters[0].Name = "c" }},
		} {
			r := &Reconciler{Clock: clock.RealClock{}}
			for i := range c.others {
				r.begun.note(types.NamespacedName{Namespace: "b", Name: fmt.Sprint(i)}, statusOf(1, nil), time.Now())
			}
			if c.stuck {
				time.Sleep(ofLate)
			}
			fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}, Status: statusOf(1, nil)}
			if c.words {
				fw.Status = statusOf(81, nil)
			}
			for i := 1; c.words && i < c.rows; i++ {
				fw.Status.Clusters = append(fw.Status.Clusters, v1alpha1.ClusterStatus{Name: fmt.Sprint(i)})
			}
			fw.Status.Conditions[0].Reason = cmp.Or(c.reason, v1alpha1.ReasonProgressing)
			if c.was != nil {
				c.was(&fw.Status)
			}
			r.written.remember(fw, time.Now(), false)
			time.Sleep(time.Second / 2)
			status := statusOf(c.applied, c.change)
			for i := 1; i < c.rows; i++ {
				status.Clusters = append(status.Clusters, v1alpha1.ClusterStatus{Name: fmt.Sprint(i)})
			}
			if c.words {
				status = *fw.Status.DeepCopy()
				status.Conditions[0].Message, status.Clusters[0].Message = "waits", "waits"
				if c.change != nil {
					c.change(&status)
				}
			}
			r.begun.note(client.ObjectKeyFromObject(fw), status, time.Now().Add(-c.way))
			if later := r.later(fw, status); later != c.later {
				t.Errorf("%s: it waits for %s, want %s", name, later, c.later)
			}
			time.Sleep(longestOfMany)
			if later := r.later(fw, status); later > 0 {
				t.Errorf("%s: it waits for %s more", name, later)
			}
			if status.Conditions[0].Message == "" || status.Clusters == nil {
				t.Errorf("%s: what is compared is not what is written: %+v", name, status)
			}
		}
	})
}

// TestOwnNumbersBringNoPass: what a pass has written brings another one when it decides something, when somebody else has written, and when a pass
// has waited for it.
func TestOwnNumbersBringNoPass(t *testing.T) {
	version := func(resourceVersion string, change func(*v1alpha1.FleetWorkload)) *v1alpha1.FleetWorkload {
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u", ResourceVersion: resourceVersion, Generation: 1}}
		fw.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "a", Ready: pointer.To[int32](1)}}
		if change != nil {
			change(fw)
		}
		return fw
	}
	numbers := func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[0].Ready = pointer.To[int32](2) }
	is := func(kind string) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			meta.SetStatusCondition(&fw.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "X"})
		}
	}
	for name, c := range map[string]struct {
		change  func(*v1alpha1.FleetWorkload)
		before  func(r *Reconciler)
		matters bool
	}{
		"numbers":                        {change: numbers},
		"numbers of somebody else":       {change: func(fw *v1alpha1.FleetWorkload) { numbers(fw); fw.ResourceVersion = "3" }, matters: true},
		"of one that was made anew":      {change: func(fw *v1alpha1.FleetWorkload) { numbers(fw); fw.UID = "u2" }, matters: true},
		"numbers that were waited for":   {change: numbers, before: func(r *Reconciler) { r.written.ahead(version("1", nil)) }, matters: true},
		"another operator's":             {change: numbers, before: func(r *Reconciler) { r.written.leave(types.NamespacedName{Namespace: "a", Name: "web"}) }, matters: true},
		"a revision":                     {change: func(fw *v1alpha1.FleetWorkload) { fw.Status.Revision = "r2" }, matters: true},
		"is Ready":                       {change: is(v1alpha1.ConditionReady)},
		"is Stalled":                     {change: is(v1alpha1.ConditionStalled), matters: true},
		"the finalizer":                  {change: func(fw *v1alpha1.FleetWorkload) { fw.Finalizers = []string{v1alpha1.Finalizer} }, matters: true},
		"a spec, seen with our numbers":  {change: func(fw *v1alpha1.FleetWorkload) { numbers(fw); fw.Generation = 2 }, matters: true},
		"a spec, before our next write":  {change: func(fw *v1alpha1.FleetWorkload) { fw.Generation = 2 }, before: func(r *Reconciler) { r.written.remember(version("3", nil), r.Clock.Now(), false) }},
		"a spec, restored from a backup": {change: func(fw *v1alpha1.FleetWorkload) { fw.Generation = 2 }, before: func(r *Reconciler) { r.written.remember(version("3", nil), r.Clock.Now().Add(-behindForLong), false) }, matters: true},
		"a revision, and it goes on":     {change: func(fw *v1alpha1.FleetWorkload) { fw.Status.Revision = "r2" }, before: func(r *Reconciler) { r.written.remember(version("2", nil), r.Clock.Now(), true) }},
		"and it was waited for": {change: numbers, before: func(r *Reconciler) {
			r.written.remember(version("2", nil), r.Clock.Now(), true)
			r.written.ahead(version("1", nil))
		}, matters: true},
		"and somebody else has written": {change: func(fw *v1alpha1.FleetWorkload) { fw.Generation, fw.ResourceVersion = 2, "3" }, before: func(r *Reconciler) {
			r.written.remember(version("2", nil), r.Clock.Now(), true)
		}, matters: true},
		"nothing: all are looked through": {change: func(fw *v1alpha1.FleetWorkload) { fw.ResourceVersion = "1" }, matters: true},
	} {
		r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(time.Now())}
		r.written.remember(version("2", nil), r.Clock.Now(), false)
		if c.before != nil {
			c.before(r)
		}
		if matters := r.matters(event.UpdateEvent{ObjectOld: version("1", nil), ObjectNew: version("2", c.change)}); matters != c.matters {
			t.Errorf("%s: it brings a pass: %t, want %t", name, matters, c.matters)
		}
	}
}
