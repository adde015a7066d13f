package plan

import "github.com/fleetworkload/fleetworkload/backends"

// Field is a field of the spec, as docs/backends.md lists it.
type Field struct {
	// Path without "spec.".
	Path string
	// Karmada and OCM say how each carries it out.
	Karmada, OCM string
	// Needs is the feature without which a driver refuses it; empty when every driver can do it.
	Needs backends.Feature
}

const (
	decided = "decided by the operator"
	inOnes  = "in the clusters' target manifests"
)

// Fields are all fields of the spec that a person can set, down to those that a backend might treat in its own way.
var Fields = []Field{
	{Path: "backend", Karmada: "a connection to a Karmada control plane", OCM: "a connection to a hub"},
	{Path: "replicas", Karmada: "static weights equal to the numbers", OCM: inOnes},
	{Path: "template", Karmada: "the object itself, with a PropagationPolicy", OCM: "a ManifestWork a cluster"},
	{Path: "template (cluster-scoped)", Karmada: "a ClusterPropagationPolicy", OCM: "a ManifestWork a cluster", Needs: backends.FeatureClusterScoped},
	{Path: "companions", Karmada: "a Work for each, in the cluster's execution namespace", OCM: "a ManifestWork for each"},
	{Path: "dependencies", Karmada: "a Work for each, shared by all who use it", OCM: "a ManifestWork for each, shared by all who use it"},
	{Path: "placement.clusters", Karmada: "names, from Cluster objects", OCM: "a Placement, with one predicate"},
	{Path: "placement.groups", Karmada: "names", OCM: "a Placement, with a predicate a group"},
	{Path: "placement.numberOfClusters", Karmada: decided, OCM: decided},
	{Path: "placement.tolerations", Karmada: decided, OCM: decided},
	{Path: "placement.spread", Karmada: decided, OCM: decided},
	{Path: "placement.division", Karmada: "static weights equal to the numbers", OCM: inOnes},
	{Path: "placement.division.preference", Karmada: "free capacity from status.resourceSummary", OCM: "free capacity from status.allocatable"},
	{Path: "placement.failover", Karmada: decided, OCM: decided, Needs: backends.FeatureHold},
	{Path: "placement.paused", Karmada: "suspension.dispatchingOnClusters", OCM: "works stay as they are", Needs: backends.FeatureHold},
	{Path: "overrides.name", Karmada: "not sent", OCM: "not sent"},
	{Path: "overrides.clusters", Karmada: "rules of an OverridePolicy", OCM: inOnes},
	{Path: "overrides.images", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.commands", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.args", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.env", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.resources", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.labels", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.annotations", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.podLabels", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.podAnnotations", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.replicas", Karmada: "static weights equal to the numbers", OCM: inOnes},
	{Path: "overrides.partition", Karmada: "JSON patches", OCM: inOnes},
	{Path: "overrides.patches", Karmada: "JSON patches", OCM: inOnes},
	{Path: "migration", Karmada: "suspension and preserveResourcesOnDeletion", OCM: "ReadOnly works", Needs: backends.FeatureModes},
	{Path: "conflictPolicy", Karmada: "conflictResolution, of each cluster that is still to be taken over; a probe before anything is taken over", OCM: "a ReadOnly work probes first, since OCM always adopts"},
	{Path: "drift (Correct)", Karmada: "Karmada puts back what it sees changed", OCM: "the agent finds it when it looks, and is told to force"},
	{Path: "drift (Report)", Karmada: "no", OCM: "the agent applies without force", Needs: backends.FeatureDriftReport},
	{Path: "deletionPolicy", Karmada: "preserveResourcesOnDeletion", OCM: "deleteOption"},
	{Path: "suspend", Karmada: "suspension.dispatching", OCM: "works stay as they are", Needs: backends.FeatureHold},
	{Path: "approval", Karmada: "suspension.dispatching while a change waits", OCM: "works stay as they are while a change waits", Needs: backends.FeatureHold},
	{Path: "revisionHistoryLimit", Karmada: "kept on the management cluster", OCM: "kept on the management cluster"},
	{Path: "serviceAccountName", Karmada: "asked on the management cluster", OCM: "asked on the management cluster"},
	{Path: "backendOptions.karmada", Karmada: "its one allowed field is merged into the PropagationPolicy", OCM: "not used"},
	{Path: "backendOptions.ocm", Karmada: "not used", OCM: "allowed fields are merged into Placement and ManifestWork"},
}
