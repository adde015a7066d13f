package backendtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func callCases() []Case {
	return []Case{
		{
			Name:  "R2: an ended context is an error at once, and nothing is written",
			Rules: []string{"R2"},
			run:   endedContext,
		},
		{
			Name:  "R2: a write that is never answered is given up, and sent again",
			Rules: []string{"R2"},
			run:   noAnswer,
		},
		{
			Name:  "R6: different workloads may be worked on at once, and arguments stay as they were",
			Rules: []string{"R6"},
			run:   atOnce,
		},
		{
			Name:  "R12: before caches are filled the driver is NotReady, never empty-handed",
			Rules: []string{"R12"},
			run:   beforeCaches,
		},
	}
}

func endedContext(s *session) {
	p := s.newPlan("web", s.cluster(0))
	s.converge(p)
	next := p.changed()
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	calls := map[string]func() error{
		"Clusters": func() error { _, err := s.driver.Clusters(ctx); return err },
		"Observe":  func() error { _, err := s.driver.Observe(ctx, p.query()); return err },
		"Apply":    func() error { _, err := s.driver.Apply(ctx, next.desired(true)); return err },
		"Delete": func() error {
			_, err := s.driver.Delete(ctx, p.query(), v1alpha1.DeletionPolicyDelete)
			return err
		},
	}
	for name, call := range calls {
		s.noWrites(name, func() {
			if err := s.call(name, func(context.Context) error { return call() }); err == nil {
				s.t.Errorf("%s: no error", name)
			}
		})
	}
	s.converge(p)
}

func noAnswer(s *session) {
	p := s.newPlan("web", s.cluster(0))
	s.converge(p)
	next := p.changed()
	s.silent.Store(true)
	s.until("a write without an answer", func() string {
		_, err := s.pass(next)
		if s.silent.Load() {
			return "nothing is written"
		}
		if err == nil || !tolerable(err) {
			s.t.Errorf("a write without an answer: %v, want an error that is tried again", err)
		}
		return ""
	})
	s.converge(next)
}

// atOnce carries several workloads out through one driver at the same time. The race detector sees more than we do.
func atOnce(s *session) {
	var plans []plan
	for i := range 4 {
		plans = append(plans, s.newPlan(fmt.Sprintf("web-%d", i), s.cluster(i%3), s.cluster((i+1)%3)))
	}
	s.until("all workloads to converge", func() string {
		missing := make([]string, len(plans))
		errs := make([]error, len(plans))
		var wg sync.WaitGroup
		for i, p := range plans {
			wg.Go(func() { missing[i], errs[i] = s.passQuietly(p) })
		}
		wg.Wait()
		for i := range plans {
			if errs[i] != nil && !tolerable(errs[i]) {
				s.t.Fatalf("pass of %s: %v", plans[i].key.Name, errs[i])
			}
			if missing[i] != "" {
				return plans[i].key.Name + ": " + missing[i]
			}
		}
		return ""
	})
	for _, p := range plans {
		s.checkMembers(p)
	}
}

// passQuietly is a pass that does not look whether others write.
func (s *session) passQuietly(p plan) (string, error) {
	observation, err := s.observe(p.query())
	if err != nil {
		return err.Error(), err
	}
	selected, missing := chosen(p, observation.Selection)
	progress, err := s.apply(p.desired(selected))
	switch {
	case err != nil:
		return err.Error(), err
	case !selected:
		return missing, nil
	case !progress.Done:
		return progress.Waiting, nil
	default:
		return carriedOut(p, observation), nil
	}
}

// beforeCaches asks a driver that does not run yet about a workload that is there.
func beforeCaches(s *session) {
	p := s.newPlan("web", s.cluster(0))
	s.converge(p)
	was := s.mustMember(s.cluster(0), p)
	early := s.env.NewDriver(s.t, s.gate)
	ctx := s.t.Context()
	check := func(what string, err error, right bool) {
		s.t.Helper()
		if err == nil && !right {
			s.t.Errorf("%s answered from empty caches", what)
		}
		if err != nil && backends.CodeOf(err) != backends.CodeNotReady {
			s.t.Errorf("%s: %v, want NotReady", what, err)
		}
	}
	s.noWrites("a driver that does not run yet", func() {
		fleet, err := early.Clusters(ctx)
		check("Clusters", err, len(fleet.Clusters) >= len(s.env.Clusters))
		observation, err := early.Observe(ctx, p.query())
		check("Observe", err, observation.Found)
		_, err = early.Apply(ctx, p.desired(true))
		check("Apply", err, true)
		if err != nil { // a driver that is ready at once would rightly delete
			_, err = early.Delete(ctx, p.query(), v1alpha1.DeletionPolicyDelete)
			check("Delete", err, false)
		}
	})
	s.keepPassing(p)
	s.untouched(s.cluster(0), p, was)
}
