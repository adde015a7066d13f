package statuscheck

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func ptr[T any](v T) *T { return &v }

var stamp = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// healthy is a FleetWorkload that is Ready on two clusters.
func healthy() *v1alpha1.FleetWorkload {
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 3}}
	fw.Status = v1alpha1.FleetWorkloadStatus{
		ObservedGeneration: ptr(int64(3)), Revision: "r2", ReadyReplicas: ptr(int32(3)),
		ClusterSummary: &v1alpha1.ClusterSummary{Total: ptr(int32(2)), Stale: ptr(int32(0))},
	}
	for i, name := range []string{"m1", "m2"} {
		fw.Status.Clusters = append(fw.Status.Clusters, v1alpha1.ClusterStatus{
			Name: name, Desired: ptr(int32(2 - i)), Ready: ptr(int32(2 - i)), Revision: "r2",
			Applied: metav1.ConditionTrue, Health: v1alpha1.HealthHealthy, Stale: metav1.ConditionFalse,
		})
	}
	for _, kind := range order {
		set(fw, kind, metav1.ConditionTrue)
	}
	set(fw, v1alpha1.ConditionReconciling, metav1.ConditionFalse)
	set(fw, v1alpha1.ConditionStalled, metav1.ConditionFalse)
	return fw
}

func set(fw *v1alpha1.FleetWorkload, kind string, status metav1.ConditionStatus) {
	if c := find(fw, kind); c != nil {
		c.Status = status
		return
	}
	fw.Status.Conditions = append(fw.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: "Some", Message: "some", ObservedGeneration: 3, LastTransitionTime: stamp,
	})
}

func TestRightStatuses(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.FleetWorkload){
		"ready":         func(*v1alpha1.FleetWorkload) {},
		"no status yet": func(fw *v1alpha1.FleetWorkload) { fw.Status = v1alpha1.FleetWorkloadStatus{} },
		"stalled": func(fw *v1alpha1.FleetWorkload) {
			set(fw, v1alpha1.ConditionReady, metav1.ConditionFalse)
			set(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue)
		},
		"an older generation": func(fw *v1alpha1.FleetWorkload) { fw.Generation = 4 },
		"suspended: neither":  func(fw *v1alpha1.FleetWorkload) { set(fw, v1alpha1.ConditionReady, metav1.ConditionFalse) },
		"deleting": func(fw *v1alpha1.FleetWorkload) {
			fw.DeletionTimestamp = &stamp
			set(fw, v1alpha1.ConditionReady, metav1.ConditionFalse)
			set(fw, v1alpha1.ConditionReconciling, metav1.ConditionTrue)
		},
	} {
		fw := healthy()
		change(fw)
		if err := Check(fw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWrongStatuses(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.FleetWorkload){
		"condition Healthy is missing": func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Conditions = fw.Status.Conditions[:5]
		},
		"conditions stand in the order": func(fw *v1alpha1.FleetWorkload) {
			c := fw.Status.Conditions
			c[0], c[3] = c[3], c[0]
		},
		"Ready and Reconciling are both True": func(fw *v1alpha1.FleetWorkload) {
			set(fw, v1alpha1.ConditionReconciling, metav1.ConditionTrue)
		},
		"Ready and Stalled are both True": func(fw *v1alpha1.FleetWorkload) {
			set(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue)
		},
		"Reconciling and Stalled are both True": func(fw *v1alpha1.FleetWorkload) {
			set(fw, v1alpha1.ConditionReady, metav1.ConditionFalse)
			set(fw, v1alpha1.ConditionReconciling, metav1.ConditionTrue)
			set(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue)
		},
		"is ahead of generation":        func(fw *v1alpha1.FleetWorkload) { fw.Generation = 2 },
		"observedGeneration is missing": func(fw *v1alpha1.FleetWorkload) { fw.Status.ObservedGeneration = nil },
		"is about generation 2": func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Conditions[4].ObservedGeneration = 2
		},
		"lacks a reason":          func(fw *v1alpha1.FleetWorkload) { fw.Status.Conditions[1].Reason = "" },
		"has no message":          func(fw *v1alpha1.FleetWorkload) { fw.Status.Conditions[1].Message = "" },
		"but m1 is Progressing":   func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[0].Health = v1alpha1.HealthProgressing },
		"the row of m2 is stale":  func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[1].Stale = metav1.ConditionTrue },
		"is stale and Healthy":    func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[1].Stale = metav1.ConditionTrue },
		"has revision \"r1\"":     func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[0].Revision = "r1" },
		"m2 has not applied":      func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[1].Applied = metav1.ConditionUnknown },
		"0 of 2 replicas ready":   func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[0].Ready = nil },
		"the spec asks for \"b\"": func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "b" },
		"in phase Shadowing": func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Migration = &v1alpha1.MigrationStatus{Phase: v1alpha1.MigrationPhaseShadowing}
		},
		"without any row":        func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters = nil },
		"but Healthy is not":     func(fw *v1alpha1.FleetWorkload) { set(fw, v1alpha1.ConditionHealthy, metav1.ConditionUnknown) },
		"the rows add up to 3":   func(fw *v1alpha1.FleetWorkload) { fw.Status.ReadyReplicas = ptr(int32(5)) },
		"clusterSummary.total":   func(fw *v1alpha1.FleetWorkload) { fw.Status.ClusterSummary.Total = ptr(int32(3)) },
		"clusterSummary.stale":   func(fw *v1alpha1.FleetWorkload) { fw.Status.ClusterSummary.Stale = ptr(int32(1)) },
		"a cluster has two rows": func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters[1].Name = "m1" },
		"kstatus says":           func(fw *v1alpha1.FleetWorkload) { set(fw, v1alpha1.ConditionReconciling, metav1.ConditionTrue) },
	} {
		fw := healthy()
		change(fw)
		if err := Check(fw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestTransition(t *testing.T) {
	later := metav1.NewTime(stamp.Add(time.Minute))
	if err := Transition(healthy(), healthy()); err != nil {
		t.Errorf("nothing changed: %v", err)
	}
	for want, change := range map[string]func(before, after *v1alpha1.FleetWorkload){
		"observedGeneration went back": func(before, _ *v1alpha1.FleetWorkload) { before.Status.ObservedGeneration = ptr(int64(4)) },
		"but lastTransitionTime moved": func(_, after *v1alpha1.FleetWorkload) { after.Status.Conditions[0].LastTransitionTime = later },
		"Ready went back":              func(before, _ *v1alpha1.FleetWorkload) { before.Status.Conditions[0].LastTransitionTime = later },
		"status.backend was lost":      func(before, _ *v1alpha1.FleetWorkload) { before.Status.Backend = "a" },
		"status.workload was lost": func(before, _ *v1alpha1.FleetWorkload) {
			before.Status.Workload = &v1alpha1.WorkloadReference{Name: "a"}
		},
	} {
		before, after := healthy(), healthy()
		change(before, after)
		if err := Transition(before, after); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	before, after := healthy(), healthy()
	set(after, v1alpha1.ConditionReady, metav1.ConditionFalse)
	after.Status.Conditions[0].LastTransitionTime = later
	if err := Transition(before, after); err != nil {
		t.Errorf("a changed status with a new time: %v", err)
	}
}
