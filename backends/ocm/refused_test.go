package ocm

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetworkload/fleetworkload/backends"
)

type answers int

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

// TestACacheThatMayNotWatchIsNotBelieved: it shows what it had.
func TestACacheThatMayNotWatchIsNotBelieved(t *testing.T) {
	d := &Driver{}
	d.synced.Store(true)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	d.refused.Clock = clock
	ask := func(status int) {
		clock.SetTime(clock.Now().Add(time.Minute))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://hub/apis/work.open-cluster-management.io/v1/manifestworks?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := d.refused.Client(&http.Client{Transport: answers(status)}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	ask(http.StatusForbidden)
	ask(http.StatusForbidden)
	if err := d.ready(t.Context()); backends.CodeOf(err) != backends.CodeForbidden || !strings.Contains(err.Error(), "watch manifestworks.work.open-cluster-management.io") {
		t.Errorf("while it is refused: %v", err)
	}
	ask(http.StatusOK)
	if err := d.ready(t.Context()); err != nil {
		t.Errorf("once it is granted: %v", err)
	}
}
