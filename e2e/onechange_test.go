//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// history is every state that one member's object went through.
type history struct {
	name    string
	watcher watch.Interface
	done    chan struct{}

	mu     sync.Mutex
	states []*unstructured.Unstructured
	gone   bool
}

// follow watches the members' objects, from what is there now.
func follow(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind, names ...string) map[string]*history {
	GinkgoHelper()
	all := map[string]*history{}
	for _, name := range names {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		opts := []client.ListOption{client.InNamespace(fw.Namespace), client.MatchingFields{"metadata.name": fw.Name}}
		Expect(member(name).List(ctx, list, opts...)).To(Succeed())
		h := &history{name: name, done: make(chan struct{})}
		for i := range list.Items {
			h.states = append(h.states, &list.Items[i])
		}
		raw := &client.ListOptions{}
		raw.ApplyOptions(opts)
		raw.Raw = raw.AsListOptions()
		raw.Raw.ResourceVersion = list.GetResourceVersion()
		var err error
		h.watcher, err = member(name).Watch(context.WithoutCancel(ctx), list, raw)
		Expect(err).NotTo(HaveOccurred())
		go h.run()
		DeferCleanup(h.watcher.Stop)
		all[name] = h
	}
	return all
}

func (h *history) run() {
	defer close(h.done)
	for event := range h.watcher.ResultChan() {
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		h.mu.Lock()
		h.gone = h.gone || event.Type == watch.Deleted
		h.states = append(h.states, obj)
		h.mu.Unlock()
	}
}

// changes lists the specs that the object had, one after the other, with the generation at which each came. It is an
// error when the watch broke off or the object was deleted.
func (h *history) changes() ([]want, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
		return nil, "", fmt.Errorf("the watch on %s ended early", h.name)
	default:
	}
	if h.gone {
		return nil, "", fmt.Errorf("the object on %s was deleted", h.name)
	}
	var specs []want
	var last any
	trace := ""
	for _, s := range h.states {
		if spec := s.Object["spec"]; !reflect.DeepEqual(spec, last) {
			specs = append(specs, specOf(s))
			last = spec
		}
		trace += fmt.Sprintf("  %s generation %d %+v revision %s\n", h.name, s.GetGeneration(), specOf(s), s.GetAnnotations()[v1alpha1.AnnotationRevision])
	}
	return specs, trace, nil
}

// generations are how many new generations the object got.
func (h *history) generations() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[len(h.states)-1].GetGeneration() - h.states[0].GetGeneration()
}

// sees waits until the member shows the wanted spec, and wants it to have come in one step of one generation.
func (h *history) sees(ctx context.Context, before, after want) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		specs, _, err := h.changes()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(specs[len(specs)-1]).To(Equal(after))
	}).WithContext(ctx).Should(Succeed())
	specs, trace, err := h.changes()
	Expect(err).NotTo(HaveOccurred())
	expected := []want{before}
	if before != after {
		expected = append(expected, after)
	}
	Expect(specs).To(Equal(expected), "every spec that %s had:\n%s", h.name, trace)
	Expect(h.generations()).To(BeEquivalentTo(1), "generations of %s:\n%s", h.name, trace)
}

var _ = forEach("One change, one rollout", func(backend string, k kind) {
	var (
		fw *v1alpha1.FleetWorkload
		m  []string
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		m = world.members
		fw = workload(newNamespace(ctx, "one"), "web", backend, k, 6)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
		fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", m[1])}
		create(ctx, fw)
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {4, imageOld, "info"}, m[1]: {2, imageOld, "debug"}})
	})

	It("holds for image, override and replicas in one edit", func(ctx SpecContext) {
		members := follow(ctx, fw, k, m[0], m[1])
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, imageNew)
			fw.Spec.Replicas = ptr(int32(9))
			fw.Spec.Overrides = []v1alpha1.Override{envOverride("trace", m[1]), envOverride("warn", m[0])}
		})
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {6, imageNew, "warn"}, m[1]: {3, imageNew, "trace"}})
		members[m[0]].sees(ctx, want{4, imageOld, "info"}, want{6, imageNew, "warn"})
		members[m[1]].sees(ctx, want{2, imageOld, "debug"}, want{3, imageNew, "trace"})
	})

	It("holds for an edit that only scales", func(ctx SpecContext) {
		members := follow(ctx, fw, k, m[0], m[1])
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) })
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {2, imageNew, "warn"}, m[1]: {1, imageNew, "trace"}})
		members[m[0]].sees(ctx, want{6, imageNew, "warn"}, want{2, imageNew, "warn"})
		members[m[1]].sees(ctx, want{3, imageNew, "trace"}, want{1, imageNew, "trace"})
	})

	It("holds for an edit that only changes weights", func(ctx SpecContext) {
		members := follow(ctx, fw, k, m[0], m[1])
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Placement.Division = divided(weight(1, m[0]), weight(2, m[1]))
		})
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {1, imageNew, "warn"}, m[1]: {2, imageNew, "trace"}})
		members[m[0]].sees(ctx, want{2, imageNew, "warn"}, want{1, imageNew, "warn"})
		members[m[1]].sees(ctx, want{1, imageNew, "trace"}, want{2, imageNew, "trace"})
	})

	It("holds for an edit that also brings a cluster in", func(ctx SpecContext) {
		members := follow(ctx, fw, k, m...)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, imageOld)
			fw.Spec.Replicas = ptr(int32(8))
			fw.Spec.Placement.Clusters = on(m...)
			fw.Spec.Placement.Division = divided(weight(1, m[0]), weight(2, m[1]), weight(1, m[2]))
			fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", m[1], m[2]), envOverride("warn", m[0])}
		})
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {2, imageOld, "warn"}, m[1]: {4, imageOld, "debug"}, m[2]: {2, imageOld, "debug"}})
		members[m[0]].sees(ctx, want{1, imageNew, "warn"}, want{2, imageOld, "warn"})
		members[m[1]].sees(ctx, want{2, imageNew, "trace"}, want{4, imageOld, "debug"})
		specs, trace, err := members[m[2]].changes()
		Expect(err).NotTo(HaveOccurred())
		Expect(specs).To(Equal([]want{{2, imageOld, "debug"}}), "every spec that %s had:\n%s", m[2], trace)
	})
}, Label("laws", "law1"), Ordered)
