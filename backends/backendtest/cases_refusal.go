package backendtest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func refusalCases() []Case {
	return []Case{
		{
			Name:  "R5: a kind that is not served is KindNotServed, or not Applied for a reason; Delete gets rid of it",
			Rules: []string{"R5", "R10"},
			kinds: []kind{gizmo},
			run: func(s *session) {
				s.reported(s.newPlan("gizmo", s.cluster(0)), backends.CodeKindNotServed)
			},
		},
		{
			Name:  "R5: a manifest that an API server refuses is Rejected, or not Applied for a reason; correcting it helps",
			Rules: []string{"R5"},
			kinds: bothKinds[:1],
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				wrong := p
				wrong.change = func(obj *unstructured.Unstructured) {
					labels := map[string]any{"app": "the selector does not match this"}
					_ = unstructured.SetNestedMap(obj.Object, labels, "spec", "template", "metadata", "labels")
				}
				s.seesRefusal(wrong, backends.CodeRejected)
				s.converge(p)
			},
		},
		{
			Name:  "R5: a placement that names a cluster the backend does not know is ClusterNotFound",
			Rules: []string{"R5", "R7"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.converge(p)
				was := s.mustMember(s.cluster(0), p)
				typo := p
				typo.selectors = []v1alpha1.ClusterSelector{{Names: []string{s.cluster(0), "no-such-cluster"}}}
				s.until("the refusal", func() string {
					_, err := s.observe(typo.query())
					if err == nil {
						_, err = s.apply(typo.desired(true))
					}
					if code := backends.CodeOf(err); code != backends.CodeClusterNotFound {
						return "got " + errorText(err)
					}
					return ""
				})
				s.untouched(s.cluster(0), p, was)
			},
		},
		{
			Name:  "R5: options that cannot be merged are InvalidOptions, and members stay as they are",
			Rules: []string{"R5"},
			run: func(s *session) {
				if s.env.InvalidOptions == nil {
					s.t.Skip("the environment has no invalid options")
				}
				p := s.newPlan("web", s.cluster(0))
				s.converge(p)
				was := s.mustMember(s.cluster(0), p)
				next := p.changed()
				next.options = s.env.InvalidOptions
				s.noWrites("Apply of invalid options", func() { s.refused(next, backends.CodeInvalidOptions) })
				s.untouched(s.cluster(0), p, was)
			},
		},
		{
			Name:  "R5: a cluster-scoped workload is refused as Unsupported when the feature is not declared",
			Rules: []string{"R5"},
			Lacks: backends.FeatureClusterScoped,
			kinds: []kind{sidecarSet},
			run: func(s *session) {
				s.refused(s.newPlan("injector", s.cluster(0)), backends.CodeUnsupported)
			},
		},
	}
}

// refused applies with targets until the driver refuses with the code: the caches may need a moment to see why.
func (s *session) refused(p plan, code backends.Code) {
	s.t.Helper()
	s.until("the refusal "+string(code), func() string {
		_, err := s.apply(p.desired(true))
		if backends.CodeOf(err) != code {
			return "got " + errorText(err)
		}
		return ""
	})
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// reported waits until a workload that cannot run is refused or reported, then deletes it.
func (s *session) reported(p plan, code backends.Code) {
	s.t.Helper()
	s.seesRefusal(p, code)
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	s.nothingLeft(p)
}

// seesRefusal waits for the code, from a backend that knows by itself what members would refuse, or for a report that
// the member has refused, from one that does not.
func (s *session) seesRefusal(p plan, code backends.Code) {
	s.t.Helper()
	s.until("the refusal "+string(code), func() string {
		missing, err := s.pass(p)
		if backends.CodeOf(err) == code {
			return ""
		}
		if err != nil && !tolerable(err) {
			s.t.Fatalf("want %s or a report, got %v", code, err)
		}
		observation, err := s.observe(p.query())
		if err != nil {
			return err.Error()
		}
		c, _ := report(observation, p.targets[0].cluster)
		if c.Applied == metav1.ConditionFalse && c.Message != "" && !c.Conflict {
			return ""
		}
		return missing
	})
}
