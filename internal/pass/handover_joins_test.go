package pass

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// scaledWhileMoving moves a workload that had one replica and now has 6, on m1. The others have none: m2 is b2 on the target.
func scaledWhileMoving(t *testing.T) *Decision {
	t.Helper()
	d := moving(t)
	known := func(names ...string) (fleet backends.Fleet) {
		for _, name := range names {
			fleet.Clusters = append(fleet.Clusters, backends.Cluster{
				Name: name, Identity: name[1:], Ready: metav1.ConditionTrue, Labels: map[string]string{tenancy.LabelClusterSet: name},
			})
		}
		return fleet
	}
	h := d.handOver
	h.source.fleet, h.target.fleet = known("m1", "m2", "m3"), known("b2", "m1", "m3")
	h.source.observed = backends.Observation{
		Selection: backends.Selection{Settled: true, Clusters: []string{"m1", "m2", "m3"}}, Clusters: []backends.ClusterObservation{{Cluster: "m1"}},
	}
	h.target.observed = backends.Observation{Selection: backends.Selection{Settled: true, Clusters: []string{"b2", "m1", "m3"}}}
	features := backends.Features{backends.FeatureModes: true}
	d.in.Sides = map[string]*Side{"one": {Features: features}, "two": {Features: features}}
	d.record.migration.Clusters = []v1alpha1.MigrationClusterStatus{{Name: "m1", Phase: v1alpha1.MigrationPhaseShadowing}}
	d.record.placement = &v1alpha1.PlacementRecord{Replicas: ptr.To(int32(1)), Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To(int32(1))}}}
	d.work.plan = d.work.plan.Of(6)
	h.source.plan, h.target.plan, d.work.asked.Replicas = d.work.plan, d.work.plan, 6
	d.merge()
	return d
}

// number gives a cluster a number of its own.
func (d *Decision) number(cluster string, n int32) {
	fw := d.in.FleetWorkload
	fw.Spec.Overrides = []v1alpha1.Override{{Name: "own", Clusters: &v1alpha1.ClusterSelector{Names: []string{cluster}}, Replicas: &n}}
	d.planAgain()
}

// prefer has the replicas divided by the room for pods that clusters have, by their names on the source.
func (d *Decision) prefer(preference v1alpha1.DivisionPreference, room map[string]int64) {
	d.in.FleetWorkload.Spec.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: preference}
	for _, clusters := range [][]backends.Cluster{d.handOver.source.fleet.Clusters, d.handOver.target.fleet.Clusters} {
		for i, c := range clusters {
			if pods, known := room["m"+c.Identity]; known {
				clusters[i].Free = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
			}
		}
	}
	d.planAgain()
	d.merge()
}

func (d *Decision) planAgain() {
	p, err := plan.New(d.in.FleetWorkload, d.in.Kinds)
	if err != nil {
		panic(err)
	}
	d.work.plan = p.Of(6)
	d.handOver.source.plan, d.handOver.target.plan = d.work.plan, d.work.plan
}

// TestWhoJoinsAMigration: whom a new number gives replicas and nothing stands against, by the names on both backends. It is recorded before
// anything is divided.
func TestWhoJoinsAMigration(t *testing.T) {
	within := func(d *Decision, sets ...string) {
		terms, err := tenancy.Tenancy{Rules: []tenancy.Rule{{Name: "r", ClusterSets: sets}}}.Of("shop", nil)
		if err != nil {
			t.Fatal(err)
		}
		d.terms = terms
	}
	m1, m2, m3 := v1alpha1.MigrationClusterStatus{Name: "m1"}, v1alpha1.MigrationClusterStatus{Name: "m2", TargetName: "b2"}, v1alpha1.MigrationClusterStatus{Name: "m3"}
	for name, test := range map[string]struct {
		change func(d *Decision)
		want   []v1alpha1.MigrationClusterStatus
	}{
		"more":             {func(*Decision) {}, []v1alpha1.MigrationClusterStatus{m1, m2, m3}},
		"one more":         {func(d *Decision) { d.work.plan = d.work.plan.Of(2) }, []v1alpha1.MigrationClusterStatus{m1, m2}},
		"the same number":  {func(d *Decision) { d.work.asked.Replicas = 1 }, nil},
		"suspended":        {func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }, nil},
		"the record lost":  {func(d *Decision) { d.record.placement = nil }, nil},
		"without a choice": {func(d *Decision) { d.handOver.source.observed.Selection.Settled = false }, nil},
		"without a choice, where the source is being released": {func(d *Decision) {
			d.handOver.source.observed.Selection.Settled, d.record.migration.Phase = false, v1alpha1.MigrationPhaseReleasing
		}, []v1alpha1.MigrationClusterStatus{m1, m2, m3}},
		"one is not chosen":           {func(d *Decision) { d.handOver.source.observed.Selection.Clusters = []string{"m1", "m3"} }, []v1alpha1.MigrationClusterStatus{m1, m3}},
		"one has a number of its own": {func(d *Decision) { d.number("m3", 1) }, []v1alpha1.MigrationClusterStatus{m1, m2}},
		"it cannot be divided":        {func(d *Decision) { d.number("m1", 9) }, nil},
		"one is not known to the target": {func(d *Decision) {
			d.handOver.target.fleet.Clusters = d.handOver.target.fleet.Clusters[1:]
		}, []v1alpha1.MigrationClusterStatus{m1, m3}},
		"one cannot run it on the target": {func(d *Decision) {
			d.handOver.target.observed.Selection.Unsupported = map[string]string{"b2": "without it"}
		}, []v1alpha1.MigrationClusterStatus{m1, m3}},
		"one is not ready on the target": {func(d *Decision) {
			d.handOver.target.fleet.Clusters[2].Ready = metav1.ConditionFalse
		}, []v1alpha1.MigrationClusterStatus{m1, m2}},
		"by room, one more can take what is added": {func(d *Decision) {
			d.prefer(v1alpha1.DivisionPreferenceAvailableCapacity, map[string]int64{"m1": 2, "m2": 0, "m3": 8})
		}, []v1alpha1.MigrationClusterStatus{m1, m3}},
		"by room, on as few as possible": {func(d *Decision) {
			d.prefer(v1alpha1.DivisionPreferenceAggregated, map[string]int64{"m1": 2, "m2": 8, "m3": 3})
		}, []v1alpha1.MigrationClusterStatus{m1, m2}},
		"by room, and it has enough": {func(d *Decision) {
			d.prefer(v1alpha1.DivisionPreferenceAggregated, map[string]int64{"m1": 5, "m2": 8, "m3": 3})
		}, nil},
		"by room, and that is not known of one": {func(d *Decision) {
			d.prefer(v1alpha1.DivisionPreferenceAvailableCapacity, map[string]int64{"m1": 2, "m2": 4})
		}, nil},
		"one is out of reach on the source": {func(d *Decision) { within(d, "m1", "m3", "b2") }, []v1alpha1.MigrationClusterStatus{m1, m3}},
		"one is out of reach on the target": {func(d *Decision) { within(d, "m1", "m2", "m3") }, []v1alpha1.MigrationClusterStatus{m1, m3}},
	} {
		d := scaledWhileMoving(t)
		test.change(d)
		before := d.record.migration.Clusters
		err := d.letJoin()
		if joins := test.want != nil; joins != errors.Is(err, errEnough) || !joins && err != nil || joins != d.end.GoesOn {
			t.Errorf("%s: %v, goes on %t", name, err, d.end.GoesOn)
		}
		want := test.want
		if want == nil {
			want = before
		}
		if diff := cmp.Diff(want, d.record.migration.Clusters, cmpopts.IgnoreFields(v1alpha1.MigrationClusterStatus{}, "Phase", "Wave")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(before) != 1 {
			t.Errorf("%s: what was recorded has changed", name)
		}
	}
}

// TestARecordMadeAnew (law 2) speaks of no spec, and does not outlive the migration.
func TestARecordMadeAnew(t *testing.T) {
	d := scaledWhileMoving(t)
	d.record.placement = nil
	for range 2 {
		if err := d.pin(); err != nil && !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		if r := d.record.placement; r == nil || r.ClustersHash != "" || *r.Replicas != 6 {
			t.Fatalf("recorded %+v", r)
		}
	}
	d.handOver.orders.Ended = true
	d.remember(v1alpha1.MigrationStatus{})
	if d.record.placement != nil {
		t.Errorf("it stays: %+v", d.record.placement)
	}
	d = scaledWhileMoving(t)
	d.record.placement.ClustersHash, d.handOver.orders.Ended = "x", true
	if d.remember(v1alpha1.MigrationStatus{}); d.record.placement == nil {
		t.Error("one that was never lost is gone")
	}
}
