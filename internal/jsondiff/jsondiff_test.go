package jsondiff_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

type object = map[string]any

func TestDiff(t *testing.T) {
	cases := map[string]struct {
		from, to object
		want     []jsondiff.Op
	}{
		"equal objects need nothing, also when a number has another type": {
			from: object{"a": int64(1), "b": []any{object{"c": nil}}},
			to:   object{"a": float64(1), "b": []any{object{"c": nil}}},
		},
		"keys are added, removed and replaced in the order of their names": {
			from: object{"gone": "x", "kept": "x", "other": "x"},
			to:   object{"added": "x", "kept": "x", "other": "y"},
			want: []jsondiff.Op{
				{Op: "add", Path: "/added", Value: "x"},
				{Op: "remove", Path: "/gone"},
				{Op: "replace", Path: "/other", Value: "y"},
			},
		},
		"only the changed leaf of nested maps and lists is replaced": {
			from: object{"spec": object{"containers": []any{object{"image": "a"}, object{"image": "b", "name": "n"}}}},
			to:   object{"spec": object{"containers": []any{object{"image": "a"}, object{"image": "c", "name": "n"}}}},
			want: []jsondiff.Op{{Op: "replace", Path: "/spec/containers/1/image", Value: "c"}},
		},
		"a list of another length is replaced as a whole": {
			from: object{"args": []any{"a"}},
			to:   object{"args": []any{"a", "b"}},
			want: []jsondiff.Op{{Op: "replace", Path: "/args", Value: []any{"a", "b"}}},
		},
		"a value of another type is replaced as a whole": {
			from: object{"a": object{"b": "c"}, "d": []any{"e"}, "f": nil, "g": "1"},
			to:   object{"a": []any{}, "d": object{}, "f": false, "g": int64(1)},
			want: []jsondiff.Op{
				{Op: "replace", Path: "/a", Value: []any{}},
				{Op: "replace", Path: "/d", Value: object{}},
				{Op: "replace", Path: "/f", Value: false},
				{Op: "replace", Path: "/g", Value: int64(1)},
			},
		},
		"null is a value, not an absence": {
			from: object{"a": "x", "b": nil},
			to:   object{"a": nil, "c": nil},
			want: []jsondiff.Op{
				{Op: "replace", Path: "/a"},
				{Op: "remove", Path: "/b"},
				{Op: "add", Path: "/c"},
			},
		},
		"a nil map or list is null, and an empty one is not": {
			from: object{"a": object(nil), "b": object{}, "c": []any(nil), "d": []any{}},
			to:   object{"a": object{}, "b": object(nil), "c": []any{}, "d": []any(nil)},
			want: []jsondiff.Op{
				{Op: "replace", Path: "/a", Value: object{}},
				{Op: "replace", Path: "/b", Value: object(nil)},
				{Op: "replace", Path: "/c", Value: []any{}},
				{Op: "replace", Path: "/d", Value: []any(nil)},
			},
		},
		"slashes and tildes in keys are escaped": {
			from: object{"annotations": object{"a.io/x": "1", "~1": "1"}},
			to:   object{"annotations": object{"a.io/x": "2", "~1": "2"}},
			want: []jsondiff.Op{
				{Op: "replace", Path: "/annotations/a.io~1x", Value: "2"},
				{Op: "replace", Path: "/annotations/~01", Value: "2"},
			},
		},
		"an emptied map stays, so that the keys of others in it do": {
			from: object{"labels": object{"a": "b"}},
			to:   object{"labels": object{}},
			want: []jsondiff.Op{{Op: "remove", Path: "/labels/a"}},
		},
		"what is under an empty key is replaced as a whole": {
			from: object{"": object{"a": object{"b": "c"}}},
			to:   object{"": object{"a": object{"b": "d"}}},
			want: []jsondiff.Op{{Op: "replace", Path: "/", Value: object{"a": object{"b": "d"}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := jsondiff.Diff(tc.from, tc.to)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Diff (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpMarshalsNullButNotForRemovals(t *testing.T) {
	got, err := json.Marshal([]jsondiff.Op{{Op: "remove", Path: "/a"}, {Op: "add", Path: "/b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":null}]`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPointer(t *testing.T) {
	if got, want := jsondiff.Pointer("metadata", "labels", "a/~b"), "/metadata/labels/a~1~0b"; got != want {
		t.Errorf("Pointer: got %s, want %s", got, want)
	}
}

func FuzzDiff(f *testing.F) {
	for seed := range int64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		from, to := randomPair(seed)
		ops := jsondiff.Diff(from, to)
		if again := jsondiff.Diff(from, to); !cmp.Equal(ops, again) {
			t.Errorf("the same input gives other operations:\n%s", cmp.Diff(ops, again))
		}
		if same := jsondiff.Diff(to, to); len(same) > 0 {
			t.Errorf("an object differs from itself: %v", same)
		}
		got, err := applyPatch(from, ops)
		if err != nil {
			t.Fatalf("apply %v to %v: %v", ops, from, err)
		}
		if diff := cmp.Diff(plain(t, to), got); diff != "" {
			t.Errorf("operations %v on %v (-want +got):\n%s", ops, from, diff)
		}
	})
}

func applyPatch(from object, ops []jsondiff.Op) (object, error) {
	if ops == nil {
		ops = []jsondiff.Op{}
	}
	encoded, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	out, err := patch.Apply(doc)
	if err != nil {
		return nil, err
	}
	var got object
	return got, json.Unmarshal(out, &got)
}

// plain returns the object as encoding/json reads it, so that numbers compare.
func plain(t *testing.T, o object) object {
	t.Helper()
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var got object
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// randomPair returns a random object, and either an edited copy of it or another one.
func randomPair(seed int64) (from, to object) {
	rng := rand.New(rand.NewSource(seed))
	from = randomMap(rng, 4)
	if rng.Intn(4) == 0 {
		return from, randomMap(rng, 4)
	}
	return from, edit(rng, from).(object)
}

var keys = []string{"a", "b", "spec", "0", "1", "-", "", "/", "~", "~1", "a/b", "m~n", "ü<>&", `"`, "~01//", "with space"}

func randomMap(rng *rand.Rand, depth int) object {
	m := object{}
	for range rng.Intn(6) {
		m[keys[rng.Intn(len(keys))]] = randomValue(rng, depth-1)
	}
	return m
}

func randomValue(rng *rand.Rand, depth int) any {
	kinds := 8
	if depth <= 0 {
		kinds = 6
	}
	switch rng.Intn(kinds) {
	case 0:
		return nil
	case 1:
		return rng.Intn(2) == 0
	case 2:
		return rng.Int63() - rng.Int63()
	case 3:
		return []float64{0, 1, 1.5, -2e30, 1e-9}[rng.Intn(5)]
	case 4:
		return strings.Repeat(keys[rng.Intn(len(keys))], rng.Intn(3))
	case 5:
		return int64(rng.Intn(3))
	case 6:
		return randomMap(rng, depth)
	default:
		list := make([]any, rng.Intn(4))
		for i := range list {
			list[i] = randomValue(rng, depth-1)
		}
		return list
	}
}

// edit returns a copy with some values changed, so that the two have much in common.
func edit(rng *rand.Rand, v any) any {
	switch x := v.(type) {
	case object:
		m := object{}
		for _, key := range keys { // not ranging over x: its order is random
			if value, ok := x[key]; ok && rng.Intn(8) > 0 {
				m[key] = edit(rng, value)
			}
		}
		if rng.Intn(4) == 0 {
			m[keys[rng.Intn(len(keys))]] = randomValue(rng, 2)
		}
		return m
	case []any:
		list := []any{}
		for _, value := range x {
			if rng.Intn(10) > 0 {
				list = append(list, edit(rng, value))
			}
		}
		return list
	default:
		if rng.Intn(5) == 0 {
			return randomValue(rng, 2)
		}
		return v
	}
}

func ExampleDiff() {
	ops := jsondiff.Diff(
		object{"metadata": object{"annotations": object{"fleetworkload.io/revision": "1"}}},
		object{"metadata": object{"annotations": object{"fleetworkload.io/revision": "2"}}},
	)
	fmt.Println(ops)
	// Output: [{replace /metadata/annotations/fleetworkload.io~1revision 2}]
}
