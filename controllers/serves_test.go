package controllers

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestAnotherOperatorsFleetWorkloads: an operator writes nothing for namespaces that it does not serve, and goes on with one that it gets.
func TestAnotherOperatorsFleetWorkloads(t *testing.T) {
	w := newWorld(t)
	var err error
	if w.Serves, err = labels.Parse("shard=a"); err != nil {
		t.Fatal(err)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName("shop")
	namespace.SetLabels(map[string]string{"shard": "b"})
	if err := w.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.create(divide(8))
	before := w.writes
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if w.writes != before {
		t.Errorf("%d writes for what is another's", w.writes-before)
	}
	namespace.SetLabels(map[string]string{"shard": "a"})
	if err := w.client.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.settle()
	fw := &v1alpha1.FleetWorkload{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, fw); err != nil {
		t.Fatal(err)
	}
	if fw.Status.ObservedGeneration == nil {
		t.Error("nobody has looked at it")
	}
	for _, req := range w.requestsIn(t.Context(), namespace) {
		if req.Name != "web" {
			t.Errorf("a change of the namespace asks for %s", req)
		}
	}
	if w.Namespaces = []string{"other"}; w.requestsIn(t.Context(), namespace) != nil {
		t.Error("a namespace that is not watched is looked at")
	}
}

// slowCache shows a FleetWorkload as it was, and of namespaces these labels, or this error.
type slowCache struct {
	client.Client
	fw    *v1alpha1.FleetWorkload
	shard string
	err   error
}

func (c *slowCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch obj := obj.(type) {
	case *v1alpha1.FleetWorkload:
		c.fw.DeepCopyInto(obj)
		return nil
	case *metav1.PartialObjectMetadata:
		obj.Labels = map[string]string{"shard": c.shard}
		return c.err
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// live counts what is read past the cache.
type live struct {
	client.Client
	reads int
	err   error
}

func (l *live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if l.reads++; l.err != nil {
		return l.err
	}
	return l.Client.List(ctx, list, opts...)
}

// shardA is a world with an operator that serves the shard a, through a slow cache.
func shardA(t *testing.T, shard string) (*world, *slowCache, *live) {
	t.Helper()
	w := newWorld(t)
	w.Serves = labels.SelectorFromSet(labels.Set{"shard": "a"})
	w.create(divide(8))
	cache, past := &slowCache{Client: w.client, fw: w.get(), shard: shard}, &live{Client: w.client}
	w.Client, w.Live = cache, past
	return w, cache, past
}

// waits runs a pass, which is to do nothing but to wait for the cache.
func (w *world) waits(what string) {
	w.t.Helper()
	written, sent := w.writes, w.backend.Writes()
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != conflictRetry || w.writes != written || w.backend.Writes() != sent {
		w.t.Errorf("%s: %+v, %v, %d writes here and %d on the backend", what, result, err, w.writes-written, w.backend.Writes()-sent)
	}
}

// TestOwnWritesAreKnownWhileANamespaceCannotBeRead, so that no pass after that goes by a FleetWorkload from before them.
func TestOwnWritesAreKnownWhileANamespaceCannotBeRead(t *testing.T) {
	w, cache, past := shardA(t, "a")
	if _, err := w.reconcile(); err != nil { // it writes the finalizer
		t.Fatal(err)
	}
	w.waits("before its own write is there")
	cache.err = errors.New("no answer")
	if _, err := w.reconcile(); !errors.Is(err, cache.err) {
		t.Errorf("without the labels of the namespace: %v", err)
	}
	cache.err = nil
	w.waits("once the namespace can be read")
	if past.reads != 0 {
		t.Errorf("%d reads past the cache", past.reads)
	}
}

// TestANamespaceThatIsTakenOver: no pass goes by a record from before another operator's last write, or one's own, whichever the cache does not show
// yet. That is read once, and nothing is when the operator goes on.
func TestANamespaceThatIsTakenOver(t *testing.T) {
	for name, before := range map[string]string{"that it has never had": "b", "that it had before": "a"} {
		t.Run(name, func(t *testing.T) {
			w, cache, past := shardA(t, before)
			for range 3 {
				cache.fw = w.get()
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			cache.fw = w.get()
			cache.shard = "b"
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Labels = map[string]string{"written": "by another"} })
			cache.shard, past.err = "a", errors.New("no answer")
			written, sent := w.writes, w.backend.Writes()
			if _, err := w.reconcile(); !errors.Is(err, past.err) || w.writes != written || w.backend.Writes() != sent {
				t.Errorf("while it cannot know: %v", err)
			}
			past.err = nil
			w.waits("before the other one's write is there")
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(9)) })
			for range 5 {
				cache.fw = w.get() // of what it waits for, only what came after
				w.later(3)         // and neither numbers nor words are written more often
				if result, err := w.reconcile(); err != nil || result.RequeueAfter == conflictRetry {
					t.Fatalf("%+v, %v", result, err)
				}
			}
			if past.reads != 2 || w.writes == written {
				t.Errorf("%d reads past the cache, %d writes", past.reads, w.writes-written)
			}
		})
	}
}

// TestAWriteThatABackupDoesNotHave: an API server was restored from a backup, and the operator goes on with what is there now.
func TestAWriteThatABackupDoesNotHave(t *testing.T) {
	w := newWorld(t)
	w.Live = w.client
	w.create(divide(8))
	w.settle()
	lost := w.get()
	lost.ResourceVersion += "000"
	w.written.remember(lost, w.Clock.Now(), false)
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(9)) })
	w.waits("for a write that may be on its way")
	w.later(int(behindForLong.Seconds()) + 1)
	w.waits("until it has looked past the cache")
	w.settle()
	if w.members() == "4 2 2" {
		t.Error("the edit is not carried out")
	}
}

// TestAFleetWorkloadThatIsGoneIsNotTakenOver: the cache still shows it, and another operator has removed all of it from the backend.
func TestAFleetWorkloadThatIsGoneIsNotTakenOver(t *testing.T) {
	w, cache, _ := shardA(t, "b")
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	cache.shard = "a"
	if _, err := w.reconcile(); err != nil || w.writes != 0 || w.backend.Writes() != 0 {
		t.Errorf("%v, %d writes here and %d on the backend", err, w.writes, w.backend.Writes())
	}
}

// TestOwnWritesAreForgottenWithTheFleetWorkload so that they do not pile up.
func TestOwnWritesAreForgottenWithTheFleetWorkload(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	if err := w.client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if len(w.written.by) != 0 {
		t.Errorf("it still knows %v", w.written.by)
	}
}
