package karmada

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/backends"
)

// scope is what Karmada calls its objects and marks, which differ for templates with a namespace and without.
type scope struct {
	policy, override, binding schema.GroupVersionKind
	// bindingID is the label by which Karmada finds the Works of a binding.
	bindingID string
	// claim is the annotation with the name of the policy that has claimed a template or a binding.
	claim string
	// appliedOverrides is an annotation on Works: the rules of our policy's kind that they were rendered with
	// (util.AppliedOverrides, util.AppliedClusterOverrides).
	appliedOverrides string
}

func scopeOf(w backends.Workload) scope {
	if w.Namespace == "" {
		return scope{
			policy:           policyv1alpha1.SchemeGroupVersion.WithKind(policyv1alpha1.ResourceKindClusterPropagationPolicy),
			override:         policyv1alpha1.SchemeGroupVersion.WithKind(policyv1alpha1.ResourceKindClusterOverridePolicy),
			binding:          workv1alpha2.SchemeGroupVersion.WithKind(workv1alpha2.ResourceKindClusterResourceBinding),
			bindingID:        workv1alpha2.ClusterResourceBindingPermanentIDLabel,
			claim:            policyv1alpha1.ClusterPropagationPolicyAnnotation,
			appliedOverrides: "policy.karmada.io/applied-cluster-overrides",
		}
	}
	return scope{
		policy:           policyv1alpha1.SchemeGroupVersion.WithKind(policyv1alpha1.ResourceKindPropagationPolicy),
		override:         policyv1alpha1.SchemeGroupVersion.WithKind(policyv1alpha1.ResourceKindOverridePolicy),
		binding:          workv1alpha2.SchemeGroupVersion.WithKind(workv1alpha2.ResourceKindResourceBinding),
		bindingID:        workv1alpha2.ResourceBindingPermanentIDLabel,
		claim:            policyv1alpha1.PropagationPolicyNameAnnotation,
		appliedOverrides: "policy.karmada.io/applied-overrides",
	}
}

// scopes are both, for what is watched.
func scopes() []scope {
	return []scope{scopeOf(backends.Workload{Namespace: "any"}), scopeOf(backends.Workload{})}
}
