package controllers

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// TestAMigrationEndsThoughItIsScaledBelowItsClusters, forward and back.
func TestAMigrationEndsThoughItIsScaledBelowItsClusters(t *testing.T) {
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprintf("back %v", back), func(t *testing.T) {
			w, two, _ := handingOver(t)
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(2)) })
			w.both(two)
			w.membersRun("1 1 0")
			if back {
				w.edit(to("one"))
				w.both(two)
			} else {
				w.approve(two)
			}
			want := map[bool]string{true: "one", false: "two"}[back]
			if fw := w.get(); fw.Status.Backend != want || fw.Status.Migration.Phase != "" {
				t.Errorf("it is on %s: %+v", fw.Status.Backend, fw.Status.Migration)
			}
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			w.membersRun("1 1 -1")
		})
	}
}

// passesTo lets passes run until the migration is in a phase.
func (w *world) passesTo(two *memory.Backend, phase v1alpha1.MigrationPhase) {
	w.t.Helper()
	for range 100 {
		if m := w.get().Status.Migration; m != nil && m.Phase == phase {
			return
		}
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
		w.backend.Step()
		two.Step()
	}
	w.t.Fatalf("it does not come to %s", phase)
}

// TestAMigrationEndsWithoutAClusterThatIsGone: from one backend or both, in each phase, and when it is set back too.
func TestAMigrationEndsWithoutAClusterThatIsGone(t *testing.T) {
	phases := []v1alpha1.MigrationPhase{
		v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseHandingOver, v1alpha1.MigrationPhaseReleasing,
	}
	for _, phase := range phases {
		for _, from := range []string{"source", "target", "both"} {
			for _, back := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, gone from %s, back %v", phase, from, back), func(t *testing.T) {
					w, two := newPair(t)
					w.create(divide(8))
					w.both(two)
					w.edit(to("two"))
					w.passesTo(two, phase)
					if from != "target" {
						w.backend.RemoveCluster("m3")
					}
					if from != "source" {
						two.RemoveCluster("m3")
					}
					if back {
						w.edit(to("one"))
					}
					for range 3 {
						w.both(two)
						w.later(3600)
					}
					w.both(two)
					m := w.get().Status.Migration
					// What the target lost before anything was handed over, and whatever a wave lost, a person decides about.
					waits := from == "target" && !back && phase != v1alpha1.MigrationPhaseReleasing
					if waits && w.condition(v1alpha1.ConditionStalled).Status == metav1.ConditionTrue {
						w.edit(to("one"))
						w.both(two)
						m = w.get().Status.Migration
					}
					// Once it was being released, the way back is another migration, which the source refuses.
					if m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating {
						t.Errorf("it does not end: %+v\n%+v", m, w.get().Status.Conditions)
					}
					if w.member("m1") < 1 || w.member("m2") < 1 || w.member("m3") < 0 {
						t.Errorf("members run %s", w.members())
					}
				})
			}
		}
	}
}
