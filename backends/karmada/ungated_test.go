package karmada

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// atRest is a simulation that has brought two replicas to each of two clusters, and whose members have reported.
func atRest(t *testing.T) (*simulation, []share) {
	t.Helper()
	s := newSimulation(1)
	s.misspoken = mostMisspoken
	shares := []share{{cluster: "m1", replicas: 2}, {cluster: "m2", replicas: 2}}
	d := desiredFor("r0", "pause:0", v1alpha1.DivisionTypeDivided, shares...)
	s.finish(t, d, "the creation")
	s.settle()
	s.finish(t, d, "the rest")
	for range 200 {
		s.see()
	}
	return s, shares
}

// TestWhatNeedsNoGate: a new template is written at once where nothing else takes part, and behind the gate otherwise.
func TestWhatNeedsNoGate(t *testing.T) {
	work := func(change func(w *workv1alpha1.Work)) func(*world, *backends.Desired) {
		return func(live *world, _ *backends.Desired) {
			changed := live.works[1].DeepCopy()
			change(changed)
			live.works = slices.Clone(live.works)
			live.works[1] = newWork(changed)
		}
	}
	annotated := func(key, value string) func(*world, *backends.Desired) {
		return work(func(w *workv1alpha1.Work) {
			w.Annotations = maps.Clone(w.Annotations)
			w.Annotations[key] = value
		})
	}
	yes := true
	tests := map[string]struct {
		change  func(live *world, d *backends.Desired)
		ungated bool
	}{
		"a new image": {ungated: true},
		"an override of ours, of before, in the record": {ungated: true, change: annotated(
			"policy.karmada.io/applied-overrides", `[{"policyName":"`+policyName(testQuery())+`","overriders":{}}]`)},
		"an override of somebody else's": {change: annotated("policy.karmada.io/applied-overrides", `[{"policyName":"mirror","overriders":{}}]`)},
		"an administrator's override":    {change: annotated("policy.karmada.io/applied-cluster-overrides", `[{"policyName":"mirror","overriders":{}}]`)},
		"a record that is not to be read": {change: annotated(
			"policy.karmada.io/applied-overrides", `[`)},
		"an override of ours": {change: func(_ *world, d *backends.Desired) {
			d.Targets[0].Manifest = manifestFor("r1", "pause:1", "hola", 2)
		}},
		"another number of replicas": {change: func(_ *world, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 3}, share{cluster: "m2", replicas: 2})
		}},
		"one cluster more": {change: func(_ *world, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 2}, share{cluster: "m3", replicas: 2})
		}},
		"one cluster less": {change: func(_ *world, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 4})
		}},
		"a hold": {change: func(_ *world, d *backends.Desired) { d.Targets[0].Mode = backends.ModeHold }},
		"a cluster that is observed": {change: func(_ *world, d *backends.Desired) {
			d.Targets[0].Mode = backends.ModeObserve
		}},
		"a Work that is suspended": {change: work(func(w *workv1alpha1.Work) {
			w.Spec.SuspendDispatching = &yes
		})},
		"a Work that was not dispatched": {change: work(func(w *workv1alpha1.Work) {
			w.Status.Conditions = nil
		})},
		"a Work that preserves": {change: work(func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = &yes })},
		"a report without the revision": {change: work(func(w *workv1alpha1.Work) {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}}}
		})},
		"no report": {change: work(func(w *workv1alpha1.Work) { w.Status.ManifestStatuses = nil })},
		"no Work":   {change: func(live *world, _ *backends.Desired) { live.works = live.works[:1] }},
		"a Work elsewhere": {change: func(live *world, _ *backends.Desired) {
			live.works = append(slices.Clone(live.works), elsewhere(live.works[0]))
		}},
		"no binding": {change: func(live *world, _ *backends.Desired) { live.binding = nil }},
		"a binding that is not scheduled": {change: func(live *world, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Generation++
		}},
		"a binding with another number of replicas": {change: func(live *world, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Spec.Replicas++
		}},
		"a binding that is suspended": {change: func(live *world, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Spec.Suspension.Dispatching = &yes
		}},
		"a binding that preserves": {change: func(live *world, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Spec.PreserveResourcesOnDeletion = &yes
		}},
		"an override that is left": {change: func(live *world, d *backends.Desired) {
			live.override = mustRender(t, *d).override
		}},
		"another policy": {change: func(live *world, _ *backends.Desired) {
			live.policy = withPreserve(live.policy, testQuery().Key, true)
		}},
	}
	s, shares := atRest(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := s.now
			d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, shares...)
			if tt.change != nil {
				tt.change(&live, &d)
			}
			step := decide(d, mustRender(t, d), live)
			wrote := slices.ContainsFunc(step.writes, func(w write) bool { return w.object.GetKind() == "CloneSet" })
			if wrote != tt.ungated {
				t.Errorf("the template is written: %t, want %t; waiting for %q", wrote, tt.ungated, step.waiting)
			}
		})
	}
}

func elsewhere(w work) work {
	obj := w.DeepCopy()
	obj.Namespace = executionPrefix + "m4"
	return newWork(obj)
}

// TestTheEndOfAChangeWithoutTheGate: it is not done before Karmada has rendered it everywhere.
func TestTheEndOfAChangeWithoutTheGate(t *testing.T) {
	s, shares := atRest(t)
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, shares...)
	want := mustRender(t, d)
	s.apply(want.template)
	if step := decide(d, want, s.now); !strings.HasPrefix(step.waiting, "Karmada to render the manifest of m1, m2") {
		t.Errorf("waiting for %q", step.waiting)
	}
	s.settle()
	if step := decide(d, want, s.now); step.waiting != "" || len(step.writes) > 0 {
		t.Errorf("not done: %+v", step)
	}
}
