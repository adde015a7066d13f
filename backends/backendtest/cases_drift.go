package backendtest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func driftCases() []Case {
	return []Case{
		{
			Name:  "R17: with Report a change of others on a member stays, and the next change goes over it in one step",
			Rules: []string{"R17", "R8"},
			Needs: backends.FeatureDriftReport,
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				p.drift = v1alpha1.DriftPolicyReport
				s.converge(p)
				s.edit(s.env.Member(s.cluster(0)), p.ref(), func(obj *unstructured.Unstructured) {
					s.noError("set replicas", unstructured.SetNestedField(obj.Object, int64(7), "spec", "replicas"))
				})
				was := s.mustMember(s.cluster(0), p)
				r := s.record(s.cluster(0), p)
				s.quiet(func() {
					_, err := s.pass(p)
					s.noError("pass", err)
					s.untouched(s.cluster(0), p, was)
				})
				s.converge(p.changed())
				r.wantVersions(2)
			},
		},
		{
			Name:  "R17: Report is refused as Unsupported when the feature is not declared, and members stay as they are",
			Rules: []string{"R17", "R5"},
			Lacks: backends.FeatureDriftReport,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.converge(p)
				was := s.mustMember(s.cluster(0), p)
				next := p.changed()
				next.drift = v1alpha1.DriftPolicyReport
				s.noWrites("Apply with Report", func() { s.refused(next, backends.CodeUnsupported) })
				s.untouched(s.cluster(0), p, was)
			},
		},
	}
}
