package karmada

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// worded is a Work that was dispatched at its first second, with that word of Karmada's.
func worded(reason string, status metav1.ConditionStatus, at int64) work {
	obj := &workv1alpha1.Work{}
	obj.Namespace = executionPrefix + "m1"
	obj.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: time.Unix(1, 0)}},
		{Type: workv1alpha1.WorkApplied, Status: status, Reason: reason, LastTransitionTime: metav1.Time{Time: time.Unix(at, 0)}, Message: "already exists"},
	}
	return newWork(obj)
}

// dispatching changes what the execution controller last said.
func (w work) dispatching(status metav1.ConditionStatus, at int64) work {
	obj := w.DeepCopy()
	meta.SetStatusCondition(&obj.Status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkDispatching, Status: status, LastTransitionTime: metav1.Time{Time: time.Unix(at, 0)},
	})
	return newWork(obj)
}

func TestAWordThatNothingTakesBack(t *testing.T) {
	failed := worded(reasonRecreateFailed, metav1.ConditionFalse, 5)
	for name, c := range map[string]struct {
		w    work
		want bool
	}{
		"it could not be made again":          {w: failed, want: true},
		"in the second of the first look":     {w: worded(reasonRecreateFailed, metav1.ConditionFalse, 1), want: true},
		"suspended, and so on its way":        {w: failed.dispatching(metav1.ConditionFalse, 6)},
		"dispatched since":                    {w: failed.dispatching(metav1.ConditionFalse, 6).dispatching(metav1.ConditionTrue, 7)},
		"it was made again":                   {w: worded("ReCreateSuccessful", metav1.ConditionTrue, 5)},
		"Karmada goes on trying by itself":    {w: worded("AppliedFailed", metav1.ConditionFalse, 5)},
		"nothing was said of it":              {w: newWork(&workv1alpha1.Work{})},
		"it was never taken up for a cluster": {w: newWork(&workv1alpha1.Work{Status: workv1alpha1.WorkStatus{Conditions: failed.Status.Conditions[1:]}})},
	} {
		if got := c.w.unrevised(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	d, live := converged(t)
	status := live.works[0].DeepCopy()
	status.Status = failed.Status
	live.works[0] = newWork(status)
	for owner, want := range map[backends.Mode]int{
		backends.ModeOwn: 1, backends.ModeObserve: 0, backends.ModeProbe: 0,
	} {
		d.Targets[0].Mode = owner
		if got := toRecheck(d, mustRender(t, d), live); len(got) != want {
			t.Errorf("%s: %v", owner, got)
		}
	}
	d.Targets[0].Mode, live.binding.Generation = backends.ModeOwn, 6
	if got := toRecheck(d, mustRender(t, d), live); len(got) != 0 {
		t.Errorf("suspended while the scheduler may keep it so: %v", got)
	}
}

// TestACompanionWorkIsCheckedAgain once, and then dispatched as before.
func TestACompanionWorkIsCheckedAgain(t *testing.T) {
	key := testQuery().Key
	live, want := companionWorkOf(t, key)
	next := func() companionWorkStep {
		t.Helper()
		step, err := nextCompanionWork(live, want, key, true)
		if err != nil {
			t.Fatal(err)
		}
		return step
	}
	live = next().patch
	live.Status.Conditions = worded(reasonRecreateFailed, metav1.ConditionFalse, 5).Status.Conditions
	if away, err := nextCompanionWork(live, want, key, false); err != nil || newWork(away.patch).suspended() || away.blocked == "" {
		t.Errorf("out of contact: %+v, %v", away, err)
	}
	for range 2 { // until Karmada has taken it up
		step := next()
		if live = step.patch; !newWork(live).suspended() || step.pending == "" {
			t.Fatalf("%+v", step)
		}
	}
	live.Status = newWork(live).dispatching(metav1.ConditionFalse, 6).Status
	if live = next().patch; newWork(live).suspended() {
		t.Fatal("it stays suspended")
	}
	live.Status = newWork(live).dispatching(metav1.ConditionTrue, 7).Status
	if step := next(); newWork(step.patch).suspended() || step.blocked == "" {
		t.Errorf("it is asked again and again: %+v", step)
	}
}
