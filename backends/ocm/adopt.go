package ocm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
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
		if err := d.refuseOthers(ctx, cluster, r.manifest); err != nil {
			return "", err
		}
		if owner, owned := r.values[feedbackOwner].(string); owned {
			return "", ownedBy(cluster, owner)
		}
		return "", nil
	})
	return err
}

// refuseOthers fails when a ManifestWork of somebody else carries the manifest's object to the cluster. The cache knows ours alone, so the
// hub is asked: only when something begins to be delivered that takes over what it finds.
func (d *Driver) refuseOthers(ctx context.Context, cluster string, manifest map[string]any) error {
	list := listOf(manifestWorkGVK)
	if err := d.hub.List(ctx, list, client.InNamespace(cluster)); err != nil {
		return explain("list ManifestWorks of cluster "+cluster, err)
	}
	if other := carrying(list.Items, manifest); other != nil {
		return carriedBy(other, manifest)
	}
	return nil
}

// begins tells whether a move begins to deliver what was not delivered until now.
func (m move) begins(live *unstructured.Unstructured, s state) bool {
	return m.write == writeWork && m.strategy != workv1.UpdateStrategyTypeReadOnly &&
		(live == nil || s.strategy == workv1.UpdateStrategyTypeReadOnly)
}

// carrying is a ManifestWork, not ours, that carries the manifest's object; nil when there is none.
func carrying(works []unstructured.Unstructured, manifest map[string]any) *unstructured.Unstructured {
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
			return &works[i]
		}
	}
	return nil
}

func carriedBy(other *unstructured.Unstructured, manifest map[string]any) error {
	cluster, name := other.GetNamespace(), other.GetName()
	remedy := fmt.Sprintf("set spec.deleteOption.propagationPolicy of that ManifestWork to Orphan, wait until its condition Applied has that "+
		"generation, and delete it: kubectl delete manifestwork %s -n %s. The rest goes by itself", name, cluster)
	// A namespace has no dot (manifestWorkReplicaSetKey in ocm pkg/work/hub).
	if namespace, set, found := strings.Cut(other.GetLabels()[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey], "."); found {
		remedy = fmt.Sprintf("set spec.manifestWorkTemplate.deleteOption.propagationPolicy of ManifestWorkReplicaSet %s/%s, which has made it, to "+
			"Orphan, wait until the condition Applied of all its ManifestWorks has their generation, and delete it: "+
			"kubectl delete manifestworkreplicaset %s -n %s. The rest goes by itself", namespace, set, set, namespace)
	}
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
		Message: fmt.Sprintf("ManifestWork %s/%s, which is not the operator's, carries %s %s; nothing was taken over",
			cluster, name, manifest["kind"], (&unstructured.Unstructured{Object: manifest}).GetName()),
		Remedy: remedy,
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
