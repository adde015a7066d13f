package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// reports are observations of clusters that have two replicas each, and run well.
func reports(d *Decision, clusters ...string) (all []backends.ClusterObservation) {
	for _, name := range clusters {
		all = append(all, backends.ClusterObservation{
			Cluster: name, Revision: d.work.plan.Revision, Asked: ptr.To(int32(2)), Applied: metav1.ConditionTrue, Current: true, Status: map[string]any{
				"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
			},
		})
	}
	return all
}

// TestWhatIsAwaitedUntilClustersAreChosen: the driver's word counts, and else what it says of the choice; a failure is not swallowed.
func TestWhatIsAwaitedUntilClustersAreChosen(t *testing.T) {
	for name, test := range map[string]struct {
		outcome         Outcome
		waiting, failed string
	}{
		"the driver says what": {Outcome{Progress: backends.Progress{Waiting: "a webhook"}}, "a webhook", ""},
		"it does not":          {Outcome{}, "no decision yet", ""},
		"it fails":             {Outcome{Err: errors.New("refused")}, "", "choose clusters: refused"},
	} {
		d := moving(t)
		d.in.FleetWorkload.Status.Workload = plan.Reference(d.work.plan.Template)
		if err := d.setUpPlacement(backends.Selection{Message: "no decision yet"}); !errors.Is(err, errEnough) || len(d.Orders) != 1 {
			t.Fatal(err)
		}
		err := d.conclude(map[string]Outcome{"one": test.outcome})
		if d.waiting != test.waiting || (err != nil) != (test.failed != "") || err != nil && err.Error() != test.failed {
			t.Errorf("%s: it waits for %q, %v", name, d.waiting, err)
		}
	}
}

// TestClustersThatServeAKindOtherwiseAreNoted: a CloneSet may behave otherwise where OpenKruise is older.
func TestClustersThatServeAKindOtherwiseAreNoted(t *testing.T) {
	for name, test := range map[string]struct {
		serves map[string][]string
		want   string
	}{
		"nobody says":  {nil, ""},
		"one says":     {map[string][]string{"m1": {"v1"}}, ""},
		"both alike":   {map[string][]string{"m1": {"v1"}, "m2": {"v1"}}, ""},
		"not alike":    {map[string][]string{"m1": {"v1"}, "m2": {"v1", "v1beta1"}}, "it is served as v1 on m1, as v1 and v1beta1 on m2"},
		"one has none": {map[string][]string{"m1": {"v1"}, "m2": {}}, ""},
	} {
		d := moving(t)
		d.observed.Selection.Serves, d.placed.targets = test.serves, []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}}
		d.noteVersions()
		if notes := strings.Join(d.travel.notes, "\n"); (notes != "") != (test.want != "") || !strings.HasSuffix(notes, test.want) {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

// TestOneClusterFewerIsEnoughWhenReplicasAreDivided: their total stays, while of a workload that each cluster runs in full something is lost.
func TestOneClusterFewerIsEnoughWhenReplicasAreDivided(t *testing.T) {
	for division, givenUp := range map[v1alpha1.DivisionType][]string{v1alpha1.DivisionTypeDivided: {"m2"}, v1alpha1.DivisionTypeDuplicated: nil} {
		d := moving(t)
		d.here.Spec.Placement.Division.Type = division
		d.here.Spec.Placement.Failover = &v1alpha1.Failover{TolerationSeconds: ptr.To(int32(1))}
		d.fleet.Clusters = append(d.fleet.Clusters, backends.Cluster{Name: "m3", Ready: metav1.ConditionTrue})
		d.fleet.Clusters[1].Ready, d.fleet.Clusters[1].ReadySince = metav1.ConditionUnknown, d.now.Add(-time.Hour)
		d.observed.Clusters = reports(d, "m1", "m2", "m3")
		choice, err := d.choose(backends.Selection{Settled: true, Clusters: []string{"m1", "m2", "m3"}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(choice.GivenUp, givenUp) {
			t.Errorf("%s: %v is given up: %s", division, choice.GivenUp, choice.Message)
		}
	}
}

// TestWhyAClusterIsLeft: the reason is what a person reads in the status, and what the guard asks about.
func TestWhyAClusterIsLeft(t *testing.T) {
	hour := metav1.NewTime(time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC))
	two := int32(2)
	for name, test := range map[string]struct {
		change func(*Decision)
		known  bool
		want   v1alpha1.RemovalReason
	}{
		"its labels changed":       {func(*Decision) {}, true, v1alpha1.RemovalDeselected},
		"it is not listed":         {func(*Decision) {}, false, v1alpha1.RemovalClusterLeft},
		"the placement was edited": {func(d *Decision) { d.record.placement.ClustersHash = "another" }, true, v1alpha1.RemovalSpecChanged},
		"nothing is recorded":      {func(d *Decision) { d.record.placement = nil }, true, v1alpha1.RemovalSpecChanged},
		"the edit was approved without it": {func(d *Decision) {
			d.record.placement.ClustersHash, d.work.asked.OnlyApproved = "another", true
		}, true, v1alpha1.RemovalDeselected},
		"the edit was approved with it": {func(d *Decision) {
			d.record.placement.ClustersHash, d.work.asked.OnlyApproved = "another", true
			d.record.placement.Clusters[1].RemovalApprovedAt = &hour
		}, true, v1alpha1.RemovalSpecChanged},
		"others took its place": {func(d *Decision) { d.placed.choice.GivenUp = []string{"m2"} }, true, v1alpha1.RemovalFailedOver},
		"it gets none of them":  {func(d *Decision) { d.placed.choice.Clusters = []string{"m1", "m2"} }, true, v1alpha1.RemovalNoReplicas},
		"the spec excludes it":  {func(d *Decision) { d.placed.excluded = []string{"m2"} }, true, v1alpha1.RemovalSpecChanged},
		"as it was said before": {func(d *Decision) { d.record.placement.Clusters[1].Removal = v1alpha1.RemovalConfirmed }, true, v1alpha1.RemovalConfirmed},
		"edited when it was gone": {func(d *Decision) {
			d.record.placement.ClustersHash, d.record.placement.Clusters[1].DeselectedAt = "another", &hour
		}, true, v1alpha1.RemovalDeselected},
		"edited when another was gone": {func(d *Decision) {
			d.record.placement.ClustersHash, d.record.placement.Clusters[0].DeselectedAt = "another", &hour
		}, true, v1alpha1.RemovalSpecChanged},
		"gone, and then excluded by it": {func(d *Decision) {
			d.record.placement.ClustersHash, d.record.placement.Clusters[1].DeselectedAt, d.placed.excluded = "another", &hour, []string{"m2"}
		}, true, v1alpha1.RemovalSpecChanged},
	} {
		d := moving(t)
		d.placed.choice = &placement.Choice{Clusters: []string{"m1"}}
		d.record.placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: &two}, {Name: "m2", Replicas: &two}},
		}
		test.change(d)
		if got := d.reasonToLeave("m2", test.known); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestWhatALostClusterKeeps (law 2): by spec.placement.failover.purge, and until the others run well.
func TestWhatALostClusterKeeps(t *testing.T) {
	for name, test := range map[string]struct {
		purge     v1alpha1.PurgePolicy
		change    func(*Decision)
		kept      bool
		unhealthy bool
	}{
		"without failover":            {change: func(d *Decision) { d.in.FleetWorkload.Spec.Placement.Failover = nil }},
		"at once":                     {purge: v1alpha1.PurgePolicyImmediate, unhealthy: true},
		"when the others are healthy": {purge: v1alpha1.PurgePolicyGraceful},
		"while the others are not":    {purge: v1alpha1.PurgePolicyGraceful, unhealthy: true, kept: true},
		"never":                       {purge: v1alpha1.PurgePolicyNever, kept: true},
		"never, but it is not lost":   {purge: v1alpha1.PurgePolicyNever, change: func(d *Decision) { d.placed.choice.GivenUp = nil }},
		"it is not lost, and nobody asks for it": {purge: v1alpha1.PurgePolicyGraceful, unhealthy: true, kept: true, change: func(d *Decision) {
			d.placed.choice.GivenUp = nil
		}},
		"it is not lost, and the spec asks for it": {purge: v1alpha1.PurgePolicyGraceful, unhealthy: true, change: func(d *Decision) {
			d.placed.choice.GivenUp, d.record.placement.ClustersHash = nil, "another"
		}},
		"it was decided already": {purge: v1alpha1.PurgePolicyGraceful, unhealthy: true, change: func(d *Decision) {
			d.record.placement.Clusters[1].Removal = v1alpha1.RemovalFailedOver
		}},
		"it is being left already": {purge: v1alpha1.PurgePolicyNever, change: func(d *Decision) {
			d.observed.Clusters[1].Presence = backends.PresenceRemoving
		}},
		"it is only asked what it runs": {purge: v1alpha1.PurgePolicyNever, change: func(d *Decision) {
			d.observed.Clusters[1].Probe = &backends.ProbeResult{}
		}},
		"while it is suspended": {purge: v1alpha1.PurgePolicyImmediate, kept: true, change: func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }},
	} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		d.in.FleetWorkload.Spec.Placement.Failover = &v1alpha1.Failover{Purge: test.purge}
		d.placed.choice = &placement.Choice{Clusters: []string{"m1"}, GivenUp: []string{"m2"}}
		d.observed.Clusters = reports(d, "m1", "m2")
		d.record.placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To(int32(2))}, {Name: "m2", Replicas: ptr.To(int32(2))}},
		}
		if test.unhealthy {
			d.observed.Clusters[0].Status["readyReplicas"], d.observed.Clusters[0].Status["availableReplicas"] = int64(0), int64(0)
		}
		if test.change != nil {
			test.change(d)
		}
		targets, err := d.work.plan.Pinned(*d.fleet, []string{"m1"}, map[string]int32{"m1": 2})
		if err != nil {
			t.Fatal(err)
		}
		left, err := d.leaving(targets)
		if err != nil || len(left) != 1 || left[0].Cluster != "m2" {
			t.Fatalf("%s: %+v, %v", name, left, err)
		}
		if kept := left[0].Mode == backends.ModeHold; kept != test.kept || slices.Contains(d.placed.held, "m2") != test.kept {
			t.Errorf("%s: it is to %s, held are %v", name, left[0].Mode, d.placed.held)
		}
		if _, removed := d.placed.removals["m2"]; removed == test.kept {
			t.Errorf("%s: removals are %v", name, d.placed.removals)
		}
	}
}

// TestWhatAHeldClusterRuns: what it was asked for, or else what was decided, or else what it reports.
func TestWhatAHeldClusterRuns(t *testing.T) {
	three := int32(3)
	for name, test := range map[string]struct {
		change func(*Decision, *backends.ClusterObservation)
		want   *int32
	}{
		"what it was asked for": {func(*Decision, *backends.ClusterObservation) {}, ptr.To(int32(2))},
		"what was decided": {func(d *Decision, o *backends.ClusterObservation) {
			o.Asked, d.record.placement = nil, &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: &three}}}
		}, &three},
		"what it reports": {func(_ *Decision, o *backends.ClusterObservation) { o.Asked, o.Status["replicas"] = nil, int64(5) }, ptr.To(int32(5))},
		"of a kind without replicas": {func(d *Decision, o *backends.ClusterObservation) {
			o.Asked, d.work.plan.Replicas = nil, nil
		}, nil},
	} {
		d := moving(t)
		o := reports(d, "m1")[0]
		test.change(d, &o)
		if got := d.heldReplicas(o); (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %v", name, ptr.Deref(got, -1))
		}
	}
}

// TestNoCluster (law 10): it says whether the fleet is empty or the placement is, and that what runs is left alone, where something does.
func TestNoCluster(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		why    string
		want   string
	}{
		"nothing matches": {func(*Decision) {}, "", `spec.placement: no cluster of backend "one" matches. Correct the placement, or the clusters' labels; ` +
			"the backend knows: m1, m2"},
		"all are left out": {func(*Decision) {}, "2 are tainted", `spec.placement: no cluster of backend "one" matches (2 are tainted). Correct`},
		"something runs":   {func(d *Decision) { d.observed.Clusters = reports(d, "m1") }, "", "matches. What runs is left alone. Correct"},
		"an empty fleet":   {func(d *Decision) { d.fleet = &backends.Fleet{} }, "", `spec.placement: the backend "one" knows no clusters. Join clusters to it`},
		"an empty fleet, and something runs": {func(d *Decision) { d.fleet, d.observed.Clusters = &backends.Fleet{}, reports(d, "m1") }, "",
			"knows no clusters. What runs is left alone. Join"},
	} {
		d := moving(t)
		test.change(d)
		if got := d.noCluster(test.why).Error(); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q lacks %q", name, got, test.want)
		}
	}
}

// TestSuspendingNeedsNoChoice (law 2): until clusters are chosen again, those that have the workload, or were to get it, are held.
func TestSuspendingNeedsNoChoice(t *testing.T) {
	share := func(name string) v1alpha1.ClusterShare {
		return v1alpha1.ClusterShare{Name: name, Replicas: ptr.To(int32(3))}
	}
	for name, test := range map[string]struct {
		change func(*Decision)
		want   []string
	}{
		"one runs it":          {func(*Decision) {}, []string{"m1 2"}},
		"it goes on":           {func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = nil }, nil},
		"it is being left":     {func(d *Decision) { d.observed.Clusters[0].Presence = backends.PresenceRemoving }, nil},
		"it is only asked":     {func(d *Decision) { d.observed.Clusters[0].Probe = &backends.ProbeResult{} }, nil},
		"it is not listed":     {func(d *Decision) { d.observed.Clusters[0].Cluster = "m9" }, nil},
		"another is to get it": {func(d *Decision) { d.record.placement.Clusters = []v1alpha1.ClusterShare{share("m1"), share("m2")} }, []string{"m1 2", "m2 3"}},
		"and it is not listed": {func(d *Decision) { d.record.placement.Clusters = []v1alpha1.ClusterShare{share("m9")} }, []string{"m1 2"}},
		"and it is left":       {func(d *Decision) { d.record.placement.Clusters = []v1alpha1.ClusterShare{{Name: "m2"}} }, []string{"m1 2"}},
	} {
		d := moving(t)
		d.in.FleetWorkload.Spec.Suspend, d.observed.Clusters, d.record.placement = ptr.To(true), reports(d, "m1"), &v1alpha1.PlacementRecord{}
		test.change(d)
		held, err := d.heldUnsettled()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, target := range held {
			got = append(got, fmt.Sprint(target.Cluster, " ", *target.Replicas))
			if target.Mode != backends.ModeHold {
				t.Errorf("%s: %s is to %s", name, target.Cluster, target.Mode)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: held are %q, want %q", name, got, test.want)
		}
	}
}

// TestExcluded: a cluster is excluded when no selector can choose it whatever its labels become.
func TestExcluded(t *testing.T) {
	for name, test := range map[string]struct {
		selectors []v1alpha1.ClusterSelector
		want      []string
	}{
		"all are chosen":            {[]v1alpha1.ClusterSelector{{}}, nil},
		"by labels":                 {[]v1alpha1.ClusterSelector{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}, nil},
		"others are named":          {[]v1alpha1.ClusterSelector{{Names: []string{"m1"}}}, []string{"m2"}},
		"one is excluded":           {[]v1alpha1.ClusterSelector{{Exclude: []string{"m1"}}}, []string{"m1"}},
		"one is named and excluded": {[]v1alpha1.ClusterSelector{{Names: []string{"m1", "m2"}, Exclude: []string{"m1"}}}, []string{"m1"}},
		"another selector chooses":  {[]v1alpha1.ClusterSelector{{Names: []string{"m1"}}, {Exclude: []string{"m1"}}}, nil},
		"there is no selector":      {nil, []string{"m1", "m2"}},
	} {
		d := moving(t)
		d.work.query.Selectors = test.selectors
		if got := d.excluded(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAPassThatCannotChooseOrdersNothing (law 10): it names the field that is to be mended.
func TestAPassThatCannotChooseOrdersNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.Placement)
		want   string
	}{
		"a cluster that is not there": {func(p *v1alpha1.Placement) { p.Clusters.Names = []string{"m9"} }, `spec.placement.clusters.names[0] "m9"`},
		"too few clusters": {func(p *v1alpha1.Placement) {
			p.Spread = []v1alpha1.SpreadConstraint{{By: v1alpha1.SpreadByCluster, MinGroups: ptr.To(int32(3))}}
		}, "spec.placement.spread[0].minGroups"},
	} {
		d := decideWith(moving(t), func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Backend, fw.Status.Workload = "one", &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
			test.change(&fw.Spec.Placement)
		}, nil)
		if d.err == nil || !strings.HasPrefix(d.err.Error(), "choose clusters: "+test.want) || len(d.Orders) > 0 || d.record.placement != nil {
			t.Errorf("%s: %v, %d orders, recorded %+v", name, d.err, len(d.Orders), d.record.placement)
		}
	}
}

// TestWhatIsAwaitedOfThePresentBackend: clusters that are asked what they run, or else what the driver says; a move that cannot begin is told.
func TestWhatIsAwaitedOfThePresentBackend(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*Decision)
		waiting, failed string
	}{
		"the driver says what":   {func(*Decision) {}, "an agent", ""},
		"one is asked":           {func(d *Decision) { d.placed.probed = []string{"m1"} }, "conflictPolicy Adopt: m1 to tell what runs there already (an agent)", ""},
		"it is to move in vain":  {func(d *Decision) { d.begins = &beginning{err: errors.New("away")} }, "an agent", "validate migration: away"},
		"something is not found": {func(d *Decision) { d.travel.lacking = []plan.Need{needOf("Secret", "key")} }, "an agent", "spec.dependencies: the pods refer to Secret key"},
	} {
		d := moving(t)
		test.change(d)
		err := d.concludeApply(map[string]Outcome{"one": {Progress: backends.Progress{Waiting: "an agent", RequeueAfter: time.Minute}}})
		if d.waiting != test.waiting || d.requeueAfter != time.Minute || (err != nil) != (test.failed != "") || err != nil && !strings.HasPrefix(err.Error(), test.failed) {
			t.Errorf("%s: it waits for %q, %v", name, d.waiting, err)
		}
	}
}
