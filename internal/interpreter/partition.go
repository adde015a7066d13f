package interpreter

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/internal/division"
)

// Meaning is what the number of a partition means.
type Meaning string

const (
	// PartitionKept is how many pods stay on the old revision.
	PartitionKept Meaning = "kept"
	// PartitionOrdinal is the first ordinal that is updated.
	PartitionOrdinal Meaning = "ordinal"
	// PartitionSubsets is how many pods stay old in each subset, by the subset's name.
	PartitionSubsets Meaning = "subsets"
)

// Partition is where a kind keeps part of its pods on the old revision.
type Partition struct {
	// Path leads to it.
	Path    string
	Meaning Meaning
	// Percent is true when percentages are allowed; Down when they are rounded down.
	Percent, Down bool
	// Start leads to the first ordinal, for PartitionOrdinal.
	Start string
}

// KeptOld is how many of n pods a partition keeps on the old revision, as the kind's controller rounds.
func KeptOld(kind *Kind, partition intstr.IntOrString, n int32) (int32, error) {
	down := kind.Partition != nil && kind.Partition.Down
	kept, err := keptOld(fromIntOrString(partition), int64(n), down)
	return int32(kept), err
}

func fromIntOrString(p intstr.IntOrString) value {
	if p.Type == intstr.String {
		if p.StrVal == "" {
			return value{s: "?", set: true} // no number and no percentage
		}
		return value{s: p.StrVal, set: true}
	}
	return value{i: int64(p.IntVal), set: true}
}

// SetPartition writes into a cluster's manifest that kept pods stay old, in the kind's own terms.
func SetPartition(kind *Kind, manifest *unstructured.Unstructured, kept int32) error {
	p := kind.Partition
	if p == nil {
		return fmt.Errorf("%s has no partition", kind.Definition.Kind)
	}
	n := int64(max(kept, 0))
	switch p.Meaning {
	case PartitionOrdinal:
		raw, _, err := unstructured.NestedFieldNoCopy(manifest.Object, split(p.Start)...)
		if err != nil {
			return err
		}
		start, err := convert(raw, TypeInt)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Start, err)
		}
		n += start.i
	case PartitionSubsets:
		return setUnitedPartitions(manifest.Object, n)
	case PartitionKept:
	}
	return unstructured.SetNestedField(manifest.Object, n, split(p.Path)...)
}

// OverridePartition writes a partition, a number of pods or a percentage of them, into a cluster's manifest. What the kind
// cannot say itself, such as a percentage of a StatefulSet, is worked out for the manifest's replicas.
func OverridePartition(kind *Kind, manifest *unstructured.Unstructured, partition intstr.IntOrString) error {
	p := kind.Partition
	if p == nil {
		return fmt.Errorf("a %s has no partition", kind.Definition.Kind)
	}
	if p.Percent {
		var value any = partition.StrVal
		if partition.Type == intstr.Int {
			value = int64(partition.IntVal)
		}
		return unstructured.SetNestedField(manifest.Object, value, split(p.Path)...)
	}
	if partition.Type == intstr.Int {
		return SetPartition(kind, manifest, partition.IntVal)
	}
	if len(kind.ReplicasPath()) == 0 {
		return fmt.Errorf("%s %s takes a number of pods, and no percentage", manifest.GetAPIVersion(), kind.Definition.Kind)
	}
	n, given, err := Replicas(kind, manifest)
	if err == nil && !given {
		n, err = DefaultReplicas(kind, manifest)
	}
	if err != nil {
		return err
	}
	kept, err := KeptOld(kind, partition, n)
	if err != nil {
		return err
	}
	return SetPartition(kind, manifest, kept)
}

// setUnitedPartitions shares kept pods over the subsets, in proportion to their size.
func setUnitedPartitions(manifest map[string]any, kept int64) error {
	subsets, err := readSubsets(manifest)
	if err != nil {
		return err
	}
	raw, _, err := unstructured.NestedFieldNoCopy(manifest, "spec", "replicas")
	if err != nil {
		return err
	}
	desired, err := convert(raw, TypeInt)
	if err != nil {
		return fmt.Errorf("spec.replicas: %w", err)
	}
	if !desired.set {
		if desired, err = unitedReplicas(manifest, value{}); err != nil {
			return err
		}
	}
	if !desired.set && kept > 0 { // of a size that is not known, nothing would be kept, and all pods updated
		return errors.New("the sizes of its subsets are not known, so that a partition cannot be shared over them; " +
			"set spec.replicas, or give every subset a number of replicas")
	}
	sizes, err := unitedSizes(subsets, desired.i)
	if err != nil {
		return err
	}
	shares := make([]division.Share, 0, len(subsets))
	total := int64(0)
	for i, s := range subsets {
		if sizes[i].least != sizes[i].most {
			return fmt.Errorf("the size of subset %s is its controller's choice, so that a partition cannot be shared over subsets; "+
				"give every subset a number or a percentage of replicas", s.name)
		}
		shares = append(shares, division.Share{Cluster: s.name, Weight: sizes[i].least})
		total += sizes[i].least
	}
	partitions := map[string]any{}
	if kept = min(kept, total); kept > 0 {
		shared, err := division.Apportion(int32(kept), shares)
		if err != nil {
			return fmt.Errorf("share the partition over subsets: %w", err)
		}
		for name, n := range shared {
			partitions[name] = int64(n)
		}
	} else {
		for _, s := range subsets {
			partitions[s.name] = int64(0)
		}
	}
	return unstructured.SetNestedMap(manifest, partitions, "spec", "updateStrategy", "manualUpdate", "partitions")
}

// PartitionPath leads to what SetPartition and OverridePartition write; nil for kinds without a partition.
func PartitionPath(kind *Kind) []string {
	if kind.Partition == nil {
		return nil
	}
	return split(kind.Partition.Path)
}
