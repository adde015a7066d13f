package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// beside is what many FleetWorkloads on Karmada cost, beside as many workloads with PropagationPolicies and nobody else.
type beside struct {
	*stage
	n     int
	lines []scaleLine
	// clusters are where they go, by Karmada's names; registered are those of them that are simulated, nil when none is.
	clusters   []string
	registered *registered
}

// onKarmada prints a line for each figure, and tells whether all are within their bars.
func onKarmada(ctx context.Context, o options, progress io.Writer) (ok bool, err error) {
	n, err := strconv.Atoi(o.karmada)
	if err != nil || n < 1 {
		return false, fmt.Errorf("-karmada %q: write a number above 0, such as 60", o.karmada)
	}
	members := lab.DefaultMembers
	if o.registered > 0 {
		members = 1
	}
	fleet, release, err := testFleet(ctx, o.fleet, members, progress)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	s, err := newStage(ctx, fleet, o.direct, progress)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b := &beside{stage: s, n: n}
	end, err := b.choose(ctx, fleet, o.registered)
	if err != nil {
		return false, err
	}
	defer end()
	if err := b.run(ctx, o.rounds); err != nil {
		return false, fmt.Errorf("%d workloads on Karmada: %w\nlast lines of the operator's log:\n%s", n, err, s.operator.tail(20))
	}
	ok = true
	for _, line := range b.lines {
		ok = ok && line.ok()
		fmt.Println(line)
	}
	return ok, nil
}

// choose takes the fleet's members as clusters, or registers simulated ones, which answer until the end.
func (b *beside) choose(ctx context.Context, fleet *lab.Fleet, simulated int) (end func(), err error) {
	if simulated == 0 {
		for _, m := range fleet.Members() {
			b.clusters = append(b.clusters, m.KarmadaName)
		}
		return func() {}, nil
	}
	ctx, stop := context.WithCancel(ctx)
	b.registered, err = startRegistered(ctx, fleet, b.others[lab.Karmada], simulated, b.progress)
	if err != nil {
		stop()
		return nil, err
	}
	b.clusters = b.registered.names
	return func() {
		stop()
		b.registered.ended.Wait()
	}, nil
}

// taken is what one step took.
type taken struct {
	clock  time.Duration
	effort effort
	writes writes
}

// run has both sides in turn, and compares the medians of the rounds.
func (b *beside) run(ctx context.Context, rounds int) error {
	steps := []string{"create", "change"}
	plain, ours := map[string][]taken{}, map[string][]taken{}
	for round := range rounds {
		for _, side := range []struct {
			name string
			do   func(ctx context.Context, namespace, step string) error
			all  func(namespace string) awaited
			took map[string][]taken
		}{{"plain", b.plain, b.workloads, plain}, {"ours", b.ours, b.fleetWorkloads, ours}} {
			namespace := fmt.Sprintf("bench-%s-%d", side.name, round)
			if err := b.ensureNamespace(ctx, namespace); err != nil {
				return err
			}
			for _, step := range steps {
				took, err := b.measure(ctx, func() error { return side.do(ctx, namespace, step) }, side.all(namespace))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", side.name, step, err)
				}
				fmt.Fprintf(b.progress, "%s %s: %.1fs\n%s", side.name, step, took.clock.Seconds(), move{load: loadAverage(), effort: took.effort, writes: took.writes}.detail())
				side.took[step] = append(side.took[step], took)
			}
			if err := errors.Join(b.clear(ctx, namespace, side.name == "plain"), b.worksGone(ctx, namespace)); err != nil {
				return err
			}
		}
	}
	for _, step := range steps {
		b.compare(step, plain[step], ours[step])
	}
	return nil
}

func (b *beside) compare(step string, plain, ours []taken) {
	clock := func(of []taken) float64 {
		var all []time.Duration
		for _, t := range of {
			all = append(all, t.clock)
		}
		return median(all).Seconds()
	}
	var passes, writes float64
	for _, t := range ours {
		passes += float64(t.effort.passes)
		writes += float64(t.writes.management + t.writes.karmada + t.writes.hub)
	}
	each := float64(b.n * len(ours))
	if !b.direct {
		b.lines = append(b.lines, scaleLine{name: step + ", writes for each FleetWorkload", value: writes / each, bar: 8})
	}
	b.lines = append(b.lines,
		scaleLine{name: fmt.Sprintf("%s %d on %d clusters of Karmada, beside plain Karmada", step, b.n, len(b.clusters)), value: clock(ours) / clock(plain), bar: 1.2},
		scaleLine{name: step + ", passes for each FleetWorkload", value: passes / each, bar: 10})
}

// measure takes the time from before do until all objects of that kind are ready, and counts until the operator has nothing left to do.
func (b *beside) measure(ctx context.Context, do func() error, all awaited) (taken, error) {
	before, err := b.operator.effort(ctx)
	if err != nil {
		return taken{}, err
	}
	counted, err := b.countFromNow(ctx)
	if err != nil {
		return taken{}, err
	}
	running, cancel := b.operator.whileItRuns(ctx)
	defer cancel()
	began := time.Now()
	if err := do(); err != nil {
		return taken{}, err
	}
	if err := all.ready(running, b.n); err != nil {
		return taken{}, err
	}
	t := taken{clock: time.Since(began)}
	err = pollFor(ctx, handOverPatience, "the operator to be idle", func() error {
		after, err := b.operator.effort(ctx)
		if err == nil && after.pending > 0 {
			err = fmt.Errorf("the operator has %d requests left", after.pending)
		}
		t.effort = effort{passes: after.passes - before.passes, processor: after.processor - before.processor}
		return errors.Join(err, b.operator.check())
	})
	if err != nil {
		return taken{}, err
	}
	t.writes, err = counted()
	return t, err
}

// awaited are objects of one kind in a namespace, and what is wrong with one that is not ready, else nothing.
type awaited struct {
	client    client.WithWatch
	kind      client.ObjectList
	namespace string
	wrong     func(client.Object) string
}

// ready waits until n are. It watches: a busy API server takes so long for a list that the time between two of them would show in the figures.
func (a awaited) ready(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, handOverPatience, fmt.Errorf("not within %s", handOverPatience))
	defer cancel()
	wrong, ready := map[string]string{}, 0
	for {
		events, err := a.client.Watch(ctx, a.kind, client.InNamespace(a.namespace)) // begins with what is there
		if err != nil {
			return fmt.Errorf("watch %T: %w", a.kind, err)
		}
		for e := range events.ResultChan() {
			object, is := e.Object.(client.Object)
			if !is {
				break
			}
			was, known := wrong[object.GetName()]
			now := a.wrong(object)
			if wrong[object.GetName()] = now; now == "" && (!known || was != "") {
				ready++
			} else if now != "" && known && was == "" {
				ready--
			}
			if ready == n {
				events.Stop()
				return nil
			}
		}
		events.Stop()
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("wait for %d to be ready, of which %d are: %w: %v", n, ready, err, wrong)
		}
	}
}

func (b *beside) ours(ctx context.Context, namespace, step string) error {
	replicas := int32(1)
	return parallel(ctx, b.n, func(i int) error {
		name := fmt.Sprintf("web-%03d", i)
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if step == "change" {
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": json.RawMessage(manifest(name, secondImage))}})
			return errors.Join(err, b.hub.Patch(ctx, fw, client.RawPatch(types.MergePatchType, patch)))
		}
		fw.Spec = v1alpha1.FleetWorkloadSpec{Backend: toKarmada, Replicas: &replicas, Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{Names: b.clusters}}}
		fw.Spec.Template.Raw = manifest(name, firstImage)
		return b.hub.Create(ctx, fw)
	})
}

func (b *beside) fleetWorkloads(namespace string) awaited {
	return awaited{b.hub, &v1alpha1.FleetWorkloadList{}, namespace, func(o client.Object) string {
		fw, is := o.(*v1alpha1.FleetWorkload)
		if !is {
			return fmt.Sprintf("it is a %T", o)
		}
		return notReady(fw)
	}}
}

// plain asks Karmada for the same workloads itself, with a PropagationPolicy each.
func (b *beside) plain(ctx context.Context, namespace, step string) error {
	karmada := b.others[lab.Karmada]
	if step == "create" {
		if err := client.IgnoreAlreadyExists(karmada.Create(ctx, namespaceObject(namespace))); err != nil {
			return fmt.Errorf("create namespace %s on Karmada: %w", namespace, err)
		}
	}
	return parallel(ctx, b.n, func(i int) error {
		workload, policy, err := b.workload(namespace, i, step)
		if err != nil {
			return err
		}
		if step == "change" {
			patch, err := json.Marshal(map[string]any{"spec": workload.Object["spec"]})
			return errors.Join(err, karmada.Patch(ctx, workload, client.RawPatch(types.MergePatchType, patch)))
		}
		return errors.Join(karmada.Create(ctx, policy), karmada.Create(ctx, workload))
	})
}

// workload is the one that a FleetWorkload would have, and the policy that brings it to all members.
func (b *beside) workload(namespace string, i int, step string) (*unstructured.Unstructured, *policyv1alpha1.PropagationPolicy, error) {
	name, image := fmt.Sprintf("web-%03d", i), firstImage
	if step == "change" {
		image = secondImage
	}
	workload := &unstructured.Unstructured{}
	if err := json.Unmarshal(manifest(name, image), &workload.Object); err != nil {
		return nil, nil, fmt.Errorf("decode the workload: %w", err)
	}
	workload.SetNamespace(namespace)
	if err := unstructured.SetNestedField(workload.Object, int64(1), "spec", "replicas"); err != nil {
		return nil, nil, fmt.Errorf("set replicas: %w", err)
	}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: workload.GetAPIVersion(), Kind: workload.GetKind(), Name: name}}
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: b.clusters}
	return workload, policy, nil
}

// workloads are ready by what Karmada has put together of the members' status.
func (b *beside) workloads(namespace string) awaited {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSetList"})
	return awaited{b.others[lab.Karmada], list, namespace, func(o client.Object) string {
		workload, is := o.(*unstructured.Unstructured)
		if !is {
			return fmt.Sprintf("it is a %T", o)
		}
		observed, _, _ := unstructured.NestedInt64(workload.Object, "status", "observedGeneration")
		ready, _, _ := unstructured.NestedInt64(workload.Object, "status", "updatedReadyReplicas")
		if observed != workload.GetGeneration() || ready != int64(len(b.clusters)) {
			return fmt.Sprintf("generation %d of %d, %d of %d ready", observed, workload.GetGeneration(), ready, len(b.clusters))
		}
		return ""
	}}
}

// clear removes what was created, so that the next one has the fleet to itself.
func (b *beside) clear(ctx context.Context, namespace string, plain bool) error {
	if !plain {
		return b.remove(ctx, namespace)
	}
	karmada := b.others[lab.Karmada]
	workloads := &unstructured.Unstructured{}
	workloads.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"})
	for _, of := range []client.Object{workloads, &policyv1alpha1.PropagationPolicy{}} {
		if err := karmada.DeleteAllOf(ctx, of, client.InNamespace(namespace)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T on Karmada: %w", of, err)
		}
	}
	err := pollFor(ctx, handOverPatience, "the end of all pods", func() error {
		pods, err := b.pods(ctx, namespace)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods))
		}
		return err
	})
	return errors.Join(err, b.removeNamespace(ctx, namespace))
}

// worksGone waits until nothing of a namespace is left for simulated clusters.
func (b *beside) worksGone(ctx context.Context, namespace string) error {
	if b.registered == nil {
		return nil
	}
	return pollFor(ctx, handOverPatience, "the end of all Works", func() error { return b.registered.worksGone(ctx, namespace) })
}
