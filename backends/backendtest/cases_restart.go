package backendtest

import (
	"fmt"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// cutLimit bounds the writes after which the connection is cut off; no step should need so many.
const cutLimit = 60

func restartCases() []Case {
	return []Case{
		{
			Name:  "R3: cut off after any write of a create, a new process ends in the same state",
			Rules: []string{"R3", "R8"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					act:    func(s *session, p plan) bool { return s.passUntilCut(p) },
					finish: func(s *session, p plan) { s.converge(p) },
					check:  func(r *recorder) { r.wantVersions(1) },
				})
			},
		},
		{
			Name:  "R3: cut off after any write of a change, a new process ends in the same state, each member in one step",
			Rules: []string{"R3", "R8"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) { s.converge(p) },
					act:     func(s *session, p plan) bool { return s.passUntilCut(p.changed()) },
					finish:  func(s *session, p plan) { s.converge(p.changed()) },
					check:   func(r *recorder) { r.wantVersions(2) },
				})
			},
		},
		{
			Name:  "R3: cut off after any write of a Delete with Orphan, a new process ends it and the members run on",
			Rules: []string{"R3", "R10"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) { s.converge(p) },
					act:     func(s *session, p plan) bool { return s.removeUntilCut(p, v1alpha1.DeletionPolicyOrphan) },
					finish: func(s *session, p plan) {
						s.remove(p, v1alpha1.DeletionPolicyOrphan)
						s.nothingLeft(p)
					},
					check: func(r *recorder) { r.wantSpecs(1) },
				})
			},
		},
		{
			Name:  "R3: cut off after any write of a Delete, a new process ends it",
			Rules: []string{"R3", "R10"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) { s.converge(p) },
					act:     func(s *session, p plan) bool { return s.removeUntilCut(p, v1alpha1.DeletionPolicyDelete) },
					finish: func(s *session, p plan) {
						s.remove(p, v1alpha1.DeletionPolicyDelete)
						s.nothingLeft(p)
						s.gone(p)
					},
				})
			},
		},
	}
}

// scene is something a driver does in several writes.
type scene struct {
	// prepare brings the workload where the scene begins; nil for a workload that does not exist.
	prepare func(*session, plan)
	// act goes on until it is done, which is true, or until the connection is cut off.
	act func(*session, plan) bool
	// finish goes on where act was cut off and checks the end.
	finish func(*session, plan)
	// check looks at what each member object went through; nil when it goes away.
	check func(*recorder)
}

// cutOffAfterEach plays the scene again and again, with the connection cut off one write later each time, until it gets
// through.
func (s *session) cutOffAfterEach(scene scene) {
	s.t.Helper()
	for k := range int64(cutLimit) {
		through := false
		ok := s.t.Run(fmt.Sprintf("after %d writes", k), func(t *testing.T) {
			through = s.in(t).cutOffAfter(scene, k)
		})
		if !ok || through {
			return
		}
	}
	s.t.Errorf("not through after %d writes", cutLimit)
}

// in returns a session with new drivers in a subtest.
func (s *session) in(t *testing.T) *session {
	t.Helper()
	next := &session{t: t, env: s.env, kind: s.kind, namespace: s.namespace}
	next.connect()
	return next
}

func (s *session) cutOffAfter(scene scene, k int64) (through bool) {
	s.t.Helper()
	p := s.newPlan(fmt.Sprintf("web-%d", k), s.cluster(0), s.cluster(1)).divided(2, 1)
	p = p.with(s.cluster(1), func(t *planned) { t.greeting = "hola" })
	if scene.prepare != nil {
		scene.prepare(s, p)
	}
	var recorders []*recorder
	if scene.check != nil {
		for _, cluster := range p.clusters() {
			recorders = append(recorders, s.record(cluster, p))
		}
		if scene.prepare != nil {
			for _, r := range recorders {
				r.wantVersions(1)
			}
		}
	}
	s.left.Store(k)
	through = scene.act(s, p)
	scene.finish(s.restarted(), p)
	for _, r := range recorders {
		scene.check(r)
	}
	return through
}

// passUntilCut passes until the plan is carried out, or a write was refused.
func (s *session) passUntilCut(p plan) (through bool) {
	s.t.Helper()
	s.until("the end or the cut", func() string {
		missing, err := s.pass(p)
		if s.cut.Load() {
			if err == nil {
				s.t.Error("Apply hides that a write failed")
			}
			return ""
		}
		through = missing == ""
		if err != nil && backends.CodeOf(err) != "" && !tolerable(err) {
			s.t.Fatalf("pass: %v", err)
		}
		return missing
	})
	return through
}

func (s *session) removeUntilCut(p plan, policy v1alpha1.DeletionPolicy) (through bool) {
	s.t.Helper()
	s.until("the end or the cut", func() string {
		progress, err := s.delete(p.query(), policy)
		if s.cut.Load() {
			if err == nil {
				s.t.Error("Delete hides that a write failed")
			}
			return ""
		}
		if err != nil {
			return err.Error()
		}
		through = progress.Done
		return progress.Waiting
	})
	return through
}
