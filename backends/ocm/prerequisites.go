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
		works = append(works, renderNamespaceWork(cluster, workload))
	}
	if !slices.Contains(groupsOfAdmin, workload.GVK.Group) {
		works = append(works, renderRightsWork(cluster, workload.GVK.Group, workload.Resource))
	}
	return works
}

// prerequisiteNames are the names of the works that a workload may stand on.
func prerequisiteNames(namespace, group, resource string) []string {
	var names []string
	if needsNamespace(namespace) {
		names = append(names, namespaceWorkName(namespace))
	}
	if !slices.Contains(groupsOfAdmin, group) {
		names = append(names, rightsWorkName(group, resource), definitionWorkName(group, resource))
	}
	return names
}

// needsNamespace is false for the namespaces that every cluster has.
func needsNamespace(namespace string) bool {
	return namespace != "" && namespace != "default" && !strings.HasPrefix(namespace, "kube-")
}

// renderNamespaceWork creates the namespace and never touches or removes it; but see unmanagedNamespace.
func renderNamespaceWork(cluster string, workload backends.Workload) *unstructured.Unstructured {
	namespace := workload.Namespace
	metadata := map[string]any{"name": namespace}
	if len(workload.NamespaceLabels) > 0 {
		labels := map[string]any{}
		for key, value := range workload.NamespaceLabels {
			labels[key] = value
		}
		metadata["labels"] = labels
	}
	manifest := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
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
	work := renderPrerequisite(cluster, rightsWorkName(group, resource), prerequisiteRights, manifest,
		map[string]any{"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "namespace": "", "name": name},
		applying(true), // only OCM's own agents have a use for it
		workv1.DeletePropagationPolicyTypeForeground)
	askForVersions(work, group, resource)
	return work
}

// versionsAsked are the versions in which clusters may serve a kind that we care about.
var versionsAsked = []string{"v1", "v1alpha1", "v1alpha2", "v1beta1", "v1beta2"}

// askForVersions adds the kind's CRD to a ManifestWork, to be read: ReadOnly never writes it and never makes it the work's
// own, without which the agent deletes nothing (ocm pkg/work/helper, DeleteAppliedResources). The rule to orphan it says so
// a second time.
func askForVersions(work *unstructured.Unstructured, group, resource string) {
	const definitions = "customresourcedefinitions"
	name := resource + "." + group
	paths := make([]any, 0, len(versionsAsked))
	for _, version := range versionsAsked {
		paths = append(paths, map[string]any{"name": version, "path": `.spec.versions[?(@.name=="` + version + `")].served`})
	}
	spec, _ := work.Object["spec"].(map[string]any)
	manifests, _, _ := unstructured.NestedSlice(spec, "workload", "manifests")
	spec["workload"] = map[string]any{"manifests": append(manifests, map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
	})}
	configs, _ := spec["manifestConfigs"].([]any)
	spec["manifestConfigs"] = append(configs, map[string]any{
		"resourceIdentifier": map[string]any{"group": "apiextensions.k8s.io", "resource": definitions, "namespace": "", "name": name},
		"updateStrategy":     map[string]any{"type": string(workv1.UpdateStrategyTypeReadOnly)},
		"feedbackScrapeType": string(workv1.FeedbackPollType),
		"feedbackRules":      []any{map[string]any{"type": string(workv1.JSONPathsType), "jsonPaths": paths}},
	})
	spec["deleteOption"] = map[string]any{
		"propagationPolicy": string(workv1.DeletePropagationPolicyTypeSelectivelyOrphan),
		"selectivelyOrphans": map[string]any{"orphaningRules": []any{map[string]any{
			"group": "apiextensions.k8s.io", "resource": definitions, "name": name, "namespace": "",
		}}},
	}
	annotate(work, annotationHash, hashOf(spec))
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
	switch work.GetLabels()[labelPrerequisite] {
	case prerequisiteNamespace:
		return "its namespace"
	case prerequisiteDefinition:
		return "the kind's CRD"
	default:
		return "the agent's rights for the kind"
	}
}
