package backendtest

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func changeCases() []Case {
	return []Case{
		{
			Name:  "R8: a change of image, replicas and an override reaches each member in one step",
			Rules: []string{"R8"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(4, 2)
				s.converge(p)
				recorders := []*recorder{s.record(s.cluster(0), p), s.record(s.cluster(1), p)}
				for _, r := range recorders {
					r.wantVersions(1)
				}
				s.converge(p.changed())
				for _, r := range recorders {
					r.wantVersions(2)
				}
			},
		},
		{
			Name:  "R8: a cluster that joins changes the others in one step, or not at all",
			Rules: []string{"R8"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(3, 3)
				s.converge(p)
				shrinks, stays := s.record(s.cluster(0), p), s.record(s.cluster(1), p)
				newcomer := s.record(s.cluster(2), p)
				s.converge(p.on(s.cluster(0), s.cluster(1), s.cluster(2)).divided(1, 3, 2))
				shrinks.wantVersions(2)
				stays.wantVersions(1)
				newcomer.wantVersions(1)
			},
		},
		{
			Name:  "R9: a report is Current only when the member runs that manifest, and nil before there is one",
			Rules: []string{"R9"},
			kinds: bothKinds,
			run:   currentMeansCurrent,
		},
		{
			Name:  "Apply: a target that is to be removed goes away, and nothing else does",
			Rules: []string{"R7"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1), s.cluster(2))
				s.converge(p)
				stays := []*recorder{s.record(s.cluster(0), p), s.record(s.cluster(2), p)}
				s.converge(p.on(s.cluster(0), s.cluster(2)))
				for _, r := range stays {
					r.wantVersions(1)
				}
			},
		},
		{
			Name:  "R4: labels and annotations of others on member objects survive a change",
			Rules: []string{"R4"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				s.converge(p)
				s.edit(s.env.Member(s.cluster(0)), p.ref(), mark)
				s.noWrites("passes over a foreign mark", func() { s.passAWhile(p) })
				s.converge(p.changed())
				if live := s.mustMember(s.cluster(0), p); !marked(live) {
					s.t.Errorf("the mark is gone: labels %v, annotations %v", live.GetLabels(), live.GetAnnotations())
				}
			},
		},
		{
			Name:  "R4: labels and annotations of others on backend objects survive a change",
			Rules: []string{"R4", "R1"},
			run:   backendMarksSurvive,
		},
	}
}

// currentMeansCurrent compares what is reported with the member at the first moment that it is reported.
func currentMeansCurrent(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1)
	for _, next := range []plan{p, p.changed(), p.changed().scaled(4), p} {
		s.until("every report to be Current", func() string {
			if _, err := s.pass(next); err != nil && !tolerable(err) {
				s.t.Fatalf("pass: %v", err)
			}
			observation, err := s.observe(next.query())
			s.noError("Observe", err)
			for _, c := range observation.Clusters {
				if c.Status != nil && s.member(c.Cluster, next) == nil {
					s.t.Errorf("%s: a status of what is not there: %v", c.Cluster, c.Status)
				}
			}
			for _, cluster := range next.clusters() {
				c, _ := report(observation, cluster)
				if !c.Current || c.Revision != next.revision() || c.Asked != nil && *c.Asked != target(next, cluster).replicas {
					return cluster + " is not Current"
				}
				s.matchesMember(next, c)
			}
			return ""
		})
	}
}

// matchesMember checks that a Current status could only come from a member that has seen the target manifest.
func (s *session) matchesMember(p plan, c backends.ClusterObservation) {
	s.t.Helper()
	cluster := c.Cluster
	live := s.mustMember(cluster, p)
	want := p.manifest(target(p, cluster).replicas, target(p, cluster).greeting)
	if got := live.GetAnnotations()[v1alpha1.AnnotationRevision]; got != p.revision() {
		s.t.Errorf("%s: Current at %s while the member has revision %q", cluster, p.revision(), got)
	}
	if diff := cmp.Diff(nested(want, "spec", "replicas"), nested(live, "spec", "replicas")); diff != "" {
		if c.Asked != nil {
			s.t.Errorf("%s: Current for the new replicas while the member has others (-want +live):\n%s", cluster, diff)
		}
		return // Without Desired it may be Current for the replicas before.
	}
	observed, _ := number(nested(live, "status", "observedGeneration"))
	if observed != live.GetGeneration() {
		s.t.Errorf("%s: Current while the member is at generation %d and has observed %d", cluster, live.GetGeneration(), observed)
	}
	if reported, _ := number(c.Status["observedGeneration"]); reported != live.GetGeneration() {
		s.t.Errorf("%s: Current with a report of generation %v while the member is at %d", cluster,
			c.Status["observedGeneration"], live.GetGeneration())
	}
}

func target(p plan, cluster string) planned {
	for _, t := range p.targets {
		if t.cluster == cluster {
			return t
		}
	}
	return planned{}
}

func nested(obj *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	return value
}

const foreignKey, foreignValue = "example.com/team", "blue"

func mark(obj *unstructured.Unstructured) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[foreignKey], annotations[foreignKey] = foreignValue, foreignValue
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

func marked(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[foreignKey] == foreignValue && obj.GetAnnotations()[foreignKey] == foreignValue
}

// backendMarksSurvive marks what the driver wrote, and leaves what the backend made of it alone.
func backendMarksSurvive(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1)
	s.converge(p)
	var ours []*unstructured.Unstructured
	owned, err := s.env.Owned(s.t.Context(), p.query())
	s.noError("list what is owned", err)
	for _, obj := range owned {
		if obj.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator && len(obj.GetOwnerReferences()) == 0 {
			ours = append(ours, obj)
			s.edit(s.env.Backend, RefOf(obj), mark)
		}
	}
	if len(ours) == 0 {
		s.t.Fatal("the driver keeps no object on the backend that has " + v1alpha1.LabelManagedBy)
	}
	s.noWrites("passes over a foreign mark", func() { s.passAWhile(p) })
	s.converge(p.changed())
	for _, obj := range ours {
		live, err := s.env.Backend.Get(s.t.Context(), RefOf(obj))
		s.noError("get "+obj.GetName(), err)
		if live.GetUID() == obj.GetUID() && !marked(live) {
			s.t.Errorf("%s %s: the mark is gone: labels %v, annotations %v", obj.GetKind(), obj.GetName(),
				live.GetLabels(), live.GetAnnotations())
		}
	}
}

// RefOf is the Ref of an object.
func RefOf(obj *unstructured.Unstructured) Ref {
	ref := Ref{GVK: obj.GroupVersionKind()}
	ref.Namespace, ref.Name = obj.GetNamespace(), obj.GetName()
	return ref
}
