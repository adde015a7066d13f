package histories

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// oracle judges a history by the laws. It knows the specs with the moments at which they were written, what each pass has read, who asked
// for what an agent carries out, and the members. It knows nothing of what a pass decided, and shares no code with the operator.
type oracle struct {
	w          *world
	violations []violation
	laws       map[string]*law
	now        map[*slot]*law
	// missed is when a backend last found that a cluster has left.
	missed map[string]time.Time
}

// violation is something that must not have been.
type violation struct{ Kind, Text string }

// version is a spec as it was written once.
type version struct {
	at   time.Time
	spec spec
}

// law is what is known of one FleetWorkload, by its UID.
type law struct {
	slot     *slot
	uid      string
	versions []version
	reads    []*passInfo
	// seen is the earliest version of which each cluster may have its pods.
	seen map[string]int64
	// frozen is the pass that has carried the suspension out; 0 while it is not suspended.
	frozen int
	// paused is, by cluster, the pass that has carried its pause out.
	paused map[string]int
	// what each cluster ran when the spec was last carried out, which spec that was, and what was true of the cluster.
	base      map[string]int
	baseOf    int64
	baseFacts map[string]facts
	joinedBy  map[string]int
	// joinedWith is what a cluster ran already before the pass that it joined by.
	joinedWith map[string]int
	// forgotten is true from when the record is lost until it is made anew, which the pass madeAnew has done.
	forgotten bool
	madeAnew  int
	// leftBy is the generation that a pass had read which took a cluster's object away.
	leftBy map[string]int64
	// lost are clusters that failover may have given up.
	lost map[string]bool
	// shown are the removals that persons were shown, by token; agreed are those confirmed and not yet read.
	shown  map[string]map[string]int
	agreed map[string]bool
	// raised is true from when a removal was confirmed: what clusters have more since then runs on.
	raised bool
	// approved are the specs, as far as they wait for approval, that a person has approved or that nobody had to approve.
	approved map[string]bool
	// takesOut are the clusters that the change takes out which a person has approved last, a move left out, and approvedOf is its generation.
	takesOut   map[string]bool
	approvedOf int64
	// picks are the choices of clusters that explain what a pass has asked for, by pass.
	picks map[int][][]string
}

func newOracle(w *world) *oracle {
	return &oracle{w: w, laws: map[string]*law{}, now: map[*slot]*law{}, missed: map[string]time.Time{}}
}

func (o *oracle) failed() bool { return len(o.violations) > 0 }

func (o *oracle) violate(l *law, cluster, kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l != nil {
		text = l.slot.name + flag(cluster != "", " on "+cluster) + ": " + text
	}
	o.w.tell("VIOLATION %s: %s", kind, text)
	o.violations = append(o.violations, violation{kind, text})
}

// spec is the spec of a generation.
func (l *law) spec(generation int64) spec { return l.versions[generation-1].spec }

func (l *law) newest() int64 { return int64(len(l.versions)) }

// edited notes a spec.
func (o *oracle) edited(s *slot) {
	l := o.now[s]
	if l == nil || l.uid != string(s.object.UID) {
		l = &law{
			slot: s, uid: string(s.object.UID), seen: map[string]int64{}, base: nil, baseFacts: map[string]facts{}, joinedBy: map[string]int{}, joinedWith: map[string]int{}, leftBy: map[string]int64{},
			paused: map[string]int{}, lost: map[string]bool{}, shown: map[string]map[string]int{}, agreed: map[string]bool{}, approved: map[string]bool{}, picks: map[int][][]string{},
		}
		o.now[s], o.laws[l.uid] = l, l
	}
	l.versions = append(l.versions, version{o.w.now, s.draft.clone()})
}

func (o *oracle) deleted(*slot) {}

// rebuilt notes that the record of what ran before is lost.
func (o *oracle) rebuilt(s *slot) { o.now[s].forgotten = true }

// confirmed notes that a person agrees to what a token stands for. What of it has gone already does not count any more.
func (o *oracle) confirmed(s *slot, token string) {
	l := o.now[s]
	l.agreed[token] = true
	for name, n := range l.shown[token] {
		if n == 0 && o.ordered(l, name) == 0 {
			delete(l.base, name)
		}
	}
}

// approved notes that a person agrees to what the spec of a generation comes to, and of what clusters they were told that it takes them out.
func (o *oracle) approved(s *slot, generation int64, told []v1alpha1.PlannedCluster) {
	l := o.now[s]
	l.approved[l.spec(generation).approvable()] = true
	l.approvedOf = generation
	moves := slices.ContainsFunc(told, func(c v1alpha1.PlannedCluster) bool { return c.Action == v1alpha1.PlannedMove })
	if l.takesOut == nil || !moves { // who moves it takes back nothing of what was approved and is under way
		l.takesOut = map[string]bool{}
	}
	for _, c := range told {
		if c.Action == v1alpha1.PlannedRemove {
			l.takesOut[c.Name] = true
		}
	}
}

// read notes what a pass has read.
func (o *oracle) read(info *passInfo) {
	l := o.laws[info.uid]
	l.reads = append(l.reads, info)
	v := l.spec(info.generation)
	if !v.Approval {
		l.approved[v.approvable()] = true
	}
	if !v.Suspend || info.deleting {
		l.frozen = 0
	}
	maps.DeleteFunc(l.paused, func(name string, _ int) bool { return info.handsOver || info.deleting || !v.pauses(name) })
	for name, f := range info.known {
		if v.Failover != "" && (!f.Ready || f.Taint == "NoExecute") {
			l.lost[name] = true
		}
	}
}

// carriedOut notes that all orders of a pass were carried out, and nothing was awaited.
func (o *oracle) carriedOut(info *passInfo) {
	l := o.laws[info.uid]
	if l.spec(info.generation).Suspend && !info.deleting && l.frozen == 0 {
		l.frozen = info.id
	}
	for _, name := range l.spec(info.generation).Paused {
		if l.paused[name] == 0 && !info.deleting && !info.handsOver && info.known[name].Known {
			l.paused[name] = info.id
		}
	}
}

var losses = regexp.MustCompile(`(c\d+) \((\d+) to (\d+)\)`)

// status notes what a status says that a pass has written.
func (o *oracle) status(info *passInfo, after *v1alpha1.FleetWorkloadStatus) {
	l := o.laws[info.uid]
	fw := &v1alpha1.FleetWorkload{Status: *after}
	stalled := condition(fw, v1alpha1.ConditionStalled)
	if found := asksFor.FindStringSubmatch(stalled.Message); found != nil {
		removal := map[string]int{}
		for _, m := range losses.FindAllStringSubmatch(stalled.Message, -1) {
			var n int
			fmt.Sscan(m[3], &n) //nolint:errcheck // it is a number
			removal[m[1]] = n
		}
		l.shown[found[1]] = removal
	}
	o.judgeIndependent(l, fw)
	if l.forgotten && after.Placement != nil {
		o.remembered(l, info)
	}
	ready := condition(fw, v1alpha1.ConditionReady)
	if ready.Status == metav1.ConditionTrue && !info.handsOver {
		if !info.waits && info.generation >= l.approvedOf {
			clear(l.takesOut) // it was carried out
		}
		o.settled(l, info)
	}
}

// settled takes what runs for what the spec asked for, the first time that all is as asked after an edit of where replicas run.
func (o *oracle) settled(l *law, info *passInfo) {
	v := l.spec(info.generation)
	if l.base != nil && l.since(info.generation) <= l.baseOf {
		l.baseOf = info.generation
		return
	}
	l.base, l.raised = nil, false
	clear(l.joinedBy)
	clear(l.lost)
	if !l.steady(v, info) || v.Suspend {
		return // what ran when it was carried out may be other than what runs now
	}
	l.base, l.baseOf, l.baseFacts = map[string]int{}, info.generation, maps.Clone(info.known)
	for _, name := range o.w.names {
		if live := o.w.clusters[name].objects[l.slot.name]; live != nil && live.owner.uid == l.uid && (info.chosen(v, name) || v.pauses(name)) {
			l.base[name] = live.Replicas
		}
	}
}

// remembered takes what runs for what counts, where the record was lost: nobody knows what ran before that.
func (o *oracle) remembered(l *law, info *passInfo) {
	l.forgotten, l.madeAnew = false, info.id
	l.base, l.baseOf, l.baseFacts, l.raised = map[string]int{}, info.generation, maps.Clone(info.known), false
	clear(l.joinedBy)
	for _, name := range o.w.names {
		if live := o.w.clusters[name].objects[l.slot.name]; live != nil && live.owner.uid == l.uid && !o.beingLeft(l, name) {
			l.base[name] = live.Replicas
		}
	}
}

// since is the first of the generations that ask for the same places and numbers as this one.
func (l *law) since(generation int64) int64 {
	v, from := l.spec(generation), generation
	for ; from > 1; from-- {
		b := l.spec(from - 1)
		if b.Replicas != v.Replicas || b.clustersPart() != v.clustersPart() || b.divisionPart() != v.divisionPart() {
			break
		}
	}
	return from
}

// steady tells whether all passes that have read an edit have found the same clusters for it.
func (l *law) steady(v spec, now *passInfo) bool {
	from := l.since(now.generation)
	return !slices.ContainsFunc(l.reads, func(r *passInfo) bool {
		if r.generation < from || len(r.known) == 0 {
			return false
		}
		return r.handsOver || slices.ContainsFunc(slices.Sorted(maps.Keys(now.known)), func(name string) bool {
			a, b := r.known[name], now.known[name]
			return chooses(v, name, a) != chooses(v, name, b) || a.Ready != b.Ready || a.Taint != b.Taint || r.settled && now.settled &&
				r.chosen(v, name) != now.chosen(v, name)
		}) || len(r.known) > len(now.known)
	})
}

// writers sees that no two backends may write a member object.
func (o *oracle) writers(slot, cluster string) {
	var who []string
	for _, b := range o.w.backends {
		if r := b.orders[where{slot, cluster}]; r != nil && r.mayWrite() {
			who = append(who, b.name)
		}
	}
	s := o.w.slotOf(slot)
	if len(who) > 1 {
		o.violate(o.now[s], cluster, "two writers", "both backends may write the member object")
	}
	if s.object != nil { // what was said stands until something else is
		o.judgeIndependent(o.now[s], s.object)
	}
}

var leavesBehind = regexp.MustCompile(`backend "(\w+)"`)

// judgeIndependent sees that what Independent claims is so: nothing of the workload is the backend's that it names, in that backend and on
// members, and that backend is not the one that has the workload.
func (o *oracle) judgeIndependent(l *law, fw *v1alpha1.FleetWorkload) {
	c := condition(fw, v1alpha1.ConditionIndependent)
	if c.Status != metav1.ConditionTrue {
		return
	}
	other := leavesBehind.FindStringSubmatch(c.Message)
	if other == nil || o.w.backend(other[1]) == nil || other[1] == fw.Status.Backend {
		o.violate(l, "", "dependent", "it is said to be independent, on backend %s: %s", fw.Status.Backend, c.Message)
		return
	}
	b := o.w.backend(other[1])
	if p := b.places[l.slot.name]; p != nil && p.uid == l.uid {
		o.violate(l, "", "dependent", "it is said to be independent of backend %s, which chooses clusters for it", b.name)
	}
	for _, name := range o.w.names {
		o.judgeIndependentOn(l, name, b)
	}
}

func (o *oracle) judgeIndependentOn(l *law, name string, b *backend) {
	if r := b.orders[where{l.slot.name, name}]; r != nil && r.uid == l.uid {
		o.violate(l, name, "dependent", "it is said to be independent of backend %s, which has an order", b.name)
	}
	live := o.w.clusters[name].objects[l.slot.name]
	if live == nil || o.everLeft(l, name) { // what a cluster runs that has left is nobody's when it is back
		return
	}
	if live.owner == (mark{b.name, l.uid}) || live.owner.uid == l.uid && live.traces[b.name] {
		o.violate(l, name, "dependent", "it is said to be independent of backend %s, and %s has its marks", b.name, describe(live))
	}
}

func (w *world) slotOf(name string) *slot {
	return w.slots[slices.IndexFunc(w.slots, func(s *slot) bool { return s.name == name })]
}

// mayWrite tells whether the order, as it is or as its agent has it, lets the member object be written or deleted.
func (r *order) mayWrite() bool {
	if r.removal != "" && r.status.generation == r.generation && r.status.removed {
		return false
	}
	return r.mode.writes() || r.pulledGen > 0 && r.pulled.mode.writes()
}

// listedSince tells whether some pass since then has found the cluster listed: of another nothing can be said (R16).
func (l *law) listedSince(id int, name string) bool {
	return slices.ContainsFunc(l.reads, func(r *passInfo) bool { return r.id >= id && r.known[name].Known })
}

// memberWrite judges a write of a member object: after is nil when it goes.
func (o *oracle) memberWrite(c *cluster, _ *slot, before, after *object, by *passInfo) {
	l := o.laws[by.uid]
	v := l.spec(by.generation)
	if before != nil && before.owner.uid != l.uid {
		o.foreign(l, v, c, before, after, by)
	}
	switch {
	case after == nil && by.deleting:
		if v.Orphan {
			o.violate(l, c.name, "orphan", "an object with %d pods was deleted, and deletionPolicy is Orphan", before.Replicas)
		}
		return
	case v.Suspend:
		o.violate(l, c.name, "suspended", "%s became %s by pass %d that had read spec.suspend", describe(before), describe(after), by.id)
		return
	case by.deleting:
		o.violate(l, c.name, "deleting", "%s became %s while it is being deleted", describe(before), describe(after))
		return
	case v.Approval && !by.handsOver && !l.approved[v.approvable()]:
		o.violate(l, c.name, "unapproved", "%s became %s by pass %d, and nobody has approved generation %d", describe(before), describe(after), by.id, by.generation)
		return
	case l.frozen > 0 && by.id < l.frozen && after != nil && (before == nil || before.content != after.content) && l.listedSince(l.frozen, c.name):
		o.violate(l, c.name, "suspended", "%s became %s by pass %d, after pass %d had carried the suspension out",
			describe(before), describe(after), by.id, l.frozen)
		return
	}
	o.judgePaused(l, v, c, before, after, by)
	if after != nil {
		if before != nil && before.uid != after.uid {
			o.violate(l, c.name, "made anew", "object %s was replaced by %s", before.uid, after.uid)
		}
		o.judgePods(l, c, after, by)
		o.judgeReplicas(l, c, before, after, by)
		o.judgeNumbered(l, v, c, before, after, by)
	}
	o.judgeLoss(l, c, before, after, by)
	if delete(l.leftBy, c.name); after == nil {
		l.leftBy[c.name] = by.generation
	}
	if after != nil && l.base != nil && by.generation >= l.baseOf && l.since(by.generation) <= l.baseOf {
		if _, known := l.base[c.name]; !known || before == nil { // it joins, or joins again
			l.base[c.name], l.joinedBy[c.name], l.baseFacts[c.name] = after.Replicas, by.id, by.known[c.name]
			if l.joinedWith[c.name] = 0; before != nil && before.owner.uid == l.uid {
				l.joinedWith[c.name] = before.Replicas
			}
		}
	}
}

// unserved judges that what runs on a cluster is not asked for in a version of which the pass had read that the cluster does not serve it.
// Once the record was lost, nobody knows in which version it runs, nor what a cluster has that left and is back.
func (o *oracle) unserved(c *cluster, live *object, by *passInfo) {
	if l := o.laws[by.uid]; by.known[c.name].Older && !l.forgotten && l.madeAnew == 0 && !o.everLeft(l, c.name) {
		o.violate(l, c.name, "version", "%s is to be of a version that the cluster does not serve, by pass %d", describe(live), by.id)
	}
}

// pauses tells whether nothing is to change on a cluster.
func (s spec) pauses(name string) bool { return slices.Contains(s.Paused, name) }

// judgePaused: on a cluster that is paused nothing begins. What was on its way when the pause was carried out, but for a removal and for the
// first object, stays where it is.
func (o *oracle) judgePaused(l *law, v spec, c *cluster, before, after *object, by *passInfo) {
	switch {
	case by.handsOver: // the spec is the one from the beginning of the hand-over
	case v.pauses(c.name):
		o.violate(l, c.name, "paused", "%s became %s by pass %d that had read that it is paused", describe(before), describe(after), by.id)
	case by.id < l.paused[c.name] && before != nil && after != nil && before.content != after.content && l.listedSince(l.paused[c.name], c.name):
		o.violate(l, c.name, "paused", "%s became %s by pass %d, after pass %d had carried the pause out",
			describe(before), describe(after), by.id, l.paused[c.name])
	}
}

// gives tells whether a cluster can be given so many replicas when those are chosen: paused ones keep theirs, at least and at most so many
// together, and the rest is divided.
func gives(v spec, pick []string, name string, n, least, most int) bool {
	if len(v.Paused) == 0 || !v.Divided {
		share, has := shares(v, pick)[name]
		return has && share == n && !v.contradicts(pick, 0)
	}
	free, rest := slices.DeleteFunc(slices.Clone(pick), v.pauses), v
	for kept := least; kept <= most; kept++ {
		rest.Replicas = max(0, v.Replicas-kept)
		if share, has := shares(rest, free)[name]; has && share == n && !v.contradicts(free, kept) {
			return true
		}
	}
	return false
}

// contradicts tells whether the numbers of those clusters do not go with the one that is divided, of which paused ones keep some: then
// nothing is carried out.
func (s spec) contradicts(clusters []string, kept int) bool {
	sum, own := 0, 0
	for _, name := range clusters {
		if n, has := s.Own[name]; has {
			sum, own = sum+n, own+1
		}
	}
	return s.Divided && (sum > s.Replicas || kept == 0 && own > 0 && own == len(clusters) && sum < s.Replicas)
}

// lowered are the specs that a pass can have divided by: of a cluster that is not chosen any more its own number is no more than it has.
func (o *oracle) lowered(v spec, by *passInfo) []spec {
	all := []spec{v}
	for _, name := range slices.Sorted(maps.Keys(v.Own)) {
		if by.chosen(v, name) {
			continue
		}
		for _, s := range slices.Clone(all) {
			for n := range v.Own[name] {
				low := s
				low.most = maps.Clone(s.most)
				if low.most == nil {
					low.most = map[string]int{}
				}
				low.most[name] = n
				all = append(all, low)
			}
		}
	}
	return all
}

// withoutPaused are choices of clusters, and the same without those that were paused then: they may keep nothing.
func withoutPaused(v spec, picks [][]string) [][]string {
	all := slices.Clone(picks)
	for _, pick := range picks {
		all = append(all, slices.DeleteFunc(slices.Clone(pick), v.pauses))
	}
	return all
}

// givenPaused is how many replicas paused clusters may have been given, at least and at most: of some it may never have come to them.
func (o *oracle) givenPaused(l *law, v spec, by *passInfo) (least, most int) {
	least, most = o.keptPaused(l, v, by)
	for _, paused := range v.Paused {
		low, high := math.MaxInt, 0
		for _, r := range l.reads {
			before := l.spec(r.generation)
			if r.id > by.id || r.known == nil || before.pauses(paused) {
				continue
			}
			for _, pick := range withoutPaused(before, o.picks(l, before, r)) {
				_, own := before.Own[paused]
				if n, has := shares(before, pick)[paused]; has && (n > 0 || own || before.Replicas == 0) {
					low, high = min(low, n), max(high, n)
				}
			}
		}
		live := 0
		if c := o.w.clusters[paused]; c != nil && c.objects[l.slot.name] != nil {
			live = c.objects[l.slot.name].Replicas
		}
		least, most = least-max(0, live-low), most+high
	}
	return max(0, least), most
}

// beingLeft tells whether a backend takes the workload off a cluster: that goes on when it is paused.
func (o *oracle) beingLeft(l *law, name string) bool {
	return slices.ContainsFunc(o.w.backends, func(b *backend) bool {
		r := b.orders[where{l.slot.name, name}]
		return r != nil && r.uid == l.uid && r.removal != ""
	})
}

// keptPaused is how many replicas paused clusters keep, at least and at most.
func (o *oracle) keptPaused(l *law, v spec, by *passInfo) (least, most int) {
	for _, paused := range v.Paused {
		if c := o.w.clusters[paused]; c != nil {
			live := 0
			if is := c.objects[l.slot.name]; is != nil && is.owner.uid == l.uid {
				live = is.Replicas
			}
			most += max(live, o.ordered(l, paused))
			// What a cluster runs that has left is nobody's, and what one was given after its pause was not there for this pass.
			if !o.everLeft(l, paused) && !o.beingLeft(l, paused) && !l.goneOnSince(by, paused) {
				least += live
			}
		}
	}
	return least, most
}

// goneOnSince tells whether a later pass has read that a cluster is no longer paused.
func (l *law) goneOnSince(by *passInfo, name string) bool {
	return slices.ContainsFunc(l.reads, func(r *passInfo) bool { return r.id > by.id && !l.spec(r.generation).pauses(name) })
}

// foreign judges a write of what is somebody else's.
func (o *oracle) foreign(l *law, v spec, c *cluster, before, after *object, by *passInfo) {
	switch {
	case by.handsOver && before.owner.uid == "" && before.was == l.uid && after != nil: // the old backend let go of it on its own
	case !v.Adopt:
		o.violate(l, c.name, "foreign", "somebody else's %s became %s, and conflictPolicy is Fail", describe(before), describe(after))
	case after == nil:
		o.violate(l, c.name, "foreign", "somebody else's %s was deleted", describe(before))
	case after.Replicas < before.Replicas && l.shown[by.confirm] == nil:
		o.violate(l, c.name, "foreign", "taking %s over leaves %d pods, and nobody has confirmed that", describe(before), after.Replicas)
	}
}

// judgePods sees that pods are of one version of the spec, and never of an earlier one again.
func (o *oracle) judgePods(l *law, c *cluster, after *object, by *passInfo) {
	first := by.generation
	if by.handsOver {
		first = 1 // the spec is the one from the beginning of the hand-over
	}
	for g := max(first, l.seen[c.name]); g <= by.generation; g++ {
		if l.spec(g).pods(c.name) == after.template {
			if !by.handsOver {
				l.seen[c.name] = g
			}
			return
		}
	}
	o.violate(l, c.name, "mixed", "its pods are %v, which generation %d does not ask for, nor any since %d", after.template, by.generation, l.seen[c.name])
}

// judgeReplicas sees that the number is what some choice of clusters gives, the same choice for all that a pass asks for.
func (o *oracle) judgeReplicas(l *law, c *cluster, before, after *object, by *passInfo) {
	if before != nil && before.Replicas == after.Replicas {
		return
	}
	if by.handsOver {
		o.judgeHandedOver(l, c, after, by)
		return
	}
	v := l.spec(by.generation)
	if v.Prefer != "" && v.Prefer != "Weighted" {
		return
	}
	picks, begun := l.picks[by.id]
	if !begun {
		picks = o.picks(l, v, by)
	}
	least, most := o.givenPaused(l, v, by)
	lowered := o.lowered(v, by)
	fit := slices.DeleteFunc(slices.Clone(picks), func(pick []string) bool {
		return !slices.ContainsFunc(lowered, func(low spec) bool {
			return gives(low, pick, c.name, after.Replicas, least, most)
		})
	})
	if len(fit) == 0 {
		if o.keeps(l, c.name, after.Replicas, by) {
			return
		}
		o.violate(l, c.name, "number", "it is to run %d; no choice of clusters that pass %d can have made gives that, of %v", after.Replicas, by.id, picks)
		return
	}
	l.picks[by.id] = fit
}

// keeps tells whether the number is one that an earlier pass can have decided, and that is kept because some cluster is missing for a moment:
// it may come back to its share.
func (o *oracle) keeps(l *law, name string, n int, by *passInfo) bool {
	decided, missing := false, false
	for _, r := range l.reads {
		if r.id > by.id || r.known == nil {
			continue
		}
		v := l.spec(r.generation)
		decided = decided || slices.ContainsFunc(o.picks(l, v, r), func(pick []string) bool { return gives(v, pick, name, n, 0, v.Replicas) })
		missing = missing || by.at.Sub(r.at) <= patience+5*time.Second && slices.ContainsFunc(o.w.names, func(other string) bool {
			return !r.chosen(v, other) && l.lately(v, other, r)
		})
	}
	return decided && missing
}

// judgeHandedOver: while a workload changes hands its clusters keep what they have, or get shares of another number.
func (o *oracle) judgeHandedOver(l *law, c *cluster, after *object, by *passInfo) {
	for g := range by.generation {
		v := l.spec(g + 1)
		if v.Prefer != "" && v.Prefer != "Weighted" {
			return
		}
		for n := range by.generation {
			v.Replicas = l.spec(n + 1).Replicas
			for _, pick := range subsets(nil, o.w.names) {
				if share, has := shares(v, pick)[c.name]; has && share == after.Replicas || after.Replicas == 0 {
					return
				}
			}
		}
	}
	o.violate(l, c.name, "number", "it is to run %d, which is no share of any number that was asked for", after.Replicas)
}

// chooses tells whether a spec's selectors choose a cluster.
func chooses(v spec, name string, f facts) bool {
	if !f.Known {
		return false
	}
	if len(v.Groups) > 0 {
		return slices.ContainsFunc(v.Groups, func(g []string) bool { return len(g) == 0 || slices.Contains(g, name) })
	}
	return (len(v.Names) == 0 || slices.Contains(v.Names, name)) && !slices.Contains(v.Exclude, name) && (!v.Label || f.Label)
}

// excludes tells whether the spec does not choose a cluster whatever labels it has.
func (s spec) excludes(name string) bool {
	return len(s.Names) > 0 && !slices.Contains(s.Names, name) || slices.Contains(s.Exclude, name)
}

// simple tells whether the clusters follow from the spec and the facts of now, whatever was before.
func (s spec) simple() bool { return s.Number == 0 && len(s.Groups) == 0 && s.Failover == "" }

// chosen tells whether a pass has read that a cluster is chosen.
func (p *passInfo) chosen(v spec, name string) bool {
	return chooses(v, name, p.known[name]) && (!p.settled || slices.Contains(p.selected, name))
}

// patience is for how long a cluster that is no longer chosen is gone on with.
const patience = 30 * time.Second

// picks are all choices of clusters that a pass can have made.
func (o *oracle) picks(l *law, v spec, by *passInfo) [][]string {
	var must, may []string
	for _, name := range o.w.names {
		f := by.known[name]
		switch {
		case !f.Known && !l.lately(v, name, by): // one that is not listed for a moment keeps its share
		case v.simple() && by.chosen(v, name) && f.Ready && f.Taint == "":
			must = append(must, name)
		case by.chosen(v, name) || l.lately(v, name, by),
			chooses(v, name, f) && o.ordered(l, name) > 0: // its backend may be about to choose it again
			may = append(may, name)
		}
	}
	return subsets(must, may)
}

// lately tells whether a cluster was chosen a moment ago, as far as passes have read.
func (l *law) lately(v spec, name string, by *passInfo) bool {
	lately := func(counts func(*passInfo) bool) bool {
		was, since := l.absent(by, func(r *passInfo) bool { return !r.handsOver && counts(r) }, v, name) // while it changes hands nothing is chosen
		return was && by.at.Sub(since) <= patience+5*time.Second
	}
	return lately(func(*passInfo) bool { return true }) || l.latelyByItsWords(name, by) ||
		lately(func(r *passInfo) bool { return l.spec(r.generation).clustersPart() == v.clustersPart() }) // other words may have chosen nothing
}

// latelyByItsWords is lately for the words that each pass had read: what was missing before an edit is waited for after it, too, and what an
// edit no longer chooses was chosen until a pass read it, however long ago the last one before was.
func (l *law) latelyByItsWords(name string, by *passInfo) bool {
	was, since := false, time.Time{}
	for _, r := range l.reads {
		switch {
		case r.id > by.id || r.known == nil || !r.settled || r.handsOver:
		case r.chosen(l.spec(r.generation), name):
			was, since = true, time.Time{}
		case since.IsZero():
			since = r.at
		}
	}
	return was && (since.IsZero() || by.at.Sub(since) <= patience+5*time.Second)
}

// absent tells whether passes have read a cluster to be chosen, and since when not any more. What a pass has read that was cut off ends no
// absence.
func (l *law) absent(by *passInfo, counts func(*passInfo) bool, v spec, name string) (was bool, since time.Time) {
	gone := false
	since = by.at
	for _, r := range l.reads {
		if r.id > by.id || r.known == nil || !r.settled || !counts(r) {
			continue
		}
		switch {
		case r.chosen(v, name) && (r.written || r.id == by.id || !gone):
			was, since, gone = true, time.Time{}, false
		case since.IsZero() && !r.chosen(v, name):
			since, gone = r.at, true
		}
	}
	if since.IsZero() {
		since = by.at
	}
	return was, since
}

// readTogether tells whether the first pass that read the words of some generation up to that one also read for the first time that a
// cluster is no longer chosen: what has begun goes on. It counts as the edit's: the record has no labels of before, so that nobody can tell
// which of the two takes the cluster out. While it is suspended, or handed over, no pass records anything of that, so that what they read is
// together with what the first one reads afterwards.
func (l *law) readTogether(upTo int64, by *passInfo, v spec, name string) bool {
	for g := int64(2); g <= upTo; g++ {
		if l.readWith(g, by, v, name) {
			return true
		}
	}
	return false
}

// leftFor tells whether a pass has found a reason to leave a cluster, and none has recorded since that it is chosen: it is left since then.
func (l *law) leftFor(reason func(v spec, r *passInfo) bool, by *passInfo, name string) (left bool) {
	for _, r := range l.reads {
		if r.id > by.id || r.known == nil || !r.settled {
			continue
		}
		v := l.spec(r.generation)
		left = reason(v, r) || left && (!r.written || !r.chosen(v, name))
	}
	return left
}

// isLeft tells whether a cluster is left since a pass that found a reason other than that it is not chosen: it would get nothing, the spec
// takes it out whatever labels it has, or failover gives it up.
func (o *oracle) isLeft(l *law, by *passInfo, name string) bool {
	unwanted := func(v spec, r *passInfo) bool {
		return o.unwanted(l, v, name, r) || v.Divided && v.Prefer != "" && v.Prefer != "Weighted" // by room it may be
	}
	takenOut := func(v spec, r *passInfo) bool { return r.written && !r.handsOver && v.excludes(name) }
	givenUp := func(v spec, r *passInfo) bool {
		return v.Failover != "" && (!r.known[name].Ready || r.known[name].Taint == "NoExecute")
	}
	return l.leftFor(unwanted, by, name) || l.leftFor(takenOut, by, name) || l.leftFor(givenUp, by, name)
}

// leftBefore are the clusters that were to be left by the last pass that had not read an edit: for half a minute they had not been
// chosen, and they were no more than half of all.
func (l *law) leftBefore(edit int64, by *passInfo) map[string]bool {
	var last *passInfo
	for _, r := range l.reads {
		if r.id <= by.id && r.known != nil && r.settled && r.written && r.generation < edit {
			last = r
		}
	}
	left, gone, total := map[string]bool{}, 0, 0
	if last == nil {
		return left
	}
	v := l.spec(last.generation)
	for name, base := range l.base {
		total += base
		_, since := l.absent(last, func(*passInfo) bool { return true }, v, name)
		if !last.chosen(v, name) && last.at.Sub(since) >= patience-2*time.Second {
			left[name], gone = true, gone+base
		}
	}
	if 2*gone > total {
		clear(left)
	}
	return left
}

func (l *law) readWith(from int64, by *passInfo, v spec, name string) bool {
	chosen := false
	for _, r := range l.reads {
		switch {
		case r.id > by.id || r.known == nil || !r.settled:
		case !r.written || r.handsOver || l.spec(r.generation).Suspend: // what it has seen is not recorded
		case r.generation < from:
			chosen = r.chosen(l.spec(r.generation), name)
		case r.chosen(v, name):
			return false
		}
	}
	return chosen
}

// subsets are some names with each set of others.
func subsets(must, may []string) [][]string {
	all := make([][]string, 0, 1<<len(may))
	for bits := range 1 << len(may) {
		pick := slices.Clone(must)
		for i, name := range may {
			if bits&(1<<i) != 0 {
				pick = append(pick, name)
			}
		}
		slices.Sort(pick)
		all = append(all, pick)
	}
	return all
}

// shares are what clusters get: each its own number, and the others the number, or its part of it by Webster's method, with one for each that has a weight as long as
// there are enough.
func shares(v spec, clusters []string) map[string]int {
	out := map[string]int{}
	weights := map[string]int{}
	total := v.Replicas
	for _, name := range clusters {
		if n, own := v.Own[name]; own {
			if most, bound := v.most[name]; bound {
				n = min(n, most)
			}
			out[name] = n
			total -= n
			continue
		}
		out[name], weights[name] = v.Replicas, 1
		if v.Weights != nil {
			weights[name] = v.Weights[name]
		}
		if v.Divided {
			out[name] = 0
		}
	}
	if !v.Divided {
		return out
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(weights)), func(name string) bool { return weights[name] == 0 })
	if len(names) == 0 {
		return out
	}
	for range max(0, total) {
		out[slices.MinFunc(names, func(a, b string) int {
			if (out[a] == 0) != (out[b] == 0) {
				return cmp.Compare(out[a], out[b])
			}
			return cmp.Or(cmp.Compare(weights[b]*(2*out[a]+1), weights[a]*(2*out[b]+1)), cmp.Compare(out[a], out[b]), cmp.Compare(a, b))
		})]++
	}
	return out
}

// judgeLoss sees that pods that go have their reason.
func (o *oracle) judgeLoss(l *law, c *cluster, before, after *object, by *passInfo) {
	if before == nil || after != nil && after.Replicas >= before.Replicas {
		return
	}
	if after == nil && by.handsOver {
		o.violate(l, c.name, "hand-over", "an object with %d pods was deleted while the workload changes hands", before.Replicas)
		return
	}
	v := l.spec(by.generation)
	if after == nil {
		o.judgeAbsence(l, v, c, by)
	}
	o.judgeShare(l, v, c, before, after, by)
}

// judgeAbsence: one absence in what a backend says never means delete.
func (o *oracle) judgeAbsence(l *law, v spec, c *cluster, by *passInfo) {
	if !v.simple() || v.Prefer != "" || by.chosen(v, c.name) {
		return
	}
	from := by.generation // since when the spec has chosen by the same words
	for from > 1 && l.spec(from-1).clustersPart() == v.clustersPart() {
		from--
	}
	begins := from > 1 && l.baseOf < from
	switch {
	case o.unwanted(l, v, c.name, by), o.isLeft(l, by, c.name), begins && v.excludes(c.name): // the edit takes it out, whatever its labels
		return
	case v.Approval && l.takesOut[c.name]: // that is what was approved, and nothing else
		return
	case !v.Approval && (begins && chooses(l.spec(from-1), c.name, by.known[c.name]) || l.readTogether(from, by, v, c.name)):
		return // under the same facts, or nobody can tell
	}
	was, since := l.absent(by, func(*passInfo) bool { return true }, v, c.name)
	if was && by.at.Sub(since) < patience-2*time.Second {
		o.violate(l, c.name, "absence", "it is left by pass %d, and was chosen a moment ago", by.id)
	}
}

// unwanted tells whether a cluster would get nothing if it were chosen.
func (o *oracle) unwanted(l *law, v spec, name string, by *passInfo) bool {
	least, most := o.keptPaused(l, v, by)
	return v.Divided && slices.ContainsFunc(o.picks(l, v, by), func(pick []string) bool {
		if !slices.Contains(pick, name) {
			pick = append(slices.Clone(pick), name)
		}
		return gives(v, pick, name, 0, least, most)
	})
}

// ordered is what a cluster is to run as far as backends were told.
func (o *oracle) ordered(l *law, name string) int {
	most := 0
	if live := o.w.clusters[name].objects[l.slot.name]; live != nil && live.owner.uid == l.uid {
		most = live.Replicas
	}
	for _, b := range o.w.backends {
		if r := b.orders[where{l.slot.name, name}]; r != nil && r.uid == l.uid && r.removal == "" && r.has {
			most = max(most, r.content.Replicas)
		}
		if p := b.places[l.slot.name]; p != nil && p.uid == l.uid {
			most = max(most, p.want[name].content.Replicas)
		}
	}
	return most
}

// agreed tells whether a person has confirmed that a cluster loses so much, and uses the confirmation up once all that it names is gone.
func (o *oracle) agreed(l *law, name string, after *object, by *passInfo) bool {
	removal := l.shown[by.confirm]
	to, named := removal[name]
	if !named || !l.agreed[by.confirm] || after != nil && after.Replicas < to || after == nil && to > 0 {
		return false
	}
	delete(l.base, name) // it counts anew when it has more again
	if to > 0 {
		l.base[name] = to
	}
	l.raised = true
	done := true
	for other, n := range removal {
		gone := other == name || o.ordered(l, other) <= n
		if done = done && gone; gone && n == 0 {
			delete(l.base, other) // what had gone before it was confirmed as well
		}
	}
	if done {
		delete(l.agreed, by.confirm)
	}
	return true
}

// present is what members run, as it was before one of them changes.
func (o *oracle) present(l *law, c *cluster, before *object) int {
	sum := before.Replicas
	for name, other := range o.w.clusters {
		if live := other.objects[l.slot.name]; name != c.name && live != nil && live.owner.uid == l.uid {
			sum += live.Replicas
		}
	}
	return sum
}

// judgeShare: what no edit asks for may go up to half of what ran when the spec was last carried out, over any number of passes.
func (o *oracle) judgeShare(l *law, v spec, c *cluster, before, after *object, by *passInfo) {
	if l.base == nil || by.generation < l.baseOf {
		return
	}
	if by.id < l.madeAnew { // it was on its way when the record was lost, and counts for nothing since
		if delete(l.base, c.name); after != nil {
			l.base[c.name] = after.Replicas
		}
		return
	}
	if o.agreed(l, c.name, after, by) || v.Replicas == 0 {
		return
	}
	if slices.ContainsFunc(l.reads, func(r *passInfo) bool { return r.deleting }) {
		return
	}
	newest := by.generation // orders of an earlier pass may be carried out among those of a later one
	for _, r := range l.reads {
		newest = max(newest, r.generation)
	}
	edited, divided, more, excused, asks := false, false, false, 0, v.Replicas
	var left map[string]bool
	for g := l.baseOf; g < newest; g++ {
		a, b := l.spec(g), l.spec(g+1)
		if !edited && a.clustersPart() != b.clustersPart() {
			edited, left = true, l.leftBefore(g+1, by)
			for name, read := range l.leftBy {
				left[name] = left[name] || read <= g
			}
		}
		divided = divided || a.divisionPart() != b.divisionPart()
		more = more || b.Replicas > a.Replicas
		asks = min(asks, a.Replicas, b.Replicas)
		if fewer := max(0, a.Replicas-b.Replicas); b.Divided {
			excused += fewer
		} else {
			excused += fewer * len(l.base)
		}
	}
	// What the spec of now gives clusters under what was true of them then, with those that it adds: an edit asks for no more of those that go.
	asked := shares(v, slices.DeleteFunc(slices.Clone(o.w.names), func(name string) bool {
		_, counts := l.base[name]
		return counts && !chooses(v, name, l.baseFacts[name]) || !counts && !by.chosen(v, name)
	}))
	fall, total, gone, stays, borne, runsOn := 0, 0, 0, 0, 0, 0
	for name, base := range l.base {
		now := o.ordered(l, name)
		if name == c.name {
			now = 0
			if after != nil {
				now = after.Replicas
			}
		}
		if l.joinedBy[name] == by.id { // what it ran before counts, whichever cluster the pass reaches first
			stays += min(l.joinedWith[name], now)
			if o.everLeft(l, name) {
				runsOn += min(l.joinedWith[name], now)
			}
			continue
		}
		live := o.w.clusters[name].objects[l.slot.name]
		runs := base
		if live != nil && l.raised { // what was confirmed may have changed other clusters' shares as well
			base, runs = min(base, live.Replicas), max(base, live.Replicas)
		}
		total += base
		runsOn += min(runs, now)
		lost := max(0, base-now)
		if l.lost[name] {
			borne += lost
			stays += base - lost // failover may have given it up, and what runs there stays all the same
			continue
		}
		fall += lost
		if now == 0 && chooses(v, name, l.baseFacts[name]) && !by.chosen(v, name) &&
			!v.excludes(name) && !o.unwanted(l, v, name, by) && !l.takenOut(v, name, by) && !left[name] {
			gone += min(base, asked[name])
		} else if live != nil && name != c.name && (by.chosen(v, name) || !o.beingLeft(l, name)) {
			stays += max(min(base, now), live.Replicas) // an edit may have raised it
		} else {
			stays += min(base, now)
		}
	}
	runs := 0 // what an edit has raised counts as well
	for _, name := range o.w.names {
		runs += max(o.ordered(l, name), l.base[name])
		live := o.w.clusters[name].objects[l.slot.name]
		if _, counts := l.base[name]; !counts && live != nil && live.owner.uid == l.uid && (by.chosen(v, name) || !o.beingLeft(l, name)) {
			stays += live.Replicas                         // an edit has added it, and it may be gone on with for a moment
			if by.chosen(v, name) && o.everLeft(l, name) { // it is back with what it ran
				runsOn += min(live.Replicas, o.ordered(l, name))
			}
		}
	}
	switch {
	case edited && v.Divided && 2*stays >= v.Replicas: // no more than what is asked for is measured
	case edited:
		if gone > excused && 2*(gone-excused) > gone+stays-excused && v.simple() {
			o.violate(l, c.name, "edit", "%d of %d replicas go with clusters that no edit takes out, by an edit of something else", gone, gone+stays)
		}
	case divided:
		if gone > excused && 2*(gone-excused) > max(gone+stays+borne, runs)-excused {
			o.violate(l, c.name, "share", "%d of %d replicas go with clusters, which no edit asks for", gone, gone+stays)
		}
	case v.Divided && l.spec(l.baseOf).Divided && 2*runsOn >= asks-borne: // of what is asked for half goes on where it ran, whatever had joined
	case more && 2*(fall-excused) <= runs-excused:
	case 2*(fall-excused) > max(total, o.present(l, c, before))-excused: // clusters that have joined run some, too
		o.violate(l, c.name, "share", "%d of %d replicas go, of which edits ask for %d", fall, total, excused)
	}
}

// takenOut tells whether edits since the spec was last carried out take a cluster out: what a person has approved says so, or else they do it
// under the same facts, or nobody can tell.
func (l *law) takenOut(v spec, name string, by *passInfo) bool {
	if v.Approval {
		return l.takesOut[name]
	}
	return chooses(l.spec(l.baseOf), name, by.known[name]) || l.readTogether(by.generation, by, v, name)
}

// judgeNumbered: a cluster that is no longer chosen gets no more by a number of its own than a pass can have given it that found it chosen.
func (o *oracle) judgeNumbered(l *law, v spec, c *cluster, before, after *object, by *passInfo) {
	own, has := v.Own[c.name]
	if !has || own != after.Replicas || by.handsOver || by.chosen(v, c.name) || before != nil && before.Replicas >= after.Replicas {
		return
	}
	if !slices.ContainsFunc(l.reads, func(r *passInfo) bool {
		old := l.spec(r.generation)
		return r.id <= by.id && r.known != nil && (r.handsOver || r.chosen(old, c.name) && (old.Prefer != "" || slices.ContainsFunc(o.picks(l, old, r), func(pick []string) bool {
			return gives(old, pick, c.name, after.Replicas, 0, old.Replicas)
		})))
	}) {
		o.violate(l, c.name, "number", "it is to run %d of its own, and pass %d has not found it chosen", own, by.id)
	}
}
