package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// movesInWaves divides evenly, and has a first wave that waits for a person.
func movesInWaves(replicas int32) func(*v1alpha1.FleetWorkloadSpec) {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		divide(replicas)(s)
		s.Placement.Division.Weights = nil
		s.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{{Size: ptr(intstr.FromInt32(1)), Approval: v1alpha1.ApprovalPolicyManual}}}
	}
}

// TestAScaleReachesClustersThatHadNoReplicas (law 2): there are fewer replicas than clusters, and more are asked for while the workload moves. Each
// cluster gets its share once and keeps it when the migration ends, wherever that was.
func TestAScaleReachesClustersThatHadNoReplicas(t *testing.T) {
	waits := func(w *world, two *memory.Backend) {
		w.both(two)
		w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNeedsApproval)
	}
	for name, test := range map[string]struct {
		until func(w *world, two *memory.Backend)
		ends  string
	}{
		"before the first wave": {func(w *world, two *memory.Backend) { w.passesTo(two, v1alpha1.MigrationPhaseShadowing) }, "two"},
		"while a wave waits":    {waits, "two"},
		"at the end": {func(w *world, two *memory.Backend) {
			waits(w, two)
			w.edit(func(fw *v1alpha1.FleetWorkload) {
				fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: fw.Status.Migration.Approval}
			})
			w.passesTo(two, v1alpha1.MigrationPhaseReleasing)
		}, "two"},
		"on the way back": {func(w *world, two *memory.Backend) {
			waits(w, two)
			w.edit(to("one"))
			w.passesTo(two, v1alpha1.MigrationPhaseRollingBack)
		}, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			w, two := newPair(t)
			w.create(movesInWaves(1))
			w.both(two)
			w.membersRun("1 -1 -1")
			first := w.uids()
			w.edit(to("two"))
			test.until(w, two)
			w.scale(9)
			w.both(two)
			w.membersRun("3 3 3")
			if m := w.get().Status.Migration; m.Phase != "" && m.Approval != "" {
				w.approve(two)
			}
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			w.membersRun("3 3 3")
			if got := w.get().Status.Backend; got != test.ends {
				t.Errorf("it is on %q", got)
			}
			if got := w.uids()["m1"]; got != first["m1"] {
				t.Errorf("the object on m1 was made anew")
			}
		})
	}
}

// TestNobodyElseJoins: what the coming of a cluster moves waits for the end of the migration, and one that the new backend could not serve is left
// out there too. Its share is the others' until then.
func TestNobodyElseJoins(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int32
		// comes changes clusters while the first wave waits.
		comes                  func(w *world, two *memory.Backend)
		begins, moves, becomes string
	}{
		"a newcomer": {4, func(w *world, two *memory.Backend) {
			for _, b := range []*memory.Backend{w.backend, two} {
				b.SetCluster(cluster("m1", "b"))
			}
		}, "-1 2 2", "-1 3 3", "2 2 2"},
		"a newcomer beside one that had none": {1, func(w *world, two *memory.Backend) {
			for _, b := range []*memory.Backend{w.backend, two} {
				b.SetCluster(cluster("m1", "b"))
			}
		}, "-1 1 -1", "-1 3 3", "2 2 2"},
		"not ready on the new backend": {1, func(_ *world, two *memory.Backend) {
			lost := cluster("m3", "b")
			lost.Ready = metav1.ConditionFalse
			two.SetCluster(lost)
		}, "-1 1 -1", "-1 6 -1", "-1 6 -1"},
		"not listed by the new backend": {1, func(_ *world, two *memory.Backend) { two.RemoveCluster("m3") }, "-1 1 -1", "-1 6 -1", "-1 6 -1"},
	} {
		t.Run(name, func(t *testing.T) {
			w, two := newPair(t)
			w.create(func(s *v1alpha1.FleetWorkloadSpec) {
				movesInWaves(test.replicas)(s)
				s.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "b"}}}
			})
			w.both(two)
			w.membersRun(test.begins)
			w.edit(to("two"))
			w.both(two)
			test.comes(w, two)
			w.both(two)
			w.scale(6)
			w.both(two)
			w.membersRun(test.moves)
			w.approve(two)
			w.membersRun(test.becomes)
		})
	}
}
