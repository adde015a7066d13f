// Package plan decides what a FleetWorkload means: which object it carries, its revision, and what each chosen cluster
// must run. It is pure; the reconciler and kubectl-fw share it.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

func invalidTemplate(field, value, message, remedy string) error {
	return &backends.Error{Code: backends.CodeInvalidTemplate, Field: field, Value: value, Message: message, Remedy: remedy}
}

// Manifest reads spec.template as the object it describes: names set, what API servers add taken out. Errors are
// *backends.Error and name the field.
func Manifest(fw *v1alpha1.FleetWorkload) (*unstructured.Unstructured, error) {
	obj, _, err := manifest(fw)
	return obj, err
}

// manifest also returns what of it is not sent, for a person.
func manifest(fw *v1alpha1.FleetWorkload) (template *unstructured.Unstructured, note string, err error) {
	if err := checkSizes(fw); err != nil {
		return nil, "", err
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(fw.Spec.Template.Raw, &obj.Object); err != nil || obj.Object == nil {
		return nil, "", invalidTemplate("spec.template", "", "it is not an object", "write a whole manifest, with apiVersion and kind")
	}
	if obj.GetAPIVersion() == "" {
		return nil, "", invalidTemplate("spec.template.apiVersion", "", "required", "add it to the manifest, such as apps/v1")
	}
	if obj.GetKind() == "" {
		return nil, "", invalidTemplate("spec.template.kind", "", "required", "add it to the manifest, such as Deployment")
	}
	if ns := obj.GetNamespace(); ns != "" && ns != fw.Namespace {
		return nil, "", invalidTemplate("spec.template.metadata.namespace", ns,
			"a FleetWorkload ships only into its own namespace", fmt.Sprintf("leave it out, or set it to %q", fw.Namespace))
	}
	if obj.GetName() == "" {
		obj.SetName(fw.Name)
	}
	if errs := validation.IsDNS1123Subdomain(obj.GetName()); len(errs) > 0 {
		return nil, "", invalidTemplate("spec.template.metadata.name", obj.GetName(), errs[0], "choose another name")
	}
	obj.SetNamespace(fw.Namespace)
	if err := checkMetadata(obj); err != nil {
		return nil, "", err
	}
	if err := checkQuantities(obj.Object, backends.CodeInvalidTemplate, "spec.template"); err != nil {
		return nil, "", err
	}
	return obj, noteStripped("spec.template", strip(obj)), nil
}

// checkMetadata refuses labels and annotations that no API server takes.
func checkMetadata(obj *unstructured.Unstructured) error {
	path := field.NewPath("spec", "template", "metadata")
	for name, check := range map[string]func(map[string]string, *field.Path) field.ErrorList{
		"labels": metav1validation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
	} {
		entries, _, err := unstructured.NestedStringMap(obj.Object, "metadata", name)
		if err != nil {
			return invalidTemplate(path.Child(name).String(), "", "not a map of strings", "write strings as values, in quotes")
		}
		if errs := check(entries, path.Child(name)); len(errs) > 0 {
			return invalidTemplate(errs[0].Field, "", errs[0].ErrorBody(), "correct the key or the value, or make it smaller")
		}
	}
	return nil
}

// Reference names the object of a manifest.
func Reference(obj *unstructured.Unstructured) *v1alpha1.WorkloadReference {
	return &v1alpha1.WorkloadReference{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Name: obj.GetName()}
}

// Query is what drivers need to find the workload that ref names.
func Query(fw *v1alpha1.FleetWorkload, ref v1alpha1.WorkloadReference, kinds *interpreter.Registry,
) (backends.Query, *interpreter.Kind) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind := kinds.For(gvk)
	namespace := fw.Namespace
	if kind.ClusterScoped {
		namespace = ""
	}
	return backends.Query{
		Key: backends.Key{
			NamespacedName: types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}, UID: fw.UID,
			Installation: fw.Annotations[v1alpha1.AnnotationInstallation],
		},
		Workload: backends.Workload{
			GVK: gvk, Resource: kind.Resource, Namespace: namespace, Name: ref.Name,
			ReplicasPath: kind.ReplicasPath(), Feedback: kind.Feedback(),
		},
		Selectors: placement.Selectors(fw.Spec.Placement),
		Options:   fw.Spec.BackendOptions, ServiceAccount: fw.Spec.ServiceAccountName,
		Drift: fw.Spec.Drift,
	}, kind
}

// Hash is short, stable over processes, and fits a label.
func Hash(parts ...any) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(parts); err != nil {
		return "", fmt.Errorf("hash: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// revision hashes what decides the target manifests, replicas and the names of overrides left out. An override of replicas alone is none.
func revision(kind *interpreter.Kind, template *unstructured.Unstructured, overrides []v1alpha1.Override) (string, error) {
	bare := own(template, kind.ReplicasPath())
	if path := kind.ReplicasPath(); len(path) > 0 {
		unstructured.RemoveNestedField(bare.Object, path...)
	}
	unnamed := make([]v1alpha1.Override, 0, len(overrides))
	for _, o := range overrides {
		counts := o.Replicas != nil
		o.Name, o.Replicas = "", nil
		if !counts || !reflect.DeepEqual(o, v1alpha1.Override{Clusters: o.Clusters}) {
			unnamed = append(unnamed, o)
		}
	}
	if len(unnamed) == 0 {
		unnamed = nil // as without any
	}
	return Hash(bare.Object, unnamed)
}

// mark puts our labels and annotations on the template, and with it on every member object.
func mark(template *unstructured.Unstructured, fw *v1alpha1.FleetWorkload, revision string) {
	labels, annotations := maps.Clone(template.GetLabels()), maps.Clone(template.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByOperator
	labels[v1alpha1.LabelUID] = string(fw.UID)
	annotations[v1alpha1.AnnotationOwner] = fw.Namespace + "/" + fw.Name
	annotations[v1alpha1.AnnotationRevision] = revision
	if installation := fw.Annotations[v1alpha1.AnnotationInstallation]; installation != "" {
		annotations[v1alpha1.AnnotationInstallation] = installation
	}
	template.SetLabels(labels)
	template.SetAnnotations(annotations)
}
