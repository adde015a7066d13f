package histories

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// history is all that happens: the same history goes the same way each time.
type history struct {
	// Clusters and Workloads are how many there are; AtOnce how many hand-overs may be under way, 0 for any number.
	Clusters, Workloads, AtOnce int
	Steps                       []step
}

// step is one thing that happens, after some seconds. W is the number of a workload, S and N say more. Luck is how the seconds before it
// go: 0 is well.
type step struct {
	Wait int
	Luck uint64
	Do   string
	W    int
	S    string
	N    int
}

// world is the management cluster, the backends and their members, and the time.
type world struct {
	now      time.Time
	names    []string
	clusters map[string]*cluster
	backends []*backend
	slots    []*slot
	op       operator
	oracle   *oracle
	kinds    *interpreter.Registry
	kept     map[string]*v1alpha1.FleetWorkloadSpec
	atOnce   int
	// versionsOf are the versions of what FleetWorkloads have shipped, by their UIDs.
	versionsOf map[types.UID][]revisions.Kept

	// luck is nil while everything goes well.
	luck *rand.Rand
	// cut is how many writes the operator has left; less than 0 is any number. dies tells whether it dies then, or the write only fails.
	cut        int
	dies, dead bool

	uids, versions, passes, writes int
	// planted is a fault of the world that the oracle is to find; empty for none.
	planted string
	log     func(format string, args ...any)
}

// beginning is when all histories begin; its day does not matter.
func beginning() time.Time { return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC) }

func newWorld(h history, kinds *interpreter.Registry) *world {
	w := &world{
		now: beginning(), clusters: map[string]*cluster{}, op: operator{waits: map[string]bool{}}, kinds: kinds,
		kept: map[string]*v1alpha1.FleetWorkloadSpec{}, versionsOf: map[types.UID][]revisions.Kept{}, atOnce: h.AtOnce, cut: -1,
	}
	if w.atOnce == 0 {
		w.atOnce = 10
	}
	for i := range h.Clusters {
		name := fmt.Sprint("c", i+1)
		w.names = append(w.names, name)
		w.clusters[name] = newCluster(name)
	}
	for i := range h.Workloads {
		w.slots = append(w.slots, &slot{name: fmt.Sprint("w", i), draft: newSpec()})
	}
	w.oracle = newOracle(w)
	w.backends = []*backend{newBackend(w, gated), newBackend(w, plain)}
	return w
}

func (w *world) tell(format string, args ...any) {
	if w.log != nil {
		w.log("%6s "+format, append([]any{w.now.Sub(beginning())}, args...)...)
	}
}

// lucky is true in so many of a hundred cases, and never while everything goes well.
func (w *world) lucky(percent int) bool { return w.luck != nil && w.luck.IntN(100) < percent }

func (w *world) fault(name string) bool { return w.planted == name }

func (w *world) backend(name string) *backend {
	for _, b := range w.backends {
		if b.name == name {
			return b
		}
	}
	return nil
}

// truth is what a backend can know of a cluster.
func (w *world) truth(b *backend, name string) facts {
	c := w.clusters[name]
	if c.left[b.name] || w.now.Before(c.hidden[b.name]) {
		return facts{}
	}
	f := facts{Known: true, Label: c.label, Ready: c.reachable, Since: w.now, Taint: c.taint, Older: c.older}
	if c.taint != "" {
		f.Tainted = w.now
	}
	return f
}

// spend counts one write of the operator. It fails when that is cut off.
func (w *world) spend() error {
	if w.dead || w.cut == 0 {
		w.dead = w.dies
		w.tell("    a write is cut off")
		if !w.dies {
			w.cut = -1
		}
		return errCut
	}
	if w.cut > 0 {
		w.cut--
	}
	w.writes++
	return nil
}

// memberWrite makes a member object what it is to be; nil is none.
func (w *world) memberWrite(b *backend, c *cluster, s *slot, next *object, by *passInfo) {
	before := c.objects[s.name]
	w.tell("  %s writes %s on %s: %s becomes %s", b.name, s.name, c.name, describe(before), describe(next))
	w.oracle.memberWrite(c, s, before, next, by)
	if next == nil {
		delete(c.objects, s.name)
		return
	}
	c.objects[s.name] = next
}

func describe(o *object) string {
	if o == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s (%s of %s%s)", o.content, o.uid, o.owner.backend, flag(o.owner.uid == "", "nobody"))
}

// tick lets one second go by. It tells whether anything has changed.
func (w *world) tick() (changed bool) {
	w.now = w.now.Add(time.Second)
	for _, b := range w.backends {
		changed = b.learn() || changed
		changed = b.control() || changed
		changed = b.agents() || changed
	}
	for _, name := range w.names {
		for _, s := range w.slots {
			if o := w.clusters[name].objects[s.name]; o != nil && !w.lucky(30) {
				changed = o.advance() || changed
			}
		}
	}
	for _, b := range w.backends {
		if !w.lucky(35) {
			b.refresh()
		}
	}
	for _, s := range w.slots {
		if s.cached != s.object && !w.lucky(30) {
			s.cached, s.dirty = s.object, s.object != nil
		}
		due := !s.due.IsZero() && !w.now.Before(s.due)
		if s.cached != nil && (s.dirty && !w.lucky(30) || due || w.lucky(2)) {
			w.pass(s)
			changed = true
		}
	}
	return changed || w.busy()
}

// busy tells whether something is on its way.
func (w *world) busy() bool {
	for _, b := range w.backends {
		if len(b.touched) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(w.slots, func(s *slot) bool { return s.dirty || s.cached != s.object })
}

// live lets time go by. Where nothing happens it is passed over.
func (w *world) live(d time.Duration, luck uint64) {
	w.luck = nil
	if luck != 0 {
		w.luck = rand.New(rand.NewPCG(luck, 7))
	}
	for end := w.now.Add(d); w.now.Before(end); {
		if w.tick() || w.luck != nil && end.Sub(w.now) < 30*time.Second {
			continue
		}
		if w.luck != nil {
			luck := w.luck
			w.luck = nil
			still := !w.tick()
			w.luck = luck
			if !still {
				continue
			}
		}
		w.now = w.next(end).Add(-time.Second)
		if w.now.After(end) {
			w.now = end
		}
	}
}

// next is when something is to happen, before the end.
func (w *world) next(end time.Time) time.Time {
	next := end.Add(time.Second)
	for _, s := range w.slots {
		if s.object != nil && !s.due.IsZero() && s.due.Before(next) {
			next = s.due
		}
	}
	for _, name := range w.names {
		for _, until := range w.clusters[name].hidden {
			if until.After(w.now) && until.Before(next) {
				next = until
			}
		}
	}
	if !next.After(w.now) {
		next = w.now.Add(time.Second)
	}
	return next
}

// do makes one step happen.
func (w *world) do(do step) {
	w.live(time.Duration(do.Wait)*time.Second, do.Luck)
	if do.Do == "" {
		return
	}
	w.tell("%s w%d %s %d", do.Do, do.W, do.S, do.N)
	if w.doCluster(do) || w.doOperator(do) {
		return
	}
	s := w.slots[do.W%len(w.slots)]
	switch do.Do {
	case "create":
		if s.object == nil {
			w.create(s)
		}
	case "delete":
		if s.object != nil && s.object.DeletionTimestamp == nil {
			next := *s.object
			next.DeletionTimestamp = &metav1.Time{Time: w.now}
			w.oracle.deleted(s)
			w.store(s, &next)
		}
	case "foreign":
		w.foreign(s, do)
	case "confirm", "approve", "approve change":
		w.agree(s, do)
	default:
		w.edit(s, do)
	}
}

func (w *world) create(s *slot) {
	w.uids++
	s.object = &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: s.name, UID: types.UID(fmt.Sprint("u", w.uids)), Generation: 1,
	}}
	s.object.Spec = s.draft.object()
	w.oracle.edited(s)
	w.store(s, s.object)
}

// rebuild makes the management cluster anew, from a backup without statuses. To backends a FleetWorkload is the same, which the same UID stands
// for. What is being deleted is not in it. All backends can be reached: one that cannot is not waited for (docs/laws.md, law 5).
func (w *world) rebuild() {
	for _, s := range w.slots {
		if s.object == nil || s.object.DeletionTimestamp != nil {
			continue
		}
		before := s.object.ObjectMeta
		s.rebuilt = true
		w.oracle.rebuilt(s)
		delete(w.versionsOf, before.UID)
		for name := range w.kept {
			if strings.HasPrefix(name, s.name+"-migration-") {
				delete(w.kept, name)
			}
		}
		w.store(s, &v1alpha1.FleetWorkload{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: before.Namespace, Name: before.Name, UID: before.UID, Generation: before.Generation, Finalizers: before.Finalizers,
			},
			Spec: s.object.Spec,
		})
	}
	for _, b := range w.backends {
		b.down = false
	}
	w.restart()
}

// unclaimed tells whether nobody knows yet which backend has a FleetWorkload that was made anew.
func (w *world) unclaimed() bool {
	return slices.ContainsFunc(w.slots, func(s *slot) bool { return s.rebuilt && s.object != nil && s.object.Status.Backend == "" })
}

// edit changes a field of the spec; before there is a FleetWorkload, of the one that is to be.
func (w *world) edit(s *slot, do step) {
	if s.object != nil && s.object.DeletionTimestamp != nil {
		return
	}
	s.draft = s.draft.clone()
	s.draft.set(do)
	if s.object == nil {
		return
	}
	next := *s.object
	next.Spec = s.draft.object()
	next.Generation++
	s.object = &next
	w.oracle.edited(s)
	w.store(s, &next)
}

// foreign puts somebody else's object of the workload's name on a cluster.
func (w *world) foreign(s *slot, do step) {
	c := w.clusters[do.S]
	if c == nil || c.objects[s.name] != nil {
		return
	}
	for _, b := range w.backends { // one that comes between a probe and what follows from it is nobody's fault
		if b.orders[where{s.name, do.S}] != nil || b.places[s.name] != nil {
			return
		}
	}
	w.uids++
	o := &object{content: content{template: template{"foreign:1", "0"}, Replicas: do.N}, uid: fmt.Sprint("o", w.uids), generation: 1}
	o.seen, o.ran, o.ready, o.updated, o.running = 1, do.N, do.N, do.N, o.template
	c.objects[s.name] = o
}

var asksFor = regexp.MustCompile(regexp.QuoteMeta(v1alpha1.AnnotationConfirmRemoval) + `=(\S+)`)

// agree has a person put the annotation on that the status asks for. N chooses a wrong one, or the one before.
func (w *world) agree(s *slot, do step) {
	if s.object == nil || s.object.DeletionTimestamp != nil {
		return
	}
	key, value := v1alpha1.AnnotationConfirmRemoval, ""
	switch do.Do {
	case "approve":
		key = v1alpha1.AnnotationApproveMigration
		if m := s.object.Status.Migration; m != nil {
			value = m.Approval
		}
	case "approve change":
		key = v1alpha1.AnnotationApproveChange
		if c := s.object.Status.Change; c != nil {
			value = c.Approval
		}
	default:
		if found := asksFor.FindStringSubmatch(condition(s.object, v1alpha1.ConditionStalled).Message); found != nil {
			value = found[1]
		}
	}
	if value == "" {
		return
	}
	if do.N > 0 {
		value = strings.Repeat("0", len(value))
	}
	next := *s.object
	next.Annotations = map[string]string{}
	for k, v := range s.object.Annotations {
		next.Annotations[k] = v
	}
	next.Annotations[key] = value
	switch {
	case do.Do == "confirm":
		w.oracle.confirmed(s, value)
	case do.Do == "approve change" && do.N == 0:
		w.oracle.approved(s, *s.object.Status.ObservedGeneration, s.object.Status.Change.Clusters)
	}
	w.store(s, &next)
}

// doCluster makes a fact of a cluster another one.
func (w *world) doCluster(do step) bool {
	c := w.clusters[do.S]
	switch do.Do {
	case "label on", "label off":
		c.label = do.Do == "label on"
	case "taint":
		c.taint = map[int]string{0: "NoSchedule", 1: "NoExecute"}[do.N]
	case "untaint":
		c.taint = ""
	case "lose":
		c.reachable = false
	case "back":
		c.reachable = true
	case "older":
		// Only while there is nothing: a cluster that serves less than it did cannot be asked for what it has.
		c.older = len(c.objects) == 0 && len(w.ordersOn(do.S)) == 0
	case "upgrade":
		c.older = false
	case "leave", "join":
		for i, b := range w.backends {
			if do.N == 0 || do.N == i+1 {
				c.left[b.name] = do.Do == "leave"
			}
		}
	case "hide":
		for i, b := range w.backends {
			if do.W == i {
				c.hidden[b.name] = w.now.Add(time.Duration(do.N) * time.Second)
			}
		}
	default:
		return false
	}
	return true
}

// ordersOn are the workloads that any backend has something of for a cluster.
func (w *world) ordersOn(cluster string) (slots []string) {
	for _, b := range w.backends {
		for at := range b.orders {
			if at.cluster == cluster {
				slots = append(slots, at.slot)
			}
		}
	}
	return slots
}

// doOperator is about the operator and its connections.
func (w *world) doOperator(do step) bool {
	switch do.Do {
	case "down", "up":
		w.backend(do.S).down = do.Do == "down" && !w.unclaimed()
		w.backend(do.S).touched["*"] = true
	case "die":
		w.cut, w.dies = do.N, true
	case "fail":
		w.cut, w.dies = do.N, false
	case "restart":
		w.restart()
	case "rebuilt":
		w.rebuild()
	default:
		return false
	}
	return true
}

// play plays a history, and returns what was wrong.
func (h history) play(kinds *interpreter.Registry, planted string, log func(string, ...any)) *world {
	w := newWorld(h, kinds)
	w.planted, w.log = planted, log
	for _, do := range h.Steps {
		if w.oracle.failed() {
			return w
		}
		w.do(do)
	}
	if !w.oracle.failed() {
		w.rest()
	}
	return w
}

// heal ends what is broken, and what would keep things from resting.
func (w *world) heal() {
	w.cut, w.dies = -1, false
	for _, b := range w.backends {
		if b.down {
			b.down = false
			b.touched["*"] = true
		}
	}
	for _, name := range w.names {
		c := w.clusters[name]
		c.reachable, c.older = true, false
		clear(c.hidden)
	}
}

// The bounds within which everything comes to rest, and how long it is watched then.
const (
	restWithin = 40 * time.Minute
	mostPasses = 400
)

// watched is for how long nothing must happen: longer than what anybody waits for.
func (w *world) watched() time.Duration {
	for _, s := range w.slots {
		if s.object != nil && (pass.HandsOver(s.object) || s.draft.Failover != "") {
			return 11 * time.Minute
		}
	}
	return 2 * time.Minute
}

// rest lets everything come to its end, and sees that nothing is written any more.
func (w *world) rest() {
	w.tell("everything is healed")
	w.heal()
	began, passes, quiet := w.now, w.passes, w.now
	writes := w.versions + w.writes
	for w.now.Sub(quiet) < w.watched() {
		if w.now.Sub(began) > restWithin || w.passes-passes > mostPasses {
			w.oracle.restless()
			return
		}
		w.live(10*time.Second, 0)
		if n := w.versions + w.writes; n != writes {
			writes, quiet = n, w.now
		}
		if w.oracle.failed() {
			return
		}
	}
	for _, s := range w.slots { // an event that says nothing, and another operator
		s.dirty = s.object != nil
	}
	w.live(5*time.Second, 0)
	if slices.ContainsFunc(w.slots, func(s *slot) bool { return s.draft.Prefer != "" }) {
		writes = w.versions + w.writes // what is free in clusters is no event, and may be told when there is another
	}
	w.restart()
	w.live(time.Minute, 0)
	if w.versions+w.writes != writes && !w.oracle.failed() {
		w.oracle.violate(nil, "", "rest", "after all has come to rest, a restart of the operator writes")
	}
	w.oracle.atRest()
}

// tamper is where faults are planted between what was decided and what a backend is asked.
func (w *world) tamper(wish wish) wish {
	switch w.planted {
	case "ignore hold":
		for i := range wish.targets {
			wish.targets[i].hold = false
		}
	case "both write":
		for i := range wish.targets {
			if wish.targets[i].mode == observes {
				wish.targets[i].mode = adopts
			}
		}
	}
	return wish
}

// deform is where faults are planted in what a member gets.
func (w *world) deform(_ *backend, live *object, next content, by mark) content {
	switch {
	case live == nil:
	case w.fault("restart pods on adopt") && live.owner != by:
		next.Env += "-adopted"
	case w.fault("mix versions") && live.Image != next.Image && live.Env != next.Env:
		next.Image = live.Image
	case w.fault("replicas in two steps") && live.Replicas-next.Replicas > 1:
		next.Replicas++
	}
	return next
}

// forget is where faults are planted in what is recorded.
func (w *world) forget(p *v1alpha1.PlacementRecord) *v1alpha1.PlacementRecord {
	if p == nil || w.planted == "" {
		return p
	}
	p = p.DeepCopy()
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if w.fault("forget the baseline") {
			c.Baseline = c.Replicas
		}
		if w.fault("forget for how long it is missing") && c.DeselectedAt != nil {
			c.DeselectedAt = &metav1.Time{Time: beginning().Add(-time.Hour)}
		}
	}
	if w.fault("a confirmation stays") {
		p.ConfirmedRemovals = nil
	}
	return p
}
