package karmada

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	// workSuffix is the longest that Karmada puts behind a workload's name for its Works: a hash of 32 bits in decimal
	// (names.GenerateWorkName in pkg/util/names).
	workSuffix = len("-4294967295")
	// maxPolicy leaves room for metadata in what etcd takes by default, 1.5 MiB.
	maxPolicy = 1400 << 10
	// maxRecord leaves room for the other annotations of a Work.
	maxRecord = apivalidation.TotalAnnotationSizeLimitB - 8<<10
)

// checkDrift refuses to leave what others have changed on members. Karmada has no switch for that of one object: to suspend dispatching would
// also keep it from making anew what is gone, and to open it for a change puts back what was changed elsewhere.
func checkDrift(q backends.Query) error {
	if q.Drift != v1alpha1.DriftPolicyReport {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeUnsupported, Field: "spec.drift", Value: string(q.Drift),
		Message: "Karmada puts back what others change on clusters, at once, and cannot be told to leave one object as it is",
		Remedy:  "set it to Correct, or leave it out; a backend of type ocm can do Report",
	}
}

// checkNames refuses a workload whose name leaves no room for what Karmada puts behind it: nothing would be made of it,
// and only Karmada's log would say so.
func checkNames(w backends.Workload) error {
	suffix := max(len(bindingName(w))-len(w.Name), workSuffix)
	if len(w.Name)+suffix <= validation.DNS1123SubdomainMaxLength {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeUnsupported, Field: "spec.template.metadata.name", Value: w.Name,
		Message: "Karmada's names for this workload would be too long",
		Remedy:  fmt.Sprintf("choose a name of at most %d characters", validation.DNS1123SubdomainMaxLength-suffix),
	}
}

// exact are the kinds whose manifests Karmada's Go reads and writes throughout (pkg/resourceinterpreter/default/native). What members
// keep of others, or their replicas, it decides in Lua, whose numbers are of floating point (pkg/resourceinterpreter/customized).
var exact = map[schema.GroupVersionKind]bool{
	{Group: "apps", Version: "v1", Kind: "Deployment"}: true,
	{Group: "batch", Version: "v1", Kind: "Job"}:       true,
}

// checkNumbers refuses whole numbers that Karmada would change on their way to a member.
func checkNumbers(desired backends.Desired) error {
	if exact[desired.Workload.GVK] {
		return nil
	}
	refuse := func(field string, n int64) error {
		return &backends.Error{
			Code: backends.CodeUnsupported, Field: field, Value: strconv.FormatInt(n, 10),
			Message: fmt.Sprintf("Karmada would send another number, %.0f: it has no whole numbers beyond 2^53 in a %s", float64(n), desired.Workload.GVK.Kind),
			Remedy:  "write a string where the kind takes one, choose a number that is smaller, or use another backend",
		}
	}
	if n, found := inexact(desired.Template.Object); found {
		return refuse("spec.template", n)
	}
	seen := map[*unstructured.Unstructured]bool{}
	for _, t := range desired.Targets {
		if t.Manifest == nil || seen[t.Manifest] {
			continue
		}
		seen[t.Manifest] = true
		if n, found := inexact(t.Manifest.Object); found {
			return refuse("spec.overrides", n)
		}
	}
	return nil
}

// inexact finds a whole number that floating point does not hold.
func inexact(value any) (n int64, found bool) {
	switch v := value.(type) {
	case int64:
		if -1<<53 <= v && v <= 1<<53 {
			return 0, false
		}
		return v, big.NewFloat(float64(v)).Cmp(new(big.Float).SetInt64(v)) != 0 // converting back would overflow at the ends
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if n, found = inexact(v[key]); found {
				return n, true
			}
		}
	case []any:
		for _, element := range v {
			if n, found = inexact(element); found {
				return n, true
			}
		}
	}
	return 0, false
}

// checkRecord refuses overrides that Karmada can store but not carry out: it puts all that it overrides for a cluster
// into an annotation of the Work (RecordAppliedOverrides in pkg/controllers/binding/common.go). A cluster is in one of the rules.
func checkRecord(rules []any) error {
	largest := 0
	for _, rule := range rules {
		size, err := recordSize(rule)
		if err != nil {
			return err
		}
		largest = max(largest, size)
	}
	if largest <= maxRecord {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeUnsupported, Field: "spec.overrides",
		Message: fmt.Sprintf("the overrides of one cluster amount to %d bytes, and Karmada has room for %d", largest, maxRecord),
		Remedy:  "put what is long into spec.template, or into a ConfigMap on the clusters",
	}
}

func recordSize(rule any) (int, error) {
	object, _ := rule.(map[string]any)
	raw, err := json.Marshal(object["overriders"])
	if err != nil {
		return 0, fmt.Errorf("encode override rule: %w", err)
	}
	return len(raw), nil
}

func checkPolicySize(rules []any) error {
	raw, err := json.Marshal(rules)
	if err != nil {
		return fmt.Errorf("encode override rules: %w", err)
	}
	if len(raw) <= maxPolicy {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeUnsupported, Field: "spec.overrides",
		Message: fmt.Sprintf("what differs between the clusters amounts to %d bytes, and Karmada has room for %d", len(raw), maxPolicy),
		Remedy:  "override less, or the same on more clusters: clusters that differ from the template in the same way share the room",
	}
}
