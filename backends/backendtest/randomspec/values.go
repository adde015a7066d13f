package randomspec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

type object = map[string]any

// random draws the parts of a spec. The same seed draws the same.
type random struct{ *rand.Rand }

func (r random) percent(n int) bool { return r.IntN(100) < n }

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

// keys that need escapes in JSON pointers, in HTML, or nowhere.
var keys = []string{"a", "b", "example.com/a", "x~y", "~1", "~0/", "a/b~c", "0", "-", "<&>", "ünï", "with space", `quote"d`}

var words = []string{"", "a", "true", "0", "1e3", "null", "~", "<b>&amp;</b>", "línea\nnew\ttab", "\u2028", "😀", `"q"`, "$(A)"}

// value is any JSON of some depth. Numbers are those that API servers keep as they are; lists have scalars only, since
// Karmada's Lua knows neither null nor the difference of [] and {} in lists, and no API mixes them.
func (r random) value(depth int) any {
	if depth > 0 && r.percent(40) {
		if r.percent(40) {
			list := make([]any, r.IntN(4))
			for i := range list {
				list[i] = pick[any](r, true, pick(r, words...), int64(-7), 0.5)
			}
			return list
		}
		return r.tree(depth - 1)
	}
	return pick[any](r, nil, true, false, "", pick(r, words...), int64(0), int64(-7), int64(1)<<53-1, 0.5, object{}, []any{})
}

func (r random) tree(depth int) object {
	tree := object{}
	for range r.IntN(4) {
		tree[pick(r, keys...)] = r.value(depth)
	}
	return tree
}

// sometimes sets keys, each with a chance in percent.
func (r random) sometimes(into object, percent int, values object) {
	for _, key := range sorted(values) {
		if r.percent(percent) {
			into[key] = values[key]
		}
	}
}

var metadataKeys = []string{"team", "example.com/tier", "a.b/c_d", "Upper", "x"}

// labels are valid, and empty at times.
func (r random) labels() object {
	labels := object{}
	for range r.IntN(3) {
		labels[pick(r, metadataKeys...)] = pick[any](r, "", "v", "1.2.3", "a-B_c")
	}
	return labels
}

func (r random) annotations() object {
	annotations := object{}
	for range r.IntN(3) {
		annotations[pick(r, metadataKeys...)] = pick(r, words...)
	}
	return annotations
}

func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // everything here is JSON
	}
	return raw
}

func (r random) name() string {
	return pick(r, "web", "a", "shop.front", fmt.Sprint("x-1.", r.IntN(100)))
}
