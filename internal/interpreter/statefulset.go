package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

// statefulSet is apps/v1 StatefulSet (k8s.io/api/apps/v1). Its partition is an ordinal: pods from there on are updated
// (k8s.io/kubernetes pkg/controller/statefulset/stateful_set_utils.go, getStartOrdinal and isCurrentRevisionNeeded).
// A report without availableReplicas is from an API server before 1.22, where ready pods were available ones, or a part of a
// status; with minReadySeconds it can only be the latter.
func statefulSet() Definition {
	return Definition{
		Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", GenerationTells: true,
		Replicas: "spec.replicas", PodTemplates: []string{"spec.template"}, Selector: "spec.selector",
		Status: append(append(
			[]Field{observedGeneration(), told("replicas")}, fields(counter, "readyReplicas", "updatedReplicas", "currentReplicas")...),
			told("availableReplicas"), stringField("currentRevision", Equal), stringField("updateRevision", Equal)),
		Spec: []Input{
			desiredInput(),
			{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString},
			{Name: "ordinal", At: "spec.updateStrategy.rollingUpdate.partition", Type: TypeInt, Default: ptr(int64(0))},
			{Name: "start", At: "spec.ordinals.start", Type: TypeInt, Default: ptr(int64(0))},
			{Name: "minReadySeconds", At: "spec.minReadySeconds", Type: TypeInt, Default: ptr(int64(0))},
		},
		Lets: append(replicatedLets(`strategy == "OnDelete"`, "min(max(ordinal - start, 0), desired)"),
			Let{Name: "available", Type: TypeInt, Expr: "when(has(availableReplicas), availableReplicas, readyReplicas)"}),
		Rules: rollout{
			available: "available", staged: true,
			first: append(incomplete("replicas"), Rule{When: "!has(availableReplicas) && minReadySeconds > 0",
				Health: v1alpha1.HealthUnknown, Reason: ReasonIncomplete, Message: "the report lacks availableReplicas"}),
		}.rules(),
		Counts: replicaCounts("available"),
		Partition: &Partition{
			Path: "spec.updateStrategy.rollingUpdate.partition", Meaning: PartitionOrdinal, Start: "spec.ordinals.start",
		},
	}
}
