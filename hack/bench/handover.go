package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// handOverPatience is how long any step of a hand-over of many may take: creation, the moves, deletion.
const handOverPatience = 20 * time.Minute

// handOvers measures how long FleetWorkloads take that are moved from Karmada to OCM all at once, and back, on a fleet with
// real members, and what is written for it. It is false when a pod was disturbed; times have no bars.
func handOvers(ctx context.Context, o options, progress io.Writer) (ok bool, err error) {
	counts, err := readCounts(o.migrations)
	if err != nil {
		return false, err
	}
	fleet, release, err := testFleet(ctx, o.fleet, lab.DefaultMembers, progress)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	s, err := newStage(ctx, fleet, false, progress)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ok = true
	for _, n := range counts {
		rounds := 1
		if n == 1 {
			rounds = o.rounds
		}
		there, back, err := s.thereAndBack(ctx, n, rounds)
		if err != nil {
			return false, fmt.Errorf("hand over %d FleetWorkloads: %w\nlast lines of the operator's log:\n%s", n, err, s.operator.tail(20))
		}
		for _, of := range [][]move{there, back} {
			m := summary(of)
			ok = ok && m.disturbed == 0
			fmt.Println(m)
		}
	}
	return ok, nil
}

func readCounts(text string) ([]int, error) {
	var counts []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-migrations %q: write numbers above 0 with commas between them, such as 1,100", text)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// thereAndBack has n FleetWorkloads on Karmada, and moves them in rounds.
func (s *stage) thereAndBack(ctx context.Context, n, rounds int) (there, back []move, err error) {
	namespace := fmt.Sprintf("bench-%d", n)
	if err := s.create(ctx, namespace, n); err != nil {
		return nil, nil, fmt.Errorf("create them: %w", err)
	}
	for range rounds {
		for _, direction := range []struct {
			to    string
			moves *[]move
		}{{"ocm", &there}, {"karmada", &back}} {
			m, err := s.move(ctx, namespace, n, direction.to)
			if err != nil {
				return nil, nil, fmt.Errorf("to %s: %w", direction.to, err)
			}
			fmt.Fprintf(s.progress, "%s\n%s", m, m.detail())
			*direction.moves = append(*direction.moves, m)
		}
	}
	return there, back, s.remove(ctx, namespace)
}

// create makes FleetWorkloads with one pod on every member, and waits until they are ready.
func (s *stage) create(ctx context.Context, namespace string, n int) error {
	fmt.Fprintf(s.progress, "creating %d FleetWorkloads on Karmada\n", n)
	if err := s.ensureNamespace(ctx, namespace); err != nil {
		return err
	}
	replicas := int32(1)
	err := parallel(ctx, n, func(i int) error {
		name := fmt.Sprintf("web-%03d", i)
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		fw.Spec = v1alpha1.FleetWorkloadSpec{
			Backend: "karmada", Replicas: &replicas, Template: runtime.RawExtension{Raw: manifest(name, firstImage)},
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
		}
		return s.hub.Create(ctx, fw)
	})
	if err != nil {
		return err
	}
	return s.awaitQuiet(ctx, namespace)
}

// move is one change of backend of many FleetWorkloads at once.
type move struct {
	to       string
	n, pods  int
	clusters int
	// each is how long every one took from its own change of spec.backend to the end of its hand-over, all from the first
	// change to the last end, settled until all were ready and the operator had nothing left to do.
	each         []time.Duration
	all, settled time.Duration
	writes       writes
	disturbed    int
	effort       effort
	load         string
}

// move changes spec.backend of all at once and watches them.
func (s *stage) move(ctx context.Context, namespace string, n int, to string) (move, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handOverPatience, fmt.Errorf("not within %s", handOverPatience))
	defer cancel()
	m := move{to: to, n: n, clusters: len(s.members)}
	pods, err := s.pods(ctx, namespace)
	if err != nil {
		return m, err
	}
	m.pods = len(pods)
	before, err := s.operator.effort(ctx)
	if err != nil {
		return m, err
	}
	counted, err := s.countFromNow(ctx)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if m.each, err = s.switchAll(ctx, namespace, to); err != nil {
		return m, err
	}
	m.all = time.Since(began)
	if err := s.awaitQuiet(ctx, namespace); err != nil {
		return m, err
	}
	m.settled = time.Since(began)
	m.load = loadAverage()
	if m.writes, err = counted(); err != nil {
		return m, err
	}
	after, err := s.operator.effort(ctx)
	if err != nil {
		return m, err
	}
	m.effort = effort{passes: after.passes - before.passes, processor: after.processor - before.processor}
	now, err := s.pods(ctx, namespace)
	m.disturbed, m.writes.moves = disturbed(pods, now), n
	return m, err
}

// switchAll returns how long each took.
func (s *stage) switchAll(ctx context.Context, namespace, to string) ([]time.Duration, error) {
	list := &v1alpha1.FleetWorkloadList{}
	if err := s.hub.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list FleetWorkloads: %w", err)
	}
	events, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &toolscache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return s.hub.Watch(ctx, &v1alpha1.FleetWorkloadList{}, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch FleetWorkloads: %w", err)
	}
	defer events.Stop()
	starts := make([]time.Time, len(list.Items))
	switched := make(chan error, 1)
	go func() {
		switched <- parallel(ctx, len(list.Items), func(i int) error {
			starts[i] = time.Now()
			before := list.Items[i].DeepCopy()
			list.Items[i].Spec.Backend = to
			return s.hub.Patch(ctx, &list.Items[i], client.MergeFrom(before))
		})
	}()
	ends, err := s.awaitEnds(ctx, events.ResultChan(), len(list.Items), to)
	if err := errors.Join(<-switched, err); err != nil {
		return nil, err
	}
	each := make([]time.Duration, 0, len(starts))
	for i := range starts {
		each = append(each, ends[list.Items[i].Name].Sub(starts[i]))
	}
	return each, nil
}

// awaitEnds tells when each hand-over has ended.
func (s *stage) awaitEnds(ctx context.Context, events <-chan watch.Event, n int, to string) (map[string]time.Time, error) {
	ends, last := map[string]time.Time{}, map[string]*v1alpha1.FleetWorkload{}
	for len(ends) < n {
		select {
		case e, open := <-events:
			fw, is := e.Object.(*v1alpha1.FleetWorkload)
			if !open || !is {
				return nil, errors.Join(fmt.Errorf("the watch of FleetWorkloads has ended: %v", e.Object), context.Cause(ctx))
			}
			last[fw.Name] = fw
			if _, known := ends[fw.Name]; !known && handedOver(fw, to) {
				ends[fw.Name] = time.Now()
			}
			if m := fw.Status.Migration; m != nil && m.Approval != "" {
				return nil, fmt.Errorf("it failed: %s", describe(fw))
			}
		case <-s.operator.ended:
			return nil, s.operator.check()
		case <-ctx.Done():
			return nil, unfinished(context.Cause(ctx), last, ends)
		}
	}
	return ends, nil
}

// unfinished names some of those that have not moved.
func unfinished(cause error, last map[string]*v1alpha1.FleetWorkload, ends map[string]time.Time) error {
	errs := []error{fmt.Errorf("%d have moved: %w", len(ends), cause)}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if _, ended := ends[name]; !ended && len(errs) < 6 {
			errs = append(errs, errors.New(describe(last[name])))
		}
	}
	return errors.Join(errs...)
}

func handedOver(fw *v1alpha1.FleetWorkload, to string) bool {
	m := fw.Status.Migration
	return fw.Status.Backend == to && m != nil && m.Phase == "" && len(m.History) > 0 && m.History[0].To == to
}

// notReady says why a FleetWorkload is not ready; empty when it is.
func notReady(fw *v1alpha1.FleetWorkload) string {
	ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != fw.Generation {
		return describe(fw)
	}
	return ""
}

// describe is what its status says.
func describe(fw *v1alpha1.FleetWorkload) string {
	text := fmt.Sprintf("FleetWorkload %s, backend %s, wanted %s", fw.Name, fw.Status.Backend, fw.Spec.Backend)
	if m := fw.Status.Migration; m != nil {
		text += fmt.Sprintf(", phase %q, problems %q, failure %q", m.Phase, m.Problems, m.Failure)
		for _, c := range m.Clusters {
			text += fmt.Sprintf(", %s %s %q", c.Name, c.Phase, c.Message)
		}
	}
	for _, c := range fw.Status.Conditions {
		text += fmt.Sprintf(", %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

// awaitQuiet waits until all are ready and the operator has nothing left to do.
func (s *stage) awaitQuiet(ctx context.Context, namespace string) error {
	return pollFor(ctx, handOverPatience, "all FleetWorkloads to be ready, and the operator to be idle", func() error {
		if err := s.operator.check(); err != nil {
			return err
		}
		e, err := s.operator.effort(ctx)
		if err != nil || e.pending > 0 {
			return errors.Join(fmt.Errorf("the operator has %d requests left", e.pending), err)
		}
		list := &v1alpha1.FleetWorkloadList{}
		if err := s.hub.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if why := notReady(&list.Items[i]); why != "" {
				return errors.New(why)
			}
		}
		return nil
	})
}

// parallel calls f for 0 to n-1, a few at once.
func parallel(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, writers, n, func(i int) { errs[i] = f(i) })
	return errors.Join(append(errs, ctx.Err())...)
}

// remove deletes the FleetWorkloads and their namespace.
func (s *stage) remove(ctx context.Context, namespace string) error {
	if err := s.hub.DeleteAllOf(ctx, &v1alpha1.FleetWorkload{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete FleetWorkloads: %w", err)
	}
	err := pollFor(ctx, handOverPatience, "the end of all FleetWorkloads", func() error {
		list := &v1alpha1.FleetWorkloadList{}
		if err := s.hub.List(ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d are left, such as: %s", len(list.Items), describe(&list.Items[0]))
	})
	return errors.Join(err, s.removeNamespace(ctx, namespace))
}

// summary takes the medians of several moves in one direction.
func summary(of []move) move {
	m := of[0]
	var all, settled []time.Duration
	for i, one := range of {
		all, settled = append(all, one.all), append(settled, one.settled)
		if i > 0 {
			m.each = append(slices.Clone(m.each), one.each...)
			m.writes = m.writes.plus(one.writes)
			m.disturbed += one.disturbed
		}
	}
	m.all, m.settled = median(all), median(settled)
	return m
}

// String is the line that is printed. Writes are those for one FleetWorkload; of one cluster where it says so.
func (m move) String() string {
	verdict := "ok"
	if m.disturbed > 0 {
		verdict = "short"
	}
	each, w := m.writes.per(m.clusters), m.writes
	of := func(n int) float64 { return float64(n) / float64(w.moves) }
	return fmt.Sprintf("migration-to-%s/%d all=%.1fs each=%.1fs slowest=%.1fs settled=%.1fs writes: management=%.1f karmada=%.1f hub=%.1f "+
		"hub-per-cluster=%.1f member=%.1f pods=%d disturbed=%d %s", m.to, m.n, m.all.Seconds(), median(m.each).Seconds(),
		slices.Max(m.each).Seconds(), m.settled.Seconds(), of(w.management), of(w.karmada), of(w.hub), each.hub, each.member, m.pods, m.disturbed, verdict)
}

// detail explains a line.
func (m move) detail() string {
	text := fmt.Sprintf("  load %s; operator %s of processor time, %d passes\n", m.load, m.effort.processor.Round(10*time.Millisecond), m.effort.passes)
	for _, kind := range slices.Sorted(maps.Keys(m.writes.kinds)) {
		text += fmt.Sprintf("  %6d %s\n", m.writes.kinds[kind], kind)
	}
	return text
}

// loadAverage is how many processes have wanted a processor in the last minute.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(raw), " ")
	return load
}

// tail are the last lines of the operator's log.
func (o *operator) tail(lines int) string {
	log, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n") + "\nall of it: " + filepath.Clean(o.log)
}
