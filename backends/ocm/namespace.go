package ocm

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Karmada makes the namespaces of its control plane on every member, and marks them as its own. It deletes such a namespace, with all
// that is in it, when its own is deleted or when the member is unjoined (pkg/controllers/namespace): after a hand-over as well, when
// everything in it is ours. What has not the mark is neither written nor deleted (allowUpdate and Delete in pkg/util/objectwatcher). So
// at the end of a hand-over the mark is taken off, as it is off workloads: it is first applied, empty, and then no longer.
//
// Everybody whose workloads are in the namespace has the same ManifestWork for it. How far this has come is in its annotation,
// and whoever renders it next goes on from there.
const (
	markTaken   = "taking"
	markDropped = "done"
)

// unmanagedNamespace is the namespace's ManifestWork as it is to be. live is what there is of it; ends says that a hand-over ends here.
func unmanagedNamespace(rendered, live *unstructured.Unstructured, isApplied, ends bool) *unstructured.Unstructured {
	step := ""
	if live != nil {
		step = live.GetAnnotations()[annotationUnmanaged]
	}
	switch {
	case step == "" && ends:
		step = markTaken
	case step == markTaken && isApplied:
		step = markDropped
	case step == "":
		return rendered
	}
	work := rendered.DeepCopy()
	withoutLabels(work) // from here on the agent writes, and what the member has there is the member's
	configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
	if config, is := configs[0].(map[string]any); is {
		config["updateStrategy"] = applying(step == markTaken)
	}
	// renderPrerequisite has put them there.
	_ = unstructured.SetNestedSlice(work.Object, configs, "spec", "manifestConfigs")
	if step == markTaken {
		takeMarks(work, managedByKarmada)
	}
	annotate(work, annotationUnmanaged, step)
	spec, _, _ := unstructured.NestedMap(work.Object, "spec")
	annotate(work, annotationHash, hashOf(spec))
	return work
}

// withoutLabels leaves the namespace's labels out of its ManifestWork.
func withoutLabels(work *unstructured.Unstructured) {
	manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	if manifest, is := manifests[0].(map[string]any); is {
		unstructured.RemoveNestedField(manifest, "metadata", "labels")
	}
	// renderNamespaceWork has put them there.
	_ = unstructured.SetNestedSlice(work.Object, manifests, "spec", "workload", "manifests")
}

// unmanaging is the prerequisite as it is to be: a namespace's may be on its way from Karmada.
func (d *Driver) unmanaging(ctx context.Context, rendered *unstructured.Unstructured, ends bool) (*unstructured.Unstructured, error) {
	if rendered.GetLabels()[labelPrerequisite] != prerequisiteNamespace {
		return rendered, nil
	}
	live, err := d.cached(ctx, rendered)
	if err != nil {
		return nil, err
	}
	return unmanagedNamespace(rendered, live, d.awaitPrerequisite(live, rendered) == "", ends), nil
}

// observeNamespaces adds to the reports of a hand-over which clusters' namespaces Karmada may still take away.
func (d *Driver) observeNamespaces(ctx context.Context, query backends.Query, clusters []backends.ClusterObservation) error {
	if query.Counterpart == backends.CounterpartNone || !needsNamespace(query.Workload.Namespace) {
		return nil
	}
	for i := range clusters {
		work := renderNamespaceWork(clusters[i].Cluster, query.Workload)
		live, err := d.cached(ctx, work)
		if err != nil {
			return err
		}
		if clusters[i].Released() || clusters[i].Applied != metav1.ConditionTrue {
			continue
		}
		if live == nil || live.GetAnnotations()[annotationUnmanaged] != markDropped || d.awaitPrerequisite(live, work) != "" {
			clusters[i].Marks = append(clusters[i].Marks, "namespace "+query.Workload.Namespace+": "+managedByKarmada)
		}
	}
	return nil
}
