package histories

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// errCut is a write that did not take place.
var errCut = errors.New("cut off")

// mode is what a backend may do to a member object.
type mode string

const (
	owns     mode = "own"
	adopts   mode = "adopt"
	observes mode = "observe"
	probes   mode = "probe"
)

func (m mode) writes() bool { return m == owns || m == adopts }

// orderSpec is what a backend is to do on one cluster.
type orderSpec struct {
	uid         string
	mode        mode
	hold        bool
	gate        bool
	takes       bool // conflictPolicy Adopt
	has         bool // there is a manifest
	clean       bool // the marks of others are to go
	wasReleased bool // it was released when it was taken away
	content     content
	revision    string
	// removal is a deletion policy once it is to go; with an heir the marks of what was observed stay.
	removal string
	heir    bool
}

// order is a Work, or a ManifestWork.
type order struct {
	orderSpec
	generation int
	// by is the pass that asked for it last.
	by *passInfo
	// pulled is what the agent has of it.
	pulled     orderSpec
	pulledGen  int
	pulledBy   *passInfo
	status     agentReport
	onTheWay   agentReport
	reportable bool
}

// agentReport is what an agent has said.
type agentReport struct {
	generation                 int
	applied, conflict, removed bool
	present                    bool
	member                     memberReport
}

// where is the place of an order.
type where struct{ slot, cluster string }

// place is what chooses clusters for a workload. The gated backend has the whole of what is wanted there.
type place struct {
	uid       string
	selectors []v1alpha1.ClusterSelector
	// decided is the choice, half is a choice that is half written.
	observed bool
	decided  []string
	settled  bool

	// suspended is asked for, taken once it has come through; it is lost when it never will.
	suspended, taken, lost bool
	since                  time.Time
	want                   map[string]wanted
	deleting               bool
	// by is the pass that has written it last.
	by *passInfo
}

// wanted is what one cluster is to run on the gated backend.
type wanted struct {
	orderSpec
	by *passInfo
}

// backend is one of the two.
type backend struct {
	w      *world
	name   string
	gated  bool
	down   bool
	facts  map[string]facts
	orders map[where]*order
	places map[string]*place

	// cache is what the operator has of it.
	cache   snapshot
	touched map[string]bool
}

type snapshot struct {
	facts  map[string]facts
	orders map[where]*order
	places map[string]*place
}

func newBackend(w *world, name string) *backend {
	b := &backend{
		w: w, name: name, gated: name == gated, facts: map[string]facts{}, orders: map[where]*order{}, places: map[string]*place{}, touched: map[string]bool{},
	}
	for _, c := range w.names {
		b.facts[c] = b.w.truth(b, c)
	}
	b.refresh()
	return b
}

func (b *backend) snapshot() snapshot {
	s := snapshot{facts: maps.Clone(b.facts), orders: make(map[where]*order, len(b.orders)), places: make(map[string]*place, len(b.places))}
	for at, o := range b.orders {
		s.orders[at] = ptr(*o)
	}
	for name, p := range b.places {
		c := *p
		s.places[name] = &c
	}
	return s
}

// refresh brings the operator's cache up to date, and wakes it up.
func (b *backend) refresh() {
	if b.cache.facts != nil && len(b.touched) == 0 {
		return
	}
	if b.cache.facts == nil || !b.w.fault("an old observation for ever") || b.w.now.Before(beginning().Add(time.Minute)) {
		b.cache = b.snapshot()
	}
	for _, s := range b.w.slots {
		if b.touched[s.name] || b.touched["*"] {
			s.dirty = true
		}
	}
	clear(b.touched)
}

// write counts a write of the operator; it does not take place when that is cut off.
func (b *backend) write(slot string) error {
	if err := b.w.spend(); err != nil {
		return err
	}
	b.touched[slot] = true
	b.w.tell("    writes on %s", b.name)
	return nil
}

// at lists the clusters where there is an order of a workload.
func at(orders map[where]*order, slot string) []string {
	var names []string
	for w := range orders {
		if w.slot == slot {
			names = append(names, w.cluster)
		}
	}
	slices.Sort(names)
	return names
}

// put makes one order what it is to be.
func (b *backend) put(at where, next orderSpec, by *passInfo) error {
	o := b.orders[at]
	if o != nil && o.orderSpec == next {
		return nil
	}
	if err := b.write(at.slot); err != nil {
		return err
	}
	b.set(at, next, by)
	return nil
}

func (b *backend) set(at where, next orderSpec, by *passInfo) {
	o := b.orders[at]
	if o == nil {
		o = &order{}
		b.orders[at] = o
	}
	o.orderSpec, o.by = next, by
	o.generation++
	b.touched[at.slot] = true
	b.w.tell("    %s %s on %s: %s %s%s%s%s", b.name, at.slot, at.cluster, next.mode, next.content, flag(next.hold, " held"),
		flag(next.gate, " gated"), flag(next.removal != "", " removal "+next.removal))
	b.w.oracle.writers(at.slot, at.cluster)
}

func flag(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// taken is why a name cannot be used: an earlier FleetWorkload of the name has something there still.
func (b *backend) takenBy(slot, uid string) bool {
	if p := b.places[slot]; p != nil && p.uid != uid {
		return true
	}
	for at, o := range b.orders {
		if at.slot == slot && o.uid != uid {
			return true
		}
	}
	return false
}

// apply takes the next step towards what is wanted. It says what it waits for.
func (b *backend) apply(slot string, wish wish, by *passInfo) (waiting string, err error) {
	if err := b.applyPlace(slot, wish); err != nil {
		return "", err
	}
	if len(wish.targets) == 0 {
		return "", nil
	}
	if b.w.fault("write at each pass") {
		if err := b.write(slot); err != nil {
			return "", err
		}
	}
	if b.gated {
		return b.applyGated(slot, wish, by)
	}
	return b.applyPlain(slot, wish, by)
}

func (b *backend) applyPlace(slot string, wish wish) error {
	p := b.places[slot]
	if p != nil && !p.deleting && reflect.DeepEqual(p.selectors, wish.selectors) {
		return nil
	}
	if err := b.write(slot); err != nil {
		return err
	}
	if p == nil {
		p = &place{uid: wish.uid}
		b.places[slot] = p
	}
	p.selectors, p.observed, p.settled, p.deleting = wish.selectors, false, false, false
	return nil
}

// specOf is an order for a target, given the one that is there.
func (b *backend) specOf(wish wish, t target, live *orderSpec) orderSpec {
	next := orderSpec{
		uid: wish.uid, mode: t.mode, hold: t.hold, takes: wish.takes, has: true, clean: wish.alone, content: t.content, revision: wish.revision,
	}
	if live != nil && live.clean && next.mode == adopts {
		next.clean = true // nothing is done twice
	}
	if t.hold && live != nil {
		next.mode = live.mode // whose it is stays as it was
	}
	if t.hold && !b.gated { // it keeps the manifest that it has
		next.has, next.content, next.revision = false, content{}, ""
		if live != nil {
			next.has, next.content, next.revision = live.has, live.content, live.revision
		}
	}
	return next
}

func (b *backend) applyPlain(slot string, wish wish, by *passInfo) (string, error) {
	listed, going := map[string]bool{}, ""
	for _, t := range wish.targets {
		listed[t.cluster] = true
		at := where{slot, t.cluster}
		var live *orderSpec
		if o := b.orders[at]; o != nil {
			live = &o.orderSpec
			if o.removal != "" { // what is being deleted cannot be kept
				listed[t.cluster], going = false, "what is on its way out to be gone"
				wish.removed[t.cluster] = true // what has begun goes on
				continue
			}
		}
		if err := b.put(at, b.specOf(wish, t, live), by); err != nil {
			return "", err
		}
	}
	everyOther := b.w.fault("remove what is not listed")
	deletes := deletion{uid: wish.uid, policy: string(v1alpha1.DeletionPolicyDelete)}
	waiting, err := b.withdraw(slot, deletes, by, func(c string) bool {
		return listed[c] || !everyOther && !wish.removed[c]
	})
	return orElse(waiting, going), err
}

// withdraw takes orders off their clusters, then off the backend.
func (b *backend) withdraw(slot string, d deletion, by *passInfo, keep func(cluster string) bool) (waiting string, err error) {
	for _, c := range at(b.orders, slot) {
		o := b.orders[where{slot, c}]
		if keep(c) || o.uid != d.uid {
			continue
		}
		if o.removal == d.policy && o.status.generation == o.generation && o.status.removed {
			if err := b.write(slot); err != nil {
				return "", err
			}
			delete(b.orders, where{slot, c})
			continue
		}
		next := o.orderSpec
		next.wasReleased, next.removal = o.released() && !d.alone, d.policy
		next.heir = d.heir && !next.mode.writes()
		if d.alone {
			next.mode = owns
		}
		if err := b.put(where{slot, c}, next, by); err != nil {
			return "", err
		}
		waiting = "clusters to give the workload up"
	}
	return waiting, nil
}

// released tells whether the order is confirmed to be no danger to another owner.
func (o *order) released() bool {
	return o.wasReleased || o.status.generation == o.generation && o.mode == observes && o.removal == ""
}

func (b *backend) applyGated(slot string, wish wish, by *passInfo) (string, error) {
	p := b.places[slot]
	next, changed := b.wantedBy(p, wish, by)
	switch {
	case !changed:
		return b.lift(slot, p)
	case p.want == nil && len(at(b.orders, slot)) == 0, onlyRestraint(p.want, next):
		// Nothing is there yet, or nothing but the suspension of single clusters changes: one write.
		if err := b.write(slot); err != nil {
			return "", err
		}
		if p.want == nil {
			p.suspended, p.taken, p.since = true, true, b.w.now
		}
		p.want, p.by = next, by
		return "Karmada to take up the change", nil
	case !p.suspended && !b.w.fault("no gate"):
		if err := b.write(slot); err != nil {
			return "", err
		}
		p.suspended, p.taken, p.since = true, false, b.w.now
		p.lost = b.w.lucky(20)
		return "dispatching to be suspended", nil
	case !p.taken && !b.w.fault("no gate"):
		if b.w.now.Sub(p.since) < 10*time.Second {
			return "dispatching to be suspended", nil
		}
		p.since, p.lost = b.w.now, false
		return "dispatching to be suspended", b.write(slot)
	}
	// Overrides come before the template, and the placement last: a cut leaves a mixture, which nobody gets.
	mixed := maps.Clone(p.want)
	for c, n := range next {
		if live, has := mixed[c]; has {
			live.content.Env, live.by = n.content.Env, by
			mixed[c] = live
		}
	}
	if !b.sameContents(mixed, p.want) {
		if err := b.write(slot); err != nil {
			return "", err
		}
		p.want = mixed
		if b.w.fault("no gate") {
			return "the overrides to be rendered", nil
		}
	}
	if err := b.write(slot); err != nil {
		return "", err
	}
	p.want, p.by = next, by
	return "Karmada to render the change", nil
}

func (b *backend) sameContents(a, o map[string]wanted) bool {
	for c, w := range a {
		if o[c].content != w.content {
			return false
		}
	}
	return true
}

// wantedBy is what the policy is to say, and whether that is another than it says.
func (b *backend) wantedBy(p *place, wish wish, by *passInfo) (map[string]wanted, bool) {
	next := map[string]wanted{}
	for _, t := range wish.targets {
		var live *orderSpec
		w, has := p.want[t.cluster]
		if has {
			live = &w.orderSpec
		}
		spec := b.specOf(wish, t, live)
		if has && w.orderSpec == spec {
			next[t.cluster] = w
			continue
		}
		next[t.cluster] = wanted{spec, by}
	}
	everyOther := b.w.fault("remove what is not listed")
	for c, w := range p.want {
		gone := b.w.clusters[c].left[b.name] && !b.facts[c].Known // its name is dropped
		if _, listed := next[c]; !listed && !wish.removed[c] && !everyOther && !gone {
			next[c] = w
		}
	}
	changed := len(next) != len(p.want) || p.want == nil
	for c, n := range next {
		changed = changed || p.want[c].orderSpec != n.orderSpec
	}
	return next, changed
}

// onlyRestraint tells whether two wishes differ in what clusters may not do only.
func onlyRestraint(a, b map[string]wanted) bool {
	if len(a) != len(b) {
		return false
	}
	for c, was := range a {
		is, has := b[c]
		if !has || is.content != was.content || is.revision != was.revision || is.has != was.has {
			return false
		}
	}
	return true
}

// lift ends the suspension once everything is rendered.
func (b *backend) lift(slot string, p *place) (string, error) {
	rendered := true
	for _, c := range at(b.orders, slot) {
		w, is := p.want[c]
		spec := b.orders[where{slot, c}].orderSpec
		spec.gate = false
		rendered = rendered && (!is || spec == w.orderSpec)
	}
	for c := range p.want {
		_, is := b.orders[where{slot, c}]
		rendered = rendered && (is || !b.facts[c].Known)
	}
	switch {
	case !rendered:
		return "Karmada to render the change", nil
	case p.suspended:
		if err := b.write(slot); err != nil {
			return "", err
		}
		p.suspended, p.taken = false, false
		return "", nil
	}
	for _, c := range at(b.orders, slot) {
		if _, is := p.want[c]; !is {
			return "clusters to give the workload up", nil
		}
	}
	return "", nil
}

// remove takes the next step towards having nothing of the workload.
func (b *backend) remove(slot string, d deletion, by *passInfo) (waiting string, done bool, err error) {
	p := b.places[slot]
	if p != nil && p.uid == d.uid && b.gated && !p.deleting {
		if err := b.write(slot); err != nil {
			return "", false, err
		}
		p.deleting = true
	}
	waiting, err = b.withdraw(slot, d, by, func(string) bool { return false })
	if err != nil || waiting != "" {
		return waiting, false, err
	}
	if p != nil && p.uid == d.uid {
		if err := b.write(slot); err != nil {
			return "", false, err
		}
		delete(b.places, slot)
	}
	return "", true, nil
}

// learn has the backend see what has become of clusters.
func (b *backend) learn() bool {
	changed := false
	for _, name := range b.w.names {
		is, was := b.w.truth(b, name), b.facts[name]
		if was.Known && is.Known {
			if was.Ready == is.Ready {
				is.Since = was.Since
			}
			if was.Taint == is.Taint {
				is.Tainted = was.Tainted
			}
		}
		if is == was || b.w.lucky(60) {
			continue
		}
		if b.facts[name], changed = is, true; !is.Known {
			b.w.oracle.missed[name] = b.w.now
		}
		b.touched["*"] = true
		b.w.tell("  %s sees %s: %+v", b.name, name, is)
	}
	return changed
}

// control lets the backend's own controllers take a step.
func (b *backend) control() bool {
	changed := b.choose()
	if b.gated {
		changed = b.render() || changed
	}
	for w, o := range b.orders {
		if b.facts[w.cluster].Known || !b.w.clusters[w.cluster].left[b.name] {
			continue
		}
		// With a cluster goes what the backend had for it; of what is taken off there is nothing left.
		if o.status.generation == o.generation && o.status.removed {
			continue // told already
		}
		changed = true
		b.touched[w.slot] = true
		if o.removal == "" {
			delete(b.orders, w)
			continue
		}
		o.status.generation, o.status.removed = o.generation, true
	}
	return changed
}

// choose decides placements.
func (b *backend) choose() (changed bool) {
	for _, s := range b.w.slots {
		slot, p := s.name, b.places[s.name]
		if p == nil {
			continue
		}
		clusters := match(p.selectors, b.facts)
		if p.observed && p.settled && slices.Equal(p.decided, clusters) || b.w.lucky(40) {
			continue
		}
		half := ""
		if p.observed && p.settled && !b.gated && b.w.lucky(30) { // decisions are written page by page
			for _, c := range clusters {
				if slices.Contains(p.decided, c) {
					half = c
				}
			}
		}
		next := slices.DeleteFunc(slices.Clone(clusters), func(c string) bool { return c == half })
		if p.observed && p.settled && slices.Equal(p.decided, next) {
			next = clusters
		}
		if b.w.fault("half a choice for ever") && len(next) > 1 {
			next = next[1:]
		}
		p.observed, p.settled, p.decided, changed = true, true, next, true
		b.touched[slot] = true
		b.w.tell("  %s chooses %v for %s", b.name, next, slot)
	}
	return changed
}

// render makes the Works of the gated backend, one at a time unless everything goes well.
func (b *backend) render() (changed bool) {
	for _, s := range b.w.slots {
		slot, p := s.name, b.places[s.name]
		if p == nil || p.deleting {
			continue
		}
		if p.suspended && !p.taken && !p.lost && !b.w.lucky(30) {
			p.taken, changed = true, true
			b.touched[slot] = true
		}
		if p.want == nil {
			continue
		}
		changed = b.renderOne(slot, p) || changed
	}
	return changed
}

// letsGo tells whether a cluster that was asked is being let go of, and its agent will tell. Until then the gated backend takes no other one over.
func (b *backend) letsGo(slot string, p *place) bool {
	return slices.ContainsFunc(at(b.orders, slot), func(c string) bool {
		_, is := p.want[c]
		o := b.orders[where{slot, c}]
		return o.mode == probes && (!is || o.removal != "") && b.w.clusters[c].reachable
	})
}

func (b *backend) renderOne(slot string, p *place) (changed bool) {
	gate, letsGo := p.suspended && p.taken, b.letsGo(slot, p)
	for _, c := range b.w.names {
		o, w := b.orders[where{slot, c}], p.want[c]
		_, is := p.want[c]
		next := w.orderSpec
		next.gate = gate
		switch {
		case !is && o == nil, is && !b.facts[c].Known && b.w.clusters[c].left[b.name]:
			continue
		case o != nil && o.removal != "": // as long as it is on its way out there is no other
			if o.status.generation == o.generation && o.status.removed {
				delete(b.orders, where{slot, c})
				b.touched[slot], changed = true, true
			}
			continue
		case !is: // what is not wanted any more is taken off whatever is suspended
			next, w.by = o.orderSpec, p.by
			next.wasReleased, next.removal = o.released(), string(v1alpha1.DeletionPolicyDelete)
		case o != nil && o.orderSpec == next:
			continue
		case letsGo && o != nil && o.mode == probes && next.mode.writes():
			changed = true // later
			continue
		}
		if b.w.lucky(40) {
			changed = true // later
			continue
		}
		b.set(where{slot, c}, next, w.by)
		changed = true
	}
	return changed
}

// agents let the agents of all clusters take a step: what they have seen is reported, orders are pulled and carried out.
func (b *backend) agents() (changed bool) {
	for _, name := range b.w.names {
		c := b.w.clusters[name]
		if !c.reachable {
			continue
		}
		for _, s := range b.w.slots {
			o := b.orders[where{s.name, name}]
			if o == nil || b.w.lucky(35) {
				continue
			}
			changed = b.agent(c, s, o) || changed
		}
	}
	return changed
}

func (b *backend) agent(c *cluster, s *slot, o *order) (changed bool) {
	if o.reportable && o.onTheWay != o.status {
		o.status, changed = o.onTheWay, true
		b.touched[s.name] = true
		b.w.tell("  %s reports on %s on %s: %+v", b.name, s.name, c.name, o.status)
	}
	if o.pulledGen != o.generation {
		o.pulled, o.pulledGen, o.pulledBy, changed = o.orderSpec, o.generation, o.by, true
	}
	report, wrote := b.carryOut(c, s, o)
	report.generation = o.pulledGen
	if live := c.objects[s.name]; live != nil && (live.owner == b.mark(o) || !o.pulled.mode.writes()) {
		report.present, report.member = true, reportOn(live, b.name)
	}
	changed = changed || wrote || report != o.status
	o.onTheWay, o.reportable = report, true
	if !b.w.lucky(50) && o.onTheWay != o.status {
		o.status, changed = o.onTheWay, true
		b.touched[s.name] = true
	}
	return changed
}

func (b *backend) mark(o *order) mark { return mark{b.name, o.pulled.uid} }

// carryOut does on a member what the agent was asked to.
func (b *backend) carryOut(c *cluster, s *slot, o *order) (report agentReport, wrote bool) {
	live, p := c.objects[s.name], o.pulled
	mine := live != nil && live.owner == b.mark(o)
	report.applied = true
	switch {
	case p.removal != "":
		report.removed = true
		if !mine || p.heir {
			return report, false
		}
		deletes := p.removal == string(v1alpha1.DeletionPolicyDelete) || b.w.fault("delete in spite of Orphan")
		if deletes && p.mode.writes() {
			b.w.memberWrite(b, c, s, nil, o.pulledBy)
			return report, true
		}
		live.owner, live.was, wrote = mark{}, live.owner.uid, true
		live.trace(b.name)
	case p.hold && mine && p.has && p.content.Replicas != live.Replicas && b.w.fault("scale while held"):
		p.content.template = live.template
		wrote = b.deliver(c, s, o, p)
	case p.hold || p.gate || !p.has || !p.mode.writes():
		if p.mode.writes() && (!mine || live.content != p.content) {
			report.applied = false
		}
	case p.content.Newer && c.older: // its API server knows no such kind
		if mine {
			b.w.oracle.unserved(c, live, o.pulledBy)
		}
		report.applied = false
	case live != nil && !mine && !p.takes && p.mode != adopts && !b.w.fault("take what is foreign"):
		report.applied, report.conflict = false, true
	default:
		wrote = b.deliver(c, s, o, p)
	}
	return report, wrote
}

// deliver writes a manifest.
func (b *backend) deliver(c *cluster, s *slot, o *order, p orderSpec) (wrote bool) {
	live := c.objects[s.name]
	p.content = b.w.deform(b, live, p.content, b.mark(o))
	if live != nil && live.content == p.content && live.owner == b.mark(o) && live.revision == p.revision {
		if p.clean && len(live.traces) > 0 && (len(live.traces) != 1 || !live.traces[b.name]) {
			live.traces, wrote = map[string]bool{b.name: true}, true
		}
		return wrote
	}
	next := &object{content: p.content, owner: b.mark(o), revision: p.revision, generation: 1}
	if live != nil && (!b.w.fault("adopt makes it anew") || live.owner == b.mark(o)) {
		next.uid, next.traces = live.uid, live.traces
		next.seen, next.ran, next.ready, next.updated, next.running = live.seen, live.ran, live.ready, live.updated, live.running
		if next.generation = live.generation; live.content != next.content {
			next.generation++
		}
	} else {
		b.w.uids++
		next.uid = sprint("o", b.w.uids)
	}
	b.w.memberWrite(b, c, s, next, o.pulledBy)
	next.trace(b.name)
	return true
}

func (o *object) trace(backend string) {
	o.traces = maps.Clone(o.traces)
	if o.traces == nil {
		o.traces = map[string]bool{}
	}
	o.traces[backend] = true
}
