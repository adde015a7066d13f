// SPDX-License-Identifier: Apache-2.0

// Package oracle judges what is seen on member clusters. It knows the history of specs and of facts about clusters, and
// nothing of the operator, of faults, or of what any backend says: whatever goes, restarts or turns unready must follow from
// what was asked for. It is pure.
//
// What was asked for are all versions of the spec, under all facts, since the workload was last seen settled: an operator, a
// backend or a member may be slow, and carry out any of them now. A change of backend asks for nothing, nor does a fault.
package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

const (
	// quiet is how long facts must not have changed for a workload to count as settled: what was set off by an earlier fact
	// may still be on its way.
	quiet = 10 * time.Second
	// patience is how long a cluster that has lost its label may be gone on with, and be left after that: half a minute, and what passes take.
	patience = 45 * time.Second
	// lastActions is how many of them a violation names.
	lastActions = 10
)

// Oracle judges one soak. It is not safe for concurrent use.
type Oracle struct {
	begin     time.Time
	facts     []fact
	workloads map[history.Key]*workload
	actions   []entry

	// Violations are what must not have been, in the order in which it was seen.
	Violations []Violation
	// Licences counts what went or changed as it was asked, by what asked for it.
	Licences map[string]int
}

// entry is an action with its time.
type entry struct {
	at   time.Time
	what history.Action
}

// fact is what is true of the clusters from a moment on.
type fact struct {
	at       time.Time
	why      string
	clusters history.Facts
}

// version is what a workload was asked to be from a moment on.
type version struct {
	begin time.Time
	// done is when the API server had taken it; zero before.
	done time.Time
	why  string
	// absent asks for nothing to be there. silent asks for nothing new: what is there belongs to nobody.
	absent, silent bool
	spec           history.Spec
	// base are the facts against which removals are measured.
	base history.Facts
	// uid and generation are what the API server made of it.
	uid        string
	generation int64
}

// asks tells whether the version lets anything be changed.
func (v version) asks() bool { return v.absent || !v.silent && !v.spec.Suspended }

// mark is a moment at which a workload was as its newest version asked under the newest facts.
type mark struct {
	at            time.Time
	version, fact int
}

// workload is what is known of one FleetWorkload and its member objects.
type workload struct {
	key      history.Key
	versions []version
	marks    []mark
	members  map[string]*member
	// cache of the outcomes of a window.
	window   window
	outcomes []outcome
}

// member is what one cluster has of a workload.
type member struct {
	object *Object
	pods   map[string]Pod
	// taken is the object that the cluster took along as it left.
	taken *Object
}

// New begins with nothing on the clusters.
func New(facts history.Facts, at time.Time) *Oracle {
	return &Oracle{
		begin: at, facts: []fact{{at: at, clusters: facts}},
		workloads: map[history.Key]*workload{}, Licences: map[string]int{},
	}
}

// Facts are the newest ones.
func (o *Oracle) Facts() history.Facts { return o.facts[len(o.facts)-1].clusters }

func (o *Oracle) workload(k history.Key) *workload {
	w, known := o.workloads[k]
	if !known {
		w = &workload{key: k, versions: []version{{begin: o.begin, done: o.begin, absent: true}}, marks: []mark{{at: o.begin}}, members: map[string]*member{}}
		o.workloads[k] = w
	}
	return w
}

func (w *workload) last() *version { return &w.versions[len(w.versions)-1] }

func (w *workload) on(cluster string) *member {
	m, known := w.members[cluster]
	if !known {
		m = &member{pods: map[string]Pod{}}
		w.members[cluster] = m
	}
	return m
}

// Begin notes an action when it is about to be carried out: from now on its effect may be seen.
func (o *Oracle) Begin(a history.Action, at time.Time) {
	o.actions = append(o.actions, entry{at: at, what: a})
	switch a.Verb {
	case history.Apply, history.Delete, history.Clear, history.Confirm:
		w := o.workload(a.Workload)
		w.versions = append(w.versions, o.next(w, a, at))
	default:
		if a.Fact != nil {
			o.facts = append(o.facts, fact{at: at, why: a.Kind, clusters: o.Facts().After(a)})
		}
	}
}

// next is the version that an action makes.
func (o *Oracle) next(w *workload, a history.Action, at time.Time) version {
	before := *w.last()
	v := version{begin: at, why: a.Kind}
	switch a.Verb {
	case history.Clear:
		v.absent = true
	case history.Delete:
		v.absent, v.silent = !a.Spec.Orphan, a.Spec.Orphan
	case history.Confirm:
		v = before
		v.begin, v.done, v.why, v.base = at, time.Time{}, a.Kind, o.Facts()
	default:
		v.spec, v.base = a.Spec.Clone(), o.Facts()
		if before.base != nil {
			v.base = share.Base(w.key, before.spec, v.spec, before.base, o.Facts())
		}
	}
	return v
}

// Carried notes that the API server has taken the newest version, and what it made of it.
func (o *Oracle) Carried(k history.Key, uid string, generation int64, at time.Time) {
	v := o.workload(k).last()
	v.done, v.uid, v.generation = at, uid, generation
}

// Gone notes that a FleetWorkload is no longer there, by which its backend has confirmed that nothing of it is.
func (o *Oracle) Gone(k history.Key, at time.Time) {
	w := o.workload(k)
	v := w.last()
	v.done = at
	if v.absent {
		w.marks = append(w.marks, mark{at: at, version: len(w.versions) - 1, fact: len(o.facts) - 1})
	}
}

// Settled notes that the FleetWorkload says that it is as asked. It counts when that is about the newest version, facts have
// been quiet, and members are seen to be so.
func (o *Oracle) Settled(k history.Key, uid string, generation int64, at time.Time) bool {
	w := o.workload(k)
	v := w.last()
	newest := !v.done.IsZero() && !v.absent && !v.silent && v.uid == uid && v.generation == generation
	if !newest || at.Sub(o.facts[len(o.facts)-1].at) < quiet || o.justUnlabelled(k, at) || o.Differs(k) != "" {
		return false
	}
	if after, may := o.unheld(w); may && w.differsFrom(v.spec, after, o.Facts()) == "" {
		v.base = o.Facts() // that is what ran when it was carried out
	}
	m := mark{at: at, version: len(w.versions) - 1, fact: len(o.facts) - 1}
	if newest := w.marks[len(w.marks)-1]; newest.version != m.version || newest.fact != m.fact {
		w.marks = append(w.marks, m)
	}
	return true
}

// Differs says how members are not as the newest version asks under the newest facts; it is empty when they are, or when
// nothing is asked of them.
func (o *Oracle) Differs(k history.Key) string {
	w := o.workload(k)
	v := w.last()
	if v.silent {
		return ""
	}
	if v.absent {
		return w.differsFrom(history.Spec{}, share.Shares{}, o.Facts())
	}
	if after, may := o.unheld(w); may && w.differsFrom(v.spec, after, o.Facts()) == "" {
		return ""
	}
	first := ""
	for _, out := range share.Cases(k, v.spec, v.base, o.Facts(), w.runs) {
		shares, _ := share.Asked(k, v.spec, share.Without(v.base, out), share.Without(o.Facts(), out))
		differs := w.differsFrom(v.spec, shares, o.Facts())
		if differs == "" {
			return ""
		}
		if first == "" {
			first = differs
		}
	}
	return first
}

// unheld is what the newest version asks for under the newest facts. It may be carried out, however much that takes away of what the version came to
// under earlier facts, while the version itself has not been carried out and its edit excuses what goes of what ran before.
func (o *Oracle) unheld(w *workload) (after share.Shares, may bool) {
	m, v := w.marks[len(w.marks)-1], w.last()
	after = share.Of(w.key, v.spec, o.Facts())
	return after, len(w.versions)-1 > m.version && o.excuses(w, m, after, o.Facts())
}

// excuses tells whether an edit that is not carried out yet may come to these shares: little of what ran before it goes, or little would go by
// these facts alone. What the facts were when it was written is known to nobody who was away then.
func (o *Oracle) excuses(w *workload, m mark, after share.Shares, facts history.Facts) bool {
	ran := o.ran(w, m)
	if !share.Held(ran, after) {
		return true
	}
	return len(after) > 0 && !share.Held(ran, share.Of(w.key, w.versions[m.version].spec, facts))
}

// ran is what ran when a workload was settled.
func (o *Oracle) ran(w *workload, m mark) share.Shares {
	v := w.versions[m.version]
	if v.absent {
		return nil
	}
	ran, _ := share.Asked(w.key, v.spec, v.base, o.facts[m.fact].clusters)
	return ran
}

// Unsure tells whether a cluster could not be had at some time since the workload was last settled. An edit that was carried
// out meanwhile may have given its share to others; that it goes back later is asked for by nobody, and may be held.
func (o *Oracle) Unsure(k history.Key) bool {
	w := o.workload(k)
	for _, f := range o.facts[w.marks[len(w.marks)-1].fact:] {
		for _, name := range share.Chosen(k, w.last().spec.Clusters, f.clusters) {
			if !f.clusters[name].Available() {
				return true
			}
		}
	}
	return false
}

// Holds tells whether what the newest version comes to under the newest facts takes so much away that a person has to confirm it.
func (o *Oracle) Holds(k history.Key) bool {
	v := o.workload(k).last()
	_, held := share.Asked(k, v.spec, v.base, o.Facts())
	return held
}

// runs tells whether a cluster that cannot be had is known to run the workload, so that it keeps its share.
func (w *workload) runs(cluster string) bool { return w.on(cluster).object != nil && !w.adopting() }

// adopting tells whether what an earlier FleetWorkload has left is not taken over yet: nobody knows of what is on a cluster that
// cannot be had.
func (w *workload) adopting() bool {
	earlier := func(v version) bool { return v.absent || v.silent }
	return w.last().spec.Adopt && !earlier(*w.last()) && slices.ContainsFunc(w.versions[w.marks[len(w.marks)-1].version:], earlier)
}

func (w *workload) differsFrom(spec history.Spec, shares share.Shares, facts history.Facts) string {
	var differ []string
	for _, cluster := range facts.Names() {
		if !facts[cluster].Joined {
			continue
		}
		replicas, wanted := shares[cluster]
		if text := w.on(cluster).differsFrom(wanted, replicas, spec.On(cluster)); text != "" {
			differ = append(differ, cluster+" "+text)
		}
	}
	return strings.Join(differ, ", ")
}

func (m *member) differsFrom(wanted bool, replicas int, pods history.Template) string {
	switch {
	case !wanted && m.object == nil && len(m.live()) == 0:
		return ""
	case !wanted:
		return fmt.Sprintf("still has it, with %d pods", len(m.live()))
	case m.object == nil:
		return fmt.Sprintf("lacks it, wanted %d", replicas)
	case m.object.Replicas != replicas:
		return fmt.Sprintf("asks for %d, wanted %d", m.object.Replicas, replicas)
	case m.object.Pods != pods:
		return fmt.Sprintf("asks for %v, wanted %v", m.object.Pods, pods)
	}
	right := 0
	for _, p := range m.live() {
		if p.Ready && p.Pods == pods {
			right++
		}
	}
	if right != replicas || len(m.live()) != replicas {
		text := fmt.Sprintf("has %d pods, %d of them right, wanted %d", len(m.live()), right, replicas)
		if others := len(m.pods) - len(m.live()); others > 0 {
			text += fmt.Sprintf("; %d more are on their way out, or of an object that is gone", others)
		}
		return text
	}
	return ""
}

// live are the pods that are not on their way out, and not of an object that is gone: those are for the member to collect,
// which may take it long.
func (m *member) live() []Pod {
	var live []Pod
	for _, uid := range slices.Sorted(maps.Keys(m.pods)) {
		p := m.pods[uid]
		stray := p.Owner != "" && m.object != nil && p.Owner != m.object.UID
		if !p.Terminating && !stray {
			live = append(live, p)
		}
	}
	return live
}
