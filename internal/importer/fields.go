package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// An object of another tool is read into its own type, and every field that a FleetWorkload says is taken out of that. What is left in the
// end is told, field by field, so that nothing is forgotten, and fields that this version does not know of neither.

// read decodes the spec of an object, and tells of fields that the type does not have.
func (d *draft) read(obj *unstructured.Unstructured, into any) error {
	raw, err := json.Marshal(obj.Object["spec"])
	if err != nil {
		return fmt.Errorf("%s: %w", title(obj), err)
	}
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return fmt.Errorf("%s: spec: %w", title(obj), err)
	}
	for _, problem := range unknown {
		field := problem.Error()
		var named kjson.FieldError
		if errors.As(problem, &named) {
			field = "spec." + named.FieldPath()
		}
		d.cannot(Unexpressed{
			Object: title(obj), Field: field,
			Reason: "this version of kubectl-fw does not know the field", Instead: "look up what it does, and see whether the FleetWorkload needs it",
		})
	}
	return nil
}

// peek decodes the spec of an object of which only a part is wanted. What cannot be read is as if it were absent.
func peek(obj *unstructured.Unstructured, into any) {
	if raw, err := json.Marshal(obj.Object["spec"]); err == nil {
		_ = utiljson.Unmarshal(raw, into)
	}
}

// remark says what becomes of a field that is left.
type remark struct {
	// field is its path without indices.
	field string
	// reason and instead are those of Unexpressed. Where instead is empty the reason is but a note, and where both are, nothing is told.
	reason, instead string
}

// rest tells of what is left of a spec. The longest remark that fits counts.
func (d *draft) rest(obj *unstructured.Unstructured, spec any, remarks []remark) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("%s: %w", title(obj), err)
	}
	var left map[string]any
	if err := utiljson.Unmarshal(raw, &left); err != nil {
		return fmt.Errorf("%s: %w", title(obj), err)
	}
	d.walk(obj, left, "spec", "spec", remarks)
	return nil
}

func (d *draft) walk(obj *unstructured.Unstructured, value any, path, bare string, remarks []remark) {
	if jsondiff.IsZero(value) {
		return
	}
	i := slices.IndexFunc(remarks, func(r remark) bool { return r.field == bare })
	if i >= 0 {
		d.remark(obj, path, value, remarks[i])
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			d.walk(obj, v[key], path+"."+key, bare+"."+key, remarks)
		}
	case []any:
		for i, element := range v {
			d.walk(obj, element, fmt.Sprintf("%s[%d]", path, i), bare, remarks)
		}
	default:
		d.remark(obj, path, value, remark{reason: "a FleetWorkload has no such field", instead: "do without, or leave the workload where it is"})
	}
}

func (d *draft) remark(obj *unstructured.Unstructured, path string, value any, r remark) {
	switch {
	case r.reason == "":
	case r.instead == "":
		d.note("%s: %s %s: %s", title(obj), path, shorten(value), r.reason)
	default:
		d.cannot(Unexpressed{Object: title(obj), Field: path, Value: shorten(value), Reason: r.reason, Instead: r.instead})
	}
}

// plain is a value as decoded JSON; nil when it cannot be one.
func plain(value any) (out any) {
	raw, err := json.Marshal(value)
	if err != nil || utiljson.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// clean is a manifest without what is not its author's, as the operator would send it.
func clean(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out, _ := plan.Bare(obj)
	unstructured.RemoveNestedField(out.Object, "metadata", "namespace")
	if pruned, is := withoutNulls(out.Object).(map[string]any); is {
		out.Object = pruned
	}
	for _, key := range []string{"labels", "annotations"} {
		if entries, found, err := unstructured.NestedMap(out.Object, "metadata", key); found && err == nil && len(entries) == 0 {
			unstructured.RemoveNestedField(out.Object, "metadata", key) // overrides leave an empty one behind
		}
	}
	return out
}

// withoutNulls leaves nulls out, which say as much as absence, such as the creationTimestamp that Go clients write into pod templates.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if child != nil {
				out[key] = withoutNulls(child)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = withoutNulls(child)
		}
		return out
	default:
		return value
	}
}
