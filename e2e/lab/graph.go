// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	crdTimeout   = time.Minute
	readyTimeout = 3 * time.Minute
	pollInterval = 200 * time.Millisecond
	tailLines    = 30
)

// unit is one component of the fleet, or a step between components when it has no command. The tables in hub.go,
// karmada.go and member.go are made of units; run brings them up in the order of their needs.
type unit struct {
	name  string
	needs []string
	// prepare writes what the command expects to find: files, CRDs, webhook configurations.
	prepare func(ctx context.Context) error
	command func() (command, error)
	// ready returns nil once dependents may start. It is polled.
	ready func(ctx context.Context) error
}

// run starts the units that do not run yet, each as soon as what it needs is ready, and returns when all are ready. A
// need that is not among units is taken as met.
func (f *Fleet) run(ctx context.Context, units []unit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(map[string]chan struct{}, len(units))
	for _, u := range units {
		done[u.name] = make(chan struct{})
	}
	pending := newPending()
	defer every(10*time.Second, func() { f.printf("waiting for %s", pending) })()
	var wg sync.WaitGroup
	for _, u := range units {
		wg.Go(func() {
			for _, need := range u.needs {
				if ready, ok := done[need]; ok {
					select {
					case <-ready:
					case <-ctx.Done():
						return
					}
				}
			}
			pending.add(u.name)
			defer pending.remove(u.name)
			if err := f.startUnit(ctx, u); err != nil {
				cancel(fmt.Errorf("%s: %w", u.name, err))
				return
			}
			close(done[u.name])
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (f *Fleet) startUnit(ctx context.Context, u unit) error {
	begin := time.Now()
	started := false
	if u.prepare != nil {
		if err := u.prepare(ctx); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	if u.command != nil && !f.state.process(u.name).alive() {
		if err := f.startCommand(u); err != nil {
			return fmt.Errorf("start: %w", err)
		}
		started = true
	}
	if u.ready != nil {
		if err := f.awaitUnit(ctx, u); err != nil {
			return err
		}
	}
	if started || u.command == nil {
		f.printf("%-34s ready in %.1fs", u.name, time.Since(begin).Seconds())
	}
	return nil
}

func (f *Fleet) startCommand(u unit) error {
	cmd, err := u.command()
	if err != nil {
		return err
	}
	p, err := startProcess(cmd, f.dir, filepath.Join(f.dir, "logs", u.name+".log"))
	if err != nil {
		return err
	}
	return f.state.update(func() { f.state.Processes[u.name] = p })
}

// awaitUnit polls the unit's readiness and gives up as soon as its process is gone.
func (f *Fleet) awaitUnit(ctx context.Context, u unit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := f.state.process(u.name)
	err := await(ctx, readyTimeout, func(ctx context.Context) error {
		if u.command != nil && !p.alive() {
			cancel(fmt.Errorf("process died"))
		}
		return u.ready(ctx)
	})
	if err != nil && p != nil {
		return fmt.Errorf("%w; last lines of %s:\n%s", err, p.Log, logTail(p.Log, tailLines))
	}
	return err
}

// await polls check until it returns nil. On failure the error says what check said last.
func await(ctx context.Context, timeout time.Duration, check func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready after %s", timeout))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// pending names the units being brought up, for the progress lines.
type pending struct {
	mu    sync.Mutex
	names []string
}

func newPending() *pending { return &pending{} }

func (p *pending) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = append(p.names, name)
}

func (p *pending) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = slices.DeleteFunc(p.names, func(n string) bool { return n == name })
}

func (p *pending) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.names, ", ")
}

// healthClient asks health endpoints. Several components serve them with a certificate they made themselves.
var healthClient = &http.Client{
	Timeout: 5 * time.Second,
	Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // loopback, nothing secret is sent
		DisableKeepAlives: true,
	},
}

// answers returns a readiness check: the URL answers 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := healthClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 2048))
			return fmt.Errorf("%s: %s: %s", url, resp.Status, body)
		}
		return nil
	}
}
