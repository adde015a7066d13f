// Package interpreter gives one meaning to every workload kind: where replicas and the pod template are, which status
// fields matter, and what they say about health. It is pure: no client, no clock.
package interpreter

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Kind is what we know about one workload kind. Implementations are pure and safe for concurrent use.
type Kind interface {
	// Resource is the plural of the kind.
	Resource() string
	// ReplicasPath leads to the number of replicas; empty for kinds without.
	ReplicasPath() []string
	// PodTemplatePath leads to the pod template; empty for kinds without.
	PodTemplatePath() []string
	// SelectorPath leads to the pods' label selector; empty for kinds without.
	SelectorPath() []string
	// Feedback are the status fields that State reads.
	Feedback() []backends.FeedbackField
	// State interprets a report of one cluster. Absent numbers count as zero, so status must be a current report.
	State(report Report) (State, error)
}

// Report is what one cluster says about the workload.
type Report struct {
	// Manifest is the target manifest; nil when it is not known.
	Manifest *unstructured.Unstructured
	// Desired is how many replicas were asked of the cluster; nil when not known.
	Desired *int32
	// Status is the object's status, or as much of it as was fed back.
	Status map[string]any
}

// State is a workload's state on one cluster, the same for every kind.
type State struct {
	Replicas, Ready, Updated, Available int32
	Health                              v1alpha1.Health
	// Message says why, for a person. It does not change while the report does not.
	Message string
}

// For returns what is known about a kind.
func For(gvk schema.GroupVersionKind) (Kind, bool) {
	switch gvk {
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}:
		return deployment{}, true
	case schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}:
		return cloneSet{}, true
	default:
		return nil, false
	}
}

// Supported lists the kinds that For knows, for messages.
func Supported() string { return "apps/v1 Deployment, apps.kruise.io/v1alpha1 CloneSet" }

// Replicas reads the number of replicas; ok is false when the manifest does not say.
func Replicas(kind Kind, manifest *unstructured.Unstructured) (n int32, ok bool, err error) {
	path := kind.ReplicasPath()
	if len(path) == 0 {
		return 0, false, nil
	}
	v, found, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
	if err != nil || !found {
		return 0, false, err
	}
	i, isInt := v.(int64)
	if !isInt || i < 0 || i > 1_000_000 {
		return 0, false, fmt.Errorf("replicas must be a whole number from 0 to 1000000, not %v", v)
	}
	return int32(i), true, nil
}

// SetReplicas writes the number of replicas into the manifest. Kinds without replicas are left alone.
func SetReplicas(kind Kind, manifest *unstructured.Unstructured, n int32) error {
	if len(kind.ReplicasPath()) == 0 {
		return nil
	}
	return unstructured.SetNestedField(manifest.Object, int64(n), kind.ReplicasPath()...)
}

// Selector returns the pods' label selector as a string, or "" when the manifest has none.
func Selector(kind Kind, manifest *unstructured.Unstructured) string {
	if len(kind.SelectorPath()) == 0 {
		return ""
	}
	raw, found, err := unstructured.NestedMap(manifest.Object, kind.SelectorPath()...)
	if err != nil || !found {
		return ""
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return ""
	}
	return metav1.FormatLabelSelector(&selector)
}

// statusFields are feedback fields of .status under their own names.
func statusFields(names ...string) []backends.FeedbackField {
	fields := make([]backends.FeedbackField, 0, len(names))
	for _, name := range names {
		fields = append(fields, backends.FeedbackField{Name: name, Path: ".status." + name})
	}
	return fields
}

// decode reads a status map into a typed status. A field of the wrong type is an error.
func decode(status map[string]any, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, into); err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	return nil
}
