package pass

import (
	"maps"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestAConfirmedRemovalSaysSo: of clusters that are left because a person has confirmed it, and of no others.
func TestAConfirmedRemovalSaysSo(t *testing.T) {
	reasons := []v1alpha1.RemovalReason{
		v1alpha1.RemovalDeselected, v1alpha1.RemovalClusterLeft, v1alpha1.RemovalSpecChanged, v1alpha1.RemovalFailedOver, v1alpha1.RemovalNoReplicas,
	}
	for name, test := range map[string]struct {
		before    *v1alpha1.PlacementRecord
		now       *int32
		confirmed bool
	}{
		"one more is confirmed":  {&v1alpha1.PlacementRecord{ConfirmedRemovals: ptr.To(int32(1))}, ptr.To(int32(2)), true},
		"the first is confirmed": {&v1alpha1.PlacementRecord{}, ptr.To(int32(1)), true},
		"none is":                {&v1alpha1.PlacementRecord{ConfirmedRemovals: ptr.To(int32(1))}, ptr.To(int32(1)), false},
		"nothing is recorded":    {nil, ptr.To(int32(1)), false},
	} {
		d := moving(t)
		d.record.placement, d.placed.removals = test.before, map[string]v1alpha1.RemovalReason{}
		d.placed.targets = []backends.Target{{Cluster: "stays"}}
		for _, reason := range reasons {
			d.placed.targets = append(d.placed.targets, backends.Target{Cluster: string(reason), Mode: backends.ModeRemove, Reason: reason})
			d.placed.removals[string(reason)] = reason
		}
		d.confirm(v1alpha1.PlacementRecord{ConfirmedRemovals: test.now})
		for i, reason := range reasons {
			want := reason
			if test.confirmed && i < 2 {
				want = v1alpha1.RemovalConfirmed
			}
			if target, removal := d.placed.targets[i+1].Reason, d.placed.removals[string(reason)]; target != want || removal != want {
				t.Errorf("%s: %s is left as %s, recorded %s", name, reason, target, removal)
			}
		}
		if _, removed := d.placed.removals["stays"]; removed || d.placed.targets[0].Reason != "" {
			t.Errorf("%s: what stays is removed", name)
		}
	}
}

// TestWhatRuns (law 4): without a report what was asked for counts, and a cluster that is only asked, or is being left, has nothing of it.
func TestWhatRuns(t *testing.T) {
	three := int32(3)
	d := moving(t)
	d.observed.Clusters = []backends.ClusterObservation{
		{Cluster: "reports", Asked: &three, Status: map[string]any{"replicas": int64(2)}},
		{Cluster: "reports more than can be", Asked: &three, Status: map[string]any{"replicas": int64(1) << 40}},
		{Cluster: "reports none", Asked: &three, Status: map[string]any{"replicas": int64(0)}},
		{Cluster: "reports none, was asked for none", Asked: new(int32), Status: map[string]any{"replicas": int64(0)}},
		{Cluster: "says nothing", Asked: &three},
		{Cluster: "has no replicas"},
		{Cluster: "has no replicas, and says so", Status: map[string]any{"replicas": int64(0)}},
		{Cluster: "is asked", Probe: &backends.ProbeResult{Exists: true, Replicas: &three}},
		{Cluster: "is left", Asked: &three, Presence: backends.PresenceRemoving},
	}
	want := map[string]int32{
		"reports": 2, "reports more than can be": 1<<31 - 1, "reports none": 3, "reports none, was asked for none": 0, "says nothing": 3,
		"has no replicas": 1, "has no replicas, and says so": 1,
	}
	if got := d.runs(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
