package ocm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/options"
)

// renderPlacement renders the Placement that chooses clusters for the query.
func renderPlacement(query backends.Query, opts Options) (*unstructured.Unstructured, error) {
	predicates, err := renderPredicates(query.Selectors, opts)
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
		"tolerations": []any{everyTaint()},
	}
	if len(opts.ClusterSets) > 0 {
		spec["clusterSets"] = stringsToAny(slices.Sorted(slices.Values(opts.ClusterSets)))
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

// renderPredicates makes one predicate for each selector; OCM chooses a cluster that any of them holds for. Each means the
// same as backends.Matcher, on the clusters that Clusters reports.
func renderPredicates(selectors []v1alpha1.ClusterSelector, opts Options) ([]any, error) {
	predicates := make([]any, 0, len(selectors))
	for i := range selectors {
		selector := &selectors[i]
		if _, err := backends.NewMatcher(selector); err != nil {
			return nil, &backends.Error{
				Code: backends.CodeRejected, Field: "spec.placement", Message: "has a selector that is not valid",
				Remedy: "correct the selector", Err: err,
			}
		}
		required := map[string]any{
			"celSelector": map[string]any{"celExpressions": stringsToAny(celExpressions(selector, opts))},
		}
		if selector.Selector != nil {
			labels, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector.Selector)
			if err != nil {
				return nil, fmt.Errorf("render label selector: %w", err)
			}
			if len(labels) > 0 {
				required["labelSelector"] = labels
			}
		}
		predicates = append(predicates, map[string]any{"requiredClusterSelector": required})
	}
	return predicates, nil
}

// celExpressions are evaluated over the variable managedCluster, the whole object, and must all hold
// (ocm pkg/placement/helpers/cel.go). An expression that fails is the same as one that is false, so nothing may be
// selected that can be absent.
func celExpressions(selector *v1alpha1.ClusterSelector, opts Options) []string {
	// A cluster that is not accepted has no agent that could do anything; Clusters leaves it out as well.
	expressions := []string{"managedCluster.spec.hubAcceptsClient"}
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

// everyTaint tolerates all: which taints keep the workload away is decided above the driver. Without it five minutes without
// a heartbeat would take the cluster out of the decisions, its ManifestWork would be removed, and the agent would tear a
// healthy workload down when it comes back (ocm pkg/registration/hub/taint).
func everyTaint() map[string]any {
	return map[string]any{"operator": string(clusterv1beta1.TolerationOpExists)}
}

// placementOption is how clusters are preferred, and from which of the sets that are bound in the namespace. Which are chosen is spec.placement's.
func placementOption() options.Option {
	return options.Option{
		Field: "spec.backendOptions.ocm.placement", Allowed: []string{"clusterSets", "prioritizerPolicy", "decisionStrategy"},
		Instead: map[string]string{
			"predicates":       "use spec.placement, which chooses the clusters",
			"numberOfClusters": "use spec.placement.numberOfClusters",
			"tolerations":      "use spec.placement.tolerations",
			"spreadPolicy":     "use spec.placement.spread; Open Cluster Management's placement controller does not implement it",
		},
	}
}

// mergePlacement merges spec.backendOptions.ocm.placement over the rendered spec.
func mergePlacement(spec map[string]any, raw *runtime.RawExtension) (map[string]any, error) {
	option := placementOption()
	patch, err := option.Decode(raw)
	if err != nil || patch == nil {
		return spec, err
	}
	return option.Merge(spec, patch, &clusterv1beta1.PlacementSpec{})
}

func stringsToAny(values []string) []any {
	list := make([]any, 0, len(values))
	for _, value := range values {
		list = append(list, value)
	}
	return list
}
