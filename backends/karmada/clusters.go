package karmada

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// toFleet translates Karmada's clusters.
func toFleet(clusters []clusterv1alpha1.Cluster) backends.Fleet {
	var fleet backends.Fleet
	for i := range clusters {
		fleet.Clusters = append(fleet.Clusters, toCluster(&clusters[i]))
	}
	slices.SortFunc(fleet.Clusters, func(a, b backends.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return fleet
}

func toCluster(c *clusterv1alpha1.Cluster) backends.Cluster {
	out := backends.Cluster{
		Name: c.Name, Labels: maps.Clone(c.Labels), Identity: c.Spec.ID, Ready: metav1.ConditionUnknown,
		Leaving:    c.DeletionTimestamp != nil,
		Attributes: map[v1alpha1.Attribute]string{},
	}
	zone := c.Spec.Zone
	if len(c.Spec.Zones) > 0 {
		zone = c.Spec.Zones[0]
	}
	for key, value := range map[v1alpha1.Attribute]string{
		v1alpha1.AttributeProvider: c.Spec.Provider, v1alpha1.AttributeRegion: c.Spec.Region, v1alpha1.AttributeZone: zone,
	} {
		if value != "" {
			out.Attributes[key] = value
		}
	}
	for _, t := range c.Spec.Taints {
		if slices.Contains(taintsOfLost, t.Key) {
			continue
		}
		taint := backends.Taint{Key: t.Key, Value: t.Value, Effect: backends.TaintEffect(t.Effect)}
		if t.TimeAdded != nil {
			taint.Added = t.TimeAdded.Time
		}
		out.Taints = append(out.Taints, taint)
	}
	if r := c.Status.ResourceSummary; r != nil {
		out.Free = free(r)
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready != nil {
		out.Ready, out.ReadySince = ready.Status, ready.LastTransitionTime.Time
		if ready.Status != metav1.ConditionTrue {
			out.Message = ready.Message
		}
	}
	return out
}

// taintsOfLost are given to clusters that Karmada cannot reach (pkg/apis/cluster/v1alpha1/well_known_constants.go).
var taintsOfLost = []string{
	clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable,
}

// free is what Karmada's own estimator counts as available (getAvailableReplicas in pkg/estimator/client/general.go):
// allocatable, less what pods have requested and what those that are not scheduled yet will.
func free(r *clusterv1alpha1.ResourceSummary) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range r.Allocatable {
		left := quantity.DeepCopy()
		left.Sub(r.Allocated[name])
		left.Sub(r.Allocating[name])
		out[name] = left
	}
	return out
}

// serves tells whether the cluster has the kind in its API enablements. An incomplete list proves nothing.
func serves(c *clusterv1alpha1.Cluster, gvk schema.GroupVersionKind) bool {
	groupVersion := gvk.GroupVersion().String()
	for _, api := range c.Status.APIEnablements {
		if api.GroupVersion != groupVersion {
			continue
		}
		for _, r := range api.Resources {
			if r.Kind == gvk.Kind {
				return true
			}
		}
	}
	return false
}

// versions are those in which the cluster serves a kind, sorted.
func versions(c *clusterv1alpha1.Cluster, kind schema.GroupKind) []string {
	var served []string
	for _, api := range c.Status.APIEnablements {
		gv, err := schema.ParseGroupVersion(api.GroupVersion)
		if err == nil && gv.Group == kind.Group && serves(c, gv.WithKind(kind.Kind)) {
			served = append(served, gv.Version)
		}
	}
	slices.Sort(served)
	return served
}

// isBuiltIn tells whether a group comes with Kubernetes.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// sameForUs tells whether a change of a cluster can change a selection or a report. Heartbeats cannot.
func sameForUs(a, b *clusterv1alpha1.Cluster) bool {
	return toCluster(a).Same(toCluster(b)) && reflect.DeepEqual(a.Status.APIEnablements, b.Status.APIEnablements)
}

// choose evaluates the selectors over Karmada's clusters. Karmada's scheduler is told every cluster by name, and would
// leave out clusters that do not serve the kind (its plugin APIEnablement); those that run it already stay.
func choose(q backends.Query, clusters []clusterv1alpha1.Cluster, live currentState) (backends.Selection, error) {
	fleet := toFleet(clusters)
	if names := fleet.Unknown(q.Selectors...); len(names) > 0 {
		return backends.Selection{}, &backends.Error{
			Code: backends.CodeClusterNotFound, Field: "spec.placement", Value: list(names),
			Message: "is not known to Karmada", Remedy: "correct the name, or join the cluster to Karmada",
		}
	}
	chosen, err := fleet.Select(q.Selectors...)
	if err != nil {
		return backends.Selection{}, &backends.Error{
			Code: backends.CodeRejected, Field: "spec.placement", Message: "has a selector that is not valid",
			Remedy: "correct the field that the cause names", Err: err,
		}
	}
	selection := backends.Selection{Settled: true, Clusters: chosen, Serves: map[string][]string{}}
	var lacking []string
	for i := range clusters {
		c := &clusters[i]
		if v := versions(c, q.Workload.GVK.GroupKind()); len(v) > 0 && !isBuiltIn(q.Workload.GVK.Group) && slices.Contains(chosen, c.Name) {
			selection.Serves[c.Name] = v
		}
		// What a cluster serves is not known while it cannot be reached.
		if !slices.Contains(chosen, c.Name) || live.runs(c.Name) || toCluster(c).Ready != metav1.ConditionTrue || serves(c, q.Workload.GVK) {
			continue
		}
		lacking = append(lacking, c.Name)
		if selection.Unsupported == nil {
			selection.Unsupported = map[string]string{}
		}
		selection.Unsupported[c.Name] = backends.Without(q.Workload.GVK)
	}
	if len(chosen) > 0 && len(lacking) == len(chosen) {
		return backends.Selection{}, backends.NotServed(q.Workload.GVK, "no chosen cluster serves it ("+list(lacking)+")",
			"install its CRD on the clusters")
	}
	if len(chosen) == 0 {
		selection.Message = "no cluster of Karmada matches spec.placement"
	}
	return selection, nil
}
