package drift

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// report is one of cluster m1: of its first object and the first order, if nothing else is said.
func report(generation int64, changes ...func(*backends.ClusterObservation)) backends.ClusterObservation {
	c := backends.ClusterObservation{
		Cluster: "m1", UID: "first", Delivered: &backends.Delivered{Order: backends.Order{UID: "w", Generation: 1}, Generation: generation},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func order(n int64) func(*backends.ClusterObservation) {
	return func(c *backends.ClusterObservation) { c.Delivered.Order.Generation = n }
}

func uid(uid types.UID) func(*backends.ClusterObservation) {
	return func(c *backends.ClusterObservation) { c.UID = uid }
}

func others(words string) func(*backends.ClusterObservation) {
	return func(c *backends.ClusterObservation) { c.Delivered.Others = words }
}

func unproven(c *backends.ClusterObservation) { c.Delivered = nil }

func held(c *backends.ClusterObservation) { c.Held = true }

// companion has the report say something of a companion, and nothing of the workload's object.
func companion(words string, order int64) func(*backends.ClusterObservation) {
	return func(c *backends.ClusterObservation) {
		c.CompanionsDelivered = map[string]*backends.Delivered{
			"ConfigMap settings": {Order: backends.Order{UID: "c", Generation: order}, Others: words}, "ConfigMap other": nil,
		}
		c.Delivered = nil
	}
}

// forcing has the report say that the companion's agent is told to win.
func forcing(c *backends.ClusterObservation) {
	c.CompanionsDelivered = map[string]*backends.Delivered{"ConfigMap settings": nil}
}

func left(c *backends.ClusterObservation) { c.Left = &backends.Left{} }

// step is a report, and how long after the one before it comes.
type step struct {
	after time.Duration
	c     backends.ClusterObservation
}

// TestLook: what is told of cluster m1, report by report.
func TestLook(t *testing.T) {
	const (
		soon  = time.Second
		later = time.Minute
		edit  = `conflict with "kubectl-edit" using apps/v1: .spec.replicas`
		put   = "; cluster m1: the object there is what is delivered again"
		seen  = put + ", and was so when the change was seen"
		back  = "cluster m1: somebody else has changed the object there: generation 3 has become 5, while what is delivered has stayed the same" + seen
		named = "cluster m1: somebody else has changed the object there, and it is put back: " + edit
		carry = "cluster m1: somebody else has changed the companion ConfigMap settings there, and it is put back: " + edit
	)
	for name, test := range map[string]struct {
		steps  []step
		moves  bool // the kind's generation moves by itself
		expect string
	}{
		"nothing":                     {steps: []step{{0, report(3)}, {later, report(3)}, {later, report(3)}}},
		"a first report":              {steps: []step{{0, report(7)}}},
		"changed, and put back":       {steps: []step{{0, report(3)}, {later, report(5)}, {later, report(5)}}, expect: back},
		"while it is put back":        {steps: []step{{0, report(3)}, {later, report(4, unproven)}, {soon, report(5)}}, expect: back},
		"seen before it is put back":  {steps: []step{{0, report(3)}, {later, report(4)}, {soon, report(5)}}, expect: back},
		"seen, and seen again":        {steps: []step{{0, report(3)}, {later, report(4)}, {soon, report(4)}, {soon, report(5)}, {soon, report(6)}}, expect: back},
		"seen of what was written":    {steps: []step{{0, report(3)}, {soon, report(4)}, {soon, report(5)}}},
		"seen, and an order":          {steps: []step{{0, report(3)}, {later, report(4)}, {soon, report(5, order(2))}}},
		"changed twice":               {steps: []step{{0, report(3)}, {later, report(5)}, {later, report(7)}}, expect: back + "; " + strings.NewReplacer("3", "5", "5", "7").Replace(back)},
		"changed again and again":     {steps: []step{{0, report(3)}, {later, report(5)}, {soon, report(7)}, {soon, report(9)}}, expect: back},
		"one generation":              {steps: []step{{0, report(3)}, {later, report(4)}, {later, report(5)}, {later, report(6)}}},
		"just delivered":              {steps: []step{{0, report(3)}, {soon, report(5)}, {later, report(5)}}},
		"an order between":            {steps: []step{{0, report(3)}, {later, report(5, order(2))}, {later, report(5, order(2))}}},
		"an order not confirmed yet":  {steps: []step{{0, report(3)}, {later, report(4, order(2), unproven)}, {later, report(5, order(2))}}},
		"of a kind that moves":        {steps: []step{{0, report(3)}, {later, report(5)}}, moves: true},
		"made anew":                   {steps: []step{{0, report(3)}, {later, report(5, uid("second"))}}},
		"from a backup":               {steps: []step{{0, report(5)}, {later, report(3)}, {soon, report(5)}}},
		"away for a moment":           {steps: []step{{0, report(3)}, {later, backends.ClusterObservation{Cluster: "m2"}}, {later, report(5)}}},
		"named":                       {steps: []step{{0, report(0)}, {soon, report(0, others(edit))}, {later, report(0, others(edit))}}, expect: named},
		"named of a kind that moves":  {steps: []step{{0, report(0)}, {soon, report(0, others(edit))}}, moves: true, expect: named},
		"named at the first report":   {steps: []step{{0, report(0, others(edit))}, {later, report(0, others(edit))}}},
		"named of a new order":        {steps: []step{{0, report(0)}, {later, report(0, order(2), others(edit))}}},
		"named, and whole, and named": {steps: []step{{0, report(0)}, {soon, report(0, others(edit))}, {soon, report(0)}, {soon, report(0, others(edit))}}, expect: named + put + ", 1s after the change was seen; " + named},
		"named, and put back by force": {steps: []step{{0, report(0)}, {soon, report(0, others(edit))}, {soon, report(0, order(2), unproven)}, {soon, report(0, order(3))}, {soon, report(0, order(3))}},
			expect: named + put + ", 2s after the change was seen"},
		"named, and named of the next order": {steps: []step{{0, report(0)}, {soon, report(0, others(edit))}, {later, report(0, order(2), unproven)}, {later, report(0, order(3), others(edit))}, {later, report(0, order(5))}},
			expect: named + put + ", 3m after the change was seen"},
		"named, and made anew":    {steps: []step{{0, report(0)}, {soon, report(0, others(edit))}, {later, report(0, uid("second"))}}, expect: named + put + ", 60s after the change was seen"},
		"first report, and whole": {steps: []step{{0, report(0, others(edit))}, {later, report(0, order(3))}}},
		"of a companion": {steps: []step{{0, report(0, companion("", 1))}, {soon, report(0, companion(edit, 1))}, {soon, report(0, forcing)}, {soon, report(0, companion("", 3))}},
			expect: carry + strings.Replace(put, "the object", "the companion ConfigMap settings", 1) + ", 2s after the change was seen"},
		"of a companion where the cluster is held": {steps: []step{{0, report(0, held, companion("", 1))}, {soon, report(0, held, companion(edit, 1))}},
			expect: strings.Replace(carry, ", and it is put back", "", 1)},
		"of a companion beside what is left": {steps: []step{{0, report(0, companion("", 1))}, {soon, report(0, left, companion(edit, 1))}}, expect: carry},
		"of a companion that is new":         {steps: []step{{0, report(0)}, {soon, report(0, companion(edit, 1))}, {soon, report(0, companion("", 3))}}},
		"named where it is left": {steps: []step{{0, report(0)}, {soon, report(0, left, held, others(edit))}, {later, report(0, left, others(edit))}},
			expect: strings.Replace(named, "it is put back", "it is left as it is (spec.drift Report)", 1)},
		"named where it is held": {steps: []step{{0, report(0, held)}, {soon, report(0, held, others(edit))}},
			expect: strings.Replace(named, "and it is put back", "where it is held, so that it is left as it is", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var memory Memory
			var told []string
			now := began
			for _, step := range test.steps {
				now = now.Add(step.after)
				var changes []Change
				var back []PutBack
				memory, changes, back = Look(memory, []backends.ClusterObservation{step.c}, !test.moves, now)
				for _, change := range changes {
					told = append(told, change.String())
				}
				for _, object := range back {
					told = append(told, object.String())
				}
			}
			if got := strings.Join(told, "; "); got != test.expect {
				t.Errorf("told is %q, want %q", got, test.expect)
			}
		})
	}
}

// TestManyClusters: each is on its own, and one that is gone is forgotten.
func TestManyClusters(t *testing.T) {
	of := func(cluster string, generation int64) backends.ClusterObservation {
		return report(generation, func(c *backends.ClusterObservation) { c.Cluster = cluster })
	}
	memory, _, _ := Look(nil, []backends.ClusterObservation{of("m1", 1), of("m2", 4)}, true, began)
	memory, changes, back := Look(memory, []backends.ClusterObservation{of("m1", 3), of("m2", 4)}, true, began.Add(time.Hour))
	if len(changes) != 1 || changes[0].Cluster != "m1" || len(back) != 1 || back[0].Cluster != "m1" {
		t.Errorf("told is %v, %v", changes, back)
	}
	if memory, _, _ = Look(memory, []backends.ClusterObservation{of("m2", 4)}, true, began.Add(time.Hour)); len(memory) != 1 {
		t.Errorf("remembered is %v", memory)
	}
}

// member is a cluster with its backend, which knows what is true.
type member struct {
	rng *rand.Rand
	now time.Time
	// order is the newest, and generation the object's, as it was at each time.
	order      int64
	uid        int
	generation []at
	// due is true while the backend has still to write, and wrote are the times when it has.
	due   bool
	wrote []time.Time
	// foreign is when somebody else has last changed the object.
	foreign time.Time
	// events counts what has happened; pending is the change that is to be put back, and changed the last one that was.
	events, pending, changed int
	log                      []string
}

// at is since when the object has been in a generation.
type at struct {
	since      time.Time
	generation int64
}

func (m *member) newest() int64 { return m.generation[len(m.generation)-1].generation }

func (m *member) write() {
	m.generation = append(m.generation, at{m.now, m.newest() + 1})
}

// happens does something, and says what.
func (m *member) happens() string {
	m.events++
	switch m.rng.IntN(10) {
	case 0, 1:
		m.order, m.due = m.order+1, true
		return "an edit of ours"
	case 2, 3:
		m.foreign, m.due, m.pending = m.now, true, m.events
		m.write()
		return "somebody changes the object"
	case 4:
		m.foreign = m.now
		m.write()
		return "somebody annotates the object"
	case 5:
		m.uid, m.pending = m.uid+1, 0
		m.generation = []at{{m.now, 1}}
		return "the object is made anew"
	case 6, 7:
		m.now = m.now.Add(time.Duration(m.rng.IntN(90)) * time.Second)
		return "time passes"
	default:
		if m.due && m.rng.IntN(4) > 0 {
			m.write() // else it made no difference
			if m.pending > 0 {
				m.changed = m.pending
			}
		}
		m.pending = 0
		m.due, m.wrote = false, append(m.wrote, m.now)
		return "the backend writes"
	}
}

// reports is what the backend tells: of the present order, and of the object as it was up to some seconds ago. It may be behind by one write of
// the backend's own, and by no more: replicas and the revision tell of every other one.
func (m *member) reports(lag time.Duration) backends.ClusterObservation {
	behind := 0
	for _, wrote := range m.wrote {
		if wrote.After(m.now.Add(-lag)) {
			behind++
		}
	}
	if behind > 1 || behind == 1 && m.due {
		lag = 0
	}
	c := report(m.generation[0].generation, order(m.order), uid(types.UID(fmt.Sprint(m.uid))))
	for _, g := range m.generation {
		if !g.since.After(m.now.Add(-lag)) {
			c.Delivered.Generation = g.generation
		}
	}
	// The edited object itself may look as if it were whole: new replicas are counted later.
	if m.due && lag == 0 && (m.pending == 0 || m.rng.IntN(2) == 0) {
		unproven(&c)
	}
	return c
}

// TestGenerationsAtRandom: in any history, nothing is told unless somebody else has changed the object since the last report that proved
// something, or so late before it that the report may have been behind. And what was changed and put back between two reports of one order is
// told, if the first was not of what was just written.
func TestGenerationsAtRandom(t *testing.T) {
	tells := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := &member{rng: rng, now: began, generation: []at{{began, 1}}}
		var memory Memory
		var last struct {
			backends.ClusterObservation
			at, stable time.Time
			events     int
		}
		whole := last // the report before one that had risen by less than what is put back
		for range 60 {
			m.log = append(m.log, fmt.Sprintf("%s %s: generation %d of order %d", m.now.Format(time.TimeOnly), m.happens(), m.newest(), m.order))
			if rng.IntN(2) == 0 {
				continue
			}
			lag := time.Duration(0)
			if rng.IntN(4) == 0 {
				lag = time.Duration(rng.IntN(15)) * time.Second
			}
			c := m.reports(lag)
			var changes []Change
			var back []PutBack
			memory, changes, back = Look(memory, []backends.ClusterObservation{c}, true, m.now)
			if len(back) != len(changes) {
				t.Fatalf("seed %d: of %v it is told that %v:\n%s", seed, changes, back, strings.Join(m.log, "\n"))
			}
			if c.Delivered == nil {
				continue
			}
			m.log = append(m.log, fmt.Sprintf("  reported: %d, told: %v", c.Delivered.Generation, changes))
			same := last.Delivered != nil && last.Delivered.Order == c.Delivered.Order && last.UID == c.UID && last.Delivered.Generation <= c.Delivered.Generation
			since := last
			if same && whole.Delivered != nil && m.now.Sub(last.stable) < settle {
				since = whole
			}
			if len(changes) > 0 && (!same || m.foreign.Before(since.at.Add(-15*time.Second)) || m.foreign.IsZero()) {
				t.Fatalf("seed %d: nobody else has changed it:\n%s", seed, strings.Join(m.log, "\n"))
			}
			if lag == 0 && same && m.changed > since.events && m.now.Sub(since.stable) >= settle && len(changes) == 0 {
				t.Fatalf("seed %d: it is not told:\n%s", seed, strings.Join(m.log, "\n"))
			}
			switch rose := same && last.Delivered.Generation != c.Delivered.Generation; {
			case !same || len(changes) > 0:
				whole.Delivered = nil
			case rose && m.now.Sub(last.stable) >= settle:
				whole = last
			}
			if !same || last.Delivered.Generation != c.Delivered.Generation {
				last.stable = m.now
			}
			last.ClusterObservation, last.at, last.events = c, m.now, m.events
			tells += len(changes)
		}
	}
	if tells < 1000 {
		t.Errorf("only %d changes were told", tells)
	}
}

// TestConflictsAtRandom: in any history of an object that is applied again and again, also one that others have written before, somebody is
// named if and only if the agent had applied the very same order before; and each who was named is followed by one word that it is whole again, as
// soon as that is reported.
func TestConflictsAtRandom(t *testing.T) {
	tells := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var memory Memory
		var log []string
		generation, force, theirs := int64(1), false, true // what was adopted has other managers
		accepted, told := int64(0), int64(0)               // the newest order that the agent was seen to apply, and of which somebody was named
		changed := false
		open, since, now := false, began, began // whether somebody was named, since when, and it was not told to be whole again
		for range 60 {
			switch rng.IntN(5) {
			case 0:
				// An edit changes fields that others may have, too.
				generation, force = generation+1, false
				log = append(log, "an edit of ours")
			case 1:
				theirs, changed = true, true
				log = append(log, "somebody changes the object")
			default:
			}
			c := report(0, order(generation))
			switch {
			case force:
				theirs = false
				unproven(&c)
			case theirs && (accepted != generation || changed):
				c.Delivered.Others = `conflict with "kubectl-edit"`
			default:
				changed = false
			}
			if rng.IntN(4) == 0 {
				continue // nobody has looked at this report
			}
			var changes []Change
			var back []PutBack
			now = now.Add(time.Second)
			memory, changes, back = Look(memory, []backends.ClusterObservation{c}, true, now)
			lost := c.Delivered != nil && c.Delivered.Others != ""
			log = append(log, fmt.Sprintf("  order %d, lost: %v, told: %v, %v", generation, lost, changes, back))
			if whole := c.Delivered != nil && !lost; (len(back) == 1) != (open && whole) || len(back) == 1 && back[0].After != now.Sub(since) {
				t.Fatalf("seed %d: open is %v since %v, and it is now %v: %s", seed, open, since, now, strings.Join(log, "\n"))
			}
			if open = open && len(back) == 0; len(changes) > 0 {
				if open {
					t.Fatalf("seed %d: it is told twice of one change: %s", seed, strings.Join(log, "\n"))
				}
				open, since = true, now
			}
			expected := lost && accepted == generation && told != generation
			if expected != (len(changes) > 0) || expected && !changed {
				t.Fatalf("seed %d: %s", seed, strings.Join(log, "\n"))
			}
			if expected {
				told, tells = generation, tells+1
			}
			switch {
			case lost && rng.IntN(2) == 0:
				// It was put back a moment ago, so that it is not again: a contest goes on slowly.
			case lost:
				generation, force = generation+1, true
			case force:
				generation, force, changed = generation+1, false, false
			default:
				accepted = generation
			}
		}
	}
	if tells < 1000 {
		t.Errorf("only %d changes were told", tells)
	}
}
