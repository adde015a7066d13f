// Package statuscheck says whether a status that the operator wrote is one that people and tools may trust: the
// conditions fit kstatus, they agree with the rows, and nothing claims more than what is known. It is pure.
package statuscheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// order is how conditions stand in the status, from the first one on; kubectl and people read from the top.
var order = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	v1alpha1.ConditionScheduled, v1alpha1.ConditionApplied, v1alpha1.ConditionHealthy,
}

// Written tells whether the operator has ever written a status.
func Written(fw *v1alpha1.FleetWorkload) bool {
	return len(fw.Status.Conditions) > 0 || fw.Status.ObservedGeneration != nil
}

// Check returns everything that is wrong with the status of a FleetWorkload, nil when nothing is. A FleetWorkload
// without a status is right.
func Check(fw *v1alpha1.FleetWorkload) error {
	if !Written(fw) {
		return nil
	}
	return errors.Join(slices.Concat(presence(fw), generations(fw), trio(fw), counts(fw), ready(fw), engine(fw))...)
}

// Transition returns everything that is wrong with the step from one status to the next of the same FleetWorkload.
func Transition(before, after *v1alpha1.FleetWorkload) error {
	var errs []error
	if b, a := observed(before), observed(after); a < b {
		errs = append(errs, fmt.Errorf("observedGeneration went back from %d to %d", b, a))
	}
	for _, old := range before.Status.Conditions {
		now := find(after, old.Type)
		if now == nil {
			continue
		}
		moved := !now.LastTransitionTime.Equal(&old.LastTransitionTime)
		if now.Status == old.Status && moved {
			errs = append(errs, fmt.Errorf("condition %s kept its status %s, but lastTransitionTime moved", old.Type, old.Status))
		}
		if now.LastTransitionTime.Before(&old.LastTransitionTime) {
			errs = append(errs, fmt.Errorf("lastTransitionTime of condition %s went back", old.Type))
		}
	}
	if b, a := before.Status.Workload, after.Status.Workload; b != nil && a == nil {
		errs = append(errs, errors.New("status.workload was lost"))
	}
	if b, a := before.Status.Backend, after.Status.Backend; b != "" && a == "" {
		errs = append(errs, errors.New("status.backend was lost"))
	}
	return errors.Join(errs...)
}

// presence: every condition once, in order, complete.
func presence(fw *v1alpha1.FleetWorkload) []error {
	var errs []error
	var got []string
	for _, c := range fw.Status.Conditions {
		got = append(got, c.Type)
		if c.Reason == "" || c.LastTransitionTime.IsZero() {
			errs = append(errs, fmt.Errorf("condition %s lacks a reason or a lastTransitionTime", c.Type))
		}
		if c.Message == "" {
			errs = append(errs, fmt.Errorf("condition %s has no message", c.Type))
		}
	}
	for _, kind := range order {
		if !slices.Contains(got, kind) {
			errs = append(errs, fmt.Errorf("condition %s is missing", kind))
		}
	}
	if len(errs) == 0 && !slices.Equal(got[:len(order)], order) {
		errs = append(errs, fmt.Errorf("conditions stand in the order %s, want %s first",
			strings.Join(got, ", "), strings.Join(order, ", ")))
	}
	return errs
}

func generations(fw *v1alpha1.FleetWorkload) []error {
	var errs []error
	if fw.Status.ObservedGeneration == nil {
		return []error{errors.New("status.observedGeneration is missing")}
	}
	at := observed(fw)
	if at > fw.Generation {
		errs = append(errs, fmt.Errorf("observedGeneration %d is ahead of generation %d", at, fw.Generation))
	}
	for _, c := range fw.Status.Conditions {
		if c.ObservedGeneration != at {
			errs = append(errs, fmt.Errorf("condition %s is about generation %d, the status about %d", c.Type, c.ObservedGeneration, at))
		}
	}
	return errs
}

// trio: what kstatus asks of Ready, Reconciling and Stalled.
func trio(fw *v1alpha1.FleetWorkload) []error {
	var errs []error
	isReady, isReconciling, isStalled := is(fw, v1alpha1.ConditionReady), is(fw, v1alpha1.ConditionReconciling), is(fw, v1alpha1.ConditionStalled)
	if isReady && isReconciling {
		errs = append(errs, errors.New("Ready and Reconciling are both True"))
	}
	if isReady && isStalled {
		errs = append(errs, errors.New("Ready and Stalled are both True"))
	}
	if isReconciling && isStalled {
		errs = append(errs, errors.New("Reconciling and Stalled are both True"))
	}
	return errs
}

// counts: what is counted agrees with the rows, unless some of them are cut off.
func counts(fw *v1alpha1.FleetWorkload) []error {
	if fw.Status.Truncated != nil || fw.Status.ClusterSummary == nil {
		return nil
	}
	var errs []error
	var stale, ready int32
	names := map[string]bool{}
	for _, r := range fw.Status.Clusters {
		names[r.Name] = true
		if r.Stale == metav1.ConditionTrue {
			stale++
			if r.Health == v1alpha1.HealthHealthy {
				errs = append(errs, fmt.Errorf("the row of %s is stale and Healthy", r.Name))
			}
		}
		if r.Ready != nil && r.GivenUp != metav1.ConditionTrue {
			ready += *r.Ready
		}
	}
	if len(names) != len(fw.Status.Clusters) {
		errs = append(errs, errors.New("a cluster has two rows"))
	}
	s := fw.Status.ClusterSummary
	if number(s.Total) != int32(len(names)) {
		errs = append(errs, fmt.Errorf("clusterSummary.total is %d, but there are %d rows", number(s.Total), len(names)))
	}
	if number(s.Stale) != stale {
		errs = append(errs, fmt.Errorf("clusterSummary.stale is %d, but %d rows are stale", number(s.Stale), stale))
	}
	if fw.Status.ReadyReplicas != nil && *fw.Status.ReadyReplicas != ready {
		errs = append(errs, fmt.Errorf("readyReplicas is %d, but the rows add up to %d", *fw.Status.ReadyReplicas, ready))
	}
	return errs
}

// ready: Ready claims that every cluster runs the current revision, healthy and reachable.
func ready(fw *v1alpha1.FleetWorkload) []error {
	if !is(fw, v1alpha1.ConditionReady) {
		return nil
	}
	var errs []error
	for _, kind := range []string{v1alpha1.ConditionScheduled, v1alpha1.ConditionApplied, v1alpha1.ConditionHealthy} {
		if !is(fw, kind) {
			errs = append(errs, fmt.Errorf("Ready is True, but %s is not", kind))
		}
	}
	if observed(fw) == fw.Generation && fw.Status.Backend != fw.Spec.Backend {
		errs = append(errs, fmt.Errorf("Ready is True on backend %q, and the spec asks for %q", fw.Status.Backend, fw.Spec.Backend))
	}
	if m := fw.Status.Migration; m != nil && m.Phase != "" {
		errs = append(errs, fmt.Errorf("Ready is True in phase %s of a migration", m.Phase))
	}
	if len(fw.Status.Clusters) == 0 {
		errs = append(errs, errors.New("Ready is True without any row"))
	}
	for _, r := range fw.Status.Clusters {
		switch {
		case r.GivenUp == metav1.ConditionTrue: // others run in its place
		case r.Health != v1alpha1.HealthHealthy:
			errs = append(errs, fmt.Errorf("Ready is True, but %s is %s", r.Name, r.Health))
		case r.Stale != metav1.ConditionFalse:
			errs = append(errs, fmt.Errorf("Ready is True, but the row of %s is stale", r.Name))
		case r.Applied != metav1.ConditionTrue:
			errs = append(errs, fmt.Errorf("Ready is True, but %s has not applied the manifest", r.Name))
		case r.Revision != fw.Status.Revision || r.Revision == "":
			errs = append(errs, fmt.Errorf("Ready is True, but %s has revision %q instead of %q", r.Name, r.Revision, fw.Status.Revision))
		case r.Desired != nil && (r.Ready == nil || *r.Ready < *r.Desired):
			errs = append(errs, fmt.Errorf("Ready is True, but %s has %d of %d replicas ready", r.Name, number(r.Ready), *r.Desired))
		}
	}
	return errs
}

// engine: what kstatus makes of it is what the conditions mean.
func engine(fw *v1alpha1.FleetWorkload) []error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fw)
	if err != nil {
		return []error{err}
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
	result, err := kstatus.Compute(obj)
	if err != nil {
		return []error{fmt.Errorf("kstatus: %w", err)}
	}
	want := kstatus.InProgressStatus
	switch {
	case !fw.DeletionTimestamp.IsZero():
		want = kstatus.TerminatingStatus
	case observed(fw) != fw.Generation:
	case is(fw, v1alpha1.ConditionStalled):
		want = kstatus.FailedStatus
	case is(fw, v1alpha1.ConditionReady):
		want = kstatus.CurrentStatus
	}
	if result.Status != want {
		return []error{fmt.Errorf("kstatus says %s (%s), the conditions mean %s", result.Status, result.Message, want)}
	}
	return nil
}

func observed(fw *v1alpha1.FleetWorkload) int64 {
	if fw.Status.ObservedGeneration == nil {
		return 0
	}
	return *fw.Status.ObservedGeneration
}

func find(fw *v1alpha1.FleetWorkload, kind string) *metav1.Condition {
	for i := range fw.Status.Conditions {
		if fw.Status.Conditions[i].Type == kind {
			return &fw.Status.Conditions[i]
		}
	}
	return nil
}

func is(fw *v1alpha1.FleetWorkload, kind string) bool {
	c := find(fw, kind)
	return c != nil && c.Status == metav1.ConditionTrue
}

func number(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
