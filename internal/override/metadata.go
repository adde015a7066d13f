package override

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// compileMetadata compiles the changes of the workload object's labels and annotations.
func compileMetadata(field string, o *v1alpha1.Override, _ Paths) ([]change, error) {
	var changes []change
	for _, part := range []struct {
		name     string
		override *v1alpha1.MetadataOverride
		rules    metadataRules
	}{
		{"labels", o.Labels, rulesOf["labels"]},
		{"annotations", o.Annotations, rulesOf["annotations"]},
	} {
		if part.override == nil {
			continue
		}
		at := field + "." + part.name
		if refusal := checkMetadata(at, part.override, part.rules); refusal != nil {
			return nil, refusal
		}
		changes = append(changes, metadataChange(at, part.name, part.override))
	}
	return changes, nil
}

// metadataRules return what is wrong with a key and with a value.
type metadataRules struct {
	key, value func(string) []string
}

var rulesOf = map[string]metadataRules{
	"labels":      {validation.IsQualifiedName, validation.IsValidLabelValue},
	"annotations": {isAnnotationKey, func(string) []string { return nil }},
}

// isAnnotationKey is the API server's rule (ValidateAnnotations in k8s.io/apimachinery/pkg/api/validation): unlike with
// labels, the prefix may have capitals.
func isAnnotationKey(key string) []string {
	return validation.IsQualifiedName(strings.ToLower(key))
}

func checkMetadata(field string, o *v1alpha1.MetadataOverride, rules metadataRules) *backends.Error {
	for _, key := range slices.Sorted(maps.Keys(o.Set)) {
		at := fmt.Sprintf("%s.set[%s]", field, key)
		if refusal := checkKey(at, key, rules); refusal != nil {
			return refusal
		}
		if problems := rules.value(o.Set[key]); len(problems) > 0 {
			return invalid(at, o.Set[key], strings.Join(problems, "; "), "correct the value")
		}
		if slices.Contains(o.Remove, key) {
			return invalid(at, key, "the key is both set and removed", "do one of the two")
		}
	}
	for i, key := range o.Remove {
		if refusal := checkKey(fmt.Sprintf("%s.remove[%d]", field, i), key, rules); refusal != nil {
			return refusal
		}
	}
	return nil
}

func checkKey(field, key string, rules metadataRules) *backends.Error {
	if owner, remedy := whose(key); owner != "" {
		return invalid(field, key, "the key belongs to "+owner, remedy)
	}
	if problems := rules.key(key); len(problems) > 0 {
		return invalid(field, key, strings.Join(problems, "; "), "correct the key")
	}
	return nil
}

// metadataChange leaves an empty map behind and does not remove it: somebody else's keys may be in the same map on the
// cluster, and a driver that sends the difference would remove them, too.
func metadataChange(field, name string, o *v1alpha1.MetadataOverride) change {
	here := place{"metadata", name}
	return change{
		writes: []place{here},
		passes: copying,
		apply: func(manifest map[string]any) (map[string]any, *failure) {
			entries, _, err := unstructured.NestedStringMap(manifest, here...)
			if err != nil {
				return nil, inapplicable(field, "", "the manifest's "+name+" are no map of strings", "correct them in spec.template", here)
			}
			if entries == nil {
				if len(o.Set) == 0 {
					return manifest, nil
				}
				entries = map[string]string{}
			}
			for _, key := range o.Remove {
				delete(entries, key)
			}
			maps.Copy(entries, o.Set)
			if isTooLarge(entries) {
				return nil, inapplicable(field, "", "the manifest's "+name+" would be larger than 256 KiB", smallerRemedy, here)
			}
			if err := unstructured.SetNestedStringMap(manifest, entries, here...); err != nil {
				return nil, inapplicable(field, "", "the manifest's metadata is no map", "correct it in spec.template", here)
			}
			return manifest, nil
		},
	}
}

// isTooLarge tells whether an API server refuses annotations for their size. Labels never get there by their own rules.
func isTooLarge(entries map[string]string) bool {
	return apivalidation.ValidateAnnotationsSize(entries) != nil
}

// wrong tells what an API server would refuse of labels or annotations that have changed.
func (r metadataRules) wrong(was, is map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if value, had := was[key]; had && value == is[key] {
			continue
		}
		if problems := append(r.key(key), r.value(is[key])...); len(problems) > 0 {
			return fmt.Sprintf("%q: %s", shorten(key), strings.Join(problems, "; "))
		}
	}
	if isTooLarge(is) {
		return "larger than 256 KiB"
	}
	return ""
}
