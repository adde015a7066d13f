package ocm

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// refuseEarlier fails while the hub has objects of an earlier FleetWorkload of the same name.
func (d *Driver) refuseEarlier(ctx context.Context, key backends.Key) error {
	for _, kind := range []*unstructured.UnstructuredList{listOf(manifestWorkGVK), listOf(placementGVK)} {
		objects, err := d.list(ctx, kind, client.MatchingFields{indexOwner: key.String()})
		if err != nil {
			return err
		}
		for _, obj := range objects {
			if obj.GetLabels()[v1alpha1.LabelUID] == string(key.UID) {
				continue
			}
			return &backends.Error{
				Code: backends.CodeNameConflict, Value: obj.GetNamespace() + "/" + obj.GetName(),
				Message: "the hub has a " + obj.GetKind() + " of an earlier FleetWorkload of this name",
				Remedy:  cmp.Or(key.EarlierLife(obj.GetAnnotations()), "wait until that one is deleted, or delete its objects on the hub"),
			}
		}
	}
	return nil
}

// refuseForeign fails when the API server has an object of that name that is not the workload's; the caches hold only
// objects with our label.
func (d *Driver) refuseForeign(ctx context.Context, obj *unstructured.Unstructured, key backends.Key) error {
	found, err := caches.Lookup(ctx, d.hub, obj.GroupVersionKind(), client.ObjectKeyFromObject(obj))
	if err != nil || found == nil || found.Labels[v1alpha1.LabelUID] == string(key.UID) {
		return err
	}
	return nameConflict(obj)
}

func nameConflict(obj *unstructured.Unstructured) error {
	return &backends.Error{
		Code: backends.CodeNameConflict, Value: obj.GetNamespace() + "/" + obj.GetName(),
		Message: "the hub has a " + obj.GetKind() + " of this name that is not this FleetWorkload's",
		Remedy:  "remove it, or rename the FleetWorkload",
	}
}

// refuseTwice fails when another FleetWorkload delivers the same object to the cluster. The older one keeps it.
func (d *Driver) refuseTwice(ctx context.Context, target clusterPlan, live *unstructured.Unstructured) error {
	others, err := d.delivering(ctx, target.cluster, firstManifest(target.work))
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.GetName() == target.work.GetName() || live != nil && !older(other, live) {
			continue
		}
		whose := "FleetWorkload " + other.GetAnnotations()[v1alpha1.AnnotationOwner] + " delivers"
		if companions.IsShared(other) {
			whose = "FleetWorkloads whose pods refer to it deliver"
		}
		return &backends.Error{
			Code: backends.CodeNameConflict, Field: "spec.template.metadata.name",
			Value:   fmt.Sprint(firstManifest(target.work)["kind"]) + "/" + unstructuredName(target.work),
			Message: whose + " the same object to cluster " + target.cluster,
			Remedy:  "give the template another name",
		}
	}
	return nil
}

func unstructuredName(work *unstructured.Unstructured) string {
	manifest := unstructured.Unstructured{Object: firstManifest(work)}
	return manifest.GetName()
}

func older(a, b *unstructured.Unstructured) bool {
	x, y := createdAt(a), createdAt(b)
	if x.Equal(&y) {
		return a.GetUID() < b.GetUID()
	}
	return x.Before(&y)
}
