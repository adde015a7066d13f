package pass

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// TestABackendOnWhichNothingRunsIsLeft: once the next one is known to be there, be it out of reach; until then nothing is given up.
func TestABackendOnWhichNothingRunsIsLeft(t *testing.T) {
	there := func(clusters ...backends.ClusterObservation) *Side {
		return &Side{Fleet: &backends.Fleet{}, Observed: &backends.Observation{Clusters: clusters}}
	}
	for name, test := range map[string]struct {
		owner, next *Side
		asks        string
		leaves      bool
		failed      string
	}{
		"the owner is not read":            {nil, nil, "one", false, ""},
		"the owner is read in part":        {&Side{Fleet: &backends.Fleet{}}, nil, "one", false, ""},
		"it runs there":                    {there(backends.ClusterObservation{Cluster: "m1"}), nil, "", false, ""},
		"the next is not read":             {there(), nil, "two", false, ""},
		"the next is there":                {there(), &Side{}, "", true, ""},
		"the next is away":                 {there(), &Side{Err: errors.New("away")}, "", true, ""},
		"the next is not configured":       {there(), &Side{Err: backends.ErrNotConfigured}, "", false, `spec.backend "two": no such backend; configured are: one.`},
		"the owner is not configured":      {&Side{Err: backends.ErrNotConfigured}, &Side{}, "", false, `spec.backend "one": no such backend; configured are: one.`},
		"the owner is away, and unread so": {&Side{Err: errors.New("away")}, &Side{}, "", false, "away"},
	} {
		d := moving(t)
		d.in.FleetWorkload.Status.Migration, d.in.Backends = nil, []string{"one"}
		d.in.Sides = map[string]*Side{"one": test.owner, "two": test.next}
		err := d.resolveBackend()
		asks := ""
		if len(d.Reads.Sides) > 0 {
			asks = d.Reads.Sides[0].Backend
		}
		if asks != test.asks || errors.Is(err, errEnough) != (test.asks != "" || test.leaves) {
			t.Errorf("%s: it asks %q, %v", name, asks, err)
		}
		if leaves := len(d.Orders) == 1 && d.Orders[0].Delete != nil && d.Orders[0].Delete.Policy == v1alpha1.DeletionPolicyOrphan; leaves != test.leaves {
			t.Errorf("%s: it is left: %v", name, leaves)
		}
		if failed := err != nil && !errors.Is(err, errEnough); failed != (test.failed != "") || failed && !strings.Contains(err.Error(), test.failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestACacheIsNotBelievedThatShowsNothing (law 6): once something was decided, the backend's API server is asked before the backend is left,
// and before another object is carried.
func TestACacheIsNotBelievedThatShowsNothing(t *testing.T) {
	decided := &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To(int32(2))}}}
	for name, test := range map[string]struct {
		placement *v1alpha1.PlacementRecord
		live      bool
		asks      bool
	}{
		"nothing was decided":    {nil, false, false},
		"something was decided":  {decided, false, true},
		"the API server says so": {decided, true, false},
	} {
		none := &Side{Fleet: &backends.Fleet{}, Observed: &backends.Observation{}, Live: test.live}
		for what, ask := range map[string]func(*Decision) error{
			"leave": (*Decision).resolveBackend,
			"rename": func(d *Decision) error {
				d.observed, d.backend = none.Observed, "one"
				return d.understand()
			},
		} {
			d := moving(t)
			d.in.FleetWorkload.Status.Migration, d.in.Sides = nil, map[string]*Side{"one": none, "two": {}}
			d.record.placement, d.record.workload = test.placement, &v1alpha1.WorkloadReference{Name: "before"}
			if err := ask(d); !errors.Is(err, errEnough) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			asks, goesOn := len(d.Reads.Sides) == 1 && d.Reads.Sides[0].Live(), len(d.Orders) > 0 || d.record.workload.Name != "before"
			if asks != test.asks || goesOn == asks {
				t.Errorf("%s, %s: asks %v, orders %v, carries %s", name, what, d.Reads.Sides, d.Orders, d.record.workload.Name)
			}
		}
	}
}

// TestAClaimIsRecordedFirst (law 6): backend and object are in the status before anything is sent.
func TestAClaimIsRecordedFirst(t *testing.T) {
	ref := &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	for name, test := range map[string]struct {
		backend  string
		workload *v1alpha1.WorkloadReference
		first    bool
	}{
		"nothing is recorded":     {"", nil, true},
		"the backend is":          {"one", nil, true},
		"the object is":           {"", ref, true},
		"everything is already":   {"one", ref, false},
		"another backend already": {"two", ref, false},
	} {
		d := moving(t)
		d.record.backend = test.backend
		d.in.FleetWorkload.Status.Backend, d.in.FleetWorkload.Status.Workload = test.backend, test.workload
		if err := d.claim(); err != nil || test.first && d.record.backend != "one" {
			t.Errorf("%s: %v, recorded %q", name, err, d.record.backend)
		}
		if !test.first {
			continue
		}
		for what, send := range map[string]func() error{
			"the workload": d.apply, "its placement": func() error { return d.setUpPlacement(backends.Selection{}) },
		} {
			if err := send(); !errors.Is(err, errEnough) || len(d.Orders) > 0 {
				t.Errorf("%s: %s is sent: %v, %+v", name, what, err, d.Orders)
			}
		}
	}
}

// TestNothingIsOrderedFromWhatIsKnownByHalf: nothing is ordered from what is known by half, and a rehearsal says why it came to nothing.
func TestNothingIsOrderedFromWhatIsKnownByHalf(t *testing.T) {
	setting := moving(t)
	asksTurn := decideWith(setting, func(fw *v1alpha1.FleetWorkload) {
		fw.Status = v1alpha1.FleetWorkloadStatus{Backend: "one", Workload: &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	}, nil)
	in := asksTurn.in
	in.Turn = nil
	in.Sides["one"].Observed.Clusters = reports(setting, "m1", "m2")
	in.FleetWorkload.Status.Placement = Decide(in).record.placement // which is recorded first
	if d := Decide(in); d.err != nil || !d.Reads.Turn || len(d.Orders) > 0 {
		t.Errorf("it asks for its turn: %v, and has %d orders, %v", d.Reads.Turn, len(d.Orders), d.err)
	}
	in.Undecodable = "what is this"
	if d, problem := Rehearse(in, func(*In, Reads) {}); problem == nil || problem.Reason != v1alpha1.ReasonInvalidObject || d.Err() == nil {
		t.Errorf("a rehearsal ends with %+v", problem)
	}
}

// TestASpecIsUnderstood: with what it asks of clusters by their names.
func TestASpecIsUnderstood(t *testing.T) {
	d := moving(t)
	d.record.workload = plan.Reference(d.work.plan.Template)
	d.spec.Spec.Overrides = []v1alpha1.Override{{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Replicas: ptr.To(int32(3))}}
	d.work.asked = guard.Asked{}
	if err := d.understand(); err != nil {
		t.Fatal(err)
	}
	if got := d.work.asked.Own["m1"]; got != 3 {
		t.Errorf("m1 is to have %d of its own", got)
	}
}

// TestAnotherObjectIsRefused: while anything of the one that is carried is there; else it may be another one.
func TestAnotherObjectIsRefused(t *testing.T) {
	d := moving(t)
	d.record.workload = plan.Reference(d.work.plan.Template)
	d.record.workload.Name, d.observed.Found = "other", true
	var why *stalled
	if err := d.understand(); !errors.As(err, &why) || why.reason != v1alpha1.ReasonInvalidTemplate {
		t.Errorf("got %v", err)
	}
}

// TestAnotherVersionIsTaken: of the same object, once each cluster that has it serves that version.
func TestAnotherVersionIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		serves  map[string][]string
		has     []string
		told    []string
		refused string
	}{
		"all serve it":       {map[string][]string{"m1": {"v1", "v2"}, "m2": {"v1"}}, []string{"m1", "m2"}, nil, ""},
		"one does not":       {map[string][]string{"m1": {"v1"}, "m2": {"v2"}}, []string{"m1", "m2"}, nil, "serve the other version: m2."},
		"of one nobody says": {map[string][]string{"m1": {"v1"}}, []string{"m1", "m2"}, nil, "serve the other version: m2."},
		"nobody says":        {nil, []string{"m1"}, nil, "serve the other version: m1."},
		"none has it":        {nil, nil, nil, ""},
		"one was told to have it a moment ago, and does not serve it": {
			map[string][]string{"m1": {"v1"}, "m2": {"v2"}}, []string{"m1"}, []string{"m2"}, "serve the other version: m2.",
		},
		"one was told to have it, and is gone": {map[string][]string{"m1": {"v1"}}, []string{"m1"}, []string{"m9"}, ""},
	} {
		d := moving(t)
		d.record.workload = plan.Reference(d.work.plan.Template)
		next := *d.record.workload
		d.record.workload.APIVersion, d.work.plan = "apps/v2", nil
		d.observed = &backends.Observation{Found: true, Selection: backends.Selection{Serves: test.serves}}
		for _, cluster := range test.has {
			d.observed.Clusters = append(d.observed.Clusters, backends.ClusterObservation{Cluster: cluster})
		}
		d.record.placement = &v1alpha1.PlacementRecord{}
		for _, cluster := range test.told {
			d.record.placement.Clusters = append(d.record.placement.Clusters, v1alpha1.ClusterShare{Name: cluster, Replicas: ptr.To(int32(1))})
		}
		err := d.understand()
		var why *stalled
		switch {
		case test.refused == "" && (!errors.Is(err, errEnough) || *d.record.workload != next):
			t.Errorf("%s: %v, and recorded is %+v", name, err, d.record.workload)
		case test.refused == "" && meta.IsStatusConditionTrue(d.result().Status.Conditions, v1alpha1.ConditionReady):
			t.Errorf("%s: Ready before the new version was sent", name)
		case test.refused != "" && (!errors.As(err, &why) || !strings.Contains(err.Error(), test.refused) || d.record.workload.APIVersion != "apps/v2"):
			t.Errorf("%s: %v, and recorded is %+v", name, err, d.record.workload)
		}
	}
}

// TestTheNextBackendIsClaimedLast: once the one that is left has nothing of the workload any more.
func TestTheNextBackendIsClaimedLast(t *testing.T) {
	for name, test := range map[string]struct {
		outcome               Outcome
		claimed, wait, failed string
	}{
		"all is gone": {Outcome{Progress: backends.Progress{Done: true}}, "two", "", ""},
		"it is not":   {Outcome{Progress: backends.Progress{Waiting: "an agent"}}, "one", "an agent", ""},
		"it is away":  {Outcome{Err: errors.New("away")}, "one", "", "leave the backend: away"},
	} {
		d := moving(t)
		d.leave("one", "two")
		err := d.conclude(map[string]Outcome{"one": test.outcome})
		if d.record.backend != test.claimed || d.waiting != test.wait || (err != nil) != (test.failed != "") || err != nil && err.Error() != test.failed {
			t.Errorf("%s: it is claimed for %s, waits for %q, %v", name, d.record.backend, d.waiting, err)
		}
	}
}

// TestAKindThatNobodyAllowedIsNotEvenClaimed (law 7): the object is known before anything is asked of a backend.
func TestAKindThatNobodyAllowedIsNotEvenClaimed(t *testing.T) {
	for raw, allowed := range map[string]bool{
		string(moving(t).spec.Spec.Template.Raw):                             true,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole"}`: false,
		`{"apiVersion":"example.com/v1","kind":"Unheard"}`:                   false,
	} {
		d := moving(t)
		d.spec.Spec.Template.Raw = []byte(raw)
		err := d.identify()
		if refused := err != nil && strings.Contains(err.Error(), "may not carry this kind"); refused == allowed || (d.record.workload != nil) != allowed || err != nil && !refused {
			t.Errorf("%s: %v, carried is %+v", raw, err, d.record.workload)
		}
	}
}
