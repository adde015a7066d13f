package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const numbersField = "spec.overrides[].replicas"

// numbers are the replicas that overrides give clusters by their names; a later override wins.
func numbers(overrides []v1alpha1.Override) map[string]int32 {
	all := map[string]int32{}
	for _, o := range overrides {
		if o.Replicas == nil || o.Clusters == nil {
			continue
		}
		for _, name := range o.Clusters.Names {
			all[name] = *o.Replicas
		}
	}
	return all
}

// Numbered tells whether a cluster has a number of its own.
func (p *Plan) Numbered(cluster string) bool {
	_, is := p.numbers[cluster]
	return is
}

// Each is what a cluster is to run when replicas are not divided.
func (p *Plan) Each(cluster string) int32 {
	if n, is := p.numbers[cluster]; is {
		return n
	}
	return *p.Replicas
}

// NoMore is the plan in which these clusters get no more than that by numbers of their own: they are about to be left, unless they come back.
func (p *Plan) NoMore(most map[string]int32) *Plan {
	out := *p
	out.most = most
	return &out
}

// given are the clusters that have numbers of their own, with what they get of them now, and the others.
func (p *Plan) given(clusters []backends.Cluster) (given map[string]int32, others []backends.Cluster) {
	given = map[string]int32{}
	for _, c := range clusters {
		n, is := p.numbers[c.Name]
		if !is {
			others = append(others, c)
			continue
		}
		if most, bound := p.most[c.Name]; bound {
			n = min(n, most)
		}
		given[c.Name] = n
	}
	return given, others
}

// toDivide are the replicas that are there for clusters without a number of their own.
func (p *Plan) toDivide(given map[string]int32, others int) (int32, error) {
	sum, asked := int64(0), int64(0)
	for name, n := range given {
		sum, asked = sum+int64(n), asked+int64(p.numbers[name])
	}
	switch total := int64(*p.Replicas); {
	case asked > total:
		return 0, p.refuseNumbers(given, asked, "more than spec.replicas, which is divided",
			fmt.Sprintf("set spec.replicas to %d or more, or lower the numbers", asked))
	case others == 0 && len(given) > 0 && asked < total && p.pinned == 0:
		return 0, p.refuseNumbers(given, asked, fmt.Sprintf("and no other cluster is chosen that could run the remaining %d of spec.replicas", total-asked),
			fmt.Sprintf("set spec.replicas to %d, take the number of one of them out, or let spec.placement choose another cluster", asked))
	}
	return int32(max(0, int64(*p.Replicas)-int64(p.pinned)-sum)), nil
}

// refuseNumbers words what is wrong with the numbers of these clusters together.
func (p *Plan) refuseNumbers(given map[string]int32, sum int64, what, remedy string) error {
	const most = 10
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, p.numbers[name]))
	}
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	return &backends.Error{
		Code: backends.CodeInvalidOverride, Field: numbersField, Value: fmt.Sprint(sum),
		Message: fmt.Sprintf("the numbers of chosen clusters (%s) add up to %d, %s (%d)", strings.Join(parts, ", "), sum, what, *p.Replicas),
		Remedy:  remedy,
	}
}

// refuseNumbered refuses numbers that would have no effect on a kind without replicas.
func (p *Plan) refuseNumbered() error {
	for i, o := range p.fw.Spec.Overrides {
		if o.Replicas != nil {
			return &backends.Error{
				Code: backends.CodeInvalidOverride, Field: fmt.Sprintf("spec.overrides[%d].replicas", i), Value: fmt.Sprint(*o.Replicas),
				Message: fmt.Sprintf("a %s has no replicas that could be set", p.Template.GetKind()), Remedy: "leave it out",
			}
		}
	}
	return nil
}
