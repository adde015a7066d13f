package ocm

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// Indexes of the cache.
const (
	indexUID          = "fleetworkload-uid"
	indexOwner        = "fleetworkload"
	indexObject       = "member-object"
	indexNeeds        = "needed-prerequisite"
	indexPrerequisite = "prerequisite"
	indexUser         = "companion-user"
	indexPlacement    = "placement"
)

// perNamespace are the indexes that are asked within a namespace; all others are asked for the whole hub.
var perNamespace = []string{indexObject, indexNeeds, indexPlacement}

// indexes are those of ManifestWorks by name.
func indexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		indexUID: func(obj client.Object) []string {
			if obj.GetLabels()[companions.Label] != "" {
				return nil
			}
			return nonEmpty(obj.GetLabels()[v1alpha1.LabelUID])
		},
		indexUser: func(obj client.Object) []string {
			if obj.GetLabels()[companions.Label] == "" {
				return nil
			}
			return companions.ReadUsers(obj.GetAnnotations()).UIDs()
		},
		indexOwner: func(obj client.Object) []string { return nonEmpty(obj.GetAnnotations()[v1alpha1.AnnotationOwner]) },
		indexPrerequisite: func(obj client.Object) []string {
			return nonEmpty(obj.GetLabels()[labelPrerequisite])
		},
		indexObject: func(obj client.Object) []string {
			if u, ok := obj.(*unstructured.Unstructured); ok && u.GetLabels()[labelPrerequisite] == "" {
				return nonEmpty(bucket(identity(firstManifest(u))))
			}
			return nil
		},
		indexNeeds: func(obj client.Object) []string {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok || u.GetLabels()[labelPrerequisite] != "" {
				return nil
			}
			return neededBy(u)
		},
	}
}

// buckets are how many values indexObject has in a namespace: see leanInformer.
const buckets = 64

// bucket is the value that indexObject has for the identity of a member object.
func bucket(identity string) string {
	if identity == "" {
		return ""
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(identity)) // it never fails
	return strconv.Itoa(int(hash.Sum32() % buckets))
}

// delivering are the cached ManifestWorks of a cluster that deliver an object as the workload of a FleetWorkload.
func (d *Driver) delivering(ctx context.Context, cluster string, manifest map[string]any) ([]*unstructured.Unstructured, error) {
	object := identity(manifest)
	works, err := d.list(ctx, listOf(manifestWorkGVK), client.InNamespace(cluster), client.MatchingFields{indexObject: bucket(object)})
	return slices.DeleteFunc(works, func(work *unstructured.Unstructured) bool { return identity(firstManifest(work)) != object }), err
}

// leanInformer keeps of each index what is asked for: controller-runtime has each value twice, with the object's namespace and without
// (indexByField in pkg/cache/informer_cache.go), and a value that one object has takes about 240 bytes.
type leanInformer struct {
	toolscache.SharedIndexInformer
}

// anyNamespace begins the values without a namespace (allNamespacesNamespace in controller-runtime's pkg/cache/internal/cache_reader.go).
const anyNamespace = "__all_namespaces/"

func newLeanInformer(
	watch toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return leanInformer{toolscache.NewSharedIndexInformer(watch, of, resync, indexers)}
}

// AddIndexers adds the indexes that fields are asked by.
func (i leanInformer) AddIndexers(indexers toolscache.Indexers) error {
	lean := toolscache.Indexers{}
	for name, values := range indexers {
		within := slices.Contains(perNamespace, strings.TrimPrefix(name, "field:"))
		lean[name] = func(obj any) ([]string, error) {
			all, err := values(obj)
			return slices.DeleteFunc(all, func(value string) bool { return strings.HasPrefix(value, anyNamespace) == within }), err
		}
	}
	return i.SharedIndexInformer.AddIndexers(lean)
}

// checkIndexed is an error when an index is asked in a way in which it has nothing.
func checkIndexed(opts []client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	if asked.FieldSelector == nil {
		return nil
	}
	for _, r := range asked.FieldSelector.Requirements() {
		if within := slices.Contains(perNamespace, r.Field); within != (asked.Namespace != "") {
			return fmt.Errorf("index %s is kept for each namespace: %t; asked in namespace %q", r.Field, within, asked.Namespace)
		}
	}
	return nil
}
