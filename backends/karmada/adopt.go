package karmada

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// refuseRaw says how a workload that somebody has put on Karmada is taken over: released first, so that it runs on unmanaged,
// and probed then. Taking the template itself over is not safe: a policy that has claimed one keeps it, whatever the
// priority of ours, unless Karmada has the feature gate for preemption, of which its API does not tell (propagateResource in
// pkg/detector); and to take the claim away is to write what is another's.
func (d *Driver) refuseRaw(ctx context.Context, q backends.Query, want *unstructured.Unstructured, conflict error) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(want.GroupVersionKind())
	err := d.client.Get(ctx, client.ObjectKeyFromObject(want), found)
	if err != nil || found.Annotations[v1alpha1.AnnotationOwner] != "" || backends.CodeOf(conflict) != backends.CodeNameConflict {
		return conflict
	}
	object := want.GetKind() + " " + client.ObjectKeyFromObject(want).String()
	claim := claimOf(q, found)
	if claim == "" {
		return &backends.Error{
			Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
			Message: object + " on the Karmada control plane is not the operator's, and no policy carries it; nothing was taken over",
			Remedy:  "delete it there. The rest goes by itself",
		}
	}
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
		Message: fmt.Sprintf("%s on the Karmada control plane is not the operator's, and %s carries it; nothing was taken over", object, claim),
		Remedy: fmt.Sprintf("release it, so that its pods run on: (1) set spec.preserveResourcesOnDeletion: true on %s, (2) wait until "+
			"spec.preserveResourcesOnDeletion is true on its Work of every cluster, (3) delete the %s on the Karmada control plane. "+
			"The rest goes by itself", claim, want.GetKind()),
	}
}
