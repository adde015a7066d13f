package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/lease"
	"github.com/fleetworkload/fleetworkload/internal/tracing"
)

// renewDeadline is how long a leader goes on without renewing its lease, which others respect for half as long again (controller-runtime
// pkg/manager, its defaults).
const renewDeadline = 10 * time.Second

// newLease is the lock that one replica holds; nil when there is nobody to elect.
func newLease(management *rest.Config, opts options) (*lease.Lease, error) {
	if !opts.leaderElect {
		return nil, nil
	}
	lock, err := leaderelection.NewResourceLock(rest.CopyConfig(management), silent{}, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: opts.leaseName, LeaderElectionNamespace: opts.namespace, RenewDeadline: renewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("make the lease %s/%s: %w", opts.namespace, opts.leaseName, err)
	}
	return lease.New(lock, renewDeadline, clock.RealClock{}), nil
}

// requests has requests to backends traced, and what they write counted, and refused when another replica may lead.
func requests(measures *backends.Metrics, leader *lease.Lease, traces *tracing.Provider) func(backend string, cfg *rest.Config) {
	return func(backend string, cfg *rest.Config) {
		traces.Requests(cfg)
		measures.CountWrites(backend, cfg)
		if leader != nil {
			leader.Guard(cfg)
		}
	}
}

// silent records no events: the log says who leads.
type silent struct{}

// GetEventRecorderFor implements recorder.Provider.
func (silent) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// GetEventRecorder implements recorder.Provider.
func (silent) GetEventRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }
