// Package marks tells by its key who writes a label or an annotation of an object: the operator, an orchestrator, or whatever else keeps
// its own accounts on an object. It is pure.
package marks

import (
	"slices"
	"strings"
)

// Prefix begins the keys of all the operator's labels and annotations (api/v1alpha1/labels.go).
const Prefix = "fleetworkload.io/"

// Ours tells whether a key is the operator's.
func Ours(key string) bool { return strings.HasPrefix(key, Prefix) }

// orchestrators are the domains of who carries workloads out. By such keys they say whose an object is, and what may become of it
// (karmada pkg/util/constants.go, pkg/apis/*/well_known_constants.go; open-cluster-management.io/api work/v1, and its add-ons). Sent on, they
// would claim an object for a policy that it has nothing to do with, or overrule spec.conflictPolicy.
func orchestrators() []string { return []string{"karmada.io", "open-cluster-management.io"} }

// Orchestrator tells whether a key is Karmada's or Open Cluster Management's.
func Orchestrator(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && slices.ContainsFunc(orchestrators(), func(o string) bool { return domain == o || strings.HasSuffix(domain, "."+o) })
}

// Local tells whether a key means something in the cluster alone where it was written: an API server, a controller or kubectl keeps its
// accounts there.
func Local(key string) bool {
	switch key {
	// kubectl's repeats the whole object, a Secret's content too.
	case "kubectl.kubernetes.io/last-applied-configuration",
		"deprecated.daemonset.template.generation", "batch.kubernetes.io/job-tracking",
		"kubernetes.io/service-account.uid", "autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics",
		"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
		"volume.kubernetes.io/selected-node":
		return true
	}
	// Of a Deployment, and of its ReplicaSets.
	return strings.HasPrefix(key, "deployment.kubernetes.io/")
}

// Foreign tells whether somebody else than the author of a manifest writes the key, the operator left aside: it is neither sent nor
// taken from an override.
func Foreign(key string) bool { return Orchestrator(key) || Local(key) }
