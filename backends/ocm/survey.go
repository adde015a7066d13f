package ocm

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Needs are the kinds of OCM that the driver reads and writes, in the versions in which it does.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{clusterGVK, bindingGVK, placementGVK, decisionGVK, manifestWorkGVK}
}

// Bindings is what binds cluster sets to namespaces, as it is requested from a hub.
func Bindings() schema.GroupVersionResource {
	return bindingGVK.GroupVersion().WithResource("managedclustersetbindings")
}

// Served reads what agents say of the definitions for which the driver has asked them: those of the kinds that were ever to be sent to a
// cluster. OCM itself tells nothing. It implements backends.Surveyor.
func (d *Driver) Served(ctx context.Context, group string) (map[string]backends.Served, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	works, err := d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexPrerequisite: prerequisiteRights})
	if err != nil {
		return nil, err
	}
	return d.reports.servedOf(works, group), nil
}

// servedOf reads ManifestWorks that have agents' rights for kinds. A cluster that has not answered for any kind of the group is left out.
func (r *reports) servedOf(works []*unstructured.Unstructured, group string) map[string]backends.Served {
	all := map[string]backends.Served{}
	for _, work := range works {
		kind := schema.ParseGroupResource(strings.TrimPrefix(work.GetName(), rightsPrefix))
		versions := r.servedVersions(work)
		if kind.Group != group || len(versions) == 0 {
			continue
		}
		served := all[work.GetNamespace()]
		for _, version := range versions {
			served.Resources = append(served.Resources, kind.WithVersion(version))
		}
		all[work.GetNamespace()] = served
	}
	for _, served := range all {
		slices.SortFunc(served.Resources, func(a, b schema.GroupVersionResource) int {
			return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Resource, b.Resource))
		})
	}
	return all
}
