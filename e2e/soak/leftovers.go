// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
)

var workGVK = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}

// leftBehind is what backends have of workloads that they do not carry, and their marks on member objects.
func (s *soak) leftBehind(ctx context.Context) []string {
	list, err := s.list(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	carried := map[string]string{} // backend by identity
	for i := range list {
		carried[list[i].Status.Identity] = list[i].Status.Backend
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	var left []string
	for backend, control := range map[string]string{history.Karmada: lab.Karmada, history.OCM: lab.Hub} {
		found, err := s.marked(ctx, s.clusters[control])
		if err != nil {
			return []string{err.Error()}
		}
		for _, f := range found {
			if carried[f.uid] != backend {
				left = append(left, fmt.Sprintf("%s has %s of FleetWorkload %s, which it does not carry", backend, f.what, f.uid))
			}
		}
	}
	for i := range list {
		marks, err := s.foreignMarks(ctx, &list[i])
		if err != nil {
			return []string{err.Error()}
		}
		left = append(left, marks...)
	}
	slices.Sort(left)
	return left
}

// find is an object with the mark of a FleetWorkload.
type find struct{ uid, what string }

// marked are the objects of all types that have the mark of one of the soak's FleetWorkloads, or deliver such an object.
func (s *soak) marked(ctx context.Context, c *cluster) ([]find, error) {
	lists, err := c.discovery.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("types of %s: %w", c.name, err)
	}
	var found []find
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("types of %s: %w", c.name, err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || gv.Group == v1alpha1.GroupVersion.Group || strings.Contains(r.Name, "/") {
				continue
			}
			of, err := s.markedOf(ctx, c, gv.WithResource(r.Name))
			if err != nil {
				return nil, err
			}
			found = append(found, of...)
		}
	}
	if c.name != lab.Karmada {
		return found, nil
	}
	delivered, err := s.delivered(ctx, c)
	return append(found, delivered...), err
}

func (s *soak) markedOf(ctx context.Context, c *cluster, resource schema.GroupVersionResource) ([]find, error) {
	objects, err := c.metadata.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelUID})
	if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s of %s: %w", resource.Resource, c.name, err)
	}
	var found []find
	for _, o := range objects.Items {
		namespace, _, _ := strings.Cut(o.Annotations[v1alpha1.AnnotationOwner], "/")
		// What workloads share belongs to none of them.
		uid := o.Labels[v1alpha1.LabelUID]
		if slices.Contains(namespaces(), namespace) && !isShared(uid) {
			found = append(found, find{uid, resource.Resource + " " + o.Namespace + "/" + o.Name})
		}
	}
	return found, nil
}

// isShared tells whether a mark says that an object belongs to several.
func isShared(uid string) bool { return uid == "shared" }

// delivered are the Works that carry an object of the soak's FleetWorkloads: they have no mark of their own.
func (s *soak) delivered(ctx context.Context, c *cluster) ([]find, error) {
	works := &unstructured.UnstructuredList{}
	works.SetGroupVersionKind(workGVK.GroupVersion().WithKind(workGVK.Kind + "List"))
	if err := c.List(ctx, works); err != nil {
		return nil, fmt.Errorf("list Works: %w", err)
	}
	var found []find
	for i := range works.Items {
		w := &works.Items[i]
		manifests, _, _ := unstructured.NestedSlice(w.Object, "spec", "workload", "manifests")
		for _, m := range manifests {
			object, _ := m.(map[string]any)
			labels, _, _ := unstructured.NestedStringMap(object, "metadata", "labels")
			namespace, _, _ := unstructured.NestedString(object, "metadata", "namespace")
			if uid := labels[v1alpha1.LabelUID]; uid != "" && slices.Contains(namespaces(), namespace) && !isShared(uid) {
				found = append(found, find{uid, "works " + w.GetNamespace() + "/" + w.GetName()})
			}
		}
	}
	return found, nil
}

// foreignMarks are the marks on a workload's member objects of the backend that does not carry it.
func (s *soak) foreignMarks(ctx context.Context, fw *v1alpha1.FleetWorkload) ([]string, error) {
	gvk := schema.FromAPIVersionAndKind(fw.Status.Workload.APIVersion, fw.Status.Workload.Kind)
	facts := s.judge.facts()
	moved := fw.Status.Migration != nil && len(fw.Status.Migration.History) > 0
	var left []string
	for _, name := range facts.Names() {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		err := s.clusters[name].Get(ctx, types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}, obj)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s/%s on %s: %w", fw.Namespace, fw.Name, name, err)
		}
		if err == nil && facts[name].Joined {
			for _, mark := range manifest.Marks(obj, fw.Status.Backend, moved) {
				left = append(left, fmt.Sprintf("%s/%s on %s has the mark %s though %s carries it", fw.Namespace, fw.Name, name, mark, fw.Status.Backend))
			}
		}
	}
	return left, nil
}
