package karmada

import (
	"strconv"
	"strings"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// robust makes the operations that turn base into target hold for the template as Karmada's API server keeps it. There,
// replacing or removing what is missing, or adding below it, is an error, and the cluster's Work is never rendered
// (applyJSONPatch in pkg/util/overridemanager). Ancestors of replicasPath are never set as a whole: Karmada has written
// the replicas before.
func robust(base, target map[string]any, replicasPath []string, ops []jsondiff.Op) []jsondiff.Op {
	whole := map[string]bool{}
	for _, op := range ops {
		if at := setWhole(base, replicasPath, op.Path); at != "" {
			whole[at] = true
		}
	}
	out := make([]jsondiff.Op, 0, len(ops))
	done := map[string]bool{}
	for _, op := range ops {
		at := shortestAbove(op.Path, whole)
		if at == "" {
			out = append(out, holding(base, op)...)
			continue
		}
		if !done[at] {
			done[at] = true
			value, inMap := lookup(target, at)
			out = append(out, jsondiff.Op{Op: setting(inMap), Path: at, Value: value})
		}
	}
	return out
}

// setting is the operation that sets a value whether or not it is there. List elements always are.
func setting(inMap bool) string {
	if inMap {
		return jsondiff.OpAdd
	}
	return jsondiff.OpReplace
}

// holding are the operations for one whose place has its zero value in base: built-in kinds lose such fields on the way
// through their Go types.
func holding(base map[string]any, op jsondiff.Op) []jsondiff.Op {
	value, inMap := lookup(base, op.Path)
	if op.Op == jsondiff.OpAdd || !inMap || !jsondiff.IsZero(value) {
		return []jsondiff.Op{op}
	}
	// On a map, add sets the key whether or not it is there.
	add := jsondiff.Op{Op: jsondiff.OpAdd, Path: op.Path, Value: op.Value}
	if op.Op == jsondiff.OpRemove {
		return []jsondiff.Op{add, op}
	}
	return []jsondiff.Op{add}
}

// setWhole is the object above a place that is to be set as a whole, or "". It is one that holds nothing in base, and
// may be lost; or one whose type changes: an API server has filled in the fields of the old type, such as
// strategy.rollingUpdate of a Deployment, and refuses them with the new one.
func setWhole(base map[string]any, replicasPath []string, path string) string {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' || isAbove(path[:i], replicasPath) {
			continue
		}
		value, inMap := lookup(base, path[:i])
		if _, isMap := value.(map[string]any); isMap && inMap && jsondiff.IsZero(value) {
			return path[:i]
		}
	}
	parent, isType := strings.CutSuffix(path, "/type")
	// The keys of metadata are labels and annotations, some of them Karmada's own.
	if !isType || parent == "" || strings.HasPrefix(path, "/metadata/") || isAbove(parent, replicasPath) {
		return ""
	}
	return parent
}

func isAbove(path string, replicasPath []string) bool {
	return strings.HasPrefix(jsondiff.Pointer(replicasPath...)+"/", path+"/")
}

func shortestAbove(path string, of map[string]bool) string {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' && of[path[:i]] {
			return path[:i]
		}
	}
	return ""
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// lookup returns the value at a JSON pointer, and whether its parent is a map.
func lookup(root any, pointer string) (value any, inMap bool) {
	value = root
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		token = unescape.Replace(token)
		switch parent := value.(type) {
		case map[string]any:
			value, inMap = parent[token], true
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			value, inMap = parent[i], false
		default:
			return nil, false
		}
	}
	return value, inMap
}
