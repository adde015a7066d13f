package ocm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// refuseCarried fails when an object that was probed, and is about to be taken over, is carried by a ManifestWork of
// somebody else: both would write it, and the other one would remove it. The works are those of the clusters to be
// written. Nothing is asked of the hub but for those whose last word was a probe.
func (d *Driver) refuseCarried(ctx context.Context, works map[string]*unstructured.Unstructured) error {
	_, err := inParallel(ctx, works, func(cluster string, work *unstructured.Unstructured) (string, error) {
		r, err := d.reports.read(work)
		if err != nil {
			return "", err
		}
		s := r.state()
		if !s.probe || !r.probed(s).Exists {
			return "", nil
		}
		list := listOf(manifestWorkGVK)
		if err := d.hub.List(ctx, list, client.InNamespace(cluster)); err != nil {
			return "", explain("list ManifestWorks of cluster "+cluster, err)
		}
		if name := carrying(list.Items, r.manifest); name != "" {
			return "", carriedBy(cluster, name, r.manifest)
		}
		if owner, owned := r.values[feedbackOwner].(string); owned {
			return "", ownedBy(cluster, owner)
		}
		return "", nil
	})
	return err
}

// carrying is the name of a ManifestWork, not ours, that carries the manifest's object; empty when there is none.
func carrying(works []unstructured.Unstructured, manifest map[string]any) string {
	wanted := identity(manifest)
	for i := range works {
		if works[i].GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator {
			continue
		}
		manifests, _, _ := unstructured.NestedSlice(works[i].Object, "spec", "workload", "manifests")
		if slices.ContainsFunc(manifests, func(m any) bool {
			other, _ := m.(map[string]any)
			return identity(other) == wanted
		}) {
			return works[i].GetName()
		}
	}
	return ""
}

func carriedBy(cluster, name string, manifest map[string]any) error {
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
		Message: fmt.Sprintf("ManifestWork %s/%s, which is not the operator's, carries %s %s; nothing was taken over",
			cluster, name, manifest["kind"], (&unstructured.Unstructured{Object: manifest}).GetName()),
		Remedy: fmt.Sprintf("set spec.deleteOption.propagationPolicy of that ManifestWork to Orphan, or SelectivelyOrphan for this object, "+
			"wait until its condition Applied has that generation, and delete it: "+
			"kubectl delete manifestwork %s -n %s. The rest goes by itself", name, cluster),
	}
}

func ownedBy(cluster, owner string) error {
	_, work, _ := strings.Cut(owner, "-")
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
		Message: fmt.Sprintf("on cluster %s the object is owned by AppliedManifestWork %s, and is deleted when that goes; nothing was taken over",
			cluster, owner),
		Remedy: fmt.Sprintf("have ManifestWork %s, of another hub or on its way out, orphan the object, or remove that owner on the cluster", work),
	}
}
