package karmada

import (
	"strconv"
	"strings"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// robust makes operations hold for the template as Karmada's API server keeps it, which may lack fields of base that
// have their zero value: built-in kinds lose them on the way through their Go types. There, replacing or removing such a
// field is an error, and the cluster's Work is never rendered (applyJSONPatch in pkg/util/overridemanager).
func robust(base map[string]any, ops []jsondiff.Op) []jsondiff.Op {
	out := make([]jsondiff.Op, 0, len(ops))
	for _, op := range ops {
		if op.Op == jsondiff.OpAdd {
			out = append(out, op)
			continue
		}
		value, inMap := lookup(base, op.Path)
		if !inMap || !isZero(value) {
			out = append(out, op)
			continue
		}
		// On a map, add sets the key whether or not it is there.
		out = append(out, jsondiff.Op{Op: jsondiff.OpAdd, Path: op.Path, Value: op.Value})
		if op.Op == jsondiff.OpRemove {
			out = append(out, op)
		}
	}
	return out
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

func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}
