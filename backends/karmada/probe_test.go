package karmada

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// asked makes the one cluster of a converged world one that is probed, with that conflict resolution and answer.
func asked(t *testing.T, l *currentState, resolution, answer string) {
	t.Helper()
	manifest := l.works[0].manifest()
	labels, annotations := manifest.GetLabels(), manifest.GetAnnotations()
	labels[lua.LabelProbe], annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = lua.ProbeOnly, resolution
	manifest.SetLabels(labels)
	manifest.SetAnnotations(annotations)
	raw, err := manifest.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	obj := l.works[0].DeepCopy()
	obj.Spec.Workload.Manifests[0].Raw = raw
	obj.Status.ManifestStatuses = nil
	obj.Status.Conditions[1] = metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Message: answer}
	if answer == "" {
		obj.Status.Conditions = obj.Status.Conditions[:1]
	}
	l.works[0] = newWork(obj)
	setProbed(l.policy, []string{"m1"})
}

const (
	// As Karmada says them, see pkg/util/objectwatcher and pkg/controllers/execution.
	sayExists = "Failed to apply all manifests (0/1): resource(kind=CloneSet, shop/web) already exists in the cluster m1 and the " +
		"work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource"
	sayRefused = `Failed to apply all manifests (0/1): CloneSet.apps.kruise.io "web" is invalid: metadata.labels: Invalid value: "` +
		lua.ProbeOnly + `": a valid label must be an empty string or consist of alphanumeric characters`
	sayFive    = "Failed to apply all manifests (0/1): fleetworkload probe: the member object has 5 replicas\nstack traceback:"
	sayUnknown = "Failed to apply all manifests (0/1): fleetworkload probe: the member object has ? replicas"
	sayOther   = "Failed to apply all manifests (0/1): connection refused"
)

func TestProbeResult(t *testing.T) {
	five := int32(5)
	for name, c := range map[string]struct {
		resolution, answer string
		retains            bool
		want               backends.ProbeResult
	}{
		"nothing said":                          {resolution: abort},
		"not there":                             {resolution: abort, answer: sayRefused, want: backends.ProbeResult{Answered: true}},
		"there, and the number is still to ask": {resolution: abort, answer: sayExists, want: backends.ProbeResult{Exists: true}},
		"there, with Karmada's old label":       {resolution: abort, answer: sayFive, want: backends.ProbeResult{Answered: true, Exists: true, Replicas: &five}},
		"asked closely, no word yet":            {resolution: overwrite, answer: sayExists, retains: true, want: backends.ProbeResult{Exists: true}},
		"asked closely":                         {resolution: overwrite, answer: sayFive, retains: true, want: backends.ProbeResult{Answered: true, Exists: true, Replicas: &five}},
		"it has no number":                      {resolution: overwrite, answer: sayUnknown, retains: true, want: backends.ProbeResult{Answered: true, Exists: true}},
		"the interpreter is on its way":         {resolution: overwrite, answer: sayRefused, retains: true, want: backends.ProbeResult{Exists: true}},
		"there will be no interpreter":          {resolution: overwrite, answer: sayRefused, want: backends.ProbeResult{Answered: true, Exists: true}},
		"another failure":                       {resolution: abort, answer: sayOther},
	} {
		t.Run(name, func(t *testing.T) {
			d, live := converged(t)
			asked(t, &live, c.resolution, c.answer)
			live.retains = c.retains
			o := translate(d.Query, live, backends.Fleet{}).Clusters[0]
			if o.Applied != metav1.ConditionUnknown || o.Conflict || o.Released() || o.Message == "" {
				t.Errorf("%+v", o)
			}
			if diff := cmp.Diff(&c.want, o.Probe); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAProbeIsReportedFromTheStart, so that nobody takes its manifest for what a cluster was asked to run.
func TestAProbeIsReportedFromTheStart(t *testing.T) {
	d, live := converged(t)
	setProbed(live.policy, []string{"m1"})
	if o := translate(d.Query, live, backends.Fleet{}).Clusters[0]; o.Probe == nil || o.Probe.Answered {
		t.Errorf("a Work from before: %+v", o)
	}
	live.works = nil
	if o := translate(d.Query, live, backends.Fleet{}).Clusters[0]; o.Probe == nil || o.Probe.Answered {
		t.Errorf("without a Work: %+v", o)
	}
}

// TestTheAnswerOfAProbeIsNoFailureOfWhatComesAfter: the condition stays until Karmada has tried again.
func TestTheAnswerOfAProbeIsNoFailureOfWhatComesAfter(t *testing.T) {
	for _, answer := range []string{sayFive, sayRefused, sayExists} {
		d, live := converged(t)
		asked(t, &live, overwrite, answer)
		setProbed(live.policy, nil)
		manifest := live.works[0].manifest()
		labels := manifest.GetLabels()
		delete(labels, lua.LabelProbe)
		manifest.SetLabels(labels)
		raw, err := manifest.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		live.works[0].Spec.Workload.Manifests[0].Raw = raw
		if o := translate(d.Query, live, backends.Fleet{}).Clusters[0]; o.Applied != metav1.ConditionUnknown || o.Conflict || o.Probe != nil || o.Message != "" {
			t.Errorf("%q: %+v", answer, o)
		}
	}
}

func TestWhatIsThereIsAskedClosely(t *testing.T) {
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 2, owner: backends.ModeProbe})
	for answer, want := range map[string]backends.Mode{
		"": backends.ModeProbe, sayRefused: backends.ModeProbe, sayOther: backends.ModeProbe, sayExists: probeClosely,
	} {
		_, live := converged(t)
		asked(t, &live, abort, answer)
		if got := probingClosely(d, live).Targets[0].Mode; got != want {
			t.Errorf("%q: %s", answer, got)
		}
		if d.Targets[0].Mode != backends.ModeProbe {
			t.Fatal("the argument was changed")
		}
	}
	_, live := converged(t)
	asked(t, &live, overwrite, sayOther)
	if got := probingClosely(d, live).Targets[0].Mode; got != probeClosely {
		t.Errorf("it does not go on: %s", got)
	}
}

// TestAProbedClusterIsSparedBeforeItIsLeft: its object may bear Karmada's label from an earlier time.
func TestAProbedClusterIsSparedBeforeItIsLeft(t *testing.T) {
	_, live := converged(t)
	asked(t, &live, overwrite, sayFive)
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m2", replicas: 2})
	step := decide(d, mustRender(t, d), live)
	if len(step.writes) != 1 || step.writes[0].object.GetKind() != "OverridePolicy" || step.waiting != "Karmada to let go of m1" {
		t.Fatalf("%+v", step)
	}
}
