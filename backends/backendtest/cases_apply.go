package backendtest

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func applyCases() []Case {
	return []Case{
		{
			Name:  "Apply: every target runs its own manifest, replicas divided",
			Rules: []string{"R8", "R9"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(4, 2)
				p = p.with(s.cluster(1), func(t *planned) { t.greeting = "hola" })
				recorders := []*recorder{s.record(s.cluster(0), p), s.record(s.cluster(1), p)}
				s.converge(p)
				for _, r := range recorders {
					r.wantVersions(1)
				}
			},
		},
		{
			Name:  "Apply: every target runs its own manifest, replicas duplicated",
			Rules: []string{"R8", "R9"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1), s.cluster(2))
				s.converge(p.with(s.cluster(1), func(t *planned) { t.greeting = "hola" }))
			},
		},
		{
			Name:  "Apply: a cluster-scoped workload is carried",
			Rules: []string{"R10"},
			Needs: backends.FeatureClusterScoped,
			kinds: []kind{sidecarSet},
			run: func(s *session) {
				p := s.newPlan("injector", s.cluster(0), s.cluster(1))
				s.converge(p)
				s.converge(p.changed())
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.gone(p)
			},
		},
		{
			Name:  "R1: applying twice writes nothing the second time",
			Rules: []string{"R1"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1)
				s.converge(p)
				s.noWrites("further passes", func() { s.keepPassing(p) })
			},
		},
		{
			Name:  "R1: a new process writes nothing either",
			Rules: []string{"R1", "R3", "R12"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1)
				s.converge(p)
				next := s.restarted()
				next.converge(p)
				reads := next.reads.Load()
				next.keepPassing(p)
				if n := next.writes.Load(); n != 0 {
					s.t.Errorf("%d writes, want none", n)
				}
				if n := next.reads.Load() - reads; n != 0 {
					s.t.Errorf("%d reads around the caches, want none", n)
				}
			},
		},
		{
			Name:  "Apply: scaling to zero keeps the objects, divided",
			Rules: []string{"R7"},
			kinds: bothKinds,
			run: func(s *session) {
				s.scaleToZero(s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1))
			},
		},
		{
			Name:  "Apply: scaling to zero keeps the objects, duplicated",
			Rules: []string{"R7"},
			kinds: bothKinds,
			run:   func(s *session) { s.scaleToZero(s.newPlan("web", s.cluster(0), s.cluster(1))) },
		},
	}
}

// keepPassing passes for a while after convergence.
func (s *session) keepPassing(p plan) {
	s.t.Helper()
	s.quiet(func() {
		if missing, err := s.pass(p); err != nil && !tolerable(err) || missing != "" {
			s.t.Fatalf("%s is not steady: %s", p.key.Name, missing)
		}
	})
}

// passAWhile passes for a while, whatever is reported meanwhile.
func (s *session) passAWhile(p plan) {
	s.t.Helper()
	s.quiet(func() {
		if _, err := s.pass(p); err != nil && !tolerable(err) {
			s.t.Fatalf("pass: %v", err)
		}
	})
}

func (s *session) scaleToZero(p plan) {
	s.t.Helper()
	s.converge(p)
	before := map[string]*unstructured.Unstructured{}
	for _, cluster := range p.clusters() {
		before[cluster] = s.mustMember(cluster, p)
	}
	for _, next := range []plan{p.scaled(0), p} {
		s.converge(next)
		for _, cluster := range p.clusters() {
			if live := s.mustMember(cluster, p); live.GetUID() != before[cluster].GetUID() {
				s.t.Errorf("%s: scaled to %d, the object is another one", cluster, next.replicas)
			}
		}
	}
}

// gone checks that no member has the workload.
func (s *session) gone(p plan) {
	s.t.Helper()
	for _, cluster := range s.env.Clusters {
		obj, err := s.env.Member(cluster.Name).Get(s.t.Context(), p.ref())
		if err == nil && obj.GetDeletionTimestamp() == nil {
			s.t.Errorf("%s: %s is still there", cluster.Name, p.key.Name)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			s.noError(fmt.Sprintf("get from %s", cluster.Name), err)
		}
	}
}
