package importer

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Plain makes a FleetWorkload of objects that clusters have and nothing carries: those of each cluster, by its name.
func Plain(r Request, byCluster map[string][]*unstructured.Unstructured) (Result, error) {
	var all []*unstructured.Unstructured
	clusters := slices.Sorted(maps.Keys(byCluster))
	for _, cluster := range clusters {
		all = append(all, byCluster[cluster]...)
	}
	workload, err := r.choose(all)
	if err != nil {
		return Result{}, err
	}
	var members []member
	for _, cluster := range clusters {
		m := member{cluster: cluster, from: "cluster " + cluster}
		for _, obj := range byCluster[cluster] {
			if id(obj) == id(workload) {
				m.workload = obj
			} else {
				m.others = append(m.others, obj)
			}
		}
		if m.workload == nil {
			return Result{}, fmt.Errorf("cluster %s: %s is not among its objects; leave the cluster out, or give the object too", cluster, title(workload))
		}
		members = append(members, m)
	}
	d, err := startOf(r, members)
	if err != nil {
		return Result{}, err
	}
	d.fw.Spec.Placement.Clusters = d.these(clusters)
	for _, m := range members {
		if claim := claimOf(m.workload); claim != "" {
			d.note("%s of %s has the marks of %s: import it from there, or release it first", title(m.workload), m.from, claim)
		}
		for _, owner := range m.workload.GetOwnerReferences() {
			d.note("%s of %s is owned by %s %s, which may undo what the operator does, and takes the object with it when it goes", title(m.workload), m.from, owner.Kind, owner.Name)
		}
	}
	d.result.TakeOver = []Step{
		{What: "stop whatever else writes the object in the clusters, such as a pipeline, Helm or Argo CD"},
		d.apply(),
	}
	d.result.WayBack = []Step{d.orphan()}
	return d.finish()
}

// these selects clusters by name, and tells of those that the backend does not know.
func (d *draft) these(clusters []string) *v1alpha1.ClusterSelector {
	for _, cluster := range clusters {
		if _, known := d.Fleet.Get(cluster); !known {
			d.cannot(Unexpressed{Object: title(d.workload), Field: "cluster", Value: cluster,
				Reason:  "backend " + d.Backend + " knows no such cluster",
				Instead: "correct the name, register the cluster, or leave it out"})
		}
	}
	return &v1alpha1.ClusterSelector{Names: clusters}
}
