package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

// deployment is apps/v1 Deployment (k8s.io/api/apps/v1). A Deployment that was created paused has no pods and gets none,
// so a pause counts before anything that is missing.
func deployment() Definition {
	return Definition{
		Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", GenerationTells: true,
		Replicas: "spec.replicas", PodTemplates: []string{"spec.template"}, Selector: "spec.selector",
		Status: append(append(
			[]Field{observedGeneration()},
			fields(counter, "replicas", "readyReplicas", "updatedReplicas", "availableReplicas")...),
			hint("unavailableReplicas"), hint("terminatingReplicas"),
			conditionField("Available", All), conditionField("Progressing", PerCluster), conditionReason("Progressing"),
			conditionField("ReplicaFailure", Any), conditionReason("ReplicaFailure"),
		),
		Spec: []Input{desiredInput(), {Name: "paused", At: "spec.paused", Type: TypeBool}},
		Lets: []Let{
			{Name: "expected", Type: TypeInt, Expr: "desired"}, {Name: "surplus", Type: TypeInt, Expr: "replicas - desired"},
		},
		Rules: rollout{
			pausedWhen: "paused && updatedReplicas < expected", available: "availableReplicas",
			first: []Rule{
				progressFailed("updatedReplicas"),
				{When: `conditionReplicaFailure == "True"`, Health: v1alpha1.HealthDegraded, Reason: ReasonReplicaFailure,
					Message: "pods cannot be created or deleted: {reasonReplicaFailure}"},
			},
			last: []Rule{{When: `has(conditionAvailable) && conditionAvailable != "True"`, Health: v1alpha1.HealthUnknown, Reason: ReasonContradictory,
				Message: "{availableReplicas} of {desired} are available by number, and the condition Available is {conditionAvailable}"}},
		}.rules(),
		Counts: replicaCounts("availableReplicas"),
	}
}
