package ssa

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Create makes an object that is not there, and fails with AlreadyExists when it is: one request, where an apply would
// need a look before. Fields that the server does not know are refused, as by an apply. It returns the object as the server has it now.
//
// To the server, what was created was not applied: it is changed with Patch.
func Create(ctx context.Context, c client.Client, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created := desired.DeepCopy()
	return created, c.Create(ctx, created, &client.CreateOptions{
		FieldManager: FieldOwner, FieldValidation: metav1.FieldValidationStrict,
	})
}

// Patch makes the object equal to desired where desired says something, and takes out what we set before and desired
// lacks, whether by Create, Patch or Apply. For the server it is less work than an apply. A resourceVersion of desired
// must be the object's. Lists are replaced as a whole, so it is for kinds whose lists of ours are atomic. It returns the metadata that the
// object has now.
func Patch(ctx context.Context, c client.Client, live, desired *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	body, err := patchBody(live, desired)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode patch of %s %s: %w", desired.GetKind(), client.ObjectKeyFromObject(desired), err)
	}
	// Only metadata comes back: the object arrives by the watch.
	patched := &metav1.PartialObjectMetadata{}
	patched.SetGroupVersionKind(desired.GroupVersionKind())
	patched.SetNamespace(desired.GetNamespace())
	patched.SetName(desired.GetName())
	return patched, c.Patch(ctx, patched, client.RawPatch(types.MergePatchType, data), &client.PatchOptions{
		FieldManager: FieldOwner, Raw: &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict},
	})
}

// patchBody is desired with a null wherever we own a field that it lacks. An object that was ours altogether goes as a whole: what is
// left of it, with nothing in it, may be invalid.
func patchBody(live, desired *unstructured.Unstructured) (map[string]any, error) {
	owned := fieldpath.NewSet()
	for _, operation := range []metav1.ManagedFieldsOperationType{
		metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate,
	} {
		set, err := fieldsOf(live, operation)
		if err != nil {
			return nil, err
		}
		owned = owned.Union(set)
	}
	body, copied := desired.Object, false
	owned.Leaves().Iterate(func(p fieldpath.Path) {
		if has(desired.Object, p) {
			return
		}
		if !copied {
			body, copied = desired.DeepCopy().Object, true
		}
		setNull(body, live.Object, owned, p)
	})
	return body, nil
}

// setNull makes a merge patch take a field out. An item of a list cannot be taken out; its list is replaced.
func setNull(body, live map[string]any, owned *fieldpath.Set, path fieldpath.Path) {
	for i, element := range path {
		if element.FieldName == nil {
			return
		}
		name := *element.FieldName
		next, isMap := body[name].(map[string]any)
		_, says := body[name]
		if i == len(path)-1 || !says && isWhole(live[name], owned, path[:i+1]) {
			body[name] = nil
			return
		}
		if !isMap {
			if says {
				return
			}
			next = map[string]any{}
			body[name] = next
		}
		body = next
		live, _ = live[name].(map[string]any)
	}
}

// isWhole tells whether we own all that is in a value.
func isWhole(live any, owned *fieldpath.Set, at fieldpath.Path) bool {
	fields, isMap := live.(map[string]any)
	if !isMap {
		return owned.Has(at)
	}
	for name, value := range fields {
		if !isWhole(value, owned, append(slices.Clip(at), fieldpath.PathElement{FieldName: &name})) {
			return false
		}
	}
	return true
}
