package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

// daemonFields are a DaemonSet's. updated is how the kind has the number of updated pods.
func daemonFields(updated Field, more ...Field) []Field {
	return append([]Field{
		observedGeneration(), told("desiredNumberScheduled"), told("currentNumberScheduled"), updated,
		told("numberReady"), counter("numberAvailable"), counter("numberUnavailable"), told("numberMisscheduled"),
	}, more...)
}

func daemonCounts() Counts {
	return Counts{
		Desired: "desiredNumberScheduled", Replicas: "currentNumberScheduled", Ready: "numberReady",
		Updated: "updatedNumberScheduled", Available: "numberAvailable",
		Done: "min(updatedNumberScheduled, expected)", Total: "expected",
	}
}

// daemonRules follow kubectl rollout status. A kind's variables: wanted (pods that are to be there), expected (updated
// ones), onDelete. staged are the rules of a kind that can be paused and has a partition, with paused, and selected (only
// some nodes are updated, and which is not told).
func daemonRules(staged bool) []Rule {
	rules := incomplete("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
	var held []Rule
	if staged {
		rules = append(rules, append(incomplete("updatedNumberScheduled"), Rule{When: "paused && updatedNumberScheduled < expected", Health: v1alpha1.HealthSuspended, Reason: ReasonPaused,
			Message: "paused with {updatedNumberScheduled} of {expected} updated"})...)
		held = []Rule{
			{When: "selected && updatedNumberScheduled < desiredNumberScheduled", Health: v1alpha1.HealthHealthy, Reason: ReasonSelectedOnly,
				Message: "only selected nodes are updated: {updatedNumberScheduled} of {desiredNumberScheduled} updated"},
			{When: "updatedNumberScheduled < desiredNumberScheduled", Health: v1alpha1.HealthHealthy, Reason: ReasonPartitionReached,
				Message: "update held at its partition: {updatedNumberScheduled} of {desiredNumberScheduled} updated as asked"},
		}
	}
	rules = append(rules,
		Rule{When: "updatedNumberScheduled < expected", Health: v1alpha1.HealthProgressing, Reason: ReasonUpdating,
			Message: "{updatedNumberScheduled} of {expected} updated"},
		Rule{When: "currentNumberScheduled < wanted", Health: v1alpha1.HealthProgressing, Reason: ReasonCreating,
			Message: "{currentNumberScheduled} of {wanted} created"},
		Rule{When: "numberAvailable < max(wanted, currentNumberScheduled)", Health: v1alpha1.HealthProgressing, Reason: ReasonUnavailable,
			Message: "{numberAvailable} of {wanted} available"},
		Rule{When: "numberReady < numberAvailable || currentNumberScheduled < numberReady || currentNumberScheduled < updatedNumberScheduled || " +
			"desiredNumberScheduled < currentNumberScheduled",
			Health: v1alpha1.HealthUnknown, Reason: ReasonContradictory,
			Message: "the numbers contradict each other: {currentNumberScheduled} of {desiredNumberScheduled} pods, " +
				"{updatedNumberScheduled} updated, {numberReady} ready, {numberAvailable} available"},
		Rule{When: "desiredNumberScheduled == 0", Health: v1alpha1.HealthHealthy, Reason: ReasonNothingToRun, Message: "no node matches"},
		Rule{When: "onDelete && updatedNumberScheduled < desiredNumberScheduled", Health: v1alpha1.HealthHealthy, Reason: ReasonOnDelete,
			Message: "pods are updated as they are deleted: {updatedNumberScheduled} of {desiredNumberScheduled} updated"},
	)
	return append(append(rules, held...), Rule{Health: v1alpha1.HealthHealthy, Reason: ReasonComplete})
}

// daemonSet is apps/v1 DaemonSet (k8s.io/api/apps/v1).
func daemonSet() Definition {
	return Definition{
		Group: "apps", Version: "v1", Kind: "DaemonSet", Resource: "daemonsets", GenerationTells: true,
		PodTemplates: []string{"spec.template"}, Selector: "spec.selector",
		Status: daemonFields(counter("updatedNumberScheduled")),
		Spec:   []Input{{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString}},
		Lets: []Let{
			{Name: "onDelete", Type: TypeBool, Expr: `strategy == "OnDelete"`},
			{Name: "wanted", Type: TypeInt, Expr: "desiredNumberScheduled"},
			{Name: "expected", Type: TypeInt, Expr: "when(onDelete, 0, desiredNumberScheduled)"},
		},
		Rules:  daemonRules(false),
		Counts: daemonCounts(),
	}
}

// advancedDaemonSet is OpenKruise's DaemonSet (kruise-api apps/v1alpha1; v1beta1 since OpenKruise 1.9, which renames
// the hash). Its partition is how many pods stay old of those that are wanted; 1.9 takes percentages too, rounded down.
// A DaemonSet that is created progressively gets no more pods than its partition lets it (daemonset_util.go,
// GetNodesNeedingPods). A selector of nodes in the update strategy leaves the number of pods to update untold.
func advancedDaemonSet(version, hash, progressive string, progressiveType Type) Definition {
	const update = "spec.updateStrategy.rollingUpdate."
	isProgressive := "progressive"
	if progressiveType == TypeString {
		isProgressive = `progressive == "true"`
	}
	return Definition{
		Group: kruiseGroup, Version: version, Kind: "DaemonSet", Resource: "daemonsets", GenerationTells: true,
		PodTemplates: []string{"spec.template"}, InPlace: []InPlace{{Path: update + "rollingUpdateType", Instead: "Standard"}}, Selector: "spec.selector",
		Status: daemonFields(told("updatedNumberScheduled"), Field{Name: hash, Type: TypeString, Combine: Equal, Required: version == "v1alpha1"}),
		Spec: []Input{
			{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString},
			{Name: "partition", At: update + "partition", Type: TypePartition},
			{Name: "paused", At: update + "paused", Type: TypeBool},
			{Name: "selectors", At: update + "selector", Type: TypeObject},
			{Name: "progressive", At: progressive, Type: progressiveType},
		},
		Lets: []Let{
			{Name: "selected", Type: TypeBool, Expr: "has(selectors)"},
			{Name: "onDelete", Type: TypeBool, Expr: `strategy == "OnDelete"`},
			{Name: "kept", Type: TypeInt, Expr: "keptDown(partition, desiredNumberScheduled)"},
			{Name: "wanted", Type: TypeInt, Expr: "when(" + isProgressive + ", desiredNumberScheduled - kept, desiredNumberScheduled)"},
			{Name: "expected", Type: TypeInt, Expr: "when(onDelete || selected, 0, desiredNumberScheduled - kept)"},
		},
		Rules:     daemonRules(true),
		Counts:    daemonCounts(),
		Partition: &Partition{Path: update + "partition", Meaning: PartitionKept, Percent: version != "v1alpha1", Down: true},
	}
}
