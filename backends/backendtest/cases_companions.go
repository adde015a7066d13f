package backendtest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

var (
	settings = passenger{kind: "ConfigMap", name: "settings", value: "one"}
	token    = passenger{kind: "Secret", name: "token", value: "first", shared: true}
)

func companionCases() []Case {
	return []Case{
		{
			Name:  "R13: companions are on a member before the workload, and changes of them before changes of it",
			Rules: []string{"R13"},
			kinds: bothKinds,
			run:   companionsComeFirst,
		},
		{
			Name:  "R13: a change of a companion alone reaches the members and leaves the workload alone",
			Rules: []string{"R13", "R8", "R1"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
				s.converge(p)
				recorders := []*recorder{s.record(s.cluster(0), p), s.record(s.cluster(1), p)}
				settings, token := settings, token
				settings.value, token.value = "two", "second"
				s.converge(p.carrying(settings, token))
				s.noWrites("further passes", func() { s.keepPassing(p.carrying(settings, token)) })
				for _, r := range recorders {
					r.wantVersions(1)
				}
			},
		},
		{
			Name:  "R13: a new process writes nothing for companions either",
			Rules: []string{"R13", "R1", "R12"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
				s.converge(p)
				next := s.restarted()
				next.converge(p)
				reads := next.reads.Load()
				next.noWrites("passes of a new process", func() { next.keepPassing(p) })
				if n := next.reads.Load() - reads; n != 0 {
					s.t.Errorf("%d reads around the caches, want none", n)
				}
			},
		},
		{
			Name:  "R13: a companion no longer listed goes after the change that does without it, and not while it is kept",
			Rules: []string{"R13"},
			run:   companionsGoAfter,
		},
		{
			Name:  "R13: a companion is only on the clusters that need it",
			Rules: []string{"R13"},
			run: func(s *session) {
				local := settings
				local.clusters = []string{s.cluster(0)}
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(local)
				s.converge(p)
				s.absent(s.cluster(1), local.ref(s.namespace))
				local.clusters = []string{s.cluster(1)}
				s.converge(p.carrying(local))
				s.absent(s.cluster(0), local.ref(s.namespace))
			},
		},
		{
			Name:  "R13: a cluster that is left loses its companions after the workload",
			Rules: []string{"R13"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
				s.converge(p)
				workload, companion := s.watchLog(s.cluster(1), p.ref()), s.watchLog(s.cluster(1), settings.ref(s.namespace))
				s.converge(p.on(s.cluster(0)))
				s.before(s.cluster(1), "the workload's end", workload.went(), "the companion's", companion.went())
				s.absent(s.cluster(1), token.ref(s.namespace))
			},
		},
		{
			Name:  "R13: a shared companion stays until its last user has gone",
			Rules: []string{"R13", "R10"},
			run:   sharedUntilTheLast,
		},
		{
			Name:  "R13: Delete removes companions after the workload, but never a claim",
			Rules: []string{"R13", "R10"},
			run:   deleteCompanions,
		},
		{
			Name:  "R13: Delete with Orphan leaves companions as they are, and unmarked",
			Rules: []string{"R13", "R10"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
				s.converge(p)
				s.remove(p, v1alpha1.DeletionPolicyOrphan)
				s.nothingLeft(p)
				s.quiet(func() {})
				for _, each := range p.passengers {
					live := s.companion(s.cluster(0), each)
					if live == nil || live.GetDeletionTimestamp() != nil {
						s.t.Fatalf("%s is gone", each.name)
					}
					if mark := s.markOf(live); mark != "" {
						s.t.Errorf("the orphan %s has %s", each.name, mark)
					}
				}
			},
		},
		{
			Name:  "R13: with somebody else's object in the place of a companion the cluster has a Conflict and no workload",
			Rules: []string{"R13", "R4"},
			run:   foreignCompanion,
		},
		{
			Name:  "R13: somebody else's object in the place of a shared companion is used as it is, with a note",
			Rules: []string{"R13", "R4"},
			run:   foreignShared,
		},
		{
			Name:  "R13: with conflictPolicy Adopt somebody else's object becomes the companion",
			Rules: []string{"R13", "R4"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
				p.conflict = v1alpha1.ConflictPolicyAdopt
				for _, each := range p.passengers {
					s.foreignCompanion(s.cluster(0), each)
				}
				s.converge(p)
				s.remove(p, v1alpha1.DeletionPolicyDelete)
				s.absent(s.cluster(0), settings.ref(s.namespace))
			},
		},
		{
			Name:  "R13: another FleetWorkload's companion of that name is a NameConflict and stays as it is",
			Rules: []string{"R13", "R4", "R5"},
			run: func(s *session) {
				p := s.newPlan("web", s.cluster(0)).carrying(settings)
				s.converge(p)
				other := settings
				other.value = "another's"
				s.refused(s.newPlan("api", s.cluster(0)).carrying(other), backends.CodeNameConflict)
				s.keepPassing(p)
			},
		},
		{
			Name:  "R13: companions are told to who asks, with what they hold and whose they are",
			Rules: []string{"R13"},
			run:   companionsAreTold,
		},
		{
			Name:  "R13: cut off after any write of a change with companions, a new process ends in the same state",
			Rules: []string{"R13", "R3", "R8"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) { s.converge(laden(p)) },
					act:     func(s *session, p plan) { s.passUntilCut(reladen(p)) },
					finish: func(s *session, p plan) {
						s.converge(reladen(p))
						s.absent(s.cluster(0), laden(p).passengers[0].ref(s.namespace))
					},
					check: func(r *recorder) { r.wantVersions(2) },
				})
			},
		},
		{
			Name:  "R13: cut off after any write of a Delete with companions, a new process ends it",
			Rules: []string{"R13", "R3", "R10"},
			run: func(s *session) {
				s.cutOffAfterEach(scene{
					prepare: func(s *session, p plan) { s.converge(laden(p)) },
					act:     func(s *session, p plan) { s.removeUntilCut(laden(p), v1alpha1.DeletionPolicyDelete) },
					finish: func(s *session, p plan) {
						s.remove(laden(p), v1alpha1.DeletionPolicyDelete)
						s.nothingLeft(p)
						s.gone(p)
						for _, each := range laden(p).passengers {
							s.absent(s.cluster(0), each.ref(s.namespace))
						}
					},
				})
			},
		},
	}
}

// laden and reladen are a plan with companions, and the same changed with others. Their names are the plan's own: the
// plans of one case share a namespace.
func laden(p plan) plan {
	return p.carrying(
		passenger{kind: "ConfigMap", name: p.key.Name + "-old", value: "one"},
		passenger{kind: "Secret", name: p.key.Name + "-both", value: "one", shared: true},
	)
}

func reladen(p plan) plan {
	return p.changed().carrying(
		passenger{kind: "ConfigMap", name: p.key.Name + "-new", value: "one"},
		passenger{kind: "Secret", name: p.key.Name + "-both", value: "two", shared: true},
	)
}

func companionsComeFirst(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).divided(2, 1).carrying(settings, token)
	type watched struct{ workload, settings, token *watchLog }
	clusters := map[string]watched{}
	for _, cluster := range p.clusters() {
		clusters[cluster] = watched{
			s.watchLog(cluster, p.ref()), s.watchLog(cluster, settings.ref(s.namespace)), s.watchLog(cluster, token.ref(s.namespace)),
		}
	}
	s.converge(p)
	for cluster, w := range clusters {
		s.before(cluster, "the ConfigMap", w.settings.came(), "the workload", w.workload.came())
		s.before(cluster, "the Secret", w.token.came(), "the workload", w.workload.came())
	}
	settings := settings
	settings.value = "two"
	next := p.changed().carrying(settings, token)
	s.converge(next)
	for cluster, w := range clusters {
		changed := w.settings.when("the change", func(h watchEvent) bool { return nested(h.object, "data", "value") == "two" })
		s.before(cluster, "the ConfigMap's change", changed, "the workload's", w.workload.when("the change", func(h watchEvent) bool {
			return h.object.GetAnnotations()[v1alpha1.AnnotationRevision] == next.revision()
		}))
	}
}

func companionsGoAfter(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
	s.converge(p)
	next := p.changed().carrying()
	next.prune = backends.PruneNone
	s.converge(next)
	s.noWrites("passes that keep", func() { s.keepPassing(next) })
	for _, each := range p.passengers {
		if s.companion(s.cluster(0), each) == nil {
			s.t.Errorf("%s is gone although it was to be kept", each.name)
		}
	}
	next.prune = backends.PruneOwn
	s.converge(next)
	s.absent(s.cluster(0), settings.ref(s.namespace))
	if s.companion(s.cluster(0), token) == nil {
		s.t.Error("the shared one is gone although it was to be kept")
	}
	// One change that takes both the need and the companion away.
	s.converge(p)
	workload, companion := s.watchLog(s.cluster(0), p.ref()), s.watchLog(s.cluster(0), settings.ref(s.namespace))
	next.prune = backends.PruneAll
	s.converge(next)
	changed := workload.when("the change", func(h watchEvent) bool {
		return h.object.GetAnnotations()[v1alpha1.AnnotationRevision] == next.revision()
	})
	s.before(s.cluster(0), "the workload's change", changed, "the companion's end", companion.went())
	s.absent(s.cluster(1), token.ref(s.namespace))
}

func sharedUntilTheLast(s *session) {
	web := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(token)
	api := s.newPlan("api", s.cluster(1), s.cluster(2)).carrying(token)
	s.converge(web)
	s.converge(api)
	s.noWrites("passes of both", func() {
		s.keepPassing(web)
		s.keepPassing(api)
	})
	was := s.companion(s.cluster(1), token)
	token := token
	token.value = "second"
	web, api = web.carrying(token), api.carrying(token)
	s.converge(web)
	s.converge(api)
	s.remove(web, v1alpha1.DeletionPolicyDelete)
	s.nothingLeft(web)
	s.absent(s.cluster(0), token.ref(s.namespace))
	s.keepPassing(api)
	if live := s.companion(s.cluster(1), token); live == nil || live.GetUID() != was.GetUID() {
		s.t.Error("what two shared went with the first of them")
	}
	s.remove(api, v1alpha1.DeletionPolicyDelete)
	for _, cluster := range []int{0, 1, 2} {
		s.absent(s.cluster(cluster), token.ref(s.namespace))
	}
}

func deleteCompanions(s *session) {
	claim := passenger{kind: "PersistentVolumeClaim", name: "data"}
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, claim, token)
	s.converge(p)
	workload, companion := s.watchLog(s.cluster(0), p.ref()), s.watchLog(s.cluster(0), settings.ref(s.namespace))
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	s.nothingLeft(p)
	s.gone(p)
	s.before(s.cluster(0), "the workload's end", workload.went(), "the companion's", companion.went())
	s.absent(s.cluster(0), token.ref(s.namespace))
	if live := s.companion(s.cluster(0), claim); live == nil || live.GetDeletionTimestamp() != nil {
		s.t.Error("the claim was deleted, and its data with it")
	}
	s.deletedForGood(p, v1alpha1.DeletionPolicyDelete)
}

func foreignCompanion(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings)
	was := s.foreignCompanion(s.cluster(0), settings)
	s.until("the conflict to be reported", func() string {
		if _, err := s.pass(p); err != nil && !tolerable(err) {
			s.t.Fatalf("pass: %v", err)
		}
		observation, err := s.observe(p.query())
		s.noError("Observe", err)
		c, _ := report(observation, s.cluster(0))
		if !c.Conflict || c.Applied != metav1.ConditionFalse || !strings.Contains(c.Message, settings.name) {
			return "no Conflict that names it on " + s.cluster(0)
		}
		other, _ := report(observation, s.cluster(1))
		return runs(p, target(p, s.cluster(1)), other)
	})
	s.passAWhile(p)
	s.absent(s.cluster(0), p.ref())
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	s.nothingLeft(p)
	s.stillTheirs(s.cluster(0), settings, was)
}

func foreignShared(s *session) {
	p := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(token)
	was := s.foreignCompanion(s.cluster(0), token)
	p.theirs = []string{s.cluster(0)}
	o := s.converge(p)
	if len(o.Notes) == 0 || !strings.Contains(strings.Join(o.Notes, " "), token.name) {
		s.t.Errorf("no note names %s: %q", token.name, o.Notes)
	}
	s.noWrites("passes over it", func() { s.keepPassing(p) })
	s.remove(p, v1alpha1.DeletionPolicyDelete)
	s.nothingLeft(p)
	s.stillTheirs(s.cluster(0), token, was)
	s.absent(s.cluster(1), token.ref(s.namespace))
}

func companionsAreTold(s *session) {
	web := s.newPlan("web", s.cluster(0), s.cluster(1)).carrying(settings, token)
	s.foreignCompanion(s.cluster(0), token)
	web.theirs = []string{s.cluster(0)}
	for _, c := range s.converge(web).Clusters {
		if c.Companions != nil {
			s.t.Errorf("%s: %d companions are told although nobody asks", c.Cluster, len(c.Companions))
		}
	}
	s.wantTold(web, s.cluster(0), "settings one own, token first shared Foreign")
	s.wantTold(web, s.cluster(1), "settings one own, token first shared")
	api := s.newPlan("api", s.cluster(1)).carrying(token)
	s.converge(api)
	s.wantTold(web, s.cluster(1), "settings one own, token first shared used by others")
	s.wantTold(api, s.cluster(1), "token first shared used by others")
}

// wantTold waits until the driver tells these companions of a cluster.
func (s *session) wantTold(p plan, cluster, want string) {
	s.t.Helper()
	s.until("companions of "+p.key.Name+" to be told", func() string {
		query := p.query()
		query.Companions = true
		observation, err := s.observe(query)
		s.noError("Observe", err)
		c, _ := report(observation, cluster)
		var told []string
		for _, o := range c.Companions {
			value, kind := fmt.Sprint(nested(o.Object, "data", "value")), "own"
			if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && o.Object.GetKind() == "Secret" {
				value = string(decoded)
			}
			if o.Shared {
				kind = "shared"
			}
			words := []string{o.Object.GetName(), value, kind}
			if o.Others {
				words = append(words, "used by others")
			}
			if o.Theirs != backends.TheirsNot {
				words = append(words, string(o.Theirs))
			}
			told = append(told, strings.Join(words, " "))
		}
		if got := strings.Join(told, ", "); got != want {
			return cluster + ": " + got + ", want " + want
		}
		return ""
	})
}

// companion reads a companion from a member; nil when it is not there.
func (s *session) companion(cluster string, p passenger) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.env.Member(cluster).Get(s.t.Context(), p.ref(s.namespace))
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.noError("get from "+cluster, err)
	return obj
}

// absent waits until an object is gone from a member.
func (s *session) absent(cluster string, ref Ref) {
	s.t.Helper()
	s.until(ref.GVK.Kind+" "+ref.Name+" to be gone from "+cluster, func() string {
		_, err := s.env.Member(cluster).Get(s.t.Context(), ref)
		if !apierrors.IsNotFound(err) {
			return "it is there: " + errorText(err)
		}
		return ""
	})
}

// foreignCompanion creates somebody else's object in the place of a companion.
func (s *session) foreignCompanion(cluster string, p passenger) *unstructured.Unstructured {
	s.t.Helper()
	p.value = "theirs"
	obj := p.object(backends.Key{})
	obj.SetNamespace(s.namespace)
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	mark(obj)
	s.noError("create on "+cluster, s.env.Member(cluster).Create(s.t.Context(), obj))
	return s.companion(cluster, p)
}

// stillTheirs checks that somebody else's object is as it was.
func (s *session) stillTheirs(cluster string, p passenger, was *unstructured.Unstructured) {
	s.t.Helper()
	live := s.companion(cluster, p)
	if live == nil || live.GetUID() != was.GetUID() || live.GetDeletionTimestamp() != nil ||
		!ssa.Contains(live.Object["data"], was.Object["data"]) || !marked(live) {
		s.t.Fatalf("%s: %s was touched", cluster, p.name)
	}
	if mark := s.markOf(live); mark != "" {
		s.t.Errorf("%s: %s has our %s", cluster, p.name, mark)
	}
}

// checkCompanions waits until the members' companions are those of the plan. A driver may be done a moment before: Karmada says
// of an object without status that it delivers a change, and not when it has.
func (s *session) checkCompanions(p plan) {
	s.t.Helper()
	s.until("companions of "+p.key.Name, func() string {
		for _, c := range p.companions() {
			for _, t := range p.targets {
				if !c.NeededOn(t.cluster) || !t.writes() || c.Shared && slices.Contains(p.theirs, t.cluster) {
					continue
				}
				ref := RefOf(c.Object)
				live, err := s.env.Member(t.cluster).Get(s.t.Context(), ref)
				if err != nil {
					return fmt.Sprintf("%s: %s %s: %v", t.cluster, ref.GVK.Kind, ref.Name, err)
				}
				if !ssa.Contains(live.Object["data"], c.Object.Object["data"]) {
					return fmt.Sprintf("%s: %s %s is %v", t.cluster, ref.GVK.Kind, ref.Name, live.Object["data"])
				}
			}
		}
		return ""
	})
}
