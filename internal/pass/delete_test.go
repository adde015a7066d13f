package pass

import (
	"errors"
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
