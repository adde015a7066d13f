package karmada

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// said is the Work with what Karmada says of applying it, and the conflict resolution that it has; nothing when status is empty.
func said(w work, resolution string, status metav1.ConditionStatus, message string) work {
	out := resolved(w, resolution)
	out.Annotations = map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: resolution}
	out.Status.Conditions = out.Status.Conditions[:1:1]
	if status != "" {
		out.Status.Conditions = append(out.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: status, Message: message})
	}
	return out
}

func TestWhenKarmadaIsToOverwrite(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	for name, c := range map[string]struct {
		policy     v1alpha1.ConflictPolicy
		mode       backends.Mode
		resolution string
		status     metav1.ConditionStatus
		message    string
		without    bool
		want       bool
	}{
		"nothing is there yet":                  {without: true, want: true},
		"nothing is there yet, and it is held":  {without: true, mode: backends.ModeHold, want: true},
		"nothing was tried":                     {resolution: abort, want: true},
		"it is taken over":                      {resolution: overwrite, status: yes},
		"it is ours":                            {resolution: abort, status: yes},
		"it is ours, and held":                  {resolution: abort, status: yes, mode: backends.ModeHold},
		"it is somebody else's":                 {resolution: abort, status: no, message: sayExists, want: true},
		"the take-over failed":                  {resolution: overwrite, status: no, message: sayOther, want: true},
		"a change failed":                       {resolution: abort, status: no, message: sayOther},
		"it could not be made again":            {resolution: abort, status: no, message: "already exists"},
		"a probe has found nothing":             {resolution: abort, status: no, message: sayRefused},
		"a probe has found something":           {resolution: overwrite, status: no, message: sayFive, want: true},
		"a probe has found Karmada's own":       {resolution: abort, status: no, message: sayFive},
		"it is probed":                          {resolution: abort, mode: backends.ModeProbe},
		"it is observed":                        {resolution: abort, mode: backends.ModeObserve, status: no, message: sayExists},
		"it is handed over, and Applied is old": {policy: v1alpha1.ConflictPolicyFail, resolution: abort, mode: backends.ModeAdopt, status: yes, want: true},
		"with Fail":                             {policy: v1alpha1.ConflictPolicyFail, resolution: abort, status: no, message: sayExists},
		"with Fail, and nothing there":          {policy: v1alpha1.ConflictPolicyFail, without: true},
	} {
		d, live := converged(t)
		d.ConflictPolicy, d.Targets[0].Mode = v1alpha1.ConflictPolicyAdopt, c.mode
		if c.policy != "" {
			d.ConflictPolicy = c.policy
		}
		if live.works[0] = said(live.works[0], c.resolution, c.status, c.message); c.without {
			live.works = nil
		}
		want, err := render(d, live)
		if err != nil {
			t.Fatal(err)
		}
		if got := overwrites(d, d.Targets[0], live); got != c.want || len(want.overwriting) > 0 != c.want {
			t.Errorf("%s: %t, %v", name, got, want.overwriting)
		}
	}
}

// applied is the object as the API server returns it once it is applied, when all of its spec is the operator's.
func applied(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	out.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: ssa.FieldOwner, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec": {}}`)},
	}})
	return out
}

// adopting is a converged world at the moment in which its cluster has been taken over.
func adopting(t *testing.T) (backends.Desired, currentState) {
	t.Helper()
	d, live := converged(t)
	d.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	before := mustRender(t, d)
	live.template, live.policy, live.override = applied(before.template), applied(before.policy), applied(before.override)
	live.template.SetUID("t1")
	live.template.SetGeneration(3)
	live.works[0] = said(live.works[0], overwrite, metav1.ConditionTrue, "")
	return d, live
}

// next renders for the live world and decides.
func next(t *testing.T, d backends.Desired, live currentState) decision {
	t.Helper()
	want, err := render(d, live)
	if err != nil {
		t.Fatal(err)
	}
	return decide(d, want, live)
}

// TestTheEndOfATakeOver: one rule goes, while the gate is open, and nothing is done before Karmada has taken that up.
func TestTheEndOfATakeOver(t *testing.T) {
	d, live := adopting(t)
	step := next(t, d, live)
	if len(step.writes) != 1 || step.writes[0].object.GetKind() != "OverridePolicy" || step.waiting == "" {
		t.Fatalf("%+v", step)
	}
	live.override = applied(step.writes[0].object)
	if told := overwrittenBy(live.override); len(told) > 0 {
		t.Fatalf("it still says overwrite: %v", told)
	}
	if step = next(t, d, live); len(step.writes) > 0 || step.waiting != "Karmada to take up that it has taken over what is on m1" {
		t.Fatalf("%+v", step)
	}
	live.works[0] = said(live.works[0], abort, metav1.ConditionTrue, "")
	if step = next(t, d, live); len(step.writes) != 1 || !step.writes[0].remove {
		t.Fatalf("an override that is needed no more: %+v", step)
	}
	live.override = nil
	if step = next(t, d, live); len(step.writes) > 0 || step.waiting != "" {
		t.Errorf("it is not done: %+v", step)
	}
}

// TestATakeOverBeginsBehindTheGate: between the word of a conflict and the take-over the operator must come to ask what is there. So must
// all that comes with another change.
func TestATakeOverBeginsBehindTheGate(t *testing.T) {
	for name, change := range map[string]func(*backends.Desired, *currentState){
		"somebody else's": func(_ *backends.Desired, l *currentState) {
			l.override, l.works[0] = nil, said(l.works[0], abort, metav1.ConditionFalse, sayExists)
		},
		"somebody else's, while another one has been taken over": func(d *backends.Desired, l *currentState) {
			l.override = applied(withRule(l.override, d.Key, []string{"m2"}, resolve(overwrite)))
			l.works[0] = said(l.works[0], abort, metav1.ConditionFalse, sayExists)
		},
		"taken over, and changed": func(d *backends.Desired, _ *currentState) {
			changed := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 2, greeting: "hola"})
			d.Targets = changed.Targets
		},
		"from when the policy said Overwrite": func(_ *backends.Desired, l *currentState) {
			l.override, l.works[0] = nil, said(l.works[0], overwrite, metav1.ConditionTrue, "")
			l.policy.Object["spec"].(map[string]any)["conflictResolution"] = "Overwrite"
		},
	} {
		d, live := adopting(t)
		change(&d, &live)
		step := next(t, d, live)
		if len(step.writes) != 1 || step.writes[0].object.GetKind() != "PropagationPolicy" || !suspendsAll(policySuspension(step.writes[0].object)) {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestAWorkIsNotFinalWithAnotherResolution, whether the policy or a rule has made it so.
func TestAWorkIsNotFinalWithAnotherResolution(t *testing.T) {
	d, live := converged(t)
	for resolution, late := range map[string]bool{abort: false, overwrite: true} {
		live.works[0] = said(live.works[0], resolution, metav1.ConditionTrue, "")
		if why := unfinished(d, mustRender(t, d), live); (why != "") != late {
			t.Errorf("%s: %q", resolution, why)
		}
	}
}

// TestACompanionIsTakenOverOnce, and what is taken over holds nobody up. It is told anew when it is somebody else's once more.
func TestACompanionIsTakenOverOnce(t *testing.T) {
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2})
	d.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	c := backends.Companion{Object: reference("v1", "ConfigMap", testNamespace, "settings")}
	step := takeUp(t, d, c, nil)
	live := step.create
	if !adopts(live) {
		t.Fatal("it would not be taken over")
	}
	live.Status = delivered(metav1.ConditionTrue, "")
	step = takeUp(t, d, c, live)
	if adopts(step.patch) || newWork(step.patch).suspended() || step.pending != "" || step.blocked != "" {
		t.Fatalf("taken over: %+v", step)
	}
	live = step.patch
	if step = takeUp(t, d, c, live); step.patch.Spec.Workload.Manifests[0].String() != live.Spec.Workload.Manifests[0].String() || step.pending != "" {
		t.Fatalf("at rest: %+v", step)
	}
	live.Status = delivered(metav1.ConditionFalse, sayOther)
	if step = takeUp(t, d, c, live); adopts(step.patch) {
		t.Error("any failure has it overwrite")
	}
	live.Status = delivered(metav1.ConditionFalse, sayExists)
	if step = takeUp(t, d, c, live); !adopts(step.patch) || !newWork(step.patch).suspended() || step.pending == "" {
		t.Errorf("somebody else's once more: %+v", step)
	}
	d.ConflictPolicy = v1alpha1.ConflictPolicyFail
	if step = takeUp(t, d, c, live); adopts(step.patch) || step.blocked == "" {
		t.Errorf("with Fail: %+v", step)
	}
}

// TestASharedCompanionIsTakenOverOnce: what was given up is taken over in a hand-over, whatever was said of it before, and whoever shares
// it goes on with that and with its end.
func TestASharedCompanionIsTakenOverOnce(t *testing.T) {
	taker := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2, owner: backends.ModeAdopt})
	user := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2})
	live, want := companionWorkOf(t, taker.Key, user.Key)
	c := want.companion
	if step := takeUp(t, taker, c, live); adopts(step.patch) {
		t.Fatal("it was Karmada's all the time")
	}
	giveUp(live)
	live.Status.Conditions[0].Status = metav1.ConditionFalse
	live = takeUp(t, taker, c, live).patch
	if !adopts(live) {
		t.Fatal("what was given up is not taken over")
	}
	agree := func(when string, overwrites bool) {
		t.Helper()
		for _, d := range []backends.Desired{user, taker, user} {
			if live = takeUp(t, d, c, live).patch; adopts(live) != overwrites {
				t.Fatalf("%s: %+v", when, live)
			}
		}
	}
	agree("suspended", true)
	agree("released", true)
	live.Status = delivered(metav1.ConditionTrue, "")
	agree("taken over", false)
	foreign := c
	foreign.Foreign = []string{"m1"}
	live.Status = delivered(metav1.ConditionFalse, sayExists)
	if step := takeUp(t, taker, foreign, live); adopts(step.patch) {
		t.Error("it is somebody else's, and stays so")
	}
	taker.Targets[0].Mode = backends.ModeObserve
	if mayTakeOver(taker, taker.Targets[0], c, live) {
		t.Error("what is observed is never taken over")
	}
}

// delivered is the status of a Work that is dispatched.
func delivered(status metav1.ConditionStatus, message string) workv1alpha1.WorkStatus {
	return workv1alpha1.WorkStatus{Conditions: []metav1.Condition{
		{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue},
		{Type: workv1alpha1.WorkApplied, Status: status, Message: message},
	}}
}

// takeUp is the next step with a companion on the first target.
func takeUp(t *testing.T, d backends.Desired, c backends.Companion, live *workv1alpha1.Work) companionWorkStep {
	t.Helper()
	target := d.Targets[0]
	want, err := renderCompanionWork(d.Key, target.Cluster, c, mayTakeOver(d, target, c, live) && takesOver(live, target.Mode))
	if err != nil {
		t.Fatal(err)
	}
	step, err := nextCompanionWork(live, want, d.Key, true)
	if err != nil {
		t.Fatal(err)
	}
	return step
}
