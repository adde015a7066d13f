package controllers

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// ownerOf is the backend's mark on a companion on the first member; empty when it has none.
func (w *world) ownerOf(kind, name string) string {
	w.t.Helper()
	at := ref(kind, name)
	obj, err := w.backend.Member("m1").Get(context.Background(), backendtest.Ref{GVK: at.GroupVersionKind, NamespacedName: at.NamespacedName})
	if err != nil {
		w.t.Fatal(err)
	}
	owner, _, _ := strings.Cut(obj.GetAnnotations()[memory.OwnerMark], "/")
	return owner
}

// TestCompanionsChangeBackends with their workload: whoever owns the workload owns what it needs.
func TestCompanionsChangeBackends(t *testing.T) {
	w, two := newPair(t)
	w.put("ConfigMap", "settings", "one")
	w.put("Secret", "key", secretContent)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		referTo("settings")(s)
		s.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"},"data":{"value":"own"}}`)}}
	})
	w.both(two)
	w.wantSent("one", "own")
	before := w.ownerOf("ConfigMap", "settings")
	w.edit(to("two"))
	w.both(two)
	after := w.ownerOf("ConfigMap", "settings")
	if after == "" || after == before || w.ownerOf("ConfigMap", "other") != after || w.ownerOf("Secret", "key") != after {
		t.Errorf("owned by %q, then by %q, %q and %q", before, after, w.ownerOf("ConfigMap", "other"), w.ownerOf("Secret", "key"))
	}
	w.put("ConfigMap", "settings", "two")
	w.both(two)
	w.wantSent("two", "own")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}
