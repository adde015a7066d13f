package ocm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// renderPlacement renders the Placement that chooses clusters for the query.
func renderPlacement(query backends.Query, opts Options) (*unstructured.Unstructured, error) {
	if err := refusePlacement(query.Placement); err != nil {
		return nil, err
	}
	predicates, err := renderPredicates(query.Placement.Clusters, opts)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{
		"predicates": predicates,
		// The default adds Balance, by whose score other workloads' Placements move this one's clusters when
		// numberOfClusters is smaller than the number of candidates (ocm pkg/placement/plugins/balance).
		"prioritizerPolicy": map[string]any{
			"mode": string(clusterv1beta1.PrioritizerPolicyModeExact),
			"configurations": []any{map[string]any{
				"scoreCoordinate": map[string]any{"type": clusterv1beta1.ScoreCoordinateTypeBuiltIn, "builtIn": "Steady"},
				"weight":          int64(10),
			}},
		},
		"tolerations": renderTolerations(query.Placement.Tolerations),
	}
	if len(opts.ClusterSets) > 0 {
		spec["clusterSets"] = stringsToAny(slices.Sorted(slices.Values(opts.ClusterSets)))
	}
	if n := query.Placement.NumberOfClusters; n != nil {
		spec["numberOfClusters"] = int64(*n)
	}
	if query.Options != nil && query.Options.OCM != nil && query.Options.OCM.Placement != nil {
		if spec, err = mergePlacement(spec, query.Options.OCM.Placement); err != nil {
			return nil, err
		}
	}
	obj := newOwnedObject(placementGVK, query.Key, query.Key.Namespace, placementName(query.Key, spec))
	obj.Object["spec"] = spec
	return obj, nil
}

// refusePlacement refuses what OCM has no engine for.
func refusePlacement(p v1alpha1.Placement) error {
	switch {
	case len(p.Groups) > 0:
		return &backends.Error{
			Code: backends.CodeUnsupported, Field: "spec.placement.groups",
			Message: "Open Cluster Management has no ordered fallback groups",
			Remedy:  "choose the clusters with spec.placement.clusters, or use a Karmada backend",
		}
	case len(p.Spread) > 0:
		return &backends.Error{
			Code: backends.CodeUnsupported, Field: "spec.placement.spread",
			Message: "Open Cluster Management's placement controller has no spread constraints",
			Remedy:  "use spec.placement.numberOfClusters, or a Karmada backend",
		}
	case p.Failover != nil:
		return &backends.Error{
			Code: backends.CodeUnsupported, Field: "spec.placement.failover",
			Message: "lost clusters are never replaced on Open Cluster Management, since their agents would remove the" +
				" workload when they come back",
			Remedy: "leave failover out, or use a Karmada backend",
		}
	}
	for i, t := range p.Tolerations {
		// OCM would call the whole Placement misconfigured and empty its decisions.
		if (t.Key == "" || t.Operator == string(clusterv1beta1.TolerationOpExists)) && (t.Value != "" ||
			t.Operator != string(clusterv1beta1.TolerationOpExists)) {
			return &backends.Error{
				Code: backends.CodeRejected, Field: fmt.Sprintf("spec.placement.tolerations[%d]", i), Value: t.Key,
				Message: "a toleration without a key needs operator Exists, and one with operator Exists has no value",
				Remedy:  "set operator Exists and no value, or a key",
			}
		}
	}
	return nil
}

// renderPredicates makes the one predicate of a Placement. It means the same as backends.Matcher, on the clusters that
// Clusters reports.
func renderPredicates(selector *v1alpha1.ClusterSelector, opts Options) ([]any, error) {
	if _, err := backends.NewMatcher(selector); err != nil {
		return nil, &backends.Error{
			Code: backends.CodeRejected, Field: "spec.placement.clusters.selector", Message: "the selector is not valid",
			Remedy: "correct the selector", Err: err,
		}
	}
	required := map[string]any{
		"celSelector": map[string]any{"celExpressions": stringsToAny(celExpressions(selector, opts))},
	}
	if selector != nil && selector.Selector != nil {
		labels, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector.Selector)
		if err != nil {
			return nil, fmt.Errorf("render label selector: %w", err)
		}
		if len(labels) > 0 {
			required["labelSelector"] = labels
		}
	}
	return []any{map[string]any{"requiredClusterSelector": required}}, nil
}

// celExpressions are evaluated over the variable managedCluster, the whole object, and must all hold
// (ocm pkg/placement/helpers/cel.go). An expression that fails is the same as one that is false, so nothing may be
// selected that can be absent.
func celExpressions(selector *v1alpha1.ClusterSelector, opts Options) []string {
	// A cluster that is not accepted has no agent that could do anything; Clusters leaves it out as well.
	expressions := []string{"managedCluster.spec.hubAcceptsClient"}
	if selector == nil {
		return expressions
	}
	if len(selector.Names) > 0 {
		expressions = append(expressions, "managedCluster.metadata.name in "+celList(selector.Names))
	}
	if len(selector.Exclude) > 0 {
		expressions = append(expressions, "!(managedCluster.metadata.name in "+celList(selector.Exclude)+")")
	}
	for _, req := range selector.Attributes {
		expression := celAttribute(opts.Attributes[req.Key]) + " in " + celList(req.Values)
		if req.Operator != v1alpha1.AttributeOperatorIn {
			expression = "!(" + expression + ")"
		}
		expressions = append(expressions, expression)
	}
	return expressions
}

// celAttribute is an expression for an attribute's value, the empty string when the cluster has none: the first
// non-empty one of the claim and the label, as in attributesOf.
func celAttribute(source AttributeSource) string {
	var parts []string
	if source.Claim != "" {
		parts = append(parts, fmt.Sprintf("(has(managedCluster.status) && has(managedCluster.status.clusterClaims) ? "+
			"managedCluster.status.clusterClaims.filter(c, has(c.name) && c.name == %s && has(c.value) && c.value != \"\")"+
			".map(c, c.value) : [])", celString(source.Claim)))
	}
	if source.Label != "" {
		parts = append(parts, fmt.Sprintf("(has(managedCluster.metadata.labels) && %[1]s in managedCluster.metadata.labels"+
			" ? [managedCluster.metadata.labels[%[1]s]] : [])", celString(source.Label)))
	}
	return "(" + strings.Join(append(parts, `[""]`), " + ") + ")[0]"
}

func celList(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		quoted = append(quoted, celString(value))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// celString quotes a string. Go's escapes are a subset of CEL's, and mean the same for valid UTF-8.
func celString(s string) string { return strconv.QuoteToASCII(s) }

// renderTolerations always tolerates the taints that a lost cluster gets: without that, five minutes without a
// heartbeat take the cluster out of the decisions, its ManifestWork is removed, and the agent tears a healthy workload
// down when it comes back (ocm pkg/registration/hub/taint).
func renderTolerations(tolerations []v1alpha1.ClusterToleration) []any {
	rendered := requiredTolerations()
	for _, t := range tolerations {
		toleration := map[string]any{"operator": string(clusterv1beta1.TolerationOpEqual)}
		if t.Key != "" {
			toleration["key"] = t.Key
		}
		if t.Operator != "" {
			toleration["operator"] = t.Operator
		}
		if t.Value != "" {
			toleration["value"] = t.Value
		}
		rendered = append(rendered, toleration)
	}
	return rendered
}

func requiredTolerations() []any {
	return []any{
		map[string]any{"key": clusterv1.ManagedClusterTaintUnreachable, "operator": string(clusterv1beta1.TolerationOpExists)},
		map[string]any{"key": clusterv1.ManagedClusterTaintUnavailable, "operator": string(clusterv1beta1.TolerationOpExists)},
	}
}

// mergePlacement merges spec.backendOptions.ocm.placement over the rendered spec.
func mergePlacement(spec map[string]any, option *runtime.RawExtension) (map[string]any, error) {
	const field = "spec.backendOptions.ocm.placement"
	patch, err := decodeOption(field, option)
	if err != nil {
		return nil, err
	}
	for key, why := range map[string]string{
		"predicates":   "clusters are chosen by spec.placement",
		"spreadPolicy": "Open Cluster Management's placement controller does not implement it",
	} {
		if _, set := patch[key]; set {
			return nil, invalidOption(field+"."+key, "it cannot be set: "+why, nil)
		}
	}
	merged, err := mergeJSON(field, spec, patch)
	if err != nil {
		return nil, err
	}
	if err := decodeStrictly(field, merged, &clusterv1beta1.PlacementSpec{}); err != nil {
		return nil, err
	}
	// A merge patch replaces lists, and these two must stay.
	tolerations, _ := merged["tolerations"].([]any)
	for _, required := range requiredTolerations() {
		if !slices.ContainsFunc(tolerations, func(have any) bool { return hashOf(have) == hashOf(required) }) {
			tolerations = append(tolerations, required)
		}
	}
	merged["tolerations"] = tolerations
	return merged, nil
}

func decodeOption(field string, option *runtime.RawExtension) (map[string]any, error) {
	var patch map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(option.Raw, &patch); err != nil {
		return nil, invalidOption(field, "it is not a JSON object", err)
	}
	return patch, nil
}

// mergeJSON applies a JSON merge patch (RFC 7386).
func mergeJSON(field string, base, patch map[string]any) (map[string]any, error) {
	baseJSON, err := json.Marshal(base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	patchJSON, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	mergedJSON, err := jsonpatch.MergePatch(baseJSON, patchJSON)
	if err != nil {
		return nil, invalidOption(field, "it cannot be merged", err)
	}
	merged := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(mergedJSON, &merged); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return merged, nil
}

// decodeStrictly fails when obj has fields that the type lacks, or values of other types.
func decodeStrictly(field string, obj map[string]any, into any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return invalidOption(field, "it does not fit the backend's type", err)
	}
	if len(strict) > 0 {
		return invalidOption(field, "it does not fit the backend's type", strict[0])
	}
	return nil
}

func invalidOption(field, message string, err error) error {
	return &backends.Error{
		Code: backends.CodeInvalidOptions, Field: field, Message: message,
		Remedy: "correct the option; its fields are those of Open Cluster Management's own object", Err: err,
	}
}

func stringsToAny(values []string) []any {
	list := make([]any, 0, len(values))
	for _, value := range values {
		list = append(list, value)
	}
	return list
}
