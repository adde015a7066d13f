package ocm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// unfit are those of the chosen clusters that do not serve the kind, as they said when they were asked for the object.
// The hub knows nothing about what clusters serve, so the question stays on a chosen cluster: the agent repeats it, and
// tells when the answer changes. With conflictPolicy Adopt clusters are not asked, and their rows say what is wrong.
func (d *Driver) unfit(ctx context.Context, query backends.Query, chosen []string, fleet backends.Fleet) (map[string]string, error) {
	works, err := d.worksOf(ctx, query.Key)
	if err != nil {
		return nil, err
	}
	var lacking map[string]string
	for _, work := range works {
		r, err := readWork(work)
		if err != nil {
			return nil, err
		}
		if !r.isUnserved() || !slices.Contains(chosen, r.cluster) || !inContact(fleet, r.cluster) {
			continue
		}
		if lacking == nil {
			lacking = map[string]string{}
		}
		lacking[r.cluster] = backends.Without(query.Workload.GVK)
	}
	if len(chosen) > 0 && len(lacking) == len(chosen) {
		return nil, &backends.Error{
			Code: backends.CodeKindNotServed, Field: "spec.template.kind",
			Value:   fmt.Sprintf("%s %s", query.Workload.GVK.GroupVersion(), query.Workload.GVK.Kind),
			Message: "no chosen cluster serves it: " + strings.Join(chosen[:min(len(chosen), maxWaiting)], ", ") + " do not",
			Remedy:  "install its CRD on the clusters",
		}
	}
	return lacking, nil
}

// isUnserved tells whether the cluster was asked and does not know the kind. Nothing of the workload can be there.
func (r report) isUnserved() bool {
	s := r.state()
	return s.strategy == workv1.UpdateStrategyTypeReadOnly && s.notServed && !s.deleting && r.annotations[annotationRemoving] == ""
}

// goesOnAsking tells whether a ManifestWork on a cluster that is no target stays, since the cluster's answer is why.
func goesOnAsking(work *unstructured.Unstructured, selected backends.Selection) (bool, error) {
	r, err := readWork(work)
	if err != nil {
		return false, err
	}
	return r.isUnserved() && (!selected.Settled || slices.Contains(selected.Clusters, r.cluster)), nil
}
