package controllers

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
	"github.com/fleetworkload/fleetworkload/internal/guard"
)

// everywhere chooses the clusters of both tiers by their label.
func everywhere(replicas int32) func(*v1alpha1.FleetWorkloadSpec) {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.Replicas = ptr(replicas)
		s.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
		}}}
	}
}

// relabel gives clusters another tier, and lets so much time pass that it is believed.
func (w *world) relabel(tier string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.backend.SetCluster(cluster(name, tier))
	}
	w.settle()
	w.later(int(guard.Patience.Seconds()))
	w.settle()
}

func (w *world) membersRun(want string) {
	w.t.Helper()
	if got := w.members(); got != want {
		w.t.Fatalf("members run %s, want %s", got, want)
	}
}

func (w *world) scale(replicas int32) {
	w.t.Helper()
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = &replicas })
	w.settle()
}

func TestALargeRemovalNobodyAskedForIsHeldUntilConfirmed(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(2))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.relabel("x", "m2", "m3")
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "m2 (2 to 0), m3 (2 to 0)", "4 of 6 replicas",
		v1alpha1.AnnotationConfirmRemoval+"=")
	w.membersRun("2 2 2")
	w.confirm()
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.membersRun("2 -1 -1")
	t.Log("a confirmation is good for one removal")
	w.relabel("b", "m2", "m3")
	w.membersRun("2 2 2")
	w.relabel("x", "m2", "m3")
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld)
	w.membersRun("2 2 2")
}

func TestASmallRemovalGoesThrough(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(1))
	w.settle()
	w.backend.SetCluster(cluster("m3", "x"))
	w.settle()
	w.membersRun("1 1 1")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.expect(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "m3", "30 seconds")
	w.later(int(guard.Patience.Seconds()))
	w.settle()
	w.membersRun("1 1 -1")
}

// TestALabelThatComesBackAtOnce: what is missing for a moment is left as it is, for any number of times.
func TestALabelThatComesBackAtOnce(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(1))
	w.settle()
	for range 3 {
		w.backend.SetCluster(cluster("m3", "x"))
		w.settle()
		w.later(int(guard.Patience.Seconds()) - 1)
		w.settle()
		w.backend.SetCluster(cluster("m3", "b"))
		w.settle()
		w.membersRun("1 1 1")
	}
}

// TestAScaleLiftsNoHeldRemoval: neither up nor down.
func TestAScaleLiftsNoHeldRemoval(t *testing.T) {
	for name, replicas := range map[string]int32{"up": 3, "down": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(everywhere(2))
			w.settle()
			w.relabel("x", "m2", "m3")
			w.scale(replicas)
			w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld)
			w.membersRun("2 2 2")
			w.relabel("b", "m2", "m3")
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			if got := w.member("m1"); got != int64(replicas) {
				t.Errorf("m1 runs %d", got)
			}
		})
	}
}

func TestClustersThatGoOneByOneAreHeld(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"m4", "m5", "m6"} {
		w.backend.SetCluster(cluster(name, "b"))
	}
	w.create(everywhere(10))
	w.settle()
	for i, name := range []string{"m6", "m5", "m4"} {
		w.relabel("x", name)
		w.scale(10 + int32(i%2)) // an autoscaler between them excuses nothing
		w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
	w.relabel("x", "m3")
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "m3 (10 to 0)", "m6 (10 to 0)", "40 of 60")
	w.membersRun("10 10 10")
}

// TestSharesThatFallAreHeld: a cluster that keeps the object may lose its replicas all the same.
func TestSharesThatFallAreHeld(t *testing.T) {
	t.Run("by a label that weights hang on", func(t *testing.T) {
		w := newWorld(t)
		w.create(func(s *v1alpha1.FleetWorkloadSpec) {
			s.Replicas = ptr(int32(100))
			s.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: []v1alpha1.ClusterWeight{
				{Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}}}, Weight: ptr(int32(98))},
				{Clusters: &v1alpha1.ClusterSelector{}, Weight: ptr(int32(1))},
			}}
		})
		w.settle()
		w.membersRun("98 1 1")
		w.relabel("typo", "m1")
		w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "m1 (98 to 34)")
		w.membersRun("98 1 1")
	})
	t.Run("by clusters that join", func(t *testing.T) {
		w := newWorld(t)
		w.backend.RemoveCluster("m2")
		w.backend.RemoveCluster("m3")
		w.create(func(s *v1alpha1.FleetWorkloadSpec) {
			s.Replicas = ptr(int32(12))
			s.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided}
		})
		w.settle()
		w.relabel("b", "m2", "m3")
		w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "m1 (12 to 4)")
		w.membersRun("12 -1 -1")
		t.Log("a change of the spec asks for it")
		w.scale(13)
		w.membersRun("12 -1 -1")
		w.edit(func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Placement.Division.Weights = []v1alpha1.ClusterWeight{{Clusters: &v1alpha1.ClusterSelector{}, Weight: ptr(int32(2))}}
		})
		w.settle()
		w.membersRun("5 4 4")
	})
}

// TestSuspendedNothingGoes: whatever is edited, and whatever clusters do.
func TestSuspendedNothingGoes(t *testing.T) {
	narrow := func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: []string{"m1"}}
	}
	tests := map[string]struct {
		create func(*v1alpha1.FleetWorkloadSpec)
		change func(*world)
		after  string
	}{
		"narrowed":                            {everywhere(2), func(w *world) { w.edit(narrow) }, "2 -1 -1"},
		"a label":                             {everywhere(2), func(w *world) { w.relabel("x", "m3") }, "2 2 -1"},
		"scaled":                              {everywhere(2), func(w *world) { w.scale(1) }, "1 1 1"},
		"scaled below the number of clusters": {divide(8), func(w *world) { w.scale(1) }, "1 -1 -1"},
		"failover's purge":                    {failingOver(v1alpha1.PurgePolicyImmediate), func(w *world) { w.lose("m3", 1000) }, "5 3 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(test.create)
			w.settle()
			was := w.members()
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = ptr(true) })
			w.settle()
			test.change(w)
			w.settle()
			w.membersRun(was)
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = nil })
			w.settle()
			w.membersRun(test.after)
		})
	}
}

// TestSuspendedHoldsARemovalStill: resuming is no request.
func TestSuspendedHoldsARemovalStill(t *testing.T) {
	w := newWorld(t)
	w.create(everywhere(2))
	w.settle()
	w.relabel("x", "m2", "m3")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = ptr(true) })
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = nil })
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld)
	w.membersRun("2 2 2")
}

// TestTheMeasureMovesWithTheWorkload: what ran before a hand-over counts after it, whatever the clusters are called there.
func TestTheMeasureMovesWithTheWorkload(t *testing.T) {
	w, two := newPair(t)
	w.create(everywhere(2))
	w.both(two)
	w.edit(to("two"))
	w.both(two)
	if fw := w.get(); fw.Status.Backend != "two" || len(fw.Status.Placement.Clusters) != 3 {
		t.Fatalf("%+v", fw.Status)
	}
	for _, name := range []string{"m2", "m3"} {
		two.SetCluster(backends.Cluster{Name: name, Labels: map[string]string{"tier": "x"}, Ready: metav1.ConditionTrue, Identity: "id-" + name})
	}
	w.both(two)
	w.later(int(guard.Patience.Seconds()))
	w.both(two)
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld)
	w.membersRun("2 2 2")
}

// cutOff connects to a backend that takes some writes and no more.
type cutOff struct {
	backend *memory.Backend
	left    *int
}

func (c cutOff) Driver(string) (backends.Driver, error) {
	return c.backend.GatedDriver(func(kind backendtest.RequestKind, _ string) error {
		if kind == backendtest.WriteRequest {
			*c.left--
		}
		if *c.left < 0 {
			return errors.New("cut off")
		}
		return nil
	}), nil
}

func (cutOff) Names() []string { return []string{"one"} }

// TestADecisionStandsHoweverFarItIsCarriedOut: what a backend shows meanwhile is not what was decided.
func TestADecisionStandsHoweverFarItIsCarriedOut(t *testing.T) {
	for writes := range 3 {
		w := newWorld(t)
		room := func(free string) {
			for _, name := range []string{"m1", "m2", "m3"} {
				c := cluster(name, "b")
				c.Free = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(free)}
				w.backend.SetCluster(c)
			}
		}
		room("100")
		w.create(func(s *v1alpha1.FleetWorkloadSpec) {
			s.Replicas = ptr(int32(12))
			s.Placement.Division = preferring(v1alpha1.DivisionPreferenceAvailableCapacity)
		})
		w.settle()
		w.membersRun("4 4 4")
		room("4") // each cluster has room for four more: exactly what is asked for now
		w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(24)) })
		w.Reconciler.Backends = cutOff{w.backend, &writes}
		for range 5 {
			_, _ = w.reconcile()
		}
		w.Reconciler.Backends = w.backends
		w.settle()
		w.membersRun("8 8 8")
	}
}

// recordedFirst connects to a backend that wants each decision on the management cluster before a write.
type recordedFirst struct {
	*world
	want int32
}

func (r recordedFirst) Driver(string) (backends.Driver, error) {
	return r.backend.GatedDriver(func(kind backendtest.RequestKind, _ string) error {
		if got := guard.Decided(r.get().Status.Placement); kind == backendtest.WriteRequest && got["m1"] != r.want {
			r.t.Errorf("something is sent while the record says %v", got)
		}
		return nil
	}), nil
}

func (recordedFirst) Names() []string { return []string{"one"} }

// TestADecisionIsRecordedFirst: nothing is sent before the API server has taken the record. Once it has, the same pass goes on.
func TestADecisionIsRecordedFirst(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.Reconciler.Backends = recordedFirst{w, 8}
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(16)) })
	down := errors.New("down")
	w.through(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return down
	}})
	sent := w.backend.Writes()
	if _, err := w.reconcile(); !errors.Is(err, down) || w.backend.Writes() != sent {
		t.Errorf("%v; %d writes without a record", err, w.backend.Writes()-sent)
	}
	w.Client = w.client
	if _, err := w.reconcile(); err != nil || w.backend.Writes() == sent {
		t.Errorf("%v; %d writes in the pass that records", err, w.backend.Writes()-sent)
	}
	w.settle()
	w.membersRun("8 4 4")
}

// TestADecisionThatChangesAgainBringsAPass: the event of a record brings a pass, unless the pass that has written it goes on.
func TestADecisionThatChangesAgainBringsAPass(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	for _, mayGoOn := range []bool{true, false} {
		w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(*fw.Spec.Replicas + 8) })
		before, sent := w.get(), w.backend.Writes()
		_, goesOn, err := w.step(t.Context(), w.get(), mayGoOn)
		if err != nil || goesOn != mayGoOn || w.backend.Writes() != sent {
			t.Errorf("may go on %t: %v, goes on %t, %d writes", mayGoOn, err, goesOn, w.backend.Writes()-sent)
		}
		if w.matters(event.UpdateEvent{ObjectOld: before, ObjectNew: w.get()}) == mayGoOn {
			t.Errorf("may go on %t: its event brings a pass: %t", mayGoOn, !mayGoOn)
		}
	}
}
