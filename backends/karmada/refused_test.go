package karmada

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

type answers int

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

// TestACacheThatMayNotWatchIsNotBelieved: it shows what it had. What is refused of one kind of workload is nothing to the others.
func TestACacheThatMayNotWatchIsNotBelieved(t *testing.T) {
	w := watches{base: true}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	w.refused.Clock = clock
	ask := func(path string, status int) {
		clock.SetTime(clock.Now().Add(time.Minute))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://karmada/apis/"+path+"?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := w.refused.Client(&http.Client{Transport: answers(status)}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	for range 2 {
		ask("argoproj.io/v1alpha1/workflows", http.StatusForbidden)
	}
	if err := w.ready(); err != nil {
		t.Errorf("while one kind is refused: %v", err)
	}
	for path, right := range map[string]string{
		"work.karmada.io/v1alpha1/works":                               "watch works.work.karmada.io:",
		"config.karmada.io/v1alpha1/resourceinterpretercustomizations": "watch resourceinterpretercustomizations.config.karmada.io:",
	} {
		for range 2 {
			ask(path, http.StatusForbidden)
		}
		if err := w.ready(); backends.CodeOf(err) != backends.CodeForbidden || !strings.Contains(err.Error(), right) {
			t.Errorf("while %s are refused: %v", path, err)
		}
		ask(path, http.StatusOK)
		if err := w.ready(); err != nil {
			t.Errorf("once %s are granted: %v", path, err)
		}
	}
}

// TestOthersChangesCannotStay (law 10): Karmada puts them back, so that spec.drift Report is refused whatever else is asked for.
func TestOthersChangesCannotStay(t *testing.T) {
	d := desiredFor("r1", "one", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2})
	for drift, refused := range map[v1alpha1.DriftPolicy]bool{"": false, v1alpha1.DriftPolicyCorrect: false, v1alpha1.DriftPolicyReport: true} {
		d.Drift = drift
		_, err := render(d, currentState{})
		if backends.CodeOf(err) == backends.CodeUnsupported != refused {
			t.Errorf("%q: %v", drift, err)
		}
		if refused && !strings.HasPrefix(err.Error(), `spec.drift "Report": Karmada puts back what others change`) {
			t.Errorf("it says %v", err)
		}
	}
	d.Drift, d.Targets = v1alpha1.DriftPolicyReport, nil
	if _, err := render(d, currentState{}); backends.CodeOf(err) != backends.CodeUnsupported {
		t.Errorf("before clusters are chosen: %v", err)
	}
}
