package pass

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
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

// TestWhichClustersABackendIsAskedFor: not those of which it has but the name, unless it has nothing else.
func TestWhichClustersABackendIsAskedFor(t *testing.T) {
	named := backends.ClusterObservation{Cluster: "m9", Presence: backends.PresenceNamed}
	for name, test := range map[string]struct {
		clusters []string
		observed []backends.ClusterObservation
		want     []string
	}{
		"one that it knows, one by name":    {[]string{"m1", "m9"}, []backends.ClusterObservation{named}, []string{"m1"}},
		"one by name alone":                 {[]string{"m9"}, []backends.ClusterObservation{named}, []string{"m9"}},
		"one that it has and does not know": {[]string{"m8", "m9"}, []backends.ClusterObservation{{Cluster: "m8"}, named}, []string{"m8"}},
		"one of which it has nothing":       {[]string{"m7"}, nil, nil},
	} {
		d := moving(t)
		d.record.migration.Clusters, d.handOver.source.observed = nil, backends.Observation{Clusters: test.observed}
		for _, cluster := range test.clusters {
			d.record.migration.Clusters = append(d.record.migration.Clusters, v1alpha1.MigrationClusterStatus{Name: cluster})
		}
		var got []string
		for _, c := range d.there(d.handOver.source) {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
