package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// TestTheSpecFromTheBeginning (law 1): edits wait, but for scaling; and what is not the spec from the beginning is never rolled out.
func TestTheSpecFromTheBeginning(t *testing.T) {
	edit := func(spec *v1alpha1.FleetWorkloadSpec) {
		spec.Template.Raw = []byte(strings.Replace(string(spec.Template.Raw), "nginx:1", "nginx:2", 1))
	}
	gone := func(name string, _ *v1alpha1.FleetWorkloadSpec) *KeptSpec { return &KeptSpec{Name: name} }
	for name, test := range map[string]struct {
		// kept is what is found under the name; edited is whether the FleetWorkload's spec was changed since.
		kept         func(name string, spec *v1alpha1.FleetWorkloadSpec) *KeptSpec
		edited       bool
		asks, keeps  bool
		lost, failed string
	}{
		"it is not read yet": {kept: func(string, *v1alpha1.FleetWorkloadSpec) *KeptSpec { return nil }, asks: true},
		"another was read": {kept: func(_ string, spec *v1alpha1.FleetWorkloadSpec) *KeptSpec {
			return &KeptSpec{Name: "web-migration-1-0123456789abcdef", Spec: spec}
		}, asks: true},
		"it cannot be read": {kept: func(name string, _ *v1alpha1.FleetWorkloadSpec) *KeptSpec {
			return &KeptSpec{Name: name, Err: errors.New("away")}
		}, failed: "away"},
		"it is there": {kept: func(name string, spec *v1alpha1.FleetWorkloadSpec) *KeptSpec {
			return &KeptSpec{Name: name, Spec: spec}
		}, edited: true},
		"it holds no spec": {kept: func(name string, _ *v1alpha1.FleetWorkloadSpec) *KeptSpec {
			return &KeptSpec{Name: name, Unreadable: true}
		}, lost: "does not hold the spec from the beginning"},
		"it holds another": {kept: func(name string, spec *v1alpha1.FleetWorkloadSpec) *KeptSpec {
			edit(spec)
			return &KeptSpec{Name: name, Spec: spec}
		}, lost: "does not hold the spec from the beginning"},
		"it is gone":                 {kept: gone, keeps: true},
		"it is gone, and was edited": {kept: gone, edited: true, lost: "is gone, and the spec was changed"},
	} {
		d := moving(t)
		fw := d.in.FleetWorkload
		spec := migration.Kept(fw.Spec)
		revision, err := migration.KeptName(fw, spec, 3)
		if err != nil {
			t.Fatal(err)
		}
		d.record.migration.SpecRevision, d.in.Kept = revision, test.kept(revision, spec.DeepCopy())
		if test.edited {
			edit(&fw.Spec)
		}
		fw.Spec.Replicas = ptr.To(int32(9))
		d.spec = nil
		err = d.readKeptSpec()
		if asks := d.Reads.KeptSpec == revision; asks != test.asks || asks != errors.Is(err, errEnough) {
			t.Errorf("%s: it asks for %q, %v", name, d.Reads.KeptSpec, err)
		}
		if keeps := d.Keep != nil; keeps != test.keeps || keeps && (d.Keep.Name != revision || !migration.Names(revision, fw, *d.Keep.Spec)) {
			t.Errorf("%s: it keeps %+v", name, d.Keep)
		}
		var why *stalled
		switch {
		case test.asks:
		case test.lost != "":
			if !errors.As(err, &why) || why.reason != v1alpha1.ReasonMigrationSpecLost || !strings.Contains(why.message, test.lost) || d.spec != nil {
				t.Errorf("%s: %v", name, err)
			}
		case test.failed != "":
			if err == nil || err.Error() != test.failed {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !strings.Contains(string(d.spec.Spec.Template.Raw), "nginx:1") || *d.spec.Spec.Replicas != 9 || d.here == nil:
			t.Errorf("%s: it goes on with %s, %d replicas", name, d.spec.Spec.Template.Raw, *d.spec.Spec.Replicas)
		}
	}
}

// TestABackendThatIsAwayStopsTheClock (law 8): it is named, and while another is not read yet nothing is said of either.
func TestABackendThatIsAwayStopsTheClock(t *testing.T) {
	there := func(d *Decision) *Side { return &Side{Fleet: d.fleet, Observed: &backends.Observation{}} }
	away := func(*Decision) *Side { return &Side{Err: errors.New("away")} }
	unset := func(*Decision) *Side { return &Side{Err: backends.ErrNotConfigured} }
	unread := func(*Decision) *Side { return nil }
	for name, test := range map[string]struct {
		one, two func(*Decision) *Side
		asks     int
		away     string
		reason   string
	}{
		"both are there":            {one: there, two: there},
		"none is read yet":          {one: unread, two: unread, asks: 2},
		"the source is away":        {one: away, two: there, away: "one"},
		"the target is away":        {one: there, two: away, away: "two"},
		"one is away, one not read": {one: unread, two: away, asks: 1},
		"the target is not set up":  {one: there, two: unset, away: "two", reason: v1alpha1.ReasonBackendNotFound},
	} {
		d := moving(t)
		d.in.Sides = map[string]*Side{"one": test.one(d), "two": test.two(d)}
		err := d.observeBoth()
		if len(d.Reads.Sides) != test.asks || errors.Is(err, errEnough) != (test.asks > 0) {
			t.Errorf("%s: it asks for %d, %v", name, len(d.Reads.Sides), err)
		}
		if frozen := d.record.migration.FrozenSince != nil; frozen != (test.away != "") || frozen && (d.backend != test.away || err == nil) {
			t.Errorf("%s: frozen %v for %s, %v", name, frozen, d.backend, err)
		}
		var why *stalled
		if is := errors.As(err, &why); is != (test.reason != "") || is && (why.reason != test.reason || !strings.Contains(why.message, `needs backend "two"`)) {
			t.Errorf("%s: %v", name, err)
		}
		if test.asks == 0 && test.away == "" && (err != nil || len(d.fleet.Clusters) != 2) {
			t.Errorf("%s: %v, %+v", name, err, d.fleet)
		}
	}
}

// TestBothBackendsAreShownAsOne (law 4): of each cluster the report of whose it is; what was last known stays shown until that one reports.
func TestBothBackendsAreShownAsOne(t *testing.T) {
	const shadowing, handing = v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseHandingOver
	says := func(cluster string, n int64) []backends.ClusterObservation {
		return []backends.ClusterObservation{{Cluster: cluster, Status: map[string]any{"replicas": n}}}
	}
	silent := []backends.ClusterObservation{{Cluster: "t1"}}
	for name, test := range map[string]struct {
		phase          v1alpha1.MigrationPhase
		source, target []backends.ClusterObservation
		want           any
	}{
		"the source's":                      {shadowing, says("m1", 1), says("t1", 2), int64(1)},
		"the target's":                      {handing, says("m1", 1), says("t1", 2), int64(2)},
		"the target's, which is silent yet": {handing, says("m1", 1), silent, int64(1)},
		"the target's, and none says":       {handing, nil, silent, nil},
	} {
		d := moving(t)
		d.record.migration.Clusters = []v1alpha1.MigrationClusterStatus{{Name: "m1", TargetName: "t1", Phase: test.phase}}
		h := d.handOver
		h.source.observed.Clusters, h.target.observed.Clusters = test.source, test.target
		d.merge()
		o, is := d.observed.Of("m1")
		if !is || o.Status["replicas"] != test.want || len(d.observed.Clusters) != 1 {
			t.Errorf("%s: %+v", name, d.observed.Clusters)
		}
	}
}

// TestAScaleGoesOnInAHandOver: the new number is divided over the clusters of the migration once, and recorded before it is carried out.
func TestAScaleGoesOnInAHandOver(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.PlacementRecord)
		m1      int32
		decides bool
	}{
		"as it was":          {func(*v1alpha1.PlacementRecord) {}, 1, false},
		"another number":     {func(r *v1alpha1.PlacementRecord) { r.Replicas = ptr.To(int32(2)) }, 2, true},
		"no number recorded": {func(r *v1alpha1.PlacementRecord) { r.Replicas = nil }, 2, true},
	} {
		d := moving(t)
		one := int32(1)
		d.record.placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, DivisionHash: d.work.asked.Division, Replicas: ptr.To(int32(4)), Clusters: []v1alpha1.ClusterShare{
				{Name: "m1", Replicas: &one, Baseline: &one}, {Name: "m2", Replicas: &one, Baseline: &one},
			},
		}
		test.change(d.record.placement)
		d.in.FleetWorkload.Status.Placement = d.record.placement.DeepCopy()
		err := d.pin()
		if errors.Is(err, errEnough) != test.decides || err != nil && !test.decides {
			t.Errorf("%s: %v", name, err)
		}
		if got := guard.Decided(d.record.placement); got["m1"] != test.m1 || got["m2"] != test.m1 || len(d.placed.targets) != 2 || *d.placed.targets[0].Replicas != test.m1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTheRecordHasTheOwnersNames: once the target owns the clusters, it finds them under its names; rolled back, they keep the source's.
func TestTheRecordHasTheOwnersNames(t *testing.T) {
	for name, test := range map[string]struct {
		orders migration.Orders
		owner  string
		want   []string
	}{
		"it goes on":               {migration.Orders{}, "one", []string{"m1", "m2", "m3"}},
		"the target owns":          {migration.Orders{TargetOwns: true}, "two", []string{"m1", "m2", "m3"}},
		"the target owns for ever": {migration.Orders{TargetOwns: true, Ended: true}, "two", []string{"t1", "m2", "m3"}},
		"it is rolled back":        {migration.Orders{Ended: true}, "one", []string{"m1", "m2", "m3"}},
	} {
		d := moving(t)
		d.record.migration.Clusters[0].TargetName = "t1"
		d.record.placement = &v1alpha1.PlacementRecord{ClustersHash: "x", Clusters: []v1alpha1.ClusterShare{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}}
		d.handOver.orders = test.orders
		d.remember(v1alpha1.MigrationStatus{})
		var got []string
		for _, row := range d.record.placement.Clusters {
			got = append(got, row.Name)
		}
		slices.Sort(got)
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) || d.record.backend != test.owner {
			t.Errorf("%s: backend %s has %v", name, d.record.backend, got)
		}
	}
}

// TestWhatAHandOverWaitsFor: for the first backend that waits, by its name; one that fails is named too.
func TestWhatAHandOverWaitsFor(t *testing.T) {
	waits := func(text string) Outcome { return Outcome{Progress: backends.Progress{Waiting: text}} }
	for name, test := range map[string]struct {
		one, two Outcome
		want     string
		failed   string
	}{
		"none waits":                     {Outcome{}, Outcome{}, "", ""},
		"the first waits":                {waits("a gate"), Outcome{}, "backend one: a gate", ""},
		"the other waits":                {Outcome{}, waits("an agent"), "backend two: an agent", ""},
		"both wait":                      {waits("a gate"), waits("an agent"), "backend one: a gate", ""},
		"one waits, and the other fails": {waits("a gate"), Outcome{Err: errors.New("refused")}, "backend one: a gate", "two"},
		"one fails":                      {Outcome{Err: errors.New("refused")}, waits("an agent"), "", "one"},
	} {
		d := moving(t)
		d.Orders = []Order{{Backend: "one", Apply: &backends.Desired{}}, {Backend: "two", Apply: &backends.Desired{}}}
		err := d.concludeHandOver(map[string]Outcome{"one": test.one, "two": test.two})
		if (err != nil) != (test.failed != "") || d.waiting != test.want {
			t.Errorf("%s: %q, %v", name, d.waiting, err)
		}
		if err != nil && (err.Error() != "carry out: refused" || d.backend != test.failed) {
			t.Errorf("%s: backend %s: %v", name, d.backend, err)
		}
	}
}

// TestWhatAPersonHasToDecide (law 10): whether a wave has failed, or has passed and waits, and what to do about it.
func TestWhatAPersonHasToDecide(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*v1alpha1.MigrationStatus, *migration.Orders)
		reason, text string
	}{
		"nothing": {func(*v1alpha1.MigrationStatus, *migration.Orders) {}, "", ""},
		"a wave has passed": {func(m *v1alpha1.MigrationStatus, _ *migration.Orders) { m.Approval = "1-2" },
			v1alpha1.ReasonMigrationNeedsApproval, `wave 1 has passed. Let it go on with: kubectl annotate fleetworkload web -n shop`},
		"a wave has failed": {func(m *v1alpha1.MigrationStatus, _ *migration.Orders) { m.Approval, m.Failure = "1-2", "m1 is sick" },
			v1alpha1.ReasonMigrationFailed, `wave 1 failed: m1 is sick. Its clusters are in phase Shadowing. Try it again with: kubectl annotate`},
		"nothing comes of it": {func(_ *v1alpha1.MigrationStatus, o *migration.Orders) { o.Overdue = "m1 is not the same" },
			v1alpha1.ReasonMigrationNotPossible, `has handed no cluster over yet: m1 is not the same. It goes on when that is mended; or set spec.backend back to "one"`},
		"it is over": {func(m *v1alpha1.MigrationStatus, o *migration.Orders) { m.Approval, o.Ended = "1-2", true }, "", ""},
	} {
		d := moving(t)
		d.record.migration.Wave = ptr.To(int32(1))
		test.change(d.record.migration, &d.handOver.orders)
		err := d.ask()
		var why *stalled
		if asks := errors.As(err, &why); asks != (test.reason != "") || asks && (why.reason != test.reason || !strings.Contains(why.message, test.text)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHowFarAHandOverIs: how many clusters are the target's, which wave it is at, and what the first one waits for.
func TestHowFarAHandOverIs(t *testing.T) {
	const begin = "moving from backend one to two: HandingOver, "
	cluster := func(name string, phase v1alpha1.MigrationPhase, message string) v1alpha1.MigrationClusterStatus {
		return v1alpha1.MigrationClusterStatus{Name: name, Phase: phase, Message: message}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.MigrationStatus)
		want   string
	}{
		"it has not begun": {func(m *v1alpha1.MigrationStatus) { m.Phase = "" }, ""},
		"none yet": {func(m *v1alpha1.MigrationStatus) {
			m.Clusters = []v1alpha1.MigrationClusterStatus{cluster("m1", v1alpha1.MigrationPhaseHandingOver, ""), cluster("m2", v1alpha1.MigrationPhaseShadowing, "")}
		}, begin + "0 of 2 clusters handed over"},
		"two of three, at a wave": {func(m *v1alpha1.MigrationStatus) {
			m.Wave = ptr.To(int32(2))
			m.Clusters = []v1alpha1.MigrationClusterStatus{
				cluster("m1", v1alpha1.MigrationPhaseVerifying, ""), cluster("m2", v1alpha1.MigrationPhaseReleasing, ""),
				cluster("m3", v1alpha1.MigrationPhaseRolledBack, ""),
			}
		}, begin + "2 of 3 clusters handed over, wave 2"},
		"what the first waits for": {func(m *v1alpha1.MigrationStatus) {
			m.Clusters = []v1alpha1.MigrationClusterStatus{
				cluster("m1", v1alpha1.MigrationPhaseVerifying, ""), cluster("m2", v1alpha1.MigrationPhaseHandingOver, "not adopted"),
				cluster("m3", v1alpha1.MigrationPhaseHandingOver, "not released"),
			}
		}, begin + "1 of 3 clusters handed over; cluster m2: not adopted"},
		"the spec was edited": {func(m *v1alpha1.MigrationStatus) {
			m.Clusters, m.SpecRevision = nil, "web-migration-4-0123456789abcdef"
		},
			begin + "0 of 0 clusters handed over; changes of the spec other than replicas wait until it is over"},
	} {
		d := moving(t)
		fw := d.in.FleetWorkload
		kept, err := migration.KeptName(fw, migration.Kept(fw.Spec), 2)
		if err != nil {
			t.Fatal(err)
		}
		fw.Generation, fw.Spec.Replicas = 3, ptr.To(int32(9)) // which does not wait
		d.record.migration.Phase, d.record.migration.SpecRevision = v1alpha1.MigrationPhaseHandingOver, kept
		test.change(d.record.migration)
		if got := progressOf(fw, *d.record.migration); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	for edited, want := range map[bool]string{
		false: begin + "0 of 0 clusters handed over",
		true:  begin + "0 of 0 clusters handed over; changes of the spec other than replicas wait until it is over",
	} {
		d := moving(t)
		d.in.Installation, d.record.workload, d.record.migration.Phase = "production", plan.Reference(d.work.plan.Template), v1alpha1.MigrationPhaseHandingOver
		fw := d.in.FleetWorkload
		name, err := migration.KeptName(d.known(fw), migration.Kept(fw.Spec), 2)
		if err != nil {
			t.Fatal(err)
		}
		d.record.migration.SpecRevision, d.record.migration.Clusters, d.work.plan = name, nil, nil
		if fw.Spec.Replicas = ptr.To(int32(9)); edited {
			fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
		}
		if got := d.facts(nil).Migrating; got != want {
			t.Errorf("in an installation with a name, edited %t: %q, want %q", edited, got, want)
		}
	}
}

// TestCompanionsTravelUnderTheTargetsNames: those that all clusters need go to all, and others to the clusters that need them.
func TestCompanionsTravelUnderTheTargetsNames(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"}}}
	for name, test := range map[string]struct{ clusters, want []string }{
		"all need it":     {nil, nil},
		"both need it":    {[]string{"m1", "m2"}, []string{"m2", "t1"}},
		"one needs it":    {[]string{"m1"}, []string{"t1"}},
		"none needs it":   {[]string{}, []string{}},
		"another does so": {[]string{"m9"}, []string{}},
	} {
		d := moving(t)
		d.record.migration.Clusters[0].TargetName = "t1"
		d.travel.companions = []backends.Companion{{Object: obj, Clusters: test.clusters}}
		got := d.travelling(d.handOver.target, d.handOver.source)[0].Clusters
		if !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: it goes to %#v, want %#v", name, got, test.want)
		}
	}
}

// TestWhileSuspendedAHandOverDecidesNothing (law 2): the number that the spec asks for by now waits.
func TestWhileSuspendedAHandOverDecidesNothing(t *testing.T) {
	d := moving(t)
	d.in.FleetWorkload.Spec.Suspend = ptr.To(true)
	if err := d.pin(); err != nil || d.record.placement != nil || d.waiting != "" || len(d.placed.targets) != 2 {
		t.Errorf("%v, it waits for %q with %+v", err, d.waiting, d.record.placement)
	}
}

// TestOnlyAReleaseMakesASideGone (law 12): that all is applied, or that a release goes on, ends nothing.
func TestOnlyAReleaseMakesASideGone(t *testing.T) {
	release, apply := Order{Delete: &Deletion{}}, Order{Apply: &backends.Desired{}}
	for name, test := range map[string]struct {
		order          Order
		backend        string
		done           bool
		source, target bool
	}{
		"the source is released":   {release, "one", true, true, false},
		"the target is released":   {release, "two", true, false, true},
		"the source lets go still": {release, "one", false, false, false},
		"the source has all":       {apply, "one", true, false, false},
		"the target has all":       {apply, "two", true, false, false},
	} {
		d := moving(t)
		test.order.Backend = test.backend
		d.Orders = []Order{test.order}
		if err := d.concludeHandOver(map[string]Outcome{test.backend: {Progress: backends.Progress{Done: test.done}}}); err != nil {
			t.Fatal(err)
		}
		if in := d.handOver.input; in.SourceGone != test.source || in.TargetGone != test.target {
			t.Errorf("%s: source gone %v, target gone %v", name, in.SourceGone, in.TargetGone)
		}
	}
}

// TestWhatAHandOverIsTold: where it goes, and of each cluster what both backends say.
func TestWhatAHandOverIsTold(t *testing.T) {
	d := moving(t)
	d.work.kind = d.work.plan.Kind
	all := reports(d, "m1", "m2")
	all[0].Marks = []string{"work.karmada.io/name"}
	d.handOver.source.observed, d.handOver.target.observed = backends.Observation{Clusters: all}, backends.Observation{}
	in := d.migrationInput()
	if !in.Forward {
		t.Error("it goes back while spec.backend is its target")
	}
	if m1, m2 := in.Clusters["m1"].Source, in.Clusters["m2"].Source; !m1.Marked || m2.Marked {
		t.Errorf("marked are m1 %v and m2 %v", m1.Marked, m2.Marked)
	}
	if got := in.Clusters["m1"].Target.Presence; got != backends.PresenceAbsent {
		t.Errorf("the target has %q of m1", got)
	}
	if d.in.FleetWorkload.Spec.Backend = "one"; d.migrationInput().Forward {
		t.Error("it goes on while spec.backend is its source")
	}
}

// TestBothBackendsAreGivenTheSame (law 1): each by its own names of clusters, and with what it may do there; what is not understood is given to
// neither.
func TestBothBackendsAreGivenTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		image  string
		want   []string
		failed string
	}{
		"a spec that is understood": {"web", []string{"one m1 Own nginx:1", "one m2 Own nginx:2", "two east Observe nginx:2", "two m1 Observe nginx:1"}, ""},
		"one that is not":           {"nobody", nil, v1alpha1.ReasonInvalidOverride},
	} {
		d := moving(t)
		fw := d.in.FleetWorkload
		fw.Spec.Overrides = []v1alpha1.Override{{
			Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}}, Images: []v1alpha1.ImageOverride{{Container: test.image, Tag: "2"}},
		}}
		kept, two := migration.Kept(fw.Spec), int32(2)
		revision, err := migration.KeptName(fw, kept, 1)
		if err != nil {
			t.Fatal(err)
		}
		fw.Status.Workload, fw.Status.Migration.SpecRevision = plan.Reference(d.work.plan.Template), revision
		fw.Status.Migration.Clusters[1].TargetName = "east"
		fw.Status.Placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, DivisionHash: d.work.asked.Division, Replicas: ptr.To(int32(4)),
			Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: &two, Baseline: &two}, {Name: "m2", Replicas: &two, Baseline: &two}},
		}
		settings := d.in.Settings
		settings.Aliases = plan.Aliases{{"one": "m2", "two": "east"}}
		there := backends.Fleet{Clusters: []backends.Cluster{{Name: "east", Ready: metav1.ConditionTrue}, d.fleet.Clusters[0]}}
		settled := backends.Selection{Settled: true}
		d, problem := Rehearse(In{Settings: settings, FleetWorkload: fw, Now: d.now.Time, Namespace: &Namespace{}}, func(in *In, reads Reads) {
			for _, read := range reads.Sides {
				in.Sides[read.Backend] = map[string]*Side{
					"one": {Fleet: d.fleet, Observed: &backends.Observation{Selection: settled, Clusters: reports(d, "m1", "m2")}},
					"two": {Fleet: &there, Observed: &backends.Observation{Selection: settled}},
				}[read.Backend]
			}
			if reads.KeptSpec == revision {
				in.Kept = &KeptSpec{Name: revision, Spec: &kept}
			}
		})
		if failed := problem != nil; failed != (test.failed != "") || failed && problem.Reason != test.failed {
			t.Errorf("%s: %+v", name, problem)
		}
		var got []string
		for _, order := range d.Orders {
			for _, target := range order.Apply.Targets {
				containers, _, _ := unstructured.NestedSlice(target.Manifest.Object, "spec", "template", "spec", "containers")
				got = append(got, fmt.Sprint(order.Backend, " ", target.Cluster, " ", target.Mode, " ", containers[0].(map[string]any)["image"]))
				if *target.Replicas != 2 {
					t.Errorf("%s: %s is to run %d", name, target.Cluster, *target.Replicas)
				}
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestHowABackendHasACluster (law 5): of one of which it has the name alone, or nothing, nothing else counts.
func TestHowABackendHasACluster(t *testing.T) {
	there := &backends.ClusterObservation{Cluster: "m1", Marks: []string{"a mark"}, UID: "u7", Status: map[string]any{"updateRevision": "web-5"}}
	named := *there
	named.Presence = backends.PresenceNamed
	evidence := v1alpha1.MigrationEvidence{UID: "u7", PodRevision: "web-5"}
	for name, test := range map[string]struct {
		o      *backends.ClusterObservation
		listed bool
		want   migration.Report
	}{
		"it has it":               {there, true, migration.Report{Presence: backends.PresenceActive, Marked: true, Evidence: evidence}},
		"it has it, and lists no": {there, false, migration.Report{Presence: backends.PresenceActive, Marked: true, Evidence: evidence}},
		"its placement names it":  {&named, false, migration.Report{Presence: backends.PresenceNamed}},
		"it has nothing there":    {nil, true, migration.Report{Presence: backends.PresenceAbsent}},
		"it knows nothing of it":  {nil, false, migration.Report{Presence: backends.PresenceUnknown}},
	} {
		d := moving(t)
		side := handSide{nameOf: sourceName}
		if test.o != nil {
			side.observed.Clusters = []backends.ClusterObservation{*test.o}
		}
		if test.listed {
			side.fleet.Clusters = []backends.Cluster{{Name: "m1"}}
		}
		if diff := cmp.Diff(test.want, d.reportOf(side, v1alpha1.MigrationClusterStatus{Name: "m1"}, backends.Target{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
