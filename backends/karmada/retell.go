package karmada

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Karmada's detector writes the binding only when what it makes of policy and template differs from its cache of the binding
// (CreateOrUpdate in pkg/detector). Of two changes of the policy that undo each other the second is lost when that cache does not have
// the first yet, and nothing brings it back. Any change of the policy has the detector look again (OnPropagationPolicyUpdate in
// pkg/detector), so the policy says in an annotation when Karmada was told again.

const (
	// annotationToldAgain is when that was, in RFC 3339.
	annotationToldAgain = "fleetworkload.io/told-again"
	// ownerToldAgain owns that annotation: it is no part of what the policy is compared with.
	ownerToldAgain = "fleetworkload-told-again"
	// tellAgain is how long the binding may lack what its policy says.
	tellAgain = 30 * time.Second
)

// missed tells whether the binding lacks something that the policy says.
func missed(live currentState) bool {
	if live.policy == nil || live.binding == nil || live.binding.DeletionTimestamp != nil {
		return false
	}
	return !takenUp(live) || !samePlacement(live.binding, live.policy) ||
		preserves(live.policy) != ptr.Deref(live.binding.Spec.PreserveResourcesOnDeletion, false)
}

// toTellAgain is after what time Karmada is to be told of the policy again: when that is not positive it is due. Nothing is missed when
// it is not known since when.
func toTellAgain(live currentState, now time.Time) (wait time.Duration, is bool) {
	if !missed(live) {
		return 0, false
	}
	last, err := time.Parse(time.RFC3339, live.policy.GetAnnotations()[annotationToldAgain])
	if err != nil {
		last = time.Time{}
	}
	if written := lastWritten(live.policy); written.After(last) {
		last = written
	}
	if last.IsZero() {
		return 0, false
	}
	return last.Add(tellAgain).Sub(now), true
}

// toldAgain is the policy with nothing but the time changed.
func toldAgain(policy *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	out := policy.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationToldAgain] = now.UTC().Format(time.RFC3339)
	out.SetAnnotations(annotations)
	return out
}

// retell tells Karmada of the policy again when that is due, and otherwise after what time it will be; 0 when nothing was missed.
func (d *Driver) retell(ctx context.Context, live currentState) (time.Duration, error) {
	now := time.Now()
	wait, is := toTellAgain(live, now)
	if !is || wait > 0 {
		return wait, nil
	}
	sent := toldAgain(live.policy, now)
	patch := client.MergeFromWithOptions(live.policy, client.MergeFromWithOptimisticLock{})
	if err := d.client.Patch(ctx, sent, patch, client.FieldOwner(ownerToldAgain)); err != nil {
		return 0, backends.Classify(fmt.Sprintf("patch policy %s", client.ObjectKeyFromObject(live.policy)), err)
	}
	d.expected.Wrote(sent)
	d.log.Info("Told Karmada of the policy again: the binding lacks what it says", "policy", client.ObjectKeyFromObject(live.policy))
	return tellAgain, nil
}
