package backendtest

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// handoverCases are about companions that change hands with their workload.
func handoverCases() []Case {
	return []Case{
		{
			Name:  "Observe: companions are neither written nor removed, and others' go on",
			Rules: []string{"R13", "R14"},
			Needs: backends.FeatureModes,
			run:   observedCompanions,
		},
		{
			Name:  "Observe: what is Released stays so while Delete takes it away",
			Rules: []string{"R14"},
			Needs: backends.FeatureModes,
			run:   observedLeaves,
		},
		{
			Name:  "Observe: companions that are no longer listed are given up too",
			Rules: []string{"R14"},
			Needs: backends.FeatureModes,
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings)
				s.converge(p)
				was := s.companion(s.cluster(0), settings)
				observing := p.carrying().owned(backends.ModeObserve)
				observing.prune = backends.PruneNone
				s.converge(observing)
				s.remove(observing, v1alpha1.DeletionPolicyOrphan)
				s.nothingLeft(p)
				s.stays(s.cluster(0), settings, was.GetUID())
			},
		},
		{
			Name:  "Adopt: companions are taken over as they are, and become ours",
			Rules: []string{"R13", "R14"},
			Needs: backends.FeatureModes,
			run:   adoptCompanions,
		},
		{
			Name:  "R13: a shared companion that is needed elsewhere is given up and not deleted",
			Rules: []string{"R13", "R14"},
			Needs: backends.FeatureModes,
			run: func(s *session) {
				needed, there := token, uuid.NewUUID()
				needed.elsewhere = []types.UID{there}
				p := s.newPlan("web", s.cluster(0))
				s.running(s.cluster(0), p.carrying(needed))
				s.converge(p.carrying(needed).owned(backends.ModeAdopt))
				s.converge(p.carrying(token))
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(p)
				s.stays(s.cluster(0), token, "")

				// Once it is a user itself it is not elsewhere any more.
				p, back := s.newPlan("web2", s.cluster(0)).carrying(needed), s.newPlan("api", s.cluster(0)).carrying(token)
				back.key.UID = there
				s.converge(p.owned(backends.ModeAdopt))
				s.converge(back.owned(backends.ModeAdopt))
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.remove(back, v1alpha1.DeletionPolicyDelete)
				s.absent(s.cluster(0), token.ref(s.namespace))
			},
		},
		{
			Name:  "R13: a shared companion that one was given up with is not deleted with another",
			Rules: []string{"R13", "R10"},
			run: func(s *session) {
				web := s.newPlan("web", s.cluster(0)).carrying(token)
				api := s.newPlan("api", s.cluster(0)).carrying(token)
				s.converge(web)
				s.converge(api)
				was := s.companion(s.cluster(0), token)
				s.remove(web, v1alpha1.DeletionPolicyOrphan)
				s.remove(api, v1alpha1.DeletionPolicyDelete)
				s.nothingLeft(api)
				s.gone(api)
				s.stays(s.cluster(0), token, was.GetUID())
			},
		},
	}
}

func observedCompanions(s *session) {
	web := s.newPlan("web", s.cluster(0)).carrying(settings, token)
	api := s.newPlan("api", s.cluster(0)).carrying(token)
	s.converge(web)
	s.converge(api)
	own, both := s.companion(s.cluster(0), settings), s.companion(s.cluster(0), token)
	settings, token := settings, token
	settings.value, token.value = "two", "second"
	observing := web.carrying(settings, token).owned(backends.ModeObserve)
	o := s.converge(observing)
	if c, _ := report(o, s.cluster(0)); !slices.Equal(c.Serves["Secret token"], []types.UID{api.key.UID}) {
		s.t.Errorf("it goes on with the Secret for %v, want %v", c.Serves, api.key.UID)
	}
	api = api.carrying(token)
	s.converge(api)
	s.noWrites("passes of both", func() {
		s.keepPassing(observing)
		s.keepPassing(api)
	})
	if live := s.companion(s.cluster(0), settings); live == nil || nested(live, "data", "value") != "one" {
		s.t.Errorf("the companion of an observed cluster was written: %v", live)
	}
	s.remove(observing, v1alpha1.DeletionPolicyOrphan)
	s.nothingLeft(observing)
	s.stays(s.cluster(0), settings, own.GetUID())
	s.converge(api)
	s.remove(api, v1alpha1.DeletionPolicyDelete)
	s.stays(s.cluster(0), token, both.GetUID())
}

func adoptCompanions(s *session) {
	claim := passenger{kind: "PersistentVolumeClaim", name: "data"}
	p := s.newPlan("web", s.cluster(0)).carrying(settings, claim, token)
	s.running(s.cluster(0), p)
	was := map[string]types.UID{}
	for _, each := range p.passengers {
		was[each.name] = s.companion(s.cluster(0), each).GetUID()
	}
	s.converge(p.owned(backends.ModeObserve))
	s.converge(p.owned(backends.ModeAdopt))
	s.converge(p)
	settings, token := settings, token
	settings.value, token.value = "two", "second"
	p = p.carrying(settings, claim, token)
	s.converge(p)
	for _, each := range p.passengers {
		if live := s.companion(s.cluster(0), each); live == nil || live.GetUID() != was[each.name] {
			s.t.Errorf("%s is not what it was", each.name)
		}
	}
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	s.absent(s.cluster(0), settings.ref(s.namespace))
	s.absent(s.cluster(0), token.ref(s.namespace))
	s.stays(s.cluster(0), claim, was[claim.name])
}

// running creates a plan's workload and companions on a cluster, as another backend would have left them.
func (s *session) running(cluster string, p plan) {
	s.t.Helper()
	for _, c := range p.companions() {
		s.noError("create on "+cluster, s.env.Member(cluster).Create(s.t.Context(), c.Object))
	}
	s.runningMember(cluster, p)
}

// stays checks that a companion is there without a mark of the backend, and that it is still the one of that UID.
func (s *session) stays(cluster string, p passenger, uid types.UID) {
	s.t.Helper()
	s.quiet(func() {})
	live := s.companion(cluster, p)
	if live == nil || live.GetDeletionTimestamp() != nil || uid != "" && live.GetUID() != uid {
		s.t.Fatalf("%s: %s is gone", cluster, p.name)
	}
	if mark := s.markOf(live); mark != "" {
		s.t.Errorf("%s: %s has %s", cluster, p.name, mark)
	}
}

// observedLeaves: otherwise the other backend would lose its right to write for as long as the removal takes.
func observedLeaves(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(token)
	s.converge(p)
	observing := p.owned(backends.ModeObserve)
	s.converge(observing)
	query := observing.query()
	query.Counterpart = backends.CounterpartHeir
	s.until("it to be released", func() string {
		observation, err := s.observe(query)
		s.noError("Observe", err)
		for _, c := range observation.Clusters {
			if !c.Released() {
				s.t.Fatalf("%s is not released any more: %+v", c.Cluster, c)
			}
		}
		progress, err := s.delete(query, v1alpha1.DeletionPolicyOrphan)
		if err != nil && !tolerable(err) {
			s.t.Fatalf("delete: %v", err)
		}
		return progress.Waiting
	})
	s.nothingLeft(p)
	s.mustMember(s.cluster(0), p)
}
