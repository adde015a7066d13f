package controllers

import (
	"testing"
	"time"
)

// A pass that waits for a backend runs again though no event comes, and one that does not wait does not.
func TestAMissedEventKeepsNobodyForEver(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	want := func(waits bool) {
		t.Helper()
		for range 3 { // the finalizer, the claim
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
