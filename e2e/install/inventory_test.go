//go:build api

package install

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// inventory is what an installation has put onto the API server, and what has come of it: UIDs by "resource name", with the namespace before the
// name of what is elsewhere than in the operator's.
type inventory map[string]types.UID

func (a *administrator) inventory(tb testing.TB) inventory {
	tb.Helper()
	kinds, err := discovery.NewDiscoveryClientForConfig(a.config)
	if err != nil {
		tb.Fatal(err)
	}
	objects, err := metadata.NewForConfig(a.config)
	if err != nil {
		tb.Fatal(err)
	}
	served, err := kinds.ServerPreferredResources()
	if err != nil {
		tb.Fatal(err)
	}
	found := inventory{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, served) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			tb.Fatal(err)
		}
		for _, resource := range list.APIResources {
			all, err := objects.Resource(version.WithResource(resource.Name)).List(tb.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) { // of a CRD that goes
				continue
			} else if err != nil {
				tb.Fatalf("list %s of %s: %v", resource.Name, list.GroupVersion, err)
			}
			for _, object := range all.Items {
				if belongs(resource.Name, &object) {
					found[named(resource.Name, &object)] = object.UID
				}
			}
		}
	}
	return found
}

// belongs tells whether an object is of an installation, or of the FleetWorkloads.
func belongs(resource string, object metav1.Object) bool {
	labels := object.GetLabels()
	return resource != "events" && (resource == "fleetworkloads" || object.GetNamespace() == namespace || strings.Contains(object.GetName(), "fleetworkload") ||
		labels["app.kubernetes.io/name"] == "fleetworkload" || labels["app.kubernetes.io/managed-by"] == "Helm")
}

func named(resource string, object metav1.Object) string {
	if in := object.GetNamespace(); in != "" && in != namespace {
		return resource + " " + in + "/" + object.GetName()
	}
	return resource + " " + object.GetName()
}

// names are sorted.
func (i inventory) names() []string { return slices.Sorted(maps.Keys(i)) }

// without is what is left when these are gone, each of which must be there.
func (i inventory) without(tb testing.TB, gone ...string) []string {
	tb.Helper()
	left := maps.Clone(i)
	for _, name := range gone {
		if _, there := left[name]; !there {
			tb.Errorf("%s is not there; there are %v", name, i.names())
		}
		delete(left, name)
	}
	return left.names()
}
