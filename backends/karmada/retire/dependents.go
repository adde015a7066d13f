package retire

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

const (
	kindNamespace     = "Namespace"
	kindPolicy        = policyv1alpha1.ResourceKindPropagationPolicy
	kindClusterPolicy = policyv1alpha1.ResourceKindClusterPropagationPolicy
	kindFleetWorkload = "FleetWorkload"

	// executionPrefix begins the namespaces of Works (names.GenerateExecutionSpaceName in pkg/util/names).
	executionPrefix = "karmada-es-"
	// managedLabel is on every member object that Karmada may write and delete (util.ManagedByKarmadaLabel).
	managedLabel = "karmada.io/managed"
)

// Dependents are the member objects that a Work stands for. Karmada deletes them with the Work, when the cluster is unjoined, the
// template deleted or the policy's choice changed, unless the Work preserves them (handleWorkDelete in pkg/controllers/execution).
func Dependents(w *workv1alpha1.Work) []backends.Dependent {
	var out []backends.Dependent
	if refused(w) {
		return nil
	}
	for _, raw := range w.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(raw.Raw); err != nil {
			manifest.SetName(w.Name) // Karmada cannot read it either
		}
		d := backends.Dependent{
			Cluster: strings.TrimPrefix(w.Namespace, executionPrefix),
			Kind:    manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName(),
			Owner: ownerOf(w, manifest), Fate: backends.FateRemoved,
			Own: controlledBy(w, clusterv1alpha1.ResourceKindCluster) != "",
		}
		if ptr.Deref(w.Spec.PreserveResourcesOnDeletion, false) {
			d.Fate = backends.FateLeft
		}
		d.Preserve = wouldWrite(d.Owner.Kind)
		out = append(out, d)
	}
	return out
}

// refused tells whether Karmada has found an object of somebody else there, which it neither changes nor deletes.
func refused(w *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return applied != nil && applied.Status == metav1.ConditionFalse && strings.Contains(applied.Message, "Karmada will not manage this resource")
}

// ownerOf tells by which object of the control plane Karmada was told of a manifest.
func ownerOf(w *workv1alpha1.Work, manifest *unstructured.Unstructured) backends.Owner {
	annotations := manifest.GetAnnotations()
	if namespace, name, found := strings.Cut(annotations[v1alpha1.AnnotationOwner], "/"); found {
		return backends.Owner{Kind: kindFleetWorkload, Namespace: namespace, Name: name}
	}
	for _, user := range companions.ReadUsers(w.Annotations) {
		return backends.Owner{Kind: kindFleetWorkload, Namespace: user.Namespace, Name: user.Name}
	}
	if name := annotations[policyv1alpha1.PropagationPolicyNameAnnotation]; name != "" {
		return backends.Owner{Kind: kindPolicy, Namespace: annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation], Name: name}
	}
	if name := annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]; name != "" {
		return backends.Owner{Kind: kindClusterPolicy, Name: name}
	}
	for _, kind := range []string{kindNamespace, clusterv1alpha1.ResourceKindCluster} {
		if name := controlledBy(w, kind); name != "" {
			return backends.Owner{Kind: kind, Name: name}
		}
	}
	if name := w.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey]; name != "" {
		return backends.Owner{
			Kind:      workv1alpha2.ResourceKindResourceBinding,
			Namespace: w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey], Name: name,
		}
	}
	return backends.Owner{Kind: workv1alpha1.ResourceKindWork, Namespace: w.Namespace, Name: w.Name}
}

// controlledBy is the name of the Work's controller when that is of a kind.
func controlledBy(w *workv1alpha1.Work, kind string) string {
	if c := metav1.GetControllerOf(w); c != nil && c.Kind == kind {
		return c.Name
	}
	return ""
}

// wouldWrite says what Preserve of an owner of that kind writes.
func wouldWrite(kind string) string {
	switch kind {
	case kindPolicy, kindClusterPolicy:
		return "set spec.preserveResourcesOnDeletion"
	case kindNamespace:
		return "label it " + policyv1alpha1.NamespaceSkipAutoPropagationLabel + "=true, and take its Works away from Karmada's controller"
	default:
		return ""
	}
}

// withoutFinalizer are the Work's finalizers but the one for which Karmada deletes the member object
// (util.ExecutionControllerFinalizer).
func withoutFinalizer(w *workv1alpha1.Work) []string {
	return slices.DeleteFunc(slices.Clone(w.Finalizers), func(f string) bool { return f == "karmada.io/execution-controller" })
}
