package karmada

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
)

// builtinInterpreters are the operations that Karmada has an interpreter of its own for, by kind (pkg/resourceinterpreter/default:
// native and thirdparty). A kind without one for its status has it copied whole, which is not counted here.
func builtinInterpreters(gvk schema.GroupVersionKind) []configv1alpha1.InterpreterOperation {
	const (
		retain     = configv1alpha1.InterpreterOperationRetain
		replica    = configv1alpha1.InterpreterOperationInterpretReplica
		revise     = configv1alpha1.InterpreterOperationReviseReplica
		status     = configv1alpha1.InterpreterOperationInterpretStatus
		aggregate  = configv1alpha1.InterpreterOperationAggregateStatus
		health     = configv1alpha1.InterpreterOperationInterpretHealth
		dependency = configv1alpha1.InterpreterOperationInterpretDependency
	)
	type operations = []configv1alpha1.InterpreterOperation
	return map[string]operations{
		"apps/v1/Deployment":                      {retain, replica, revise, status, aggregate, health, dependency},
		"apps/v1/StatefulSet":                     {replica, revise, status, aggregate, health, dependency},
		"apps/v1/DaemonSet":                       {status, aggregate, health, dependency},
		"batch/v1/Job":                            {retain, replica, revise, status, aggregate, dependency},
		"batch/v1/CronJob":                        {aggregate, dependency},
		"apps.kruise.io/v1alpha1/CloneSet":        {replica, revise, status, aggregate, health, dependency},
		"apps.kruise.io/v1beta1/StatefulSet":      {replica, revise, status, aggregate, health, dependency},
		"apps.kruise.io/v1alpha1/DaemonSet":       {status, aggregate, health, dependency},
		"apps.kruise.io/v1alpha1/SidecarSet":      {retain, replica, status, aggregate, health, dependency},
		"apps.kruise.io/v1alpha1/BroadcastJob":    {retain, replica, revise, status, aggregate, health, dependency},
		"apps.kruise.io/v1alpha1/AdvancedCronJob": {aggregate, dependency},
		// Karmada's own for UnitedDeployment reads fields that the kind does not have, so that it has none.
		"apps.kruise.io/v1alpha1/UnitedDeployment": nil,
		"argoproj.io/v1alpha1/Workflow":            {retain, replica, revise, health, dependency},
	}[gvk.GroupVersion().String()+"/"+gvk.Kind]
}

// Missing leaves of the interpreters those that Karmada has none for.
func Missing(i Interpreter) Interpreter {
	own := builtinInterpreters(i.GVK)
	for _, o := range operations {
		if slices.Contains(own, o.operation) {
			*o.script(&i.Scripts) = ""
		}
	}
	return i
}
