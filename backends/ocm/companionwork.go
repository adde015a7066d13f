package ocm

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// A companion work is the ManifestWork that delivers one companion to one cluster. Several FleetWorkloads share it when the
// companion is shared. It goes through the same steps as a workload's (see next): the cluster is asked before it is
// written, it is Orphan so that deleting it by accident deletes nothing, and the agent confirms before it goes. One
// manifest a work keeps all of them below OCM's size limit, and never leaves one without an owner.
type companionWork struct {
	companion backends.Companion
	// work is the ManifestWork in its final form, but for its users.
	work *unstructured.Unstructured
}

// renderCompanionWork also asks for Karmada's marks: of a shared companion, since it may be Karmada's to deliver, and of one that is
// taken over.
func renderCompanionWork(key backends.Key, c backends.Companion, adopted bool, as map[string]any) companionWork {
	manifest := c.Object.DeepCopy()
	unstructured.RemoveNestedField(manifest.Object, "status")
	gvk, rules := manifest.GroupVersionKind(), ownerRules()
	if c.Shared || adopted {
		rules = append(rules, markRules()...)
	}
	spec := map[string]any{
		"workload": map[string]any{"manifests": []any{manifest.Object}},
		"manifestConfigs": []any{map[string]any{
			"resourceIdentifier": map[string]any{
				"group": gvk.Group, "resource": c.Resource, "namespace": manifest.GetNamespace(), "name": manifest.GetName(),
			},
			"feedbackRules": []any{map[string]any{"type": string(workv1.JSONPathsType), "jsonPaths": rules}},
			// The agent holds few watches, and they are for workloads.
			"feedbackScrapeType": string(workv1.FeedbackPollType),
			"updateStrategy":     applying(false),
		}},
		"deleteOption": map[string]any{"propagationPolicy": string(workv1.DeletePropagationPolicyTypeOrphan)},
	}
	if as != nil && !c.Shared { // FleetWorkloads that share it may have different accounts
		spec["executor"] = as
	}
	work := newObject(manifestWorkGVK, "", companionWorkName(manifest))
	labels := work.GetLabels()
	labels[companions.Label], labels[v1alpha1.LabelUID] = companions.Kind(c), companions.UID(c, key)
	work.SetLabels(labels)
	if !c.Shared {
		annotate(work, v1alpha1.AnnotationOwner, key.String())
	}
	work.Object["spec"] = spec
	annotate(work, annotationHash, hashOf(spec))
	return companionWork{companion: c, work: work}
}

// companionWorkName is the same for all that carry the same object, so that two of them meet.
func companionWorkName(obj *unstructured.Unstructured) string {
	prefix := "fwc-" + obj.GetNamespace() + "-" + obj.GetKind() + "-" + obj.GetName()
	return bounded(strings.ToLower(prefix), hashOf(obj.GroupVersionKind().Group, obj.GetKind(), obj.GetNamespace(), obj.GetName()))
}

// carried is the object that a companion work delivers.
func carried(work *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: firstManifest(work)}
}

// companionWorkFromLive is the companion work as we have written it.
func companionWorkFromLive(live *unstructured.Unstructured) *unstructured.Unstructured {
	obj := fromLive(live)
	labels := obj.GetLabels()
	labels[companions.Label] = live.GetLabels()[companions.Label]
	obj.SetLabels(labels)
	return obj
}

// asWritten is live made equal to the companion work in everything that we write, with that need.
func asWritten(live, wanted *unstructured.Unstructured, need companions.Need) *unstructured.Unstructured {
	after := inNamespace(live, live.GetNamespace()) // all else is shared, and replaced rather than changed
	labels, annotations := after.GetLabels(), after.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, wanted.GetLabels())
	for _, key := range []string{v1alpha1.AnnotationOwner, annotationHash, annotationRemoving, annotationObserved} {
		delete(annotations, key)
	}
	maps.Copy(annotations, wanted.GetAnnotations())
	need.Write(annotations)
	after.SetLabels(labels)
	after.SetAnnotations(annotations)
	if !sameSpec(live, wanted) {
		after.Object["spec"] = wanted.DeepCopy().Object["spec"]
	}
	return after
}

// sameSpec also sees fields that somebody has added to the manifest.
func sameSpec(live, wanted *unstructured.Unstructured) bool {
	return live.GetAnnotations()[annotationHash] == wanted.GetAnnotations()[annotationHash] &&
		ssa.Contains(live.Object["spec"], wanted.Object["spec"]) && ssa.Contains(firstManifest(wanted), firstManifest(live))
}
