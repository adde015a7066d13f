package override

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// operation is a compiled operation of RFC 6902. It is applied in place: the libraries for it take text, so that every one of some
// thousand operations would cost a round trip of the whole manifest through JSON.
type operation struct {
	op    v1alpha1.PatchOp
	path  place
	value any
}

// apply changes the manifest, strictly: nothing is made that the path leads through, and what is removed or replaced must be there.
// It is false, and the manifest as it was, when the operation does not apply.
func (o operation) apply(manifest map[string]any) bool {
	_, ok := o.in(manifest, o.path)
	return ok
}

// in returns the container, changed at a path below it.
func (o operation) in(container any, path place) (any, bool) {
	key, last := path[0], len(path) == 1
	switch c := container.(type) {
	case map[string]any:
		child, there := c[key]
		switch {
		case !last:
			changed, ok := o.in(child, path[1:])
			if ok {
				c[key] = changed
			}
			return c, ok
		case !there && o.op != v1alpha1.PatchOpAdd:
			return c, false
		case o.op == v1alpha1.PatchOpRemove:
			delete(c, key)
		default:
			c[key] = runtime.DeepCopyJSONValue(o.value)
		}
		return c, c != nil
	case []any:
		if last && key == "-" && o.op == v1alpha1.PatchOpAdd {
			return append(c, runtime.DeepCopyJSONValue(o.value)), true
		}
		i, err := strconv.Atoi(key)
		places := len(c)
		if last && o.op == v1alpha1.PatchOpAdd {
			places++ // behind the last element, too
		}
		if err != nil || i < 0 || i >= places {
			return c, false
		}
		return o.inList(c, i, path[1:])
	default:
		return c, false
	}
}

func (o operation) inList(list []any, i int, below place) ([]any, bool) {
	switch {
	case len(below) > 0:
		changed, ok := o.in(list[i], below)
		if ok {
			list[i] = changed
		}
		return list, ok
	case o.op == v1alpha1.PatchOpAdd:
		return slices.Insert(list, i, runtime.DeepCopyJSONValue(o.value)), true
	case o.op == v1alpha1.PatchOpRemove:
		return slices.Delete(list, i, i+1), true
	default:
		list[i] = runtime.DeepCopyJSONValue(o.value)
		return list, true
	}
}
