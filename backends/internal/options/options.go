// Package options checks and merges spec.backendOptions for drivers: partial specs of a backend's own objects. Authors may set what a
// driver lists, and nothing else: whatever decides what an object is, whose it is, where it goes and when stays the operator's.
package options

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Option is one of backendOptions.
type Option struct {
	// Field is its place in a FleetWorkload.
	Field string
	// Allowed are the fields that may be set, as paths from the option on, such as "manifestConfigs". Below one of them anything is.
	Allowed []string
	// Instead says what to use for fields that are not allowed, by path; those that are not listed have no substitute.
	Instead map[string]string
}

// Decode reads an option; nil when it is empty. Names of fields count as they are written: "Priority" is not "priority". An error is a
// *backends.Error with CodeInvalidOptions.
func (o Option) Decode(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var patch map[string]any
	if err := utiljson.Unmarshal(raw.Raw, &patch); err != nil {
		return nil, o.Invalid("", "is not an object", err)
	}
	return patch, o.check("", patch)
}

// check refuses fields that are not allowed. What is not an object in the middle of a path would replace what is below.
func (o Option) check(at string, patch map[string]any) error {
	keys := make([]string, 0, len(patch))
	for key := range patch {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		path := strings.TrimPrefix(at+"."+key, ".")
		below := slices.ContainsFunc(o.Allowed, func(a string) bool { return strings.HasPrefix(a, path+".") })
		child, isObject := patch[key].(map[string]any)
		switch {
		case slices.Contains(o.Allowed, path):
		case below && isObject:
			if err := o.check(path, child); err != nil {
				return err
			}
		default:
			return o.refused(path)
		}
	}
	return nil
}

func (o Option) refused(path string) error {
	remedy := "leave it out; what can be set here: " + strings.Join(o.Allowed, ", ")
	if instead := o.Instead[path]; instead != "" {
		remedy = instead
	}
	return &backends.Error{
		Code: backends.CodeInvalidOptions, Field: o.Field + "." + path, Message: "cannot be set here: the operator decides it", Remedy: remedy,
	}
}

// Invalid is an error about the option, or a field of it.
func (o Option) Invalid(path, message string, err error) error {
	field := o.Field
	if path != "" {
		field += "." + path
	}
	return &backends.Error{
		Code: backends.CodeInvalidOptions, Field: field, Message: message,
		Remedy: "correct the option; its fields are those of the backend's own object", Err: err,
	}
}

// Merge applies the patch to a rendered spec (RFC 7386), and checks that the backend's type takes the result.
func (o Option) Merge(spec, patch map[string]any, typed any) (map[string]any, error) {
	original, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the rendered spec: %w", o.Field, err)
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the option: %w", o.Field, err)
	}
	merged, err := jsonpatch.MergePatch(original, encoded)
	if err != nil {
		return nil, o.Invalid("", "cannot be merged into the rendered spec", err)
	}
	strict, err := kjson.UnmarshalStrict(merged, typed)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, o.Invalid("", "does not fit the backend's type", err)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(merged, &out); err != nil {
		return nil, fmt.Errorf("%s: read the merged spec: %w", o.Field, err)
	}
	return out, nil
}
