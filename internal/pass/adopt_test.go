package pass

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// TestWhatAProbeWaitsFor: clusters that are late are told from those that are out of contact, of which a person may have to let go.
func TestWhatAProbeWaitsFor(t *testing.T) {
	const late, lost = " to tell what runs there already",
		", out of contact, to tell what runs there already; take it out of spec.placement to go on without"
	for name, test := range map[string]struct {
		probed       []string
		driver, want string
	}{
		"one is late":            {[]string{"m1"}, "", "m1" + late},
		"one is out of contact":  {[]string{"m2"}, "", "m2" + lost},
		"one is not known":       {[]string{"m9"}, "", "m9" + lost},
		"one of each":            {[]string{"m1", "m2"}, "", "m1" + late + "; m2" + lost},
		"and the driver's word":  {[]string{"m1"}, "m1 has no agent", "m1" + late + " (m1 has no agent)"},
		"two are out of contact": {[]string{"m2", "m9"}, "", "m2, m9" + lost},
	} {
		d := moving(t)
		d.fleet.Clusters[1].Ready, d.placed.probed = metav1.ConditionUnknown, test.probed
		if got := d.awaitsProbe(test.driver); got != "conflictPolicy Adopt: "+test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// taken is a pass that takes over what m1 and m2 run already, and gives them these numbers.
func taken(t *testing.T, runs, gives [2]*int32) *Decision {
	t.Helper()
	d := moving(t)
	d.in.FleetWorkload.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	d.placed.choice = &placement.Choice{Clusters: []string{"m1", "m2"}}
	for i, name := range d.placed.choice.Clusters {
		d.observed.Clusters = append(d.observed.Clusters, backends.ClusterObservation{
			Cluster: name, Probe: &backends.ProbeResult{Answered: true, Exists: true, Replicas: runs[i]},
		})
		target := backends.Target{Cluster: name, Replicas: gives[i]}
		if gives[i] == nil {
			target.Mode = backends.ModeRemove
		}
		d.placed.targets = append(d.placed.targets, target)
	}
	return d
}

// TestATakeOverThatTakesPodsAwayIsHeld (law 1): it says how to keep them, and a person confirms just these numbers.
func TestATakeOverThatTakesPodsAwayIsHeld(t *testing.T) {
	pair := func(a, b int32) [2]*int32 { return [2]*int32{&a, &b} }
	duplicated := func(d *Decision) { d.here.Spec.Placement.Division = nil }
	same := func(*Decision) {}
	for name, test := range map[string]struct {
		runs, gives [2]*int32
		change      func(*Decision)
		want        []string
	}{
		"as many as run": {pair(2, 2), pair(2, 2), same, nil},
		"more than run":  {pair(1, 1), pair(2, 2), same, nil},
		"fewer on one": {pair(3, 1), pair(2, 2), same, []string{
			": m1 runs 3 and would be given 2. ", "To keep them where they are, set ", "(m1: 3, m2: 1)",
		}},
		"fewer in all": {pair(3, 2), pair(2, 2), same, []string{": m1 runs 3 and would be given 2. ", "Set spec.replicas to 5 or more; to keep"}},
		"fewer on each": {pair(5, 9), pair(4, 4), duplicated, []string{
			"m1 runs 5 and would be given 4, m2 runs 9 and", "Set spec.replicas to 9 or more, give clusters what they run with spec.overrides[].replicas, or divide them",
		}},
		"fewer of its own": {pair(5, 2), pair(4, 2), func(d *Decision) {
			d.in.FleetWorkload.Spec.Overrides = []v1alpha1.Override{{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Replicas: ptr.To(int32(4))}}
			if err := d.understandAnew(); err != nil {
				panic(err)
			}
		}, []string{"m1 runs 5 and would be given 4", "Raise spec.overrides[].replicas to what runs (m1: 5)"}},
		"fewer beside its own": {pair(4, 3), pair(4, 2), func(d *Decision) {
			d.in.FleetWorkload.Spec.Overrides = []v1alpha1.Override{{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Replicas: ptr.To(int32(4))}}
			if err := d.understandAnew(); err != nil {
				panic(err)
			}
		}, []string{": m2 runs 3 and would be given 2. ", "Set spec.replicas to 7 or more"}},
		"nobody knows": {[2]*int32{nil, ptr.To(int32(2))}, pair(2, 2), same, []string{
			"m1 runs a number that could not be told, and would be given 2", "Correct spec.replicas and",
		}},
		"nothing is given":    {pair(1, 3), [2]*int32{nil, ptr.To(int32(4))}, same, []string{": m1 runs 1 and would be given 0. "}},
		"it is to be refused": {pair(3, 2), pair(2, 2), func(d *Decision) { d.in.FleetWorkload.Spec.ConflictPolicy = v1alpha1.ConflictPolicyFail }, nil},
		"it is asked still":   {pair(3, 2), pair(2, 2), func(d *Decision) { d.placed.targets[0].Mode = backends.ModeProbe }, nil},
		"nothing is there":    {pair(3, 2), pair(2, 2), func(d *Decision) { d.observed.Clusters[0].Probe.Exists = false }, nil},
		"it is not chosen":    {pair(3, 2), pair(2, 2), func(d *Decision) { d.placed.choice.Clusters = []string{"m2"} }, nil},
		"it is out of reach":  {pair(3, 2), pair(2, 2), func(d *Decision) { d.fleet.Clusters[0].Ready = metav1.ConditionFalse }, nil},
		"it is without order": {pair(3, 2), pair(2, 2), func(d *Decision) { d.placed.targets = d.placed.targets[1:] }, []string{": m1 runs 3 and would be given 0. "}},
	} {
		d := taken(t, test.runs, test.gives)
		test.change(d)
		err := d.guardAdoption()
		if len(test.want) == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var held *stalled
		if !errors.As(err, &held) || held.reason != v1alpha1.ReasonAdoptionHeld || !held.again {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(held.message, want) {
				t.Errorf("%s: %q lacks %q", name, held.message, want)
			}
		}
		token := regexp.MustCompile(`confirm-removal=(\S+)`).FindStringSubmatch(held.message)
		if token == nil {
			t.Fatalf("%s: %q has no token", name, held.message)
		}
		d.in.FleetWorkload.Annotations = map[string]string{v1alpha1.AnnotationConfirmRemoval: token[1]}
		if err := d.guardAdoption(); err != nil {
			t.Errorf("%s: confirmed: %v", name, err)
		}
		d.placed.targets[len(d.placed.targets)-1].Replicas = ptr.To(int32(0))
		if d.guardAdoption() == nil {
			t.Errorf("%s: confirmed for other numbers", name)
		}
	}
}

// TestSharesWaitForClustersThatAreMissing (law 1): what is missing for a moment is divided over no others, whichever way it is missing.
func TestSharesWaitForClustersThatAreMissing(t *testing.T) {
	three, one, all := int32(3), int32(1), int32(4)
	for name, test := range map[string]struct {
		change func(*Decision)
		want   int32
	}{
		"nothing is missing": {func(*Decision) {}, 2},
		"one is not chosen":  {func(d *Decision) { d.placed.missing = []string{"m2"} }, 3},
		"one is not listed":  {func(d *Decision) { d.placed.vanished = map[string]int32{"m3": 1} }, 3},
		"one of each at once": {func(d *Decision) {
			d.placed.missing, d.placed.vanished = []string{"m2"}, map[string]int32{"m3": 1}
		}, 3},
		"and the spec asks for another division": {func(d *Decision) {
			d.placed.missing, d.record.placement.DivisionHash = []string{"m2"}, "another"
		}, 2},
		"and the spec asks for other clusters": {func(d *Decision) {
			d.placed.missing, d.record.placement.ClustersHash = []string{"m2"}, "another"
		}, 2},
		"and the spec asks for another number": {func(d *Decision) {
			d.placed.missing, d.record.placement.Replicas = []string{"m2"}, &three
		}, 2},
		"and nothing was decided yet": {func(d *Decision) { d.placed.missing, d.record.placement = []string{"m2"}, nil }, 2},
	} {
		d := moving(t)
		d.record.placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, DivisionHash: d.work.asked.Division, Replicas: &all,
			Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: &three}, {Name: "m2", Replicas: &one}},
		}
		test.change(d)
		targets, err := d.shares([]string{"m1", "m2"})
		if err != nil {
			t.Fatal(err)
		}
		if got := *targets[0].Replicas; got != test.want {
			t.Errorf("%s: m1 gets %d, want %d", name, got, test.want)
		}
	}
}

// TestAnOwnNumberStartsNothingWhereItIsLeft: a cluster that is missing gets no more by an edit of its own number, and the others are divided
// what it does not run.
func TestAnOwnNumberStartsNothingWhereItIsLeft(t *testing.T) {
	one, two, all := int32(1), int32(2), int32(4)
	for name, test := range map[string]struct {
		own     int32
		missing []string
		want    map[string]int32
	}{
		"chosen":                      {3, nil, map[string]int32{"m1": 1, "m2": 3}},
		"missing":                     {3, []string{"m2"}, map[string]int32{"m1": 2, "m2": 2}},
		"missing, and it is to fall":  {1, []string{"m2"}, map[string]int32{"m1": 3, "m2": 1}},
		"another one is missing":      {3, []string{"m1"}, map[string]int32{"m1": 1, "m2": 3}},
		"missing, and it is to stand": {2, []string{"m2"}, map[string]int32{"m1": 2, "m2": 2}},
	} {
		d := moving(t)
		d.in.FleetWorkload.Spec.Overrides = []v1alpha1.Override{{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}}, Replicas: &test.own}}
		if err := d.understandAnew(); err != nil {
			t.Fatal(err)
		}
		d.record.placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, DivisionHash: "another", Replicas: &all,
			Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: &one}, {Name: "m2", Replicas: &two}},
		}
		d.placed.missing = test.missing
		targets, err := d.shares([]string{"m1", "m2"})
		got := map[string]int32{}
		for _, target := range targets {
			got[target.Cluster] = *target.Replicas
		}
		if !maps.Equal(got, test.want) || err != nil {
			t.Errorf("%s: %v %v, want %v", name, got, err, test.want)
		}
	}
}

// understandAnew reads the spec again.
func (d *Decision) understandAnew() (err error) {
	if d.work.plan, err = plan.New(d.in.FleetWorkload, d.in.Kinds); err == nil {
		d.work.asked, err = d.work.plan.Asked()
	}
	return err
}

// TestAnOrderFromBeforeAdoptIsAskedAbout: it has refused what is somebody else's, and would take it over now.
func TestAnOrderFromBeforeAdoptIsAskedAbout(t *testing.T) {
	two := int32(2)
	for name, test := range map[string]struct {
		change func(*backends.ClusterObservation)
		want   bool
	}{
		"on its way":        {func(*backends.ClusterObservation) {}, true},
		"carried out":       {func(o *backends.ClusterObservation) { o.Applied = metav1.ConditionTrue }, false},
		"reported":          {func(o *backends.ClusterObservation) { o.Status = map[string]any{"replicas": int64(2)} }, false},
		"of Adopt":          {func(o *backends.ClusterObservation) { o.Cluster = "m2" }, false},
		"to be left":        {func(o *backends.ClusterObservation) { o.Cluster = "m3" }, false},
		"nothing is on it":  {func(o *backends.ClusterObservation) { o.Cluster = "m9" }, false},
		"nobody knows what": {func(o *backends.ClusterObservation) { o.Applied = metav1.ConditionUnknown }, true},
	} {
		d := moving(t)
		d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{
			{Name: "m1", Replicas: &two}, {Name: "m2", Replicas: &two, ConflictPolicy: v1alpha1.ConflictPolicyAdopt}, {Name: "m3"},
		}}
		o := backends.ClusterObservation{Cluster: "m1", Applied: metav1.ConditionFalse}
		test.change(&o)
		if got := d.unasked(o); got != test.want {
			t.Errorf("%s: asked about: %v", name, got)
		}
	}
}

// TestWhoIsAskedBeforeATakeOver (law 1): whoever may run it and has not told; an answer from a cluster that is lost, or while nothing may be
// sent, is asked for again.
func TestWhoIsAskedBeforeATakeOver(t *testing.T) {
	answered, asked := &backends.ProbeResult{Answered: true, Exists: true}, &backends.ProbeResult{}
	for name, test := range map[string]struct {
		o      *backends.ClusterObservation
		change func(*Decision)
		asks   bool
		owns   bool
	}{
		"nothing is there yet":          {nil, nil, true, false},
		"it is the workload's own":      {&backends.ClusterObservation{}, nil, false, true},
		"it is somebody else's":         {&backends.ClusterObservation{Conflict: true}, nil, true, false},
		"it is being left":              {&backends.ClusterObservation{Presence: backends.PresenceRemoving}, nil, false, false},
		"it is asked":                   {&backends.ClusterObservation{Probe: asked}, nil, true, false},
		"it has told":                   {&backends.ClusterObservation{Probe: answered}, nil, false, false},
		"it has told, and is suspended": {&backends.ClusterObservation{Probe: answered}, func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }, true, false},
		"it has told, and is lost":      {&backends.ClusterObservation{Probe: answered}, func(d *Decision) { d.fleet.Clusters[0].Ready = metav1.ConditionFalse }, true, false},
		"an order is on its way": {&backends.ClusterObservation{}, func(d *Decision) {
			d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To(int32(2))}}}
		}, true, true},
	} {
		d := moving(t)
		if test.o != nil {
			test.o.Cluster = "m1"
			d.observed.Clusters = []backends.ClusterObservation{*test.o}
		}
		if test.change != nil {
			test.change(d)
		}
		if got := d.mustProbe("m1"); got != test.asks {
			t.Errorf("%s: asked: %v", name, got)
		}
		if got := d.owns(); got != test.owns {
			t.Errorf("%s: owned: %v", name, got)
		}
	}
}

// TestWhoCannotBeAskedIsWaitedFor: unless others are chosen in its place.
func TestWhoCannotBeAskedIsWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		want   []string
	}{
		"one is lost":                      {func(*Decision) {}, []string{"m2"}},
		"none is":                          {func(d *Decision) { d.fleet.Clusters[1].Ready = metav1.ConditionTrue }, nil},
		"one is chosen all the same":       {func(d *Decision) { d.observed.Selection.Clusters = []string{"m1"} }, nil},
		"one is not known":                 {func(d *Decision) { d.observed.Selection.Clusters = []string{"m1", "m9"} }, nil},
		"others can be chosen":             {func(d *Decision) { d.here.Spec.Placement.NumberOfClusters = ptr.To(int32(1)) }, nil},
		"another group can":                {func(d *Decision) { d.here.Spec.Placement.Groups = make([]v1alpha1.ClusterGroup, 1) }, nil},
		"others can be chosen by a spread": {func(d *Decision) { d.here.Spec.Placement.Spread = make([]v1alpha1.SpreadConstraint, 1) }, nil},
	} {
		d := moving(t)
		d.fleet.Clusters[1].Ready, d.observed.Selection.Clusters = metav1.ConditionUnknown, []string{"m1", "m2"}
		test.change(d)
		if got := d.leftOut([]string{"m1"}); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhatClustersWereAskedToRun: what was decided counts, however far it is carried out; of a cluster that was only asked, what it has told.
func TestWhatClustersWereAskedToRun(t *testing.T) {
	d := moving(t)
	two, three, five := int32(2), int32(3), int32(5)
	d.observed.Clusters = []backends.ClusterObservation{
		{Cluster: "decided", Asked: &two}, {Cluster: "given nothing", Asked: &two}, {Cluster: "not recorded", Asked: &two},
		{Cluster: "told", Probe: &backends.ProbeResult{Answered: true, Exists: true, Replicas: &five}},
	}
	d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{
		{Name: "decided", Replicas: &three}, {Name: "given nothing"}, {Name: "not there yet", Replicas: &three}, {Name: "told", Replicas: &three},
	}}
	want := map[string]int32{"decided": 3, "not recorded": 2, "not there yet": 3, "told": 5}
	if got := d.current(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAddedClustersAreAsked: those that are the workload's go on meanwhile with their shares.
func TestAddedClustersAreAsked(t *testing.T) {
	d := moving(t)
	d.in.FleetWorkload.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	if err := d.understandAnew(); err != nil {
		t.Fatal(err)
	}
	d.in.Sides = map[string]*Side{"one": {Features: backends.Features{backends.FeatureModes: true}}}
	d.observed.Clusters = reports(d, "m1")
	targets, err := d.divide([]string{"m1", "m2"})
	if err != nil {
		t.Fatal(err)
	}
	if m1, _ := targetOf(targets, "m1"); m1.Mode != backends.ModeOwn || *m1.Replicas != 2 {
		t.Errorf("m1 is given %+v", m1)
	}
	if m2, _ := targetOf(targets, "m2"); m2.Mode != backends.ModeProbe || !slices.Equal(d.placed.probed, []string{"m2"}) {
		t.Errorf("m2 is given %+v; asked are %v", m2, d.placed.probed)
	}
}

// TestWhatWasDividedIsNotAskedAgain: a cluster that is given nothing is let go of, and its answer with it, before the others are owned. To ask it
// again would have all begin anew, for ever.
func TestWhatWasDividedIsNotAskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		again  bool
	}{
		"it is recorded":         {change: func(*Decision) {}},
		"it is not":              {change: func(d *Decision) { d.record.placement = nil }, again: true},
		"for another spec":       {change: func(d *Decision) { d.record.placement.ClustersHash = "other" }, again: true},
		"for another number":     {change: func(d *Decision) { d.record.placement.Replicas = ptr.To[int32](99) }, again: true},
		"with another policy":    {change: func(d *Decision) { d.record.placement.Clusters[0].ConflictPolicy = "" }, again: true},
		"for clusters of before": {change: func(d *Decision) { d.record.placement.Clusters[0].Name = "m9" }, again: true},
	} {
		d := moving(t)
		d.in.FleetWorkload.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
		if err := d.understandAnew(); err != nil {
			t.Fatal(err)
		}
		d.in.Sides = map[string]*Side{"one": {Features: backends.Features{backends.FeatureModes: true}}}
		d.observed.Selection.Clusters = []string{"m1", "m2"}
		d.observed.Clusters = []backends.ClusterObservation{
			{Cluster: "m1", Probe: &backends.ProbeResult{Answered: true, Exists: true, Replicas: ptr.To[int32](2)}},
			{Cluster: "m2", Probe: &backends.ProbeResult{}, Presence: backends.PresenceRemoving},
		}
		d.record.placement = &v1alpha1.PlacementRecord{
			ClustersHash: d.work.asked.Clusters, DivisionHash: d.work.asked.Division, Replicas: ptr.To(d.work.asked.Replicas),
			Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To[int32](2), ConflictPolicy: v1alpha1.ConflictPolicyAdopt}},
		}
		test.change(d)
		targets, err := d.divide([]string{"m1", "m2"})
		if err != nil {
			t.Fatal(err)
		}
		if m1, _ := targetOf(targets, "m1"); (m1.Mode == backends.ModeProbe) != test.again {
			t.Errorf("%s: m1 is to %s", name, m1.Mode)
		}
	}
}

// TestNothingIsDividedBeforeAllHaveTold (law 1): until the first cluster is owned, the shares of all hang on what each runs already. One that is
// lost is waited for, unless nothing is to change there.
func TestNothingIsDividedBeforeAllHaveTold(t *testing.T) {
	lost := func(d *Decision) {
		d.fleet.Clusters = append(d.fleet.Clusters, backends.Cluster{Name: "m3", Ready: metav1.ConditionUnknown})
		d.observed.Selection.Clusters = append(d.observed.Selection.Clusters, "m3")
	}
	for name, test := range map[string]struct {
		change func(*Decision)
		asked  []string
	}{
		"all have told":                  {func(*Decision) {}, nil},
		"none has":                       {func(d *Decision) { d.observed.Clusters = nil }, []string{"m1", "m2"}},
		"one has not":                    {func(d *Decision) { d.observed.Clusters = d.observed.Clusters[:1] }, []string{"m2"}},
		"one is lost":                    {lost, []string{"m3"}},
		"one is lost and paused":         {func(d *Decision) { lost(d); d.placed.pinned = map[string]*int32{"m3": nil} }, nil},
		"the backend cannot ask":         {func(d *Decision) { d.observed.Clusters, d.in.Sides["one"].Features = nil, nil }, nil},
		"nothing is to be taken over":    {func(d *Decision) { d.observed.Clusters = nil; d.in.FleetWorkload.Spec.ConflictPolicy = "" }, nil},
		"one is owned, and one has told": {func(d *Decision) { d.observed.Clusters[0].Probe = nil }, nil},
	} {
		d := moving(t)
		d.in.FleetWorkload.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
		d.in.Sides = map[string]*Side{"one": {Features: backends.Features{backends.FeatureModes: true}}}
		d.observed.Selection.Clusters = []string{"m1", "m2"}
		for _, name := range []string{"m1", "m2"} {
			d.observed.Clusters = append(d.observed.Clusters, backends.ClusterObservation{Cluster: name, Probe: &backends.ProbeResult{Answered: true}})
		}
		test.change(d)
		if err := d.understandAnew(); err != nil {
			t.Fatal(err)
		}
		targets, err := d.divide([]string{"m1", "m2"})
		if err != nil || len(targets) != 2 || !slices.Equal(d.placed.probed, test.asked) {
			t.Errorf("%s: asked are %v, %+v, %v", name, d.placed.probed, targets, err)
		}
		for _, target := range targets {
			if asks := target.Mode == backends.ModeProbe; asks != (len(test.asked) > 0) {
				t.Errorf("%s: %s is to %s", name, target.Cluster, target.Mode)
			}
		}
	}
}
