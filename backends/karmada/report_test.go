package karmada

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

func asError(err error, target **backends.Error) bool { return errors.As(err, target) }

// converged is a world in which one cluster runs the newest generation, as the test fleet shows it.
func converged(t *testing.T) (backends.Desired, currentState) {
	t.Helper()
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 2})
	want := mustRender(t, d)
	live := currentState{template: want.template.DeepCopy(), policy: want.policy.DeepCopy()}
	live.template.SetGeneration(3)
	live.template.SetUID("t1")
	placement, err := policyPlacement(want.policy)
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name, b.Generation = testNamespace, bindingName(d.Workload), 5
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: testName, UID: "t1"},
		Replicas: 2, Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}, Placement: &placement,
	}
	b.Status.SchedulerObservedGeneration = 5
	live.binding = b
	live.works = []work{rendersFor(t, d, "m1", 3)}
	return d, live
}

func rendersFor(t *testing.T, d backends.Desired, cluster string, generation int) work {
	t.Helper()
	i := slices.IndexFunc(d.Targets, func(t backends.Target) bool { return t.Cluster == cluster })
	manifest := d.Targets[i].Manifest.DeepCopy()
	annotations := manifest.GetAnnotations()
	annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey] = fmt.Sprint(generation)
	manifest.SetAnnotations(annotations)
	raw, err := manifest.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	obj := workOf(cluster, raw).Work
	obj.Finalizers = []string{executionFinalizer}
	obj.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue},
		{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Message: "Manifest has been successfully applied"},
	}
	obj.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"replicas":2,"readyReplicas":2,"generation":4,"observedGeneration":4,"resourceTemplateGeneration":%d}`, generation)}}}
	return newWork(obj)
}

func workOf(cluster string, raw []byte) work {
	obj := &workv1alpha1.Work{}
	obj.Namespace, obj.Name = executionPrefix+cluster, "web-1"
	obj.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return newWork(obj)
}

func fleetOf(ready metav1.ConditionStatus, names ...string) backends.Fleet {
	var f backends.Fleet
	for _, name := range names {
		f.Clusters = append(f.Clusters, backends.Cluster{Name: name, Ready: ready, Message: "no contact"})
	}
	return f
}

func TestTranslate(t *testing.T) {
	yes := true
	status := func(w work, raw string) { w.Status.ManifestStatuses[0].Status.Raw = []byte(raw) }
	cases := map[string]struct {
		edit  func(*currentState)
		ready metav1.ConditionStatus
		// blind kinds have no observedGeneration.
		blind bool
		want  backends.ClusterObservation
	}{
		"converged": {want: backends.ClusterObservation{Applied: "True", Current: true}},
		"scheduler behind": {
			edit: func(l *currentState) { l.binding.Generation++ },
			want: backends.ClusterObservation{Applied: "True"},
		},
		"template ahead":    {edit: func(l *currentState) { l.template.SetGeneration(4) }, want: backends.ClusterObservation{Applied: "True"}},
		"replicas ahead":    {edit: func(l *currentState) { l.binding.Spec.Clusters[0].Replicas = 3 }, want: backends.ClusterObservation{Applied: "True"}},
		"another template":  {edit: func(l *currentState) { l.template.SetUID("t2") }, want: backends.ClusterObservation{Applied: "True"}},
		"member not looked": {edit: func(l *currentState) { status(l.works[0], `{"generation":1,"resourceTemplateGeneration":3}`) }, want: backends.ClusterObservation{Applied: "True"}},
		"a kind that does not say what it looked at": {
			edit: func(l *currentState) { status(l.works[0], `{"generation":1,"resourceTemplateGeneration":3}`) }, blind: true,
			want: backends.ClusterObservation{Applied: "True", Current: true},
		},
		"member behind": {
			edit: func(l *currentState) {
				status(l.works[0], `{"generation":4,"observedGeneration":4,"resourceTemplateGeneration":2}`)
			},
			want: backends.ClusterObservation{Applied: "Unknown"},
		},
		"override landed": {
			edit: func(l *currentState) {
				status(l.works[0], `{"generation":4,"observedGeneration":4,"resourceTemplateGeneration":3,"fleetworkloadRevision":"r1"}`)
			},
			want: backends.ClusterObservation{Applied: "True", Current: true},
		},
		// An override moves no generation: only the revision tells.
		"override not there yet": {
			edit: func(l *currentState) {
				status(l.works[0], `{"generation":4,"observedGeneration":4,"resourceTemplateGeneration":3,"fleetworkloadRevision":"r0"}`)
			},
			want: backends.ClusterObservation{Applied: "Unknown"},
		},
		"empty status": {edit: func(l *currentState) { status(l.works[0], `{}`) }, want: backends.ClusterObservation{Applied: "True"}},
		"no status":    {edit: func(l *currentState) { l.works[0].Status.ManifestStatuses = nil }, want: backends.ClusterObservation{Applied: "True"}},
		"observed": {
			edit: makeObserved,
			want: backends.ClusterObservation{Applied: "Unknown", Held: true, Presence: backends.PresenceReleased},
		},
		"an observed cluster whose Work does not know it yet": {
			edit: func(l *currentState) { makeObserved(l); l.works[0].Spec.PreserveResourcesOnDeletion = nil },
			want: backends.ClusterObservation{Applied: "Unknown", Held: true},
		},
		"an observed cluster that may still be written": {
			edit: func(l *currentState) { makeObserved(l); l.works[0].Status.Conditions[0].Status = metav1.ConditionTrue },
			want: backends.ClusterObservation{Applied: "Unknown", Held: true},
		},
		"an observed cluster whose binding says otherwise": {
			edit: func(l *currentState) { makeObserved(l); l.binding.Spec.Suspension = nil },
			want: backends.ClusterObservation{Applied: "Unknown", Held: true},
		},
		"a held cluster is not observed": {
			edit: func(l *currentState) { makeObserved(l); setObserved(l.policy, nil) },
			want: backends.ClusterObservation{Applied: "Unknown", Held: true},
		},
		"an observed cluster that is leaving": {
			edit: func(l *currentState) { makeObserved(l); l.binding.Spec.Clusters = nil },
			want: backends.ClusterObservation{Applied: "Unknown", Held: true, Presence: backends.PresenceRemoving},
		},
		"an observed cluster whose Work goes": {
			edit: func(l *currentState) {
				makeObserved(l)
				l.works[0] = poisoned(l.works[0])
				l.works[0].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			},
			want: backends.ClusterObservation{Applied: "Unknown", Held: true, Presence: backends.PresenceLeaving},
		},
		"an observed cluster whose Work goes and was never spared": {
			edit: func(l *currentState) {
				makeObserved(l)
				l.works[0].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			},
			want: backends.ClusterObservation{Applied: "Unknown", Held: true, Presence: backends.PresenceRemoving},
		},
		"the member object has a UID": {
			edit: func(l *currentState) {
				status(l.works[0], `{"generation":4,"observedGeneration":4,"resourceTemplateGeneration":3,"fleetworkloadUID":"u1"}`)
			},
			want: backends.ClusterObservation{Applied: "True", Current: true, UID: "u1"},
		},
		"gate closed": {
			edit: func(l *currentState) { l.works[0].Spec.SuspendDispatching = &yes; l.policy = gated(l.policy) },
			want: backends.ClusterObservation{Applied: "Unknown", Held: true},
		},
		"gate closed before what it runs": {
			edit: func(l *currentState) {
				l.works[0].Spec.SuspendDispatching = &yes
				l.policy = gated(l.policy)
				status(l.works[0], `{"generation":4,"observedGeneration":4,"fleetworkloadRevision":"r0"}`)
			},
			want: backends.ClusterObservation{Applied: "Unknown", Held: true, Runs: "r0"},
		},
		"not taken up yet": {
			edit: func(l *currentState) { l.works[0].Status.Conditions[0].Status = metav1.ConditionFalse },
			want: backends.ClusterObservation{Applied: "Unknown"},
		},
		"refused": {
			edit: func(l *currentState) {
				l.works[0].Status.Conditions[1].Status = metav1.ConditionFalse
				l.works[0].Status.Conditions[1].Message = "denied by a webhook"
			},
			want: backends.ClusterObservation{Applied: "False", Message: "denied by a webhook"},
		},
		"conflict": {
			edit: func(l *currentState) {
				l.works[0].Status.Conditions[1].Status = metav1.ConditionFalse
				l.works[0].Status.Conditions[1].Message = "already exists, " + conflictMessage
			},
			want: backends.ClusterObservation{Applied: "False", Conflict: true, Message: "already exists, " + conflictMessage},
		},
		"lost": {ready: "False", want: backends.ClusterObservation{Applied: "Unknown", Message: "the cluster cannot be reached: no contact"}},
		"leaving": {
			edit: func(l *currentState) { l.binding.Spec.Clusters = nil },
			want: backends.ClusterObservation{Applied: "Unknown", Presence: backends.PresenceRemoving},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, live := converged(t)
			if c.blind {
				d.Workload.Feedback = nil
			}
			if c.edit != nil {
				c.edit(&live)
			}
			if c.ready == "" {
				c.ready = metav1.ConditionTrue
			}
			o := translate(d.Query, live, fleetOf(c.ready, "m1"))
			if len(o.Clusters) != 1 || !o.Found {
				t.Fatalf("%+v", o)
			}
			got := o.Clusters[0]
			if got.Revision != "r1" || got.Asked == nil || *got.Asked != 2 || got.Cluster != "m1" {
				t.Errorf("%+v", got)
			}
			if got.Applied != c.want.Applied || got.Current != c.want.Current || got.Held != c.want.Held ||
				got.Presence != c.want.Presence || got.UID != c.want.UID || got.Runs != c.want.Runs || got.Status[lua.FieldUID] != nil ||
				got.Conflict != c.want.Conflict || got.Message != c.want.Message {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestDelivered: a report proves that the member object has all, and in which generation, only when everything says so.
func TestDelivered(t *testing.T) {
	const whole = `{"replicas":2,"generation":4,"observedGeneration":4,"resourceTemplateGeneration":3,"fleetworkloadRevision":"r1","fleetworkloadUID":"u1"}`
	without := func(old, instead string) func(*currentState) {
		return func(l *currentState) {
			l.works[0].Status.ManifestStatuses[0].Status.Raw = []byte(strings.Replace(whole, old, instead, 1))
		}
	}
	retains := func(value string) func(*currentState) {
		return func(l *currentState) {
			manifest := l.works[0].manifest()
			labels := manifest.GetLabels()
			labels[labelRetainReplicas] = value
			manifest.SetLabels(labels)
			raw, err := manifest.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			l.works[0].Spec.Workload.Manifests[0].Raw = raw
		}
	}
	for name, c := range map[string]struct {
		edit   func(*currentState)
		ready  metav1.ConditionStatus
		proves bool
	}{
		"whole":                         {nil, metav1.ConditionTrue, true},
		"the cluster is lost":           {nil, metav1.ConditionFalse, false},
		"somebody has scaled it":        {without(`"replicas":2`, `"replicas":3`), metav1.ConditionTrue, false},
		"without replicas":              {without(`"replicas":2,`, ``), metav1.ConditionTrue, false},
		"another revision":              {without(`"r1"`, `"r0"`), metav1.ConditionTrue, false},
		"not observed":                  {without(`"observedGeneration":4`, `"observedGeneration":3`), metav1.ConditionTrue, false},
		"without our interpreter":       {without(`,"fleetworkloadUID":"u1"`, ``), metav1.ConditionTrue, false},
		"without generations":           {without(`"generation":4,`, ``), metav1.ConditionTrue, false},
		"replicas are an autoscaler's":  {retains("true"), metav1.ConditionTrue, false},
		"a label that retains nothing":  {retains("false"), metav1.ConditionTrue, true},
		"it is on its way out":          {func(l *currentState) { l.binding.Spec.Clusters = nil }, metav1.ConditionTrue, false},
		"the template is ahead":         {func(l *currentState) { l.template.SetGeneration(4) }, metav1.ConditionTrue, false},
		"Karmada could not write there": {func(l *currentState) { l.works[0].Status.Conditions[1].Status = metav1.ConditionFalse }, metav1.ConditionTrue, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, live := converged(t)
			without("", "")(&live)
			live.works[0].UID, live.works[0].Generation = "w1", 7
			if c.edit != nil {
				c.edit(&live)
			}
			var want *backends.Delivered
			if c.proves {
				want = &backends.Delivered{Order: backends.Order{UID: "w1", Generation: 7}, Generation: 4}
			}
			if diff := cmp.Diff(want, translate(d.Query, live, fleetOf(c.ready, "m1")).Clusters[0].Delivered); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterThatHasLeftIsNamed: with the Work goes all that Karmada has there, but not its wish to render one when the cluster is back.
func TestAClusterThatHasLeftIsNamed(t *testing.T) {
	d, live := converged(t)
	live.works = nil
	d.Counterpart = backends.CounterpartActive
	presence := func(fleet ...string) backends.Presence {
		o, is := translate(d.Query, live, fleetOf(metav1.ConditionTrue, fleet...)).Of("m1")
		if !is {
			return backends.PresenceUnknown
		}
		return o.Presence
	}
	if got := presence(); got != backends.PresenceNamed {
		t.Errorf("scheduled: %q", got)
	}
	if got := presence("m1"); got != backends.PresenceActive {
		t.Errorf("scheduled, and the cluster is known: %q", got)
	}
	live.binding.Spec.Clusters = nil
	if got := presence(); got != backends.PresenceNamed {
		t.Errorf("in the policy alone: %q", got)
	}
	if got := presence("m1"); got != backends.PresenceActive {
		t.Errorf("in the policy alone, and the cluster is known: %q", got)
	}
	unbound, now := live, metav1.Now()
	unbound.binding, unbound.template = nil, live.template.DeepCopy()
	unbound.template.SetDeletionTimestamp(&now)
	for _, template := range []*unstructured.Unstructured{nil, unbound.template} {
		unbound.template = template
		if o := translate(d.Query, unbound, fleetOf(metav1.ConditionTrue, "m1")); len(o.Clusters) != 0 {
			t.Errorf("in the policy alone, and the template is going: %+v", o.Clusters)
		}
	}
	suspended, preserved := live, true
	suspended.policy, suspended.binding = live.policy.DeepCopy(), live.binding.DeepCopy()
	suspended.policy.Object["spec"].(map[string]any)["suspension"] = map[string]any{"dispatchingOnClusters": map[string]any{"clusterNames": []any{"m1"}}}
	setObserved(suspended.policy, []string{"m1"})
	suspended.binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policySuspension(suspended.policy)}
	suspended.binding.Spec.PreserveResourcesOnDeletion = &preserved
	if o := translate(d.Query, suspended, backends.Fleet{}); len(o.Clusters) != 0 {
		t.Errorf("in the policy, and observed: %+v", o.Clusters)
	}
	if err := unstructured.SetNestedStringSlice(live.policy.Object, []string{"m2"}, "spec", "placement", "clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	if got := presence(); got != backends.PresenceUnknown {
		t.Errorf("nowhere: %q", got)
	}
	live.policy = nil
	if got := presence(); got != backends.PresenceUnknown {
		t.Errorf("without a policy, as before a hand-over: %q", got)
	}
	d.Counterpart = backends.CounterpartNone
	if got := presence(); got != backends.PresenceUnknown {
		t.Errorf("without a counterpart: %q", got)
	}
}

// TestATemplateComesAfterItsPolicy: a policy that was left without a template names nobody (TestAClusterThatHasLeftIsNamed), since what it
// names is another before there is a template again, and dispatching is suspended.
func TestATemplateComesAfterItsPolicy(t *testing.T) {
	_, live := converged(t)
	live.template, live.binding, live.works = nil, nil, nil
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m2", replicas: 2})
	step := decide(d, mustRender(t, d), live)
	if len(step.writes) != 1 || step.writes[0].object.GetKind() != "PropagationPolicy" {
		t.Fatalf("%+v", step)
	}
	policy := step.writes[0].object
	placement, err := policyPlacement(policy)
	if err != nil || !slices.Equal(placement.ClusterAffinity.ClusterNames, []string{"m2"}) || !suspendsAll(policySuspension(policy)) {
		t.Errorf("%v: %+v", err, policy.Object["spec"])
	}
}

// TestDeleteOrder: what is done next in each state of a deletion.
func TestDeleteOrder(t *testing.T) {
	yes, now := true, metav1.Now()
	preserving := func(l *currentState) {
		insisting(l)
		l.policy.Object["spec"].(map[string]any)["preserveResourcesOnDeletion"] = true
		l.binding.Spec.PreserveResourcesOnDeletion = &yes
		l.works[0].Spec.PreserveResourcesOnDeletion = &yes
	}
	goneTemplate := func(l *currentState) {
		l.template, l.binding = nil, nil
		l.works[0].DeletionTimestamp = &now
	}
	cases := map[string]struct {
		policy        v1alpha1.DeletionPolicy
		edit          func(*currentState)
		write, waits  string
		remove        bool
		releasedWorks int
		// told and discarded count Works without a binding.
		told, discarded int
	}{
		"delete begins with the template": {policy: "Delete", write: "CloneSet", remove: true, waits: "the template to go"},
		"orphan begins with the policy": {policy: "Orphan", edit: insisting, write: "PropagationPolicy",
			waits: "Karmada to take up the deletion policy"},
		"orphan has manifests overwrite": {policy: "Orphan", waits: "Karmada to take up the deletion policy for m1", write: "OverridePolicy",
			edit: func(l *currentState) { preserving(l); l.works[0] = resolved(l.works[0], abort) }},
		"which no longer matters for what is somebody else's": {policy: "Orphan", waits: "Works to be released that were never dispatched",
			releasedWorks: 1, edit: func(l *currentState) {
				preserving(l)
				l.works[0] = resolved(l.works[0], abort)
				l.works[0].Status.Conditions[1].Status, l.works[0].Status.Conditions[1].Message = metav1.ConditionFalse, conflictMessage
			}},
		"orphan waits for the works": {policy: "Orphan", waits: "Karmada to take up the deletion policy for m1",
			edit: func(l *currentState) { preserving(l); l.works[0].Spec.PreserveResourcesOnDeletion = nil }},
		"which nobody but us tells when there is no binding": {policy: "Orphan", waits: "the Works to show what becomes of the member objects", told: 1,
			edit: func(l *currentState) {
				preserving(l)
				l.binding, l.works[0].Spec.PreserveResourcesOnDeletion = nil, nil
			}},
		"orphan then deletes the template": {policy: "Orphan", edit: preserving, write: "CloneSet", remove: true, waits: "the template to go"},
		"a held cluster is let go first": {policy: "Orphan", waits: "Works to be released that were never dispatched", releasedWorks: 1,
			edit: func(l *currentState) { preserving(l); l.works[0].Spec.SuspendDispatching = &yes }},
		"unless it runs what is held": {policy: "Orphan", edit: func(l *currentState) { ran(l); insisting(l); setObserved(l.policy, nil) }, write: "CloneSet",
			remove: true, waits: "the template to go"},
		"delete after orphan takes it back": {policy: "Delete", edit: preserving, write: "PropagationPolicy", waits: "Karmada to take up the deletion policy"},
		"without a policy orphan brings one": {policy: "Orphan", edit: func(l *currentState) { insisting(l); l.policy = nil }, write: "PropagationPolicy",
			waits: "Karmada to take up what becomes of the member objects"},
		"works are waited for": {policy: "Delete", edit: goneTemplate, waits: "Karmada to leave m1"},
		"what the binding has left behind goes as it was seen": {policy: "Delete", waits: "Karmada to leave m1", discarded: 1,
			edit: func(l *currentState) { l.template, l.binding = nil, nil }},
		"or is told first to delete": {policy: "Delete", waits: "Karmada to leave m1", told: 1,
			edit: func(l *currentState) { preserving(l); l.template, l.binding = nil, nil }},
		"or to preserve": {policy: "Orphan", waits: "Karmada to leave m1", told: 1, edit: func(l *currentState) { l.template, l.binding = nil, nil }},
		"or that Karmada may write it twice": {policy: "Orphan", waits: "Karmada to leave m1", told: 1, edit: func(l *currentState) {
			preserving(l)
			l.template, l.binding, l.works[0] = nil, nil, resolved(l.works[0], abort)
		}},
		"also when it hangs in that": {policy: "Orphan", waits: "Karmada to leave m1", told: 1, edit: func(l *currentState) {
			preserving(l)
			goneTemplate(l)
			l.works[0] = resolved(l.works[0], abort)
		}},
		"without Karmada where that must not touch the member": {policy: "Delete", waits: "Karmada to leave m1", releasedWorks: 1,
			edit: func(l *currentState) { makeObserved(l); l.template, l.binding = nil, nil }},
		"and then goes": {policy: "Delete", waits: "Karmada to leave m1", discarded: 1,
			edit: func(l *currentState) { makeObserved(l); l.template, l.binding, l.works[0].Finalizers = nil, nil, nil }},
		"then the policy goes": {policy: "Delete", edit: func(l *currentState) { goneTemplate(l); l.works = nil }, write: "PropagationPolicy", remove: true, waits: "the policies to go"},
		"an observed cluster that runs what is held is released by Karmada": {policy: "Orphan", write: "CloneSet", remove: true, waits: "the template to go",
			edit: func(l *currentState) { ran(l); insisting(l) }},
		"an observed cluster that runs something else is spared": {policy: "Orphan", write: "OverridePolicy", waits: "Karmada to let go of m1",
			edit: func(l *currentState) { makeObserved(l) }},
		"which is waited for": {policy: "Orphan", waits: "Karmada to let go of m1",
			edit: func(l *currentState) {
				makeObserved(l)
				l.override = withSpared(l.policy, testQuery().Key, []string{"m1"})
			}},
		"and then the template goes": {policy: "Orphan", write: "CloneSet", remove: true, waits: "the template to go",
			edit: func(l *currentState) { makeObserved(l); l.works[0] = poisoned(l.works[0]) }},
		"and Karmada's finalizer": {policy: "Delete", waits: "Karmada to leave m1", releasedWorks: 1,
			edit: func(l *currentState) { makeObserved(l); l.works[0] = poisoned(l.works[0]); goneTemplate(l) }},
		"to delete, observed clusters are spared": {policy: "Delete", edit: ran, write: "OverridePolicy", waits: "Karmada to let go of m1"},
		"an observed cluster next to what is deleted is spared": {policy: "Delete", write: "OverridePolicy", waits: "Karmada to let go of m1",
			edit: func(l *currentState) { ran(l); l.works = append(l.works, ownedWork(l.works[0], "m2")) }},
		"before the others are deleted": {policy: "Delete", write: "PropagationPolicy", waits: "Karmada to take up the deletion policy",
			edit: func(l *currentState) {
				ran(l)
				l.works = []work{poisoned(l.works[0]), ownedWork(l.works[0], "m2")}
			}},
		"without a policy what may be observed is spared": {policy: "Delete", write: "OverridePolicy", waits: "Karmada to let go of m1",
			edit: func(l *currentState) { makeObserved(l); l.policy = nil }},
		"nothing left":              {policy: "Delete", edit: func(l *currentState) { *l = currentState{} }},
		"a template without policy": {policy: "Delete", edit: func(l *currentState) { l.policy, l.binding, l.works = nil, nil, nil }, write: "CloneSet", remove: true, waits: "the template to go"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, live := converged(t)
			if c.edit != nil {
				c.edit(&live)
			}
			got := decideDelete(d.Query, c.policy, live, fleetOf(metav1.ConditionTrue, "m1"), time.Now())
			if got.waiting != c.waits || len(got.release) != c.releasedWorks || len(got.tell) != c.told || len(got.discard) != c.discarded {
				t.Errorf("waiting %q, releases %d, tells %d, discards %d", got.waiting, len(got.release), len(got.tell), len(got.discard))
			}
			switch {
			case c.write == "" && len(got.writes) == 0:
			case len(got.writes) != 1 || got.writes[0].object.GetKind() != c.write || got.writes[0].remove != c.remove:
				t.Errorf("writes %+v", got.writes)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	cluster := func(name string, ready metav1.ConditionStatus, served bool, taints ...corev1.Taint) clusterv1alpha1.Cluster {
		c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Taints = taints
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
		if served {
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{
				GroupVersion: "apps.kruise.io/v1alpha1", Resources: []clusterv1alpha1.APIResource{{Name: "clonesets", Kind: "CloneSet"}},
			}}
		}
		return c
	}
	taint := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	clusters := []clusterv1alpha1.Cluster{
		cluster("good", "True", true), cluster("lost", "False", true), cluster("old", "True", false), cluster("tainted", "True", true, taint),
	}
	q := testQuery()
	got, err := choose(q, clusters, currentState{})
	want := backends.Selection{
		Settled: true, Clusters: []string{"good", "lost", "old", "tainted"}, Unsupported: map[string]string{"old": "without apps.kruise.io/v1alpha1 CloneSet"},
		Serves: map[string][]string{"good": {"v1alpha1"}, "lost": {"v1alpha1"}, "tainted": {"v1alpha1"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	running := currentState{binding: &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
		Clusters: []workv1alpha2.TargetCluster{{Name: "old"}},
	}}}
	if got, err = choose(q, clusters, running); err != nil || len(got.Unsupported) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	q.Selectors = []v1alpha1.ClusterSelector{{Names: []string{"old"}}}
	if _, err = choose(q, clusters, currentState{}); backends.CodeOf(err) != backends.CodeKindNotServed {
		t.Error(err)
	}
	q.Selectors = []v1alpha1.ClusterSelector{{}, {Names: []string{"good", "typo"}}}
	if _, err = choose(q, clusters, currentState{}); backends.CodeOf(err) != backends.CodeClusterNotFound {
		t.Error(err)
	}
}

func TestOwnersAreChecked(t *testing.T) {
	for name, edit := range map[string]func(*currentState){
		"another's policy":     func(l *currentState) { l.policy.SetLabels(map[string]string{v1alpha1.LabelUID: "other"}) },
		"another's template":   func(l *currentState) { l.template.SetLabels(nil) },
		"a kind of that name":  func(l *currentState) { l.binding.Spec.Resource.APIVersion = "apps/v1" },
		"claimed by a policy":  func(l *currentState) { claim(l, "propagationpolicy.karmada.io/", "theirs") },
		"claimed by a cluster": func(l *currentState) { claim(l, "clusterpropagationpolicy.karmada.io/", "theirs") },
	} {
		d, live := converged(t)
		edit(&live)
		if err := checkOwners(d.Query, live); backends.CodeOf(err) != backends.CodeNameConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, live := converged(t)
	claim(&live, "propagationpolicy.karmada.io/", "fw-web")
	if err := checkOwners(d.Query, live); err != nil {
		t.Error(err)
	}
}

func claim(l *currentState, prefix, name string) {
	labels, annotations := l.template.GetLabels(), l.template.GetAnnotations()
	labels[prefix+"permanent-id"], annotations[prefix+"name"] = "1", name
	l.template.SetLabels(labels)
	l.template.SetAnnotations(annotations)
}
