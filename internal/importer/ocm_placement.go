package importer

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clustersdkv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// replicaSet says what a ManifestWorkReplicaSet comes to. clusters are those that have its ManifestWorks.
func (d *draft) replicaSet(set *unstructured.Unstructured, objects []*unstructured.Unstructured, clusters []string) error {
	var spec workv1alpha1.ManifestWorkReplicaSetSpec
	if err := d.read(set, &spec); err != nil {
		return err
	}
	if err := d.workOptions(title(set), "spec.manifestWorkTemplate", &spec.ManifestWorkTemplate); err != nil {
		return err
	}
	placements := of(objects, clusterGroup, "Placement")
	var found []*unstructured.Unstructured
	for i := range spec.PlacementRefs {
		ref := &spec.PlacementRefs[i]
		at := slices.IndexFunc(placements, func(p *unstructured.Unstructured) bool {
			return p.GetNamespace() == set.GetNamespace() && p.GetName() == ref.Name
		})
		if at < 0 {
			return fmt.Errorf("%s: its Placement %s/%s is not among what was read", title(set), set.GetNamespace(), ref.Name)
		}
		found = append(found, placements[at])
		ref.Name = ""
		if ref.RolloutStrategy.Type == clustersdkv1alpha1.All {
			ref.RolloutStrategy = clustersdkv1alpha1.RolloutStrategy{}
		}
	}
	spec.CascadeDeletionPolicy = ""
	if err := d.ocmPlacements(set, found, clusters); err != nil {
		return err
	}
	return d.rest(set, spec, append(ofWork("spec.manifestWorkTemplate"), remark{"spec.placementRefs.rolloutStrategy",
		"a change of the spec reaches all clusters at once", "change clusters one after the other with overrides, or set partition in them"}))
}

// ocmPlacements say which clusters. What the selectors cannot say becomes the names of those that have it now.
func (d *draft) ocmPlacements(set *unstructured.Unstructured, placements []*unstructured.Unstructured, clusters []string) error {
	asNames := func(object, field, value, reason string) error {
		if len(clusters) == 0 {
			return fmt.Errorf("%s: %s: %w", object, field, errNoPlacement)
		}
		d.cannot(Unexpressed{Object: object, Field: field, Value: value, Reason: reason + ", so that the clusters are named that have it now",
			Instead: "give the clusters a label in common, and choose by that"})
		d.fw.Spec.Placement = v1alpha1.Placement{Clusters: d.these(clusters), Division: d.fw.Spec.Placement.Division}
		return nil
	}
	if len(placements) != 1 {
		return asNames(title(set), "spec.placementRefs", fmt.Sprintf("%d Placements", len(placements)), "a FleetWorkload has one placement")
	}
	placement := placements[0]
	var spec clusterv1beta1.PlacementSpec
	if err := d.read(placement, &spec); err != nil {
		return err
	}
	d.bindings(title(placement), &spec)
	if err := d.placementOptions(&spec); err != nil {
		return err
	}
	if n := spec.NumberOfClusters; n != nil {
		taken := min(max(*n, 1), 1000)
		if taken != *n {
			d.cannot(Unexpressed{Object: title(placement), Field: "spec.numberOfClusters", Value: fmt.Sprint(*n),
				Reason:  fmt.Sprintf("a FleetWorkload is for 1 to 1000 clusters, and gets %d", taken),
				Instead: "import it once it is to run somewhere, or choose the clusters by labels alone"})
		}
		d.fw.Spec.Placement.NumberOfClusters, spec.NumberOfClusters = &taken, nil
	}
	d.ocmTolerations(title(placement), spec.Tolerations)
	spec.Tolerations = nil
	selector, field, reason := selectorOf(spec.Predicates)
	value := shorten(spec.Predicates)
	spec.Predicates = nil
	d.fw.Spec.Placement.Clusters = selector
	if reason != "" {
		if err := asNames(title(placement), field, value, reason); err != nil {
			return err
		}
	}
	return d.rest(placement, spec, []remark{{"spec.spreadPolicy", "it has no effect on Open Cluster Management either, whose placement controller does not implement it", ""}})
}

// bindings tell of the sets in which clusters are looked for.
func (d *draft) bindings(object string, spec *clusterv1beta1.PlacementSpec) {
	sets := "every set that is bound there"
	if len(spec.ClusterSets) > 0 {
		sets = "the sets " + brief.List(spec.ClusterSets)
	}
	d.note("%s chooses from %s. The operator's Placement is in namespace %s, where the sets have to be bound too, by a ManagedClusterSetBinding or by ocm.clusterSets of its configuration",
		object, sets, d.fw.Namespace)
}

// placementOptions go into backendOptions.
func (d *draft) placementOptions(spec *clusterv1beta1.PlacementSpec) error {
	option := map[string]any{}
	for name, value := range map[string]any{"clusterSets": spec.ClusterSets, "prioritizerPolicy": spec.PrioritizerPolicy, "decisionStrategy": spec.DecisionStrategy} {
		if said := plain(value); !jsondiff.IsZero(said) && !isDefault(spec, name) {
			option[name] = said
		}
	}
	spec.ClusterSets, spec.PrioritizerPolicy, spec.DecisionStrategy = nil, clusterv1beta1.PrioritizerPolicy{}, clusterv1beta1.DecisionStrategy{}
	if len(option) == 0 {
		return nil
	}
	raw, err := encoded(option)
	if err != nil {
		return err
	}
	d.ocmOptions().Placement = raw
	return nil
}

// isDefault tells whether an option says no more than its absence.
func isDefault(spec *clusterv1beta1.PlacementSpec, name string) bool {
	switch name {
	case "prioritizerPolicy":
		return len(spec.PrioritizerPolicy.Configurations) == 0
	case "decisionStrategy":
		return len(spec.DecisionStrategy.GroupStrategy.DecisionGroups) == 0
	default:
		return false
	}
}

// ocmLostTaints are what Open Cluster Management puts on clusters that it has lost.
var ocmLostTaints = []string{clusterv1.ManagedClusterTaintUnavailable, clusterv1.ManagedClusterTaintUnreachable}

func (d *draft) ocmTolerations(object string, all []clusterv1beta1.Toleration) {
	same := make([]corev1.Toleration, len(all))
	for i, t := range all {
		same[i] = corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value,
			Effect: corev1.TaintEffect(t.Effect), TolerationSeconds: t.TolerationSeconds,
		}
	}
	d.tolerations(object, "spec.tolerations", same, ocmLostTaints)
}

// claims are those behind the attributes, unless the operator's configuration says otherwise.
var claims = map[string]v1alpha1.Attribute{
	"platform.open-cluster-management.io": v1alpha1.AttributeProvider,
	"region.open-cluster-management.io":   v1alpha1.AttributeRegion,
	"zone.open-cluster-management.io":     v1alpha1.AttributeZone,
}

// selectorOf is what predicates choose, or the field that cannot be said, and why.
func selectorOf(predicates []clusterv1beta1.ClusterPredicate) (s *v1alpha1.ClusterSelector, field, reason string) {
	s = &v1alpha1.ClusterSelector{}
	switch len(predicates) {
	case 0:
		return s, "", ""
	case 1:
	default:
		return s, "spec.predicates", "clusters that any of several selectors chooses cannot be said"
	}
	const at = "spec.predicates[0].requiredClusterSelector"
	required := predicates[0].RequiredClusterSelector
	if len(required.CelSelector.CelExpressions) > 0 {
		return s, at + ".celSelector", "expressions cannot be said"
	}
	if labels := required.LabelSelector; len(labels.MatchLabels)+len(labels.MatchExpressions) > 0 {
		s.Selector = &labels
	}
	for i, e := range required.ClaimSelector.MatchExpressions {
		key, known := claims[e.Key]
		operators := map[metav1.LabelSelectorOperator]v1alpha1.AttributeOperator{
			metav1.LabelSelectorOpIn: v1alpha1.AttributeOperatorIn, metav1.LabelSelectorOpNotIn: v1alpha1.AttributeOperatorNotIn,
		}
		operator, same := operators[e.Operator]
		if !known || !same || len(e.Values) == 0 {
			return s, fmt.Sprintf("%s.claimSelector.matchExpressions[%d]", at, i), "only In and NotIn of the claims of provider, region and zone can be said"
		}
		s.Attributes = append(s.Attributes, v1alpha1.AttributeRequirement{Key: key, Operator: operator, Values: unique(e.Values)})
	}
	return s, "", ""
}

// ocmSteps say how the operator gets the workload. It refuses an object that a ManifestWork of somebody else carries (refuseCarried in
// backends/ocm): that one has to let go of it first.
func (d *draft) ocmSteps(works []*unstructured.Unstructured, set *unstructured.Unstructured) {
	const orphanOption = `{"deleteOption":{"propagationPolicy":"Orphan"}}`
	carriers, patch := works, `--type merge -p '{"spec":`+orphanOption+`}'`
	if set != nil {
		carriers, patch = []*unstructured.Unstructured{set}, `--type merge -p '{"spec":{"manifestWorkTemplate":`+orphanOption+`}}'`
	}
	release := Step{What: "on the hub, have the agents leave the objects where they are, all of them: a Namespace that goes takes the pods with it"}
	wait := Step{What: "on the hub, wait until each ManifestWork has the condition Applied with its present generation: before that, deleting it would delete the objects"}
	remove := Step{What: "on the hub, delete what carried it. Its pods run on, and are nobody's for the moment"}
	for _, c := range carriers {
		release.Commands = append(release.Commands, command("patch", c, patch))
		remove.Commands = append(remove.Commands, command("delete", c))
	}
	for _, w := range works {
		wait.Commands = append(wait.Commands, command("get", w, `-o jsonpath='{.metadata.generation} {.status.conditions[?(@.type=="Applied")].observedGeneration} {.spec.deleteOption.propagationPolicy}{"\n"}'`))
	}
	release.Commands, wait.Commands, remove.Commands = shortened(release.Commands), shortened(wait.Commands), shortened(remove.Commands)
	kept := save("on the hub", carriers...)
	d.result.TakeOver = []Step{kept, release, wait, remove, d.apply()}
	d.result.WayBack = []Step{
		{What: "before anything is deleted: set the deleteOption back to what it was. Nothing else has changed"},
		d.orphan(),
		{What: "and give the hub what it had: the agents take the objects over as they are, without asking",
			Commands: []string{"$EDITOR before.yaml # take out uid, resourceVersion and status", "kubectl apply -f before.yaml"}},
	}
}

// shortened keeps a list of commands readable.
func shortened(commands []string) []string {
	const most = 12
	if len(commands) <= most {
		return commands
	}
	return append(slices.Clone(commands[:most]), fmt.Sprintf("# and %d more alike", len(commands)-most))
}
