package interpreter

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// unitedTemplates lead to the four kinds of subsets that a UnitedDeployment can have.
func unitedTemplates() []string {
	return []string{
		"spec.template.cloneSetTemplate.spec.template", "spec.template.advancedStatefulSetTemplate.spec.template",
		"spec.template.statefulSetTemplate.spec.template", "spec.template.deploymentTemplate.spec.template",
	}
}

// unitedDeployment is OpenKruise's UnitedDeployment in v1alpha1 (kruise-api apps/v1alpha1). It has no count of available
// pods, in no version; ready ones stand in. Its partitions are numbers a subset, and its status holds what they amount to
// in a map, which OCM cannot feed back: so they are worked out from the spec, and are unknown where the controller
// decides on the size of subsets.
func unitedDeployment() Definition {
	return Definition{
		Group: kruiseGroup, Version: "v1alpha1", Kind: "UnitedDeployment", Resource: "uniteddeployments",
		Replicas: "spec.replicas", PodTemplates: unitedTemplates(), Selector: "spec.selector",
		InPlace: []InPlace{cloneSetInPlace("spec.template.cloneSetTemplate.spec"), statefulSetInPlace("spec.template.advancedStatefulSetTemplate.spec")},
		Status: []Field{
			observedGeneration(), told("replicas"), counter("readyReplicas"), told("updatedReplicas"), counter("updatedReadyReplicas"),
			required("currentRevision", Equal),
			{Name: "updatedRevision", At: "updateStatus.updatedRevision", Type: TypeString, Combine: Equal},
			stringField("labelSelector", Equal), conditionField("SubsetFailure", Any),
		},
		Spec: []Input{
			{Name: nameDesired, At: "spec.replicas", Type: TypeInt, Derive: "unitedReplicas"},
			{Name: "kept", Type: TypeInt, Derive: "unitedKept"},
			{Name: "subsets", At: "spec.topology", Type: TypeObject},
		},
		Lets: []Let{
			{Name: "expected", Type: TypeInt, Expr: "desired - min(kept, desired)"},
			{Name: "surplus", Type: TypeInt, Expr: "replicas - desired"},
		},
		Rules: append(append([]Rule{
			{When: `conditionSubsetFailure == "True"`, Health: v1alpha1.HealthDegraded, Reason: ReasonReplicaFailure,
				Message: "a subset cannot be created or updated"},
		}, incomplete("replicas", "updatedReplicas")...), []Rule{
			{When: "updatedReplicas < expected && has(kept)", Health: v1alpha1.HealthProgressing, Reason: ReasonUpdating,
				Message: "{updatedReplicas} of {expected} updated"},
			{When: "replicas < desired", Health: v1alpha1.HealthProgressing, Reason: ReasonCreating,
				Message: "{replicas} of {desired} created"},
			{When: "replicas > desired", Health: v1alpha1.HealthProgressing, Reason: ReasonScalingDown,
				Message: "{surplus} more than {desired} wanted"},
			{When: "readyReplicas < desired", Health: v1alpha1.HealthProgressing, Reason: ReasonUnavailable,
				Message: "{readyReplicas} of {desired} ready"},
			{When: "replicas < readyReplicas || replicas < updatedReplicas || updatedReplicas < updatedReadyReplicas",
				Health: v1alpha1.HealthUnknown, Reason: ReasonContradictory,
				Message: "the numbers contradict each other: {replicas} pods, {updatedReplicas} updated, {updatedReadyReplicas} of them ready, {readyReplicas} ready"},
			{When: "!has(kept) && has(subsets) && updatedReplicas < desired", Health: v1alpha1.HealthUnknown, Reason: ReasonPartitionUnknown,
				Message: "{updatedReplicas} of {desired} updated; how many the partitions keep old depends on subsets whose size its controller decides"},
			{When: "updatedReplicas < expected", Health: v1alpha1.HealthProgressing, Reason: ReasonUpdating,
				Message: "{updatedReplicas} of {expected} updated"},
			{When: "updatedReplicas < desired", Health: v1alpha1.HealthHealthy, Reason: ReasonPartitionReached,
				Message: "update held at its partitions: {updatedReplicas} of {desired} updated as asked"},
			{Health: v1alpha1.HealthHealthy, Reason: ReasonComplete},
		}...),
		Counts: Counts{
			Desired: nameDesired, Replicas: "replicas", Ready: "readyReplicas", Updated: "updatedReplicas", Available: "readyReplicas",
			Done: "min(updatedReplicas, expected)", Total: "expected",
		},
		Partition:     &Partition{Path: "spec.updateStrategy.manualUpdate.partitions", Meaning: PartitionSubsets},
		CheckReplicas: checkUnitedReplicas,
	}
}

// derivations are inputs that no path leads to. Lua for Karmada implements them under the same names.
var derivations = map[string]func(manifest map[string]any, desired value) (value, error){
	"unitedReplicas": unitedReplicas,
	"unitedKept":     unitedKept,
}

// subset is one subset of a UnitedDeployment, as far as its size and partition go.
type subset struct {
	name string
	// replicas is not set for subsets that share what is left.
	replicas value
	elastic  bool
}

var (
	pathSubsets    = Path{{Key: "spec"}, {Key: "topology"}, {Key: "subsets"}}
	pathPartitions = Path{{Key: "spec"}, {Key: "updateStrategy"}, {Key: "manualUpdate"}, {Key: "partitions"}}
	pathUpdateType = Path{{Key: "spec"}, {Key: "updateStrategy"}, {Key: "type"}}
	pathDeployment = Path{{Key: "spec"}, {Key: "template"}, {Key: "deploymentTemplate"}}
)

func readSubsets(manifest map[string]any) ([]subset, error) {
	raw, err := pathSubsets.lookup(manifest)
	if err != nil || raw == nil {
		return nil, err
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: want a list, got %s", pathSubsets, shape(raw))
	}
	subsets := make([]subset, 0, len(list))
	for i, element := range list {
		object, ok := element.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: want a list of objects, got %s in it", pathSubsets, shape(element))
		}
		name, _ := object["name"].(string)
		replicas, err := convert(object["replicas"], TypePartition)
		if err != nil || name == "" || (replicas.s == "" && replicas.i < 0) {
			return nil, fmt.Errorf("%s: subset %d needs a name, and a number or a percentage of replicas", pathSubsets, i)
		}
		subsets = append(subsets, subset{name: name, replicas: replicas,
			elastic: object["minReplicas"] != nil || object["maxReplicas"] != nil})
	}
	return subsets, nil
}

// unitedReplicas is what a UnitedDeployment without spec.replicas means: the sum of its subsets, when all have numbers.
func unitedReplicas(manifest map[string]any, _ value) (value, error) {
	subsets, err := readSubsets(manifest)
	if err != nil || len(subsets) == 0 {
		return value{}, err
	}
	total := int64(0)
	for _, s := range subsets {
		if !s.replicas.set || s.replicas.s != "" {
			return value{}, nil
		}
		total += s.replicas.i
	}
	if total > maxInt {
		return value{}, fmt.Errorf("%s: %d replicas are more than any workload can have", pathSubsets, total)
	}
	return value{i: total, set: true}, nil
}

func checkUnitedReplicas(manifest map[string]any, n int32) error {
	total, err := unitedReplicas(manifest, value{})
	if err != nil {
		return err
	}
	if total.set && total.i != int64(n) {
		return fmt.Errorf("all subsets have numbers of replicas, which sum up to %d, so that OpenKruise refuses %d; "+
			"give percentages, or leave replicas of one subset out", total.i, n)
	}
	return nil
}

var wholePercentage = regexp.MustCompile(`^[0-9]{1,3}%$`)

// share is a subset's number of replicas: percentages are rounded half up
// (pkg/controller/uniteddeployment/uniteddeployment_controller_utils.go, ParseSubsetReplicas).
func (s subset) share(desired int64) (int64, error) {
	if s.replicas.s == "" {
		return s.replicas.i, nil
	}
	if !wholePercentage.MatchString(s.replicas.s) {
		return 0, fmt.Errorf("replicas %q of subset %s are neither a number nor a percentage", shorten(s.replicas.s), shorten(s.name))
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(s.replicas.s, "%"))
	if err != nil || percent > 100 {
		return 0, fmt.Errorf("replicas %q of subset %s are not from 0%% to 100%%", shorten(s.replicas.s), shorten(s.name))
	}
	return int64(math.Floor(float64(desired)*float64(percent)/100 + 0.5)), nil
}

// unitedKept is how many pods the partitions keep old: of each subset as many as its partition says and it has
// (uniteddeployment_controller.go, calcNextPartitions). Subsets that share what is left may have one pod more or less
// (allocator.go, normalAllocate); elastic ones have what the controller gives them. It is unknown where that matters.
// Subsets that are Deployments have no partition.
func unitedKept(manifest map[string]any, desired value) (value, error) {
	kept := value{set: true}
	if template, err := pathDeployment.lookup(manifest); err != nil || template != nil {
		return kept, err
	}
	partitions, err := readPartitions(manifest)
	if err != nil || len(partitions) == 0 {
		return kept, err
	}
	subsets, err := readSubsets(manifest)
	if err != nil || !desired.set {
		return value{}, err
	}
	sizes, err := unitedSizes(subsets, desired.i)
	if err != nil {
		return value{}, err
	}
	for i, s := range subsets {
		partition := partitions[s.name]
		switch size := sizes[i]; {
		case partition <= size.least:
			kept.i += partition
		case size.least == size.most:
			kept.i += size.least
		default:
			return value{}, nil
		}
	}
	return kept, nil
}

// readPartitions are the partitions by subset that are not zero.
func readPartitions(manifest map[string]any) (map[string]int64, error) {
	strategy, err := pathUpdateType.lookup(manifest)
	if err != nil || (strategy != nil && strategy != "" && strategy != "Manual") {
		return nil, err
	}
	raw, err := pathPartitions.lookup(manifest)
	if err != nil || raw == nil {
		return nil, err
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: want an object, got %s", pathPartitions, shape(raw))
	}
	partitions := map[string]int64{}
	for name, v := range object {
		n, err := convert(v, TypeInt)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", pathPartitions, shorten(name), err)
		}
		if n.i > 0 {
			partitions[name] = n.i
		}
	}
	return partitions, nil
}

type size struct{ least, most int64 }

// unitedSizes are the bounds of each subset's replicas.
func unitedSizes(subsets []subset, desired int64) ([]size, error) {
	sizes := make([]size, len(subsets))
	open, left := int64(0), desired
	for i, s := range subsets {
		if s.elastic {
			for j := range sizes {
				sizes[j] = size{0, desired}
			}
			return sizes, nil
		}
		if !s.replicas.set {
			open++
			continue
		}
		n, err := s.share(desired)
		if err != nil {
			return nil, err
		}
		sizes[i] = size{n, n}
		left -= n
	}
	for i, s := range subsets {
		if s.replicas.set {
			continue
		}
		left := max(left, 0)
		sizes[i] = size{left / open, (left + open - 1) / open}
	}
	return sizes, nil
}
