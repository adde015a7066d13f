// Package jsondiff tells the difference of two JSON objects as RFC 6902 operations. It is pure and imports nothing but
// the standard library, so that drivers may use it.
//
// The operations are those that Karmada's plaintext overriders know: add, remove and replace. Karmada applies them with
// github.com/evanphx/json-patch/v5 (applyJSONPatch in pkg/util/overridemanager/overridemanager.go, v1.17.1), which
// differs from RFC 6902 in one way that matters here: a path cannot lead through the empty key, because the library
// takes it for the object itself. Values under an empty key are therefore replaced as a whole.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Operations of RFC 6902 that Diff uses.
const (
	// OpAdd sets a key that is not there.
	OpAdd = "add"
	// OpRemove removes a key that is there.
	OpRemove = "remove"
	// OpReplace sets a key or a list element that is there.
	OpReplace = "replace"
)

// Op is one operation of RFC 6902.
type Op struct {
	// Op is OpAdd, OpRemove or OpReplace.
	Op string
	// Path is an RFC 6901 pointer.
	Path string
	// Value is any JSON value, null included; it is nil for OpRemove.
	Value any
}

// MarshalJSON leaves the value out of a removal and keeps a null one otherwise.
func (o Op) MarshalJSON() ([]byte, error) {
	doc := map[string]any{"op": o.Op, "path": o.Path}
	if o.Op != OpRemove {
		doc["value"] = o.Value
	}
	return json.Marshal(doc)
}

// Diff returns the operations that turn from into to, each with the smallest scope: maps are compared key by key, lists
// of equal length element by element; lists of different length, and values of different type, are replaced as a
// whole. The same input gives the same operations, in the order of the sorted keys. Equal input gives none.
//
// The operations also hold for a document that has more keys than from, such as one that an API server defaulted; but a
// map that is missing in from is added as a whole, and would replace one in that document. So a caller that patches
// somebody's labels or annotations keeps at least one of them in from.
//
// Both must consist of JSON values as encoding/json or unstructured content have them; numbers are equal when they are
// written equally in JSON. Values of the operations are parts of to and must not be changed.
func Diff(from, to map[string]any) []Op {
	return diffMaps(nil, "", from, to)
}

// escape writes keys into JSON pointers (RFC 6901, section 3). Building it costs more than using it.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// Escape returns a key as it stands in a JSON pointer (RFC 6901, section 3).
func Escape(key string) string {
	return escape.Replace(key)
}

// Pointer returns the JSON pointer of a field path.
func Pointer(keys ...string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteByte('/')
		b.WriteString(Escape(key))
	}
	return b.String()
}

func diffMaps(ops []Op, path string, from, to map[string]any) []Op {
	if reflect.ValueOf(from).Pointer() == reflect.ValueOf(to).Pointer() {
		return ops // manifests of different clusters share most of what they have
	}
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, both := from[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		was, had := from[key]
		is, has := to[key]
		at := path + "/" + Escape(key)
		switch {
		case !has:
			ops = append(ops, Op{Op: OpRemove, Path: at})
		case !had:
			ops = append(ops, Op{Op: OpAdd, Path: at, Value: is})
		case key == "" && !equal(was, is): // nothing can be addressed below it: see the package comment
			ops = append(ops, Op{Op: OpReplace, Path: at, Value: is})
		case key != "":
			ops = diffValues(ops, at, was, is)
		}
	}
	return ops
}

func diffValues(ops []Op, path string, from, to any) []Op {
	switch is := to.(type) {
	case map[string]any:
		if was, ok := from.(map[string]any); ok && (was == nil) == (is == nil) {
			return diffMaps(ops, path, was, is)
		}
	case []any:
		if was, ok := from.([]any); ok && len(was) == len(is) && (was == nil) == (is == nil) {
			if len(is) == 0 || &was[0] == &is[0] {
				return ops
			}
			for i := range is {
				ops = diffValues(ops, path+"/"+strconv.Itoa(i), was[i], is[i])
			}
			return ops
		}
	}
	if equal(from, to) {
		return ops
	}
	return append(ops, Op{Op: OpReplace, Path: path, Value: to})
}

// equal tells whether two values are written equally in JSON. A nil map or list is written as null.
func equal(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok && x != nil && y != nil {
			return maps.EqualFunc(x, y, equal)
		}
	case []any:
		if y, ok := b.([]any); ok && x != nil && y != nil {
			return slices.EqualFunc(x, y, equal)
		}
	}
	ja, errA := json.Marshal(a)
	jb, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(ja, jb)
}
