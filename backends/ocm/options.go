// Package ocm carries workloads out through Open Cluster Management: a Placement chooses the clusters, one ManifestWork
// a cluster delivers the target manifest and brings its status back.
//
// Render and translate are pure; the driver only reads caches and writes. Where a workload stands on a cluster is read
// from its ManifestWork alone (see next), so that the operator may be stopped between any two writes.
package ocm

import (
	"maps"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Options configure the driver for one hub.
type Options struct {
	// ClusterSets are the ManagedClusterSets that the driver binds in the namespaces it uses, and in which a Placement
	// looks for clusters. Empty means that whatever is bound in a namespace counts, and that nothing is bound.
	ClusterSets []string
	// Attributes say where provider, region and zone of a cluster are found. Those not listed have defaults.
	Attributes map[v1alpha1.Attribute]AttributeSource
	// ShipDefinitions sends a kind's CRD, as the hub has it, to chosen clusters that lack it.
	ShipDefinitions bool
}

// AttributeSource is where an attribute is found on a ManagedCluster: in status.clusterClaims or, when there is no such
// claim, in a label. Either may be empty.
type AttributeSource struct {
	Claim string
	Label string
}

func defaultAttributes() map[v1alpha1.Attribute]AttributeSource {
	return map[v1alpha1.Attribute]AttributeSource{
		v1alpha1.AttributeProvider: {
			Claim: "platform.open-cluster-management.io", Label: "fleetworkload.io/provider",
		},
		v1alpha1.AttributeRegion: {
			Claim: "region.open-cluster-management.io", Label: "topology.kubernetes.io/region",
		},
		v1alpha1.AttributeZone: {
			Claim: "zone.open-cluster-management.io", Label: "topology.kubernetes.io/zone",
		},
	}
}

// withDefaults fills in the attributes that are not configured.
func (o Options) withDefaults() Options {
	attributes := defaultAttributes()
	maps.Copy(attributes, o.Attributes)
	o.Attributes = attributes
	return o
}
