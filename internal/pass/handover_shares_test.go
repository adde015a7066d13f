package pass

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// awayFrom is a hand-over of which no backend lists one cluster, and the other has room for 9 pods. Before, 4 replicas were divided.
func awayFrom(t *testing.T, division v1alpha1.Division, asked int32, decided map[string]int32, listed string) *Decision {
	t.Helper()
	d := moving(t)
	fw := d.in.FleetWorkload
	fw.Spec.Replicas, fw.Spec.Placement.Division = &asked, &division
	p, err := plan.New(fw, d.in.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	d.work.plan = p
	if d.work.asked, err = p.Asked(); err != nil {
		t.Fatal(err)
	}
	nine := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(9, resource.DecimalSI)}
	one := backends.Cluster{Name: listed, Ready: metav1.ConditionTrue, Free: nine}
	d.handOver.source.fleet, d.handOver.target.fleet = backends.Fleet{Clusters: []backends.Cluster{one}}, backends.Fleet{}
	d.handOver.source.observed.Clusters = []backends.ClusterObservation{{Cluster: "m1"}, {Cluster: "m2"}}
	d.record.placement = &v1alpha1.PlacementRecord{ClustersHash: d.work.asked.Clusters, DivisionHash: d.work.asked.Division, Replicas: ptr.To(int32(4))}
	for _, name := range []string{"m1", "m2"} {
		n := decided[name]
		d.record.placement.Clusters = append(d.record.placement.Clusters, v1alpha1.ClusterShare{Name: name, Replicas: &n, Baseline: &n})
	}
	fw.Status.Placement = d.record.placement.DeepCopy()
	d.merge()
	return d
}

// TestNothingIsSaidOfAClusterThatNobodyLists (law 2): it gets no order. A division by room, which only a backend could tell, gives it no more
// replicas, and of fewer it gives its own before others do.
func TestNothingIsSaidOfAClusterThatNobodyLists(t *testing.T) {
	divided := func(p v1alpha1.DivisionPreference) v1alpha1.Division {
		return v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: p}
	}
	byRoom, filled := divided(v1alpha1.DivisionPreferenceAvailableCapacity), divided(v1alpha1.DivisionPreferenceAggregated)
	weighted := divided(v1alpha1.DivisionPreferenceWeighted)
	even := [2]int32{2, 2}
	for name, test := range map[string]struct {
		division v1alpha1.Division
		asked    int32
		// decided and want are of the cluster that is listed, and of the other.
		decided, want [2]int32
	}{
		"the same":                 {weighted, 4, even, even},
		"more, by weight":          {weighted, 8, even, [2]int32{4, 4}},
		"more, by room":            {byRoom, 8, even, [2]int32{6, 2}},
		"more, filled":             {filled, 8, [2]int32{1, 3}, [2]int32{5, 3}},
		"fewer, by weight":         {weighted, 2, even, [2]int32{1, 1}},
		"fewer, by room":           {byRoom, 3, even, [2]int32{2, 1}},
		"fewer, filled":            {filled, 2, [2]int32{1, 3}, [2]int32{1, 1}},
		"fewer than the other has": {byRoom, 1, even, [2]int32{1, 0}},
		"none":                     {byRoom, 0, even, [2]int32{0, 0}},
		"all of them each":         {v1alpha1.Division{Type: v1alpha1.DivisionTypeDuplicated}, 6, [2]int32{4, 4}, [2]int32{6, 6}},
	} {
		for _, is := range [][2]string{{"m1", "m2"}, {"m2", "m1"}} {
			listed, away := is[0], is[1]
			d := awayFrom(t, test.division, test.asked, map[string]int32{listed: test.decided[0], away: test.decided[1]}, listed)
			if err := d.pin(); err != nil && !errors.Is(err, errEnough) {
				t.Errorf("%s, without %s: %v", name, away, err)
				continue
			}
			if diff := cmp.Diff(map[string]int32{listed: test.want[0], away: test.want[1]}, guard.Decided(d.record.placement)); diff != "" {
				t.Errorf("%s, without %s: decided %s", name, away, diff)
			}
			if len(d.placed.targets) != 1 || d.placed.targets[0].Cluster != listed || *d.placed.targets[0].Replicas != test.want[0] {
				t.Errorf("%s, without %s: ordered %+v", name, away, d.placed.targets)
			}
			if _, shown := d.observed.Of(away); !shown {
				t.Errorf("%s: what is last known of %s is not shown", name, away)
			}
		}
	}
}

// TestAnotherNumberWaitsForWhoIsToRunIt: while no cluster is listed nothing is decided, and nothing is in the hand-over's way.
func TestAnotherNumberWaitsForWhoIsToRunIt(t *testing.T) {
	for _, preference := range []v1alpha1.DivisionPreference{v1alpha1.DivisionPreferenceWeighted, v1alpha1.DivisionPreferenceAvailableCapacity} {
		decided := map[string]int32{"m1": 2, "m2": 2}
		d := awayFrom(t, v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: preference}, 8, decided, "m1")
		d.handOver.source.fleet = backends.Fleet{}
		d.merge()
		if err := d.pin(); err != nil || len(d.placed.targets) != 0 || *d.record.placement.Replicas != 4 || !cmp.Equal(decided, guard.Decided(d.record.placement)) {
			t.Errorf("%s: %v, ordered %+v, recorded %+v", preference, err, d.placed.targets, d.record.placement)
		}
	}
}

// TestWhatClustersThatNobodyListsKeep: together no more than those that are listed leave of what is asked for.
func TestWhatClustersThatNobodyListsKeep(t *testing.T) {
	keep, kept := keepAway(4, map[string]int32{"m1": 1, "m2": 2, "m3": 2}, []string{"m1"}, []string{"m2", "m3"})
	if want := map[string]int32{"m2": 2, "m3": 1}; !cmp.Equal(keep, want) || kept != 3 {
		t.Errorf("%v, together %d", keep, kept)
	}
}

// TestWhatClustersThatNobodyListsGoOnWith: with what was decided; for kinds without replicas that is 1.
func TestWhatClustersThatNobodyListsGoOnWith(t *testing.T) {
	d := moving(t)
	if got := d.goOn([]string{"m8", "m9"}, map[string]int32{"m8": 3}); got["m8"] != 3 || got["m9"] != 0 || len(got) != 2 {
		t.Errorf("got %v", got)
	}
	d.work.plan.Replicas = nil
	if got := d.goOn([]string{"m8"}, map[string]int32{"m8": 3}); got["m8"] != 1 {
		t.Errorf("without replicas: %v", got)
	}
}

// TestAScaleForWhichThereIsNoRoomIsRefused: nothing is decided, and what was goes on.
func TestAScaleForWhichThereIsNoRoomIsRefused(t *testing.T) {
	byRoom := v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: v1alpha1.DivisionPreferenceAvailableCapacity}
	d := awayFrom(t, byRoom, 99, map[string]int32{"m1": 2, "m2": 2}, "m1")
	if err := d.pin(); backends.CodeOf(err) != backends.CodeNoCapacity || *d.record.placement.Replicas != 4 || d.placed.targets != nil {
		t.Errorf("%v, ordered %+v, recorded %+v", err, d.placed.targets, d.record.placement)
	}
}
