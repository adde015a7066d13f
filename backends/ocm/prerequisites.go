package ocm

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// groupsOfAdmin are the API groups in which the agent may write without further rights: those of the ClusterRole admin,
// which the klusterlet binds it to (ocm manifests/klusterlet/managed).
var groupsOfAdmin = []string{"", "apps", "autoscaling", "batch", "extensions", "networking.k8s.io", "policy"}

// renderPrerequisites renders what a cluster needs before the agent can apply the workload, as ManifestWorks that all
// workloads of the cluster share. They are apart from the workload's own, since removing a namespace with it would
// remove everything else in that namespace.
func renderPrerequisites(cluster string, workload backends.Workload) []*unstructured.Unstructured {
	var works []*unstructured.Unstructured
	if needsNamespace(workload.Namespace) {
		works = append(works, renderNamespaceWork(cluster, workload.Namespace))
	}
	if !slices.Contains(groupsOfAdmin, workload.GVK.Group) {
		works = append(works, renderRightsWork(cluster, workload.GVK.Group, workload.Resource))
	}
	return works
}

// prerequisiteNames are the names of the works that renderPrerequisites renders for a workload.
func prerequisiteNames(namespace, group, resource string) []string {
	var names []string
	if needsNamespace(namespace) {
		names = append(names, namespaceWorkName(namespace))
	}
	if !slices.Contains(groupsOfAdmin, group) {
		names = append(names, rightsWorkName(group, resource))
	}
	return names
}

// needsNamespace is false for the namespaces that every cluster has.
func needsNamespace(namespace string) bool {
	return namespace != "" && namespace != "default" && !strings.HasPrefix(namespace, "kube-")
}

// renderNamespaceWork creates the namespace and never touches or removes it.
func renderNamespaceWork(cluster, namespace string) *unstructured.Unstructured {
	manifest := map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}
	return renderPrerequisite(cluster, namespaceWorkName(namespace), prerequisiteNamespace, manifest,
		map[string]any{"group": "", "resource": "namespaces", "namespace": "", "name": namespace},
		map[string]any{"type": string(workv1.UpdateStrategyTypeCreateOnly)},
		workv1.DeletePropagationPolicyTypeOrphan)
}

// renderRightsWork gives the agent what it lacks for a kind by the label that the klusterlet aggregates. The agent may
// grant rights that it does not have (verb escalate).
func renderRightsWork(cluster, group, resource string) *unstructured.Unstructured {
	name := "fleetworkload:agent:" + resource + "." + group
	manifest := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{
			"name": name,
			"labels": map[string]any{
				"open-cluster-management.io/aggregate-to-work": "true",
				v1alpha1.LabelManagedBy:                        v1alpha1.ManagedByOperator,
			},
		},
		"rules": []any{map[string]any{
			"apiGroups": []any{group}, "resources": []any{resource},
			"verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete"},
		}},
	}
	return renderPrerequisite(cluster, rightsWorkName(group, resource), prerequisiteRights, manifest,
		map[string]any{"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "namespace": "", "name": name},
		map[string]any{
			"type":            string(workv1.UpdateStrategyTypeServerSideApply),
			"serverSideApply": map[string]any{"force": true, "fieldManager": workv1.DefaultFieldManager},
		},
		workv1.DeletePropagationPolicyTypeForeground)
}

func renderPrerequisite(
	cluster, name, kind string, manifest, identifier, strategy map[string]any, policy workv1.DeletePropagationPolicyType,
) *unstructured.Unstructured {
	work := newObject(manifestWorkGVK, cluster, name)
	labels := work.GetLabels()
	labels[labelPrerequisite] = kind
	work.SetLabels(labels)
	spec := map[string]any{
		"workload": map[string]any{"manifests": []any{manifest}},
		"manifestConfigs": []any{map[string]any{
			"resourceIdentifier": identifier, "updateStrategy": strategy, "feedbackScrapeType": string(workv1.FeedbackPollType),
		}},
		"deleteOption": map[string]any{"propagationPolicy": string(policy)},
	}
	work.Object["spec"] = spec
	annotate(work, annotationHash, hashOf(spec))
	return work
}

// prerequisiteTitle says for a person what a prerequisite is.
func prerequisiteTitle(work *unstructured.Unstructured) string {
	if work.GetLabels()[labelPrerequisite] == prerequisiteNamespace {
		return "its namespace"
	}
	return "the agent's rights for the kind"
}
