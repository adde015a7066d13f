package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestTurns(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	underWay := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}}
	underWay.Status.Migration = &v1alpha1.MigrationStatus{Phase: v1alpha1.MigrationPhaseVerifying}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(underWay).Build()
	turns := NewMigrationLimiter(2)
	take := func(name string, want bool) {
		t.Helper()
		if got, err := turns.take(t.Context(), c, named(name)); err != nil || got != want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	woken := func(want string) {
		t.Helper()
		select {
		case e := <-turns.wake:
			if e.Object.Name.Name != want {
				t.Errorf("%s was woken, not %q", e.Object.Name, want)
			}
		default:
			if want != "" {
				t.Errorf("%s was not woken", want)
			}
		}
	}
	turns.end(named("nobody"))
	take("a", true) // the other turn is taken by what was under way before the operator started
	take("a", true)
	take("b", false)
	take("c", false)
	turns.end(named("c")) // it has changed its mind
	woken("")
	turns.end(named("old"))
	woken("b")
	take("b", true)
	take("c", false)
	take("d", false)
	take("e", false)
	turns.end(named("a"))
	woken("c")
	turns.end(named("b"))
	woken("d") // also when the first does not take its turn
	take("d", true)
	turns.end(named("c")) // it was woken, and has changed its mind
	woken("e")
	take("e", true)
	take("f", false)
	turns.goesOn(named("d"))
	turns.goesOn(named("g"))
	turns.end(named("d")) // one more than the limit goes on
	woken("")
	turns.end(named("g"))
	woken("f")
}

// A namespace with many that wait holds up nobody else's only one: the turn that is free is for whose namespace has the fewest.
func TestTurnsGoToTheNamespaceWithTheFewest(t *testing.T) {
	turns := NewMigrationLimiter(3)
	turns.begun = map[types.NamespacedName]bool{}
	take := func(namespace, name string) {
		if _, err := turns.take(t.Context(), nil, types.NamespacedName{Namespace: namespace, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		take("many", name)
	}
	take("shop", "web")
	take("bank", "api")
	for ended, want := range []string{"shop", "bank", "many"} {
		turns.end(types.NamespacedName{Namespace: "many", Name: string(rune('a' + ended))})
		e := <-turns.wake
		if e.Object.Name.Namespace != want {
			t.Errorf("turn %d goes to %s, not to %s", ended, e.Object.Name, want)
		}
		take(e.Object.Name.Namespace, e.Object.Name.Name)
	}
}

func TestOnlySoManyMigrateAtOnce(t *testing.T) {
	w, two := newPair(t)
	w.MigrationLimiter = NewMigrationLimiter(1)
	w.MigrationLimiter.begun = map[types.NamespacedName]bool{named("another"): true}
	w.create(divide(8))
	w.both(two)
	w.edit(to("two"))
	w.both(two)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonApplying, "its turn to move to backend two")
	if m := w.get().Status.Migration; m.Phase != v1alpha1.MigrationPhaseValidating || m.SpecRevision != "" {
		t.Errorf("it has begun: %+v", m)
	}
	w.MigrationLimiter.end(named("another"))
	w.both(two)
	if fw := w.get(); fw.Status.Backend != "two" {
		t.Errorf("it is on %s", fw.Status.Backend)
	}
	if len(w.MigrationLimiter.begun)+len(w.MigrationLimiter.waiting) != 0 {
		t.Errorf("turns are left: %v %v", w.MigrationLimiter.begun, w.MigrationLimiter.waiting)
	}
}

// TestAMigrationThatWaitsForAPersonKeepsNoOtherWaiting: its turn is another's until it goes on.
func TestAMigrationThatWaitsForAPersonKeepsNoOtherWaiting(t *testing.T) {
	w, two, _ := handingOver(t)
	w.MigrationLimiter.limit = 1
	if len(w.MigrationLimiter.begun) != 0 {
		t.Errorf("it has its turn still: %v", w.MigrationLimiter.begun)
	}
	if turn, err := w.MigrationLimiter.take(t.Context(), w.client, named("another")); err != nil || !turn {
		t.Errorf("another one waits: %v", err)
	}
	w.approve(two)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if !w.MigrationLimiter.begun[named("another")] || len(w.MigrationLimiter.begun) != 1 {
		t.Errorf("turns at the end: %v", w.MigrationLimiter.begun)
	}
	restarted := NewMigrationLimiter(1)
	waits := w.get()
	waits.Name, waits.ResourceVersion, waits.UID = "waits", "", "u2"
	waits.Status.Migration = &v1alpha1.MigrationStatus{Phase: v1alpha1.MigrationPhaseVerifying, Approval: "pass-wave-1-0"}
	c := fake.NewClientBuilder().WithScheme(w.client.Scheme()).WithObjects(waits).Build()
	if turn, err := restarted.take(t.Context(), c, named("another")); err != nil || !turn {
		t.Errorf("after a restart another one waits: %v", err)
	}
	waits.Status.Migration.Approval, waits.Spec.Suspend, waits.ResourceVersion = "", ptr(true), ""
	c, restarted = fake.NewClientBuilder().WithScheme(w.client.Scheme()).WithObjects(waits).Build(), NewMigrationLimiter(1)
	if turn, err := restarted.take(t.Context(), c, named("another")); err != nil || !turn {
		t.Errorf("another one waits for one that is suspended: %v", err)
	}
}

func TestASuspendedMigrationStandsStill(t *testing.T) {
	for passes := range 12 {
		w, two := newPair(t)
		w.create(divide(8))
		w.both(two)
		was := w.uids()
		w.edit(to("two"))
		for range passes {
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.backend.Step()
			two.Step()
		}
		suspend := func(is bool) {
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = &is })
			w.both(two)
		}
		suspend(true)
		fw, sent := w.get(), w.backend.Writes()+two.Writes()
		w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(12)) })
		w.both(two)
		if m := w.get().Status.Migration; m.Phase != fw.Status.Migration.Phase || w.backend.Writes()+two.Writes() != sent {
			t.Errorf("after %d passes: it goes on from %s to %s", passes, fw.Status.Migration.Phase, m.Phase)
		}
		w.sameObjects(was)
		suspend(false)
		if fw := w.get(); fw.Status.Backend != "two" || w.members() != "6 3 3" {
			t.Errorf("after %d passes: it is on %s, members run %s", passes, fw.Status.Backend, w.members())
		}
		w.sameObjects(was)
	}
}
