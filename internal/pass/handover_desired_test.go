package pass

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
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

// TestEachBackendIsToldWhatItMay (law 5): nothing before its placement is set up, and of what travels along for whom else the other has it.
func TestEachBackendIsToldWhatItMay(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}}}
	own, observe := backends.ModeOwn, backends.ModeObserve
	for name, test := range map[string]struct {
		target, settled bool
		want            map[string]backends.Mode
		elsewhere       map[string][]types.UID
	}{
		"the source":                   {false, true, map[string]backends.Mode{"m1": own, "m2": own}, nil},
		"the target":                   {true, true, map[string]backends.Mode{"m1": observe, "m2": own}, map[string][]types.UID{"m1": {"u9"}}},
		"the target, before it is set": {true, false, map[string]backends.Mode{}, map[string][]types.UID{"m1": {"u9"}}},
	} {
		d := moving(t)
		d.placed.targets, d.travel.companions = []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}}, []backends.Companion{{Object: obj, Shared: true}}
		d.handOver.orders.Clusters = map[string]migration.Modes{"m1": {Source: own, Target: observe}, "m2": {Source: own, Target: own}}
		d.handOver.source.observed.Clusters = []backends.ClusterObservation{{Cluster: "m1", Serves: map[string][]types.UID{"ConfigMap settings": {"u9"}}}}
		mine, other := d.handOver.source, d.handOver.target
		if test.target {
			mine, other = other, mine
		}
		mine.observed.Selection.Settled = test.settled
		desired := d.desiredOf(mine, other)
		got := map[string]backends.Mode{}
		for _, target := range desired.Targets {
			got[target.Cluster] = target.Mode
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.elsewhere, desired.Companions[0].Elsewhere); diff != "" || desired.Prune != backends.PruneNone {
			t.Errorf("%s: it prunes %q (-want +got):\n%s", name, desired.Prune, diff)
		}
	}
}
