package lease

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// lock is one whose writes fail with an error.
type lock struct {
	resourcelock.Interface
	err error
}

func (lock) Identity() string { return "me" }

func (l lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func (l lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

// anothers is a lock that somebody else has.
type anothers struct {
	lock
	written *int
}

func (anothers) Describe() string { return "fleetworkload-system/fleetworkload" }

func (anothers) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "another"}, nil, nil
}

func (a anothers) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	*a.written++
	return nil
}

// TestWhatIsAnothersIsNotGivenBack: a leader that wakes looks at the lease, and then releases it by what it knew before.
func TestWhatIsAnothersIsNotGivenBack(t *testing.T) {
	written := 0
	l := New(anothers{written: &written}, 10*time.Second, clock.RealClock{})
	if _, _, err := l.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil || written != 0 {
		t.Errorf("the lease of another was given back: %v, %d writes", err, written)
	}
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil || written != 1 {
		t.Errorf("a lease that has run out is not taken: %v, %d writes", err, written)
	}
}

// watch shows a time.
type watch struct{ time.Time }

func (w *watch) Now() time.Time { return w.Time }

func (w *watch) Since(t time.Time) time.Duration { return w.Sub(t) }

// TestHolds: from a renewal on, for as long as no other replica can lead.
func TestHolds(t *testing.T) {
	start := time.Now()
	mine, theirs := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	for name, test := range map[string]struct {
		written []resourcelock.LeaderElectionRecord
		err     error
		after   time.Duration
		clock   func(time.Time) time.Time
		want    bool
	}{
		"never held":                 {nil, nil, 0, nil, false},
		"just renewed":               {[]resourcelock.LeaderElectionRecord{mine}, nil, 0, nil, true},
		"a moment before the end":    {[]resourcelock.LeaderElectionRecord{mine}, nil, 10*time.Second - 1, nil, true},
		"at the end":                 {[]resourcelock.LeaderElectionRecord{mine}, nil, 10 * time.Second, nil, false},
		"the machine slept":          {[]resourcelock.LeaderElectionRecord{mine}, nil, 10 * time.Second, func(t time.Time) time.Time { return t.Round(0) }, false},
		"a renewal that was refused": {[]resourcelock.LeaderElectionRecord{mine}, errors.New("refused"), 0, nil, false},
		"given back":                 {[]resourcelock.LeaderElectionRecord{mine, theirs}, nil, 0, nil, false},
	} {
		now := &watch{start}
		l := New(lock{err: test.err}, 10*time.Second, now)
		for _, record := range test.written {
			if err := errors.Join(l.Create(t.Context(), record), l.Update(t.Context(), record)); (err != nil) != (test.err != nil) {
				t.Errorf("%s: %v", name, err)
			}
		}
		now.Time = start.Add(test.after)
		if test.clock != nil {
			now.Time = test.clock(now.Time)
		}
		if got := l.Holds(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhoMayNotLeadWritesNothing: and reads all the same.
func TestWhoMayNotLeadWritesNothing(t *testing.T) {
	written := 0
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			written++
		}
	}))
	defer server.Close()
	l := New(lock{}, time.Hour, clock.RealClock{})
	cfg := &rest.Config{Host: server.URL}
	l.Guard(cfg)
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	writes := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	for _, method := range writes {
		if err := send(method); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := send(http.MethodGet); err != nil || written != 0 {
		t.Errorf("%d writes, %v", written, err)
	}
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
		t.Fatal(err)
	}
	for _, method := range writes {
		if err := send(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if written != len(writes) {
		t.Errorf("%d writes", written)
	}
}
