// Package override applies the overrides of a FleetWorkload to its template. It is pure.
//
// Backends have overrides of their own, with gaps: Karmada v1.17.1 finds containers by the name of the kind only, so
// that its image, command and args overriders are silently nothing for a CloneSet (buildPatchesWithEmptyPredicate in
// pkg/util/overridemanager/imageoverride.go). So every target manifest is made here, once for all backends, and a
// driver tells its backend only the difference (package jsondiff).
package override

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Paths lead to the parts of a manifest that overrides must know; they are a property of the template's kind.
type Paths struct {
	// PodTemplate leads to the object whose spec is a pod's, such as spec, template. It is nil for kinds without one,
	// and empty but not nil for kinds that carry containers in their own spec, such as Pod.
	PodTemplate []string
	// Selector leads to the pods' label selector; empty for kinds without.
	Selector []string
	// Replicas leads to the number of replicas, such as spec, replicas. It is nil for kinds without replicas.
	Replicas []string
	// SelfRemovals lead to the fields by which an object has its cluster remove it; no override may set them.
	SelfRemovals [][]string
}

// Set is a compiled list of overrides. It is immutable and may be used concurrently.
type Set struct {
	overrides []override
}

// override is one compiled entry of spec.overrides.
type override struct {
	matcher backends.Matcher
	// everywhere is true when no cluster can be left out by the selector.
	everywhere bool
	// size is that of the override in JSON, without the selector.
	size int64
	// changes in the order in which they apply.
	changes []change
	// partition is written last, by who knows the kind; nil when the override has none.
	partition *intstr.IntOrString
}

// change is one entry of an override.
type change struct {
	// writes are the places that the change may write, for Validate.
	writes []place
	// passes is how often applying it may go over the whole manifest; see Cost.
	passes int
	// apply returns the changed manifest. It may change manifest, also when it fails.
	apply func(manifest map[string]any) (map[string]any, *failure)
}

// failure is a change that does not apply.
type failure struct {
	err *backends.Error
	// depends are the places whose content the failure is about: with other content there it might not have happened.
	// It is empty when no content could help.
	depends []place
}

// Compile checks what can be checked without a template. The order inside one override is images, commands, args, env,
// resources, labels, annotations, podLabels, podAnnotations, patches. Errors are *backends.Error and name the field.
func Compile(overrides []v1alpha1.Override, paths Paths) (*Set, error) {
	set := &Set{overrides: make([]override, len(overrides))}
	for i := range overrides {
		compiled, err := compile(fmt.Sprintf("spec.overrides[%d]", i), &overrides[i], paths)
		if err != nil {
			return nil, err
		}
		set.overrides[i] = compiled
	}
	return set, nil
}

// copying is the cost of a copy, in those of going over a manifest without copying it.
const copying = 16

// Cost estimates the work of Target and of Validate, in bytes of JSON that are copied: of a template of so many bytes, for the overrides
// that are selected, as Selecting names them, or for each one alone when selected is empty.
func (s *Set) Cost(template int64, selected string) (cost int64) {
	for i, o := range s.overrides {
		if selected != "" && selected[i] == '0' {
			continue
		}
		cost += o.size
		for _, c := range o.changes {
			cost += template * int64(c.passes) / copying
		}
		if selected == "" {
			cost += template
		}
	}
	if strings.Contains(selected, "1") {
		cost += template
	}
	return cost
}

// Size estimates the bytes of JSON of what Target returns.
func (s *Set) Size(template int64, selected string) int64 {
	for i, o := range s.overrides {
		if selected[i] != '0' {
			template += o.size
		}
	}
	return template
}

// Target returns the manifest that a cluster must run: a copy of the template with all overrides that select the
// cluster applied in order, or the template itself when none does. The error is a *backends.Error; it names the field and not the cluster, so that it is the
// same for all clusters that it concerns.
func (s *Set) Target(template *unstructured.Unstructured, cluster backends.Cluster) (*unstructured.Unstructured, error) {
	if !strings.Contains(s.Selecting(cluster), "1") {
		return template, nil
	}
	manifest := runtime.DeepCopyJSON(template.Object)
	for _, o := range s.overrides {
		if !o.matcher.Matches(cluster) {
			continue
		}
		var failed *failure
		if manifest, failed = o.apply(manifest); failed != nil {
			return nil, failed.err
		}
	}
	return &unstructured.Unstructured{Object: manifest}, nil
}

// Selecting names the overrides that select the cluster: with the same ones, Target makes the same manifest.
func (s *Set) Selecting(cluster backends.Cluster) string {
	selecting := make([]byte, len(s.overrides))
	for i, o := range s.overrides {
		selecting[i] = '0'
		if o.matcher.Matches(cluster) {
			selecting[i] = '1'
		}
	}
	return string(selecting)
}

// Partition is what the last override that selects the cluster and has a partition says. It is for the whole manifest, so
// that no other override can come after it. It is nil when none has one.
func (s *Set) Partition(cluster backends.Cluster) (field string, partition *intstr.IntOrString) {
	for i, o := range s.overrides {
		if o.partition != nil && o.matcher.Matches(cluster) {
			field, partition = fmt.Sprintf("spec.overrides[%d].partition", i), o.partition
		}
	}
	return field, partition
}

// Unused names the overrides that select none of the clusters.
func (s *Set) Unused(clusters []backends.Cluster) []string {
	var fields []string
	for i, o := range s.overrides {
		if !slices.ContainsFunc(clusters, o.matcher.Matches) {
			fields = append(fields, fmt.Sprintf("spec.overrides[%d]", i))
		}
	}
	return fields
}

// Validate finds overrides that cannot apply, also those that select no cluster today. It never refuses a list that
// works for some combination of the selectors; some that fail for every cluster it leaves to Target.
//
// Which overrides meet on a cluster is not known. Certain is only that those without a selector are always there. So
// each override is applied to the template as all earlier ones of that sort have left it. If that fails, an earlier
// override with a selector might yet have prepared the ground: the failure is taken for real only if none of those
// writes at, above or below the place where it happened.
func (s *Set) Validate(template *unstructured.Unstructured) error {
	certain := template.Object
	var doubtful []place
	for _, o := range s.overrides {
		result, failed := o.apply(runtime.DeepCopyJSON(certain))
		switch {
		case failed != nil && !related(failed.depends, doubtful):
			return failed.err
		case failed == nil && o.everywhere:
			certain = result
		default:
			for _, c := range o.changes {
				doubtful = append(doubtful, c.writes...)
			}
		}
	}
	return nil
}

func (o override) apply(manifest map[string]any) (map[string]any, *failure) {
	for _, c := range o.changes {
		var failed *failure
		if manifest, failed = c.apply(manifest); failed != nil {
			return nil, failed
		}
	}
	return manifest, nil
}

func compile(field string, o *v1alpha1.Override, paths Paths) (override, error) {
	matcher, err := backends.NewMatcher(o.Clusters)
	if err != nil {
		cause := err
		if inner := errors.Unwrap(err); inner != nil {
			cause = inner // NewMatcher names the field that Field names already
		}
		return override{}, &backends.Error{
			Code:    backends.CodeInvalidOverride,
			Field:   field + ".clusters.selector",
			Message: "the selector cannot be compiled",
			Remedy:  "correct the selector",
			Err:     cause,
		}
	}
	content := *o
	content.Clusters = nil
	encoded, err := json.Marshal(content)
	if err != nil {
		return override{}, invalid(field, "", "a value of a patch is not JSON: "+err.Error(), "correct the value")
	}
	compiled := override{matcher: matcher, everywhere: selectsAll(o.Clusters), partition: o.Partition, size: int64(len(encoded))}
	for _, part := range []func(string, *v1alpha1.Override, Paths) ([]change, error){
		compileContainers, compileMetadata, compilePatches,
	} {
		changes, err := part(field, o, paths)
		if err != nil {
			return override{}, err
		}
		compiled.changes = append(compiled.changes, changes...)
	}
	return compiled, nil
}

// selectsAll tells whether a selector leaves no cluster out, whatever the fleet.
func selectsAll(s *v1alpha1.ClusterSelector) bool {
	return s == nil || len(s.Names) == 0 && len(s.Exclude) == 0 && len(s.Attributes) == 0 &&
		(s.Selector == nil || len(s.Selector.MatchLabels) == 0 && len(s.Selector.MatchExpressions) == 0)
}

// invalid returns the error of an override that is wrong in itself.
func invalid(field, value, message, remedy string) *backends.Error {
	return &backends.Error{
		Code: backends.CodeInvalidOverride, Field: field, Value: shorten(value), Message: message, Remedy: remedy,
	}
}

// inapplicable returns the failure of a change whose ground is missing at some places of the manifest.
func inapplicable(field, value, message, remedy string, depends ...place) *failure {
	return &failure{err: invalid(field, value, message, remedy), depends: depends}
}

// shorten cuts a value for a message.
func shorten(value string) string {
	const limit = 200
	runes := []rune(value)
	if len(runes) <= limit {
		return value
	}
	return string(runes[:limit]) + "..."
}
