package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// slow is a registry that is not connected yet, or the backend of which is being read.
type slow bool

func (slow) Names() []string { return []string{"one"} }

func (s slow) Driver(string) (backends.Driver, error) {
	return nil, &backends.Error{Code: backends.CodeNotReady, Message: "not connected yet", Remedy: "wait", Filling: bool(s)}
}

func TestAStatusOutlivesTheStartOfTheOperator(t *testing.T) {
	outlivesTheStart(t, false, 20*time.Second, 2*time.Second)
	outlivesTheStart(t, true, 10*time.Minute, pass.RetryInterval)
}

// outlivesTheStart wants a status to stay for the time of grace, and to be looked at again that soon.
func outlivesTheStart(t *testing.T, backend slow, grace, again time.Duration) {
	t.Helper()
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	// A new process that is not connected yet.
	clock := clocktesting.NewFakePassiveClock(w.Clock.Now().Add(time.Hour))
	w.Reconciler = &Reconciler{
		Kinds: w.Kinds, Sources: w.sources,
		Client: w.client, Backends: backend, Recorder: w.Recorder, Clock: clock, MaxRemovalPercent: 50,
		MigrationLimiter: NewMigrationLimiter(10),
		StartGrace:       20 * time.Second, FillGrace: 10 * time.Minute,
	}
	before := w.writes
	for range 2 {
		if result, err := w.reconcile(); err != nil || result.RequeueAfter != again || w.writes != before {
			t.Errorf("got %+v, %v, %d writes", result, err, w.writes-before)
		}
		clock.SetTime(clock.Now().Add(grace - time.Second))
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != pass.RetryInterval {
		t.Errorf("got %+v, %v", result, err)
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonBackendNotReady, "not connected yet")
}
