// Package connection keeps the configured backends connected: it reads kubeconfigs, builds drivers, notices when a
// kubeconfig changes or a backend is lost, and recovers by itself (law 8). It knows no driver; factories are given.
package connection

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// Factory builds a driver for a backend. The driver must be a backends.Runner.
type Factory func(cfg *rest.Config, backend config.Backend) (backends.Driver, error)

// Source reads a backend's credentials.
type Source interface {
	// Load returns a client configuration and a fingerprint that differs when the configuration does.
	Load(ctx context.Context, connection config.Connection) (cfg *rest.Config, fingerprint [sha256.Size]byte, err error)
}

// Options of a Pool.
type Options struct {
	Backends  []config.Backend
	Factories map[config.Type]Factory
	Source    Source
	// Notify is called with the backend and the FleetWorkload to look at again; with the zero name when all of the
	// backend's are meant.
	Notify func(backend string, name types.NamespacedName)
	// Up is called when a backend is found or lost.
	Up func(backend string, up bool)
	// Requests is called with the configuration by which a backend is about to be connected to, and may wrap its transport.
	Requests func(backend string, cfg *rest.Config)
	// Interval between two looks at a backend's health and its kubeconfig. When zero: 3 seconds.
	Interval time.Duration
	Log      logr.Logger
}

// Pool holds a connection to every configured backend. It implements backends.Registry.
type Pool struct {
	opts  Options
	mu    sync.RWMutex
	state map[string]state
}

var _ backends.Registry = (*Pool)(nil)

type state struct {
	driver backends.Driver
	err    error
}

// errConnecting is a backend's state until the first attempt to connect has ended.
var errConnecting = errors.New("not connected yet")

// NewPool returns a Pool that connects once it is started.
func NewPool(opts Options) *Pool {
	if opts.Interval == 0 {
		opts.Interval = 3 * time.Second
	}
	p := &Pool{opts: opts, state: map[string]state{}}
	for _, b := range opts.Backends {
		p.state[b.Name] = state{err: errConnecting}
	}
	return p
}

// Driver returns the driver of a backend that is connected and answers.
func (p *Pool) Driver(name string) (backends.Driver, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s, ok := p.state[name]
	switch {
	case !ok:
		return nil, backends.ErrNotConfigured
	case errors.Is(s.err, errConnecting):
		return nil, &backends.Error{
			Code: backends.CodeNotReady, Message: "the operator has not connected to the backend yet", Remedy: "wait",
		}
	case s.err != nil:
		remedy := "nothing is changed meanwhile; check its connection in the operator's configuration and that its API server is up"
		if apierrors.IsUnauthorized(s.err) {
			remedy = "nothing is changed meanwhile; renew the credentials in its kubeconfig" + p.command(name)
		}
		return nil, &backends.Error{
			Code: backends.CodeUnavailable, Message: "the backend cannot be used", Err: s.err, Remedy: remedy,
		}
	default:
		return s.driver, nil
	}
}

// command is how credentials that are in a Secret are renewed.
func (p *Pool) command(name string) string {
	for _, b := range p.opts.Backends {
		if b.Name == name && b.Connection.SecretRef != nil {
			return ": " + Anew(b)
		}
	}
	return ""
}

// Names lists the configured backends, sorted.
func (p *Pool) Names() []string {
	names := make([]string, 0, len(p.opts.Backends))
	for _, b := range p.opts.Backends {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// NeedLeaderElection makes the manager start the pool on the leader only: drivers' caches cost memory.
func (p *Pool) NeedLeaderElection() bool { return true }

// Start connects to every backend and keeps them connected until ctx ends.
func (p *Pool) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for _, b := range p.opts.Backends {
		group.Go(func() { p.keep(ctx, b) })
	}
	group.Wait()
	return nil
}

// keep connects to one backend again and again until ctx ends.
func (p *Pool) keep(ctx context.Context, b config.Backend) {
	log := p.opts.Log.WithValues("backend", b.Name)
	for ctx.Err() == nil {
		err := p.connect(ctx, b, log)
		if ctx.Err() != nil {
			return
		}
		p.set(b.Name, nil, err, log)
		if !wait(ctx, p.opts.Interval) {
			return
		}
	}
}

// connect runs one connection until it must be built anew. It returns why.
func (p *Pool) connect(ctx context.Context, b config.Backend, log logr.Logger) error {
	read, fingerprint, err := p.opts.Source.Load(ctx, b.Connection)
	if err != nil {
		return err
	}
	cfg, bearer := carry(read)
	if err := probe(ctx, cfg); err != nil {
		return err
	}
	if p.opts.Requests != nil {
		p.opts.Requests(b.Name, cfg)
	}
	driver, err := p.opts.Factories[b.Type](cfg, b)
	if err != nil {
		return fmt.Errorf("build %s driver: %w", b.Type, err)
	}
	runner, ok := driver.(backends.Runner)
	if !ok {
		return fmt.Errorf("the %s driver holds no watches", b.Type)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		err := runner.Run(ctx, func(name types.NamespacedName) { p.opts.Notify(b.Name, name) })
		cancel(fmt.Errorf("watches of the backend ended: %w", err))
	})
	for {
		p.set(b.Name, driver, probe(ctx, cfg), log)
		if !wait(ctx, p.opts.Interval) {
			return context.Cause(ctx)
		}
		now, mark, err := p.opts.Source.Load(ctx, b.Connection)
		switch {
		case err != nil:
			return err
		case mark == fingerprint:
		case !bearer.take(read, now):
			return errors.New("its kubeconfig has changed; connecting anew")
		default:
			log.Info("Took over the kubeconfig of now; the connection stays")
			fingerprint = mark
		}
	}
}

// set publishes a backend's state, and lets FleetWorkloads be looked at again when it changed.
func (p *Pool) set(name string, driver backends.Driver, err error, log logr.Logger) {
	p.mu.Lock()
	before := p.state[name]
	p.state[name] = state{driver: driver, err: err}
	p.mu.Unlock()
	changed := before.driver != driver || fmt.Sprint(before.err) != fmt.Sprint(err)
	if !changed {
		return
	}
	if err != nil {
		log.Info("Backend cannot be used", "reason", err.Error())
	} else {
		log.Info("Backend connected")
	}
	if p.opts.Up != nil {
		p.opts.Up(name, err == nil)
	}
	p.opts.Notify(name, types.NamespacedName{})
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
