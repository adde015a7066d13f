package backendtest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func ownershipCases() []Case {
	return append(append(observeCases(), probeCases()...),
		Case{
			Name:  "Adopt: a running member object is taken over as it is, and becomes ours",
			Rules: []string{"R4", "R8", "R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.runningMember(s.cluster(0), p)
				r := s.record(s.cluster(0), p)
				s.converge(p.owned(backends.ModeAdopt))
				s.converge(p)
				r.wantSpecs(1)
				s.converge(p.changed())
				r.wantSpecs(2)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
			},
		},
		Case{
			Name:  "Adopt: what was observed is taken over, and the spec does not change",
			Rules: []string{"R8", "R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.runningMember(s.cluster(0), p)
				s.runningMember(s.cluster(1), p)
				r := s.record(s.cluster(0), p)
				s.converge(p.owned(backends.ModeObserve))
				s.converge(p.owned(backends.ModeObserve).with(s.cluster(0), func(t *planned) { t.mode = backends.ModeAdopt }))
				s.converge(p.owned(backends.ModeAdopt))
				r.wantSpecs(1)
				s.converge(p)
				r.wantSpecs(1)
			},
		},
		Case{
			Name:  "R14: cut off after any write of a change of mode, a new process ends in the same state",
			Rules: []string{"R3", "R14"},
			Needs: backends.FeatureModes,
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) { s.converge(p) },
					act:     func(s *session, p plan) { s.passUntilCut(p.owned(backends.ModeObserve)) },
					finish: func(s *session, p plan) {
						s.converge(p.owned(backends.ModeObserve))
						s.converge(p)
					},
					check: func(r *recorder) { r.wantSpecs(1) },
				})
			},
		},
		Case{
			Name:  "R5: a mode that takes over, observes or probes is refused as Unsupported when the feature is not declared",
			Rules: []string{"R5"},
			Lacks: backends.FeatureModes,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				for _, o := range []backends.Mode{backends.ModeObserve, backends.ModeAdopt} {
					s.refused(p.owned(o), backends.CodeUnsupported)
				}
			},
		},
	)
}

func observeCases() []Case {
	return []Case{
		{
			Name:  "Observe: the member object is never written",
			Rules: []string{"R4", "R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				was := s.foreignMember(s.cluster(0), p)
				observing := p.owned(backends.ModeObserve)
				s.converge(observing)
				observing = observing.changed()
				s.converge(observing)
				s.quiet(func() {
					s.untouched(s.cluster(0), p, was)
					if s.member(s.cluster(1), p) != nil {
						s.t.Fatal("observing created the workload")
					}
				})
				s.remove(observing, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.untouched(s.cluster(0), p, was)
			},
		},
		{
			Name:  "Observe: what was owned is neither written nor removed any more, and Released says so",
			Rules: []string{"R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				observing := p.with(s.cluster(0), func(t *planned) { t.mode = backends.ModeObserve })
				s.converge(observing)
				s.converge(observing.changed())
				s.noWrites("passes with an observed cluster", func() { s.keepPassing(observing.changed()) })
				r.wantSpecs(1)
				s.converge(observing.changed().on(s.cluster(1)).leaving(s.cluster(0)))
				r.wantSpecs(1)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.mustMember(s.cluster(0), p)
				r.wantSpecs(1)
			},
		},
		{
			Name:  "Observe: what was owned can be owned again, and gets the change in one step",
			Rules: []string{"R8", "R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				s.converge(p.owned(backends.ModeObserve))
				s.converge(p.owned(backends.ModeObserve).changed())
				r.wantSpecs(1)
				s.restarted().converge(p.changed())
				r.wantSpecs(2)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
			},
		},
		{
			Name:  "Observe: Delete with Orphan removes the marks of what was owned",
			Rules: []string{"R10", "R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				s.converge(p.owned(backends.ModeObserve))
				s.remove(p, v1alpha1.DeletionPolicyOrphan)
				s.nothingLeft(p)
				s.unmarked(s.cluster(0), p)
				s.unmarked(s.cluster(1), p)
				r.wantSpecs(1)
			},
		},
		{
			Name:  "Observe: Delete of what is nobody else's removes it",
			Rules: []string{"R10", "R14"},
			Needs: backends.FeatureModes,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				s.converge(p.with(s.cluster(0), func(t *planned) { t.mode = backends.ModeObserve }))
				p.counterpart = backends.CounterpartGone
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.gone(p)
			},
		},
	}
}

// owned sets the mode of every target.
func (p plan) owned(mode backends.Mode) plan {
	for _, cluster := range p.clusters() {
		p = p.with(cluster, func(t *planned) { t.mode = mode })
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

// markOf returns the first mark of the backend's mode on a member object.
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
