package ocm

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is remembered of a ManifestWork holds for that version and for what it was compared with, and for nothing else.
func TestReports(t *testing.T) {
	var r reports
	calls := 0
	equal := func(answer bool) func(_, _ *unstructured.Unstructured) bool {
		return func(_, _ *unstructured.Unstructured) bool { calls++; return answer }
	}
	live, wanted := newObject(manifestWorkGVK, "c", "w"), newObject(manifestWorkGVK, "c", "w")
	annotate(wanted, annotationHash, "h1")
	live.SetUID("u")
	live.SetResourceVersion("1")
	for _, step := range []struct {
		name   string
		change func()
		answer bool
		want   int
	}{
		{"unequal is asked", func() {}, false, 1},
		{"unequal is asked again", func() {}, true, 2},
		{"equal is remembered", func() {}, false, 2},
		{"another mark", func() { annotate(wanted, annotationHeld, "true") }, true, 3},
		{"another hash", func() { annotate(wanted, annotationHash, "h2") }, true, 4},
		{"another version", func() { live.SetResourceVersion("2") }, true, 5},
		{"remembered again", func() {}, false, 5},
		{"forgotten", func() { r.forget("u") }, true, 6},
		{"without a UID nothing is remembered", func() { live.SetUID("") }, true, 7},
		{"still nothing", func() {}, true, 8},
	} {
		step.change()
		got := r.equal(live, wanted, equal(step.answer))
		if calls != step.want {
			t.Errorf("%s: asked %d times, want %d", step.name, calls, step.want)
		}
		if calls == step.want && !got && step.answer {
			t.Errorf("%s: not equal", step.name)
		}
	}
}

// A report is of the version it was read from.
func TestReportsRead(t *testing.T) {
	var r reports
	work := newObject(manifestWorkGVK, "c", "w")
	work.SetUID("u")
	for _, version := range []string{"1", "2"} {
		work.SetResourceVersion(version)
		annotate(work, annotationHeld, version)
		for range 2 {
			read, err := r.read(work)
			if err != nil || read.ours.held != version {
				t.Errorf("version %s: got %+v, %v", version, read.ours, err)
			}
		}
	}
}

// What a cluster serves is of the version it was read from.
func TestReportsServed(t *testing.T) {
	var r reports
	work := newObject(manifestWorkGVK, "c", "w")
	work.SetUID("u")
	for version, served := range map[string]string{"1": "v1", "2": "v1beta1"} {
		work.SetResourceVersion(version)
		work.Object["status"] = map[string]any{"resourceStatus": map[string]any{"manifests": []any{map[string]any{
			"resourceMeta": map[string]any{"kind": "CustomResourceDefinition"},
			"statusFeedback": map[string]any{"values": []any{
				map[string]any{"name": served, "fieldValue": map[string]any{"type": "Boolean", "boolean": true}},
			}},
		}}}}
		for range 2 {
			if got := r.servedVersions(work); !slices.Equal(got, []string{served}) {
				t.Errorf("version %s: got %v, want %s", version, got, served)
			}
			delete(work.Object, "status") // it is not read again
		}
	}
}
