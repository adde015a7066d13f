package override

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// tree draws JSON whose keys are those that paths may have.
func tree(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case depth == 0 || n == 0:
		return []any{nil, "", true, int64(1700000000000000001), 0.1, map[string]any{}, []any{}}[r.IntN(7)]
	case n < 5:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = tree(r, depth-1)
		}
		return list
	default:
		m := map[string]any{}
		for range r.IntN(4) {
			m[key(r)] = tree(r, depth-1)
		}
		return m
	}
}

func key(r *rand.Rand) string {
	return []string{"a", "b", "0", "1", "2", "3", "-", "-1", "x/y", "~"}[r.IntN(10)]
}

// TestOperationsAreTheLibrarys: each operation does to a manifest what the library that Karmada applies patches with does, strictly
// configured, and leaves it as it was when it fails.
func TestOperationsAreTheLibrarys(t *testing.T) {
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices, options.AllowMissingPathOnRemove, options.EnsurePathExistsOnAdd = false, false, false
	applied := 0
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		manifest := map[string]any{"a": tree(r, 3), "b": tree(r, 3), "0": tree(r, 2)}
		op := operation{op: []v1alpha1.PatchOp{v1alpha1.PatchOpAdd, v1alpha1.PatchOpRemove, v1alpha1.PatchOpReplace}[r.IntN(3)]}
		pointer := ""
		for range 1 + r.IntN(3) {
			op.path = append(op.path, key(r))
			pointer += "/" + map[string]string{"x/y": "x~1y", "~": "~0"}[op.path[len(op.path)-1]]
			if pointer[len(pointer)-1] == '/' {
				pointer += op.path[len(op.path)-1]
			}
		}
		spec := map[string]any{"op": op.op, "path": pointer}
		if op.op != v1alpha1.PatchOpRemove {
			op.value = tree(r, 1)
			spec["value"] = op.value
		}
		before, _ := json.Marshal(manifest)
		patch, err := json.Marshal([]any{spec})
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		text, err := decoded.ApplyWithOptions(before, options)
		want := text
		if err != nil {
			want = before
		}
		what := fmt.Sprintf("seed %d: %s on %s", seed, patch, before)
		if got := op.apply(manifest); got != (err == nil) {
			t.Fatalf("%s: applied: %v, the library says %v", what, got, err)
		}
		var expected map[string]any
		if err := utiljson.Unmarshal(want, &expected); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, manifest); diff != "" {
			t.Fatalf("%s: -library +got\n%s", what, diff)
		}
		if err == nil {
			applied++
		}
	}
	if applied < 2000 {
		t.Errorf("%d operations applied: the test tells little", applied)
	}
}

// TestValuesAreNotShared: what one manifest gets of a patch's value is not changed by the patches of another one.
func TestValuesAreNotShared(t *testing.T) {
	op := operation{op: v1alpha1.PatchOpAdd, path: place{"x"}, value: map[string]any{"list": []any{"a"}}}
	for range 2 {
		manifest := map[string]any{}
		if !op.apply(manifest) || !(operation{op: v1alpha1.PatchOpAdd, path: place{"x", "list", "0"}, value: "b"}).apply(manifest) {
			t.Fatal("it does not apply")
		}
		if diff := cmp.Diff(map[string]any{"x": map[string]any{"list": []any{"b", "a"}}}, manifest); diff != "" {
			t.Error(diff)
		}
	}
}

// BenchmarkPatches compares patches of a manifest in place with a round trip through the library, in one run.
func BenchmarkPatches(b *testing.B) {
	manifest := map[string]any{"spec": map[string]any{}, "data": map[string]any{}}
	for i := range 10000 {
		manifest["data"].(map[string]any)[fmt.Sprintf("key-%05d", i)] = "some value that is not long"
	}
	op := operation{op: v1alpha1.PatchOpAdd, path: place{"spec", "x"}, value: "y"}
	patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"add","path":"/spec/x","value":"y"}]`))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("in place, on a copy", func(b *testing.B) {
		for b.Loop() {
			op.apply(runtime.DeepCopyJSON(manifest))
		}
	})
	b.Run("through the library", func(b *testing.B) {
		for b.Loop() {
			text, _ := json.Marshal(manifest)
			text, _ = patch.Apply(text)
			var out map[string]any
			_ = utiljson.Unmarshal(text, &out)
		}
	})
}
