package pass

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// moving is a pass of a FleetWorkload of four replicas, evenly divided, that moves from one to two with the clusters m1 and m2.
func moving(t *testing.T) *Decision {
	t.Helper()
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	four := int32(4)
	fw := &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: "two", Replicas: &four, Template: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment",` +
				`"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},` +
				`"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`)},
			Placement: v1alpha1.Placement{
				Clusters: &v1alpha1.ClusterSelector{}, Division: &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided},
			},
		},
		Status: v1alpha1.FleetWorkloadStatus{Backend: "one", Migration: &v1alpha1.MigrationStatus{
			From: "one", To: "two", Phase: v1alpha1.MigrationPhaseShadowing,
			Clusters: []v1alpha1.MigrationClusterStatus{{Name: "m1"}, {Name: "m2"}},
		}},
	}
	p, err := plan.New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	fleet := backends.Fleet{Clusters: []backends.Cluster{{Name: "m1", Ready: metav1.ConditionTrue}, {Name: "m2", Ready: metav1.ConditionTrue}}}
	d := &Decision{
		in:  In{Settings: Settings{Kinds: kinds, MaxRemovalPercent: 50}, FleetWorkload: fw},
		now: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), spec: fw, here: fw, backend: "one", fleet: &fleet,
		observed: &backends.Observation{}, record: record{backend: "one", migration: fw.Status.Migration.DeepCopy()}, work: work{plan: p},
	}
	if d.work.asked, err = p.Asked(); err != nil {
		t.Fatal(err)
	}
	d.handOver = &handOver{
		source: handSide{name: "one", nameOf: sourceName, plan: p, fleet: fleet},
		target: handSide{name: "two", nameOf: migration.NameOnTarget, plan: p, fleet: fleet},
	}
	return d
}

// TestAReleaseComesFirst (law 5): the side that is released gives everything up before the other hears that it has nothing left, and
// without a release nobody hears that.
func TestAReleaseComesFirst(t *testing.T) {
	const apply, release = migration.ActApply, migration.ActRelease
	for _, test := range []struct {
		source, target migration.Act
		want           []string
	}{
		{apply, apply, []string{"one applies", "two applies"}},
		{release, apply, []string{"one is released", "two applies, alone after"}},
		{apply, release, []string{"two is released", "one applies, alone after"}},
		{migration.ActNothing, apply, []string{"two applies"}},
	} {
		d := moving(t)
		d.handOver.orders = migration.Orders{Source: test.source, Target: test.target}
		if err := d.orderBoth(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, order := range d.Orders {
			text := order.Backend + " is released"
			if order.Apply != nil {
				text = order.Backend + " applies"
			} else if order.Delete.Policy != v1alpha1.DeletionPolicyOrphan {
				t.Errorf("a release deletes: %+v", order.Delete)
			}
			if order.AloneAfter {
				text += ", alone after"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s and %s: %q, want %q", test.source, test.target, got, test.want)
		}
	}
}

// TestDeletionTakesOneBackendAfterTheOther (law 5): during a hand-over the one that may write comes first, and the other after it,
// which takes what it only observes for its own then.
func TestDeletionTakesOneBackendAfterTheOther(t *testing.T) {
	for phase, want := range map[v1alpha1.MigrationPhase]string{
		v1alpha1.MigrationPhaseValidating:  "[one false ]",
		v1alpha1.MigrationPhaseHandingOver: "[two false ] [one true Gone]",
		v1alpha1.MigrationPhaseRollingBack: "[two false ] [one true Gone]",
		v1alpha1.MigrationPhaseReleasing:   "[one false ] [two true Gone]",
	} {
		d := moving(t)
		d.in.FleetWorkload.Status.Migration.Phase = phase
		if err := d.delete(); err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, order := range d.Orders {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprint([]any{order.Backend, order.OnlyAfter, order.Delete.Query.Counterpart})
		}
		if got != want {
			t.Errorf("%s: %s, want %s", phase, got, want)
		}
	}
}

// TestAHandOverIsRecordedFirst (law 6): a record that changes ends the pass, and one that does not lets it go on.
func TestAHandOverIsRecordedFirst(t *testing.T) {
	d := moving(t)
	suspend := true
	d.in.FleetWorkload.Spec.Suspend = &suspend
	if err := d.decideHandOver(); !errors.Is(err, errEnough) || d.record.migration.FrozenSince == nil {
		t.Errorf("the clock stops: %v, %+v", err, d.record.migration)
	}
	if err := d.decideHandOver(); err != nil {
		t.Errorf("it stands still: %v", err)
	}
}

// TestAHandOverMovesNoReplicas (law 1): what was decided before it began stays, whatever the division would make of it now.
func TestAHandOverMovesNoReplicas(t *testing.T) {
	d := moving(t)
	three, one, all := int32(3), int32(1), int32(4)
	d.record.placement = &v1alpha1.PlacementRecord{
		ClustersHash: d.work.asked.Clusters, DivisionHash: d.work.asked.Division, Replicas: &all,
		Clusters: []v1alpha1.ClusterShare{
			{Name: "m1", Replicas: &three, Baseline: &three}, {Name: "m2", Replicas: &one, Baseline: &one},
		},
	}
	d.in.FleetWorkload.Status.Placement = d.record.placement
	if err := d.pin(); err != nil {
		t.Fatal(err)
	}
	if got := guard.Decided(d.record.placement); got["m1"] != 3 || got["m2"] != 1 || *d.placed.targets[0].Replicas != 3 {
		t.Errorf("%v", got)
	}
}

// TestWhatABackendSaysOfACluster (law 4): what is about another manifest, or from a cluster that cannot be reached, counts for nothing.
func TestWhatABackendSaysOfACluster(t *testing.T) {
	two, three := int32(2), int32(3)
	for name, test := range map[string]struct {
		change            func(*backends.ClusterObservation, *backends.Cluster)
		rendered, current bool
	}{
		"as it should be":     {func(*backends.ClusterObservation, *backends.Cluster) {}, true, true},
		"an older manifest":   {func(o *backends.ClusterObservation, _ *backends.Cluster) { o.Revision = "older" }, false, true},
		"another number":      {func(o *backends.ClusterObservation, _ *backends.Cluster) { o.Asked = &three }, false, true},
		"no number":           {func(o *backends.ClusterObservation, _ *backends.Cluster) { o.Asked = nil }, false, true},
		"an old report":       {func(o *backends.ClusterObservation, _ *backends.Cluster) { o.Current = false }, true, false},
		"not applied":         {func(o *backends.ClusterObservation, _ *backends.Cluster) { o.Applied = metav1.ConditionFalse }, true, false},
		"out of reach":        {func(_ *backends.ClusterObservation, c *backends.Cluster) { c.Ready = metav1.ConditionUnknown }, true, false},
		"not listed any more": {func(_ *backends.ClusterObservation, c *backends.Cluster) { c.Name = "another" }, true, false},
	} {
		d := moving(t)
		o := backends.ClusterObservation{
			Cluster: "m1", Revision: d.work.plan.Revision, Asked: &two, Current: true, Applied: metav1.ConditionTrue,
		}
		c := backends.Cluster{Name: "m1", Ready: metav1.ConditionTrue}
		test.change(&o, &c)
		side := d.handOver.source
		side.fleet, side.observed = backends.Fleet{Clusters: []backends.Cluster{c}}, backends.Observation{Clusters: []backends.ClusterObservation{o}}
		r := d.reportOf(side, v1alpha1.MigrationClusterStatus{Name: "m1"}, backends.Target{Cluster: "m1", Replicas: &two})
		if r.Rendered != test.rendered || r.Current != test.current {
			t.Errorf("%s: rendered %v, current %v", name, r.Rendered, r.Current)
		}
	}
}

// TestOnlyThePresentManifestIsHealthy (law 4): clusters that were given up are left once the others run what is asked for by now.
func TestOnlyThePresentManifestIsHealthy(t *testing.T) {
	two, three := int32(2), int32(3)
	for name, test := range map[string]struct {
		change func(*backends.ClusterObservation)
		want   bool
	}{
		"as it should be":   {func(*backends.ClusterObservation) {}, true},
		"an older manifest": {func(o *backends.ClusterObservation) { o.Revision = "older" }, false},
		"another number":    {func(o *backends.ClusterObservation) { o.Asked = &three }, false},
		"no report":         {func(o *backends.ClusterObservation) { o.Status = nil }, false},
		"not ready": {func(o *backends.ClusterObservation) {
			o.Status["readyReplicas"], o.Status["availableReplicas"] = int64(1), int64(1)
		}, false},
		"not there": {func(o *backends.ClusterObservation) { o.Cluster = "m2" }, false},
	} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		targets, err := d.work.plan.Pinned(*d.fleet, []string{"m1"}, map[string]int32{"m1": two})
		if err != nil {
			t.Fatal(err)
		}
		o := backends.ClusterObservation{Cluster: "m1", Revision: d.work.plan.Revision, Asked: &two, Status: map[string]any{
			"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
		}}
		test.change(&o)
		d.observed.Clusters = []backends.ClusterObservation{o}
		if got := d.healthy(targets); got != test.want {
			t.Errorf("%s: healthy is %v", name, got)
		}
	}
	if moving(t).healthy(nil) {
		t.Error("none are healthy, where all that are wanted are paused")
	}
}

// TestWhatTellsEditsApart (law 2): an edit excuses what it asks for, so that a scale must not look like another placement, nor another
// division like other clusters.
func TestWhatTellsEditsApart(t *testing.T) {
	asked := func(change func(*v1alpha1.FleetWorkloadSpec)) guard.Asked {
		fw := moving(t).spec.DeepCopy()
		change(&fw.Spec)
		kinds, err := interpreter.New()
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(fw, kinds)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Asked()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before := asked(func(*v1alpha1.FleetWorkloadSpec) {})
	for name, test := range map[string]struct {
		change             func(*v1alpha1.FleetWorkloadSpec)
		clusters, division bool
	}{
		"a scale":          {func(s *v1alpha1.FleetWorkloadSpec) { *s.Replicas = 9 }, false, false},
		"another division": {func(s *v1alpha1.FleetWorkloadSpec) { s.Placement.Division = nil }, false, true},
		"other clusters":   {func(s *v1alpha1.FleetWorkloadSpec) { s.Placement.Clusters.Names = []string{"m1"} }, true, false},
	} {
		now := asked(test.change)
		if clusters, division := now.Clusters != before.Clusters, now.Division != before.Division; clusters != test.clusters || division != test.division {
			t.Errorf("%s: other clusters %v, another division %v", name, clusters, division)
		}
	}
}
