package ocm

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// executor is the account as which agents write what one FleetWorkload ships; nil for their own.
func executor(query backends.Query) (map[string]any, error) {
	o := query.Options
	if o == nil || o.OCM == nil || o.OCM.Executor != v1alpha1.ExecutorServiceAccount {
		return nil, nil
	}
	if query.ServiceAccount == "" {
		return nil, &backends.Error{
			Code: backends.CodeInvalidOptions, Field: "spec.backendOptions.ocm.executor", Value: string(o.OCM.Executor),
			Message: "there is no account to write as", Remedy: "set spec.serviceAccountName, or leave the executor out",
		}
	}
	return map[string]any{"subject": map[string]any{
		"type":           string(workv1.ExecutorSubjectTypeServiceAccount),
		"serviceAccount": map[string]any{"namespace": query.Key.Namespace, "name": query.ServiceAccount},
	}}, nil
}

// dropExecutor leaves the last steps to the agent's own account: one that lost its rights on the cluster would hold up what is on its way out.
func dropExecutor(work *unstructured.Unstructured, m move) {
	if m.removing != "" || m.strategy == workv1.UpdateStrategyTypeCreateOnly {
		unstructured.RemoveNestedField(work.Object, "spec", "executor")
	}
}
