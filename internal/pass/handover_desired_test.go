package pass

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestWhatIsSharedIsToldOn: what one backend says of companions reaches the other's driver, by its own names of clusters.
func TestWhatIsSharedIsToldOn(t *testing.T) {
	obj := &unstructured.Unstructured{}
	obj.SetKind("ConfigMap")
	obj.SetName("settings")
	all := []backends.Companion{{Object: obj, Shared: true}}
	share(all, "t1", backends.ClusterObservation{Serves: map[string][]types.UID{"ConfigMap settings": {"b"}}})
	share(all, "t2", backends.ClusterObservation{Foreign: []string{"ConfigMap settings"}})
	share(all, "t3", backends.ClusterObservation{Serves: map[string][]types.UID{"Secret settings": {"b"}}})
	want := []backends.Companion{{Object: obj, Shared: true, Elsewhere: map[string][]types.UID{"t1": {"b"}}, Foreign: []string{"t2"}}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}
