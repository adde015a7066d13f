package karmada

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// expectationLife bounds how long the cache is waited for: what was written may have been deleted before it was seen.
const expectationLife = 10 * time.Second

type objectKey struct {
	gk schema.GroupKind
	types.NamespacedName
}

func keyOf(obj *unstructured.Unstructured) objectKey {
	return objectKey{obj.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

type expectation struct {
	version uint64
	at      time.Time
}

func newExpectation(obj *unstructured.Unstructured) expectation {
	return expectation{version: resourceVersion(obj), at: time.Now()}
}

func (x expectation) expired() bool { return time.Since(x.at) > expectationLife }

// newer tells whether what was written is newer than obj.
func (x expectation) newer(obj *unstructured.Unstructured) bool {
	return x.version > resourceVersion(obj)
}

// resourceVersion reads a resource version as the number that it is on API servers that store in etcd.
func resourceVersion(obj *unstructured.Unstructured) uint64 {
	n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func compareWorks(a, b work) int {
	if c := strings.Compare(a.cluster, b.cluster); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
