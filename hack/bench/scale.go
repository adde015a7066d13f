package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// scalePatience is how long one step may take for each thousand of ManifestWorks, and for twice as many.
const scalePatience = time.Minute

// scale is many FleetWorkloads on many clusters of one hub: what each step costs the operator.
type scale struct {
	hub      *hub
	members  *members
	operator *operator
	// seen is for steps with many FleetWorkloads, and changed for one change at a time beside them.
	seen, changed *sight
	names         []string
	// one is how long each change took that was made by itself, at rest.
	one      []time.Duration
	rest     time.Duration
	progress io.Writer
	lines    []scaleLine
}

// scaleSize reads how many FleetWorkloads on how many clusters, such as 300x100.
func scaleSize(text string) (workloads, clusters int, err error) {
	a, b, _ := strings.Cut(text, "x")
	workloads, err = strconv.Atoi(a)
	if err == nil {
		clusters, err = strconv.Atoi(b)
	}
	if err != nil || workloads < 2 || clusters < 2 {
		return 0, 0, fmt.Errorf("-scale %q: write two numbers above 1, such as 300x100", text)
	}
	return workloads, clusters, nil
}

// measureScale prints a line for each step, and tells whether all are within their bars.
func measureScale(ctx context.Context, o options, progress io.Writer) (ok bool, err error) {
	workloads, clusters, err := scaleSize(o.scale)
	if err != nil {
		return false, err
	}
	s := &scale{rest: o.rest, progress: progress}
	for i := range workloads {
		s.names = append(s.names, fmt.Sprintf("web-%04d", i))
	}
	measure, registered := s.run, clusters
	if o.copied {
		measure, registered = func(ctx context.Context) error { return s.copied(ctx, clusters) }, 1
	}
	err = onHub(ctx, registered, progress, func(ctx context.Context, h *hub, o *operator, m *members) (err error) {
		s.hub, s.operator, s.members = h, o, m
		s.seen, s.changed = &sight{}, &sight{}
		if err := watchReady(ctx, h, s.seen, s.changed); err != nil {
			return err
		}
		return measure(ctx)
	})
	if err != nil {
		return false, err
	}
	ok = true
	for _, line := range s.lines {
		if o.shape && !line.always {
			continue
		}
		ok = ok && line.ok()
		fmt.Println(line)
	}
	return ok, nil
}

func (s *scale) run(ctx context.Context) error {
	bare, err := s.bareClient(ctx)
	if err != nil {
		return fmt.Errorf("bare client: %w", err)
	}
	before, err := s.operator.figures(ctx)
	if err != nil {
		return err
	}
	created, err := s.step(ctx, "create", s.names, metav1.ConditionTrue, func(ctx context.Context) error {
		return s.each(ctx, s.names, func(ctx context.Context, name string) error { return s.workload(name).create(ctx) })
	})
	if err != nil {
		return err
	}
	pairs := float64(len(s.names) * len(s.hub.clusters))
	s.line("create, beside a bare client", created.clock.Seconds()/bare.Seconds(), 1.3)
	s.line("first Ready, of the whole time", created.first.Seconds()/created.clock.Seconds(), 0.05)
	s.line("create, writes to the hub for each ManifestWork", float64(created.writes())/pairs, 1.1)
	s.line("create, reads for each ManifestWork", float64(created.reads())/pairs, 0.1)
	s.always("create, refused writes, of all", created.refused(), 0.01)
	s.line("create, most memory, MiB", float64(created.memory)/(1<<20), 1024)
	s.line("create, most memory for each ManifestWork, KiB", float64(created.memory-before.memory)/(1<<10)/pairs, 6)
	if err := s.changeOf(ctx, "change one", s.names[:1]); err != nil {
		return err
	}
	if err := s.changeOf(ctx, "change others", s.names[1:]); err != nil {
		return err
	}
	if err := s.loseOne(ctx); err != nil {
		return err
	}
	if err := s.restart(ctx); err != nil {
		return err
	}
	return s.atRest(ctx)
}

// changeOf changes the image of these FleetWorkloads, all at once.
func (s *scale) changeOf(ctx context.Context, name string, of []string) error {
	changed, err := s.step(ctx, name, of, metav1.ConditionTrue, func(ctx context.Context) error {
		return s.each(ctx, of, func(ctx context.Context, name string) error { return s.change(ctx, name, secondImage) })
	})
	if err != nil {
		return err
	}
	pairs := float64(len(of) * len(s.hub.clusters))
	s.line(name+", writes to the hub for each ManifestWork", float64(changed.writes())/pairs, 1.1)
	s.line(name+", reads for each ManifestWork", float64(changed.reads())/pairs, 0.1)
	s.always(name+", refused writes, of all", changed.refused(), 0.01)
	return nil
}

// loseOne has the agent of one cluster go silent, and come back.
func (s *scale) loseOne(ctx context.Context) error {
	for _, step := range []struct {
		name             string
		available, ready metav1.ConditionStatus
	}{{"cluster lost", metav1.ConditionUnknown, metav1.ConditionFalse}, {"cluster back", metav1.ConditionTrue, metav1.ConditionTrue}} {
		took, err := s.step(ctx, step.name, s.names, step.ready, func(ctx context.Context) error { return s.available(ctx, step.available) })
		if err != nil {
			return err
		}
		// The resident one is on the cluster, too. Events are created.
		s.line(step.name+", status writes for each FleetWorkload", float64(took.patches())/float64(len(s.names)+1), 1)
	}
	return s.changeBesideALostOne(ctx)
}

// available is what the hub has of the first cluster's agent.
func (s *scale) available(ctx context.Context, available metav1.ConditionStatus) error {
	cluster := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(ctx, client.ObjectKey{Name: s.hub.clusters[0]}, cluster); err != nil {
		return fmt.Errorf("read ManagedCluster: %w", err)
	}
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: available, Reason: "Simulated",
	})
	return s.hub.Status().Update(ctx, cluster)
}

const (
	// mostChanges is how many FleetWorkloads are changed one after the other.
	mostChanges = 20
	// besideImage is what they have after the change beside a lost cluster.
	besideImage = secondImage + "-beside"
)

// changing are the FleetWorkloads that are changed one after the other.
func (s *scale) changing() []string {
	return s.names[len(s.names)-min(mostChanges, len(s.names)):]
}

// changeBesideALostOne changes FleetWorkloads one after the other, at rest and while the statuses of all are to say that a cluster is lost.
func (s *scale) changeBesideALostOne(ctx context.Context) error {
	var err error
	if s.one, err = s.changes(ctx, secondImage+"-next", metav1.ConditionTrue, len(s.hub.clusters)); err != nil {
		return err
	}
	var beside []time.Duration
	_, err = s.step(ctx, "lost, changed", s.names, metav1.ConditionFalse, func(ctx context.Context) error {
		if err := s.available(ctx, metav1.ConditionUnknown); err != nil {
			return err
		}
		beside, err = s.changes(ctx, besideImage, metav1.ConditionFalse, len(s.hub.clusters)-1)
		return err
	})
	if err != nil {
		return err
	}
	s.line("the slowest change beside a lost cluster, of the slowest at rest", slices.Max(beside).Seconds()/slices.Max(s.one).Seconds(), 2)
	_, err = s.step(ctx, "back", s.names, metav1.ConditionTrue, func(ctx context.Context) error { return s.available(ctx, metav1.ConditionTrue) })
	return err
}

// changes changes images one after the other, each until so many clusters have it and the status says so.
func (s *scale) changes(ctx context.Context, image string, ready metav1.ConditionStatus, applied int) (took []time.Duration, err error) {
	for _, name := range s.changing() {
		w := s.workload(name)
		if err := s.hub.Get(ctx, client.ObjectKeyFromObject(w.workload), w.workload); err != nil {
			return nil, fmt.Errorf("read FleetWorkload %s: %w", name, err)
		}
		start := time.Now()
		s.changed.begin([]string{name}, ready, applied, w.workload.Generation)
		if err := s.change(ctx, name, image); err != nil {
			return nil, err
		}
		if err := s.changed.await(ctx, s.patience()); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	s.printMedian("one change", took)
	return took, nil
}

func (s *scale) restart(ctx context.Context) error {
	if err := s.operator.stop(); err != nil {
		return err
	}
	start := time.Now()
	if err := s.operator.start(ctx); err != nil {
		return err
	}
	// Passes from before its caches are full come to no end, and nothing follows them until then.
	err := pollFor(ctx, s.patience(), "the operator to read all reports", func() error {
		n, err := s.operator.observed(ctx)
		if err == nil && n < len(s.names) {
			err = fmt.Errorf("it has read those of %d FleetWorkloads of %d", n, len(s.names))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.settled(ctx, len(s.names)); err != nil {
		return err
	}
	clock := time.Since(start) - quiet
	after, err := s.operator.figures(ctx)
	if err != nil {
		return err
	}
	after.clock = clock
	fmt.Fprintf(s.progress, "%-14s %s\n", "restart", after)
	s.line("restart, seconds", clock.Seconds(), 60)
	s.always("restart, writes", float64(after.writes()), 0)
	return nil
}

func (s *scale) atRest(ctx context.Context) error {
	before, err := s.operator.figures(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.rest):
	}
	after, err := s.operator.figures(ctx)
	if err != nil {
		return err
	}
	rest := after.since(before)
	rest.clock = s.rest
	fmt.Fprintf(s.progress, "%-14s %s\n", "at rest", rest)
	s.always("at rest, writes", float64(rest.writes()), 0)
	s.line("at rest, reads", float64(rest.reads()), 0)
	s.line("at rest, of a processor", rest.processor.Seconds()/s.rest.Seconds(), 0.01)
	s.line("restart, most memory, MiB", float64(rest.memory)/(1<<20), 1024)
	return nil
}

// step measures from before do until these FleetWorkloads are Ready, or not, and the operator has nothing left to do.
func (s *scale) step(
	ctx context.Context, name string, of []string, ready metav1.ConditionStatus, do func(context.Context) error,
) (scaleFigures, error) {
	before, err := s.operator.figures(ctx)
	if err != nil {
		return scaleFigures{}, fmt.Errorf("%s: %w", name, err)
	}
	start := time.Now()
	s.seen.begin(of, ready, 0, 0)
	if err := do(ctx); err != nil {
		return scaleFigures{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := s.seen.await(ctx, s.patience()); err != nil {
		return scaleFigures{}, fmt.Errorf("%s: %w", name, err)
	}
	first, last := s.seen.times()
	if err := s.settled(ctx, 0); err != nil {
		return scaleFigures{}, fmt.Errorf("%s: %w", name, err)
	}
	after, err := s.operator.figures(ctx)
	if err != nil {
		return scaleFigures{}, fmt.Errorf("%s: %w", name, err)
	}
	took := after.since(before)
	took.first, took.clock = first.Sub(start), last.Sub(start)
	fmt.Fprintf(s.progress, "%-14s %s\n", name, took)
	return took, nil
}

func (s *scale) patience() time.Duration {
	return scalePatience * time.Duration(2+len(s.names)*len(s.hub.clusters)/1000)
}

// quiet is how long the operator makes no pass when it has settled: after its start it first has to connect.
const quiet = 3 * time.Second

// settled waits until the operator has made so many passes since its start, and makes none any more.
func (s *scale) settled(ctx context.Context, passes int) error {
	var last effort
	since := time.Now()
	return pollFor(ctx, s.patience(), "the operator to settle", func() error {
		e, err := s.operator.effort(ctx)
		if e.passes != last.passes || e.pending > 0 {
			last, since = e, time.Now()
		}
		if err == nil && (e.passes < passes || time.Since(since) < quiet) {
			err = fmt.Errorf("%d passes, %d before it", e.passes, e.pending)
		}
		return err
	})
}

func (s *scale) workload(name string) *byOperator {
	w := &byOperator{hub: s.hub}
	_ = w.prepare(context.Background(), name)
	return w
}

func (s *scale) change(ctx context.Context, name, image string) error {
	w := s.workload(name)
	if err := s.hub.Get(ctx, client.ObjectKeyFromObject(w.workload), w.workload); err != nil {
		return fmt.Errorf("read FleetWorkload %s: %w", name, err)
	}
	return w.changeTo(ctx, image)
}

// each calls f for all names, several at once.
func (s *scale) each(ctx context.Context, names []string, f func(context.Context, string) error) error {
	return s.parallel(ctx, len(names), func(ctx context.Context, i int) error { return f(ctx, names[i]) })
}

// sight is which FleetWorkloads of those that are looked at have become as wanted since begin.
type sight struct {
	mu    sync.Mutex
	ready metav1.ConditionStatus
	// applied is on how many clusters at least the manifest has to be.
	applied int
	// before is the generation that those have which no longer count: others' news may make it as wanted just before an edit.
	before  int64
	missing map[string]bool
	// first and last are when one was as wanted.
	first, last time.Time
	all         chan struct{}
}

// watchReady shows them every FleetWorkload.
func watchReady(ctx context.Context, h *hub, sights ...*sight) error {
	watches, err := cache.New(h.config, cache.Options{Scheme: h.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("watch FleetWorkloads: %w", err)
	}
	informer, err := watches.GetInformer(ctx, &v1alpha1.FleetWorkload{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch FleetWorkloads: %w", err)
	}
	for _, s := range sights {
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: s.see, UpdateFunc: func(_, now any) { s.see(now) },
		}); err != nil {
			return fmt.Errorf("watch FleetWorkloads: %w", err)
		}
	}
	go func() { _ = watches.Start(ctx) }() // whoever awaits gives up in the end
	return nil
}

func (s *sight) see(obj any) {
	fw, ok := obj.(*v1alpha1.FleetWorkload)
	if !ok {
		return
	}
	ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.missing[fw.Name] || fw.Generation <= s.before || ready == nil || ready.ObservedGeneration != fw.Generation || ready.Status != s.ready {
		return
	}
	if c := fw.Status.ClusterSummary; s.applied > 0 && (c == nil || int(ptr.Deref(c.Applied, 0)) < s.applied) {
		return
	}
	delete(s.missing, fw.Name)
	s.last = time.Now()
	if s.first.IsZero() {
		s.first = s.last
	}
	if len(s.missing) == 0 {
		close(s.all)
	}
}

// begin looks for FleetWorkloads to reach a status of the condition Ready, and that number of clusters, with a generation after the one before. What is
// there already is not seen.
func (s *sight) begin(names []string, ready metav1.ConditionStatus, applied int, before int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.applied, s.before, s.missing, s.first, s.all = ready, applied, before, map[string]bool{}, time.Time{}, make(chan struct{})
	for _, name := range names {
		s.missing[name] = true
	}
}

// await waits until all are as wanted.
func (s *sight) await(ctx context.Context, patience time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.all:
		return nil
	case <-time.After(patience):
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("%d FleetWorkloads are not as wanted after %s", len(s.missing), patience)
	}
}

// times are when the first and the last one were as wanted.
func (s *sight) times() (first, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, s.last
}
