package backendtest

import (
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func deleteCases() []Case {
	return []Case{
		{
			Name:  "R10: Delete is Done when members and backend have nothing left, and then does nothing",
			Rules: []string{"R10", "R1"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1)
				s.converge(p)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
				s.nothingLeft(p)
				s.deletedForGood(p, v1alpha1.DeletionPolicyDelete)
			},
		},
		{
			Name:  "R10: Delete with Orphan leaves the members running and unmarked",
			Rules: []string{"R10", "R8"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1)
				s.converge(p)
				var recorders []*recorder
				for _, cluster := range p.clusters() {
					recorders = append(recorders, s.record(cluster, p))
				}
				s.remove(p, v1alpha1.DeletionPolicyOrphan)
				for _, cluster := range p.clusters() {
					if mark := s.markOf(s.mustMember(cluster, p)); mark != "" {
						s.t.Errorf("%s: the orphan has %s", cluster, mark)
					}
				}
				s.nothingLeft(p)
				s.deletedForGood(p, v1alpha1.DeletionPolicyOrphan)
				s.quiet(func() {})
				for _, r := range recorders {
					r.wantSpecs(1)
				}
			},
		},
		{
			Name:  "R10: what was orphaned can be adopted by a FleetWorkload of the same name",
			Rules: []string{"R10", "R4"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				s.remove(p, v1alpha1.DeletionPolicyOrphan)
				later := p
				later.key.UID = uuid.NewUUID()
				later.conflict = v1alpha1.ConflictPolicyAdopt
				s.converge(later)
				r.wantSpecs(1)
			},
		},
		{
			Name:  "R10: Delete of what was never applied is Done",
			Rules: []string{"R10"},
			run: func(s *session) {
				s.deletedForGood(s.newPlan("never", s.cluster(0)), v1alpha1.DeletionPolicyDelete)
				s.deletedForGood(s.newPlan("never", s.cluster(0)), v1alpha1.DeletionPolicyOrphan)
			},
		},
		{
			Name:  "R10: Delete of what is only placed is Done soon",
			Rules: []string{"R10"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				_, err := s.apply(p.desired(false))
				s.noError("Apply", err)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.gone(p)
			},
		},
		{
			Name:  "R10: Delete of what is half delivered removes it",
			Rules: []string{"R10", "R3"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.until("the first delivery", func() string {
					_, err := s.pass(p)
					s.noError("pass", err)
					if s.member(s.cluster(0), p) == nil && s.member(s.cluster(1), p) == nil {
						return "nothing delivered"
					}
					return ""
				})
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
				s.nothingLeft(p)
			},
		},
	}
}

// deletedForGood checks that a further Delete is Done at once, without a write, by this driver and by a new one.
func (s *session) deletedForGood(p plan, policy v1alpha1.DeletionPolicy) {
	s.t.Helper()
	for _, each := range []*session{s, s.restarted()} {
		each.noWrites("a further Delete", func() {
			progress, err := each.delete(p.query(), policy)
			each.noError("Delete", err)
			if !progress.Done {
				each.t.Errorf("a further Delete is not Done: %s", progress.Waiting)
			}
		})
	}
}
