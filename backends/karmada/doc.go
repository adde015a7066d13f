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

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// policyName is the name of the PropagationPolicy and of the OverridePolicy. It is made of the FleetWorkload's name,
// which is unique in the namespace; the template's name is not, over all kinds. Cluster-scoped policies have the
// namespace in it too, before a dot, which no namespace contains.
func policyName(q backends.Query) string {
	const longest = 63
	unique := q.Key.Name
	if q.Workload.Namespace == "" {
		unique = q.Key.Namespace + "." + q.Key.Name
	}
	name := "fw-" + unique
	if len(name) <= longest {
		return name
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(unique))
	return fmt.Sprintf("%s-%08x", strings.TrimRight(name[:longest-9], "-."), hash.Sum32())
}

// bindingName is the name that Karmada gives the workload's ResourceBinding. It lacks the API group, so two kinds of one
// name collide on it (names.GenerateBindingName in pkg/util/names/names.go).
func bindingName(w backends.Workload) string { return bindingNameOf(w.GVK.Kind, w.Name) }

func bindingNameOf(kind, name string) string {
	return strings.ToLower(strings.ReplaceAll(name+"-"+kind, ":", "."))
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
	obj.SetAnnotations(key.Annotations())
	return obj
}
