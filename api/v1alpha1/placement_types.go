package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSelector chooses clusters. What is set must all hold; an empty selector chooses every cluster that the
// backend knows.
type ClusterSelector struct {
	// names lists clusters by the name the backend knows them by. When absent, all that match the rest.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// exclude lists clusters that are never chosen.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Exclude []string `json:"exclude,omitempty"`

	// selector chooses by the labels of the backend's cluster objects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// attributes choose by provider, region and zone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Attributes []AttributeRequirement `json:"attributes,omitempty"`
}

// Attribute is a property every backend knows of a cluster.
// +kubebuilder:validation:Enum=Provider;Region;Zone
type Attribute string

const (
	// AttributeProvider is who runs the cluster's machines.
	AttributeProvider Attribute = "Provider"
	// AttributeRegion is where the cluster runs.
	AttributeRegion Attribute = "Region"
	// AttributeZone is the zone of the region the cluster runs in.
	AttributeZone Attribute = "Zone"
)

// AttributeOperator compares an attribute with values.
// +kubebuilder:validation:Enum=In;NotIn
type AttributeOperator string

const (
	// AttributeOperatorIn holds when the attribute is one of the values.
	AttributeOperatorIn AttributeOperator = "In"
	// AttributeOperatorNotIn holds when the attribute is none of the values, and when the cluster has no such attribute.
	AttributeOperatorNotIn AttributeOperator = "NotIn"
)

// AttributeRequirement is a condition on one attribute.
type AttributeRequirement struct {
	// key is the attribute.
	// +required
	Key Attribute `json:"key,omitempty"`

	// operator compares it with values.
	// +required
	Operator AttributeOperator `json:"operator,omitempty"`

	// values to compare with.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	Values []string `json:"values,omitempty"`
}

// Placement says which clusters run the workload.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.groups)",message="set exactly one of clusters and groups"
// +kubebuilder:validation:XValidation:rule="has(self.failover) || !has(self.tolerations) || self.tolerations.all(t, !has(t.tolerationSeconds))",message="tolerationSeconds needs failover, without which nothing leaves a cluster"
type Placement struct {
	// clusters chooses the clusters. Write {} to choose every cluster of the backend.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`

	// groups are tried in order; the first one that can take the workload gets it, and keeps it as long as it can.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Groups []ClusterGroup `json:"groups,omitempty"`

	// numberOfClusters caps how many of the matching clusters are taken: those that run the workload already first, then by
	// name. When absent, all of them.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// tolerations let the workload onto clusters with matching taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []ClusterToleration `json:"tolerations,omitempty"`

	// spread says over how many clusters, regions, zones or providers the workload is spread.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Spread []SpreadConstraint `json:"spread,omitempty"`

	// division says how replicas are given to the chosen clusters. When absent, every cluster gets spec.replicas.
	// +optional
	Division *Division `json:"division,omitempty"`

	// failover says when a cluster that is lost is replaced. When absent, never.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// paused chooses clusters on which nothing changes. One that runs the workload keeps what it runs, with its number of replicas, and is
	// not left; one that does not run it yet does not get it. When absent, none. Write {} to choose every cluster of the backend.
	// +optional
	Paused *ClusterSelector `json:"paused,omitempty"`
}

// ClusterGroup is one choice among ordered fallbacks.
type ClusterGroup struct {
	// name of the group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name,omitempty"`

	// clusters chooses the clusters of the group.
	// +required
	Clusters *ClusterSelector `json:"clusters,omitempty"`
}

// ClusterToleration tolerates a taint of a cluster.
// +kubebuilder:validation:XValidation:rule="!(has(self.operator) && self.operator == 'Exists' && has(self.value))",message="value must be empty when operator is Exists"
// +kubebuilder:validation:XValidation:rule="has(self.key) || (has(self.operator) && self.operator == 'Exists')",message="a toleration without a key needs operator Exists"
type ClusterToleration struct {
	// key of the taint. When absent, every taint; operator must then be Exists.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// operator is Exists or Equal. When absent: Equal.
	// +optional
	// +kubebuilder:validation:Enum=Exists;Equal
	Operator string `json:"operator,omitempty"`

	// value of the taint, when operator is Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value,omitempty"`

	// tolerationSeconds is for how long a taint that wants running workloads to leave is tolerated (Karmada: NoExecute,
	// Open Cluster Management: NoSelect). After that the cluster counts as lost, see failover, without which this has no
	// effect. When absent: for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// SpreadTopology is what a spread constraint counts.
// +kubebuilder:validation:Enum=Cluster;Region;Zone;Provider;Label
type SpreadTopology string

const (
	// SpreadByCluster counts clusters.
	SpreadByCluster SpreadTopology = "Cluster"
	// SpreadByRegion counts regions.
	SpreadByRegion SpreadTopology = "Region"
	// SpreadByZone counts zones.
	SpreadByZone SpreadTopology = "Zone"
	// SpreadByProvider counts providers.
	SpreadByProvider SpreadTopology = "Provider"
	// SpreadByLabel counts the values of a cluster label.
	SpreadByLabel SpreadTopology = "Label"
)

// SpreadConstraint bounds over how many groups of clusters a workload is spread.
// +kubebuilder:validation:XValidation:rule="(self.by == 'Label') == has(self.label)",message="label is required when by is Label, and not allowed otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.minGroups) || !has(self.maxGroups) || self.minGroups <= self.maxGroups",message="minGroups must not be above maxGroups"
type SpreadConstraint struct {
	// by is what is counted.
	// +required
	By SpreadTopology `json:"by,omitempty"`

	// label is the cluster label whose values are counted, when by is Label.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Label string `json:"label,omitempty"`

	// minGroups is the least number of groups. When absent: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinGroups *int32 `json:"minGroups,omitempty"`

	// maxGroups is the greatest number of groups. When absent, there is no bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxGroups *int32 `json:"maxGroups,omitempty"`
}

// DivisionType says whether replicas are the fleet's or each cluster's.
// +kubebuilder:validation:Enum=Duplicated;Divided
type DivisionType string

const (
	// DivisionTypeDuplicated gives every cluster spec.replicas.
	DivisionTypeDuplicated DivisionType = "Duplicated"
	// DivisionTypeDivided divides spec.replicas over the clusters.
	DivisionTypeDivided DivisionType = "Divided"
)

// DivisionPreference says how divided replicas are given out.
// +kubebuilder:validation:Enum=Weighted;Aggregated;AvailableCapacity
type DivisionPreference string

const (
	// DivisionPreferenceWeighted divides by the weights.
	DivisionPreferenceWeighted DivisionPreference = "Weighted"
	// DivisionPreferenceAggregated fills as few clusters as possible.
	DivisionPreferenceAggregated DivisionPreference = "Aggregated"
	// DivisionPreferenceAvailableCapacity divides by what the clusters can still take.
	DivisionPreferenceAvailableCapacity DivisionPreference = "AvailableCapacity"
)

// Division says how replicas are given to the chosen clusters.
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || (has(self.type) && self.type == 'Divided')",message="weights need type Divided"
// +kubebuilder:validation:XValidation:rule="!has(self.preference) || (has(self.type) && self.type == 'Divided')",message="preference needs type Divided"
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || !has(self.preference) || self.preference == 'Weighted'",message="weights need preference Weighted"
type Division struct {
	// type says whether spec.replicas is the fleet's or each cluster's. When absent: Duplicated.
	// +optional
	Type DivisionType `json:"type,omitempty"`

	// preference says how replicas are divided, when type is Divided. When absent: Weighted.
	// +optional
	Preference DivisionPreference `json:"preference,omitempty"`

	// weights give clusters their shares. A cluster counts with the first entry that selects it, and gets nothing when
	// none does. When absent, all clusters weigh the same.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Weights []ClusterWeight `json:"weights,omitempty"`
}

// ClusterWeight is the share of the clusters it selects.
type ClusterWeight struct {
	// clusters selects the clusters; each one of them has the weight.
	// +required
	Clusters *ClusterSelector `json:"clusters,omitempty"`

	// weight is a share relative to the other clusters' weights.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`
}

// PurgePolicy says what happens to a workload on a cluster that is given up.
// +kubebuilder:validation:Enum=Graceful;Immediate;Never
type PurgePolicy string

const (
	// PurgePolicyGraceful removes it once the replacement is healthy.
	PurgePolicyGraceful PurgePolicy = "Graceful"
	// PurgePolicyImmediate removes it at once.
	PurgePolicyImmediate PurgePolicy = "Immediate"
	// PurgePolicyNever leaves it as it is. When the cluster is back, it takes its place again.
	PurgePolicyNever PurgePolicy = "Never"
)

// Failover says when a lost cluster is replaced. A cluster is lost while the backend cannot reach it, and when it has a
// taint that wants running workloads to leave and that is not tolerated. It is given up only for clusters that take its
// place, or its share of divided replicas.
type Failover struct {
	// tolerationSeconds is how long a cluster may be lost before it is replaced. When absent: 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`

	// purge says what happens to the workload on the lost cluster. When absent: Graceful.
	// +optional
	Purge PurgePolicy `json:"purge,omitempty"`
}
