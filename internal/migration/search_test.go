package migration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// The search goes through every state that two clusters, two simulated backends and an operator can reach, with what may
// happen to them at every point, and holds each state against the laws.

const (
	clusters = 2
	source   = 0
	target   = 1
)

var (
	now     = time.Unix(1_000_000, 0).UTC()
	names   = [clusters]string{"m1", "m2"}
	timeout = 10 * time.Minute
	soak    = time.Minute
)

// object is what a backend has for a cluster, and what its agent there has seen of it.
type object struct {
	present bool
	// owns is true when it writes the member object; version is the manifest it holds.
	owns    bool
	version int8
	// leaving is true of an object that is being removed; its agent has to let it go.
	leaving bool
	// agentOwns and agentVersion are what the agent acts by: it may act at any time by what it saw last.
	agentOwns    bool
	agentVersion int8
}

// member is the object on a cluster.
type member struct {
	version int8
	// marks tell whose it is.
	marks [2]bool
	sick  bool
}

// world is a state of everything. It is comparable.
type world struct {
	backends [2][clusters]object
	down     [2]bool
	// left are the clusters that a backend does not list; of those that are dead its agent does nothing more.
	left, dead [2][clusters]bool
	// lost are the clusters that have left at some time: what a backend had for them is gone, and an ordinary pass makes it anew.
	lost    [clusters]bool
	members [clusters]member
	// wanted is the newest manifest: scaling makes a new one.
	wanted int8
	// record is the status as stored; stale is what it was before, which a cache may still hold.
	record, stale record
	forward       bool
	ended         bool
	// What may still happen, so that the search ends.
	turns, scalings, faults, delays, departures, deaths, joins int8
}

// lets tells whether a pass that is not cut off leaves every cluster one owner, also while the other side is removed there.
func (w world) lets() bool {
	states := w.passes(w.record)
	if len(states) == 0 || w.down != [2]bool{} {
		return true
	}
	last := states[len(states)-1]
	for i := range clusters {
		a, b := last.backends[source][i], last.backends[target][i]
		if w.lost[i] {
			continue // one of them cannot own it, and may have to let go all the same
		}
		if a.leaving && !b.owns || b.leaving && !a.owns {
			return false
		}
	}
	return true
}

// record stands for a status: equal ones have the same number.
type record int

// records are the statuses that were met.
type records struct {
	all     []v1alpha1.MigrationStatus
	numbers map[string]record
}

func (r *records) number(status v1alpha1.MigrationStatus) record {
	raw, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	n, known := r.numbers[string(raw)]
	if !known {
		n = record(len(r.all))
		r.numbers[string(raw)], r.all = n, append(r.all, status)
	}
	return n
}

var met = &records{numbers: map[string]record{}}

func (n record) status() v1alpha1.MigrationStatus { return met.all[n] }

// usual is what may happen to a migration whose clusters stay and whose agents live.
var usual = world{turns: 2, scalings: 1, faults: 1, delays: 1}

// start is where a migration begins, with what may happen on the way.
func start(may world) world {
	w := may
	w.forward = true
	rec := v1alpha1.MigrationStatus{From: "a", To: "b", Phase: v1alpha1.MigrationPhaseValidating}
	for i := range clusters - int(w.joins) {
		w.backends[source][i] = object{present: true, owns: true, agentOwns: true}
		w.members[i].marks[source] = true
		wave := int32(i) + 1
		rec.Clusters = append(rec.Clusters, v1alpha1.MigrationClusterStatus{Name: names[i], Wave: &wave})
	}
	w.record = met.number(rec)
	w.stale = w.record
	return w
}

// report is what a backend says: only what its agent has confirmed counts.
func (w world) report(side, i int) Report {
	o, m := w.backends[side][i], w.members[i]
	ready, health := int32(3), v1alpha1.HealthHealthy
	if m.sick {
		health = v1alpha1.HealthDegraded
	}
	if w.left[side][i] {
		return Report{Presence: backends.PresenceUnknown}
	}
	return Report{
		Presence: presence(o),
		Rendered: o.present && o.version == w.wanted,
		Current:  o.present && o.owns && o.agentOwns && o.agentVersion == o.version && m.version == o.version,
		Evidence: v1alpha1.MigrationEvidence{UID: names[i], Ready: &ready, Health: health},
	}
}

var waves = []Wave{{Soak: soak}, {}}

func (w world) input() Input {
	in := Input{
		Now: now, Forward: w.forward, Timeout: timeout, Waves: waves, Clusters: map[string]Pair{},
		SourceGone: true, TargetGone: true,
	}
	if w.down[source] || w.down[target] {
		in.Unavailable = "a backend"
	}
	for i, name := range names {
		in.Clusters[name] = Pair{Source: w.report(source, i), Target: w.report(target, i)}
		in.SourceGone = in.SourceGone && !w.backends[source][i].present
		in.TargetGone = in.TargetGone && !w.backends[target][i].present
	}
	return in
}

// outcome is what was decided in a world.
type outcome struct {
	record record
	orders Orders
}

var decided = map[world]outcome{}

// decide asks the state machine, once for all worlds that look the same to it.
func (w world) decide(rec record) (record, Orders) {
	seen := w
	seen.record, seen.stale, seen.ended = rec, 0, false
	seen.dead, seen.lost = [2][clusters]bool{}, [clusters]bool{}
	seen.turns, seen.scalings, seen.faults, seen.delays, seen.departures, seen.deaths, seen.joins = 0, 0, 0, 0, 0, 0, 0
	o, known := decided[seen]
	if !known {
		status, orders := Decide(rec.status(), w.input())
		o = outcome{met.number(status), orders}
		decided[seen] = o
	}
	return o.record, o.orders
}

// passes are the worlds after a pass of the operator that was cut off after none, one, ... of its writes.
func (w world) passes(rec record) []world {
	if w.ended {
		return nil
	}
	after, orders := w.decide(rec)
	states := []world{}
	if after != rec {
		if rec != w.record {
			return nil // the write conflicts, and the pass ends
		}
		w.stale, w.record = w.record, after
		states = append(states, w)
	}
	if orders.Ended {
		if len(states) > 0 {
			states[0].ended = true
		}
		return states
	}
	for _, side := range []int{source, target} {
		act := orders.Source
		if side == target {
			act = orders.Target
		}
		for range 2 { // a release takes two writes a cluster
			for i, name := range names {
				modes, moves := orders.Clusters[name]
				mode := modes.Source
				if side == target {
					mode = modes.Target
				}
				if !moves {
					continue
				}
				if next := w.write(side, i, act, mode); next != w {
					w = next
					states = append(states, w)
				}
			}
			if act != ActRelease {
				break
			}
		}
	}
	return states
}

// write is the one write that a driver makes for a cluster, if any.
func (w world) write(side, i int, act Act, mode backends.Mode) world {
	o := &w.backends[side][i]
	if w.left[side][i] {
		return w
	}
	switch act {
	case ActNothing:
	case ActApply:
		if o.leaving {
			break // it comes again once it has gone
		}
		o.present, o.owns, o.version = true, mode != backends.ModeObserve, w.wanted
	case ActRelease:
		switch {
		case !o.present:
		case o.owns:
			o.owns = false
		case !o.agentOwns:
			o.leaving = true
		}
	}
	return w
}

// agent is the world after a backend's agent has looked at its object, and has acted.
func (w world) agent(side, i int) world {
	o := &w.backends[side][i]
	switch {
	case !o.present, w.dead[side][i]:
		return w
	case o.leaving:
		*o = object{}
		w.members[i].marks[side] = false
		return w
	}
	o.agentOwns, o.agentVersion = o.owns, o.version
	if o.owns {
		w.members[i].version, w.members[i].marks[side] = o.version, true
	}
	return w
}

// without is the world in which a backend does not list a cluster any more. What it had for it goes.
func (w world) without(side, i int) world {
	w.left[side][i], w.lost[i], w.dead[side][i], w.backends[side][i] = true, true, false, object{}
	return w
}

// leaves are the ways in which clusters leave.
func (w world) leaves() (all []step) {
	for i, name := range names {
		all = append(all,
			step{name + " leaves the source", w.without(source, i)}, step{name + " leaves the target", w.without(target, i)},
			step{name + " leaves both", w.without(source, i).without(target, i)})
	}
	return all
}

// dies are the ways in which agents end.
func (w world) dies() (all []step) {
	for i, name := range names {
		for side, of := range []string{source: "source", target: "target"} {
			to := w
			to.dead[side][i] = true
			all = append(all, step{"the " + of + "'s agent on " + name + " is gone", to})
		}
	}
	return all
}

// joined is the world in which the last cluster gets its first replicas: it joins the migration.
func (w world) joined() world {
	w.joins--
	w.stale, w.record = w.record, met.number(Join(w.record.status(), []v1alpha1.MigrationClusterStatus{{Name: names[clusters-1]}}, waves))
	return w
}

// later is the world after the times in the record have run out.
func (w world) later(since func(*v1alpha1.MigrationStatus) **metav1.Time, by time.Duration) world {
	rec := w.record.status()
	if t := since(&rec); *t != nil && now.Sub((*t).Time) < by {
		*t = at(now.Add(-by))
		w.record = met.number(rec)
	}
	return w
}

func (w world) soaked() world {
	return w.later(func(r *v1alpha1.MigrationStatus) **metav1.Time { return &r.PassingSince }, soak)
}

func (w world) late() world {
	return w.later(func(r *v1alpha1.MigrationStatus) **metav1.Time { return &r.WaveStartedAt }, timeout)
}

// muchLater is the world after all times in the record have run out, those of what is waited for during a soak too.
func (w world) muchLater() world {
	return w.late().later(func(r *v1alpha1.MigrationStatus) **metav1.Time { return &r.PassingSince }, soak+timeout)
}

// step is a named way from one world to another.
type step struct {
	name string
	to   world
}

// steps are what can happen next.
func (w world) steps() []step {
	var all []step
	add := func(to world, format string, args ...any) {
		if to != w {
			all = append(all, step{fmt.Sprintf(format, args...), to})
		}
	}
	for n, to := range w.passes(w.record) {
		add(to, "pass, cut off after write %d", n+1)
	}
	for n, to := range w.passes(w.stale) {
		add(to, "pass by the record from before, cut off after write %d", n+1)
	}
	for i := range clusters {
		add(w.agent(source, i), "the source's agent on %s", names[i])
		add(w.agent(target, i), "the target's agent on %s", names[i])
	}
	add(w.soaked(), "the soak is over")
	for _, may := range []struct {
		left func(*world) *int8
		name string
		do   func(*world)
	}{
		{func(w *world) *int8 { return &w.turns }, "spec.backend changes", func(w *world) { w.forward = !w.forward }},
		{func(w *world) *int8 { return &w.scalings }, "the workload is scaled", func(w *world) { w.wanted++ }},
		{func(w *world) *int8 { return &w.delays }, "the wave's time is up", func(w *world) { *w = w.late() }},
		{func(w *world) *int8 { return &w.faults }, "m1 falls sick", func(w *world) { w.members[0].sick = true }},
		{func(w *world) *int8 { return &w.faults }, "the source goes down", func(w *world) { w.down[source] = true }},
		{func(w *world) *int8 { return &w.faults }, "the target goes down", func(w *world) { w.down[target] = true }},
	} {
		if to := w; !w.ended && *may.left(&to) > 0 {
			*may.left(&to)--
			may.do(&to)
			add(to, "%s", may.name)
		}
	}
	if phase := w.record.status().Phase; !w.ended && w.joins > 0 && w.down == [2]bool{} && phase != v1alpha1.MigrationPhaseValidating {
		add(w.joined(), "m2 joins")
	}
	if to := w; !w.ended && w.departures > 0 {
		to.departures--
		all = append(all, to.leaves()...)
	}
	if to := w; !w.ended && w.deaths > 0 {
		to.deaths--
		all = append(all, to.dies()...)
	}
	healed := w
	healed.down = [2]bool{}
	add(healed, "the backends are up")
	back := w
	back.left, back.dead = [2][clusters]bool{}, [2][clusters]bool{}
	add(back, "all clusters and agents are back")
	return all
}

// wrong is the law that a step breaks, if any.
func wrong(from, to world) string {
	for i, name := range names {
		a, b := to.backends[source][i], to.backends[target][i]
		if a.agentOwns && b.agentOwns && a.agentVersion != b.agentVersion {
			return name + ": two writers differ"
		}
		if a.owns && b.owns {
			return name + ": two owners"
		}
		for side := range 2 {
			if was := from.backends[side][i]; was.present && was.agentOwns && !to.backends[side][i].present && !to.left[side][i] {
				return name + ": an object that still owns was removed, and the member object with it"
			}
		}
		if to.members[i].version < from.members[i].version {
			return name + ": went back to an older manifest"
		}
	}
	if to.ended && !from.ended {
		owner, other := source, target
		if h := to.record.status().History; len(h) > 0 && h[0].Phase == v1alpha1.MigrationPhaseCompleted {
			owner, other = target, source
		}
		for i, name := range names {
			if to.lost[i] || i >= clusters-int(to.joins) {
				continue
			}
			if to.backends[other][i].present || to.members[i].marks[other] {
				return name + ": something of the old owner is left"
			}
			if !to.backends[owner][i].owns || !to.members[i].marks[owner] {
				return name + ": has no owner at the end"
			}
		}
	}
	return ""
}

func TestSearch(t *testing.T) {
	search(t, start(usual),
		string(v1alpha1.MigrationPhaseCompleted), string(v1alpha1.MigrationPhaseRolledBack), waiting)
}

// TestSearchWithClustersThatLeave: one leaves the source, the target or both at any point, and may be back at any later one.
func TestSearchWithClustersThatLeave(t *testing.T) {
	search(t, start(world{turns: 1, delays: 1, departures: 1}),
		string(v1alpha1.MigrationPhaseCompleted), string(v1alpha1.MigrationPhaseRolledBack), waiting, overdue)
}

// TestSearchWithRemovalsThatHang: an agent is gone from some point on, so that nobody confirms what it should have done.
func TestSearchWithRemovalsThatHang(t *testing.T) {
	search(t, start(world{turns: 1, scalings: 1, delays: 1, deaths: 1}),
		string(v1alpha1.MigrationPhaseCompleted), string(v1alpha1.MigrationPhaseRolledBack), waiting, hanging)
}

// TestSearchWithAClusterThatJoins at any point, whatever else happens.
func TestSearchWithAClusterThatJoins(t *testing.T) {
	for _, may := range []world{{turns: 2, scalings: 1, delays: 1, joins: 1}, {turns: 1, faults: 1, joins: 1}, {turns: 1, delays: 1, departures: 1, joins: 1}} {
		search(t, start(may), string(v1alpha1.MigrationPhaseCompleted), string(v1alpha1.MigrationPhaseRolledBack))
	}
}

// search goes through all states from the first one on, and wants some to end in each of these ways.
func search(t *testing.T, first world, wanted ...string) {
	t.Helper()
	type origin struct {
		from world
		name string
	}
	came := map[world]origin{first: {}}
	path := func(w world) string {
		var steps []string
		for w != first {
			steps = append(steps, came[w].name)
			w = came[w].from
		}
		slices.Reverse(steps)
		return strings.Join(steps, "\n  ")
	}
	queue := []world{first}
	ends := map[string]int{}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if !w.lets() {
			t.Fatalf("nobody owns a cluster while one side is removed there, after\n  %s\n%+v", path(w), w)
		}
		for _, s := range w.steps() {
			if why := wrong(w, s.to); why != "" {
				t.Fatalf("%s, after\n  %s\n  %s\n%+v", why, path(w), s.name, s.to)
			}
			if _, known := came[s.to]; !known {
				came[s.to] = origin{w, s.name}
				queue = append(queue, s.to)
			}
		}
	}
	outcomes := map[world]string{}
	for w := range came {
		end := w.settled(outcomes)
		if end == endless {
			t.Fatalf("without faults it does not end, after\n  %s\n%+v", path(w), w)
		}
		if end == unowned {
			t.Fatalf("it waits for an agent that is gone, and who has the clusters does not repair them, after\n  %s\n%+v", path(w), w)
		}
		ends[end]++
	}
	t.Logf("%d states; without further faults they end in %v", len(came), ends)
	for _, end := range wanted {
		if ends[end] == 0 {
			t.Errorf("none ends in %s", end)
		}
	}
}

// How a migration may stand when nothing more happens, besides the phases in which it ends.
const (
	endless = "endless"
	// waiting is for a person, after a wave has gone back.
	waiting = "waiting"
	unbegun = "unbegun"
	// hanging is for an agent that is gone, while the clusters that have changed hands have an owner that repairs them; unowned is without.
	hanging = "hanging"
	// overdue is for a cluster that is not there before the first wave.
	overdue = "overdue"
	unowned = "unowned"
)

// settled is where it ends when there are no more faults and everybody does their work.
func (w world) settled(known map[world]string) string {
	w.down, w.turns, w.scalings, w.faults, w.delays, w.departures, w.deaths = [2]bool{}, 0, 0, 0, 0, 0, 0
	for i := range w.members {
		w.members[i].sick = false
	}
	var way []world
	end := endless
	for range 100 {
		if e, is := known[w]; is {
			end = e
			break
		}
		way = append(way, w)
		if end = w.end(); end != endless {
			break
		}
		if states := w.passes(w.record); len(states) > 0 {
			w = states[len(states)-1]
		}
		for i := range clusters {
			w = w.agent(source, i).agent(target, i)
		}
		w = w.soaked()
	}
	switch late := w.muchLater(); {
	case end != endless:
	case w.dead != [2][clusters]bool{}:
		end = w.hangs()
	case w.left == [2][clusters]bool{}:
	case late != w:
		end = late.settled(known)
	default:
		if _, orders := w.decide(w.record); orders.Overdue != "" {
			end = overdue
		}
	}
	for _, w := range way {
		known[w] = end
	}
	return end
}

// hangs tells how it stands while an agent is gone.
func (w world) hangs() string {
	for i, c := range w.record.status().Clusters {
		o := w.backends[target][i]
		if c.Phase == v1alpha1.MigrationPhaseReleasing && !w.dead[target][i] && (!o.agentOwns || o.agentVersion != w.wanted) {
			return unowned
		}
	}
	return hanging
}

func (w world) end() string {
	rec := w.record.status()
	switch {
	case w.ended && len(rec.History) == 0:
		return unbegun
	case w.ended:
		return string(rec.History[0].Phase)
	case w.forward && rec.Phase == v1alpha1.MigrationPhaseRolledBack:
		return waiting
	}
	return endless
}

func presence(o object) backends.Presence {
	if !o.present {
		return backends.PresenceAbsent
	}
	return backends.PresenceOf(o.leaving, !o.owns && !o.agentOwns)
}
