package override

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// patches are the compiled patches of one override.
type patches struct {
	field string
	paths Paths
	specs []v1alpha1.PatchOperation
	// ops are what is applied, in the order of specs.
	ops []operation
	// risky is true when one of them may change a protected field, from above.
	risky bool
}

func compilePatches(field string, o *v1alpha1.Override, paths Paths) ([]change, error) {
	if len(o.Patches) == 0 {
		return nil, nil
	}
	p := &patches{field: field, paths: paths, specs: o.Patches}
	compiled := change{apply: p.apply}
	for i := range o.Patches {
		op, err := p.compile(i)
		if err != nil {
			return nil, err
		}
		p.ops = append(p.ops, op)
		p.risky = p.risky || paths.mayChange(op.path)
		compiled.writes = append(compiled.writes, written(op.path))
		compiled.passes += p.passes(op)
	}
	return []change{compiled}, nil
}

// passes is how much of a manifest an operation goes over: a list whose elements move, or all that is protected.
func (p *patches) passes(op operation) int {
	switch _, err := strconv.Atoi(op.path[len(op.path)-1]); {
	case p.paths.mayChange(op.path):
		return copying
	case err == nil:
		return 1
	default:
		return 0
	}
}

func (p *patches) compile(index int) (operation, error) {
	spec := p.specs[index]
	at := fmt.Sprintf("%s.patches[%d]", p.field, index)
	pointer, problem := parsePointer(spec.Path)
	if problem != "" {
		return operation{}, invalid(at+".path", spec.Path, problem,
			"write a JSON pointer such as /spec/template/spec/containers/0/image, with ~1 for a slash and ~0 for a tilde in a key")
	}
	if what, remedy := p.paths.protects(pointer); what != "" {
		return operation{}, invalid(at+".path", spec.Path, "an override must not change "+what, remedy)
	}
	op := operation{op: spec.Op, path: pointer}
	switch spec.Op {
	case v1alpha1.PatchOpAdd, v1alpha1.PatchOpReplace:
		if spec.Value == nil {
			return operation{}, invalid(at+".value", "", "there is no value to "+string(spec.Op), "set value, or use op remove")
		}
		if err := utiljson.Unmarshal(spec.Value.Raw, &op.value); err != nil {
			return operation{}, invalid(at+".value", "", "the value is not JSON: "+err.Error(), "correct the value")
		}
	case v1alpha1.PatchOpRemove:
		if spec.Value != nil {
			return operation{}, invalid(at+".value", "", "remove takes no value", "leave value out, or use op replace")
		}
	default:
		return operation{}, invalid(at+".op", string(spec.Op), "there is no such operation", "use add, remove or replace")
	}
	return op, nil
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
	var original map[string]any
	if p.risky {
		original = runtime.DeepCopyJSON(manifest)
	}
	for i, op := range p.ops {
		if op.apply(manifest) {
			continue
		}
		if p.risky {
			return p.oneByOne(original)
		}
		return nil, p.missing(i, manifest)
	}
	if p.risky {
		if what, _ := p.paths.changed(original, manifest); what != "" {
			return p.oneByOne(original)
		}
	}
	return manifest, nil
}

// oneByOne applies the patches once more: the message must name the first one that does not apply or changes a protected field.
func (p *patches) oneByOne(manifest map[string]any) (map[string]any, *failure) {
	for i, op := range p.ops {
		risky, before := p.paths.mayChange(op.path), map[string]any(nil)
		if risky {
			before = p.paths.protected(manifest)
		}
		if !op.apply(manifest) {
			return nil, p.missing(i, manifest)
		}
		if !risky {
			continue
		}
		if what, remedy := p.paths.changed(before, manifest); what != "" {
			return nil, inapplicable(fmt.Sprintf("%s.patches[%d].path", p.field, i), p.specs[i].Path,
				"the patch would change "+what+", which an override must not", remedy)
		}
	}
	// Each alone was good, so the sequence is.
	return manifest, nil
}

// missing words the failure of one patch: which part of its path is not there.
func (p *patches) missing(index int, manifest map[string]any) *failure {
	spec, pointer := p.specs[index], p.ops[index].path
	var remedy string
	switch spec.Op {
	case v1alpha1.PatchOpAdd:
		remedy = "the path must exist in the template; add its parent first"
	case v1alpha1.PatchOpReplace:
		remedy = "replace only what the template has, or use op add"
	case v1alpha1.PatchOpRemove:
		remedy = "remove only what the template has, or leave the patch out"
	}
	message := absence(manifest, pointer)
	return inapplicable(fmt.Sprintf("%s.patches[%d].path", p.field, index), spec.Path, message, remedy, written(pointer))
}

// absence says which part of a path a manifest lacks, where an operation on it does not apply.
func absence(manifest map[string]any, path place) string {
	var value any = manifest
	for i, token := range path {
		here := jsondiff.Pointer(path[:i]...)
		switch container := value.(type) {
		case map[string]any:
			next, ok := container[token]
			if !ok {
				return "the manifest has no " + here + jsondiff.Pointer(token)
			}
			value = next
		case []any:
			index, err := strconv.Atoi(token)
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
