package controllers

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// rebuild makes the management cluster anew from the spec alone: with another UID, no status, and nothing that was kept. Another operator goes
// on there.
func (w *world) rebuild() {
	w.t.Helper()
	ctx := context.Background()
	before := w.get()
	before.Finalizers = nil
	if err := w.client.Update(ctx, before); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Delete(ctx, before); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.DeleteAllOf(ctx, &appsv1.ControllerRevision{}); err != nil {
		w.t.Fatal(err)
	}
	anew := &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: before.Name, UID: "uid-2", Generation: 1}, Spec: before.Spec,
	}
	if err := w.client.Create(ctx, anew); err != nil {
		w.t.Fatal(err)
	}
	installation := w.Installation
	w.restart()
	w.Installation = installation
}

// of are a workload's objects on a backend.
func (w *world) of(b *memory.Backend, identity types.UID) int {
	w.t.Helper()
	objects, err := b.Owned(context.Background(), backends.Query{Key: backends.Key{NamespacedName: key, UID: identity}})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(objects)
}

// TestARebuiltManagementClusterGoesOn (laws 1, 5 and 6): whenever the record is lost, at rest and at each step of a hand-over and of its way
// back, the workload comes to the backend that the spec names, with the objects that it had, and nothing is left on the other one.
func TestARebuiltManagementClusterGoesOn(t *testing.T) {
	for _, wants := range []string{"two", "one"} {
		for steps, over := 0, false; !over; steps += 3 {
			t.Run(fmt.Sprintf("to %s after %d", wants, steps), func(t *testing.T) {
				w, two := newPair(t)
				w.Installation = "prod"
				w.create(divide(8))
				w.both(two)
				was := w.uids()
				w.edit(to("two"))
				for i := range steps {
					switch i % 3 {
					case 0:
						if _, err := w.reconcile(); err != nil {
							t.Fatal(err)
						}
					case 1:
						w.backend.Step()
					default:
						two.Step()
					}
				}
				m := w.get().Status.Migration
				over = m != nil && m.Phase == "" && len(m.History) > 0 || steps > 300
				if wants == "one" {
					w.edit(to("one"))
					if _, err := w.reconcile(); err != nil {
						t.Fatal(err)
					}
					w.backend.Step()
				}
				w.rebuild()
				w.both(two)
				w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
				fw := w.get()
				if fw.Status.Backend != wants || pass.HandsOver(fw) {
					t.Errorf("it is on %s, with %+v", fw.Status.Backend, fw.Status.Migration)
				}
				w.sameObjects(was)
				other := map[string]*memory.Backend{"one": two, "two": w.backend}[wants]
				if n := w.of(other, types.UID(fw.Status.Identity)); n != 0 {
					t.Errorf("%d objects are left on the other backend", n)
				}
			})
		}
	}
}

// TestARebuiltManagementClusterOfAnotherName (law 1): what another installation has made is refused and stays, until the operator is told that it
// is that one.
func TestARebuiltManagementClusterOfAnotherName(t *testing.T) {
	w, two := newPair(t)
	w.Installation = "prod"
	w.create(divide(8))
	w.both(two)
	was := w.uids()
	w.Installation = "another"
	w.rebuild()
	w.both(two)
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)
	w.sameObjects(was)
	w.restart()
	w.Installation = "prod"
	w.both(two)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.sameObjects(was)
}
