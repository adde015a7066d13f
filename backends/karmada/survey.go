package karmada

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Needs are the kinds of Karmada that the driver reads and writes, in the versions in which it does. Customizations are not used where it has
// no interpreters.
func Needs() []schema.GroupVersionKind {
	needs := []schema.GroupVersionKind{
		clusterv1alpha1.SchemeGroupVersion.WithKind("Cluster"), workv1alpha1.SchemeGroupVersion.WithKind("Work"),
		workv1alpha2.SchemeGroupVersion.WithKind(workv1alpha2.ResourceKindResourceBinding),
		workv1alpha2.SchemeGroupVersion.WithKind(workv1alpha2.ResourceKindClusterResourceBinding), customizationGVK,
	}
	for _, s := range scopes() {
		needs = append(needs, s.policy, s.override)
	}
	return needs
}

// Served reads the clusters' API enablements, which Karmada looks up every few seconds. It implements backends.Surveyor.
func (d *Driver) Served(ctx context.Context, group string) (map[string]backends.Served, error) {
	if err := d.watches.ready(); err != nil {
		return nil, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := d.cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cached clusters: %w", err)
	}
	return servedBy(clusters.Items, group), nil
}

// servedBy leaves out clusters that serve nothing of the group as far as an incomplete list goes: that proves nothing.
func servedBy(clusters []clusterv1alpha1.Cluster, group string) map[string]backends.Served {
	all := map[string]backends.Served{}
	for i := range clusters {
		c := &clusters[i]
		served := backends.Served{Whole: meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements)}
		for _, api := range c.Status.APIEnablements {
			gv, err := schema.ParseGroupVersion(api.GroupVersion)
			if err != nil || gv.Group != group {
				continue
			}
			for _, r := range api.Resources {
				served.Resources = append(served.Resources, gv.WithResource(r.Name))
			}
		}
		if len(served.Resources) == 0 && !served.Whole {
			continue
		}
		slices.SortFunc(served.Resources, func(a, b schema.GroupVersionResource) int {
			return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Resource, b.Resource))
		})
		all[c.Name] = served
	}
	return all
}
