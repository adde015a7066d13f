package backendtest

func removalCases() []Case {
	return []Case{
		{
			Name:  "R16: a cluster that is not listed stays as it is while others change, and goes when that is said",
			Rules: []string{"R16", "R8"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(4, 2)
				s.converge(p)
				r := s.record(s.cluster(1), p)
				next := p.on(s.cluster(0)).changed()
				next.unlisted = []string{s.cluster(1)}
				s.converge(next)
				s.noWrites("passes without it", func() { s.keepPassing(next) })
				s.restarted().keepPassing(next)
				r.wantVersions(1)
				next.unlisted = nil
				s.converge(next)
			},
		},
	}
}
