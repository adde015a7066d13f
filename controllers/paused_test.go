package controllers

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/guard"
)

func (w *world) pause(names ...string) {
	w.t.Helper()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Paused = nil
		if len(names) > 0 {
			fw.Spec.Placement.Paused = &v1alpha1.ClusterSelector{Names: names}
		}
	})
	w.settle()
}

func (w *world) ship(image string) {
	w.t.Helper()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), "nginx:1", image, 1))
	})
	w.settle()
}

// row is what the status says of a cluster.
func (w *world) row(name string) v1alpha1.ClusterStatus {
	w.t.Helper()
	rows := w.get().Status.Clusters
	i := slices.IndexFunc(rows, func(r v1alpha1.ClusterStatus) bool { return r.Name == name })
	if i < 0 {
		w.t.Fatalf("no row of %s: %+v", name, rows)
	}
	return rows[i]
}

func TestAPausedClusterIsLeftAsItIsAndTheOthersGoOn(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.membersRun("4 2 2")
	sent := w.backend.Writes()
	w.pause("m1", "nobody")
	w.membersRun("4 2 2")
	if n := w.backend.Writes(); n > sent+1 {
		t.Errorf("pausing writes %d times to the backend", n-sent)
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.expect(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "spec.placement.paused: m1")
	before := w.row("m1")
	if before.Paused != metav1.ConditionTrue || before.Health != v1alpha1.HealthHealthy || w.row("m2").Paused != "" {
		t.Errorf("%+v", before)
	}

	w.scale(5)
	w.membersRun("4 1 -1") // the one replica that is left goes to the first of two equals
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.scale(10)
	w.membersRun("4 3 3")
	w.ship("nginx:2")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused, "m1")
	w.expect(v1alpha1.ConditionReconciling, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionFalse, v1alpha1.ReasonNotStalled)
	m1, m2, revision := w.row("m1"), w.row("m2"), w.get().Status.Revision
	if m1.Revision != before.Revision || m1.Health != v1alpha1.HealthSuspended || m2.Revision != revision || revision == before.Revision {
		t.Errorf("%+v\n%+v", m1, m2)
	}

	w.pause()
	w.membersRun("5 3 2") // by their weights, once
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if m1 := w.row("m1"); m1.Revision != revision || m1.Paused != "" {
		t.Errorf("%+v", m1)
	}
}

// TestFewerReplicasThanPausedClustersKeep: what is paused keeps its number, and the status says that it is another one.
func TestFewerReplicasThanPausedClustersKeep(t *testing.T) {
	for name, test := range map[string]struct {
		spec func(int32) func(*v1alpha1.FleetWorkloadSpec)
		want string
	}{
		"divided":    {divide, "4 -1 -1"},
		"duplicated": {everywhere, "8 2 2"},
	} {
		w := newWorld(t)
		w.create(test.spec(8))
		w.settle()
		w.pause("m1")
		w.scale(2)
		if got := w.members(); got != test.want {
			t.Errorf("%s: members run %s", name, got)
		}
		w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused, "2 replicas are asked for", "m1")
	}
}

func TestAPausedClusterWithoutTheWorkloadDoesNotGetIt(t *testing.T) {
	w := newWorld(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		everywhere(2)(s)
		s.Placement.Paused = &v1alpha1.ClusterSelector{Names: []string{"m2"}}
	})
	w.settle()
	w.membersRun("2 -1 2")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.expect(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "m2: paused by spec.placement.paused")
	w.pause()
	w.membersRun("2 2 2")
	w.pause("m1", "m2", "m3")
	w.ship("nginx:2")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused, "m1, m2, m3")
}

// TestAPausedClusterIsNotLeft until the pause is lifted, and then as any other: nobody asks for it, so that the share counts.
func TestAPausedClusterIsNotLeft(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(2))
	w.settle()
	w.pause("m2", "m3")
	w.relabel("x", "m2", "m3")
	w.membersRun("2 2 2")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.expect(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "once they are no longer paused: m2, m3")
	w.pause()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "m2 (2 to 0), m3 (2 to 0)")
	w.membersRun("2 2 2")

	w.pause("m2")
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: []string{"m1", "m3"}}
	})
	w.settle()
	w.membersRun("2 2 2")
	w.pause()
	w.membersRun("2 -1 2")
}

// TestAPauseCountsAsChosen: another cluster is not taken in the place of a paused one.
func TestAPauseCountsAsChosen(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(2))
	w.settle()
	w.pause("m3")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.NumberOfClusters = ptr(int32(2)) })
	w.settle()
	w.membersRun("2 -1 2")
}

// TestAPlacementThatChoosesOnlyWhatItKeepsPaused chooses nothing (law 2).
func TestAPlacementThatChoosesOnlyWhatItKeepsPaused(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(2))
	w.settle()
	w.pause("m1")
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "typo"}}}
	})
	w.settle()
	w.later(int(guard.Patience.Seconds()))
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNoClusterSelected)
	w.membersRun("2 2 2")
}

func TestAPausedClusterKeepsItsCompanions(t *testing.T) {
	w := newWorld(t)
	w.put("ConfigMap", "settings", "one")
	w.put("Secret", "key", secretContent)
	w.create(referTo("settings"))
	w.settle()
	w.pause("m1")
	w.put("ConfigMap", "settings", "two")
	w.settle()
	w.wantSent("one", "")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Dependencies = v1alpha1.DependencyPolicyIgnore })
	w.settle()
	w.wantSent("one", "")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate })
	w.pause()
	w.wantSent("two", "")
}

func TestNothingThatIsPausedChangesHands(t *testing.T) {
	w, two := newPair(t)
	w.create(divide(8))
	w.both(two)
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Paused = &v1alpha1.ClusterSelector{Names: []string{"m2"}}
		fw.Spec.Backend = "two"
	})
	w.both(two)
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNotPossible, "spec.placement.paused: m2", `back to "one"`)
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Paused = nil })
	w.both(two)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if b := w.get().Status.Backend; b != "two" {
		t.Errorf("it is backend %s's", b)
	}
}
