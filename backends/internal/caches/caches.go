// Package caches is what drivers share about the caches of their backends: which events count, what an object keeps there, and what is asked of
// the API server because no cache shows it.
package caches

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// Handler is told of objects that come after the first list, that change, and that go.
func Handler[T client.Object](come func(T), change func(before, now T), gone func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if now, is := obj.(T); is && !isInInitialList {
				come(now)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, was := old.(T)
			now, is := obj.(T)
			if was && is && before.GetResourceVersion() != now.GetResourceVersion() {
				change(before, now)
			}
		},
		DeleteFunc: func(obj any) {
			if missed, is := obj.(toolscache.DeletedFinalStateUnknown); is {
				obj = missed.Obj
			}
			if last, is := obj.(T); is {
				gone(last)
			}
		},
	}
}

// KeepOwnFields keeps of the managed fields those that ssa.UpToDate compares.
func KeepOwnFields(obj metav1.Object) {
	var own []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == ssa.FieldOwner {
			own = append(own, entry)
		}
	}
	obj.SetManagedFields(own)
}

// Owner is the FleetWorkload that an object says it is there for.
func Owner(obj metav1.Object) (owner types.NamespacedName, named bool) {
	namespace, name, named := strings.Cut(obj.GetAnnotations()[v1alpha1.AnnotationOwner], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, named
}

// Lookup asks the API server for an object that a cache may lack since it does not have the operator's label; nil when there is none.
func Lookup(
	ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, at types.NamespacedName,
) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, at, found); err != nil {
		return nil, backends.Classify(fmt.Sprintf("get %s %s", gvk.Kind, at), client.IgnoreNotFound(err))
	}
	return found, nil
}

// Version asks for the resource version of a FleetWorkload's object that a cache will show; empty when there is none. See expectations.
func Version(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, at types.NamespacedName, uid types.UID) func() (string, error) {
	return func() (string, error) {
		there, err := Lookup(ctx, c, gvk, at)
		if there == nil || there.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator || there.Labels[v1alpha1.LabelUID] != string(uid) {
			return "", err
		}
		return there.ResourceVersion, nil
	}
}

// ShowAgain puts the label back by which a cache has an object, when somebody took it off one that has the UID as its label: nobody would look
// at it again. It tells whether it did. What was looked up may be nil.
func ShowAgain(ctx context.Context, c client.Client, found *metav1.PartialObjectMetadata, uid types.UID) (bool, error) {
	if found == nil || found.Labels[v1alpha1.LabelUID] != string(uid) || found.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator {
		return false, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelManagedBy, v1alpha1.ManagedByOperator)
	err := client.IgnoreNotFound(c.Patch(ctx, found, client.RawPatch(types.MergePatchType, patch)))
	op := fmt.Sprintf("put the label %s back on %s %s/%s", v1alpha1.LabelManagedBy, found.Kind, found.Namespace, found.Name)
	return true, backends.Classify(op, err)
}
