package interpreter

// cloneSet is CloneSet in v1alpha1 (kruise-api apps/v1alpha1). OpenKruise 1.9 adds a progress deadline and OnDelete in
// the same version.
func cloneSet() Definition {
	return Definition{
		Group: kruiseGroup, Version: "v1alpha1", Kind: "CloneSet", Resource: "clonesets", GenerationTells: true,
		Replicas: "spec.replicas", PodTemplates: []string{"spec.template"}, InPlace: []InPlace{cloneSetInPlace("spec")}, Selector: "spec.selector",
		Status: kruiseReplicas(
			told("updatedReadyReplicas"), hint("updatedAvailableReplicas"), counter("expectedUpdatedReplicas"),
			stringField("currentRevision", Equal), stringField("updateRevision", Equal), stringField("labelSelector", Equal),
			conditionField("Progressing", PerCluster), conditionReason("Progressing"),
		),
		Spec: []Input{
			desiredInput(),
			{Name: "partition", At: "spec.updateStrategy.partition", Type: TypePartition},
			{Name: "paused", At: "spec.updateStrategy.paused", Type: TypeBool},
			{Name: "strategy", At: "spec.updateStrategy.type", Type: TypeString},
		},
		Lets:      replicatedLets(`strategy == "OnDelete"`, "kept(partition, desired)"),
		Rules:     kruiseRollout(progressFailed("updatedReplicas")),
		Counts:    replicaCounts("availableReplicas"),
		Partition: &Partition{Path: "spec.updateStrategy.partition", Meaning: PartitionKept, Percent: true},
	}
}

// cloneSetInPlace is the field of a CloneSet's spec.
func cloneSetInPlace(spec string) InPlace {
	return InPlace{Path: spec + ".updateStrategy.type", Instead: "ReCreate"}
}
