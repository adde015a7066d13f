package controllers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

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

// TestAnApprovalExpires: what a change came to a day ago nobody can approve any more, also who approved it in time while no operator ran. Another approval
// takes its place by itself, and the status says of the first one why.
func TestAnApprovalExpires(t *testing.T) {
	const day = 24 * time.Hour
	for name, inTime := range map[string]bool{"approved after a day": false, "approved while no operator ran": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(func(spec *v1alpha1.FleetWorkloadSpec) { spec.Approval = v1alpha1.ApprovalPolicyManual })
			w.settle()
			// An API server counts no generation for an annotation.
			approve := func(token string) {
				t.Helper()
				fw := w.get()
				metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationApproveChange, token)
				if err := w.client.Update(t.Context(), fw); err != nil {
					t.Fatal(err)
				}
			}
			approve(w.get().Status.Change.Approval)
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

			w.edit(func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", "nginx:2", 1))
			})
			w.settle()
			first, sent := *w.get().Status.Change, w.backend.Writes()
			if !first.ExpiresAt.Equal(ptr(metav1.NewTime(w.Clock.Now().Add(day)))) {
				t.Errorf("it can be approved until %s", first.ExpiresAt)
			}
			w.later(int(day/time.Second) - 2)
			w.settle()
			if result, err := w.reconcile(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*time.Second {
				t.Errorf("two seconds before it expires, it is looked at again after %s, %v", result.RequeueAfter, err)
			}
			if got := *w.get().Status.Change; !reflect.DeepEqual(got, first) {
				t.Errorf("two seconds before it expires, it is %+v, was %+v", got, first)
			}
			if inTime {
				approve(first.Approval)
			}
			w.later(2)
			expired := w.Clock.Now()
			if !inTime {
				w.settle()
				approve(first.Approval)
				w.later(1) // a message alone is written at its pace
			}
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval,
				"what was approved ("+first.Approval+": Update on m1, m2, m3) is no longer what would be done, as nobody approved it in time")
			next := *w.get().Status.Change
			want := v1alpha1.SupersededChange{Approval: first.Approval, Reason: v1alpha1.SupersededExpired, Message: first.Message}
			if next.Approval == first.Approval || next.Approval == "" || next.Superseded == nil || *next.Superseded != want ||
				!next.ExpiresAt.Equal(ptr(metav1.NewTime(expired.Add(day)))) {
				t.Errorf("after it has expired, it is %+v", next)
			}
			if now := w.backend.Writes(); now != sent {
				t.Errorf("%d writes for what nobody has approved in time", now-sent)
			}
			approve(next.Approval)
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			if now := w.backend.Writes(); now == sent {
				t.Error("what was approved in time is not carried out")
			}
		})
	}
}

// TestCompanionsWaitForApproval: the status says what becomes of each, and an approval of what was shown lets nothing else through, not even
// another content of what pods refer to.
func TestCompanionsWaitForApproval(t *testing.T) {
	w := newWorld(t)
	w.put("ConfigMap", "settings", "one")
	w.put("Secret", "key", secretContent)
	w.create(func(spec *v1alpha1.FleetWorkloadSpec) {
		referTo("settings")(spec)
		spec.Approval = v1alpha1.ApprovalPolicyManual
	})
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "Create on m1, m2, m3; companions: Create ConfigMap settings, Secret key")
	approve := func(token string) {
		t.Helper()
		w.edit(func(fw *v1alpha1.FleetWorkload) {
			metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationApproveChange, token)
		})
		w.settle()
	}
	approve(w.get().Status.Change.Approval)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.sent("Secret", "key"); got != secretContent {
		t.Fatalf("the Secret is %q", got)
	}

	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), "nginx:1", "nginx:2", 1))
	})
	w.put("Secret", "key", "cm90YXRlZA==")
	w.put("ConfigMap", "settings", "blue")
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "Update on m1, m2, m3; companions: Update ConfigMap settings, Secret key")
	shown := w.get().Status.Change
	if got := fmt.Sprint(shown.Companions); len(shown.Companions) != 2 || strings.Count(got, "[data.value changed]") != 2 {
		t.Errorf("it shows %s", got)
	}
	raw, err := json.Marshal(w.get().Status)
	for _, value := range []string{secretContent, "cm90YXRlZA", "blue"} {
		if err != nil || strings.Contains(string(raw), value) {
			t.Errorf("the status quotes %s: %s, %v", value, raw, err)
		}
	}

	w.put("Secret", "key", "YW5vdGhlcg==")
	approve(shown.Approval)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "companions: Update ConfigMap settings, Secret key")
	if got := w.sent("Secret", "key"); got != secretContent {
		t.Errorf("nobody has approved %q", got)
	}
	approve(w.get().Status.Change.Approval)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.sent("Secret", "key"); got != "YW5vdGhlcg==" {
		t.Errorf("approved, it is %q", got)
	}

	w.put("ConfigMap", "settings", "two")
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.wantSent("two", "")
}
