package main

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestAwaited: all are ready when each is by what was last seen of it, and a watch that ends is begun again.
func TestAwaited(t *testing.T) {
	first, second := watch.NewFakeWithChanSize(4, false), watch.NewFakeWithChanSize(4, false)
	see := func(on *watch.FakeWatcher, name, state string) {
		on.Modify(&v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"wrong": state}}})
	}
	see(first, "a", "")
	see(first, "a", "not yet")
	see(first, "b", "")
	first.Stop()
	see(second, "b", "")
	see(second, "a", "not yet")
	see(second, "a", "")
	watches := []*watch.FakeWatcher{first, second}
	hub := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			next := watches[0]
			watches = watches[1:]
			return next, nil
		},
	}).Build()
	all := awaited{hub, &v1alpha1.FleetWorkloadList{}, "a", func(o client.Object) string { return o.GetAnnotations()["wrong"] }}
	if err := all.ready(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if left := len(second.ResultChan()); left > 0 || len(watches) > 0 {
		t.Errorf("%d events are left, and %d watches", left, len(watches))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	third := watch.NewFake()
	third.Stop()
	if watches = append(watches, third); all.ready(ctx, 1) == nil {
		t.Error("it has ended before any was ready, and it is not said")
	}
}
