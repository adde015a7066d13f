package pass

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// TestWhatPausedClustersKeep: numbers that are too large together leave nothing for others, and never more than was asked for.
func TestWhatPausedClustersKeep(t *testing.T) {
	most := ptr.To(int32(math.MaxInt32))
	for name, test := range map[string]struct {
		pinned map[string]*int32
		want   int32
	}{
		"none":                        {nil, 0},
		"a kind without replicas":     {map[string]*int32{"m1": nil}, 0},
		"two":                         {map[string]*int32{"m1": ptr.To(int32(3)), "m2": ptr.To(int32(4))}, 7},
		"more than a number can hold": {map[string]*int32{"m1": most, "m2": most}, math.MaxInt32},
	} {
		d := moving(t)
		d.placed.pinned = test.pinned
		if got := d.kept(); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestWhatIsWithheldByAPause: four replicas are asked for, in all or on each cluster.
func TestWhatIsWithheldByAPause(t *testing.T) {
	two, four := ptr.To(int32(2)), ptr.To(int32(4))
	for name, test := range map[string]struct {
		division v1alpha1.DivisionType
		pinned   map[string]*int32
		beside   *int32
		want     string
	}{
		"nothing is paused":           {v1alpha1.DivisionTypeDivided, nil, two, ""},
		"a share as asked":            {v1alpha1.DivisionTypeDivided, map[string]*int32{"m1": two}, two, ""},
		"too much with the rest":      {v1alpha1.DivisionTypeDivided, map[string]*int32{"m1": four}, two, "4 replicas are asked for and 6 given: paused clusters keep 4 (m1)"},
		"as many as each":             {v1alpha1.DivisionTypeDuplicated, map[string]*int32{"m1": four}, four, ""},
		"fewer than each":             {v1alpha1.DivisionTypeDuplicated, map[string]*int32{"m1": two}, four, "what is paused has another number: m1 keeps 2"},
		"one of which nobody can say": {v1alpha1.DivisionTypeDuplicated, map[string]*int32{"m1": nil}, four, ""},
	} {
		d := moving(t)
		d.in.FleetWorkload.Spec.Placement.Division.Type = test.division
		var err error
		if d.work.plan, err = plan.New(d.in.FleetWorkload, d.in.Kinds); err != nil {
			t.Fatal(err)
		}
		d.placed.pinned, d.placed.targets = test.pinned, []backends.Target{{Cluster: "m2", Mode: backends.ModeOwn, Replicas: test.beside}}
		if got := d.withheld(); got != test.want && (test.want == "" || !strings.HasSuffix(got, test.want)) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhatIsSaidOfPausedClusters: which they are, and which of them go when they are paused no longer.
func TestWhatIsSaidOfPausedClusters(t *testing.T) {
	for name, test := range map[string]struct {
		pinned  string
		missing []string
		leaves  bool
	}{
		"one that is chosen":              {"m1", nil, false},
		"one that is not":                 {"m3", nil, true},
		"one that is missing for a while": {"m1", []string{"m1"}, true},
	} {
		d := moving(t)
		d.placed.pinned = map[string]*int32{test.pinned: nil}
		d.placed.choice, d.placed.missing = &placement.Choice{Clusters: []string{"m1", "m2"}}, test.missing
		notes := strings.Join(d.notePaused(), "; ")
		if !strings.Contains(notes, "left as they are by spec.placement.paused: "+test.pinned) ||
			strings.Contains(notes, "to be left once they are no longer paused: "+test.pinned) != test.leaves ||
			strings.Contains(notes, "to be left") != test.leaves {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

// TestWhichClustersArePinned: those that are paused and have the workload, or were given it; not those that are asked, or being left.
func TestWhichClustersArePinned(t *testing.T) {
	four := int32(4)
	for name, test := range map[string]struct {
		change func(*Decision)
		want   map[string]*int32
	}{
		"it runs there":       {func(*Decision) {}, map[string]*int32{"m1": ptr.To(int32(2))}},
		"it is not paused":    {func(d *Decision) { d.here.Spec.Placement.Paused.Names = []string{"m2"} }, map[string]*int32{}},
		"it is only asked":    {func(d *Decision) { d.observed.Clusters[0].Probe = &backends.ProbeResult{} }, map[string]*int32{}},
		"it is being left":    {func(d *Decision) { d.observed.Clusters[0].Presence = backends.PresenceRemoving }, map[string]*int32{}},
		"nothing is there":    {func(d *Decision) { d.observed.Clusters = nil }, map[string]*int32{}},
		"it is on its way":    {func(d *Decision) { d.observed.Clusters, d.record.placement = nil, given("m1", &four) }, map[string]*int32{"m1": &four}},
		"it is not listed":    {func(d *Decision) { d.fleet = &backends.Fleet{} }, map[string]*int32{"m1": ptr.To(int32(2))}},
		"it was given others": {func(d *Decision) { d.record.placement = given("m1", &four) }, map[string]*int32{"m1": &four}},
	} {
		d := moving(t)
		d.here.Spec.Placement.Paused = &v1alpha1.ClusterSelector{Names: []string{"m1"}}
		d.observed.Clusters = reports(d, "m1")
		test.change(d)
		if err := d.pause(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, d.placed.pinned); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// given is the record of one cluster's replicas.
func given(cluster string, replicas *int32) *v1alpha1.PlacementRecord {
	return &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: cluster, Replicas: replicas}}}
}

// TestWhatIsHeldOfPausedClusters: those that their backend lists, with what they keep; of others nothing is said (R16).
func TestWhatIsHeldOfPausedClusters(t *testing.T) {
	d := moving(t)
	d.placed.pinned = map[string]*int32{"m2": ptr.To(int32(7)), "m1": nil, "m9": ptr.To(int32(3))}
	held, err := d.holdPinned()
	if err != nil {
		t.Fatal(err)
	}
	var got []backends.Target
	for _, target := range held {
		if target.Manifest == nil {
			t.Errorf("%s is held without a manifest", target.Cluster)
		}
		target.Manifest = nil
		got = append(got, target)
	}
	want := []backends.Target{{Cluster: "m1", Mode: backends.ModeHold}, {Cluster: "m2", Mode: backends.ModeHold, Replicas: ptr.To(int32(7))}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
