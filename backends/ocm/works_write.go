package ocm

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// waitsForCache is what a cluster waits for whose ManifestWork the cache does not have as it was written.
const waitsForCache = "the cache to show the ManifestWork"

// behind tells whether the cache has a workload's ManifestWork, nil when it has none, from before it was written last.
func (d *Driver) behind(ctx context.Context, cluster string, key backends.Key, work *unstructured.Unstructured) (bool, error) {
	at := types.NamespacedName{Namespace: cluster, Name: workName(key)}
	var live metav1.Object
	if work != nil {
		live = work
	}
	return d.expected.Behind(expectations.Key{GroupKind: manifestWorkGVK.GroupKind(), NamespacedName: at}, live,
		caches.Version(ctx, d.hub, manifestWorkGVK, at, key.UID))
}

// writeWork makes the ManifestWork what is wanted, the variant that the move asks for, if it is not.
func (d *Driver) writeWork(ctx context.Context, live, wanted *unstructured.Unstructured, m move, key backends.Key) (wrote bool, err error) {
	if live == nil {
		return true, d.createWork(ctx, wanted, key)
	}
	if d.reports.equal(live, wanted, upToDate) {
		return false, nil
	}
	if m.onEvidence {
		wanted.SetResourceVersion(live.GetResourceVersion())
	}
	err = d.sizes.send(wanted, func() error { return d.patchWork(ctx, live, wanted) })
	if isConflict(err) || apierrors.IsNotFound(err) {
		// It has changed since it was read, or is gone; the change wakes the controller up.
		return true, nil
	}
	return true, explain("patch "+title(wanted), err)
}

func (d *Driver) patchWork(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	patched, err := ssa.Patch(ctx, d.hub, live, wanted)
	if err == nil {
		d.expected.Wrote(patched)
	}
	return err
}

// createWork never touches one that is there: the cache may be behind, and an apply would turn a ManifestWork that delivers
// back into one that asks.
func (d *Driver) createWork(ctx context.Context, work *unstructured.Unstructured, key backends.Key) error {
	err := d.sizes.send(work, func() error {
		created, err := ssa.Create(ctx, d.hub, work)
		if err == nil {
			d.expected.Wrote(created)
		}
		return err
	})
	if !apierrors.IsAlreadyExists(err) {
		return explain("create "+title(work), err)
	}
	partial, err := d.showAgain(ctx, work, key.UID)
	if err == nil && partial != nil && partial.Labels[v1alpha1.LabelUID] != string(key.UID) {
		return nameConflict(work)
	}
	return err
}

// showAgain has the cache show an object, see caches.ShowAgain. It returns what the hub has; nil when that is nothing.
func (d *Driver) showAgain(ctx context.Context, obj *unstructured.Unstructured, uid types.UID) (*metav1.PartialObjectMetadata, error) {
	found, err := caches.Lookup(ctx, d.hub, obj.GroupVersionKind(), client.ObjectKeyFromObject(obj))
	if err == nil {
		_, err = caches.ShowAgain(ctx, d.hub, found, uid)
	}
	return found, explain("look for "+title(obj), err)
}

// upToDate also sees fields that somebody has added to the manifest: for the API server it is one value.
func upToDate(live, wanted *unstructured.Unstructured) bool {
	if !ssa.UpToDate(live, wanted) {
		return false
	}
	for _, mark := range []string{annotationHeld, annotationRemoving, annotationObserved} {
		if live.GetAnnotations()[mark] != wanted.GetAnnotations()[mark] {
			return false
		}
	}
	return ssa.Contains(firstManifest(wanted), firstManifest(live))
}

// fromLive is the ManifestWork as we have written it, to be applied again with other marks, strategy or delete option.
func fromLive(live *unstructured.Unstructured) *unstructured.Unstructured {
	obj := unstructuredOf(manifestWorkGVK)
	obj.SetNamespace(live.GetNamespace())
	obj.SetName(live.GetName())
	labels, annotations := map[string]string{}, map[string]string{}
	for _, key := range []string{v1alpha1.LabelManagedBy, v1alpha1.LabelUID} {
		labels[key] = live.GetLabels()[key]
	}
	for _, key := range []string{v1alpha1.AnnotationOwner, annotationHash} {
		if value, ok := live.GetAnnotations()[key]; ok {
			annotations[key] = value
		}
	}
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	obj.Object["spec"] = spec
	return obj
}
