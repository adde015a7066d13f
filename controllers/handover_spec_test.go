package controllers

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// handingOver is a migration whose first wave waits for a person, and the spec that it has kept.
func handingOver(t *testing.T) (w *world, two *memory.Backend, kept *appsv1.ControllerRevision) {
	t.Helper()
	w, two = newPair(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{{Size: ptr(intstr.FromInt32(1)), Approval: v1alpha1.ApprovalPolicyManual}}}
	})
	w.both(two)
	w.edit(to("two"))
	w.both(two)
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNeedsApproval)
	kept = &appsv1.ControllerRevision{}
	name := client.ObjectKey{Namespace: key.Namespace, Name: w.get().Status.Migration.SpecRevision}
	if err := w.client.Get(context.Background(), name, kept); err != nil {
		t.Fatal(err)
	}
	return w, two, kept
}

func (w *world) approve(two *memory.Backend) {
	w.t.Helper()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: fw.Status.Migration.Approval}
	})
	w.both(two)
}

func newerImage(fw *v1alpha1.FleetWorkload) {
	fw.Spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", "nginx:2", 1))
}

// TestAKeptSpecThatIsLost: without edits since it is kept anew; with one, nothing goes on until the spec is what it was.
func TestAKeptSpecThatIsLost(t *testing.T) {
	w, two, kept := handingOver(t)
	w.edit(newerImage)
	w.both(two)
	if err := w.client.Delete(context.Background(), kept); err != nil {
		t.Fatal(err)
	}
	w.approve(two)
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationSpecLost, kept.Name, "set the spec to what it was")
	w.membersRun("4 2 2")
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw, fw.Spec.Replicas = []byte(template), ptr(int32(9))
	})
	w.both(two)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.get().Status.Backend; got != "two" {
		t.Errorf("it is on %q", got)
	}
	w.membersRun("5 2 2")
}

// TestAKeptSpecOfSomebodyElse is never rolled out, whether it was there first or written over ours.
func TestAKeptSpecOfSomebodyElse(t *testing.T) {
	foreign := func(w *world) []byte {
		fw := w.get()
		newerImage(fw)
		raw, err := json.Marshal(fw.Spec)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	t.Run("there first", func(t *testing.T) {
		w, two := newPair(t)
		w.create(divide(8))
		w.both(two)
		fw := w.get()
		planted := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "web-migration-2", Labels: map[string]string{v1alpha1.LabelUID: string(fw.UID)}},
			Data:       runtime.RawExtension{Raw: foreign(w)}, Revision: 2,
		}
		if err := w.client.Create(context.Background(), planted); err != nil {
			t.Fatal(err)
		}
		w.edit(to("two"))
		w.both(two)
		w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		if got := w.get().Status.Revision; got != fw.Status.Revision {
			t.Errorf("revision %s became %s", fw.Status.Revision, got)
		}
	})
	t.Run("written over ours", func(t *testing.T) {
		w, two, kept := handingOver(t)
		kept.Data.Raw = foreign(w)
		if err := w.client.Update(context.Background(), kept); err != nil {
			t.Fatal(err)
		}
		w.approve(two)
		w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationSpecLost, "somebody else", "kubectl delete controllerrevision "+kept.Name)
		w.membersRun("4 2 2")
		if err := w.client.Delete(context.Background(), kept); err != nil {
			t.Fatal(err)
		}
		w.both(two)
		w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
}
