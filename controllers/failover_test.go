package controllers

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// lose makes the backend lose a cluster that many seconds ago.
func (w *world) lose(name string, ago int) {
	lost := cluster(name, "b")
	lost.Ready = metav1.ConditionUnknown
	lost.ReadySince = w.Clock.Now().Add(-time.Duration(ago) * time.Second)
	w.backend.SetCluster(lost)
}

// later lets time pass.
func (w *world) later(seconds int) {
	w.Reconciler.Clock = clocktesting.NewFakePassiveClock(w.Clock.Now().Add(time.Duration(seconds) * time.Second))
}

func failingOver(purge v1alpha1.PurgePolicy) func(*v1alpha1.FleetWorkloadSpec) {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Placement.Failover = &v1alpha1.Failover{Purge: purge}
	}
}

func TestFailover(t *testing.T) {
	for purge, want := range map[v1alpha1.PurgePolicy]struct{ early, late string }{
		// Until m3 runs all of its replicas, m2 keeps its own, and if it is back by then it goes on with them.
		"":                            {"5 3 -1", "5 -1 3"},
		v1alpha1.PurgePolicyGraceful:  {"5 3 -1", "5 -1 3"},
		v1alpha1.PurgePolicyImmediate: {"5 -1 3", "5 -1 3"},
		v1alpha1.PurgePolicyNever:     {"5 3 -1", "5 3 -1"},
	} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprint(purge, early), func(t *testing.T) {
				w := newWorld(t)
				w.create(func(s *v1alpha1.FleetWorkloadSpec) {
					failingOver(purge)(s)
					s.Placement.NumberOfClusters = ptr(int32(2))
				})
				w.settle()
				w.failOver(early)
				w.backend.SetCluster(cluster("m2", "b"))
				w.backend.LimitReady("m3", 100)
				w.settle()
				w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
				want := map[bool]string{true: want.early, false: want.late}[early]
				if got := w.members(); got != want {
					t.Errorf("m2 is back, and members run %s, want %s", got, want)
				}
			})
		}
	}
}

// failOver loses m2 until others have taken its place, or, early, are about to.
func (w *world) failOver(early bool) {
	w.t.Helper()
	w.lose("m2", 100)
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonStale, "m2")
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != 200*time.Second {
		w.t.Errorf("looks again after %s, %v", result.RequeueAfter, err)
	}
	w.backend.LimitReady("m3", 1)
	w.later(200)
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "m3")
	if early {
		return
	}
	w.backend.LimitReady("m3", 100)
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	status := w.get().Status
	if row := status.Clusters[0]; status.Ready != "8/8" || row.Name != "m2" || row.GivenUp != metav1.ConditionTrue {
		w.t.Errorf("ready is %s, the first row is %+v", status.Ready, row)
	}
	// It cannot be reached, so that nothing could be taken off it.
	if got := w.members(); got != "5 3 3" {
		w.t.Errorf("members run %s", got)
	}
}

func TestNoFailoverWhileMostClustersAreLost(t *testing.T) {
	w := newWorld(t)
	w.create(failingOver(v1alpha1.PurgePolicyImmediate))
	w.settle()
	w.lose("m1", 1000)
	w.lose("m2", 1000)
	w.settle()
	w.expect(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "failover waits")
	if got := w.members(); got != "4 2 2" {
		t.Errorf("members run %s", got)
	}
}

func TestGroups(t *testing.T) {
	w := newWorld(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Placement.Clusters, s.Placement.Failover = nil, &v1alpha1.Failover{}
		s.Placement.Groups = []v1alpha1.ClusterGroup{
			{Name: "first", Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}},
			{Name: "second", Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2", "m3"}}},
		}
	})
	w.settle()
	if got := w.members(); got != "8 -1 -1" || w.get().Status.Placement.Group != "first" {
		t.Errorf("members run %s", got)
	}
	w.lose("m1", 1000)
	w.settle()
	if got := w.members(); got != "8 4 4" || w.get().Status.Placement.Group != "second" {
		t.Errorf("members run %s", got)
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.backend.SetCluster(cluster("m1", "a"))
	w.settle()
	if got := w.members(); got != "-1 4 4" {
		t.Errorf("members run %s after the first group has come back", got)
	}
}

func TestAnOverrideThatSelectsNothingIsReported(t *testing.T) {
	w := newWorld(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		s.Overrides = []v1alpha1.Override{{}, {Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "none"}}}}}
	})
	w.settle()
	w.expect(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "3 clusters chosen; spec.overrides[1]: selects none of the chosen clusters")
}

func TestWhatIsNeverPurgedOutlivesAScale(t *testing.T) {
	w := newWorld(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		failingOver(v1alpha1.PurgePolicyNever)(s)
		s.Placement.NumberOfClusters = ptr(int32(2))
	})
	w.settle()
	w.lose("m2", 1000)
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(11)) })
	w.settle()
	w.backend.SetCluster(cluster("m2", "b"))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.members(); got != "7 4 -1" {
		t.Errorf("m2 is back, and members run %s", got)
	}
}

// TestNoMigrationWhileAClusterIsGivenUp: what it keeps belongs to no share of the others, and would be taken away.
func TestNoMigrationWhileAClusterIsGivenUp(t *testing.T) {
	for _, purge := range []v1alpha1.PurgePolicy{v1alpha1.PurgePolicyNever, v1alpha1.PurgePolicyGraceful} {
		t.Run(string(purge), func(t *testing.T) {
			w, two := newPair(t)
			w.create(failingOver(purge))
			w.both(two)
			if purge == v1alpha1.PurgePolicyGraceful {
				w.backend.LimitReady("m1", 1) // the others are not healthy, so that m3 is kept
			}
			w.lose("m3", 1000)
			w.both(two)
			w.membersRun("5 3 2")
			w.edit(to("two"))
			w.both(two)
			w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNotPossible, "m3 was given up", "purge Immediate")
			w.membersRun("5 3 2")
		})
	}
}
