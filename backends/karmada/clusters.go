package karmada

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

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
		out.Taints = append(out.Taints, backends.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready != nil {
		out.Ready, out.ReadySince = ready.Status, ready.LastTransitionTime.Time
		if ready.Status != metav1.ConditionTrue {
			out.Message = ready.Message
		}
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

// sameForUs tells whether a change of a cluster can change a selection or a report. Heartbeats cannot.
func sameForUs(a, b *clusterv1alpha1.Cluster) bool {
	x, y := toCluster(a), toCluster(b)
	since := x.ReadySince.Equal(y.ReadySince)
	x.ReadySince, y.ReadySince = time.Time{}, time.Time{}
	return since && reflect.DeepEqual(x, y) && reflect.DeepEqual(a.Status.APIEnablements, b.Status.APIEnablements) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
}

// choose evaluates the placement over Karmada's clusters. Karmada's scheduler is told every cluster by name, so what it
// would filter is filtered here (pkg/scheduler/framework/plugins): clusters that are not ready, that have a taint
// nothing tolerates, or that do not serve the kind are left out unless they run the workload already.
func choose(q backends.Query, clusters []clusterv1alpha1.Cluster, live world) (backends.Selection, error) {
	if err := placeable(q.Placement); err != nil {
		return backends.Selection{}, err
	}
	fleet := toFleet(clusters)
	if names := unknown(q.Placement.Clusters, fleet); len(names) > 0 {
		return backends.Selection{}, &backends.Error{
			Code: backends.CodeClusterNotFound, Field: "spec.placement.clusters.names", Value: list(names),
			Message: "is not known to Karmada", Remedy: "correct the name, or join the cluster to Karmada",
		}
	}
	chosen, err := fleet.Select(q.Placement.Clusters)
	if err != nil {
		return backends.Selection{}, &backends.Error{
			Code: backends.CodeRejected, Field: "spec.placement.clusters", Message: "is not a valid selector",
			Remedy: "correct the field that the cause names", Err: err,
		}
	}
	byName := map[string]*clusterv1alpha1.Cluster{}
	for i := range clusters {
		byName[clusters[i].Name] = &clusters[i]
	}
	selection := backends.Selection{Settled: true}
	var lacking, tainted, lost []string
	for _, name := range chosen {
		cluster, _ := fleet.Get(name)
		switch {
		case live.runs(name):
		case byName[name].DeletionTimestamp != nil || cluster.Ready != metav1.ConditionTrue:
			lost = append(lost, name)
			continue
		case untolerated(cluster.Taints, q.Placement.Tolerations):
			tainted = append(tainted, name)
			continue
		case !serves(byName[name], q.Workload.GVK):
			lacking = append(lacking, name)
			continue
		}
		selection.Clusters = append(selection.Clusters, name)
	}
	if len(selection.Clusters) == 0 && len(lacking) > 0 && len(lost) == 0 {
		return backends.Selection{}, notServed(q.Workload.GVK, "no chosen cluster serves it: "+list(lacking)+" do not",
			"install its CRD on the clusters")
	}
	selection.Message = leftOut(q, lost, tainted, lacking)
	return selection, nil
}

func leftOut(q backends.Query, lost, tainted, lacking []string) string {
	var parts []string
	for _, part := range []struct {
		clusters []string
		why      string
	}{
		{lost, "not ready"},
		{tainted, "tainted, and spec.placement.tolerations does not tolerate it"},
		{lacking, "without " + q.Workload.GVK.GroupVersion().String() + " " + q.Workload.GVK.Kind},
	} {
		if len(part.clusters) > 0 {
			parts = append(parts, list(part.clusters)+": "+part.why)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "left out: " + strings.Join(parts, "; ")
}

// unknown returns the clusters that are chosen by name and do not exist.
func unknown(selector *v1alpha1.ClusterSelector, fleet backends.Fleet) []string {
	if selector == nil {
		return nil
	}
	var names []string
	for _, name := range selector.Names {
		if _, found := fleet.Get(name); !found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// placeable refuses what the placement asks and this driver does not do yet.
func placeable(p v1alpha1.Placement) error {
	refuse := func(field, remedy string) error {
		return &backends.Error{
			Code: backends.CodeUnsupported, Field: "spec.placement." + field,
			Message: "is not supported on a Karmada backend yet", Remedy: remedy,
		}
	}
	switch {
	case len(p.Groups) > 0:
		return refuse("groups", "use spec.placement.clusters")
	case p.NumberOfClusters != nil:
		return refuse("numberOfClusters", "name the clusters in spec.placement.clusters")
	case len(p.Spread) > 0:
		return refuse("spread", "name the clusters in spec.placement.clusters")
	case p.Failover != nil:
		return refuse("failover", "leave it out; a lost cluster keeps its workload")
	default:
		return nil
	}
}

func untolerated(taints []backends.Taint, tolerations []v1alpha1.ClusterToleration) bool {
	for _, t := range taints {
		if t.Effect != string(corev1.TaintEffectNoSchedule) && t.Effect != string(corev1.TaintEffectNoExecute) {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(tol v1alpha1.ClusterToleration) bool { return tolerates(tol, t) }) {
			return true
		}
	}
	return false
}

func tolerates(tol v1alpha1.ClusterToleration, t backends.Taint) bool {
	if tol.Key != "" && tol.Key != t.Key {
		return false
	}
	return tol.Operator == string(corev1.TolerationOpExists) || tol.Key != "" && tol.Value == t.Value
}

func notServed(gvk schema.GroupVersionKind, why, remedy string) error {
	return &backends.Error{
		Code: backends.CodeKindNotServed, Field: "spec.template.kind",
		Value:   fmt.Sprintf("%s %s", gvk.GroupVersion(), gvk.Kind),
		Message: why, Remedy: remedy,
	}
}
