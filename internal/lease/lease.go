// Package lease keeps a replica from writing to backends when another one may lead. A replica that was frozen, with its container or its machine, wakes
// in the middle of what it did, and learns a moment later that its lease is gone. What it writes in that moment rests on what it knew before.
package lease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrLost is why nothing is written.
var ErrLost = errors.New("another replica may lead by now; this one writes nothing")

// Lease is a leader's lock that knows until when it is held for sure.
type Lease struct {
	resourcelock.Interface
	deadline time.Duration
	renewed  atomic.Pointer[time.Time]
	// holder is who had it at the last look.
	holder atomic.Pointer[string]
	clock  clock.PassiveClock
}

// New wraps a lock. The deadline is that of renewals: for so long after one nobody else can lead.
func New(lock resourcelock.Interface, deadline time.Duration, passive clock.PassiveClock) *Lease {
	return &Lease{Interface: lock, deadline: deadline, clock: passive}
}

// Get implements resourcelock.Interface.
func (l *Lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder.Store(&record.HolderIdentity)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface. It does not give back what is another's: client-go's leader that gives up looks at the lease, and
// then goes by what it knew before (LeaderElector.release in tools/leaderelection), so that one who wakes would end its successor's lease.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if holder := l.holder.Load(); record.HolderIdentity == "" && holder != nil && *holder != l.Identity() {
		return fmt.Errorf("give back the lease %s: it is %s's by now", l.Describe(), *holder)
	}
	return l.note(record, func() error { return l.Interface.Update(ctx, record) })
}

// note remembers when a renewal was sent: it counts for others from when it has come.
func (l *Lease) note(record resourcelock.LeaderElectionRecord, write func() error) error {
	sent := l.clock.Now()
	if err := write(); err != nil {
		return err
	}
	if record.HolderIdentity != l.Identity() {
		l.renewed.Store(nil)
		return nil
	}
	l.renewed.Store(&sent)
	return nil
}

// Holds tells whether nobody else can lead.
func (l *Lease) Holds() bool {
	sent := l.renewed.Load()
	if sent == nil {
		return false
	}
	// The monotonic clock stands still while a machine sleeps, and somebody may set the other one back.
	now := l.clock.Now()
	return max(now.Sub(*sent), now.Round(0).Sub(sent.Round(0))) < l.deadline
}

// Guard has requests that change something fail with ErrLost unless the lease is held.
func (l *Lease) Guard(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if reads(request.Method) || l.Holds() {
				return next.RoundTrip(request)
			}
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, ErrLost
		})
	})
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
