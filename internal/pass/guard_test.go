package pass

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
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

// TestWhatRuns (law 4): without a report what was asked for counts, and a cluster that is only asked, is being left, or never was sent anything
// has nothing of it.
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
		{Cluster: "is held back from the start", Asked: &three, Held: true, Applied: metav1.ConditionUnknown},
		{Cluster: "is held, and has it", Asked: &three, Held: true, Applied: metav1.ConditionTrue},
		{Cluster: "is held, and says what runs", Asked: &three, Held: true, Status: map[string]any{"replicas": int64(2)}},
	}
	want := map[string]int32{
		"reports": 2, "reports more than can be": 1<<31 - 1, "reports none": 3, "reports none, was asked for none": 0, "says nothing": 3,
		"has no replicas": 1, "has no replicas, and says so": 1, "is held, and has it": 3, "is held, and says what runs": 2,
	}
	if got := d.runs(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestADecisionIsRecordedFirst (law 6): what is new of it ends the pass, and what is recorded already lets it go on.
func TestADecisionIsRecordedFirst(t *testing.T) {
	two, three := int32(2), int32(3)
	service := v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "Service", Name: "web"}
	other := v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "Service", Name: "other"}
	recorded := func() *v1alpha1.PlacementRecord {
		return &v1alpha1.PlacementRecord{Companions: []v1alpha1.WorkloadReference{service}, Clusters: []v1alpha1.ClusterShare{
			{Name: "m1", Replicas: &two}, {Name: "m2", Removal: v1alpha1.RemovalDeselected}, {Name: "m3", Removal: v1alpha1.RemovalDeselected},
		}}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.PlacementRecord)
		before *v1alpha1.PlacementRecord
		first  bool
	}{
		"nothing is new":  {func(*v1alpha1.PlacementRecord) {}, recorded(), false},
		"all is new":      {func(*v1alpha1.PlacementRecord) {}, nil, true},
		"another number":  {func(r *v1alpha1.PlacementRecord) { r.Clusters[0].Replicas = &three }, recorded(), true},
		"another cluster": {func(r *v1alpha1.PlacementRecord) { r.Clusters[0].Name = "m4" }, recorded(), true},
		"another reason":  {func(r *v1alpha1.PlacementRecord) { r.Clusters[1].Removal = v1alpha1.RemovalConfirmed }, recorded(), true},
		"one more is left": {func(r *v1alpha1.PlacementRecord) {
			r.Clusters = append(r.Clusters, v1alpha1.ClusterShare{Name: "m4", Removal: v1alpha1.RemovalDeselected})
		}, recorded(), true},
		"one is left by now":          {func(r *v1alpha1.PlacementRecord) { r.Clusters = r.Clusters[:2] }, recorded(), false},
		"another companion":           {func(r *v1alpha1.PlacementRecord) { r.Companions[0] = other }, recorded(), true},
		"a companion less":            {func(r *v1alpha1.PlacementRecord) { r.Companions = nil }, recorded(), false},
		"a companion, another number": {func(r *v1alpha1.PlacementRecord) { r.Companions[0], r.Clusters[0].Replicas = other, &three }, recorded(), true},
		"only what counts":            {func(r *v1alpha1.PlacementRecord) { r.Clusters[0].Baseline = &two }, recorded(), false},
	} {
		d := moving(t)
		d.in.FleetWorkload.Status.Placement = test.before
		record := recorded()
		test.change(record)
		if err := d.decided(*record); errors.Is(err, errEnough) != test.first || err != nil && !test.first || (d.waiting != "") != test.first {
			t.Errorf("%s: it waits for %q, %v", name, d.waiting, err)
		}
		if diff := cmp.Diff(record, d.record.placement); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestWhatIsReported (law 4): what clusters say that they run; silence, a question and a farewell say nothing.
func TestWhatIsReported(t *testing.T) {
	d := moving(t)
	d.work.kind = d.work.plan.Kind
	names := []string{"asked", "gone", "left", "none", "runs", "silent"}
	d.observed.Clusters = reports(d, "asked", "left", "none", "runs", "silent")
	d.observed.Clusters[0].Probe = &backends.ProbeResult{}
	d.observed.Clusters[1].Presence = backends.PresenceRemoving
	d.observed.Clusters[4].Status = nil
	for _, name := range names {
		d.placed.targets = append(d.placed.targets, backends.Target{Cluster: name, Replicas: ptr.To(int32(4))})
	}
	d.placed.targets[3].Replicas = nil // of a kind without
	if got, want := d.reported(), map[string]int32{"none": 1, "runs": 2}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWhatNobodyAskedForIsHeld (law 2): what runs without a record goes unasked neither in an ordinary pass nor in a hand-over.
func TestWhatNobodyAskedForIsHeld(t *testing.T) {
	for name, guard := range map[string]func(*Decision) error{"an ordinary pass": (*Decision).guard, "a hand-over": (*Decision).pin} {
		for runs, held := range map[int32]bool{2: false, 9: true} {
			d := moving(t)
			d.placed.choice, d.observed.Clusters = &placement.Choice{Clusters: []string{"m1", "m2"}}, reports(d, "m1", "m2")
			d.record.workload = plan.Reference(d.work.plan.Template)
			for _, o := range d.observed.Clusters {
				o.Status["replicas"] = int64(runs)
			}
			var err error
			if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, []string{"m1", "m2"}, map[string]int32{"m1": 2, "m2": 2}); err != nil {
				t.Fatal(err)
			}
			var why *stalled
			err = guard(d)
			if is := errors.As(err, &why) && why.reason == v1alpha1.ReasonRemovalHeld && why.again; is != held || !held && !errors.Is(err, errEnough) {
				t.Errorf("%s, where %d run on each: %v", name, runs, err)
			}
			if held && (!strings.Contains(why.message, "m1 (9 to 2), m2 (9 to 2)") || !strings.Contains(why.message, "take 14 of 18 replicas away") || d.record.placement != nil) {
				t.Errorf("%s: recorded is %+v: %v", name, d.record.placement, err)
			}
		}
	}
}

// TestWhatClustersAreToRun (law 2): one that is only asked, or of which nothing is said, goes on with what it has; kinds without replicas count
// as one.
func TestWhatClustersAreToRun(t *testing.T) {
	two, three := int32(2), int32(3)
	d := moving(t)
	d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "asked", Replicas: &two}, {Name: "left", Replicas: &two}}}
	d.placed.vanished = map[string]int32{"vanished": 4}
	d.placed.pinned = map[string]*int32{"paused": &three, "paused, without replicas": nil}
	d.placed.targets = []backends.Target{
		{Cluster: "asked", Mode: backends.ModeProbe, Replicas: &three}, {Cluster: "asked first", Mode: backends.ModeProbe, Replicas: &three},
		{Cluster: "left", Mode: backends.ModeRemove}, {Cluster: "owned", Replicas: &three}, {Cluster: "without replicas"},
	}
	want := map[string]int32{"asked": 2, "owned": 3, "paused": 3, "paused, without replicas": 1, "vanished": 4, "without replicas": 1}
	if got := d.next(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	d.next()["owned"] = 9
	if d.placed.vanished["owned"] != 0 {
		t.Error("what is remembered of others is changed")
	}
}
