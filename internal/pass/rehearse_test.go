package pass

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestWhatIsKnownOfADecision: tools ask a decision that ended early, too.
func TestWhatIsKnownOfADecision(t *testing.T) {
	d := moving(t)
	if got := d.Revision(); got == "" || got != d.work.plan.Revision {
		t.Errorf("its revision is %q", got)
	}
	d.work.kind, d.placed.targets = d.work.plan.Kind, []backends.Target{{Cluster: "m1"}, {Cluster: "m2", Mode: backends.ModeRemove}}
	if d.Kind() != d.work.kind || d.Observed() != d.observed || !slices.Equal(names(d.Targets()), []string{"m1"}) {
		t.Errorf("it is known of it: %v, %v, %v", d.Kind(), d.Observed(), d.Targets())
	}
	d.work.plan = nil
	if got := d.Revision(); got != "" {
		t.Errorf("without a plan its revision is %q", got)
	}
	if d.Beginning() != nil {
		t.Error("a move that nobody asks for begins")
	}
	d.begins = &beginning{next: d.thoughtOf()}
	if got := d.Beginning(); got == nil || got.To != "two" {
		t.Errorf("the beginning is %+v", got)
	}
	d.begins.err = errEnough
	if d.Beginning() != nil {
		t.Error("a move that could not be looked at begins")
	}
}

// TestARehearsalEnds: what never comes to an order, such as the deletion of what was never sent, is said instead of played for ever.
func TestARehearsalEnds(t *testing.T) {
	d := moving(t)
	fw := d.in.FleetWorkload.DeepCopy()
	fw.Status, fw.DeletionTimestamp = v1alpha1.FleetWorkloadStatus{}, &metav1.Time{Time: d.now.Time}
	none := func(in *In, reads Reads) {
		for _, read := range reads.Sides {
			in.Sides[read.Backend] = &Side{Live: true, Fleet: &backends.Fleet{}, Observed: &backends.Observation{}}
		}
	}
	d, problem := Rehearse(In{Settings: d.in.Settings, FleetWorkload: fw, Now: d.now.Time}, none)
	if problem == nil || problem.Message != "it records and never orders anything" || d.Err() != nil {
		t.Errorf("%+v, %v", problem, d.Err())
	}
}
