package karmada

import (
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/internal/options"
)

// policyOption is how urgent the workload is for Karmada's scheduler. The rest of the policy decides where the workload goes, when, and whose
// it is; with a lower priority, another policy could dispatch it past the gate.
func policyOption() options.Option {
	return options.Option{
		Field: "spec.backendOptions.karmada.propagationPolicy", Allowed: []string{"schedulePriority"},
		Instead: map[string]string{
			"resourceSelectors":           "ship further objects as spec.companions or as FleetWorkloads of their own",
			"propagateDeps":               "use spec.dependencies",
			"placement":                   "use spec.placement",
			"suspension":                  "use spec.suspend",
			"conflictResolution":          "use spec.conflictPolicy",
			"preserveResourcesOnDeletion": "use spec.deletionPolicy",
			"failover":                    "use spec.placement.failover",
		},
	}
}

// mergePolicyOptions merges backendOptions over the rendered spec of the PropagationPolicy.
func mergePolicyOptions(spec map[string]any, o *v1alpha1.BackendOptions) (map[string]any, error) {
	if o == nil || o.Karmada == nil {
		return spec, nil
	}
	option := policyOption()
	patch, err := option.Decode(o.Karmada.PropagationPolicy)
	if err != nil || patch == nil {
		return spec, err
	}
	return option.Merge(spec, patch, &policyv1alpha1.PropagationSpec{})
}
