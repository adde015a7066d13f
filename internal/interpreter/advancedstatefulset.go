package interpreter

// kruiseGroup is the API group of OpenKruise's workloads.
const kruiseGroup = "apps.kruise.io"

// advancedStatefulSet is OpenKruise's StatefulSet (kruise-api apps/v1beta1, and apps/v1alpha1 as it is still served).
// Since OpenKruise 1.8 its partition is how many pods stay old (stateful_update_utils.go); before, it was an ordinal,
// which is the same number unless ordinals are reserved or start elsewhere.
func advancedStatefulSet(version string) Definition {
	const update = "spec.updateStrategy.rollingUpdate."
	status := kruiseReplicas(
		told("currentReplicas"),
		stringField("currentRevision", Equal), stringField("updateRevision", Equal),
	)
	if version != "v1alpha1" {
		status = append(status, counter("updatedReadyReplicas"), hint("updatedAvailableReplicas"))
	}
	return Definition{
		Group: kruiseGroup, Version: version, Kind: "StatefulSet", Resource: "statefulsets", GenerationTells: true,
		Replicas: "spec.replicas", PodTemplates: []string{"spec.template"}, InPlace: []InPlace{statefulSetInPlace("spec")}, Selector: "spec.selector",
		Status: status,
		Spec: []Input{
			desiredInput(),
			{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString},
			{Name: "partition", At: update + "partition", Type: TypePartition},
			{Name: "paused", At: update + "paused", Type: TypeBool},
		},
		Lets:      replicatedLets(`strategy == "OnDelete"`, "kept(partition, desired)"),
		Rules:     kruiseRollout(),
		Counts:    replicaCounts("availableReplicas"),
		Partition: &Partition{Path: update + "partition", Meaning: PartitionKept},
	}
}

// statefulSetInPlace is the field of an Advanced StatefulSet's spec.
func statefulSetInPlace(spec string) InPlace {
	return InPlace{Path: spec + ".updateStrategy.rollingUpdate.podUpdatePolicy", Instead: "ReCreate"}
}
