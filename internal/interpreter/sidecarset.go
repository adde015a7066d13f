package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

// sidecarSet is OpenKruise's SidecarSet (kruise-api apps/v1alpha1; v1beta1 since OpenKruise 1.9), which is
// cluster-scoped. Its pods are other workloads': matched ones that are active and have the sidecar. A pod that is not
// ready need not be the sidecar's fault, so only updated pods are asked to be ready (pkg/controller/sidecarset).
func sidecarSet(version string) Definition {
	return Definition{
		Group: kruiseGroup, Version: version, Kind: "SidecarSet", Resource: "sidecarsets", ClusterScoped: true,
		Selector: "spec.selector", NoRestart: "its pods are other workloads': restart those",
		Status: []Field{
			observedGeneration(), told("matchedPods"), told("updatedPods"), told("readyPods"), counter("updatedReadyPods"),
			stringField("latestRevision", Equal),
		},
		Spec: []Input{
			{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString},
			{Name: "partition", At: "spec.updateStrategy.partition", Type: TypePartition},
			{Name: "paused", At: "spec.updateStrategy.paused", Type: TypeBool},
			{Name: "selectors", At: "spec.updateStrategy.selector", Type: TypeObject},
		},
		Lets: []Let{
			{Name: "selected", Type: TypeBool, Expr: "has(selectors)"},
			{Name: "notUpdate", Type: TypeBool, Expr: `strategy == "NotUpdate"`},
			{Name: "expected", Type: TypeInt, Expr: "when(notUpdate || selected, 0, matchedPods - kept(partition, matchedPods))"},
		},
		Rules: append(incomplete("matchedPods", "updatedPods"), []Rule{
			{When: "matchedPods < updatedPods || updatedPods < updatedReadyPods", Health: v1alpha1.HealthUnknown, Reason: ReasonContradictory,
				Message: "the numbers contradict each other: {matchedPods} pods, {updatedPods} updated, {updatedReadyPods} of them ready"},
			{When: "matchedPods == 0", Health: v1alpha1.HealthHealthy, Reason: ReasonNothingToRun, Message: "no pod has the sidecar yet"},
			{When: "paused && updatedPods < expected", Health: v1alpha1.HealthSuspended, Reason: ReasonPaused,
				Message: "paused with {updatedPods} of {expected} updated"},
			{When: "updatedPods < expected", Health: v1alpha1.HealthProgressing, Reason: ReasonUpdating,
				Message: "{updatedPods} of {expected} updated"},
			{When: "updatedReadyPods < expected", Health: v1alpha1.HealthProgressing, Reason: ReasonUnavailable,
				Message: "{updatedReadyPods} of {expected} updated pods ready"},
			{When: "selected && updatedReadyPods < updatedPods", Health: v1alpha1.HealthProgressing, Reason: ReasonUnavailable,
				Message: "{updatedReadyPods} of {updatedPods} updated pods ready"},
			{When: "notUpdate && updatedPods < matchedPods", Health: v1alpha1.HealthHealthy, Reason: ReasonOnDelete,
				Message: "pods are updated as they are created again: {updatedPods} of {matchedPods} updated"},
			{When: "selected && updatedPods < matchedPods", Health: v1alpha1.HealthHealthy, Reason: ReasonSelectedOnly,
				Message: "only selected pods are updated: {updatedPods} of {matchedPods} updated"},
			{When: "updatedPods < matchedPods", Health: v1alpha1.HealthHealthy, Reason: ReasonPartitionReached,
				Message: "update held at its partition: {updatedPods} of {matchedPods} updated as asked"},
			{Health: v1alpha1.HealthHealthy, Reason: ReasonComplete},
		}...),
		Counts: Counts{
			Desired: "matchedPods", Replicas: "matchedPods", Ready: "readyPods", Updated: "updatedPods",
			Done: "min(updatedPods, expected)", Total: "expected",
		},
		Partition:    &Partition{Path: "spec.updateStrategy.partition", Meaning: PartitionKept, Percent: true},
		Dependencies: sidecarReferences,
	}
}
