package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// companionKind is a kind that may travel along without an administrator's word.
type companionKind struct {
	schema.GroupKind
	resource string
}

// companionKinds are what workloads usually need beside themselves. All are namespaced, and none grants rights.
func companionKinds() []companionKind {
	return []companionKind{
		{schema.GroupKind{Kind: "ConfigMap"}, "configmaps"},
		{schema.GroupKind{Kind: "Secret"}, "secrets"},
		{schema.GroupKind{Kind: "Service"}, "services"},
		{schema.GroupKind{Kind: "ServiceAccount"}, "serviceaccounts"},
		{schema.GroupKind{Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims"},
		{schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}, "poddisruptionbudgets"},
		{schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, "horizontalpodautoscalers"},
		{schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, "ingresses"},
		{schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, "networkpolicies"},
	}
}

// rightsGroup is the group of kinds that grant rights. They never travel, whatever a configuration allows.
const rightsGroup = "rbac.authorization.k8s.io"

// tokenType is the type of Secrets that only mean something to the API server that made them.
const tokenType = "kubernetes.io/service-account-token" //nolint:gosec // a type, no credential

// companions reads spec.companions: marked as this FleetWorkload's, sorted by kind and name. The notes say what of them is not sent; some are empty.
func companions(
	fw *v1alpha1.FleetWorkload, template *unstructured.Unstructured, kinds *interpreter.Registry,
) (list []backends.Companion, notes []string, err error) {
	list = make([]backends.Companion, 0, len(fw.Spec.Companions))
	first := map[string]int{}
	for i, raw := range fw.Spec.Companions {
		at := fmt.Sprintf("spec.companions[%d]", i)
		c, more, err := companion(fw, at, raw, kinds)
		if err != nil {
			return nil, nil, err
		}
		id := identity(c.Object)
		if j, twice := first[id]; twice {
			return nil, nil, invalidCompanion(at, id, fmt.Sprintf("it is spec.companions[%d] too", j), "take one of them out")
		}
		first[id] = i
		if id == identity(template) {
			return nil, nil, invalidCompanion(at, id, "it is the workload itself", "take it out")
		}
		list, notes = append(list, c), append(notes, more...)
	}
	SortCompanions(list)
	return list, notes, nil
}

// SortCompanions puts companions in the order in which drivers get them.
func SortCompanions(list []backends.Companion) {
	slices.SortFunc(list, func(a, b backends.Companion) int {
		return cmp.Or(cmp.Compare(a.Object.GetKind(), b.Object.GetKind()), cmp.Compare(a.Object.GetName(), b.Object.GetName()),
			cmp.Compare(a.Object.GetAPIVersion(), b.Object.GetAPIVersion()))
	})
}

func identity(obj *unstructured.Unstructured) string {
	return strings.TrimPrefix(obj.GroupVersionKind().Group+" "+obj.GetKind()+" "+obj.GetName(), " ")
}

func invalidCompanion(field, value, message, remedy string) error {
	return &backends.Error{Code: backends.CodeInvalidTemplate, Field: field, Value: value, Message: message, Remedy: remedy}
}

// companion reads one entry of spec.companions.
func companion(
	fw *v1alpha1.FleetWorkload, at string, raw runtime.RawExtension, kinds *interpreter.Registry,
) (c backends.Companion, notes []string, err error) {
	none := backends.Companion{}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw.Raw, &obj.Object); err != nil || obj.Object == nil {
		return none, nil, invalidCompanion(at, "", "it is not an object", "write a whole manifest, with apiVersion and kind")
	}
	switch {
	case obj.GetAPIVersion() == "":
		return none, nil, invalidCompanion(at+".apiVersion", "", "required", "add it to the manifest, such as v1")
	case obj.GetKind() == "":
		return none, nil, invalidCompanion(at+".kind", "", "required", "add it to the manifest, such as Service")
	case obj.GetNamespace() != "" && obj.GetNamespace() != fw.Namespace:
		return none, nil, invalidCompanion(at+".metadata.namespace", obj.GetNamespace(),
			"a FleetWorkload ships only into its own namespace", fmt.Sprintf("leave it out, or set it to %q", fw.Namespace))
	}
	if errs := validation.IsDNS1123Subdomain(obj.GetName()); len(errs) > 0 {
		return none, nil, invalidCompanion(at+".metadata.name", obj.GetName(), errs[0], "give it a name")
	}
	resource, err := companionResource(at, obj, kinds)
	if err != nil {
		return none, nil, err
	}
	clean, keys := Bare(obj)
	notes = []string{noteStripped(at, keys), stripSelfRemoval(at, clean, kinds.For(clean.GroupVersionKind()))}
	clean.SetNamespace(fw.Namespace)
	setMarks(clean, string(fw.UID))
	annotations := clean.GetAnnotations() // the marks are among them
	annotations[v1alpha1.AnnotationOwner] = fw.Namespace + "/" + fw.Name
	clean.SetAnnotations(annotations)
	return backends.Companion{Object: clean, Resource: resource}, notes, nil
}

// companionResource refuses kinds that may not travel along, and returns the plural of those that may.
func companionResource(at string, obj *unstructured.Unstructured, kinds *interpreter.Registry) (string, error) {
	gvk := obj.GroupVersionKind()
	value := obj.GetAPIVersion() + " " + obj.GetKind()
	if gvk.Group == rightsGroup {
		return "", &backends.Error{
			Code: backends.CodeUnsupported, Field: at + ".kind", Value: value, Message: "what grants rights never travels along",
			Remedy: "take it out, and grant rights on the clusters by their own means",
		}
	}
	if secretType, _, _ := unstructured.NestedString(obj.Object, "type"); gvk.GroupKind() == (schema.GroupKind{Kind: "Secret"}) &&
		secretType == tokenType {
		return "", &backends.Error{
			Code: backends.CodeUnsupported, Field: at + ".type", Value: secretType,
			Message: "a ServiceAccount's token means nothing to another cluster", Remedy: "take it out, and create it on the clusters",
		}
	}
	if isSelfMade(gvk.GroupKind(), obj.GetName()) {
		return "", &backends.Error{
			Code: backends.CodeUnsupported, Field: at + ".metadata.name", Value: obj.GetName(),
			Message: "every cluster makes this " + obj.GetKind() + " for itself", Remedy: "take it out, or give it another name",
		}
	}
	known := companionKinds()
	if i := slices.IndexFunc(known, func(k companionKind) bool { return k.GroupKind == gvk.GroupKind() }); i >= 0 {
		return known[i].resource, nil
	}
	if kinds.Allowed(gvk.GroupKind()) {
		return kinds.For(gvk).Resource, nil
	}
	names := make([]string, 0, len(known))
	for _, k := range known {
		names = append(names, k.Kind)
	}
	return "", &backends.Error{
		Code: backends.CodeUnsupported, Field: at + ".kind", Value: value, Message: "companions may not be of this kind",
		Remedy: "use one of " + strings.Join(names, ", ") + ", or let an administrator allow it under allowedKinds in the operator's configuration",
	}
}

// Bare is an object without what API servers, their clients and orchestrators add: it can be sent to another cluster. The keys of
// orchestrators that were taken off are returned, too.
func Bare(obj *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	out := obj.DeepCopy()
	keys := strip(out)
	return out, keys
}

// setMarks also says which revision of the companion it is. By that a backend that has moved away, and is back from a backup, finds that the
// object is no longer what it has: also where something was only taken out (backends/ocm/force.go).
func setMarks(obj *unstructured.Unstructured, uid string) {
	revision := companionRevision(obj)
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelManagedBy], labels[v1alpha1.LabelUID] = v1alpha1.ManagedByOperator, uid
	annotations[v1alpha1.AnnotationRevision] = revision
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

// companionRevision is the hash of a companion. Of a Secret it hashes no value: nobody is to guess by it.
func companionRevision(obj *unstructured.Unstructured) string {
	told := maps.Clone(obj.Object)
	if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		for _, field := range []string{"data", "stringData"} {
			values, _ := told[field].(map[string]any)
			told[field] = slices.Sorted(maps.Keys(values))
		}
	}
	revision, _ := Hash(told) // it came out of JSON
	return revision
}
