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
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// compileMetadata compiles the changes of labels and annotations: of the workload object, then of its pods.
func compileMetadata(field string, o *v1alpha1.Override, paths Paths) ([]change, error) {
	var changes []change
	for _, part := range []struct {
		name     string
		override *v1alpha1.MetadataOverride
		key      string
		ofPods   bool
	}{
		{"labels", o.Labels, "labels", false},
		{"annotations", o.Annotations, "annotations", false},
		{"podLabels", o.PodLabels, "labels", true},
		{"podAnnotations", o.PodAnnotations, "annotations", true},
	} {
		if part.override == nil {
			continue
		}
		at := field + "." + part.name
		if refusal := checkMetadata(at, part.override, rulesOf[part.key]); refusal != nil {
			return nil, refusal
		}
		here := place{"metadata", part.key}
		if part.ofPods {
			if len(paths.PodTemplate) == 0 {
				return nil, invalid(at, "", "the template's kind has no pod template", "change the manifest with patches instead")
			}
			here = append(slices.Clone(place(paths.PodTemplate)), here...)
		}
		if part.name == "podLabels" {
			changes = append(changes, selectorGuard(at, part.override, paths))
		}
		changes = append(changes, metadataChange(at, here, part.override))
	}
	return changes, nil
}

// selectorGuard refuses to change labels that the workload chooses its pods by: with other values its controller would not find them, and
// API servers refuse most of such manifests. Selectors are where the kind says, and beside the pod template, as within the four templates
// of a UnitedDeployment.
func selectorGuard(field string, o *v1alpha1.MetadataOverride, paths Paths) change {
	beside := append(slices.Clone(place(paths.PodTemplate[:len(paths.PodTemplate)-1])), "selector")
	selectors := []place{paths.Selector, beside}
	return change{apply: func(manifest map[string]any) (map[string]any, *failure) {
		for _, key := range append(slices.Sorted(maps.Keys(o.Set)), o.Remove...) {
			for _, at := range selectors {
				if len(at) > 0 && selectsBy(lookup(manifest, at), key) {
					return nil, inapplicable(field, key, "the workload's selector chooses pods by this label",
						"use another key, or change the label in spec.template", at)
				}
			}
		}
		return manifest, nil
	}}
}

// selectsBy tells whether a label selector is about a key.
func selectsBy(selector any, key string) bool {
	s, _ := selector.(map[string]any)
	equal, _ := s["matchLabels"].(map[string]any)
	if _, is := equal[key]; is {
		return true
	}
	expressions, _ := s["matchExpressions"].([]any)
	return slices.ContainsFunc(expressions, func(e any) bool {
		expression, _ := e.(map[string]any)
		return expression["key"] == key
	})
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
func metadataChange(field string, here place, o *v1alpha1.MetadataOverride) change {
	name := jsondiff.Pointer(here...)
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
				return nil, inapplicable(field, "", "what "+name+" is to be in is no map", "correct it in spec.template", here)
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
