package karmada

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// makeObserved makes the one cluster of a converged world an observed one, all the way down.
func makeObserved(l *currentState) {
	yes := true
	suspension := policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}}}
	l.policy = withSuspension(l.policy, suspension)
	l.policy.Object["spec"].(map[string]any)["preserveResourcesOnDeletion"] = true
	setObserved(l.policy, []string{"m1"})
	l.binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: suspension}
	l.binding.Spec.PreserveResourcesOnDeletion = &yes
	l.works[0].Spec.SuspendDispatching, l.works[0].Spec.PreserveResourcesOnDeletion = &yes, &yes
	l.works[0].Status.Conditions[0].Status = metav1.ConditionFalse
}

// ran is an observed cluster that runs what its Work holds.
func ran(l *currentState) {
	makeObserved(l)
	l.works[0].Status.ManifestStatuses[0].Status.Raw = []byte(`{"replicas":2,"fleetworkloadRevision":"r1"}`)
}

// poisoned is the Work once it is spared.
func poisoned(w work) work {
	manifest := w.manifest()
	manifest.SetAPIVersion(sparedVersion)
	raw, err := manifest.MarshalJSON()
	if err != nil {
		panic(err)
	}
	obj := w.DeepCopy()
	obj.Spec.Workload.Manifests[0].Raw = raw
	return newWork(obj)
}

// resolved is the Work with a conflict resolution of its own.
func resolved(w work, resolution string) work {
	manifest := w.manifest()
	setMarks(manifest, nil, map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: resolution})
	raw, err := manifest.MarshalJSON()
	if err != nil {
		panic(err)
	}
	obj := w.DeepCopy()
	obj.Spec.Workload.Manifests[0].Raw = raw
	return newWork(obj)
}

// insisting is a world in which Karmada can release the one cluster twice.
func insisting(l *currentState) { l.works[0] = resolved(l.works[0], overwrite) }

// ownedWork is another cluster's Work, which is not observed.
func ownedWork(w work, cluster string) work {
	no := false
	obj := w.DeepCopy()
	obj.Namespace = executionPrefix + cluster
	obj.Spec.SuspendDispatching = &no
	return newWork(obj)
}

func TestRunsAsHeld(t *testing.T) {
	for status, want := range map[string]bool{
		`{"replicas":2,"fleetworkloadRevision":"r1"}`: true,
		`{"replicas":2,"fleetworkloadRevision":"r0"}`: false, // a change that was held back
		`{"replicas":3,"fleetworkloadRevision":"r1"}`: false, // scaled by another owner, or on its way
		`{"replicas":2}`:                 false, // without our interpreters nothing is known
		`{"fleetworkloadRevision":"r1"}`: false,
	} {
		d, live := converged(t)
		ran(&live)
		live.works[0].Status.ManifestStatuses[0].Status.Raw = []byte(status)
		if got := live.works[0].runsAsHeld(d.Query); got != want {
			t.Errorf("%s: %t", status, got)
		}
	}
	d, live := converged(t)
	ran(&live)
	if poisoned(live.works[0]).runsAsHeld(d.Query) {
		t.Error("what is spared is not to be written")
	}
}

// TestStaying: an owned cluster is not left while another one is observed.
func TestStaying(t *testing.T) {
	_, live := converged(t)
	desired := func(owner backends.Mode, clusters ...string) backends.Desired {
		var shares []share
		for _, cluster := range clusters {
			shares = append(shares, share{cluster: cluster, replicas: 3, owner: owner})
		}
		return desiredFor("r2", "pause:2", v1alpha1.DivisionTypeDuplicated, shares...)
	}
	d := desired(backends.ModeObserve, "m0", "m2")
	fleet := fleetOf(metav1.ConditionTrue, "m0", "m1", "m2")
	left := map[string]bool{"m1": true}
	with, stay := holdUnsaid(d, left, live, fleet, nil)
	if stay["m1"] == "" || len(stay) != 1 || len(with.Targets) != 3 || len(d.Targets) != 2 {
		t.Fatalf("%v, %+v", stay, with.Targets)
	}
	if m1 := with.Targets[1]; m1.Cluster != "m1" || m1.Mode != backends.ModeHold || *m1.Replicas != 2 || *replicasOf(m1.Manifest, d.Workload.ReplicasPath) != 2 {
		t.Errorf("%+v", m1)
	}
	adopts := desired(backends.ModeAdopt, "m0", "m2")
	if with, stay = holdUnsaid(adopts, left, live, fleet, nil); len(stay) > 0 || len(with.Targets) != 2 {
		t.Errorf("to be left: %v, %+v", stay, with.Targets)
	}
	if with, stay = holdUnsaid(adopts, nil, live, fleet, nil); len(stay) > 0 || len(with.Targets) != 3 || with.Targets[1].Mode != backends.ModeHold {
		t.Errorf("nothing was said: %v, %+v", stay, with.Targets)
	}
	if with, _ = holdUnsaid(adopts, nil, live, fleetOf(metav1.ConditionTrue, "m0", "m2"), nil); len(with.Targets) != 2 {
		t.Errorf("Karmada does not know the cluster: %+v", with.Targets)
	}
	makeObserved(&live)
	if _, stay = holdUnsaid(d, left, live, fleet, nil); len(stay) > 0 {
		t.Errorf("an observed cluster stays: %v", stay)
	}
}

// TestAnObservedClusterIsSparedBeforeItIsLeft: what is written first, and when the placement may follow.
func TestAnObservedClusterIsSparedBeforeItIsLeft(t *testing.T) {
	_, live := converged(t)
	makeObserved(&live)
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m2", replicas: 2})
	step := decide(d, mustRender(t, d), live)
	if len(step.writes) != 1 || step.writes[0].object.GetKind() != "OverridePolicy" || step.waiting != "Karmada to let go of m1" {
		t.Fatalf("%+v", step)
	}
	live.works[0] = poisoned(live.works[0])
	step = decide(d, mustRender(t, d), live)
	if len(step.writes) != 1 || step.writes[0].object.GetKind() != "PropagationPolicy" || step.waiting != "Karmada to suspend dispatching" {
		t.Fatalf("%+v", step)
	}
	if got := observedOf(step.writes[0].object); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("forgotten while it is there: %v", got)
	}
	now := metav1.Now()
	live.works[0].DeletionTimestamp = &now
	if step = decide(d, mustRender(t, d), live); len(step.release) != 1 {
		t.Errorf("%+v", step)
	}
}

func TestSparedRulesAreReplaced(t *testing.T) {
	key := testQuery().Key
	override := mustRender(t, desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2})).override
	once := withSpared(override, key, []string{"m2"})
	twice := withSpared(withSpared(override, key, []string{"m3"}), key, []string{"m2"})
	if diff := cmp.Diff(once.Object, twice.Object); diff != "" {
		t.Error(diff)
	}
}

// companionWorkOf is a companion's Work that was delivered for its users.
func companionWorkOf(t *testing.T, users ...backends.Key) (*workv1alpha1.Work, companionWork) {
	t.Helper()
	c := backends.Companion{Object: reference("v1", "ConfigMap", testNamespace, "settings"), Shared: true}
	want, err := renderCompanionWork(testQuery().Key, "m1", c, false)
	if err != nil {
		t.Fatal(err)
	}
	w := want.work.DeepCopy()
	all := companions.Users{}
	for _, key := range users {
		all = all.With(key)
	}
	w.Annotations[companions.AnnotationUsers] = all.String()
	w.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue}, {Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue},
	}
	return w, want
}

func TestCompanionOfAnObservedCluster(t *testing.T) {
	key := testQuery().Key
	other := backends.Key{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: "other"}, UID: "o"}
	live, want := companionWorkOf(t, key)

	step := nextObserve(live, &want, key)
	if !newWork(step.patch).suspended() || !newWork(step.patch).preserved() || step.blocked == "" || releasedFor(step.patch, key) {
		t.Fatalf("%+v", step)
	}
	given := step.patch
	given.Status.Conditions[0].Status = metav1.ConditionFalse
	if step = nextObserve(given, &want, key); step.blocked != "" || !releasedFor(given, key) {
		t.Fatalf("%+v", step)
	}

	// New content is held back: it is what Karmada writes when it releases the object.
	changed := backends.Companion{Object: want.companion.Object.DeepCopy(), Shared: true}
	changed.Object.Object["data"] = map[string]any{"value": "two"}
	anew, err := renderCompanionWork(key, "m1", changed, false)
	if err != nil {
		t.Fatal(err)
	}
	if step = nextObserve(given, &anew, key); !newWork(step.patch).suspended() || !bytes.Contains(step.patch.Spec.Workload.Manifests[0].Raw, []byte(`"two"`)) {
		t.Errorf("the content of an observed cluster's companion is behind: %+v", step)
	}
	if step = nextObserve(given, nil, key); !equality.Semantic.DeepEqual(step.patch.Spec, given.Spec) {
		t.Errorf("what is not listed was changed: %+v", step)
	}
	leave := nextLeaving(given, key, v1alpha1.DeletionPolicyOrphan, fleetOf(metav1.ConditionTrue, "m1"), time.Now())
	if leave.patch == nil || !adopts(leave.patch) {
		t.Errorf("Karmada could not release it twice: %+v", leave)
	}
	if leave = nextLeaving(leave.patch, key, v1alpha1.DeletionPolicyOrphan, fleetOf(metav1.ConditionTrue, "m1"), time.Now()); leave.release || !leave.remove {
		t.Errorf("Karmada's marks would stay: %+v", leave)
	}
	if leave := nextLeaving(given, key, v1alpha1.DeletionPolicyDelete, fleetOf(metav1.ConditionTrue, "m1"), time.Now()); !leave.release || leave.remove {
		t.Errorf("an observed cluster's companion would be deleted: %+v", leave)
	}

	owned, err := nextCompanionWork(given, want, key, true)
	if err != nil || newWork(owned.patch).suspended() || newWork(owned.patch).preserved() || releasedFor(owned.patch, key) {
		t.Errorf("%+v, %v", owned, err)
	}

	// Another FleetWorkload owns it there.
	live, _ = companionWorkOf(t, key, other)
	step = nextObserve(live, &want, key)
	if newWork(step.patch).suspended() || step.blocked != "" || !releasedFor(step.patch, key) {
		t.Errorf("%+v", step)
	}
	leave = nextLeaving(step.patch, other, v1alpha1.DeletionPolicyDelete, fleetOf(metav1.ConditionTrue, "m1"), time.Now())
	if leave.patch == nil || !newWork(leave.patch).suspended() || !newWork(leave.patch).preserved() {
		t.Errorf("left to one that observes and still owned: %+v", leave)
	}
}
