package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// A pass that waits for a backend runs again though no event comes, and one that does not wait does not.
func TestAMissedEventKeepsNobodyForEver(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	want := func(waits bool) {
		t.Helper()
		for range 3 { // the finalizer, the claim
			w.later(10) // no status waits for the one before
			result, err := w.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			if (result.RequeueAfter == time.Minute) == waits {
				return
			}
		}
		t.Errorf("waits for the backend: not %t", waits)
	}
	want(true)
	w.settle()
	want(false)
	if err := w.client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	want(true)
}

// A pass that meets something outdated is no failure: it runs again at once, and says nothing. One that meets it again and again waits for
// something that does not come, and says for what.
func TestAConflictThatLastsIsTold(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(9)) })
	outdated := apierrors.NewConflict(schema.GroupResource{Resource: "works"}, "web", errors.New("it has been modified"))
	if _, err := w.reconcile(); err != nil { // the decision is recorded
		t.Fatal(err)
	}
	for n := range mostConflicts {
		w.backend.FailNext(memory.OpApply, outdated)
		result, err := w.reconcile()
		if told := err != nil; told != (n == mostConflicts-1) || !told && result.RequeueAfter != conflictRetry {
			t.Fatalf("conflict %d: %+v, %v", n, result, err)
		}
	}
	w.backend.FailNext(memory.OpApply, outdated)
	if _, err := w.reconcile(); !apierrors.IsConflict(err) {
		t.Errorf("after many conflicts: %v", err)
	}
	if c := find(w.get().Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(c.Message, "it has been modified") {
		t.Errorf("it says %s", c.Message)
	}
	w.settle()
	w.backend.FailNext(memory.OpApply, outdated)
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(10)) })
	if _, err := w.reconcile(); err != nil {
		t.Errorf("a conflict after the end of many: %v", err)
	}
}

// A pass on what the cache has from before our own write does nothing, and looks again also when no event comes.
func TestAnEventOfOurOwnWriteMayBeMissed(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	later := w.get().DeepCopy()
	later.ResourceVersion += "0"
	w.written.remember(later, w.Clock.Now(), false)
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != conflictRetry {
		t.Errorf("behind: %+v, %v", result, err)
	}
}
