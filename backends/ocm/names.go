package ocm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Marks on the hub's objects, besides those of v1alpha1. None of them reaches a member cluster.
const (
	// labelPrerequisite tells a ManifestWork that many workloads share from one that delivers a workload. Its value is
	// prerequisiteNamespace, prerequisiteRights or prerequisiteDefinition.
	labelPrerequisite = "fleetworkload.io/prerequisite"
	// annotationHash is the hash of what was rendered. Manifests are an atomic list to the API server: without the
	// hash, a field that is no longer rendered would not be seen as missing.
	annotationHash = "fleetworkload.io/rendered-hash"
	// annotationRemoving is on a ManifestWork on its way out; its value is the deletion policy, and since when the agent has
	// been asked whether the object is there.
	annotationRemoving = "fleetworkload.io/removing"
	// annotationHeld is on a ManifestWork that is held; its spec stays as it is.
	annotationHeld = "fleetworkload.io/held"
	// annotationObserved is on a ManifestWork that stands for an object which is, or may become, another backend's.
	annotationObserved = "fleetworkload.io/observe"
	// probeOfObserved is its value on one that is there to ask (R15).
	probeOfObserved = "probe"

	// annotationAsked is in the manifest of a ManifestWork that asks again; ReadOnly writes it nowhere.
	annotationAsked = "fleetworkload.io/asked"
	// annotationUnmanaged is on a namespace's ManifestWork once a hand-over has ended there; see unmanagedNamespace.
	annotationUnmanaged = "fleetworkload.io/unmanaged"

	// Feedback of what Karmada puts on member objects; see karmadaMarks.
	feedbackMarkPrefix = "fw:karmada-mark-"

	prerequisiteNamespace = "namespace"
	prerequisiteRights    = "rights"
	// prerequisiteDefinition is a CRD; see Options.ShipDefinitions.
	prerequisiteDefinition = "definition"
)

// maxName bounds names that become label values (Placement), and ours for ManifestWorks. The agent allows a
// ManifestWork 188 characters (ocm pkg/work/helper HubHash).
const maxName = 63

var (
	manifestWorkGVK = schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"}
	placementGVK    = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "Placement"}
	decisionGVK     = placementGVK.GroupVersion().WithKind("PlacementDecision")
	clusterGVK      = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"}
	bindingGVK      = schema.GroupVersionKind{
		Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSetBinding",
	}
)

// placementName is unique to the workload and to the spec: neither conditions nor decisions of a Placement carry an
// observedGeneration, so a new spec must be a new object for its conditions to prove anything
// (ocm pkg/placement/controllers/scheduling, newSatisfiedCondition).
func placementName(key backends.Key, spec map[string]any) string {
	return bounded("fw-"+key.Name, hashOf(key.Namespace, key.Name, string(key.UID), spec))
}

// workName is the name of the workload's ManifestWork, the same in every cluster's namespace.
func workName(key backends.Key) string {
	return bounded(key.Namespace+"-"+key.Name, hashOf(key.Namespace, key.Name, string(key.UID)))
}

func namespaceWorkName(namespace string) string { return "fleetworkload-ns-" + namespace }

// rightsPrefix is before the kind in the name of the ManifestWork that has the agent's rights for it.
const rightsPrefix = "fleetworkload-agent-rights-"

func rightsWorkName(group, resource string) string {
	name := rightsPrefix + resource + "." + group
	if len(name) <= 180 {
		return name
	}
	return bounded(name, hashOf(name))
}

func definitionWorkName(group, resource string) string {
	return bounded("fleetworkload-crd", hashOf(group, resource))
}

// bounded joins a readable prefix and a hash to a DNS name of at most maxName characters.
func bounded(prefix, hash string) string {
	if room := maxName - len(hash) - 1; len(prefix) > room {
		prefix = prefix[:room]
	}
	return strings.TrimRight(prefix, "-.") + "-" + hash
}

// hashOf returns ten hexadecimal digits. Maps are hashed in the order of their keys.
func hashOf(parts ...any) string {
	// Everything hashed here came out of JSON, so it can be written as JSON.
	data, err := json.Marshal(parts)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:10]
}

// newObject makes a hub object with the marks by which caches and pruning find it.
func newObject(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	return obj
}

// newOwnedObject makes a hub object that belongs to one FleetWorkload.
func newOwnedObject(gvk schema.GroupVersionKind, key backends.Key, namespace, name string) *unstructured.Unstructured {
	obj := newObject(gvk, namespace, name)
	obj.SetLabels(map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelUID:       string(key.UID),
	})
	obj.SetAnnotations(key.Annotations())
	return obj
}

func annotate(obj *unstructured.Unstructured, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
