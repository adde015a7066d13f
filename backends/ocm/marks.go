package ocm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// managedByKarmada is on member objects as long as Karmada may write them (karmada pkg/util/constants.go).
const managedByKarmada = "karmada.io/managed"

// mark is a label or an annotation.
type mark struct{ field, key string }

// karmadaMarks are what Karmada puts on a member object (karmada pkg/util/constants.go, ManagedResourceLabels and
// ManagedResourceAnnotations; pkg/detector/claim.go). When it releases one it leaves a few behind (cleanupPolicyClaimMetadata
// in pkg/controllers/execution), and all of them when it is kept from touching it.
var karmadaMarks = []mark{
	{"labels", managedByKarmada},
	{"labels", "work.karmada.io/permanent-id"},
	{"labels", "resourcebinding.karmada.io/permanent-id"},
	{"labels", "clusterresourcebinding.karmada.io/permanent-id"},
	{"labels", "propagationpolicy.karmada.io/permanent-id"},
	{"labels", "clusterpropagationpolicy.karmada.io/permanent-id"},
	{"annotations", "work.karmada.io/conflict-resolution"},
	{"annotations", "work.karmada.io/name"},
	{"annotations", "work.karmada.io/namespace"},
	{"annotations", "resourcebinding.karmada.io/name"},
	{"annotations", "resourcebinding.karmada.io/namespace"},
	{"annotations", "clusterresourcebinding.karmada.io/name"},
	{"annotations", "propagationpolicy.karmada.io/name"},
	{"annotations", "propagationpolicy.karmada.io/namespace"},
	{"annotations", "clusterpropagationpolicy.karmada.io/name"},
	{"annotations", "resourcetemplate.karmada.io/uid"},
	{"annotations", "resourcetemplate.karmada.io/generation"},
	{"annotations", "resourcetemplate.karmada.io/managed-labels"},
	{"annotations", "resourcetemplate.karmada.io/managed-annotations"},
}

// markRules ask for them.
func markRules() []any {
	rules := make([]any, 0, len(karmadaMarks))
	for i, mark := range karmadaMarks {
		rules = append(rules, map[string]any{
			"name": feedbackMarkPrefix + fmt.Sprint(i), "path": ".metadata." + mark.field + "." + escapePath(mark.key),
		})
	}
	return rules
}

// takeMarks puts marks into the manifest, empty: what is applied becomes the agent's, and goes when it is no longer
// applied.
func takeMarks(work *unstructured.Unstructured, keys string) {
	inManifests(work, func(manifest map[string]any) {
		for _, mark := range karmadaMarks {
			if slices.Contains(strings.Split(keys, ","), mark.key) {
				// metadata is there: a manifest has a name.
				_ = unstructured.SetNestedField(manifest, "", "metadata", mark.field, mark.key)
			}
		}
	})
}

// dropMarks takes them out again.
func dropMarks(work *unstructured.Unstructured) {
	inManifests(work, func(manifest map[string]any) {
		for _, mark := range takenBy(manifest) {
			unstructured.RemoveNestedField(manifest, "metadata", mark.field, mark.key)
		}
	})
}

func inManifests(work *unstructured.Unstructured, f func(manifest map[string]any)) {
	manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	for _, m := range manifests {
		if manifest, isMap := m.(map[string]any); isMap {
			f(manifest)
		}
	}
	_ = unstructured.SetNestedSlice(work.Object, manifests, "spec", "workload", "manifests") // renderWork has put it there
}

// takenBy are the marks that a manifest takes over.
func takenBy(manifest map[string]any) (taken []mark) {
	for _, mark := range karmadaMarks {
		value, is, err := unstructured.NestedString(manifest, "metadata", mark.field, mark.key)
		if is && err == nil && value == "" {
			taken = append(taken, mark)
		}
	}
	return taken
}

// isWanted tells whether the template itself has it. Then it is not a mark.
func (m mark) isWanted(manifest map[string]any) bool {
	value, _, _ := unstructured.NestedString(manifest, "metadata", m.field, m.key)
	return value != ""
}

// left are the marks on the member object, with their values.
func (r report) left() map[string]any {
	left := map[string]any{}
	for i, mark := range karmadaMarks {
		if value, is := r.values[feedbackMarkPrefix+fmt.Sprint(i)]; is && !mark.isWanted(r.manifest) {
			left[mark.key] = value
		}
	}
	return left
}

// isManaged tells whether Karmada manages the object still, as far as is known. As long as it does it may put marks back.
func (r report) isManaged() bool {
	value, managed := r.left()[managedByKarmada]
	return managed && value != ""
}

// toTake are the marks to take over, as keys with commas between them; empty when there are none.
func (r report) toTake() string {
	left := r.left()
	maps.DeleteFunc(left, func(_ string, value any) bool { return value == "" })
	return strings.Join(slices.Sorted(maps.Keys(left)), ",")
}

// marks are those that are there still.
func (r report) marks() []string { return slices.Sorted(maps.Keys(r.left())) }
