package karmada

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
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
	work := func(change func(w *workv1alpha1.Work)) func(*currentState, *backends.Desired) {
		return func(live *currentState, _ *backends.Desired) {
			changed := live.works[1].DeepCopy()
			change(changed)
			live.works = slices.Clone(live.works)
			live.works[1] = newWork(changed)
		}
	}
	annotated := func(key, value string) func(*currentState, *backends.Desired) {
		return work(func(w *workv1alpha1.Work) {
			w.Annotations = maps.Clone(w.Annotations)
			w.Annotations[key] = value
		})
	}
	yes := true
	tests := map[string]struct {
		change  func(live *currentState, d *backends.Desired)
		ungated bool
	}{
		"a new image": {ungated: true},
		"an override of ours, of before, in the record": {ungated: true, change: annotated(
			"policy.karmada.io/applied-overrides", `[{"policyName":"`+policyName(testQuery())+`","overriders":{}}]`)},
		"an override of somebody else's": {change: annotated("policy.karmada.io/applied-overrides", `[{"policyName":"mirror","overriders":{}}]`)},
		"an administrator's override":    {change: annotated("policy.karmada.io/applied-cluster-overrides", `[{"policyName":"mirror","overriders":{}}]`)},
		"a record that is not to be read": {change: annotated(
			"policy.karmada.io/applied-overrides", `[`)},
		"an override of ours": {change: func(_ *currentState, d *backends.Desired) {
			d.Targets[0].Manifest = manifestFor("r1", "pause:1", "hola", 2)
		}},
		"another number of replicas": {change: func(_ *currentState, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 3}, share{cluster: "m2", replicas: 2})
		}},
		"one cluster more": {change: func(_ *currentState, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 2}, share{cluster: "m3", replicas: 2})
		}},
		"one cluster less": {change: func(_ *currentState, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 4})
		}},
		"a companion on its way": {change: func(live *currentState, _ *backends.Desired) { live.companionsMove = true }},
		"a hold":                 {change: func(_ *currentState, d *backends.Desired) { d.Targets[0].Mode = backends.ModeHold }},
		"a cluster that is observed": {change: func(_ *currentState, d *backends.Desired) {
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
		"no Work":   {change: func(live *currentState, _ *backends.Desired) { live.works = live.works[:1] }},
		"a Work elsewhere": {change: func(live *currentState, _ *backends.Desired) {
			live.works = append(slices.Clone(live.works), elsewhere(live.works[0]))
		}},
		"no binding": {change: func(live *currentState, _ *backends.Desired) { live.binding = nil }},
		"a binding that is not scheduled": {change: func(live *currentState, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Generation++
			live.binding.Annotations = nil
		}},
		"a binding in which the scheduler has nothing to do": {ungated: true, change: func(live *currentState, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Generation++
		}},
		"a binding with another number of replicas": {change: func(live *currentState, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Spec.Replicas++
		}},
		"a binding that is suspended": {change: func(live *currentState, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Spec.Suspension.Dispatching = &yes
		}},
		"a binding that preserves": {change: func(live *currentState, _ *backends.Desired) {
			live.binding = live.binding.DeepCopy()
			live.binding.Spec.PreserveResourcesOnDeletion = &yes
		}},
		"an override that is left": {change: func(live *currentState, d *backends.Desired) {
			live.override = mustRender(t, *d).override
		}},
		"another policy": {change: func(live *currentState, _ *backends.Desired) {
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

// TestWhatIsCreatedAtOnce: a new workload that is the same for all clusters is dispatched as it is made, and all else is looked at first.
func TestWhatIsCreatedAtOnce(t *testing.T) {
	same := func() backends.Desired {
		return desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 2})
	}
	for name, tt := range map[string]struct {
		change func(live *currentState, d *backends.Desired)
		atOnce bool
	}{
		"the same for all": {atOnce: true},
		"without replicas": {atOnce: true, change: func(_ *currentState, d *backends.Desired) {
			d.Workload.ReplicasPath = nil
			for i := range d.Targets {
				d.Targets[i].Replicas, d.Targets[i].Manifest = nil, d.Template
			}
		}},
		"options of another backend": {atOnce: true, change: func(_ *currentState, d *backends.Desired) {
			d.Options = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{}}
		}},
		"its policy is there":                 {atOnce: true, change: func(live *currentState, d *backends.Desired) { live.policy = mustRender(t, *d).policy }},
		"interpreters or overrides of others": {change: func(live *currentState, _ *backends.Desired) { live.plain = false }},
		"a companion on its way":              {change: func(live *currentState, _ *backends.Desired) { live.companionsMove = true }},
		"replicas that are divided": {change: func(_ *currentState, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 2})
		}},
		"other replicas on one": {change: func(_ *currentState, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 3})
		}},
		"none": {change: func(_ *currentState, d *backends.Desired) {
			*d = desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1"}, share{cluster: "m2"})
		}},
		"an override": {change: func(_ *currentState, d *backends.Desired) {
			d.Targets[0].Manifest = manifestFor("r1", "pause:1", "hola", 2)
		}},
		"a hold":                   {change: func(_ *currentState, d *backends.Desired) { d.Targets[0].Mode = backends.ModeHold }},
		"an observed":              {change: func(_ *currentState, d *backends.Desired) { d.Targets[0].Mode = backends.ModeObserve }},
		"a probe":                  {change: func(_ *currentState, d *backends.Desired) { d.Targets[0].Mode = backends.ModeProbe }},
		"an adoption":              {change: func(_ *currentState, d *backends.Desired) { d.Targets[0].Mode = backends.ModeAdopt }},
		"an override that is left": {change: func(live *currentState, d *backends.Desired) { live.override = mustRender(t, *d).override }},
		"options": {change: func(_ *currentState, d *backends.Desired) {
			d.Options = &v1alpha1.BackendOptions{Karmada: &v1alpha1.KarmadaOptions{}}
		}},
		"a template that Karmada has not bound": {change: func(live *currentState, d *backends.Desired) {
			live.template = desiredFor("r0", "pause:0", v1alpha1.DivisionTypeDuplicated).Template
			live.policy = mustRender(t, *d).policy
		}},
	} {
		t.Run(name, func(t *testing.T) {
			live, d := currentState{plain: true}, same()
			if tt.change != nil {
				tt.change(&live, &d)
			}
			step := decide(d, mustRender(t, d), live)
			if len(step.writes) == 0 {
				t.Fatalf("nothing is written: %+v", step)
			}
			last := step.writes[len(step.writes)-1].object
			atOnce := last.GetKind() == "CloneSet" || !suspendsAll(policySuspension(last))
			if atOnce != tt.atOnce {
				t.Errorf("it is dispatched at once: %t, want %t", atOnce, tt.atOnce)
			}
		})
	}
}

// TestTheEndOfACreationAtOnce: it is not done before Karmada has made a Work for each cluster.
func TestTheEndOfACreationAtOnce(t *testing.T) {
	s := newSimulation(1)
	d := desiredFor("r0", "pause:0", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2}, share{cluster: "m2", replicas: 2})
	want := mustRender(t, d)
	waits := func(words string) {
		t.Helper()
		if step := decide(d, want, s.now); len(step.writes) > 0 || !strings.HasPrefix(step.waiting, words) {
			t.Errorf("waiting for %q, want %q; writes %v", step.waiting, words, step.writes)
		}
	}
	s.apply(want.policy)
	s.apply(want.template)
	waits("Karmada to bind the template")
	s.refresh(0, 0)
	s.refresh(0, 1)
	s.detect()
	waits("Karmada to schedule it")
	s.schedule()
	waits("Karmada to render the manifest of m1")
	s.refresh(1, 3)
	s.bind()
	waits("Karmada to dispatch the change to m1, m2")
	s.settle()
	if step := decide(d, want, s.now); step.waiting != "" || len(step.writes) > 0 {
		t.Errorf("not done: %+v", step)
	}
}

func TestMaySelect(t *testing.T) {
	w := testQuery().Workload
	selector := func(apiVersion, kind, name string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}
	}
	apiVersion := w.GVK.GroupVersion().String()
	for name, tt := range map[string]struct {
		spec map[string]any
		want bool
	}{
		"all":             {spec: map[string]any{}, want: true},
		"the kind":        {spec: map[string]any{"resourceSelectors": []any{selector(apiVersion, w.GVK.Kind, "")}}, want: true},
		"the name":        {spec: map[string]any{"resourceSelectors": []any{selector("v1", "Secret", ""), selector(apiVersion, w.GVK.Kind, w.Name)}}, want: true},
		"another name":    {spec: map[string]any{"resourceSelectors": []any{selector(apiVersion, w.GVK.Kind, "other")}}},
		"another kind":    {spec: map[string]any{"resourceSelectors": []any{selector(apiVersion, "Other", "")}}},
		"another version": {spec: map[string]any{"resourceSelectors": []any{selector("other/v1", w.GVK.Kind, "")}}},
		"not to be read":  {spec: map[string]any{"resourceSelectors": "all"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := maySelect(unstructured.Unstructured{Object: map[string]any{"spec": tt.spec}}, w); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestWhichCompanionsMove: until it is proven, or some time is over, a change of a companion is on its way.
func TestWhichCompanionsMove(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		dispatched, applied time.Duration // ago; 0 is never
		want                bool
	}{
		"made":                          {},
		"dispatched for the first time": {dispatched: time.Second, want: true},
		"applied after that":            {dispatched: 2 * time.Second, applied: time.Second},
		"applied in the same second":    {dispatched: time.Second, applied: time.Second, want: true},
		"changed since":                 {dispatched: time.Second, applied: time.Minute, want: true},
		"changed a while ago":           {dispatched: deliveredWithin, applied: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workv1alpha1.Work{}
			for kind, ago := range map[string]time.Duration{workv1alpha1.WorkDispatching: tt.dispatched, workv1alpha1.WorkApplied: tt.applied} {
				if ago > 0 {
					w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
						Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now.Add(-ago)},
					})
				}
			}
			if got := (companionWorkStep{live: w}).moving(now); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if (companionWorkStep{}).moving(now) {
		t.Error("what is not there moves")
	}
}

// TestWhatIsPlain: overrides of others that may select the workload, interpreters of others, and what cannot be read have a creation looked at.
func TestWhatIsPlain(t *testing.T) {
	q := testQuery()
	override := func(kind, namespace string, labels map[string]string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		obj.SetGroupVersionKind(policyv1alpha1.SchemeGroupVersion.WithKind(kind))
		obj.SetNamespace(namespace)
		obj.SetName("theirs")
		obj.SetLabels(labels)
		return obj
	}
	refuse := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	}}
	const namespaced, wide = policyv1alpha1.ResourceKindOverridePolicy, policyv1alpha1.ResourceKindClusterOverridePolicy
	for name, tt := range map[string]struct {
		there *unstructured.Unstructured
		plan  installPlan
		funcs interceptor.Funcs
		want  bool
	}{
		"nothing":                {plan: installPlan{alone: true}, want: true},
		"interpreters of others": {},
		"an override":            {there: override(namespaced, q.Workload.Namespace, nil), plan: installPlan{alone: true}},
		"an administrator's":     {there: override(wide, "", nil), plan: installPlan{alone: true}},
		"in another namespace":   {there: override(namespaced, "other", nil), plan: installPlan{alone: true}, want: true},
		"one of ours": {there: override(namespaced, q.Workload.Namespace, map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator}),
			plan: installPlan{alone: true}, want: true},
		"not to be read": {plan: installPlan{alone: true}, funcs: refuse},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := policyv1alpha1.Install(scheme); err != nil {
				t.Fatal(err)
			}
			objects := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(tt.funcs)
			if tt.there != nil {
				objects = objects.WithObjects(tt.there)
			}
			d := &Driver{client: objects.Build(), installer: newCustomizationInstaller(interpreterOf)}
			d.installer.plans[q.Workload.GVK] = tt.plan
			if got := d.isPlain(t.Context(), q); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
