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
				held := next.with(s.cluster(1), func(t *planned) { t.hold = true })
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
				s.converge(p.with(s.cluster(0), func(t *planned) { t.hold = true }))
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
				held := p.with(s.cluster(1), func(t *planned) { t.hold = true })
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
				s.refused(p.with(s.cluster(0), func(t *planned) { t.hold = true }), backends.CodeUnsupported)
			},
		},
	}
}

func ownershipCases() []Case {
	return []Case{
		{
			Name:  "Shadow: the member object is never written",
			Rules: []string{"R4"},
			Needs: backends.FeatureOwnership,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				was := s.foreignMember(s.cluster(0), p)
				shadow := p.owned(backends.OwnershipShadow)
				s.converge(shadow)
				shadow = shadow.changed()
				s.converge(shadow)
				s.quiet(func() {
					s.untouched(s.cluster(0), p, was)
					if s.member(s.cluster(1), p) != nil {
						s.t.Fatal("a shadow created the workload")
					}
				})
				s.remove(shadow, v1alpha1.DeletionPolicyDelete)
				s.untouched(s.cluster(0), p, was)
			},
		},
		{
			Name:  "Adopt: a running member object is taken over as it is, and becomes ours",
			Rules: []string{"R4", "R8"},
			Needs: backends.FeatureOwnership,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.runningMember(s.cluster(0), p)
				r := s.record(s.cluster(0), p)
				s.converge(p.owned(backends.OwnershipAdopt))
				s.converge(p)
				r.wantSpecs(1)
				s.converge(p.changed())
				r.wantSpecs(2)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
			},
		},
		{
			Name:  "Release: the member object is given up and stays",
			Rules: []string{"R10"},
			Needs: backends.FeatureOwnership,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				released := p.with(s.cluster(0), func(t *planned) { t.ownership = backends.OwnershipRelease })
				s.converge(released)
				s.unmarked(s.cluster(0), p)
				s.converge(p.on(s.cluster(1)).leaving(s.cluster(0)))
				r.wantSpecs(1)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				r.wantSpecs(1)
			},
		},
		{
			Name:  "Release: a removal right behind it deletes nothing",
			Rules: []string{"R3", "R10"},
			Needs: backends.FeatureOwnership,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				_, err := s.apply(p.with(s.cluster(0), func(t *planned) { t.ownership = backends.OwnershipRelease }).desired(true))
				s.noError("Apply", err)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.unmarked(s.cluster(0), p)
				r.wantSpecs(1)
				if s.member(s.cluster(1), p) != nil {
					s.t.Errorf("%s: the workload is still there", s.cluster(1))
				}
			},
		},
		{
			Name:  "R5: ownership other than Own is refused as Unsupported when the feature is not declared",
			Rules: []string{"R5"},
			Lacks: backends.FeatureOwnership,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				for _, o := range []backends.Ownership{
					backends.OwnershipShadow, backends.OwnershipAdopt, backends.OwnershipRelease,
				} {
					s.refused(p.owned(o), backends.CodeUnsupported)
				}
			},
		},
	}
}

// owned sets the ownership of every target.
func (p plan) owned(ownership backends.Ownership) plan {
	for _, cluster := range p.clusters() {
		p = p.with(cluster, func(t *planned) { t.ownership = ownership })
	}
	return p
}

// leaving allows a member object of the plan to stay on a cluster that is no target.
func (p plan) leaving(cluster string) plan {
	p.leftOn = append(p.leftOn[:len(p.leftOn):len(p.leftOn)], cluster)
	return p
}

// unmarked checks that a member object bears no mark of the backend.
func (s *session) unmarked(cluster string, p plan) {
	s.t.Helper()
	s.until("the marks on "+cluster+" to go", func() string { return s.markOf(s.mustMember(cluster, p)) })
}

// markOf returns the first mark of the backend's ownership on a member object.
func (s *session) markOf(obj *unstructured.Unstructured) string {
	if owners := obj.GetOwnerReferences(); len(owners) > 0 {
		return "owner " + owners[0].Kind + " " + owners[0].Name
	}
	for _, key := range s.env.OwnershipMarks {
		if _, ok := obj.GetLabels()[key]; ok {
			return "label " + key
		}
		if _, ok := obj.GetAnnotations()[key]; ok {
			return "annotation " + key
		}
	}
	return ""
}
