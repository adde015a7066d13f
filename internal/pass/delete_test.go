package pass

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestWhatWasNeverSentIsGone: unless an earlier life of it has left something, or cannot be asked whether it has.
func TestWhatWasNeverSentIsGone(t *testing.T) {
	none := &Side{Live: true, Fleet: &backends.Fleet{}, Observed: &backends.Observation{}}
	left := &Side{Live: true, Fleet: &backends.Fleet{}, Observed: &backends.Observation{Found: true, Clusters: []backends.ClusterObservation{{Cluster: "m1"}}}}
	away := &Side{Err: &backends.Error{Code: backends.CodeUnavailable, Message: "away"}}
	for name, test := range map[string]struct {
		change func(*Decision)
		two    *Side
		gone   bool
		goesOn bool
	}{
		"nothing is there":               {func(*Decision) {}, none, true, false},
		"nobody can say what it carries": {func(d *Decision) { d.record.workload, d.spec.Spec.Template.Raw = nil, []byte(`{}`) }, none, true, false},
		"something was left":             {func(*Decision) {}, left, false, false},
		"it cannot be asked":             {func(*Decision) {}, away, false, false},
		"it was claimed":                 {func(d *Decision) { d.in.FleetWorkload.Status.Backend, d.in.FleetWorkload.Status.Identity = "two", "i" }, none, false, true},
	} {
		d := unclaimed(t)
		d.in.Sides = map[string]*Side{"one": none, "two": test.two, "three": none}
		test.change(d)
		err := d.nothingSent()
		if d.end.Gone != test.gone || (err == nil) != test.goesOn || test.gone && !errors.Is(err, errEnough) {
			t.Errorf("%s: gone: %v, %v", name, d.end.Gone, err)
		}
	}
}

// TestADeletionEnds: when all that may have something of the workload have given it up, one after the other, and its turn is others' then.
func TestADeletionEnds(t *testing.T) {
	done, waits := Outcome{Progress: backends.Progress{Done: true}}, Outcome{Progress: backends.Progress{Waiting: "an agent"}}
	for name, test := range map[string]struct {
		two, one              Outcome
		gone                  bool
		backend, wait, failed string
	}{
		"both have nothing left":      {two: done, one: done, gone: true},
		"the first is not done":       {two: waits, backend: "two", wait: "an agent"},
		"the other is not done":       {two: done, one: waits, backend: "one", wait: "an agent"},
		"the first is away":           {two: Outcome{Err: errors.New("away")}, one: done, backend: "two", failed: "delete: away"},
		"the other is away":           {two: done, one: Outcome{Err: errors.New("away")}, backend: "one", failed: "delete: away"},
		"the first is not configured": {two: Outcome{Err: backends.ErrNotConfigured}, backend: "two", failed: `delete: spec.backend "two": no such backend; configured are: none.`},
	} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		if err := d.delete(); err != nil {
			t.Fatal(err)
		}
		got := d.Conclude(map[string]Outcome{"two": test.two, "one": test.one})
		if got.Gone != test.gone || test.gone && got.Turn != TurnEnds {
			t.Errorf("%s: gone: %v, and its turn %q", name, got.Gone, got.Turn)
		}
		if failed := d.err != nil; failed != (test.failed != "") || failed && !strings.HasPrefix(d.err.Error(), test.failed) || d.waiting != test.wait {
			t.Errorf("%s: it waits for %q, %v", name, d.waiting, d.err)
		}
		if !test.gone && d.backend != test.backend {
			t.Errorf("%s: it is said of backend %s", name, d.backend)
		}
	}
}
