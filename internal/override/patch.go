package override

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// patches are the compiled patches of one override.
type patches struct {
	field string
	paths Paths
	specs []v1alpha1.PatchOperation
	// pointers are the parsed paths, and ops what the library applies, in the order of specs.
	pointers []place
	ops      jsonpatch.Patch
}

// compilePatches compiles the patches of an override to one change, because each application costs a round trip of the
// whole manifest through JSON.
func compilePatches(field string, o *v1alpha1.Override, paths Paths) ([]change, error) {
	if len(o.Patches) == 0 {
		return nil, nil
	}
	p := &patches{field: field, paths: paths, specs: o.Patches}
	compiled := change{apply: p.apply}
	for i := range o.Patches {
		pointer, op, err := p.compile(i)
		if err != nil {
			return nil, err
		}
		p.pointers = append(p.pointers, pointer)
		p.ops = append(p.ops, op)
		compiled.writes = append(compiled.writes, written(pointer))
	}
	return []change{compiled}, nil
}

func (p *patches) compile(index int) (place, jsonpatch.Operation, error) {
	spec := p.specs[index]
	at := fmt.Sprintf("%s.patches[%d]", p.field, index)
	pointer, problem := parsePointer(spec.Path)
	if problem != "" {
		return nil, nil, invalid(at+".path", spec.Path, problem,
			"write a JSON pointer such as /spec/template/spec/containers/0/image, with ~1 for a slash and ~0 for a tilde in a key")
	}
	if what, remedy := p.paths.protects(pointer); what != "" {
		return nil, nil, invalid(at+".path", spec.Path, "an override must not change "+what, remedy)
	}
	doc := map[string]any{"op": spec.Op, "path": spec.Path}
	switch spec.Op {
	case v1alpha1.PatchOpAdd, v1alpha1.PatchOpReplace:
		if spec.Value == nil {
			return nil, nil, invalid(at+".value", "", "there is no value to "+string(spec.Op), "set value, or use op remove")
		}
		doc["value"] = spec.Value
	case v1alpha1.PatchOpRemove:
		if spec.Value != nil {
			return nil, nil, invalid(at+".value", "", "remove takes no value", "leave value out, or use op replace")
		}
	default:
		return nil, nil, invalid(at+".op", string(spec.Op), "there is no such operation", "use add, remove or replace")
	}
	encoded, err := json.Marshal([]any{doc})
	if err == nil {
		var decoded jsonpatch.Patch
		if decoded, err = jsonpatch.DecodePatch(encoded); err == nil {
			return pointer, decoded[0], nil
		}
	}
	return nil, nil, invalid(at+".value", "", "the value is not JSON: "+err.Error(), "correct the value")
}

// parsePointer parses an RFC 6901 pointer, or tells what is wrong with it. Empty keys are refused: no Kubernetes object
// has one, and a slash at the end is easily left there.
func parsePointer(path string) (tokens place, problem string) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, "the path does not begin with a slash"
	}
	for token := range strings.SplitSeq(rest, "/") {
		if token == "" {
			return nil, "the path has an empty part"
		}
		plain := strings.NewReplacer("~1", "", "~0", "").Replace(token)
		if strings.Contains(plain, "~") {
			return nil, "the path has a ~ that is followed by neither 0 nor 1"
		}
		tokens = append(tokens, strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
	}
	return tokens, ""
}

func (p *patches) apply(manifest map[string]any) (map[string]any, *failure) {
	result, err := patch(manifest, p.ops)
	if err == nil {
		if what, _ := p.paths.changed(manifest, result); what == "" {
			return result, nil
		}
	}
	// Once more, one by one: the message must name the patch.
	for i := range p.ops {
		if result, err = patch(manifest, p.ops[i:i+1]); err != nil {
			return nil, p.missing(i, manifest, err)
		}
		if what, remedy := p.paths.changed(manifest, result); what != "" {
			return nil, inapplicable(fmt.Sprintf("%s.patches[%d].path", p.field, i), p.specs[i].Path,
				"the patch would change "+what+", which an override must not", remedy)
		}
		manifest = result
	}
	// Each alone was good, so the sequence is.
	return manifest, nil
}

// patch applies RFC 6902 operations strictly: nothing is made that the path leads through, removing what is not there
// fails, and negative list indices, an extension of the library's, are none.
func patch(manifest map[string]any, ops jsonpatch.Patch) (map[string]any, error) {
	doc, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	options.AllowMissingPathOnRemove = false
	options.EnsurePathExistsOnAdd = false
	out, err := ops.ApplyWithOptions(doc, options)
	if err != nil {
		return nil, err
	}
	var result map[string]any
	// Not encoding/json: unstructured content has int64 where that makes float64.
	err = utiljson.Unmarshal(out, &result)
	return result, err
}

// missing words the failure of one patch: which part of its path is not there.
func (p *patches) missing(index int, manifest map[string]any, cause error) *failure {
	spec, pointer := p.specs[index], p.pointers[index]
	var remedy string
	switch spec.Op {
	case v1alpha1.PatchOpAdd:
		remedy = "the path must exist in the template; add its parent first"
	case v1alpha1.PatchOpReplace:
		remedy = "replace only what the template has, or use op add"
	case v1alpha1.PatchOpRemove:
		remedy = "remove only what the template has, or leave the patch out"
	}
	message := absence(manifest, pointer, spec.Op == v1alpha1.PatchOpAdd)
	failed := inapplicable(fmt.Sprintf("%s.patches[%d].path", p.field, index), spec.Path, message, remedy, written(pointer))
	if message == "" {
		failed.err.Message, failed.err.Err = "the operation does not apply", cause
	}
	return failed
}

// absence says which part of a path a manifest lacks, or nothing when it has them all. The last part may be new where
// something is added.
func absence(manifest map[string]any, path place, adding bool) string {
	var value any = manifest
	for i, token := range path {
		here, mayBeNew := jsondiff.Pointer(path[:i]...), adding && i == len(path)-1
		switch container := value.(type) {
		case map[string]any:
			next, ok := container[token]
			if !ok && !mayBeNew {
				return "the manifest has no " + here + jsondiff.Pointer(token)
			}
			value = next
		case []any:
			index, err := strconv.Atoi(token)
			if mayBeNew && (token == "-" || err == nil && index == len(container)) {
				return ""
			}
			if err != nil || index < 0 || index >= len(container) {
				return fmt.Sprintf("%s is a list of %d and has no element %s", here, len(container), token)
			}
			value = container[index]
		default:
			return here + " is neither a map nor a list"
		}
	}
	return ""
}

// isBelow tells whether a path is, or is below, another one.
func isBelow(path, above place) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}
