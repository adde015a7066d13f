package ssa

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// DryRun has the server apply desired without keeping it, and says for a person what stands against it: an object in its place
// that has another UID label, a refusal, or fields that the server would drop. A namespace that is missing is nothing
// against it, since drivers create it.
func DryRun(ctx context.Context, c client.Client, desired *unstructured.Unstructured) (against string, err error) {
	title := fmt.Sprintf("%s %s", desired.GetKind(), client.ObjectKeyFromObject(desired))
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(desired.GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case err == nil && live.Labels[v1alpha1.LabelUID] != desired.GetLabels()[v1alpha1.LabelUID]:
		return title + " is there already and is somebody else's; remove it, or rename the FleetWorkload", nil
	case client.IgnoreNotFound(err) != nil:
		return tried("get "+title, err)
	}
	sent := desired.DeepCopy()
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(FieldOwner), client.ForceOwnership, client.DryRunAll)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return tried("apply "+title, err)
	case !Contains(sent.Object["spec"], desired.Object["spec"]):
		return title + " would lose fields: the kind's CRD there is of another version than the template needs; update it", nil
	}
	return "", nil
}

// tried tells a refusal from a fault that passes.
func tried(op string, err error) (string, error) {
	classified := backends.Classify(op, err)
	switch backends.CodeOf(classified) {
	case backends.CodeForbidden, backends.CodeRejected, backends.CodeKindNotServed, backends.CodeInvalidTemplate:
		return classified.Error(), nil
	default:
		return "", classified
	}
}
