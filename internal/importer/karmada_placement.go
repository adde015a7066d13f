package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

func encoded(value any) (*runtime.RawExtension, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode backend options: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

func labelsMatch(selector *metav1.LabelSelector, set map[string]string) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(labels.Set(set))
}

// karmadaPlacement takes out of a placement what spec.placement says. object names the policy.
func (d *draft) karmadaPlacement(object string, p *policyv1alpha1.Placement) {
	d.affinities(object, p)
	// Karmada looks at no spread constraints where weights are static (shouldIgnoreSpreadConstraint in pkg/scheduler/core/spreadconstraint).
	if spreads(p) {
		d.spread(object, p.SpreadConstraints)
	} else if slices.ContainsFunc(p.SpreadConstraints, binds) {
		d.note("%s: spreadConstraints have no effect on Karmada beside static weights, and are left out", object)
	}
	p.SpreadConstraints = nil
	d.tolerations(object, "spec.placement.clusterTolerations", p.ClusterTolerations, lostTaints)
	p.ClusterTolerations = nil
	d.scheduling(object, p.ReplicaScheduling)
	p.ReplicaScheduling = nil
}

// affinities say which clusters.
func (d *draft) affinities(object string, p *policyv1alpha1.Placement) {
	to := &d.fw.Spec.Placement
	if len(p.ClusterAffinities) == 0 {
		to.Clusters = &v1alpha1.ClusterSelector{}
		if p.ClusterAffinity == nil {
			return
		}
		to.Clusters = d.placed(object, "spec.placement.clusterAffinity", p.ClusterAffinity)
		return
	}
	taken := map[string]bool{}
	var left []policyv1alpha1.ClusterAffinityTerm
	for i := range p.ClusterAffinities {
		term := &p.ClusterAffinities[i]
		at := fmt.Sprintf("spec.placement.clusterAffinities[%d]", i)
		selector := d.placed(object, at, &term.ClusterAffinity)
		if term.ClusterAffinity.FieldSelector != nil {
			left = append(left, policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: term.ClusterAffinity})
		}
		name := nameFor(term.AffinityName, 32, func(n string) bool { return taken[n] })
		taken[name] = true
		to.Groups = append(to.Groups, v1alpha1.ClusterGroup{Name: name, Clusters: selector})
	}
	p.ClusterAffinities = left
}

// placed is the selector of an affinity by which clusters are chosen. Where all its names are unknown they stay, for the operator to refuse.
func (d *draft) placed(object, at string, a *policyv1alpha1.ClusterAffinity) *v1alpha1.ClusterSelector {
	selector, unknown := d.selector(a)
	d.unknownNames(object, at+".clusterNames", unknown, nobody(selector, unknown))
	if nobody(selector, unknown) {
		selector.Names = unknown
	}
	return selector
}

// selector is that of an affinity, from which everything is taken that it says. unknown are names that the backend does not know, which
// Karmada passes over and the operator refuses; where no other name is left they stay, since no names would be all clusters.
func (d *draft) selector(a *policyv1alpha1.ClusterAffinity) (s *v1alpha1.ClusterSelector, unknown []string) {
	s = &v1alpha1.ClusterSelector{Exclude: unique(a.ExcludeClusters), Selector: a.LabelSelector}
	for _, name := range unique(a.ClusterNames) {
		if _, known := d.Fleet.Get(name); known {
			s.Names = append(s.Names, name)
		} else {
			unknown = append(unknown, name)
		}
	}
	if s.Selector != nil && len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
		s.Selector = nil
	}
	if a.FieldSelector != nil {
		var left []corev1.NodeSelectorRequirement
		for _, e := range a.FieldSelector.MatchExpressions {
			if requirement, ok := attribute(e); ok {
				s.Attributes = append(s.Attributes, requirement)
			} else {
				left = append(left, e)
			}
		}
		a.FieldSelector.MatchExpressions = left
		if len(left) == 0 {
			a.FieldSelector = nil
		}
	}
	a.ClusterNames, a.ExcludeClusters, a.LabelSelector = nil, nil, nil
	return s, unknown
}

// unique keeps the first of equal entries.
func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

var attributesOf = map[string]v1alpha1.Attribute{
	clusterProvider: v1alpha1.AttributeProvider, clusterRegion: v1alpha1.AttributeRegion, clusterZone: v1alpha1.AttributeZone,
}

// Keys of field selectors (pkg/util/selector.go in github.com/karmada-io/karmada).
const (
	clusterProvider = "provider"
	clusterRegion   = "region"
	clusterZone     = "zone"
)

func attribute(e corev1.NodeSelectorRequirement) (v1alpha1.AttributeRequirement, bool) {
	key, known := attributesOf[e.Key]
	operators := map[corev1.NodeSelectorOperator]v1alpha1.AttributeOperator{
		corev1.NodeSelectorOpIn: v1alpha1.AttributeOperatorIn, corev1.NodeSelectorOpNotIn: v1alpha1.AttributeOperatorNotIn,
	}
	operator, same := operators[e.Operator]
	return v1alpha1.AttributeRequirement{Key: key, Operator: operator, Values: unique(e.Values)}, known && same && len(e.Values) > 0
}

// unknownNames tells of names that the backend does not know. none is true when the affinity has no others.
func (d *draft) unknownNames(object, field string, names []string, none bool) {
	if len(names) == 0 {
		return
	}
	u := Unexpressed{Object: object, Field: field, Value: brief.List(names),
		Reason:  "the backend knows no such cluster, and a FleetWorkload may not name one",
		Instead: "nothing, if it is gone; else register it, and add it to the FleetWorkload"}
	if none {
		u.Instead = "choose clusters that are there"
	}
	d.cannot(u)
}

// spreads tells whether Karmada looks at the spread constraints.
func spreads(p *policyv1alpha1.Placement) bool {
	s := p.ReplicaScheduling
	return s == nil || !divides(s) || s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated ||
		s.WeightPreference != nil && (s.WeightPreference.DynamicWeight != "" || len(s.WeightPreference.StaticWeightList) == 0)
}

// divides tells whether replicas are divided, which is the default once there is a strategy (+kubebuilder:default in propagation_types.go).
func divides(s *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	return s.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDuplicated
}

var topologies = map[policyv1alpha1.SpreadFieldValue]v1alpha1.SpreadTopology{
	"":                                   v1alpha1.SpreadByCluster,
	policyv1alpha1.SpreadByFieldCluster:  v1alpha1.SpreadByCluster,
	policyv1alpha1.SpreadByFieldRegion:   v1alpha1.SpreadByRegion,
	policyv1alpha1.SpreadByFieldZone:     v1alpha1.SpreadByZone,
	policyv1alpha1.SpreadByFieldProvider: v1alpha1.SpreadByProvider,
}

// binds tells whether a constraint says more than that there is at least one group.
func binds(c policyv1alpha1.SpreadConstraint) bool { return c.MaxGroups > 0 || c.MinGroups > 1 }

func (d *draft) spread(object string, constraints []policyv1alpha1.SpreadConstraint) {
	for i, c := range constraints {
		out := v1alpha1.SpreadConstraint{By: topologies[c.SpreadByField], Label: c.SpreadByLabel}
		if c.SpreadByLabel != "" {
			out.By = v1alpha1.SpreadByLabel
		}
		if out.By == "" {
			d.cannot(Unexpressed{Object: object, Field: fmt.Sprintf("spec.placement.spreadConstraints[%d].spreadByField", i), Value: string(c.SpreadByField),
				Reason: "nothing can be spread by that", Instead: "spread by cluster, region, zone, provider or a label"})
			continue
		}
		if c.MaxGroups > 0 {
			out.MaxGroups = ptr.To(int32(min(c.MaxGroups, 1000)))
		}
		if c.MinGroups > 1 {
			out.MinGroups = ptr.To(int32(min(c.MinGroups, 1000)))
		}
		if binds(c) {
			d.fw.Spec.Placement.Spread = append(d.fw.Spec.Placement.Spread, out)
		}
	}
	d.fw.Spec.Placement.Spread = within(d, d.fw.Spec.Placement.Spread, 8, "spec.placement.spread")
}

// lostTaints are what Karmada puts on clusters that it has lost. The operator knows of those in another way.
var lostTaints = []string{clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable}

// tolerations are those of a placement, of whichever backend, but for those of what it puts on clusters that it has lost.
func (d *draft) tolerations(object, field string, all []corev1.Toleration, lost []string) {
	for i, t := range all {
		at := fmt.Sprintf("%s[%d]", field, i)
		if slices.Contains(lost, t.Key) {
			d.note("%s: %s %s: left out, since the operator leaves workloads with clusters that are lost for a while, see placement.failover", object, at, t.Key)
			continue
		}
		var seconds *int32
		if t.TolerationSeconds != nil {
			seconds = ptr.To(int32(min(max(*t.TolerationSeconds, 0), 31536000)))
		}
		d.toleration(object, at, t.Key, string(t.Operator), t.Value, string(t.Effect), seconds)
	}
	d.fw.Spec.Placement.Tolerations = within(d, d.fw.Spec.Placement.Tolerations, 32, "spec.placement.tolerations")
}

// toleration adds one.
func (d *draft) toleration(object, at, key, operator, value, effect string, seconds *int32) {
	out := v1alpha1.ClusterToleration{Key: key, Operator: operator, Value: value}
	switch operator {
	case "", "Equal":
		out.Operator = ""
		if key == "" {
			out.Operator, out.Value = "Exists", ""
		}
	case "Exists":
		out.Value = ""
	default:
		d.cannot(Unexpressed{Object: object, Field: at + ".operator", Value: operator,
			Reason: "only Exists and Equal can be said", Instead: "tolerate the taint by key and value"})
		return
	}
	if effect != "" {
		d.cannot(Unexpressed{Object: object, Field: at + ".effect", Value: effect, Reason: "a FleetWorkload tolerates a taint whatever its effect",
			Instead: "nothing, unless clusters have this taint with another effect too"})
	}
	if seconds != nil && d.fw.Spec.Placement.Failover == nil {
		d.cannot(Unexpressed{Object: object, Field: at + ".tolerationSeconds", Value: fmt.Sprint(*seconds),
			Reason:  "without placement.failover nothing leaves a cluster",
			Instead: "set placement.failover, and then tolerationSeconds of the toleration"})
		seconds = nil
	}
	out.TolerationSeconds = seconds
	d.fw.Spec.Placement.Tolerations = append(d.fw.Spec.Placement.Tolerations, out)
}

// scheduling says how replicas are divided.
func (d *draft) scheduling(object string, s *policyv1alpha1.ReplicaSchedulingStrategy) {
	if s == nil || !divides(s) {
		return
	}
	if len(d.kind.ReplicasPath()) == 0 {
		d.note("%s: replicaScheduling has no effect on a %s, which has no replicas", object, d.kind.Definition.Kind)
		return
	}
	division := &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided}
	d.fw.Spec.Placement.Division = division
	weights := s.WeightPreference
	switch {
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		division.Preference = v1alpha1.DivisionPreferenceAggregated
	case weights != nil && weights.DynamicWeight != "":
		division.Preference = v1alpha1.DivisionPreferenceAvailableCapacity
		if len(weights.StaticWeightList) > 0 {
			d.note("%s: staticWeightList has no effect on Karmada beside dynamicWeight, and is left out", object)
		}
	case weights != nil:
		division.Weights = d.weights(object, weights.StaticWeightList)
	}
}

// weights are static weights. Karmada gives a cluster the greatest that is for it, and a FleetWorkload the first: so the greatest come first
// (getStaticWeightInfoList in pkg/scheduler/core).
func (d *draft) weights(object string, all []policyv1alpha1.StaticClusterWeight) (weights []v1alpha1.ClusterWeight) {
	for i := range all {
		at := fmt.Sprintf("spec.placement.replicaScheduling.weightPreference.staticWeightList[%d]", i)
		selector, unknown := d.selector(&all[i].TargetCluster)
		none := nobody(selector, unknown)
		d.unknownNames(object, at+".targetCluster.clusterNames", unknown, none)
		weight := all[i].Weight
		if none || d.leftOver(object, at+".targetCluster", &all[i].TargetCluster) {
			continue
		}
		if weight < 1 || weight > 1_000_000 {
			d.cannot(Unexpressed{Object: object, Field: at + ".weight", Value: fmt.Sprint(weight),
				Reason: "a weight is from 1 to 1000000", Instead: "write smaller weights of the same proportion"})
			continue
		}
		weights = append(weights, v1alpha1.ClusterWeight{Clusters: selector, Weight: ptr.To(int32(weight))})
	}
	slices.SortStableFunc(weights, func(a, b v1alpha1.ClusterWeight) int { return cmp.Compare(*b.Weight, *a.Weight) })
	return weights
}

// leftOver tells of what a selector cannot say.
func (d *draft) leftOver(object, at string, a *policyv1alpha1.ClusterAffinity) bool {
	if a.FieldSelector == nil {
		return false
	}
	d.cannot(Unexpressed{Object: object, Field: at + ".fieldSelector", Value: shorten(a.FieldSelector.MatchExpressions),
		Reason:  "only In and NotIn of provider, region and zone can be said, and the whole entry was left out",
		Instead: "choose the clusters by names or labels"})
	return true
}

// divide says the replicas of clusters one by one: the same for all, or weights that give each just these.
func (d *draft) divide(object string, replicas map[string]int32) {
	byNumber := map[int32][]string{}
	var total int64
	for cluster, n := range replicas {
		byNumber[n] = append(byNumber[n], cluster)
		total += int64(n)
	}
	d.fw.Spec.Placement.Division = nil
	if len(byNumber) <= 1 {
		for n := range byNumber {
			d.fw.Spec.Replicas = ptr.To(n)
		}
		return
	}
	if none := byNumber[0]; len(none) > 0 {
		slices.Sort(none)
		d.cannot(Unexpressed{Object: object, Field: "spec.replicas", Value: "0 on " + brief.List(none),
			Reason:  "a cluster that gets nothing of a total does not get the workload",
			Instead: "run one replica there, or delete the object by hand: it stays as it is otherwise, and belongs to nobody"})
		delete(byNumber, 0)
	}
	division := &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided}
	for n, clusters := range byNumber {
		slices.Sort(clusters)
		division.Weights = append(division.Weights, v1alpha1.ClusterWeight{Clusters: &v1alpha1.ClusterSelector{Names: clusters}, Weight: ptr.To(n)})
	}
	slices.SortFunc(division.Weights, func(a, b v1alpha1.ClusterWeight) int {
		return cmp.Or(cmp.Compare(*b.Weight, *a.Weight), strings.Compare(a.Clusters.Names[0], b.Clusters.Names[0]))
	})
	d.fw.Spec.Replicas, d.fw.Spec.Placement.Division = ptr.To(int32(min(total, 1_000_000))), division
	d.note("spec.replicas is the total of all clusters, with weights that give each just what it has; another total is divided in this proportion, and a cluster that joins needs a weight")
}

// nobody tells whether a selector named only clusters that are not there: unlike one without names, it chooses none.
func nobody(s *v1alpha1.ClusterSelector, unknown []string) bool {
	return len(s.Names) == 0 && len(unknown) > 0
}
