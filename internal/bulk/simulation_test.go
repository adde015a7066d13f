package bulk

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// A world of FleetWorkloads, an operator that takes them on at its own pace, people, and a migration of all that is told late of what
// happens, leaves some of it out, and is killed and begun again. The oracle goes by what the world says of each in one word.

// mark is that word.
type mark string

const (
	rests    mark = "rests"    // it may begin
	hindered mark = "hindered" // it may not
	goes     mark = "goes"     // it is under way
	sticks   mark = "sticks"   // it is stalled, since the world's clock says
	waits    mark = "waits"    // for a person
	returns  mark = "returns"  // it has failed and goes back
	broken   mark = "broken"   // it has failed
	arrived  mark = "arrived"
	lost     mark = "lost" // deleted
)

// thing is one FleetWorkload as it is now; seen is how the migration was told of it last.
type thing struct {
	fate       string
	step       int
	mark, seen mark
	since      time.Time
	seenSince  time.Time
	fw         *v1alpha1.FleetWorkload
	started    int
}

// fates are what becomes of a FleetWorkload, step after step, from when its spec asks for the backend.
var fates = map[string][]mark{
	"easy":    {goes, goes, arrived},
	"manual":  {goes, waits, goes, waits, goes, arrived},
	"fails":   {goes, returns, broken},
	"retried": {goes, returns, broken, goes, arrived},
	"never":   {goes, sticks},
	"mended":  {goes, sticks, goes, arrived},
	"deleted": {goes, lost},
	"turned":  {goes, returns, broken},
	"undone":  {broken},
	"refused": {broken},
}

// byHand are the fates in which a person has to act before it goes on from there; otherwise it may stay so.
func (w *thing) byHand() bool { return w.mark == waits || w.mark == broken || w.mark == sticks }

type world struct {
	*rand.Rand
	things []*thing
	now    time.Time
	rules  Rules
	m      *Migration
	// stopped is whether the oracle has seen too many failures since the migration was begun, the last time.
	stopped bool
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), now: noon}
	w.rules = Rules{To: "ocm", AtOnce: 1 + w.IntN(4), MaxFailures: w.IntN(4), Patience: time.Minute}
	names := []string{"easy", "easy", "easy", "manual", "fails", "retried", "never", "mended", "deleted", "turned", "undone", "refused"}
	for i := range 1 + w.IntN(12) {
		t := &thing{fate: names[w.IntN(len(names))], mark: rests, step: -1}
		t.fw = at(fmt.Sprintf("w%02d", i))
		switch w.IntN(8) {
		case 0:
			t.mark, t.fw = hindered, at(t.fw.Name, frozen)
		case 1:
			t.mark, t.fw = arrived, at(t.fw.Name, onOCM)
		}
		w.things = append(w.things, t)
	}
	return w
}

// become puts a thing into the next step of its fate.
func (w *world) become(t *thing, m mark) {
	t.mark, t.since = m, w.now
	name := t.fw.Name
	verifying := moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)
	turnedBack := t.fate == "turned" || t.fate == "undone"
	switch {
	case m == rests:
		t.fw = at(name)
	case m == goes && t.step == 0:
		t.fw = at(name, asked, notLooked)
	case m == goes:
		t.fw = at(name, asked, verifying)
	case m == sticks:
		t.fw = at(name, asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseValidating), stalls(v1alpha1.ReasonMigrationNotPossible, w.now))
	case m == waits:
		t.fw = at(name, asked, verifying, asks)
	case m == returns && turnedBack:
		t.fw = at(name, moves("karmada", "ocm", v1alpha1.MigrationPhaseRollingBack))
	case m == returns:
		t.fw = at(name, asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRollingBack), fails)
	case m == broken && t.fate == "turned":
		t.fw = at(name, ended("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack))
	case m == broken && t.fate == "undone":
		t.fw = at(name)
	case m == broken:
		t.fw = at(name, asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack), fails, asks)
	case m == arrived:
		t.fw = at(name, onOCM, ended("karmada", "ocm", v1alpha1.MigrationPhaseCompleted))
	}
}

// advance lets the operator, or a person, take one FleetWorkload further.
func (w *world) advance() {
	t := w.things[w.IntN(len(w.things))]
	if t.mark == hindered && w.IntN(4) == 0 {
		w.become(t, rests)
	}
	fate := fates[t.fate]
	if t.step < 0 || t.step+1 >= len(fate) || t.fate == "refused" || t.byHand() && w.IntN(4) > 0 {
		return
	}
	t.step++
	w.become(t, fate[t.step])
}

// tell delivers how a FleetWorkload is now. What was between is left out.
func (w *world) tell(t *thing) {
	if t.seen == t.mark && t.seenSince.Equal(t.since) && w.IntN(2) == 0 {
		return
	}
	t.seen, t.seenSince = t.mark, t.since
	if t.mark == lost {
		w.m.Gone(keyOf(t.fw), w.now)
		return
	}
	w.m.See(t.fw, w.now)
}

// begin begins the migration, or begins it again.
func (w *world) begin() {
	var chosen []*v1alpha1.FleetWorkload
	for _, t := range w.things {
		if t.mark == lost {
			t.seen = lost
			continue
		}
		switch {
		case t.fate == "turned" && (t.mark == returns || t.mark == broken): // that was before
			t.mark, t.fate, t.step, t.started = hindered, "easy", -1, 0
		case t.mark == broken && (t.fate == "undone" || t.fate == "refused"): // nothing is known of it any more
			t.mark, t.step, t.started = rests, -1, 0
		}
		t.seen, t.seenSince = t.mark, t.since
		chosen = append(chosen, t.fw)
	}
	w.stopped = false
	w.m = New(w.rules, chosen, w.now)
}

// believed counts what the migration was told of.
func (w *world) believed() (busy, failed, rest int) {
	for _, t := range w.things {
		switch late := t.seen == sticks && w.now.Sub(t.seenSince) >= w.rules.Patience; {
		case late, t.seen == broken:
			failed++
		case t.seen == returns:
			failed++
			busy++
		case t.seen == goes, t.seen == sticks:
			busy++
		case t.seen == rests:
			rest++
		}
	}
	return busy, failed, rest
}

// act does what the migration says, and holds it against the oracle.
func (w *world) act(t *testing.T) (over bool) {
	t.Helper()
	for {
		step := w.m.Next(w.now)
		busy, failed, rest := w.believed()
		w.stopped = w.stopped || failed > w.rules.MaxFailures
		c := w.m.Counts()
		switch {
		case c.Busy() != busy || c.Failed != failed || c.ToGo != rest || c.Chosen != c.Moved+c.AlreadyThere+c.UnderWay+c.Waiting+c.Failed+c.ToGo+c.Skipped+c.Deleted:
			t.Fatalf("%d are busy, %d failed, %d to go, and it counts %+v", busy, failed, rest, c)
		case w.m.Stopped() != w.stopped:
			t.Fatalf("it has stopped: %v, and %d of %d have failed", w.m.Stopped(), failed, w.rules.MaxFailures)
		case step.Over != (busy == 0 && (rest == 0 || w.stopped)):
			t.Fatalf("it is over: %v, and %d are busy, %d to go", step.Over, busy, rest)
		case (step.Start != nil) != (busy < w.rules.AtOnce && rest > 0 && !w.stopped):
			t.Fatalf("one begins: %v, and %d of %d are busy, %d to go, stopped %v", step.Start != nil, busy, w.rules.AtOnce, rest, w.stopped)
		case step.Start == nil:
			return step.Over
		}
		w.set(t, step.Start)
	}
}

// set sets spec.backend of one that is to begin.
func (w *world) set(t *testing.T, fw *v1alpha1.FleetWorkload) {
	t.Helper()
	for _, one := range w.things {
		if one.fw.Name != fw.Name {
			if one.seen == rests {
				t.Fatalf("%s begins before %s", fw.Name, one.fw.Name)
			}
			continue
		}
		if one.started++; one.seen != rests || one.started > 1 {
			t.Fatalf("%s begins, which %s, for the %dth time", fw.Name, one.seen, one.started)
		}
		one.step = 0
		if one.fate == "refused" {
			one.mark, one.seen = broken, broken
			w.m.Refuse(keyOf(fw), "forbidden", w.now)
			return
		}
		w.become(one, goes)
		one.seen, one.seenSince = one.mark, one.since
		w.m.See(one.fw, w.now)
		if one.fate == "undone" { // at once, and it is told later
			w.become(one, broken)
		}
		return
	}
}

func TestSimulation(t *testing.T) {
	worlds := uint64(5000)
	if testing.Short() {
		worlds = 500
	}
	outcomes := map[Outcome]int{}
	for seed := range worlds {
		w := newWorld(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			restarts := w.IntN(3)
			w.begin()
			for turn := 0; !w.act(t); turn++ {
				if turn > 20_000 {
					t.Fatalf("it never ends: %+v", w.m.Counts())
				}
				switch n := w.IntN(10); {
				case n < 4:
					w.advance()
				case n < 8:
					w.tell(w.things[w.IntN(len(w.things))])
				case n < 9:
					w.now = w.now.Add(time.Duration(w.IntN(20)) * time.Second)
				case restarts > 0 && w.IntN(5) == 0:
					restarts--
					w.begin()
				}
			}
			outcomes[w.m.Outcome()]++
			w.judge(t)
		})
	}
	if len(outcomes) != 3 {
		t.Errorf("the worlds are too much alike: %v", outcomes)
	}
}

// judge wants everybody moved who can be, unless too many have failed; and that whoever begins again goes on from there.
func (w *world) judge(t *testing.T) {
	t.Helper()
	for _, one := range w.things {
		if easy := one.fate == "easy" && one.mark != hindered && one.seen != hindered; easy && !w.stopped && one.mark != arrived {
			t.Errorf("%s is left behind: it %s", one.fw.Name, one.mark)
		}
	}
	w.begin()
	w.act(t)
}
