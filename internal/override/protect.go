package override

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
	"github.com/fleetworkload/fleetworkload/internal/marks"
)

// What to do instead of changing a protected field.
const (
	identityRemedy = "change it in spec.template, for every cluster"
	metadataRemedy = "of metadata only labels and annotations can be overridden"
	marksRemedy    = "use keys of another prefix than " + marks.Prefix
	foreignRemedy  = "leave it out: backends, API servers and kubectl set it themselves"
	replicasRemedy = "give clusters numbers of their own with spec.overrides[].replicas, or shares with spec.placement.division.weights"
	removalRemedy  = "leave it out: what removes itself would be made again, and run again; delete the FleetWorkload when it has done"
	statusRemedy   = "leave it out: every member cluster writes its own"
	smallerRemedy  = "correct the key or the value, or make it smaller"
	stringsRemedy  = "write strings as values"
)

// whose says to whom a label or an annotation belongs that no override may touch, with the remedy; empty when one may.
func whose(key string) (owner, remedy string) {
	switch {
	case marks.Ours(key):
		return "the operator", marksRemedy
	case marks.Orchestrator(key):
		return "Karmada or Open Cluster Management", foreignRemedy
	case marks.Local(key):
		return "whoever made the object on a cluster", foreignRemedy
	default:
		return "", ""
	}
}

// protects tells whether a path is at or below a protected field: which one, and the remedy. Besides the object's
// identity, its status, its replicas, what makes it remove itself, our marks and those of backends, that is all of metadata but labels and annotations: a finalizer or
// an owner reference that only some clusters have makes deletions hang, or deletes the workload (law 1).
func (p Paths) protects(path place) (what, remedy string) {
	if len(p.Replicas) > 0 && isBelow(path, p.Replicas) {
		return jsondiff.Pointer(p.Replicas...), replicasRemedy
	}
	for _, removal := range p.SelfRemovals {
		if isBelow(path, removal) {
			return jsondiff.Pointer(removal...), removalRemedy
		}
	}
	switch path[0] {
	case "apiVersion", "kind":
		return "/" + path[0], identityRemedy
	case "status":
		return "/status", statusRemedy
	case "metadata":
		switch {
		case len(path) == 1:
		case path[1] == "name", path[1] == "namespace":
			return jsondiff.Pointer("metadata", path[1]), identityRemedy
		case path[1] != "labels" && path[1] != "annotations":
			return jsondiff.Pointer("metadata", path[1]), metadataRemedy
		case len(path) > 2:
			if owner, remedy := whose(path[2]); owner != "" {
				return jsondiff.Pointer("metadata", path[1], path[2]), remedy
			}
		}
	}
	return "", ""
}

// mayChange tells whether a patch on a path that is not protected may change a protected field all the same, from above or beside it.
func (p Paths) mayChange(path place) bool {
	return path[0] == "metadata" || slices.ContainsFunc(p.fixed(), func(fixed []string) bool { return isBelow(fixed, path) })
}

// fixed lead to the fields of the kind's own that no override may change.
func (p Paths) fixed() [][]string {
	if len(p.Replicas) == 0 {
		return p.SelfRemovals
	}
	return append([][]string{p.Replicas}, p.SelfRemovals...)
}

// protected is a copy of what of a manifest changed compares.
func (p Paths) protected(manifest map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		if value, is := manifest[key]; is {
			out[key] = value
		}
	}
	out["metadata"] = runtime.DeepCopyJSONValue(manifest["metadata"])
	for _, path := range p.fixed() {
		if value := lookup(manifest, path); value != nil {
			_ = unstructured.SetNestedField(out, value, path...) // nothing is in its way
		}
	}
	return out
}

// changed tells whether a protected field differs: which one, and the remedy. It finds what protects cannot, such as a
// patch that replaces the whole spec.
func (p Paths) changed(before, after map[string]any) (what, remedy string) {
	for _, key := range []string{"apiVersion", "kind", "status"} {
		if !same(before[key], after[key]) {
			return p.protects(place{key})
		}
	}
	for _, path := range p.fixed() {
		if !same(lookup(before, path), lookup(after, path)) {
			return p.protects(place(path))
		}
	}
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace"} {
		if !same(was[key], is[key]) {
			return p.protects(place{"metadata", key})
		}
	}
	if len(jsondiff.Diff(besides(was), besides(is))) > 0 {
		return "/metadata", metadataRemedy
	}
	for _, key := range []string{"labels", "annotations"} {
		entries, _, err := unstructured.NestedStringMap(after, "metadata", key)
		if err != nil {
			return "/metadata/" + key + " to something else than strings", stringsRemedy
		}
		old, _, _ := unstructured.NestedStringMap(before, "metadata", key)
		if problem := rulesOf[key].wrong(old, entries); problem != "" {
			return "/metadata/" + key + " to what no API server takes: " + problem, smallerRemedy
		}
		if !maps.Equal(marked(was[key]), marked(is[key])) {
			return "the marks of the operator and of backends in /metadata/" + key, "patch single keys, such as /metadata/" + key + "/<key>"
		}
	}
	return "", ""
}

// same tells whether two values are the same in JSON; a patch's round trip may change the type of a number.
func same(a, b any) bool {
	return len(jsondiff.Diff(map[string]any{"": a}, map[string]any{"": b})) == 0
}

func lookup(manifest map[string]any, path []string) any {
	value, _, err := unstructured.NestedFieldNoCopy(manifest, path...)
	if err != nil {
		return nil
	}
	return value
}

// besides returns the entries of metadata that are neither labels nor annotations.
func besides(metadata map[string]any) map[string]any {
	rest := maps.Clone(metadata)
	delete(rest, "labels")
	delete(rest, "annotations")
	return rest
}

// marked returns the entries of labels or annotations that no override may touch.
func marked(entries any) map[string]any {
	out := map[string]any{}
	all, _ := entries.(map[string]any)
	for key, value := range all {
		if owner, _ := whose(key); owner != "" {
			out[key] = value
		}
	}
	return out
}
