package controllers

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
)

// runs makes somebody's Deployment on a cluster.
func (w *world) runs(cluster string, replicas int64) {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(template)); err != nil {
		w.t.Fatal(err)
	}
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	if err := unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas"); err != nil {
		w.t.Fatal(err)
	}
	if err := w.backend.Member(cluster).Create(context.Background(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// untouched fails when the Deployment on a cluster has become ours.
func (w *world) untouched(cluster string) {
	w.t.Helper()
	obj, err := w.backend.Member(cluster).Get(context.Background(), backendtest.Ref{
		GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, NamespacedName: key,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if labels := obj.GetLabels(); labels[v1alpha1.LabelUID] != "" {
		w.t.Errorf("it was written: %v", labels)
	}
}

// roomy clusters say what they have left.
func (w *world) roomy() {
	for _, c := range []backends.Cluster{cluster("m1", "a"), cluster("m2", "b"), cluster("m3", "b")} {
		c.Free = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")}
		w.backend.SetCluster(c)
	}
}

func adopt(total int32, division *v1alpha1.Division, clusters ...string) func(*v1alpha1.FleetWorkloadSpec) {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
		s.Replicas = &total
		s.Placement.Clusters = &v1alpha1.ClusterSelector{Names: clusters}
		s.Placement.Division = division
	}
}

func preferring(preference v1alpha1.DivisionPreference) *v1alpha1.Division {
	return &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: preference}
}

func (w *world) want(members string) {
	w.t.Helper()
	if got := w.members(); got != members {
		w.t.Fatalf("members run %s, want %s: %+v", got, members, w.get().Status.Conditions)
	}
}

func (w *world) confirm() {
	w.t.Helper()
	message := w.condition(v1alpha1.ConditionStalled).Message
	_, token, found := strings.Cut(message, v1alpha1.AnnotationConfirmRemoval+"=")
	if !found {
		w.t.Fatalf("no token in %q", message)
	}
	token, _, _ = strings.Cut(token, " ")
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Annotations = map[string]string{v1alpha1.AnnotationConfirmRemoval: token}
	})
}

func TestWhatRunsStaysWhereItIs(t *testing.T) {
	for name, c := range map[string]struct {
		division *v1alpha1.Division
		total    int32
		want     string
	}{
		"by capacity":            {preferring(v1alpha1.DivisionPreferenceAvailableCapacity), 6, "5 1 -1"},
		"aggregated":             {preferring(v1alpha1.DivisionPreferenceAggregated), 6, "5 1 -1"},
		"more, aggregated":       {preferring(v1alpha1.DivisionPreferenceAggregated), 8, "7 1 -1"},
		"more, equal weights":    {preferring(v1alpha1.DivisionPreferenceWeighted), 12, "6 6 -1"},
		"duplicated":             {nil, 5, "5 5 -1"},
		"weighted as what there": {weighted(5, 1), 6, "5 1 -1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.roomy()
			w.runs("m1", 5)
			w.runs("m2", 1)
			was := w.uids()
			w.create(adopt(c.total, c.division, "m1", "m2"))
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			w.want(c.want)
			w.sameObjects(was)
		})
	}
}

func weighted(first, second int32) *v1alpha1.Division {
	return &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: []v1alpha1.ClusterWeight{
		{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Weight: &first},
		{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}}, Weight: &second},
	}}
}

func TestATakeOverThatTakesPodsAwayIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		spec    func(*v1alpha1.FleetWorkloadSpec)
		remedy  string
		confirm string
	}{
		"weights move them":        {adopt(6, preferring(v1alpha1.DivisionPreferenceWeighted), "m1", "m2"), "m1: 5, m2: 1", "3 3 -1"},
		"fewer are wanted":         {adopt(4, preferring(v1alpha1.DivisionPreferenceAvailableCapacity), "m1", "m2"), "spec.replicas to 6", "3 1 -1"},
		"fewer on each":            {adopt(2, nil, "m1", "m2"), "spec.replicas to 5", "2 2 -1"},
		"a cluster with no weight": {adopt(6, weighted(1, 0), "m1", "m2"), "m2: 1", "6 1 -1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.roomy()
			w.runs("m1", 5)
			w.runs("m2", 1)
			w.create(c.spec)
			w.settle()
			w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAdoptionHeld, c.remedy)
			w.want("5 1 -1")
			w.untouched("m1")
			w.confirm()
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			w.want(c.confirm)
		})
	}
}

func TestAHeldTakeOverGoesOnWhenTheSpecKeepsWhatRuns(t *testing.T) {
	w := newWorld(t)
	w.runs("m1", 5)
	w.runs("m2", 1)
	w.create(adopt(6, preferring(v1alpha1.DivisionPreferenceWeighted), "m1", "m2"))
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAdoptionHeld)
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Division = weighted(5, 1) })
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.want("5 1 -1")
}

// TestCompanionsComeAfterTheProbe: a cluster that has them and no answer yet would pass for one that has the workload already.
func TestCompanionsComeAfterTheProbe(t *testing.T) {
	w := newWorld(t)
	w.runs("m1", 5)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		adopt(6, preferring(v1alpha1.DivisionPreferenceWeighted), "m1", "m2")(s)
		s.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)}}
	})
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAdoptionHeld, "m1 runs 5 and would be given 3")
	w.untouched("m1")
	w.want("5 -1 -1")
	w.confirm()
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.want("3 3 -1")
}

func TestALostClusterIsWaitedForBeforeAnythingIsTakenOver(t *testing.T) {
	w := newWorld(t)
	lost := cluster("m2", "b")
	lost.Ready = metav1.ConditionUnknown
	w.backend.SetCluster(lost)
	w.runs("m1", 5)
	w.runs("m2", 1)
	w.create(adopt(6, weighted(5, 1), "m1", "m2"))
	w.settle()
	w.expect(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonApplying, "m2, out of contact", "spec.placement")
	w.untouched("m1")
	w.backend.SetCluster(cluster("m2", "b"))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.want("5 1 -1")
}

func TestAClusterAddedLaterIsAskedToo(t *testing.T) {
	w := newWorld(t)
	w.runs("m3", 4)
	w.create(adopt(6, preferring(v1alpha1.DivisionPreferenceWeighted), "m1", "m2"))
	w.settle()
	w.want("3 3 4")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters.Names = []string{"m1", "m2", "m3"} })
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAdoptionHeld, "m3 runs 4 and would be given 2")
	if got := w.member("m3"); got != 4 {
		t.Errorf("m3 runs %d", got)
	}
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(12)) })
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.want("4 4 4")
}

func TestAConflictThatIsToBeTakenOverIsProbedFirst(t *testing.T) {
	w := newWorld(t)
	w.runs("m1", 5)
	w.runs("m2", 1)
	w.create(adopt(6, preferring(v1alpha1.DivisionPreferenceWeighted), "m1", "m2"))
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyFail })
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMemberConflict)
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt })
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAdoptionHeld)
	w.want("5 1 -1")
}

func TestASuspendedTakeOverGoesOnAsking(t *testing.T) {
	w := newWorld(t)
	w.roomy()
	w.runs("m1", 5)
	w.runs("m2", 1)
	w.create(adopt(6, preferring(v1alpha1.DivisionPreferenceAvailableCapacity), "m1", "m2"))
	suspend := func(is bool) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = &is }
	}
	w.edit(suspend(true))
	w.settle()
	w.untouched("m1")
	w.edit(suspend(false))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.want("5 1 -1")
}

func TestWhatWasTakenOverIsMovedLikeAnyOther(t *testing.T) {
	w, two := newPair(t)
	w.runs("m1", 5)
	w.runs("m2", 1)
	was := w.uids()
	w.create(adopt(6, weighted(5, 1), "m1", "m2"))
	w.both(two)
	w.edit(to("two"))
	w.both(two)
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.want("5 1 -1")
	w.sameObjects(was)
}
