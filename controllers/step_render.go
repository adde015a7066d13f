package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/override"
)

// serverMetadata are metadata fields that API servers set. A template copied from a live object has them; they are not
// sent.
var serverMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "selfLink", "ownerReferences", "finalizers", "generateName",
}

// parseTemplate reads spec.template as the object it describes: names set, what API servers add taken out.
func parseTemplate(fw *v1alpha1.FleetWorkload) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(fw.Spec.Template.Raw, &obj.Object); err != nil {
		return nil, stall(v1alpha1.ReasonInvalidTemplate, "spec.template: not a manifest: %v", err)
	}
	for field, value := range map[string]string{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()} {
		if value == "" {
			return nil, stall(v1alpha1.ReasonInvalidTemplate, "spec.template.%s: required; add it to the manifest", field)
		}
	}
	if ns := obj.GetNamespace(); ns != "" && ns != fw.Namespace {
		return nil, stall(v1alpha1.ReasonInvalidTemplate,
			"spec.template.metadata.namespace %q: a FleetWorkload ships only into its own namespace; leave it out or set %q", ns, fw.Namespace)
	}
	if obj.GetName() == "" {
		obj.SetName(fw.Name)
	}
	if errs := validation.IsDNS1123Subdomain(obj.GetName()); len(errs) > 0 {
		return nil, stall(v1alpha1.ReasonInvalidTemplate, "spec.template.metadata.name %q: %s", obj.GetName(), errs[0])
	}
	obj.SetNamespace(fw.Namespace)
	metadata, _ := obj.Object["metadata"].(map[string]any)
	for _, field := range serverMetadata {
		delete(metadata, field)
	}
	delete(obj.Object, "status")
	return normalize(obj)
}

// normalize gives numbers the types that API servers' answers have.
func normalize(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(raw); err != nil {
		return nil, stall(v1alpha1.ReasonInvalidTemplate, "spec.template: not a manifest: %v", err)
	}
	return out, nil
}

// render makes the fleet's template and revision, and checks the overrides.
func (r *Reconciler) render(_ context.Context, s *scope) error {
	template, err := parseTemplate(s.fw)
	if err != nil {
		return err
	}
	if got, want := referenceTo(template), s.record.workload; *got != *want {
		if !s.observed.Found {
			// Nothing was sent under the recorded name: take the new one, from the next pass on.
			s.record.workload, s.stop = got, true
			return nil
		}
		return stall(v1alpha1.ReasonInvalidTemplate,
			"spec.template: apiVersion, kind and name of a running workload cannot change from %s %s %q to %s %s %q; create another FleetWorkload for it",
			want.APIVersion, want.Kind, want.Name, got.APIVersion, got.Kind, got.Name)
	}
	if err := s.setReplicas(template); err != nil {
		return err
	}
	if s.revision, err = revisionOf(s.kind, template, s.fw.Spec.Overrides); err != nil {
		return err
	}
	mark(template, s)
	set, err := override.Compile(s.fw.Spec.Overrides, override.Paths{
		PodTemplate: s.kind.PodTemplatePath(), Replicas: s.kind.ReplicasPath(),
	})
	if err != nil {
		return err
	}
	if err := set.Validate(template); err != nil {
		return err
	}
	s.template, s.overrides = template, set
	return nil
}

// setReplicas decides the number of replicas, and writes it into the template.
func (s *scope) setReplicas(template *unstructured.Unstructured) error {
	if len(s.kind.ReplicasPath()) == 0 {
		return nil
	}
	n, given, err := interpreter.Replicas(s.kind, template)
	if err != nil {
		return stall(v1alpha1.ReasonInvalidTemplate, "spec.template: %v", err)
	}
	if !given {
		n = 1
	}
	if s.fw.Spec.Replicas != nil {
		n = *s.fw.Spec.Replicas
	}
	s.replicas = &n
	return interpreter.SetReplicas(s.kind, template, n)
}

// revisionOf hashes what decides the target manifests, replicas left out.
func revisionOf(kind interpreter.Kind, template *unstructured.Unstructured, overrides []v1alpha1.Override) (string, error) {
	bare := template.DeepCopy()
	if path := kind.ReplicasPath(); len(path) > 0 {
		unstructured.RemoveNestedField(bare.Object, path...)
	}
	return hash(bare.Object, overrides)
}

// hash is short, stable, and fits a label.
func hash(parts ...any) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(parts); err != nil {
		return "", fmt.Errorf("hash: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// mark puts our labels and annotations on the template, and with it on every member object.
func mark(template *unstructured.Unstructured, s *scope) {
	labels, annotations := maps.Clone(template.GetLabels()), maps.Clone(template.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByOperator
	labels[v1alpha1.LabelUID] = string(s.fw.UID)
	annotations[v1alpha1.AnnotationOwner] = s.query.Key.String()
	annotations[v1alpha1.AnnotationRevision] = s.revision
	template.SetLabels(labels)
	template.SetAnnotations(annotations)
}

// desiredOf is what the driver is to carry out.
func desiredOf(s *scope) backends.Desired {
	conflict := s.fw.Spec.ConflictPolicy
	if conflict == "" {
		conflict = v1alpha1.ConflictPolicyFail
	}
	return backends.Desired{
		Query: s.query, Template: s.template, Revision: s.revision, Targets: s.targets,
		ConflictPolicy: conflict, Division: s.division(),
	}
}
