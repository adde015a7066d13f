package backendtest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func probeCases() []Case {
	return []Case{
		{
			Name:  "Probe: what runs is told, and nothing is written, created or removed",
			Rules: []string{"R4", "R15"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1), s.cluster(2)).divided(4, 1, 1)
				p.conflict = v1alpha1.ConflictPolicyAdopt
				was := s.foreignMember(s.cluster(0), p)
				probe := p.owned(backends.ModeProbe)
				observed := s.converge(probe)
				s.sees(observed, s.cluster(0), &backends.ProbeResult{Answered: true, Exists: true, Replicas: pointer(int32(1))})
				s.sees(observed, s.cluster(1), &backends.ProbeResult{Answered: true})
				s.noWrites("passes with a probe", func() { s.keepPassing(probe) })
				s.converge(probe.on(s.cluster(0), s.cluster(2)))
				s.converge(probe.on(s.cluster(1)).leaving(s.cluster(0)))
				s.quiet(func() {
					s.stillForeign(p, was)
					if s.member(s.cluster(1), p) != nil {
						s.t.Fatal("a probe created the workload")
					}
				})
				s.remove(probe, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.stillForeign(p, was)
			},
		},
		{
			Name:  "Probe: what was found is taken over in one step, with the numbers that are wanted then",
			Rules: []string{"R4", "R8", "R15"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1), s.cluster(2)).divided(5, 1, 2)
				p.conflict = v1alpha1.ConflictPolicyAdopt
				s.runningMember(s.cluster(0), p)
				s.foreignMember(s.cluster(1), p)
				same, other := s.record(s.cluster(0), p), s.record(s.cluster(1), p)
				s.converge(p.divided(8, 8, 8).owned(backends.ModeProbe))
				same.wantVersions(1)
				s.converge(p)
				same.wantSpecs(1)
				other.wantSpecs(2)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
			},
		},
		{
			Name:  "R15: cut off after any write of a probe, a new process ends in the same state",
			Rules: []string{"R3", "R15"},
			Needs: backends.FeatureModes,
			run: func(s *session) {
				adopting := func(p plan) plan { p.conflict = v1alpha1.ConflictPolicyAdopt; return p }
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) {
						for _, cluster := range p.clusters() {
							s.runningMember(cluster, p)
						}
					},
					act: func(s *session, p plan) { s.passUntilCut(adopting(p).owned(backends.ModeProbe)) },
					finish: func(s *session, p plan) {
						s.converge(adopting(p).owned(backends.ModeProbe))
						s.converge(adopting(p))
					},
					check: func(r *recorder) { r.wantSpecs(1) },
				})
			},
		},
	}
}

// sees compares what a probe has brought.
func (s *session) sees(observed backends.Observation, cluster string, want *backends.ProbeResult) {
	s.t.Helper()
	c, _ := report(observed, cluster)
	if c.Released() {
		s.t.Errorf("%s: a probe must not be Released", cluster)
	}
	if diff := cmp.Diff(want, c.Probe); diff != "" {
		s.t.Errorf("%s: the probe has brought another thing (-want +got):\n%s", cluster, diff)
	}
}
