package karmada

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

func TestUnseenUntilReported(t *testing.T) {
	now := time.Unix(10_000, 0)
	at := func(before time.Duration) metav1.Time { return metav1.Time{Time: now.Add(-before)} }
	says := func(condition string, status metav1.ConditionStatus, message string, before time.Duration) func(w *workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: condition, Status: status, Message: message, LastTransitionTime: at(before),
			})
		}
	}
	applied := says(workv1alpha1.WorkApplied, metav1.ConditionTrue, "", 10*time.Second)
	failed := func(message string) func(w *workv1alpha1.Work) {
		return says(workv1alpha1.WorkApplied, metav1.ConditionFalse, message, 10*time.Second)
	}
	suspended := func(w *workv1alpha1.Work) { yes := true; w.Spec.SuspendDispatching = &yes }
	const left = unseenFor - 10*time.Second
	for name, c := range map[string]struct {
		edits []func(w *workv1alpha1.Work)
		// lost is a cluster out of contact, back one that has been in contact for that long.
		lost bool
		back time.Duration

		until time.Duration
		is    bool
	}{
		"made, and not reported": {edits: []func(*workv1alpha1.Work){applied}, until: left, is: true},
		"reported": {edits: []func(*workv1alpha1.Work){applied, func(w *workv1alpha1.Work) {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{}}
		}}},
		"made long ago": {edits: []func(*workv1alpha1.Work){says(workv1alpha1.WorkApplied, metav1.ConditionTrue, "", unseenFor)}},
		"made long ago, on a cluster that has just come back": {back: time.Second, until: unseenFor - time.Second, is: true,
			edits: []func(*workv1alpha1.Work){says(workv1alpha1.WorkApplied, metav1.ConditionTrue, "", time.Hour)}},
		"made, and lost":          {edits: []func(*workv1alpha1.Work){applied}, lost: true, is: true},
		"made, and suspended":     {edits: []func(*workv1alpha1.Work){applied, suspended}, until: left, is: true},
		"on its way":              {until: unseenFor - 30*time.Second, is: true},
		"on its way, and lost":    {lost: true},
		"held since it was new":   {edits: []func(*workv1alpha1.Work){suspended}},
		"held while it was made":  {edits: []func(*workv1alpha1.Work){suspended, says(workv1alpha1.WorkDispatching, metav1.ConditionTrue, "", 0)}, until: unseenFor - 30*time.Second, is: true},
		"refused":                 {edits: []func(*workv1alpha1.Work){failed(`Deployment.apps "web" is invalid: spec.template: Required value`)}},
		"without a namespace":     {edits: []func(*workv1alpha1.Work){failed(`namespaces "shop" not found`)}},
		"somebody else's":         {edits: []func(*workv1alpha1.Work){failed(conflictMessage)}},
		"made, and tried again":   {edits: []func(*workv1alpha1.Work){failed(`deployments.apps "web" already exists`)}, until: left, is: true},
		"of which no answer came": {edits: []func(*workv1alpha1.Work){failed("connect: connection refused")}, until: left, is: true},
		"leaving":                 {edits: []func(*workv1alpha1.Work){applied, func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: now} }}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &workv1alpha1.Work{}
			obj.Namespace, obj.CreationTimestamp = executionPrefix+"m1", at(30*time.Second)
			for _, edit := range c.edits {
				edit(obj)
			}
			cluster := backends.Cluster{Name: "m1", Ready: metav1.ConditionTrue, ReadySince: now.Add(-time.Hour)}
			if c.lost {
				cluster.Ready = metav1.ConditionFalse
			}
			if c.back > 0 {
				cluster.ReadySince = now.Add(-c.back)
			}
			until, is := newWork(obj).unseen(backends.Fleet{Clusters: []backends.Cluster{cluster}}, now)
			if until != c.until || is != c.is {
				t.Errorf("%s, %t", until, is)
			}
		})
	}
}

// TestNothingUnseenIsTakenAway: neither by a deletion, nor when a cluster is left, nor with a companion.
func TestNothingUnseenIsTakenAway(t *testing.T) {
	now, fleet := time.Unix(10_000, 0), fleetOf(metav1.ConditionTrue, "m1", "m2")
	d, live := converged(t)
	for i, w := range live.works {
		obj := w.DeepCopy()
		obj.Status.ManifestStatuses = nil
		obj.Status.Conditions = nil
		worded := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now}}
		meta.SetStatusCondition(&obj.Status.Conditions, worded)
		live.works[i] = newWork(obj)
	}
	step := decideDelete(d.Query, "Delete", live, fleet, now)
	if len(step.writes) > 0 || step.waiting != "Karmada to see what it has made on m1" || step.requeueAfter != unseenFor {
		t.Errorf("%+v", step)
	}
	if step = decideDelete(d.Query, "Delete", live, fleet, now.Add(unseenFor)); len(step.writes) != 1 || !step.writes[0].remove {
		t.Errorf("not after that time: %+v", step)
	}
	if step = decideDelete(d.Query, "Delete", live, fleetOf(metav1.ConditionFalse, "m1"), now); !strings.Contains(step.waiting, "out of contact: m1") || step.requeueAfter != 0 {
		t.Errorf("lost: %+v", step)
	}
	unseen, requeueAfter := live.unseen(fleet, now, func(work) bool { return false })
	if len(unseen) != 1 || requeueAfter != unseenFor {
		t.Fatalf("%v, %s", unseen, requeueAfter)
	}
	less := desiredFor("r2", "pause:2", "Duplicated", share{cluster: "m2", replicas: 3})
	removed := map[string]bool{"m1": true}
	if with, stay := holdUnsaid(less, removed, live, fleet, unseen); stay["m1"] == "" || with.Targets[0].Mode != backends.ModeHold {
		t.Errorf("%v, %+v", stay, with.Targets)
	}
	if with, stay := holdUnsaid(less, removed, live, fleet, nil); len(stay) > 0 || len(with.Targets) != 1 {
		t.Errorf("%v, %+v", stay, with.Targets)
	}

	key := testQuery().Key
	made, _ := companionWorkOf(t, key)
	made.Status.Conditions = live.works[0].Status.Conditions
	if leave := nextLeaving(made, key, "Delete", fleet, now); leave.remove || leave.waiting == "" || leave.requeueAfter != unseenFor {
		t.Errorf("%+v", leave)
	}
	if leave := nextLeaving(made, key, "Delete", fleet, now.Add(unseenFor)); !leave.remove {
		t.Errorf("%+v", leave)
	}
}
