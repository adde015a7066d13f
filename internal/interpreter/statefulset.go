package interpreter

// statefulSet is apps/v1 StatefulSet (k8s.io/api/apps/v1). Its partition is an ordinal: pods from there on are updated
// (k8s.io/kubernetes pkg/controller/statefulset/stateful_set_utils.go, getStartOrdinal and isCurrentRevisionNeeded).
func statefulSet() Definition {
	return Definition{
		Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets",
		Replicas: "spec.replicas", PodTemplates: []string{"spec.template"}, Selector: "spec.selector",
		Status: replicaFields(counter("currentReplicas"), word("currentRevision", Equal), word("updateRevision", Equal)),
		Spec: []Input{
			desiredInput(),
			{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString},
			{Name: "ordinal", At: "spec.updateStrategy.rollingUpdate.partition", Type: TypeInt},
			{Name: "start", At: "spec.ordinals.start", Type: TypeInt},
		},
		Lets:   replicatedLets(`strategy == "OnDelete"`, "min(max(ordinal - start, 0), desired)"),
		Rules:  rolloutRules("", true),
		Counts: replicaCounts(),
		Partition: &Partition{
			Path: "spec.updateStrategy.rollingUpdate.partition", Meaning: PartitionOrdinal, Start: "spec.ordinals.start",
		},
	}
}
