package ocm

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// unsupported are those of the chosen clusters that do not serve the kind, as they said when they were asked for the object.
// The hub knows nothing about what clusters serve, so the question stays on a chosen cluster: the agent repeats it, and
// tells when the answer changes. It fails with KindNotServed when none of them does. With conflictPolicy Adopt clusters are not asked, and their rows say what is wrong.
func (d *Driver) unsupported(ctx context.Context, query backends.Query, chosen []string, fleet backends.Fleet) (map[string]string, error) {
	works, err := d.worksOf(ctx, query.Key)
	if err != nil {
		return nil, err
	}
	var lacking map[string]string
	for _, work := range works {
		r, err := d.reports.read(work)
		if err != nil {
			return nil, err
		}
		if !r.isUnserved() || !slices.Contains(chosen, r.cluster) || !fleet.InContact(r.cluster) {
			continue
		}
		if lacking == nil {
			lacking = map[string]string{}
		}
		lacking[r.cluster] = backends.Without(query.Workload.GVK)
	}
	if len(chosen) > 0 && len(lacking) == len(chosen) {
		return lacking, backends.NotServed(query.Workload.GVK, "no chosen cluster serves it ("+brief.List(chosen)+")",
			"install its CRD on the clusters")
	}
	return lacking, nil
}

// serves are the versions in which the chosen clusters serve the kind, as its CRD there says.
func (d *Driver) serves(ctx context.Context, workload backends.Workload, chosen []string) (map[string][]string, error) {
	if slices.Contains(groupsOfAdmin, workload.GVK.Group) {
		return nil, nil
	}
	works, err := d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexPrerequisite: prerequisiteRights})
	if err != nil {
		return nil, err
	}
	name, known := rightsWorkName(workload.GVK.Group, workload.Resource), map[string][]string{}
	for _, work := range works {
		if work.GetName() != name {
			continue
		}
		if _, is := slices.BinarySearch(chosen, work.GetNamespace()); !is {
			continue
		}
		if versions := d.reports.servedVersions(work); len(versions) > 0 {
			known[work.GetNamespace()] = versions
		}
	}
	return known, nil
}

// servedVersions reads what the agent says of the CRD that it was asked for; nothing when it cannot be read.
func servedVersions(work *unstructured.Unstructured) []string {
	status, err := statusOf(work)
	if err != nil {
		return nil
	}
	var served []string
	for _, manifest := range status.ResourceStatus.Manifests {
		if manifest.ResourceMeta.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, value := range manifest.StatusFeedbacks.Values {
			if value.Value.Boolean != nil && *value.Value.Boolean {
				served = append(served, value.Name)
			}
		}
	}
	slices.Sort(served)
	return served
}

// isUnserved tells whether the cluster was asked and does not know the kind. Nothing of the workload can be there.
func (r report) isUnserved() bool {
	if r.strategy != workv1.UpdateStrategyTypeReadOnly {
		return false
	}
	s := r.state()
	return s.notServed && !s.deleting && !s.observe && r.ours.removing == ""
}

// goesOnAsking tells whether a ManifestWork on a cluster that is no target stays, since the cluster's answer is why.
func (d *Driver) goesOnAsking(work *unstructured.Unstructured, selected backends.Selection) (bool, error) {
	r, err := d.reports.read(work)
	if err != nil {
		return false, err
	}
	return r.isUnserved() && (!selected.Settled || slices.Contains(selected.Clusters, r.cluster)), nil
}
