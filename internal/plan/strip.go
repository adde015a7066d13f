package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/marks"
)

// serverMetadata are metadata fields that API servers set. A manifest copied from a live object has them; they are not
// sent. An owner reference may be an AppliedManifestWork's of Open Cluster Management.
var serverMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "selfLink", "ownerReferences", "finalizers", "generateName",
}

// strip takes off what API servers, their clients and orchestrators have added to an object: what is left can be sent to any cluster. It
// returns the keys of orchestrators that it took off, sorted.
func strip(obj *unstructured.Unstructured) (orchestrators []string) {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	for _, field := range serverMetadata {
		delete(metadata, field)
	}
	for _, name := range []string{"labels", "annotations"} {
		entries, _ := metadata[name].(map[string]any)
		for key := range entries {
			if marks.Ours(key) || marks.Foreign(key) {
				delete(entries, key)
			}
			if marks.Orchestrator(key) {
				orchestrators = append(orchestrators, key)
			}
		}
		if len(entries) == 0 {
			delete(metadata, name)
		}
	}
	delete(obj.Object, "status")
	stripGenerated(obj)
	slices.Sort(orchestrators)
	return slices.Compact(orchestrators)
}

// stripGenerated takes off what an API server gives to each object of a kind anew. Where it came from it was another one, so that a
// cluster would refuse it, or take it for somebody else's (as RemoveIrrelevantFields in karmada
// pkg/resourceinterpreter/default/native/prune).
func stripGenerated(obj *unstructured.Unstructured) {
	switch gk := obj.GroupVersionKind().GroupKind().String(); gk {
	case "ServiceAccount":
		delete(obj.Object, "secrets")
	case "PersistentVolumeClaim":
		unstructured.RemoveNestedField(obj.Object, "spec", "volumeName")
	case "Service":
		if ip, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
			unstructured.RemoveNestedField(obj.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(obj.Object, "spec", "clusterIPs")
		}
		unstructured.RemoveNestedField(obj.Object, "spec", "healthCheckNodePort")
	case "Job.batch":
		stripJob(obj)
	}
}

// stripJob takes off the selector that an API server generates, and its labels on pods (generateSelector in k8s.io/kubernetes
// pkg/registry/batch/job/strategy.go).
func stripJob(obj *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(obj.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(obj.Object, "spec", "selector")
	for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
		unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "labels", key)
	}
}

// stripSelfRemoval takes off what makes an object remove itself once it has finished: a backend would make it anew, and it would run
// again. Karmada does so by itself for Jobs (https://github.com/karmada-io/karmada/issues/2197). The note is for a person; it is empty
// when there was nothing.
func stripSelfRemoval(field string, obj *unstructured.Unstructured, kind *interpreter.Kind) (note string) {
	var found []string
	for _, path := range kind.SelfRemovalPaths() {
		if _, has, err := unstructured.NestedFieldNoCopy(obj.Object, path...); has && err == nil {
			unstructured.RemoveNestedField(obj.Object, path...)
			found = append(found, field+"."+strings.Join(path, "."))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("note: %s is not sent: a %s that removes itself would be made again, and run again; it stays on the clusters, with "+
		"its result, until the FleetWorkload is deleted", strings.Join(found, " and "), obj.GetKind())
}

// noteStripped tells a person of keys that were taken off a manifest; empty when there are none.
func noteStripped(field string, keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("note: of %s.metadata the keys %s are not sent: Karmada and Open Cluster Management set theirs themselves; take them out", field, brief.List(keys))
}
