// Package ssa writes backend objects so that what others have put there stays, and only when they differ (law 3): by
// server-side apply, or by the two requests that do the same for less. Both drivers use it.
package ssa

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fleetworkload/fleetworkload/backends"
)

// unknownField is in what API servers say of a field that is not in the schema. They say it as an internal error.
const unknownField = "failed to create typed patch object"

// FieldOwner is the manager under which the operator owns fields of backend objects.
const FieldOwner = "fleetworkload"

// Apply makes the object on the server equal to desired where desired says something, and takes out what we set
// before and desired lacks. live is the object as cached, nil when there is none. It writes only when UpToDate is
// false, and takes fields over from other managers.
func Apply(ctx context.Context, c client.Client, live, desired *unstructured.Unstructured) (changed bool, err error) {
	if UpToDate(live, desired) {
		return false, nil
	}
	if _, err := Send(ctx, c, desired); err != nil {
		return false, err
	}
	return true, nil
}

// Send applies desired without looking at what is there, and returns the object as the server has it now.
func Send(ctx context.Context, c client.Client, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	sent := desired.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if err != nil {
		op := fmt.Sprintf("apply %s %s", desired.GetKind(), client.ObjectKeyFromObject(desired))
		if strings.Contains(err.Error(), unknownField) {
			return nil, &backends.Error{
				Code: backends.CodeRejected, Message: op,
				Remedy: "correct the template, or the override that leads to this manifest", Err: err,
			}
		}
		return nil, backends.Classify(op, err)
	}
	return sent, nil
}

// UpToDate tells whether an apply of desired would change live: every value of desired is there, and no field that we
// own is missing from desired.
func UpToDate(live, desired *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	owned, err := fieldsOf(live, metav1.ManagedFieldsOperationApply)
	if err != nil {
		return false
	}
	kept, copied := desired, false
	stale := false
	owned.Leaves().Iterate(func(p fieldpath.Path) {
		switch {
		case stale:
		case !has(desired.Object, p):
			stale = true
		case !has(live.Object, p):
			if !copied {
				kept, copied = desired.DeepCopy(), true
			}
			removeZero(kept.Object, p)
		}
	})
	return !stale && Contains(live.Object, kept.Object)
}

// removeZero takes a zero value out. Servers drop those of built-in kinds, such as an empty value of an environment
// variable, but keep us as the field's owner: that is how it shows that the value was sent and nothing is missing.
func removeZero(obj any, path fieldpath.Path) {
	last := len(path) - 1
	if last < 0 || path[last].FieldName == nil {
		return
	}
	value, found := lookup(obj, path[:last])
	parent, isMap := value.(map[string]any)
	if !found || !isMap {
		return
	}
	switch parent[*path[last].FieldName] {
	case "", false, int64(0), float64(0):
		delete(parent, *path[last].FieldName)
	}
}

// Contains tells whether every value of want is in have. Lists must have equal lengths. Quantities in different
// notations, such as 1 and 1000m, are equal, since API servers rewrite them.
func Contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, value := range w {
			if value == nil {
				continue
			}
			if !Contains(h[key], value) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return len(w) == 0 && have == nil
		}
		for i := range w {
			if !Contains(h[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return equalScalar(have, want)
	}
}

func equalScalar(a, b any) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x.Cmp(y) == 0
}

// sane are the strings that are read as quantities. Reading one with a large exponent, as a hash may look, takes minutes and gigabytes
// (apimachinery pkg/api/resource/quantity.go rounds by writing all digits out).
var sane = regexp.MustCompile(`^[+-]?[0-9.]{1,40}([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

func number(v any) (resource.Quantity, bool) {
	switch t := v.(type) {
	case string, int64, int32, int, float64:
		text := fmt.Sprint(t)
		if !sane.MatchString(text) {
			return resource.Quantity{}, false
		}
		q, err := resource.ParseQuantity(text)
		return q, err == nil
	default:
		return resource.Quantity{}, false
	}
}

// fieldsOf are the fields that we own by the operation.
func fieldsOf(live *unstructured.Unstructured, operation metav1.ManagedFieldsOperationType) (*fieldpath.Set, error) {
	owned := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != FieldOwner || entry.Operation != operation ||
			entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.Raw)); err != nil {
			return nil, fmt.Errorf("read managed fields of %s: %w", client.ObjectKeyFromObject(live), err)
		}
		owned = owned.Union(set)
	}
	return owned, nil
}

// has tells whether the path leads to something in obj. Set elements are compared by value, map elements by the key
// fields that obj gives: an API server fills in defaulted key fields, such as a port's protocol.
func has(obj any, path fieldpath.Path) bool {
	_, found := lookup(obj, path)
	return found
}

func lookup(obj any, path fieldpath.Path) (value any, found bool) {
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			m, ok := obj.(map[string]any)
			if !ok {
				return nil, false
			}
			if obj, ok = m[*element.FieldName]; !ok {
				return nil, false
			}
		case element.Key != nil:
			item, ok := findByKey(obj, *element.Key)
			if !ok {
				return nil, false
			}
			obj = item
		case element.Value != nil:
			return nil, containsValue(obj, *element.Value)
		case element.Index != nil:
			list, ok := obj.([]any)
			if !ok || *element.Index >= len(list) {
				return nil, false
			}
			obj = list[*element.Index]
		}
	}
	return obj, true
}

func findByKey(obj any, key value.FieldList) (any, bool) {
	list, _ := obj.([]any)
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		match := true
		for _, field := range key {
			if got, given := m[field.Name]; given && !value.Equals(value.NewValueInterface(got), field.Value) {
				match = false
			}
		}
		if match {
			return item, true
		}
	}
	return nil, false
}

func containsValue(obj any, want value.Value) bool {
	list, _ := obj.([]any)
	for _, item := range list {
		if value.Equals(value.NewValueInterface(item), want) {
			return true
		}
	}
	return false
}
