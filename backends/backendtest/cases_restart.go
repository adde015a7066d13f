package backendtest

import (
	"fmt"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func restartCases() []Case {
	return []Case{
		{
			Name:  "R3: cut off after any write of a create, a new process ends in the same state",
			Rules: []string{"R3", "R8"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					act:    func(s *session, p plan) { s.passUntilCut(p) },
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
					act:     func(s *session, p plan) { s.passUntilCut(p.changed()) },
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
					act:     func(s *session, p plan) { s.removeUntilCut(p, v1alpha1.DeletionPolicyOrphan) },
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
					act:     func(s *session, p plan) { s.removeUntilCut(p, v1alpha1.DeletionPolicyDelete) },
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
	// act goes on until it is done or the connection is cut off.
	act func(*session, plan)
	// finish goes on where act was cut off and checks the end.
	finish func(*session, plan)
	// check looks at what each member object went through; nil when it goes away.
	check func(*recorder)
}

// cutOffAfterEach plays the scene once to count its writes, then again with the connection cut off after each of them, or after each
// of a sample.
func (s *session) cutOffAfterEach(scene scene) {
	s.t.Helper()
	writes := s.play(scene, "web", -1)
	if writes == 0 {
		s.t.Fatal("the scene has no writes")
	}
	sample := sweep(s.t.Name(), s.env.Seed, writes)
	if int64(len(sample)) < writes {
		s.t.Logf("cut off after %v of %d writes; again with TEST_SEED=%s", sample, writes, s.env.Seed)
	}
	for _, k := range sample {
		s.t.Run(fmt.Sprintf("after %d of %d writes", k, writes), func(t *testing.T) {
			t.Parallel()
			s.in(t).play(scene, fmt.Sprintf("web-%d", k), k)
		})
	}
}

// in returns a session with new drivers in a subtest.
func (s *session) in(t *testing.T) *session {
	t.Helper()
	next := &session{t: t, env: s.env, kind: s.kind, namespace: s.namespace}
	next.connect()
	return next
}

// play plays the scene with the connection cut off after that many writes, or never. It returns how many act made.
func (s *session) play(scene scene, name string, writes int64) (made int64) {
	s.t.Helper()
	p := s.newPlan(name, s.cluster(0), s.cluster(1)).divided(2, 1)
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
	before := s.writes.Load()
	s.left.Store(writes)
	scene.act(s, p)
	made = s.writes.Load() - before
	// Every driver watches all there is of its backend: those that idle until the case ends would slow the others down.
	s.end()
	next := s.restarted()
	scene.finish(next, p)
	for _, r := range recorders {
		scene.check(r)
	}
	next.cleanUp(p.query())
	next.end()
	return made
}

// passUntilCut passes until the plan is carried out, or a write was refused.
func (s *session) passUntilCut(p plan) {
	s.t.Helper()
	s.until("the end or the cut", func() string {
		missing, err := s.pass(p)
		if s.cut.Load() {
			if err == nil {
				s.t.Error("Apply hides that a write failed")
			}
			return ""
		}
		if err != nil && backends.CodeOf(err) != "" && !tolerable(err) {
			s.t.Fatalf("pass: %v", err)
		}
		return missing
	})
}

func (s *session) removeUntilCut(p plan, policy v1alpha1.DeletionPolicy) {
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
		return progress.Waiting
	})
}
