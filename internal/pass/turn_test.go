package pass

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// TestTurn: a hand-over that waits for a person, whatever for, keeps no other one waiting; one that waits for a backend keeps its turn.
func TestTurn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision)
		want   TurnChange
	}{
		"it goes on":                      {func(*Decision) {}, TurnGoesOn},
		"a backend fails for a moment":    {func(d *Decision) { d.err = errors.New("later") }, TurnGoesOn},
		"before the backends were read":   {func(d *Decision) { d.handOver = nil }, TurnKept},
		"the backends cannot be read":     {func(d *Decision) { d.handOver, d.err = nil, &backends.Error{Code: backends.CodeUnavailable} }, TurnKept},
		"it waits for approval":           {func(d *Decision) { d.record.migration.Approval = "0-1" }, TurnEnds},
		"it is suspended":                 {func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }, TurnEnds},
		"its spec is lost":                {func(d *Decision) { d.handOver, d.err = nil, stall(v1alpha1.ReasonMigrationSpecLost, "gone") }, TurnEnds},
		"its backend is not configured":   {func(d *Decision) { d.err = stall(v1alpha1.ReasonBackendNotFound, "gone") }, TurnEnds},
		"a right is missing on a backend": {func(d *Decision) { d.err = &backends.Error{Code: backends.CodeForbidden} }, TurnEnds},
		"it is overdue":                   {func(d *Decision) { d.handOver.orders = migration.Orders{Overdue: "late"} }, TurnEnds},
		"it has ended":                    {func(d *Decision) { d.handOver.orders = migration.Orders{Ended: true} }, TurnEnds},
	} {
		t.Run(name, func(t *testing.T) {
			d := moving(t)
			d.work.kind = d.work.plan.Kind
			test.change(d)
			if got := d.result().Turn; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	undecodable := moving(t).in
	undecodable.Undecodable = "what is this"
	if got := Decide(undecodable).Conclude(nil).Turn; got != TurnEnds {
		t.Errorf("undecodable: got %q", got)
	}
}

// TestTakesTurn: after a restart the status alone says who counts.
func TestTakesTurn(t *testing.T) {
	fw := moving(t).in.FleetWorkload
	if !TakesTurn(fw) {
		t.Error("one that is handed over does not count")
	}
	fw.Spec.Suspend = ptr.To(true)
	if TakesTurn(fw) {
		t.Error("one that is suspended counts")
	}
	fw.Spec.Suspend, fw.Status.Migration.Approval = nil, "0-1"
	if TakesTurn(fw) {
		t.Error("one that waits for an approval counts")
	}
	fw.Status.Migration.Approval = ""
	fw.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
	if TakesTurn(fw) {
		t.Error("one that waits for a person counts")
	}
}
