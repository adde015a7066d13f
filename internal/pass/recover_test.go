package pass

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// unclaimed is a FleetWorkload for backend two that has no status: a new one, or one whose management cluster was rebuilt.
func unclaimed(t *testing.T) *Decision {
	t.Helper()
	d := moving(t)
	d.in.FleetWorkload.Status = v1alpha1.FleetWorkloadStatus{}
	d.in.Installation, d.in.Backends = "prod", []string{"one", "three", "two"}
	d.record, d.handOver, d.backend = record{}, nil, "two"
	if err := d.identify(); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestARecordThatIsGoneIsMadeAgain (laws 2, 5 and 8): what backends have of a FleetWorkload says whose it is; one that cannot be asked keeps
// nobody waiting but where it may matter.
func TestARecordThatIsGoneIsMadeAgain(t *testing.T) {
	runs := func(presence backends.Presence) *Side {
		return &Side{Live: true, Fleet: &backends.Fleet{Clusters: []backends.Cluster{{Name: "m1"}}}, Observed: &backends.Observation{
			Found: true, Clusters: []backends.ClusterObservation{{Cluster: "m1", Presence: presence}},
		}}
	}
	cached := func() *Side { s := runs(backends.PresenceActive); s.Live = false; return s }
	none := func() *Side { return &Side{Live: true, Fleet: &backends.Fleet{}, Observed: &backends.Observation{}} }
	rest := func() *Side {
		return &Side{Live: true, Fleet: &backends.Fleet{}, Observed: &backends.Observation{Found: true}}
	}
	theirs := func() *Side {
		s := none()
		s.Observed.Earlier = &backends.Error{Code: backends.CodeNameConflict, Message: "of another installation"}
		return s
	}
	away := func() *Side { return &Side{Err: &backends.Error{Code: backends.CodeUnavailable, Message: "away"}} }
	connecting := func() *Side { return &Side{Err: &backends.Error{Code: backends.CodeNotReady, Message: "connecting"}} }
	for name, test := range map[string]struct {
		one, two, three *Side
		starting        bool
		// asks is of how many backends, owner what is claimed, moves the hand-over that goes on, phase where; failed why it waits.
		asks                int
		owner, moves, phase string
		tidies              string
		failed              string
	}{
		"nothing is read":                     {asks: 3},
		"it is new":                           {one: none(), two: none(), three: none()},
		"its own has it":                      {one: none(), two: runs(""), three: none(), owner: "two"},
		"another has it by its cache":         {one: cached(), two: none(), three: none(), asks: 1},
		"another has it":                      {one: runs(""), two: none(), three: none(), owner: "one"},
		"another is left":                     {one: rest(), two: none(), three: none(), tidies: "one"},
		"another is left, and its own has it": {one: rest(), two: runs(""), three: none(), tidies: "one"},
		"it was moving":                       {one: runs(""), two: runs(backends.PresenceReleased), three: none(), owner: "one", moves: "one two", phase: "Shadowing"},
		"it had moved":                        {one: runs(backends.PresenceReleased), two: runs(""), three: none(), owner: "two", moves: "one two", phase: "Releasing"},
		"it was moving between two others":    {one: runs(backends.PresenceReleased), two: none(), three: runs(""), owner: "three", moves: "three one", phase: "Shadowing"},
		"it was moving between two others, the other way": {one: runs(""), two: none(), three: runs(backends.PresenceReleased), owner: "one", moves: "one three",
			phase: "Shadowing"},
		"three have it":                       {one: runs(""), two: runs(""), three: runs(""), failed: "backends two, one, three all have something"},
		"its own has another installation's":  {one: none(), two: theirs(), three: none(), failed: "of another installation"},
		"another has another installation's":  {one: theirs(), two: none(), three: none(), failed: "of another installation"},
		"its own is away":                     {one: none(), two: away(), three: none(), failed: "away"},
		"another is away":                     {one: none(), two: none(), three: away()},
		"another is away, and its own has it": {one: away(), two: runs(""), three: none(), owner: "two"},
		"another is away, and was handing it over": {one: away(), two: runs(backends.PresenceReleased), three: none(),
			failed: "which was being handed over when the record of it was lost"},
		"another is away, and no part of the hand-over": {one: runs(""), two: runs(backends.PresenceReleased), three: away(), owner: "one",
			moves: "one two", phase: "Shadowing"},
		"another is being connected":          {one: connecting(), two: none(), three: none(), starting: true, failed: "connecting"},
		"another does not get ready":          {one: connecting(), two: none(), three: none()},
		"another is being read":               {one: &Side{Err: fmt.Errorf("read reports: %w", beingRead())}, two: none(), three: none(), failed: "being read"},
		"another is away, another connecting": {one: away(), two: none(), three: connecting(), starting: true, failed: "connecting"},
	} {
		d := unclaimed(t)
		d.in.Starting, d.in.Filling, d.in.Sides = test.starting, true, map[string]*Side{}
		for backend, side := range map[string]*Side{"one": test.one, "two": test.two, "three": test.three} {
			if side != nil {
				d.in.Sides[backend] = side
			}
		}
		err := d.recover()
		if len(d.Reads.Sides) != test.asks {
			t.Errorf("%s: it asks for %+v", name, d.Reads.Sides)
		}
		if failed := err != nil && !errors.Is(err, errEnough); failed != (test.failed != "") || failed && !strings.Contains(err.Error(), test.failed) {
			t.Errorf("%s: %v", name, err)
		}
		if d.record.backend != test.owner {
			t.Errorf("%s: it is claimed for %q", name, d.record.backend)
		}
		moves, phase := "", ""
		if m := d.record.migration; m != nil {
			moves, phase = m.From+" "+m.To, string(m.Phase)
			if d.end.Keep == nil || d.end.Keep.Name != m.SpecRevision {
				t.Errorf("%s: it keeps %+v, not %s", name, d.end.Keep, m.SpecRevision)
			}
		}
		if moves != test.moves || phase != test.phase {
			t.Errorf("%s: %s moves %q", name, phase, moves)
		}
		tidies := ""
		for _, order := range d.Orders {
			if order.Delete == nil || order.Delete.Policy != v1alpha1.DeletionPolicyOrphan {
				t.Errorf("%s: it orders %+v", name, order)
			}
			tidies += order.Backend
		}
		if tidies != test.tidies {
			t.Errorf("%s: it tidies %q", name, tidies)
		}
	}
}

// TestAnIdentityStays: it is the same for a FleetWorkload that is made anew, and another one for everybody else's.
func TestAnIdentityStays(t *testing.T) {
	first, again := unclaimed(t), unclaimed(t)
	again.in.FleetWorkload.UID = "another"
	again.spec = again.known(again.in.FleetWorkload)
	if first.spec.UID == "u1" || first.spec.UID != again.spec.UID || first.work.query.Key.UID != first.spec.UID ||
		first.work.query.Key.Installation != "prod" || first.in.FleetWorkload.UID != "u1" {
		t.Errorf("it is %s, and made anew %s; asked for are %+v", first.spec.UID, again.spec.UID, first.work.query.Key)
	}
	for name, change := range map[string]func(*Decision){
		"installation": func(d *Decision) { d.in.Installation = "test" },
		"name":         func(d *Decision) { d.in.FleetWorkload.Name = "other" },
		"namespace":    func(d *Decision) { d.in.FleetWorkload.Namespace = "other" },
		"kind":         func(d *Decision) { d.record.workload.Kind = "StatefulSet" },
		"object":       func(d *Decision) { d.record.workload.Name = "other" },
	} {
		d := unclaimed(t)
		if change(d); d.known(d.in.FleetWorkload).UID == first.spec.UID {
			t.Errorf("another %s: the identity is the same", name)
		}
	}
	before := unclaimed(t)
	before.in.FleetWorkload.Status = v1alpha1.FleetWorkloadStatus{Backend: "two", Workload: before.record.workload, Placement: &v1alpha1.PlacementRecord{}}
	for range 2 { // as an operator from before identities has left it, and as this one records it
		before.record.backend, before.spec, before.here = "two", before.in.FleetWorkload, before.in.FleetWorkload
		if err := before.identify(); err != nil || before.work.query.Key.UID != "u1" || before.identity() != "u1" {
			t.Errorf("carried out before there were identities, it is %s now, %v", before.work.query.Key.UID, err)
		}
		before.in.FleetWorkload.Status.Identity = before.identity()
	}
	told := unclaimed(t)
	told.in.Installation, told.in.FleetWorkload.Status.Identity = "", "the one"
	if got := told.known(told.in.FleetWorkload).UID; got != "the one" {
		t.Errorf("who knows of no installation takes it for %s", got)
	}
	told.record.backend, told.in.FleetWorkload.Status.Workload = "two", told.record.workload
	if got := told.identity(); got != "the one" {
		t.Errorf("who knows of no installation takes %q down", got)
	}
	version := unclaimed(t)
	if version.record.workload.APIVersion = "apps/v2"; version.known(version.in.FleetWorkload).UID != first.spec.UID {
		t.Error("another version: the identity is another")
	}
}

// TestAnotherInstallationTouchesNothing: what was carried out under another name stays so; a record of nothing is forgotten.
func TestAnotherInstallationTouchesNothing(t *testing.T) {
	there := func(found bool) *Side { return &Side{Observed: &backends.Observation{Found: found}} }
	for name, test := range map[string]struct {
		recorded string
		side     *Side
		reason   string
		failed   string
		asks     bool
		forgets  bool
	}{
		"the same":                          {side: there(true)},
		"another":                           {recorded: "other", side: there(true), reason: v1alpha1.ReasonNameConflict},
		"another, which never had any":      {recorded: "other", side: there(false), forgets: true},
		"another, which was not looked for": {recorded: "other", asks: true},
		"another, whose backend is away":    {recorded: "other", side: &Side{Err: errors.New("away")}, failed: "away"},
	} {
		d := unclaimed(t)
		recorded := test.recorded
		if recorded == "" {
			recorded = string(d.spec.UID)
		}
		d.in.FleetWorkload.Status = v1alpha1.FleetWorkloadStatus{Backend: "two", Workload: d.record.workload, Identity: recorded}
		d.record.backend, d.record.placement = "two", &v1alpha1.PlacementRecord{}
		d.in.Sides = map[string]*Side{"one": there(false), "two": test.side, "three": {Err: errors.New("away")}}
		d.spec, d.here = d.in.FleetWorkload, d.in.FleetWorkload
		err := d.identify()
		var why *stalled
		if is := errors.As(err, &why); is != (test.reason != "") || is && (why.reason != test.reason || !strings.Contains(why.message, `"prod"`)) {
			t.Errorf("%s: %v", name, err)
		}
		if failed := err != nil && why == nil && !errors.Is(err, errEnough); failed != (test.failed != "") || failed && err.Error() != test.failed {
			t.Errorf("%s: %v", name, err)
		}
		if asks := len(d.Reads.Sides) > 0; asks != test.asks || (asks || d.forgets) != errors.Is(err, errEnough) {
			t.Errorf("%s: it asks for %+v, %v", name, d.Reads.Sides, err)
		}
		if d.forgets != test.forgets || d.forgets != (d.record.placement == nil) {
			t.Errorf("%s: it is forgotten: %v, with %+v, %v", name, d.forgets, d.record, err)
		}
		if status := d.result().Status; !test.forgets && status.Identity != recorded || test.forgets && status.Identity != "" {
			t.Errorf("%s: recorded is %q", name, status.Identity)
		}
	}
}

// TestClaimed: which backend it is, and under which identity, unless that is the FleetWorkload's own.
func TestClaimed(t *testing.T) {
	for name, test := range map[string]struct {
		installation string
		status       v1alpha1.FleetWorkloadStatus
		want         bool
	}{
		"nothing is recorded":              {"prod", v1alpha1.FleetWorkloadStatus{}, false},
		"a backend, and not as what":       {"prod", v1alpha1.FleetWorkloadStatus{Backend: "one"}, false},
		"a backend, without installations": {"", v1alpha1.FleetWorkloadStatus{Backend: "one"}, true},
		"both":                             {"prod", v1alpha1.FleetWorkloadStatus{Backend: "one", Identity: "i"}, true},
		"an identity alone":                {"prod", v1alpha1.FleetWorkloadStatus{Identity: "i"}, false},
		"carried out before identities":    {"prod", v1alpha1.FleetWorkloadStatus{Backend: "one", Placement: &v1alpha1.PlacementRecord{}}, true},
	} {
		d := moving(t)
		d.in.Installation, d.in.FleetWorkload.Status = test.installation, test.status
		if got := d.claimed(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTidied: the owner is claimed once all that is left elsewhere is gone.
func TestTidied(t *testing.T) {
	done := Outcome{Progress: backends.Progress{Done: true}}
	for name, test := range map[string]struct {
		one, three                    Outcome
		backend, owner, waits, failed string
	}{
		"all is gone":     {one: done, three: done, owner: "two"},
		"one is not gone": {one: done, three: Outcome{Progress: backends.Progress{Waiting: "the agent"}}, waits: "the agent"},
		"one is away":     {one: Outcome{Err: errors.New("away")}, three: done, failed: "leave the backend: away"},
	} {
		d := unclaimed(t)
		d.tidy([]string{"one", "three"}, "two")
		err := d.conclude(map[string]Outcome{"one": test.one, "three": test.three})
		if d.record.backend != test.owner || d.waiting != test.waits || (err != nil) != (test.failed != "") || err != nil && err.Error() != test.failed {
			t.Errorf("%s: it is claimed for %q, waits for %q, %v", name, d.record.backend, d.waiting, err)
		}
	}
}
