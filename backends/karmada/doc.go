// Package karmada is the driver for Karmada control planes (v1.17). It writes the workload as a resource template, one
// PropagationPolicy that names every target cluster, and one OverridePolicy with what differs per cluster; it reads back
// the ResourceBinding and the Works that Karmada makes of them.
//
// What it knows of Karmada is in three pure parts: Render (the objects), decide (in which order they may be written, so
// that one change reaches a member once), and translate (what Karmada reports). The rest is I/O. References such as
// "pkg/detector" are to github.com/karmada-io/karmada v1.17.1.
package karmada

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

var (
	policyGVK   = policyv1alpha1.SchemeGroupVersion.WithKind(policyv1alpha1.ResourceKindPropagationPolicy)
	overrideGVK = policyv1alpha1.SchemeGroupVersion.WithKind(policyv1alpha1.ResourceKindOverridePolicy)
)

// policyName is the name of the PropagationPolicy and of the OverridePolicy. It is made of the FleetWorkload's name,
// which is unique in the namespace; the template's name is not, over all kinds.
func policyName(key backends.Key) string {
	const longest = 63
	name := "fw-" + key.Name
	if len(name) <= longest {
		return name
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key.Name))
	return fmt.Sprintf("%s-%08x", strings.TrimRight(name[:longest-9], "-."), hash.Sum32())
}

// bindingName is the name that Karmada gives the workload's ResourceBinding. It lacks the API group, so two kinds of one
// name collide on it (names.GenerateBindingName in pkg/util/names/names.go).
func bindingName(w backends.Workload) string {
	return strings.ToLower(strings.ReplaceAll(w.Name+"-"+w.GVK.Kind, ":", "."))
}

// newObject returns an empty object with the marks of the FleetWorkload.
func newObject(gvk schema.GroupVersionKind, namespace, name string, key backends.Key) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelUID:       string(key.UID),
	})
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: key.String()})
	return obj
}
