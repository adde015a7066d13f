package karmada

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// executionPrefix begins the namespaces of Works (names.GenerateExecutionSpaceName in pkg/util/names).
const executionPrefix = "karmada-es-"

// currentState is what the Karmada control plane has of one workload. What is absent is nil.
type currentState struct {
	template *unstructured.Unstructured
	policy   *unstructured.Unstructured
	override *unstructured.Unstructured
	binding  *workv1alpha2.ResourceBinding
	// works are sorted by cluster.
	works []work
	// retains is true when Karmada has our interpreter that answers probes.
	retains bool
	// plain is true when Karmada renders and reports the workload with our interpreters, and no override of somebody else's may select it. It is
	// looked up for a creation alone, see createsAtOnce.
	plain bool
	// companionsMove is true when a change of a companion may not have reached its cluster yet: the workload's must not be there before it.
	companionsMove bool
}

// object is one that the driver writes for a workload; live is nil where there is none.
type object struct {
	live *unstructured.Unstructured
	gvk  schema.GroupVersionKind
	name string
}

// objects are those that the driver writes.
func (l currentState) objects(q backends.Query) []object {
	name, kinds := policyName(q), scopeOf(q.Workload)
	return []object{{l.template, q.Workload.GVK, q.Workload.Name}, {l.policy, kinds.policy, name}, {l.override, kinds.override, name}}
}

// work is one cluster's Work.
type work struct {
	*workv1alpha1.Work
	cluster string
	// read is the manifest once it was asked for, of a Work that does not change any more.
	read *reading
}

type reading struct {
	done     bool
	manifest *unstructured.Unstructured
}

func newWork(obj *workv1alpha1.Work) work {
	return work{Work: obj, cluster: strings.TrimPrefix(obj.Namespace, executionPrefix)}
}

// manifest is the Work's manifest, which is not to be changed; nil when there is none that can be read. Reading a hundred of them takes most of a
// pass, so it is done once.
func (w work) manifest() *unstructured.Unstructured {
	switch {
	case w.read == nil:
		return w.readManifest()
	case !w.read.done:
		*w.read = reading{done: true, manifest: w.readManifest()}
	}
	return w.read.manifest
}

func (w work) readManifest() *unstructured.Unstructured {
	if len(w.Spec.Workload.Manifests) != 1 {
		return nil
	}
	manifest := &unstructured.Unstructured{}
	if err := manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil
	}
	return manifest
}

// manifestWith is the manifest if that word stands anywhere in it, else nil. Most do not have it, and need not be read to know.
func (w work) manifestWith(word string) *unstructured.Unstructured {
	if !w.contains([]byte(word)) {
		return nil
	}
	return w.manifest()
}

// suspended tells whether Karmada leaves the member object alone.
func (w work) suspended() bool {
	return w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
}

func (w work) preserved() bool {
	return w.Spec.PreserveResourcesOnDeletion != nil && *w.Spec.PreserveResourcesOnDeletion
}

func (w work) terminating() bool { return w.DeletionTimestamp != nil }

func (w work) applied() *metav1.Condition {
	return meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
}

// dispatched tells whether the execution controller has taken the Work up since it was last suspended.
func (w work) dispatched() bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkDispatching)
}

// reported tells whether a member object was ever seen for this Work.
func (w work) reported() bool { return len(w.Status.ManifestStatuses) > 0 }

// ours tells whether the Work carries the FleetWorkload's object, which has its UID as a label. Where the cache dropped
// a foreign manifest it does not.
func (w work) ours(key backends.Key) bool {
	return w.contains([]byte(`"` + string(key.UID) + `"`))
}

// contains tells whether the manifest has these bytes.
func (w work) contains(b []byte) bool {
	return slices.ContainsFunc(w.Spec.Workload.Manifests, func(m workv1alpha1.Manifest) bool { return bytes.Contains(m.Raw, b) })
}

func (l currentState) work(cluster string) (work, bool) {
	for _, w := range l.works {
		if w.cluster == cluster && !w.terminating() {
			return w, true
		}
	}
	return work{}, false
}

// empty tells whether the control plane has nothing of the workload.
func (l currentState) empty() bool {
	return l.template == nil && l.policy == nil && l.override == nil && l.binding == nil && len(l.works) == 0
}

// isNew tells whether Karmada has not been given the workload yet.
func (l currentState) isNew() bool { return l.template == nil && l.binding == nil && len(l.works) == 0 }

// runs tells whether the workload is, or is about to be, on the cluster.
func (l currentState) runs(cluster string) bool {
	if _, found := l.work(cluster); found {
		return true
	}
	return l.binding != nil && slices.ContainsFunc(l.binding.Spec.Clusters, func(c workv1alpha2.TargetCluster) bool {
		return c.Name == cluster
	})
}

// earlier is why a workload is refused of which a FleetWorkload of this name is here, and another one: of another installation, or an earlier one.
func (l currentState) earlier(q backends.Query) error {
	for _, obj := range []*unstructured.Unstructured{l.template, l.policy, l.override} {
		if obj != nil && obj.GetAnnotations()[v1alpha1.AnnotationOwner] == q.Key.String() && obj.GetLabels()[v1alpha1.LabelUID] != string(q.Key.UID) {
			return nameConflict(obj, q)
		}
	}
	return nil
}

// own returns the world without what belongs to others.
func (l currentState) own(q backends.Query) currentState {
	mine := func(obj *unstructured.Unstructured) *unstructured.Unstructured {
		if obj == nil || obj.GetLabels()[v1alpha1.LabelUID] != string(q.Key.UID) {
			return nil
		}
		return obj
	}
	out := currentState{template: mine(l.template), policy: mine(l.policy), override: mine(l.override), retains: l.retains}
	for _, w := range l.works {
		if w.ours(q.Key) {
			out.works = append(out.works, w)
		}
	}
	if b := l.binding; b != nil {
		claimed := b.Annotations[scopeOf(q.Workload).claim] == policyName(q) && out.policy != nil
		bound := out.template != nil && b.Spec.Resource.UID == out.template.GetUID()
		if bound || len(out.works) > 0 || claimed && l.template == nil {
			out.binding = b
		}
	}
	return out
}

// policySuspension reads the suspension of an unstructured PropagationPolicy.
func policySuspension(policy *unstructured.Unstructured) policyv1alpha1.Suspension {
	var out policyv1alpha1.Suspension
	if policy == nil {
		return out
	}
	raw, _, _ := unstructured.NestedMap(policy.Object, "spec", "suspension")
	// What cannot be read suspends nothing.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &out)
	return out
}

func suspendsAll(s policyv1alpha1.Suspension) bool { return s.Dispatching != nil && *s.Dispatching }

func suspendsOn(s policyv1alpha1.Suspension, cluster string) bool {
	return suspendsAll(s) || s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
}

// policyPlacement reads the placement of an unstructured PropagationPolicy.
func policyPlacement(policy *unstructured.Unstructured) (policyv1alpha1.Placement, error) {
	var out policyv1alpha1.Placement
	raw, _, err := unstructured.NestedMap(policy.Object, "spec", "placement")
	if err != nil {
		return out, fmt.Errorf("read placement: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &out); err != nil {
		return out, fmt.Errorf("read placement: %w", err)
	}
	return out, nil
}

// checkOwners finds objects and claims of others where ours should be. Karmada would let two owners fight (R4).
func checkOwners(q backends.Query, live currentState) error {
	for _, obj := range []*unstructured.Unstructured{live.template, live.policy, live.override} {
		if obj != nil && obj.GetLabels()[v1alpha1.LabelUID] != string(q.Key.UID) {
			return nameConflict(obj, q)
		}
	}
	if b := live.binding; b != nil {
		r := b.Spec.Resource
		// Of another version it is the same object.
		if schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind() != q.Workload.GVK.GroupKind() || r.Name != q.Workload.Name {
			return &backends.Error{
				Code: backends.CodeNameConflict, Field: "spec.template.metadata.name", Value: q.Workload.Name,
				Message: fmt.Sprintf("Karmada keeps %s %s %s under the same binding %s, whose name has no API group",
					r.APIVersion, r.Kind, r.Name, b.Name),
				Remedy: "give this workload another name, or delete the other one first",
			}
		}
	}
	return checkClaim(q, live)
}

// checkClaim finds a policy of somebody else that has claimed the template: Karmada then ignores ours for ever
// (pkg/detector/policy.go, propagateResource).
func checkClaim(q backends.Query, live currentState) error {
	if live.template == nil {
		return nil
	}
	claim := claimOf(q, live.template)
	if claim == "" {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "spec.template.metadata.name", Value: q.Workload.Name,
		Message: claim + " has claimed this workload on the Karmada control plane, and decides where it runs",
		Remedy:  "make that policy select other workloads only; the operator's own policy then takes over",
	}
}

// claimOf names the policy, not ours, that has claimed the object; empty when there is none.
func claimOf(q backends.Query, obj metav1.Object) (claim string) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	ours := func(annotation string) bool {
		return annotation == scopeOf(q.Workload).claim && annotations[annotation] == policyName(q)
	}
	if name := annotations[policyv1alpha1.PropagationPolicyNameAnnotation]; name != "" &&
		labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" && !ours(policyv1alpha1.PropagationPolicyNameAnnotation) {
		claim = "PropagationPolicy " + annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation] + "/" + name
	}
	if name := annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]; name != "" &&
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" && !ours(policyv1alpha1.ClusterPropagationPolicyAnnotation) {
		claim = "ClusterPropagationPolicy " + name
	}
	return claim
}

func nameConflict(obj *unstructured.Unstructured, q backends.Query) error {
	whose := "an object that the operator did not create"
	if owner := obj.GetAnnotations()[v1alpha1.AnnotationOwner]; owner != "" {
		whose = "an object of FleetWorkload " + owner
	}
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "spec.template.metadata.name", Value: q.Workload.Name,
		Message: fmt.Sprintf("%s %s/%s on the Karmada control plane is %s", obj.GetKind(), obj.GetNamespace(), obj.GetName(), whose),
		Remedy:  cmp.Or(q.Key.EarlierLife(obj.GetAnnotations()), "choose another name, or delete that object"),
	}
}

func compareWorks(a, b work) int {
	return cmp.Or(strings.Compare(a.cluster, b.cluster), strings.Compare(a.Name, b.Name))
}
