package controllers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestAChangeWaitsForApproval: on both backends' terms nothing reaches a member before a person has approved it, scaling does not wait, and
// what has changed since is approved anew.
func TestAChangeWaitsForApproval(t *testing.T) {
	w := newWorld(t)
	w.create(func(spec *v1alpha1.FleetWorkloadSpec) {
		divide(8)(spec)
		spec.Approval = v1alpha1.ApprovalPolicyManual
	})
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "Create on m1, m2, m3")
	w.membersRun("-1 -1 -1")
	approve := func() string {
		t.Helper()
		token := w.get().Status.Change.Approval
		if token == "" {
			t.Fatalf("nothing can be approved: %+v", w.get().Status.Change)
		}
		w.edit(func(fw *v1alpha1.FleetWorkload) {
			metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationApproveChange, token)
		})
		w.settle()
		return token
	}
	approve()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.membersRun("4 2 2")

	w.scale(4)
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.membersRun("2 1 1")

	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", "nginx:2", 1))
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: []string{"m1", "m2"}}
	})
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "Remove on m3", "Update on m1, m2")
	w.membersRun("2 1 1")
	stale := w.get().Status.Change.Approval
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: []string{"m1"}}
	})
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationApproveChange, stale)
	})
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "Remove on m2, m3")
	w.membersRun("2 1 1")
	if token := approve(); token == stale {
		t.Error("another change has the same approval")
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.membersRun("4 -1 -1")
	if got := w.get().Status.Change; got.Approval != "" || got.ApprovedHash == "" || len(got.Clusters) > 0 {
		t.Errorf("after it was carried out the status says %+v", got)
	}
}
