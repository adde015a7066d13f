package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

func ptr[T any](v T) *T { return &v }

// counter is a number of pods that the API type omits when it is 0: a sum over clusters.
func counter(name string) Field { return Field{Name: name, Type: TypeInt, Combine: Sum} }

// told is a number of pods that the API type never omits. Rules that rest on it come after incomplete.
func told(name string) Field {
	return Field{Name: name, Type: TypeInt, Combine: Sum, Absent: Unreported, Required: true}
}

// hint is a counter that is not always there when it is 0, or that Karmada's own interpreters leave out: absence says
// nothing. No rule rests on it.
func hint(name string) Field {
	return Field{Name: name, Type: TypeInt, Combine: Sum, Absent: Unreported}
}

// fields makes several fields of one sort.
func fields(sort func(string) Field, names ...string) []Field {
	list := make([]Field, 0, len(names))
	for _, name := range names {
		list = append(list, sort(name))
	}
	return list
}

func stringField(name string, combine Combine) Field {
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

// kruiseReplicas are the counters that CloneSet and Advanced StatefulSet share. Their API types omit none of them.
func kruiseReplicas(more ...Field) []Field {
	list := append([]Field{observedGeneration()}, fields(told, "replicas", "readyReplicas", "updatedReplicas", "availableReplicas")...)
	return append(list, more...)
}

func replicaCounts(available string) Counts {
	return Counts{
		Desired: nameDesired, Replicas: "replicas", Ready: "readyReplicas", Updated: "updatedReplicas",
		Available: available, Done: "min(updatedReplicas, expected)", Total: "expected",
	}
}

// incomplete are rules for reports that lack a number which their kind's status always has: what they are a part of is not
// known.
func incomplete(names ...string) []Rule {
	rules := make([]Rule, 0, len(names))
	for _, name := range names {
		rules = append(rules, Rule{When: "!has(" + name + ")", Health: v1alpha1.HealthUnknown, Reason: ReasonIncomplete,
			Message: "the report lacks " + name})
	}
	return rules
}

// rollout are the rules of a kind with replicas.
type rollout struct {
	// pausedWhen says when a pause is what the update waits for; empty for kinds that cannot be paused.
	pausedWhen string
	// available is the variable with the number of available pods.
	available string
	// staged is true for kinds with a partition and OnDelete, which have the variable onDelete.
	staged bool
	// first are rules that come before those about numbers, last those that come before the good ones.
	first, last []Rule
}

// rules follow kubectl rollout status (k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go), and count
// updated pods against the partition as OpenKruise 1.9 does (pkg/controller/cloneset/utils, CloneSetPartitionAvailable).
// updatedAvailableReplicas is not asked: where all wanted pods are there and available, the updated ones are.
//
// A kind's variables: desired, expected (updated pods that the spec asks for), surplus.
func (r rollout) rules() []Rule {
	rules := r.first
	if r.pausedWhen != "" {
		rules = append(rules, Rule{When: r.pausedWhen, Health: v1alpha1.HealthSuspended, Reason: ReasonPaused,
			Message: "paused with {updatedReplicas} of {expected} updated"})
	}
	rules = append(rules,
		Rule{When: "updatedReplicas < expected", Health: v1alpha1.HealthProgressing, Reason: ReasonUpdating,
			Message: "{updatedReplicas} of {expected} updated"},
		Rule{When: "replicas < desired", Health: v1alpha1.HealthProgressing, Reason: ReasonCreating,
			Message: "{replicas} of {desired} created"},
		Rule{When: "replicas > desired", Health: v1alpha1.HealthProgressing, Reason: ReasonScalingDown,
			Message: "{surplus} more than {desired} wanted"},
		Rule{When: r.available + " < desired", Health: v1alpha1.HealthProgressing, Reason: ReasonUnavailable,
			Message: "{" + r.available + "} of {desired} available"},
		Rule{When: "readyReplicas < " + r.available + " || replicas < readyReplicas || replicas < updatedReplicas",
			Health: v1alpha1.HealthUnknown, Reason: ReasonContradictory,
			Message: "the numbers contradict each other: {replicas} pods, {updatedReplicas} updated, {readyReplicas} ready, {" +
				r.available + "} available"},
	)
	rules = append(rules, r.last...)
	if r.staged {
		rules = append(rules,
			Rule{When: "onDelete && updatedReplicas < desired", Health: v1alpha1.HealthHealthy, Reason: ReasonOnDelete,
				Message: "pods are updated as they are deleted: {updatedReplicas} of {desired} updated"},
			Rule{When: "updatedReplicas < desired", Health: v1alpha1.HealthHealthy, Reason: ReasonPartitionReached,
				Message: "update held at its partition: {updatedReplicas} of {desired} updated as asked"},
		)
	}
	return append(rules, Rule{Health: v1alpha1.HealthHealthy, Reason: ReasonComplete})
}

// kruiseRollout are the rules of CloneSet and Advanced StatefulSet. A paused one still scales, so a pause counts only once
// all pods are there.
func kruiseRollout(first ...Rule) []Rule {
	return rollout{
		pausedWhen: "paused && updatedReplicas < expected && replicas >= desired", available: "availableReplicas", staged: true,
		first: append(first, incomplete("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")...),
	}.rules()
}

// replicatedLets are the variables that rollout needs. kept is how many pods the spec keeps old.
func replicatedLets(onDelete, kept string) []Let {
	return []Let{
		{Name: "onDelete", Type: TypeBool, Expr: onDelete},
		{Name: "expected", Type: TypeInt, Expr: "when(onDelete, 0, desired - " + kept + ")"},
		{Name: "surplus", Type: TypeInt, Expr: "replicas - desired"},
	}
}

// progressFailed are the ways in which a Deployment says that it is stuck, and a CloneSet of OpenKruise 1.9
// (k8s.io/kubernetes pkg/controller/deployment/progress.go; openkruise v1.9.0 cloneset_status.go). The reason alone
// decides, as for kubectl rollout status and kstatus.
func progressFailed(updated string) Rule {
	return Rule{When: `reasonProgressing == "ProgressDeadlineExceeded"`,
		Health: v1alpha1.HealthDegraded, Reason: ReasonDeadlineExceeded,
		Message: "no progress within its deadline, {" + updated + "} of {expected} updated"}
}
