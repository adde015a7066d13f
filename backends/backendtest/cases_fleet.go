package backendtest

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func fleetCases() []Case {
	return []Case{
		{
			Name: "Clusters: the fleet is known, with labels, attributes and identities",
			run:  fleetIsKnown,
		},
		{
			Name: "Observe: a workload never applied is not found",
			run: func(s *session) {
				p := s.newPlan("never", s.cluster(0))
				s.noWrites("Observe", func() {
					observation, err := s.observe(p.query())
					s.noError("Observe", err)
					if observation.Found || len(observation.Clusters) > 0 {
						s.t.Errorf("found: %+v", observation)
					}
				})
			},
		},
		{
			Name:  "R7: choosing clusters touches no member; names, exclude, selector and attributes choose as Fleet.Select does",
			Rules: []string{"R7"},
			run:   selectionEqualsSelect,
		},
		{
			Name: "Run: a change on the backend is notified",
			run: func(s *session) {
				if _, ok := s.driver.(backends.Runner); !ok {
					s.t.Skip("the driver is no Runner")
				}
				p := s.newPlan("web", s.cluster(0))
				s.converge(p)
				for len(s.changed) > 0 {
					<-s.changed
				}
				// Another replica count is a change that comes back as a report, whoever writes.
				other := s.restarted()
				other.converge(p.scaled(3))
				s.until("a notification", func() string {
					for len(s.changed) > 0 {
						if <-s.changed == p.key.NamespacedName {
							return ""
						}
					}
					return "none for " + p.key.String()
				})
			},
		},
	}
}

func fleetIsKnown(s *session) {
	var fleet backends.Fleet
	s.noWrites("Clusters", func() {
		var err error
		fleet, err = s.driver.Clusters(s.t.Context())
		s.noError("Clusters", err)
	})
	if !slices.IsSortedFunc(fleet.Clusters, func(a, b backends.Cluster) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		s.t.Error("clusters are not sorted by name")
	}
	identities := map[string]string{}
	for _, want := range s.env.Clusters {
		got, ok := fleet.Get(want.Name)
		if !ok {
			s.t.Errorf("%s is missing", want.Name)
			continue
		}
		if got.Ready != metav1.ConditionTrue {
			s.t.Errorf("%s: Ready is %q: %s", want.Name, got.Ready, got.Message)
		}
		if got.Identity != want.Identity {
			s.t.Errorf("%s: Identity is %q, want %q", want.Name, got.Identity, want.Identity)
		}
		if other, taken := identities[got.Identity]; taken && got.Identity != "" {
			s.t.Errorf("%s and %s have the same Identity", other, want.Name)
		}
		identities[got.Identity] = want.Name
		for key, value := range want.Labels {
			if got.Labels[key] != value {
				s.t.Errorf("%s: label %s is %q, want %q", want.Name, key, got.Labels[key], value)
			}
		}
		for key, value := range want.Attributes {
			if got.Attributes[key] != value {
				s.t.Errorf("%s: %s is %q, want %q", want.Name, key, got.Attributes[key], value)
			}
		}
	}
}

// selectionEqualsSelect asks for one placement after the other and compares each choice at the first moment that it is
// settled: one that is settled too early is the choice for the placement before.
func selectionEqualsSelect(s *session) {
	fleet, err := s.driver.Clusters(s.t.Context())
	s.noError("Clusters", err)
	label, attribute := s.distinguishing()
	names := []string{s.cluster(0), s.cluster(1), s.cluster(2)}
	selectors := [][]v1alpha1.ClusterSelector{
		{{Names: names[1:]}},
		{{Names: names, Exclude: names[:1]}},
		{{Names: names, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label.key: label.value}}}},
		{{Names: names, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: label.key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{label.value}},
		}}}},
		{{Names: names, Attributes: []v1alpha1.AttributeRequirement{
			{Key: v1alpha1.Attribute(attribute.key), Operator: v1alpha1.AttributeOperatorIn, Values: []string{attribute.value}},
		}}},
		{{Names: names, Attributes: []v1alpha1.AttributeRequirement{
			{Key: v1alpha1.Attribute(attribute.key), Operator: v1alpha1.AttributeOperatorNotIn, Values: []string{attribute.value}},
		}}},
		{{Names: names[:1]}, {Names: names[2:]}, {Names: names[:2], Exclude: names[1:2]}},
		{{}},
	}
	p := s.newPlan("web")
	for i := range selectors {
		want, err := fleet.Select(selectors[i]...)
		s.noError("Select", err)
		p.selectors = selectors[i]
		s.until(fmt.Sprintf("%+v to choose %v", selectors[i], want), func() string {
			observation, err := s.observe(p.query())
			if err == nil {
				_, err = s.apply(p.desired(false))
			}
			switch {
			case err != nil && !tolerable(err):
				s.t.Fatalf("choose: %v", err)
				return ""
			case err != nil:
				return err.Error()
			case !observation.Selection.Settled:
				return observation.Selection.Message
			case !slices.Equal(observation.Selection.Clusters, want):
				s.t.Fatalf("settled on %v, want %v for %+v", observation.Selection.Clusters, want, selectors[i])
				return ""
			default:
				return ""
			}
		})
		for _, cluster := range names {
			if s.member(cluster, p) != nil {
				s.t.Errorf("%s: choosing clusters created the workload", cluster)
			}
		}
	}
}

type pair struct{ key, value string }

// distinguishing finds a label and an attribute that the first cluster has and another one lacks.
func (s *session) distinguishing() (label, attribute pair) {
	s.t.Helper()
	first := s.env.Clusters[0]
	for _, other := range s.env.Clusters[1:] {
		for key, value := range first.Labels {
			if other.Labels[key] != value {
				label = pair{key, value}
			}
		}
		for key, value := range first.Attributes {
			if other.Attributes[key] != value {
				attribute = pair{string(key), value}
			}
		}
	}
	if label.key == "" || attribute.key == "" {
		s.t.Fatal("the environment's first cluster needs a label and an attribute that another one lacks")
	}
	return label, attribute
}
