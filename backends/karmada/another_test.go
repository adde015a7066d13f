package karmada

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// sayAnother is what Karmada says when its interpreter refuses another Karmada's object.
const sayAnother = "Failed to apply all manifests (0/1): " + lua.Another + "\nstack traceback:"

// TestAnothersObjectIsAConflict, with a remedy of its own.
func TestAnothersObjectIsAConflict(t *testing.T) {
	if !strings.Contains(lua.Another, conflictMessage) {
		t.Fatalf("%q is not taken for a conflict", lua.Another)
	}
	for message, another := range map[string]bool{sayAnother: true, sayExists: false} {
		d, live := converged(t)
		live.works[0] = said(live.works[0], abort, metav1.ConditionFalse, message)
		o := translate(d.Query, live, backends.Fleet{}).Clusters[0]
		if !o.Conflict || (o.Message == anotherMessage) != another || o.Applied != metav1.ConditionFalse {
			t.Errorf("%q: %+v", message, o)
		}
	}
}

// TestAProbeFindsAnothersObject: first that there is one, then how large it is.
func TestAProbeFindsAnothersObject(t *testing.T) {
	d, live := converged(t)
	live.retains = true
	asked(t, &live, abort, sayAnother)
	o := translate(d.Query, live, backends.Fleet{}).Clusters[0]
	if o.Probe == nil || !o.Probe.Exists || o.Probe.Answered {
		t.Errorf("%+v", o.Probe)
	}
}

// TestAnothersObjectIsNotDeleted: Karmada deletes by a label that is on it. Nor is what was never looked at, unless the other backend has
// left it to us. What was applied goes.
func TestAnothersObjectIsNotDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*currentState)
		spared bool
		alone  bool
	}{
		"another's": {func(l *currentState) { l.works[0] = said(l.works[0], abort, metav1.ConditionFalse, sayAnother) }, true, true},
		"never looked at": {func(l *currentState) {
			untry(l)
			closeGate(l)
		}, true, false},
		"about to be looked at": {untry, false, false},
		"ours":                  {func(*currentState) {}, false, false},
		"a change failed":       {func(l *currentState) { l.works[0] = said(l.works[0], abort, metav1.ConditionFalse, sayOther) }, false, false},
	} {
		d, live := converged(t)
		c.change(&live)
		if spared := slices.Equal(live.leftAlone(), []string{"m1"}); spared != c.spared {
			t.Errorf("%s: %v", name, live.leftAlone())
		}
		for counterpart, want := range map[backends.Counterpart]bool{backends.CounterpartNone: c.spared, backends.CounterpartGone: c.alone} {
			d.Counterpart = counterpart
			step := decideDelete(d.Query, v1alpha1.DeletionPolicyDelete, live, backends.Fleet{}, time.Now())
			if spares := len(step.writes) == 1 && step.writes[0].object.GetKind() == "OverridePolicy"; spares != want {
				t.Errorf("%s, %q: %+v", name, counterpart, step)
			}
		}
	}
}

// untry makes the Work one that Karmada has not carried out.
func untry(l *currentState) {
	yes := true
	l.works[0] = said(l.works[0], abort, "", "")
	l.works[0].Spec.SuspendDispatching, l.works[0].Status.ManifestStatuses = &yes, nil
}

func closeGate(l *currentState) {
	yes := true
	l.policy = gated(l.policy)
	l.binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &yes}}
}

// TestDeleteWaitsForWhatIsBeingDispatched: of a Work that is not suspended any more, as its policy or its binding says, nobody can tell yet
// whether there is a member object of ours.
func TestDeleteWaitsForWhatIsBeingDispatched(t *testing.T) {
	for name, change := range map[string]func(*currentState){
		"the Work is late":    func(*currentState) {},
		"the binding is late": func(l *currentState) { closeGate(l); l.binding.Spec.Suspension = nil },
	} {
		d, live := converged(t)
		untry(&live)
		change(&live)
		step := decideDelete(d.Query, v1alpha1.DeletionPolicyDelete, live, backends.Fleet{}, time.Now())
		if len(step.writes) > 0 || !strings.Contains(step.waiting, "to dispatch the change before this one to m1") {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestWhatIsSparedInVainIsTakenBack: the Work of a cluster that was to be spared says later that it was applied. By what it holds then
// Karmada would delete nothing.
func TestWhatIsSparedInVainIsTakenBack(t *testing.T) {
	d, live := converged(t)
	live.override = withSpared(overrideOf(d.Query, live), d.Key, []string{"m1"})
	deletes := func() decision {
		return decideDelete(d.Query, v1alpha1.DeletionPolicyDelete, live, backends.Fleet{}, time.Now())
	}
	step := deletes()
	if len(step.writes) != 1 || step.writes[0].object.GetKind() != "OverridePolicy" || len(sparedBy(step.writes[0].object)) > 0 {
		t.Fatalf("%+v", step)
	}
	live.override = step.writes[0].object
	if rules, _, _ := unstructured.NestedSlice(live.override.Object, "spec", "overrideRules"); len(rules) > 0 {
		t.Errorf("a rule for no cluster is one for all: %v", rules)
	}
	if step = deletes(); len(step.writes) != 1 || !step.writes[0].remove {
		t.Errorf("it is taken back, and then: %+v", step)
	}
	live.works[0] = poisoned(live.works[0])
	if step = deletes(); len(step.writes) > 0 || !strings.Contains(step.waiting, "to take up again what is on m1") {
		t.Errorf("the Work does not know it yet: %+v", step)
	}
}

// TestAnothersObjectIsNeverTouched, whatever the order of events: neither while its cluster is a target, nor when that is left. The other
// clusters get every change. With Adopt it is taken over, and goes like any other.
func TestAnothersObjectIsNeverTouched(t *testing.T) {
	for seed := range uint64(15) {
		s := newSimulation(seed)
		s.misspoken, s.another = mostMisspoken, map[string]bool{"m2": true}
		first, second := share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 2, greeting: "hola"}
		var want []string
		change := func(n int, policy v1alpha1.ConflictPolicy, shares ...share) backends.Desired {
			d := desiredFor(revisionOf(n), "pause:"+strconv.Itoa(n), v1alpha1.DivisionTypeDivided, shares...)
			d.ConflictPolicy = policy
			s.finish(t, d, fmt.Sprintf("seed %d, change %d", seed, n))
			s.settle()
			want = append(want, what(d.Targets[0].Manifest))
			return d
		}
		for n, shares := range [][]share{{first, second}, {first, second}, {first}, {first, second}} {
			d := change(n, v1alpha1.ConflictPolicyFail, shares...)
			if o := translate(d.Query, s.now, simulatedFleet()); len(shares) == 2 && o.Clusters[1].Message != anotherMessage {
				t.Fatalf("seed %d, change %d: %+v", seed, n, o.Clusters[1])
			}
			if got := s.members["m2"]; len(got) > 0 {
				t.Fatalf("seed %d, change %d: another's object was touched: %v", seed, n, got)
			}
		}
		adopted := change(4, v1alpha1.ConflictPolicyAdopt, first, second)
		change(5, v1alpha1.ConflictPolicyAdopt, first)
		if got := s.members["m1"]; !slices.Equal(got, want) {
			t.Errorf("seed %d: m1 saw %v, want %v", seed, got, want)
		}
		if got := s.members["m2"]; !slices.Equal(got, []string{what(adopted.Targets[1].Manifest), "deleted"}) {
			t.Errorf("seed %d: adopted, and m2 saw %v", seed, got)
		}
	}
}
