package karmada

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	policyField   = "spec.backendOptions.karmada.propagationPolicy"
	overrideField = "spec.backendOptions.karmada.overridePolicy"
)

// reserved are the parts of the PropagationPolicy's spec that the driver stands on, with what to use instead.
var reserved = []struct{ path, remedy string }{
	{"resourceSelectors", "ship further objects as spec.companions or as FleetWorkloads of their own"},
	{"placement.clusterAffinity", "use spec.placement.clusters"},
	{"placement.clusterAffinities", "use spec.placement.groups"},
	{"placement.replicaScheduling", "use spec.placement.division"},
	{"placement.spreadConstraints", "use spec.placement.spread"},
	{"suspension", "use spec.suspend"},
	{"conflictResolution", "use spec.conflictPolicy"},
	{"preserveResourcesOnDeletion", "use spec.deletionPolicy"},
	// Lazy would leave a change of the policy, such as the gate's, waiting for one of the template.
	{"activationPreference", "leave it out: changes are held back and released by the operator"},
}

// mergePolicyOptions merges backendOptions over the rendered spec of the PropagationPolicy (RFC 7386).
func mergePolicyOptions(spec map[string]any, options *v1alpha1.BackendOptions) (map[string]any, error) {
	if options == nil || options.Karmada == nil {
		return spec, nil
	}
	patch, err := decodeOptions(policyField, options.Karmada.PropagationPolicy)
	if err != nil || patch == nil {
		return spec, err
	}
	for _, r := range reserved {
		if hasPath(patch, strings.Split(r.path, ".")) {
			return nil, &backends.Error{
				Code: backends.CodeInvalidOptions, Field: policyField + "." + r.path,
				Message: "is set by the operator and cannot be changed here", Remedy: r.remedy,
			}
		}
	}
	return merge(policyField, spec, options.Karmada.PropagationPolicy.Raw, &policyv1alpha1.PropagationSpec{})
}

// overrideOptions returns the override rules of backendOptions, and the rest of that spec. The rules are appended to
// the rendered ones, since a merge patch could only replace the list.
func overrideOptions(options *v1alpha1.BackendOptions) (rules []any, rest map[string]any, err error) {
	if options == nil || options.Karmada == nil {
		return nil, map[string]any{}, nil
	}
	patch, err := decodeOptions(overrideField, options.Karmada.OverridePolicy)
	if err != nil || patch == nil {
		return nil, map[string]any{}, err
	}
	for _, field := range []string{"resourceSelectors", "targetCluster", "overriders"} {
		if _, found := patch[field]; found {
			return nil, nil, &backends.Error{
				Code: backends.CodeInvalidOptions, Field: overrideField + "." + field,
				Message: "cannot be set here", Remedy: "use overrideRules, which apply to this workload only",
			}
		}
	}
	merged, err := merge(overrideField, map[string]any{}, options.Karmada.OverridePolicy.Raw, &policyv1alpha1.OverrideSpec{})
	if err != nil {
		return nil, nil, err
	}
	rules, _ = merged["overrideRules"].([]any)
	delete(merged, "overrideRules")
	return rules, merged, nil
}

func decodeOptions(field string, raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var patch map[string]any
	if err := json.Unmarshal(raw.Raw, &patch); err != nil {
		return nil, &backends.Error{
			Code: backends.CodeInvalidOptions, Field: field,
			Message: "is not an object", Remedy: "write a partial spec of Karmada's object here", Err: err,
		}
	}
	return patch, nil
}

// merge applies the patch and checks that Karmada's type takes the result.
func merge(field string, spec map[string]any, patch []byte, typed any) (map[string]any, error) {
	invalid := func(err error) error {
		return &backends.Error{
			Code: backends.CodeInvalidOptions, Field: field,
			Message: "cannot be merged into the rendered spec", Remedy: "correct the field that the cause names", Err: err,
		}
	}
	original, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode rendered spec: %w", err)
	}
	merged, err := jsonpatch.MergePatch(original, patch)
	if err != nil {
		return nil, invalid(err)
	}
	decoder := stdjson.NewDecoder(bytes.NewReader(merged))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(typed); err != nil {
		return nil, invalid(err)
	}
	var out map[string]any
	if err := json.Unmarshal(merged, &out); err != nil {
		return nil, invalid(err)
	}
	return out, nil
}

func hasPath(obj map[string]any, path []string) bool {
	value, found := obj[path[0]]
	if !found || len(path) == 1 {
		return found
	}
	child, ok := value.(map[string]any)
	// Anything but an object in the middle of the path would replace what is below.
	return !ok || hasPath(child, path[1:])
}
