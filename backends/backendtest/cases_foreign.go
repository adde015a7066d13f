package backendtest

import (
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func foreignCases() []Case {
	return []Case{
		{
			Name:  "R4: a foreign object of the same name on the backend is a NameConflict and stays as it is",
			Rules: []string{"R4", "R5"},
			run:   foreignOnBackend,
		},
		{
			Name:  "R4: an earlier FleetWorkload of the same name is a NameConflict and keeps running",
			Rules: []string{"R4", "R5"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				s.converge(p)
				r := s.record(s.cluster(0), p)
				later := p
				later.key.UID = uuid.NewUUID()
				s.refused(later, backends.CodeNameConflict)
				s.noWrites("Delete of the later one", func() { s.remove(later, v1alpha1.DeletionPolicyDelete) })
				s.keepPassing(p)
				r.wantVersions(1)
			},
		},
		{
			Name:  "R4: with conflictPolicy Fail a foreign member object is reported and left alone, also by Delete",
			Rules: []string{"R4"},
			kinds: bothKinds,
			run:   func(s *session) { s.foreignOnMember(nobodys) },
		},
		{
			Name:  "R4: with conflictPolicy Fail what another control plane has put on a member is left alone, also by Delete",
			Rules: []string{"R4"},
			kinds: bothKinds,
			run: func(s *session) {
				s.foreignOnMember(func(obj *unstructured.Unstructured) { s.env.Rival(s.t, s.cluster(0), obj) })
			},
		},
		{
			Name:  "R4: with conflictPolicy Adopt a foreign member object is taken over",
			Rules: []string{"R4", "R8"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1))
				p.conflict = v1alpha1.ConflictPolicyAdopt
				was := s.foreignMember(s.cluster(0), p)
				r := s.record(s.cluster(0), p)
				s.converge(p)
				r.wantVersions(2)
				live := s.mustMember(s.cluster(0), p)
				if live.GetUID() != was.GetUID() || !marked(live) {
					s.t.Errorf("UID %s became %s, labels %v", was.GetUID(), live.GetUID(), live.GetLabels())
				}
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.gone(p)
			},
		},
		{
			Name:  "R4: what runs already is adopted without a change of its spec",
			Rules: []string{"R4", "R8"},
			kinds: bothKinds,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0))
				p.conflict = v1alpha1.ConflictPolicyAdopt
				s.runningMember(s.cluster(0), p)
				r := s.record(s.cluster(0), p)
				s.converge(p)
				r.wantSpecs(1)
			},
		},
	}
}

func foreignOnBackend(s *session) {
	if s.env.Foreign == nil {
		s.t.Skip("the environment has no foreign object")
	}
	p := s.newPlan("web", s.cluster(0))
	foreign := s.env.Foreign(p.desired(true))
	s.noError("create the foreign object", s.env.Backend.Create(s.t.Context(), foreign.DeepCopy()))
	before, err := s.env.Backend.Get(s.t.Context(), RefOf(foreign))
	s.noError("get the foreign object", err)
	s.refused(p, backends.CodeNameConflict)
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	after, err := s.env.Backend.Get(s.t.Context(), RefOf(foreign))
	s.noError("get the foreign object", err)
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() || after.GetDeletionTimestamp() != nil {
		s.t.Errorf("the foreign object was touched: %v became %v", before.Object["metadata"], after.Object["metadata"])
	}
	for _, key := range []string{v1alpha1.LabelManagedBy, v1alpha1.LabelUID} {
		if _, ok := after.GetLabels()[key]; ok {
			s.t.Errorf("the foreign object has our label %s", key)
		}
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		s.t.Errorf("the foreign object was changed (-before +after):\n%s", diff)
	}
	if s.member(s.cluster(0), p) != nil {
		s.t.Error("the workload was delivered in spite of the conflict")
	}
}

// foreignOnMember runs the plan where the first cluster has somebody else's object.
func (s *session) foreignOnMember(give func(*unstructured.Unstructured)) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1))
	was := s.foreignMemberOf(s.cluster(0), p, give)
	other := target(p, s.cluster(1))
	s.until("the conflict to be reported", func() string {
		missing, err := s.pass(p)
		if err != nil && !tolerable(err) {
			s.t.Fatalf("pass: %v", err)
		}
		observation, err := s.observe(p.query())
		s.noError("Observe", err)
		conflicting, _ := report(observation, s.cluster(0))
		delivered, _ := report(observation, s.cluster(1))
		if !conflicting.Conflict {
			return "no Conflict on " + s.cluster(0) + ": " + missing
		}
		if conflicting.Applied != metav1.ConditionFalse || conflicting.Message == "" {
			return "a Conflict must be Applied=False with a message"
		}
		return runs(p, other, delivered)
	})
	s.stillForeign(p, was)
	s.quiet(func() {
		_, err := s.pass(p.changed())
		s.noError("pass", err)
		s.untouched(s.cluster(0), p, was)
	})
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	s.nothingLeft(p)
	s.stillForeign(p, was)
	if s.member(s.cluster(1), p) != nil {
		s.t.Errorf("%s: the workload is still there", s.cluster(1))
	}
}

// stillForeign checks that the foreign object on the first cluster is as it was.
func (s *session) stillForeign(p plan, was *unstructured.Unstructured) {
	s.t.Helper()
	s.untouched(s.cluster(0), p, was)
	live := s.mustMember(s.cluster(0), p)
	if diff := cmp.Diff(was.GetLabels(), live.GetLabels()); diff != "" {
		s.t.Errorf("labels of the foreign object changed (-before +after):\n%s", diff)
	}
	if mark := s.markOf(live); mark != s.markOf(was) {
		s.t.Errorf("the foreign object has our %s", mark)
	}
	for _, key := range s.env.OwnershipMarks {
		if got, had := live.GetAnnotations()[key], was.GetAnnotations()[key]; got != had {
			s.t.Errorf("annotation %s of the foreign object was %q and is %q", key, had, got)
		}
	}
}

// foreignMember creates somebody else's object of the plan's name on a cluster: other replicas, another image.
func (s *session) foreignMember(cluster string, p plan) *unstructured.Unstructured {
	s.t.Helper()
	return s.foreignMemberOf(cluster, p, nobodys)
}

func nobodys(*unstructured.Unstructured) {}

// foreignMemberOf makes it somebody's in particular.
func (s *session) foreignMemberOf(cluster string, p plan, give func(*unstructured.Unstructured)) *unstructured.Unstructured {
	s.t.Helper()
	theirs := p
	theirs.image = "registry.k8s.io/pause:3.8"
	obj := theirs.manifest(1, "theirs")
	obj.SetLabels(map[string]string{"app": p.key.Name})
	obj.SetAnnotations(nil)
	mark(obj)
	give(obj)
	return s.createMember(cluster, p, obj)
}

// runningMember creates the plan's target manifest on a cluster, as another backend would have left it.
func (s *session) runningMember(cluster string, p plan) {
	s.t.Helper()
	t := target(p, cluster)
	s.createMember(cluster, p, p.manifest(t.replicas, t.greeting))
}

func (s *session) createMember(cluster string, p plan, obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	store := s.env.Member(cluster)
	s.noError("create on "+cluster, store.Create(s.t.Context(), obj.DeepCopy()))
	// Its controller may write to it once: wait until the object has been seen.
	s.until("the object to run on "+cluster, func() string {
		live := s.mustMember(cluster, p)
		observed, _ := number(nested(live, "status", "observedGeneration"))
		if observed != live.GetGeneration() {
			return "it has not been observed"
		}
		return ""
	})
	return s.mustMember(cluster, p)
}
