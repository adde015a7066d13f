package retire

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

const (
	kindManifestWork  = "ManifestWork"
	kindReplicaSet    = "ManifestWorkReplicaSet"
	kindAddOn         = "ManagedClusterAddOn"
	kindFleetWorkload = "FleetWorkload"
)

// Dependents are the member objects of a ManifestWork. The agent deletes them with it, which goes when the cluster is detached, unless it
// orphans them (api/work/v1 DeleteOption). What it only reads is not its own.
func Dependents(w *workv1.ManifestWork) []backends.Dependent {
	var out []backends.Dependent
	owner := ownerOf(w)
	for i, raw := range w.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(raw.Raw); err != nil {
			manifest.SetName(w.Name) // the agent cannot read it either
		}
		at := reported(w, int32(i))
		if readOnly(w, at) {
			continue
		}
		d := backends.Dependent{
			Cluster: w.Namespace, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName(),
			Owner: owner, Fate: backends.FateRemoved, Own: owner.Kind == kindAddOn || owner.Name == "",
		}
		if owner.Kind == kindManifestWork || owner.Kind == kindReplicaSet {
			d.Preserve = "set deleteOption.propagationPolicy to " + string(workv1.DeletePropagationPolicyTypeOrphan)
		}
		switch {
		case !orphaned(w, at):
		case confirmed(w):
			d.Fate = backends.FateLeft
		default:
			d.Note = "the agent has not confirmed yet that it leaves it"
		}
		out = append(out, d)
	}
	return out
}

// reported is what the agent calls a manifest; it is empty before the agent has seen it.
func reported(w *workv1.ManifestWork, ordinal int32) workv1.ManifestResourceMeta {
	for _, m := range w.Status.ResourceStatus.Manifests {
		if m.ResourceMeta.Ordinal == ordinal {
			return m.ResourceMeta
		}
	}
	return workv1.ManifestResourceMeta{}
}

func orphaned(w *workv1.ManifestWork, at workv1.ManifestResourceMeta) bool {
	opts := w.Spec.DeleteOption
	if opts == nil {
		return false
	}
	if opts.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan {
		return true
	}
	return opts.PropagationPolicy == workv1.DeletePropagationPolicyTypeSelectivelyOrphan && opts.SelectivelyOrphan != nil &&
		slices.Contains(opts.SelectivelyOrphan.OrphaningRules,
			workv1.OrphaningRule{Group: at.Group, Resource: at.Resource, Namespace: at.Namespace, Name: at.Name})
}

func readOnly(w *workv1.ManifestWork, at workv1.ManifestResourceMeta) bool {
	id := workv1.ResourceIdentifier{Group: at.Group, Resource: at.Resource, Namespace: at.Namespace, Name: at.Name}
	return slices.ContainsFunc(w.Spec.ManifestConfigs, func(c workv1.ManifestConfigOption) bool {
		return c.ResourceIdentifier == id && c.UpdateStrategy != nil && c.UpdateStrategy.Type == workv1.UpdateStrategyTypeReadOnly
	})
}

// confirmed tells whether the agent has carried the present spec out: before that its ownerReference may still be on the object.
func confirmed(w *workv1.ManifestWork) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
	return applied != nil && applied.ObservedGeneration == w.Generation
}

// ownerOf tells by whom OCM was told of a ManifestWork.
func ownerOf(w *workv1.ManifestWork) backends.Owner {
	if namespace, name, found := strings.Cut(w.Annotations[v1alpha1.AnnotationOwner], "/"); found {
		return backends.Owner{Kind: kindFleetWorkload, Namespace: namespace, Name: name}
	}
	for _, user := range companions.ReadUsers(w.Annotations) {
		return backends.Owner{Kind: kindFleetWorkload, Namespace: user.Namespace, Name: user.Name}
	}
	if w.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator {
		return backends.Owner{Kind: kindFleetWorkload} // those of several: a namespace that stays, the agent's rights
	}
	// A namespace has no dot (manifestWorkReplicaSetKey in ocm pkg/work/hub).
	if namespace, name, found := strings.Cut(w.Labels[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey], "."); found {
		return backends.Owner{Kind: kindReplicaSet, Namespace: namespace, Name: name}
	}
	if addOn := w.Labels[addonv1alpha1.AddonLabelKey]; addOn != "" {
		return backends.Owner{Kind: kindAddOn, Namespace: w.Namespace, Name: addOn}
	}
	return backends.Owner{Kind: kindManifestWork, Namespace: w.Namespace, Name: w.Name}
}
