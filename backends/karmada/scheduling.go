package karmada

import (
	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
)

// appliedPlacement is the annotation of a binding with the placement that the scheduler last acted on (util.PolicyPlacementAnnotation).
const appliedPlacement = "policy.karmada.io/applied-placement"

// mayBeDivided tells whether the scheduler may still give clusters other numbers of replicas than the binding has. It is behind also when nothing but
// the template's resourceVersion has come into the binding, as it does a while after each change. Then it finds what it goes by unchanged
// (doScheduleBinding in pkg/scheduler): what clusters have told is as true as before.
func mayBeDivided(b *workv1alpha2.ResourceBinding) bool {
	if b.Generation == b.Status.SchedulerObservedGeneration {
		return false
	}
	last, asked := b.Status.LastScheduledTime, b.Spec.RescheduleTriggeredAt
	return last == nil || asked != nil && asked.After(last.Time) || !hasPlacement(b) || !hasReplicas(b)
}

// hasPlacement tells whether the scheduler has acted on the binding's placement.
func hasPlacement(b *workv1alpha2.ResourceBinding) bool {
	var applied policyv1alpha1.Placement
	err := utiljson.Unmarshal([]byte(b.Annotations[appliedPlacement]), &applied)
	return err == nil && b.Spec.Placement != nil && equality.Semantic.DeepEqual(*b.Spec.Placement, applied)
}

// hasReplicas tells whether clusters have been given as many replicas as the binding asks for (IsBindingReplicasChanged in pkg/util).
func hasReplicas(b *workv1alpha2.ResourceBinding) bool {
	divided := b.Spec.Placement.ReplicaSchedulingType() == policyv1alpha1.ReplicaSchedulingTypeDivided
	var sum int32
	for _, c := range b.Spec.Clusters {
		if !divided && c.Replicas != b.Spec.Replicas {
			return false
		}
		sum += c.Replicas
	}
	return !divided || sum == b.Spec.Replicas
}
