package ocm

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// world is one cluster with a work agent that behaves like OCM's (ocm pkg/work/spoke): it applies the newest
// generation, looks at the object, and finalizes a deleted ManifestWork, each at its own time.
type world struct {
	// The ManifestWork; strategy is empty when there is none.
	strategy workv1.UpdateStrategyType
	deletion workv1.DeletePropagationPolicyType
	held     bool
	observed bool
	asks     bool
	deleting bool
	// generation, and the ones that the agent has acted on and looked at.
	generation, applied, looked int
	appliedOK                   bool
	saw                         presence
	sawOwned                    bool

	// The member object.
	object presence // presenceMissing, presenceOurs or presenceForeign
	owned  bool
	writes int

	// refuses makes the cluster's API server refuse every write of the manifest; others, every one that does not win over those who have
	// its fields. forced has the agent win, lost is why it has failed.
	refuses, others, forced, lost bool
	// notServed makes the cluster lack the kind.
	notServed bool
	// now goes on with each step of the driver. Until blind, the agent does not see what it has created or taken over, but what was
	// there before.
	now, blind time.Time
	before     presence
	// asked is since when the ManifestWork says that it is on its way out, again that it asks once more; told is true once it has let
	// the agent write.
	asked time.Time
	again bool
	told  bool

	log []string
}

func (w *world) state() state {
	if w.strategy == "" {
		return state{}
	}
	s := state{
		exists: true, deleting: w.deleting, held: w.held, observe: w.observed, probe: w.asks, strategy: w.strategy, deletion: w.deletion,
		applied: metav1.ConditionUnknown, owned: true, asked: w.asked, again: w.again, untouched: !w.told,
		forced: w.forced,
	}
	if w.applied == w.generation {
		s.applied = metav1.ConditionFalse
		if w.appliedOK {
			s.applied = metav1.ConditionTrue
		}
		s.appliedMessage, s.notServed, s.conflict = "refused", w.notServed && !w.appliedOK, w.lost && !w.appliedOK
		if w.looked == w.generation && !s.notServed {
			s.object = w.saw
			s.owned = w.saw == presenceMissing || w.sawOwned
		}
	}
	return s
}

// stepTime is what a step of the driver takes.
const stepTime = 30 * time.Second

// ours is what the agent does not see for a while.
func (w *world) ours() {
	w.before = w.object
	w.object, w.blind = presenceOurs, w.now.Add(time.Duration((w.generation+w.writes)%4)*stepTime-time.Second)
	w.writes++
}

// drive lets the driver take one step.
func (w *world) drive(in intent) move {
	s := w.state()
	w.now = w.now.Add(stepTime)
	in.now = w.now
	m := next(s, in)
	w.log = append(w.log, fmt.Sprintf("driver: %s", describe(m)))
	switch m.write {
	case writeWork:
		if w.strategy != m.strategy || w.deletion != m.deletion || w.again != asksAgain(m.removing) || w.forced != m.force {
			w.strategy, w.deletion, w.again, w.forced = m.strategy, m.deletion, asksAgain(m.removing), m.force
			w.generation++
		}
		w.held, w.observed, w.asks, w.asked = m.held, m.observe, m.probe, askedOf(m.removing)
		w.told = w.told || w.strategy != workv1.UpdateStrategyTypeReadOnly
	case writeMarks:
		w.held = true
	case writeDelete:
		w.deleting = true
	}
	return m
}

func describe(m move) string {
	switch m.write {
	case writeWork:
		if m.force {
			return fmt.Sprintf("%s+%s by force", m.strategy, m.deletion)
		}
		return fmt.Sprintf("%s+%s", m.strategy, m.deletion)
	case writeMarks:
		return "mark as held"
	case writeDelete:
		return "delete"
	default:
		return "wait for " + m.waiting
	}
}

// apply is the agent's apply controller.
func (w *world) apply() {
	if w.strategy == "" || w.deleting {
		return
	}
	w.applied, w.appliedOK, w.lost = w.generation, true, false
	if w.notServed {
		w.appliedOK = false
		return
	}
	exists := w.object != presenceMissing
	switch w.strategy {
	case workv1.UpdateStrategyTypeReadOnly:
		return
	case workv1.UpdateStrategyTypeServerSideApply:
		if w.refuses {
			w.appliedOK = false
			return
		}
		if exists && w.others && !w.forced {
			w.appliedOK, w.lost = false, true
			return
		}
		w.others = false
		switch w.object {
		case presenceMissing, presenceForeign:
			w.ours()
		}
	case workv1.UpdateStrategyTypeCreateOnly:
		if !exists && w.refuses {
			w.appliedOK = false
			return
		}
		if !exists {
			w.ours()
			w.log = append(w.log, "agent: created by CreateOnly")
		}
	}
	w.owned = w.deletion == workv1.DeletePropagationPolicyTypeForeground
}

// look is the agent's status controller. It can run before apply has acted on the generation.
func (w *world) look() {
	if w.strategy == "" || w.deleting {
		return
	}
	w.looked, w.saw, w.sawOwned = w.generation, w.object, w.owned
	if w.now.Before(w.blind) {
		w.saw, w.sawOwned = w.before, false
	}
}

// finalize is the agent's finalizer.
func (w *world) finalize() {
	if !w.deleting {
		return
	}
	if w.owned && w.object != presenceMissing {
		w.log = append(w.log, "agent: object deleted")
		w.object, w.owned = presenceMissing, false
	}
	w.strategy, w.deletion, w.deleting, w.held, w.observed, w.asks, w.forced, w.lost = "", "", false, false, false, false, false, false
	w.generation, w.applied, w.looked, w.asked, w.again, w.told = 1, 0, 0, time.Time{}, false, false
}

func (w *world) settle(t *testing.T, in intent, done func() bool) {
	t.Helper()
	for range 40 {
		w.apply()
		w.look()
		w.finalize()
		if done() {
			return
		}
		w.drive(in)
	}
	t.Fatalf("not done: %+v\n%s", w, strings.Join(w.log, "\n"))
}

// random mixes the driver's steps with the agent's for a while.
func (w *world) random(r *rand.Rand, in intent, steps int) {
	for range steps {
		switch r.Intn(5) {
		case 0:
			w.apply()
		case 1:
			w.look()
		case 2:
			w.finalize()
		default:
			w.drive(in)
		}
	}
}

func newWorld(r *rand.Rand) *world {
	return &world{generation: 1, object: []presence{presenceMissing, presenceOurs, presenceForeign}[r.Intn(3)]}
}

var (
	want    = intent{wanted: true, ready: true}
	adopt   = intent{wanted: true, ready: true, adopt: true}
	remove  = intent{policy: v1alpha1.DeletionPolicyDelete, ready: true}
	orphan  = intent{policy: v1alpha1.DeletionPolicyOrphan, ready: true}
	observe = intent{wanted: true, observe: true, ready: true}
	moving  = intent{wanted: true, ready: true, adopt: true, takeOver: true}
	asking  = intent{wanted: true, observe: true, probe: true, adopt: true, ready: true}
)

// TestAnyIntents changes what is wanted at random times, and checks that nothing is lost or left in the end.
func TestAnyIntents(t *testing.T) {
	for seed := range int64(20000) {
		r := rand.New(rand.NewSource(seed))
		w := newWorld(r)
		foreign := w.object == presenceForeign
		for range r.Intn(5) {
			in := []intent{want, remove, orphan}[r.Intn(3)]
			in.ready = r.Intn(4) > 0
			in.hold = r.Intn(4) == 0
			w.random(r, in, r.Intn(12))
			w.refuses = r.Intn(5) == 0
			w.others = w.others || r.Intn(3) == 0
		}
		w.refuses = false
		if foreign && (w.object != presenceForeign || w.owned || w.writes > 0) {
			t.Fatalf("seed %d: the foreign object was touched\n%s", seed, strings.Join(w.log, "\n"))
		}
		switch r.Intn(3) {
		case 0:
			// Without a ManifestWork, or with one already on its way out, there is nothing to remove the object by.
			removable := w.strategy != "" && !w.deleting
			w.settle(t, remove, func() bool { return w.strategy == "" })
			if removable && w.object == presenceOurs {
				t.Fatalf("seed %d: the object was left behind\n%s", seed, strings.Join(w.log, "\n"))
			}
		case 1:
			w.apply() // what was asked for before may still be done
			before := w.object
			w.settle(t, orphan, func() bool { return w.strategy == "" })
			// A removal that the agent had begun cannot be taken back.
			if begun := strings.Contains(strings.Join(w.log, "\n"), "object deleted"); !begun && w.object != before || w.owned {
				t.Fatalf("seed %d: %v became %v, owned %v\n%s", seed, before, w.object, w.owned, strings.Join(w.log, "\n"))
			}
		default:
			w.settle(t, want, func() bool {
				return w.strategy != "" && !w.deleting && !w.held && (foreign || w.object == presenceOurs && !w.owned && !w.others && !w.forced &&
					w.strategy == workv1.UpdateStrategyTypeServerSideApply)
			})
			// Deleted by accident, nothing happens to the object.
			before := w.object
			w.deleting = true
			w.finalize()
			if w.object != before {
				t.Fatalf("seed %d: an accidental delete took the object\n%s", seed, strings.Join(w.log, "\n"))
			}
		}
		if foreign && (w.object != presenceForeign || w.owned || w.writes > 0) {
			t.Fatalf("seed %d: the foreign object was touched\n%s", seed, strings.Join(w.log, "\n"))
		}
	}
}

// TestTakenOverAndRemoved: what was somebody else's and was taken over goes with the workload, however late the agent sees whose it is.
func TestTakenOverAndRemoved(t *testing.T) {
	for seed := range int64(5000) {
		r := rand.New(rand.NewSource(seed))
		w := &world{generation: 1, object: presenceForeign}
		w.random(r, adopt, r.Intn(12))
		taken := w.object == presenceOurs && w.strategy != ""
		w.random(r, remove, r.Intn(12))
		w.settle(t, remove, func() bool { return w.strategy == "" })
		if taken && w.object != presenceMissing || !taken && w.object == presenceOurs {
			t.Fatalf("seed %d: it was left behind\n%s", seed, strings.Join(w.log, "\n"))
		}
	}
}

// TestHoldWritesNothing: whatever was going on, the object stays as it is while held, once the agent has caught up.
func TestHoldWritesNothing(t *testing.T) {
	for seed := range int64(5000) {
		r := rand.New(rand.NewSource(seed))
		w := newWorld(r)
		w.random(r, []intent{want, adopt}[r.Intn(2)], r.Intn(12))
		w.apply()
		before, owned, strategy := w.object, w.owned, w.strategy
		held := want
		held.hold = true
		w.random(r, held, 20)
		w.drive(held)
		if w.object != before || w.owned != owned || strategy != "" && w.strategy != strategy || !w.held {
			t.Fatalf("seed %d: %+v\n%s", seed, w, strings.Join(w.log, "\n"))
		}
	}
}

// TestObservingIsNoDanger: from wherever it comes, once it says that it is released, nothing but a wish to own writes or removes
// the object.
func TestObservingIsNoDanger(t *testing.T) {
	for seed := range int64(20000) {
		r := rand.New(rand.NewSource(seed))
		w := newWorld(r)
		for range r.Intn(4) {
			w.random(r, []intent{want, adopt, remove, orphan, observe}[r.Intn(5)], r.Intn(12))
		}
		w.settle(t, observe, func() bool { return w.state().released() })
		before, writes := w.object, w.writes
		if w.owned {
			t.Fatalf("seed %d: it is released and owns\n%s", seed, strings.Join(w.log, "\n"))
		}
		for range r.Intn(4) {
			w.random(r, observe, r.Intn(8))
		}
		last := []intent{remove, orphan}[r.Intn(2)]
		w.random(r, last, r.Intn(12))
		w.settle(t, last, func() bool { return w.strategy == "" })
		if w.object != before || w.writes != writes {
			t.Fatalf("seed %d: %v became %v, %d writes became %d\n%s", seed, before, w.object, writes, w.writes, strings.Join(w.log, "\n"))
		}
	}
}

// TestProbeWritesNothing: whatever is found, and whatever was asked before without owning it, a probe and its removal leave it
// as it is; and it is answered.
func TestProbeWritesNothing(t *testing.T) {
	for seed := range int64(20000) {
		r := rand.New(rand.NewSource(seed))
		w := newWorld(r)
		before := w.object
		if before == presenceForeign {
			w.random(r, want, r.Intn(12)) // a conflict, which is to be taken over now
		}
		w.settle(t, asking, func() bool { return w.asks && w.state().object == before })
		for range r.Intn(4) {
			w.random(r, asking, r.Intn(8))
		}
		last := []intent{remove, orphan}[r.Intn(2)]
		w.random(r, last, r.Intn(12))
		w.settle(t, last, func() bool { return w.strategy == "" })
		if w.object != before || w.writes != 0 {
			t.Fatalf("seed %d: %v became %v, %d writes\n%s", seed, before, w.object, w.writes, strings.Join(w.log, "\n"))
		}
	}
}

// TestTranscripts are the usual ways, step by step.
func TestTranscripts(t *testing.T) {
	unready := want
	unready.ready = false
	for name, c := range map[string]struct {
		world *world
		in    []intent
		log   []string
	}{
		"create where nothing is": {
			world: &world{object: presenceMissing}, in: []intent{want, want, want},
			log: []string{"ReadOnly+Orphan", "ServerSideApply+Orphan", "ServerSideApply+Orphan"},
		},
		"ours already": {
			world: &world{object: presenceOurs}, in: []intent{want, want},
			log: []string{"ReadOnly+Orphan", "ServerSideApply+Orphan"},
		},
		"foreign object": {
			world: &world{object: presenceForeign}, in: []intent{want, want, adopt, adopt},
			log: []string{"ReadOnly+Orphan", "ReadOnly+Orphan", "ServerSideApply+Orphan by force", "ServerSideApply+Orphan"},
		},
		"old evidence of a lost cluster does not count": {
			world: &world{object: presenceMissing}, in: []intent{unready, unready, want},
			log: []string{"ReadOnly+Orphan", "ReadOnly+Orphan", "ServerSideApply+Orphan"},
		},
		"delete": {
			world: &world{object: presenceOurs}, in: []intent{adopt, remove, remove, remove},
			log: []string{"ServerSideApply+Orphan by force", "CreateOnly+Foreground", "delete", "wait for "},
		},
		"delete where the object is gone": {
			world: &world{strategy: "ServerSideApply", deletion: "Orphan", object: presenceMissing, looked: 1, applied: 1,
				generation: 1, appliedOK: true, saw: presenceMissing, refuses: true, told: true},
			in:  []intent{remove, remove, remove, remove, remove, remove},
			log: []string{"ReadOnly+Orphan", "ReadOnly+Orphan", "ReadOnly+Orphan", "ReadOnly+Orphan", "delete", "wait for "},
		},
		"orphan": {
			world: &world{object: presenceOurs}, in: []intent{adopt, orphan, orphan},
			log: []string{"ServerSideApply+Orphan by force", "delete", "wait for "},
		},
		"kind not served": {
			world: &world{object: presenceMissing, notServed: true}, in: []intent{want, want, remove},
			log: []string{"ReadOnly+Orphan", "ReadOnly+Orphan", "delete"},
		},
		"observed from the start": {
			world: &world{object: presenceForeign}, in: []intent{observe, observe, remove},
			log: []string{"ReadOnly+Orphan", "ReadOnly+Orphan", "delete"},
		},
		"probed, then taken over": {
			world: &world{object: presenceForeign}, in: []intent{asking, asking, adopt, adopt},
			log: []string{"ReadOnly+Orphan", "ReadOnly+Orphan", "ServerSideApply+Orphan by force", "ServerSideApply+Orphan"},
		},
		"probed, and left alone": {
			world: &world{object: presenceForeign}, in: []intent{asking, remove, remove},
			log: []string{"ReadOnly+Orphan", "delete", "wait for "},
		},
		"handed away and back": {
			world: &world{object: presenceOurs}, in: []intent{adopt, observe, observe, want, observe, orphan},
			log: []string{
				"ServerSideApply+Orphan by force", "ReadOnly+Orphan", "ReadOnly+Orphan", "ServerSideApply+Orphan", "ReadOnly+Orphan", "delete",
			},
		},
		"handed away on its way out": {
			world: &world{object: presenceOurs}, in: []intent{adopt, remove, observe, observe, observe},
			log: []string{"ServerSideApply+Orphan by force", "CreateOnly+Foreground", "ReadOnly+Orphan", "CreateOnly+Orphan", "ReadOnly+Orphan"},
		},
		"delete called off": {
			world: &world{object: presenceOurs}, in: []intent{adopt, remove, adopt, orphan},
			log: []string{"ServerSideApply+Orphan by force", "CreateOnly+Foreground", "ServerSideApply+Orphan by force", "delete"},
		},
		"delete turned into orphan": {
			world: &world{object: presenceOurs}, in: []intent{adopt, remove, orphan, orphan},
			log: []string{"ServerSideApply+Orphan by force", "CreateOnly+Foreground", "CreateOnly+Orphan", "delete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world
			var log []string
			for _, in := range c.in {
				log = append(log, describe(w.drive(in)))
				if w.generation == 0 {
					w.generation = 1
				}
				w.apply()
				w.look()
				w.finalize()
			}
			if diff := cmp.Diff(c.log, log); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMarksAreTakenOffAnOrphan goes the whole way of an object that is left with another backend's marks.
func TestMarksAreTakenOffAnOrphan(t *testing.T) {
	const marks = "karmada.io/managed,work.karmada.io/name"
	left := state{
		exists: true, strategy: deliver.strategy, deletion: deliver.deletion, applied: metav1.ConditionTrue,
		object: presenceOurs, marks: marks, managed: true,
	}
	alone := intent{policy: v1alpha1.DeletionPolicyOrphan, ready: true, alone: true}
	taken, dropped := left, left
	taken.leaving, taken.taking = true, true
	dropped.leaving = true // somebody has put the marks back
	changed := func(s state, f func(*state)) state { f(&s); return s }
	for name, c := range map[string]struct {
		state state
		in    intent
		want  string
		clean string
	}{
		"marks are taken over":         {left, alone, "ServerSideApply+Orphan by force", marks},
		"then they go":                 {taken, alone, "ServerSideApply+Orphan by force", ""},
		"then the object is left":      {dropped, alone, "delete", ""},
		"taken before it was deleted":  {changed(taken, func(s *state) { s.leaving, s.marks = false, "" }), alone, "ServerSideApply+Orphan by force", ""},
		"no marks":                     {changed(left, func(s *state) { s.marks = "" }), alone, "delete", ""},
		"another backend is there too": {left, intent{policy: v1alpha1.DeletionPolicyOrphan, ready: true}, "delete", ""},
		"another backend delivers it":  {changed(left, func(s *state) { s.elsewhere = true }), alone, "delete", ""},
		"it was ReadOnly":              {changed(left, func(s *state) { s.strategy = probe.strategy; s.owned = false }), alone, "delete", ""},
		"the agent has not applied it": {changed(taken, func(s *state) { s.applied = metav1.ConditionUnknown }), alone, "wait for " + unmarking, ""},
		"the cluster refuses it":       {changed(taken, func(s *state) { s.applied = metav1.ConditionFalse }), alone, "CreateOnly+Orphan", ""},
	} {
		m := next(c.state, c.in)
		if got := describe(m); got != c.want || m.clean != c.clean {
			t.Errorf("%s: %s, taking %q; want %s, taking %q", name, got, m.clean, c.want, c.clean)
		}
		if m.write == writeWork && (m.removing != string(v1alpha1.DeletionPolicyOrphan) || m.waiting == "") {
			t.Errorf("%s: removing %q, waiting for %q", name, m.removing, m.waiting)
		}
	}
}
