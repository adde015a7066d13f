package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

func ptr[T any](v T) *T { return &v }

// counter is a number of pods: a sum over clusters, and 0 when a status leaves it out.
func counter(name string) Field { return Field{Name: name, Type: TypeInt, Combine: Sum} }

// hint is a counter that is not always there when it is 0, or that Karmada's own interpreters leave out: absence says
// nothing. No rule rests on it.
func hint(name string) Field {
	return Field{Name: name, Type: TypeInt, Combine: Sum, Absent: Unreported}
}

func word(name string, combine Combine) Field {
	return Field{Name: name, Type: TypeString, Combine: combine}
}

// required is a string that the kind's CRD requires.
func required(name string, combine Combine) Field {
	return Field{Name: name, Type: TypeString, Combine: combine, Required: true}
}

// conditionField is the status of a condition: True, False or Unknown.
func conditionField(kind string, combine Combine) Field {
	return Field{Name: "condition" + kind, At: "conditions[type=" + kind + "].status", Type: TypeString, Combine: combine}
}

func conditionReason(kind string) Field {
	return Field{Name: "reason" + kind, At: "conditions[type=" + kind + "].reason", Type: TypeString, Combine: PerCluster}
}

func observedGeneration() Field { return Field{Name: fieldObservedGeneration, Type: TypeLong} }

// desiredInput is spec.replicas, which is 1 when left out.
func desiredInput() Input {
	return Input{Name: nameDesired, At: "spec.replicas", Type: TypeInt, Default: ptr(int64(1))}
}

// replicaFields are the counters that Deployment, StatefulSet, CloneSet and Advanced StatefulSet share.
func replicaFields(more ...Field) []Field {
	return append([]Field{
		observedGeneration(), counter("replicas"), counter("readyReplicas"), counter("updatedReplicas"),
		counter("availableReplicas"),
	}, more...)
}

func replicaCounts() Counts {
	return Counts{
		Desired: nameDesired, Replicas: "replicas", Ready: "readyReplicas", Updated: "updatedReplicas",
		Available: "availableReplicas", Done: "min(updatedReplicas, expected)", Total: "expected",
	}
}

// rolloutRules follow kubectl rollout status (k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go), and count
// updated pods against the partition as OpenKruise 1.9 does (pkg/controller/cloneset/utils, CloneSetPartitionAvailable).
// pausedWhen says when a pause is what the update waits for. updatedAvailableReplicas is not asked: where all wanted
// pods are there and available, the updated ones are.
//
// A kind's variables: desired, expected (updated pods that the spec asks for), surplus. staged are the rules of a kind
// with a partition and OnDelete, with onDelete.
func rolloutRules(pausedWhen string, staged bool, first ...Rule) []Rule {
	rules := first
	if pausedWhen != "" {
		rules = append(rules, Rule{When: pausedWhen, Health: v1alpha1.HealthSuspended, Reason: ReasonPaused,
			Message: "paused with {updatedReplicas} of {expected} updated"})
	}
	rules = append(rules,
		Rule{When: "updatedReplicas < expected", Health: v1alpha1.HealthProgressing, Reason: ReasonUpdating,
			Message: "{updatedReplicas} of {expected} updated"},
		Rule{When: "replicas < desired", Health: v1alpha1.HealthProgressing, Reason: ReasonCreating,
			Message: "{replicas} of {desired} created"},
		Rule{When: "replicas > desired", Health: v1alpha1.HealthProgressing, Reason: ReasonScalingDown,
			Message: "{surplus} more than {desired} wanted"},
		Rule{When: "availableReplicas < desired", Health: v1alpha1.HealthProgressing, Reason: ReasonUnavailable,
			Message: "{availableReplicas} of {desired} available"},
	)
	if staged {
		rules = append(rules,
			Rule{When: "onDelete && updatedReplicas < desired", Health: v1alpha1.HealthHealthy, Reason: ReasonOnDelete,
				Message: "pods are updated as they are deleted: {updatedReplicas} of {desired} updated"},
			Rule{When: "updatedReplicas < desired", Health: v1alpha1.HealthHealthy, Reason: ReasonPartitionReached,
				Message: "update held at its partition: {updatedReplicas} of {desired} updated as asked"},
		)
	}
	return append(rules, Rule{Health: v1alpha1.HealthHealthy, Reason: ReasonComplete})
}

// replicatedLets are the variables that rolloutRules need. kept is how many pods the spec keeps old.
func replicatedLets(onDelete, kept string) []Let {
	return []Let{
		{Name: "onDelete", Type: TypeBool, Expr: onDelete},
		{Name: "expected", Type: TypeInt, Expr: "when(onDelete, 0, desired - " + kept + ")"},
		{Name: "surplus", Type: TypeInt, Expr: "replicas - desired"},
	}
}

// progressFailed are the ways in which a Deployment says that it is stuck, and a CloneSet of OpenKruise 1.9
// (k8s.io/kubernetes pkg/controller/deployment/progress.go; openkruise v1.9.0 cloneset_status.go).
func progressFailed(updated string) Rule {
	return Rule{When: `conditionProgressing == "False" && reasonProgressing == "ProgressDeadlineExceeded"`,
		Health: v1alpha1.HealthDegraded, Reason: ReasonDeadlineExceeded,
		Message: "no progress within its deadline, {" + updated + "} of {expected} updated"}
}
