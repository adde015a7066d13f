package karmada

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestReportsWhileTheSchedulerIsBehind: a binding gets a new generation also when only the template's resourceVersion has come into it. A cluster that was
// ready stays so then, and does not where the scheduler may give it other replicas.
func TestReportsWhileTheSchedulerIsBehind(t *testing.T) {
	duplicated := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ReplicaScheduling = nil
		actedOn(t, b)
	}
	for name, c := range map[string]struct {
		edit    func(b *workv1alpha2.ResourceBinding)
		current bool
	}{
		"nothing it goes by":               {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "77" }, current: true},
		"nothing it goes by, of copies":    {edit: duplicated, current: true},
		"it has never been there":          {edit: func(b *workv1alpha2.ResourceBinding) { b.Status.LastScheduledTime = nil }},
		"other replicas in all":            {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 3 }},
		"other replicas on each":           {edit: func(b *workv1alpha2.ResourceBinding) { duplicated(b); b.Spec.Replicas = 3 }},
		"other weights":                    {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling.WeightPreference = nil }},
		"no placement":                     {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }},
		"a placement that cannot be read":  {edit: func(b *workv1alpha2.ResourceBinding) { b.Annotations[appliedPlacement] = "{" }},
		"it was asked to divide anew":      {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = after(b, time.Second) }},
		"it has divided anew, as asked to": {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = after(b, -time.Second) }, current: true},
	} {
		t.Run(name, func(t *testing.T) {
			d, live := converged(t)
			actedOn(t, live.binding)
			live.binding.Generation++
			c.edit(live.binding)
			o := translate(d.Query, live, fleetOf(metav1.ConditionTrue, "m1"))
			if got := o.Clusters[0]; got.Current != c.current || got.Applied != metav1.ConditionTrue || got.Presence != backends.PresenceActive {
				t.Errorf("the cluster's report is %+v, want current to be %t", got, c.current)
			}
		})
	}
}

// TestWhatOfABindingBringsAPass: what the scheduler is to do, and what has come of it.
func TestWhatOfABindingBringsAPass(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		edit   func(b *workv1alpha2.ResourceBinding)
		brings bool
	}{
		"the template's resourceVersion": {edit: func(b *workv1alpha2.ResourceBinding) { b.Generation++; b.Spec.Resource.ResourceVersion = "77" }},
		"the scheduler has found nothing to do": {edit: func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedGeneration++
			b.Status.LastScheduledTime = after(b, time.Minute)
		}},
		"what clusters report": {edit: func(b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus = make([]workv1alpha2.AggregatedStatusItem, 1)
		}},
		"other replicas":             {edit: func(b *workv1alpha2.ResourceBinding) { b.Generation++; b.Spec.Replicas++ }, brings: true},
		"another cluster":            {edit: func(b *workv1alpha2.ResourceBinding) { b.Generation++; b.Spec.Clusters[0].Name = "m2" }, brings: true},
		"another template":           {edit: func(b *workv1alpha2.ResourceBinding) { b.Generation++; b.Spec.Resource.UID = "t2" }, brings: true},
		"a suspension":               {edit: func(b *workv1alpha2.ResourceBinding) { b.Generation++; b.Spec.Suspension = &workv1alpha2.Suspension{} }, brings: true},
		"its end":                    {edit: func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &now }, brings: true},
		"it was never scheduled":     {edit: func(b *workv1alpha2.ResourceBinding) { b.Status.LastScheduledTime = nil }, brings: true},
		"why it cannot be scheduled": {edit: func(b *workv1alpha2.ResourceBinding) { b.Status.Conditions = make([]metav1.Condition, 1) }, brings: true},
		"the scheduler has taken up a placement": {edit: func(b *workv1alpha2.ResourceBinding) {
			b.Generation++
			b.Annotations = map[string]string{}
		}, brings: true},
	} {
		_, live := converged(t)
		actedOn(t, live.binding)
		before := live.binding.DeepCopy()
		c.edit(live.binding)
		if brings := !sameBinding(before, live.binding) || !sameBinding(live.binding, before); brings != c.brings {
			t.Errorf("%s: it brings a pass: %t", name, brings)
		}
	}
}

// actedOn is a binding after the scheduler has been there.
func actedOn(t *testing.T, b *workv1alpha2.ResourceBinding) {
	t.Helper()
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	b.Status.LastScheduledTime = &now
	b.Spec.Placement = b.Spec.Placement.DeepCopy()
	raw, err := json.Marshal(b.Spec.Placement)
	if err != nil {
		t.Fatal(err)
	}
	b.Annotations = map[string]string{util.PolicyPlacementAnnotation: string(raw)}
}

func after(b *workv1alpha2.ResourceBinding, d time.Duration) *metav1.Time {
	at := metav1.NewTime(b.Status.LastScheduledTime.Add(d))
	return &at
}
