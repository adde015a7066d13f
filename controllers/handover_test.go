package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// newPair is a world in which the same clusters are members of two backends, "one" and "two".
func newPair(t *testing.T) (w *world, two *memory.Backend) {
	t.Helper()
	w = newWorld(t)
	two = memory.New(memory.Options{
		Clusters: []backends.Cluster{cluster("m1", "a"), cluster("m2", "b"), cluster("m3", "b")}, Members: w.backend,
	})
	w.backends["two"] = two
	return w, two
}

// both lets operator and both backends work until nobody has anything left to do.
func (w *world) both(two *memory.Backend) {
	w.t.Helper()
	for range 200 {
		before, sent := w.writes, w.backend.Writes()+two.Writes()
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
		moved := w.backend.Step()
		moved = two.Step() || moved
		if !moved && w.writes == before && w.backend.Writes()+two.Writes() == sent {
			return
		}
	}
	w.t.Fatalf("it does not settle: %+v", w.get().Status)
}

func (w *world) uids() map[string]types.UID {
	w.t.Helper()
	all := map[string]types.UID{}
	for _, name := range []string{"m1", "m2", "m3"} {
		obj, err := w.backend.Member(name).Get(context.Background(), backendtest.Ref{
			GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, NamespacedName: key,
		})
		if err == nil {
			all[name] = obj.GetUID()
		}
	}
	return all
}

func (w *world) sameObjects(was map[string]types.UID) {
	w.t.Helper()
	is := w.uids()
	if len(is) != len(was) {
		w.t.Fatalf("%v became %v", was, is)
	}
	for name, uid := range was {
		if is[name] != uid {
			w.t.Errorf("%s: %s became %s", name, uid, is[name])
		}
	}
}

func to(backend string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = backend }
}

func TestAWorkloadChangesBackends(t *testing.T) {
	w, two := newPair(t)
	w.create(divide(8))
	w.both(two)
	was := w.uids()
	for _, backend := range []string{"two", "one"} {
		w.edit(to(backend))
		w.both(two)
		w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		fw := w.get()
		if fw.Status.Backend != backend || fw.Status.Migration.Phase != "" {
			t.Fatalf("it is on %s, with %+v", fw.Status.Backend, fw.Status.Migration)
		}
		if h := fw.Status.Migration.History; len(h) == 0 || h[0].To != backend || h[0].Phase != v1alpha1.MigrationPhaseCompleted {
			t.Errorf("the history is %+v", h)
		}
		w.sameObjects(was)
		if kept := (&appsv1.ControllerRevisionList{}); w.client.List(t.Context(), kept, client.HasLabels{v1alpha1.LabelUID}) != nil || len(kept.Items) != 0 {
			t.Errorf("a spec was left behind: %v", kept.Items)
		}
	}
}

// TestItIsSaidOfWhichBackendAWorkloadIsFree (laws 3, 4, 12): once it has moved, until it comes to another cluster or is to go back; another
// operator says the same without that backend, and writes nothing.
func TestItIsSaidOfWhichBackendAWorkloadIsFree(t *testing.T) {
	w, two := newPair(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Placement.Clusters = &v1alpha1.ClusterSelector{Names: []string{"m1", "m2"}}
	})
	w.both(two)
	if c := meta.FindStatusCondition(w.get().Status.Conditions, v1alpha1.ConditionIndependent); c != nil {
		t.Errorf("it has never moved, and says %+v", c)
	}
	w.edit(to("two"))
	for range 200 {
		if w.get().Status.Migration != nil && w.get().Status.Migration.Phase == "" {
			break
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if m := w.get().Status.Migration; m != nil && m.Phase != "" {
			w.expect(v1alpha1.ConditionIndependent, metav1.ConditionFalse, v1alpha1.ReasonMigrating, `backend "one"`)
		}
		w.backend.Step()
		two.Step()
	}
	w.both(two)
	w.expect(v1alpha1.ConditionIndependent, metav1.ConditionTrue, v1alpha1.ReasonIndependent, `backend "one"`)

	delete(w.backends, "one")
	w.restart()
	writes := w.writes
	w.both(two)
	w.expect(v1alpha1.ConditionIndependent, metav1.ConditionTrue, v1alpha1.ReasonIndependent, `backend "one"`)
	if w.writes != writes {
		t.Errorf("%d writes for nothing", w.writes-writes)
	}

	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters.Names = []string{"m1", "m2", "m3"} })
	w.both(two)
	w.expect(v1alpha1.ConditionIndependent, metav1.ConditionUnknown, v1alpha1.ReasonJoinedSince, `backend "one"`, ": m3;")
	w.edit(to("one"))
	w.both(two)
	w.expect(v1alpha1.ConditionIndependent, metav1.ConditionFalse, v1alpha1.ReasonMigrating, `backend "two"`)
}

func TestWavesWaitForApproval(t *testing.T) {
	w, two := newPair(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{
			{Size: ptr(intstr.FromInt32(1)), Approval: v1alpha1.ApprovalPolicyManual}, {Size: ptr(intstr.FromString("50%"))},
		}}
	})
	w.both(two)
	was := w.uids()
	w.edit(to("two"))
	w.both(two)
	fw := w.get()
	token := fw.Status.Migration.Approval
	if token == "" || fw.Status.Migration.Clusters[0].Phase != v1alpha1.MigrationPhaseVerifying ||
		fw.Status.Migration.Clusters[1].Phase != v1alpha1.MigrationPhaseShadowing {
		t.Fatalf("it does not wait for approval: %+v", fw.Status.Migration)
	}
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNeedsApproval, "wave 1 has passed", token)
	w.expect(v1alpha1.ConditionMigrating, metav1.ConditionTrue, v1alpha1.ReasonMigrating, "Verifying, 1 of 3 clusters handed over")
	// What is edited meanwhile waits, what is scaled does not.
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Replicas = ptr(int32(12))
		fw.Spec.Template.Raw = []byte(strings.ReplaceAll(template, "nginx:1", "nginx:2"))
	})
	w.both(two)
	if got := w.members(); got != "6 3 3" {
		t.Errorf("members run %s", got)
	}
	if w.get().Status.Revision != fw.Status.Revision {
		t.Error("the edit did not wait")
	}
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: token}
	})
	w.both(two)
	if fw := w.get(); fw.Status.Backend != "two" || fw.Status.Migration.Phase != "" {
		t.Fatalf("it is on %s, with %+v", fw.Status.Backend, fw.Status.Migration)
	}
	w.sameObjects(was)
	if w.get().Status.Revision == fw.Status.Revision {
		t.Error("the edit was lost")
	}
}

func TestAMigrationIsTurnedBack(t *testing.T) {
	for passes := range 30 {
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
		w.edit(to("one"))
		w.both(two)
		if fw := w.get(); fw.Status.Backend != "one" || fw.Status.Migration != nil && fw.Status.Migration.Phase != "" {
			t.Fatalf("after %d passes: it is on %s, with %+v", passes, fw.Status.Backend, fw.Status.Migration)
		}
		w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		w.sameObjects(was)
	}
}

func TestALostBackendFreezesTheMigration(t *testing.T) {
	w, two := newPair(t)
	w.create(divide(8))
	w.both(two)
	w.edit(to("two"))
	for range 4 {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.backend.Step()
		two.Step()
	}
	w.backends["two"] = nil
	for range 5 {
		_, _ = w.reconcile()
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonBackendUnavailable, `backend "two"`)
	if m := w.get().Status.Migration; m.FrozenSince == nil {
		t.Errorf("it is not frozen: %+v", m)
	}
	w.backends["two"] = two
	w.both(two)
	if fw := w.get(); fw.Status.Backend != "two" {
		t.Errorf("it is on %s", fw.Status.Backend)
	}
}

func TestAMigrationThatCannotBeginSaysWhy(t *testing.T) {
	w, _ := newPair(t)
	w.backends["two"] = memory.New(memory.Options{Clusters: []backends.Cluster{cluster("m1", "a")}})
	w.create(divide(8))
	w.settle()
	w.edit(to("two"))
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNotPossible,
		"cluster m2 is not known to backend two", "cluster m3 is not known to backend two", `set spec.backend back to "one"`)
	if got := w.members(); got != "4 2 2" {
		t.Errorf("members run %s", got)
	}
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(12)) })
	w.settle()
	if got := w.members(); got != "6 3 3" {
		t.Errorf("members run %s", got)
	}
	w.edit(to("one"))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// mode is what a backend was told of a cluster.
func (w *world) mode(b *memory.Backend, cluster string) any {
	w.t.Helper()
	objects, err := b.Owned(context.Background(), backends.Query{Key: backends.Key{NamespacedName: key, UID: w.get().UID}})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		if spec, _ := o.Object["spec"].(map[string]any); spec["cluster"] == cluster {
			return spec["mode"]
		}
	}
	return nil
}

// TestOwnedWhileTheOtherBackendIsRemoved: the removal from a cluster may take as long as that is out of contact. Somebody goes
// on carrying out what the spec asks for there.
func TestOwnedWhileTheOtherBackendIsRemoved(t *testing.T) {
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprintf("back=%t", back), func(t *testing.T) {
			w, two := newPair(t)
			w.create(divide(8))
			w.both(two)
			w.edit(to("two"))
			leaving, owner := w.backend, two
			phase := v1alpha1.MigrationPhaseReleasing
			if back {
				leaving, owner, phase = two, w.backend, v1alpha1.MigrationPhaseHandingOver
			}
			w.passUntil(two, func() bool { m := w.get().Status.Migration; return m != nil && m.Phase == phase })
			if back {
				w.edit(to("one"))
				w.passUntil(two, func() bool {
					return w.get().Status.Migration.Phase == v1alpha1.MigrationPhaseRollingBack && w.mode(owner, "m3") == "Adopt"
				})
			}
			lost := cluster("m3", "b")
			lost.Ready = metav1.ConditionUnknown
			leaving.SetCluster(lost)
			w.both(two)
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(16)) })
			w.both(two)
			if got := w.member("m3"); got != 4 {
				t.Errorf("m3 runs %d after a scale-up, want 4; it was told %v", got, w.mode(owner, "m3"))
			}
		})
	}
}

// passUntil lets everybody do their work until something is so.
func (w *world) passUntil(two *memory.Backend, is func() bool) {
	w.t.Helper()
	for range 100 {
		if is() {
			return
		}
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
		w.backend.Step()
		two.Step()
	}
	w.t.Fatal("it is not so after 100 passes")
}
