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
	fw     *v1alpha1.FleetWorkload
	labels map[string]string
	err    error
}

func (c *slowCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch obj := obj.(type) {
	case *v1alpha1.FleetWorkload:
		c.fw.DeepCopyInto(obj)
		return nil
	case *metav1.PartialObjectMetadata:
		obj.Labels = c.labels
		return c.err
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// TestOwnWritesAreKnownForAsLongAsTheFleetWorkloadLives: neither a namespace that cannot be read nor one that is another operator's for a moment
// lets an operator go by a FleetWorkload from before its own last write. What another operator has written since is gone by.
func TestOwnWritesAreKnownForAsLongAsTheFleetWorkloadLives(t *testing.T) {
	for name, away := range map[string]func(*slowCache){
		"the namespace cannot be read":          func(c *slowCache) { c.err = errors.New("no answer") },
		"another operator has had it meanwhile": func(c *slowCache) { c.labels = map[string]string{"shard": "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Serves = labels.SelectorFromSet(labels.Set{"shard": "a"})
			cache := &slowCache{Client: w.client, labels: map[string]string{"shard": "a"}}
			w.Client = cache
			w.create(divide(8))
			var before *v1alpha1.FleetWorkload
			pass := func() (behind bool) {
				t.Helper()
				result, err := w.reconcile()
				if err != nil && cache.err == nil {
					t.Fatal(err)
				}
				return result.RequeueAfter == conflictRetry
			}
			for range 3 { // the finalizer, the record, the carrying out
				before, cache.fw = cache.fw, w.get()
				pass()
			}
			if cache.fw = before; !pass() {
				t.Fatal("it goes by what was before its own write")
			}
			away(cache)
			pass()
			cache.labels, cache.err = map[string]string{"shard": "a"}, nil
			written, sent := w.writes, w.backend.Writes()
			if !pass() || w.writes != written || w.backend.Writes() != sent {
				t.Error("it goes by what was before its own write, once the namespace is its own again")
			}
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(9)) })
			if cache.fw = w.get(); pass() {
				t.Error("it waits for its own write, over which another one has gone")
			}
		})
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
