package backendtest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func emptinessCases() []Case {
	return []Case{
		{
			Name:  "R7: no targets removes nothing",
			Rules: []string{"R7"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				s.nothingIsRemoved(p, p.selectors)
			},
		},
		{
			Name:  "R7: a placement that chooses no cluster removes nothing",
			Rules: []string{"R7"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				s.nothingIsRemoved(p, []v1alpha1.ClusterSelector{{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/nobody": "has-this"}},
				}})
			},
		},
		{
			Name:  "R7: a placement without targets removes nothing, and targets then take effect",
			Rules: []string{"R7"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				next := p.on(s.cluster(1), s.cluster(2))
				s.nothingIsRemoved(p, next.selectors)
				s.converge(next)
			},
		},
	}
}

// nothingIsRemoved passes for a while with those selectors and no targets.
func (s *session) nothingIsRemoved(p plan, selectors []v1alpha1.ClusterSelector) {
	s.t.Helper()
	before := s.mustMembers(p)
	empty := p
	empty.selectors = selectors
	s.quiet(func() {
		if _, err := s.observe(empty.query()); err != nil && !tolerable(err) {
			s.t.Fatalf("Observe: %v", err)
		}
		if _, err := s.apply(empty.desired(false)); err != nil && !tolerable(err) {
			s.t.Fatalf("Apply: %v", err)
		}
		for cluster, was := range before {
			s.untouched(cluster, p, was)
		}
	})
}

func (s *session) mustMembers(p plan) map[string]*unstructured.Unstructured {
	s.t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, cluster := range p.clusters() {
		found[cluster] = s.mustMember(cluster, p)
	}
	return found
}

func holdCases() []Case {
	return []Case{
		{
			Name:  "R11: a held cluster keeps its object while others change, and gets the change when released",
			Rules: []string{"R11", "R8"},
			Needs: backends.FeatureHold,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(4, 2)
				s.converge(p)
				recorders := []*recorder{s.record(s.cluster(0), p), s.record(s.cluster(1), p)}
				next := p.changed()
				held := next.with(s.cluster(1), func(t *planned) { t.mode = backends.ModeHold })
				s.converge(held)
				s.noWrites("passes while held", func() { s.keepPassing(held) })
				recorders[0].wantVersions(2)
				recorders[1].wantVersions(1)
				s.restarted().keepPassing(held)
				recorders[1].wantVersions(1)
				s.converge(next)
				recorders[0].wantVersions(2)
				recorders[1].wantVersions(2)
			},
		},
		{
			Name:  "R11: a hold set and released without a change touches nothing",
			Rules: []string{"R11"},
			Needs: backends.FeatureHold,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				s.converge(p.with(s.cluster(0), func(t *planned) { t.mode = backends.ModeHold }))
				s.converge(p)
				r.wantVersions(1)
			},
		},
		{
			Name:  "R11: a cluster held from the start gets nothing until it is released",
			Rules: []string{"R11"},
			Needs: backends.FeatureHold,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				held := p.with(s.cluster(1), func(t *planned) { t.mode = backends.ModeHold })
				s.converge(held)
				s.quiet(func() {
					_, err := s.pass(held)
					s.noError("pass", err)
					if s.member(s.cluster(1), p) != nil {
						s.t.Fatal("the held cluster got the workload")
					}
				})
				r := s.record(s.cluster(1), p)
				s.converge(p)
				r.wantVersions(1)
			},
		},
		{
			Name:  "R5: a hold is refused as Unsupported when the feature is not declared",
			Rules: []string{"R5"},
			Lacks: backends.FeatureHold,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.refused(p.with(s.cluster(0), func(t *planned) { t.mode = backends.ModeHold }), backends.CodeUnsupported)
			},
		},
	}
}
