// Package bulk moves many FleetWorkloads to one backend: whose spec.backend is to be set next, who is counted as what, and when it is over.
// What it knows it reads from the FleetWorkloads, so that whoever begins again in the middle goes on from there.
package bulk

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Rules say how the FleetWorkloads are moved.
type Rules struct {
	// To is the backend that is to have them.
	To string
	// AtOnce is how many may be under way at the same time, 1 or more. Those that wait for a person are not counted.
	AtOnce int
	// MaxFailures is how many may have failed and others still begin.
	MaxFailures int
	// Patience is how long one may be stalled before it has failed.
	Patience time.Duration
	// Retry also moves those whose last migration to the backend was turned round.
	Retry bool
	// Leave is over as soon as nothing more is to begin, without waiting for what is under way.
	Leave bool
}

// Migration is the moving of many FleetWorkloads.
type Migration struct {
	rules   Rules
	entries []*entry
	byKey   map[types.NamespacedName]*entry
	counts  Counts
	// first is where to look for the next one to begin: none before it is to go.
	first int
	// notable are those whose state may change by itself, or that a person should look at.
	notable map[*entry]bool
	stopped bool
	news    []Entry
	// took is how long those took, all together, that arrived without waiting for a person.
	took  time.Duration
	timed int
}

// entry is one FleetWorkload, and what is remembered of it.
type entry struct {
	Entry
	index int
	// tried is true once its spec has asked for the backend: from then on another one there is somebody's change of mind.
	tried bool
	// already is true when it was there at the beginning.
	already bool
	// delayed is true once it has waited for a person: how long that takes tells nothing of others.
	delayed bool
	gone    bool
	refused string
}

// Entry is where one of the FleetWorkloads stands.
type Entry struct {
	FleetWorkload *v1alpha1.FleetWorkload
	Standing
	// From is the backend that had it before.
	From string
	// Begun is when its migration began, and Ended when it had arrived; zero when that has not happened, or was not seen.
	Begun, Ended time.Time
	// Phases are those that were seen, in their order.
	Phases []Phase
	// Clusters is how many it runs on, and HandedOver how many of them are the new backend's.
	Clusters, HandedOver int
}

// Phase is a phase of a migration and since when it is known.
type Phase struct {
	Phase v1alpha1.MigrationPhase `json:"phase"`
	Wave  *int32                  `json:"wave,omitempty"`
	Since time.Time               `json:"since"`
}

// Step is what is to be done next.
type Step struct {
	// Start is the one whose spec.backend is to be set; nil when none is.
	Start *v1alpha1.FleetWorkload
	// Over is true when nothing is awaited any more.
	Over bool
	// PollAfter is after what time to ask again although nothing has happened; 0 when that changes nothing.
	PollAfter time.Duration
}

// New begins with the FleetWorkloads that are to be moved, in the order in which they are to begin.
func New(rules Rules, chosen []*v1alpha1.FleetWorkload, now time.Time) *Migration {
	m := &Migration{rules: rules, byKey: map[types.NamespacedName]*entry{}, notable: map[*entry]bool{}}
	for i, fw := range chosen {
		e := &entry{index: i, Entry: Entry{FleetWorkload: fw, Standing: Standing{State: ToGo}}}
		m.entries, m.byKey[keyOf(fw)] = append(m.entries, e), e
		m.counts.of(ToGo, 1)
		m.see(e, fw, now)
	}
	m.news = nil // how it was at the beginning is none
	return m
}

// See takes in the newest state of a FleetWorkload. Others than the chosen ones are no concern.
func (m *Migration) See(fw *v1alpha1.FleetWorkload, now time.Time) {
	if e := m.byKey[keyOf(fw)]; e != nil {
		e.gone = false
		m.see(e, fw, now)
	}
}

// Gone says that a FleetWorkload is not there any more.
func (m *Migration) Gone(key types.NamespacedName, now time.Time) {
	if e := m.byKey[key]; e != nil {
		e.gone = true
		m.judge(e, now)
	}
}

// Refuse says that spec.backend could not be set, and why.
func (m *Migration) Refuse(key types.NamespacedName, why string, now time.Time) {
	if e := m.byKey[key]; e != nil {
		e.refused = why
		m.judge(e, now)
	}
}

// Next says what is to be done. Whoever is to start is seen or refused before it is asked again.
func (m *Migration) Next(now time.Time) Step {
	step := m.wait(now)
	m.stopped = m.stopped || m.counts.Failed > m.rules.MaxFailures
	for m.first < len(m.entries) && m.entries[m.first].State != ToGo {
		m.first++
	}
	more := !m.stopped && m.first < len(m.entries)
	switch busy := m.counts.Busy(); {
	case more && busy < m.rules.AtOnce:
		step.Start = m.entries[m.first].FleetWorkload
	case !more && (busy == 0 || m.rules.Leave):
		step.Over = true
	}
	return step
}

// wait judges those anew whose patience may be over, and says when the next one's is.
func (m *Migration) wait(now time.Time) (step Step) {
	for _, e := range m.sorted(func(e *entry) bool { return !e.Until.IsZero() }) {
		m.judge(e, now)
		if left := e.Until.Sub(now); !e.Until.IsZero() && (step.PollAfter == 0 || left < step.PollAfter) {
			step.PollAfter = left
		}
	}
	return step
}

// Stopped tells whether no more begin because too many have failed. It stays so, also when one of these goes on.
func (m *Migration) Stopped() bool { return m.stopped }

// News are those whose state has changed since the last call, in the order in which it did.
func (m *Migration) News() []Entry {
	news := m.news
	m.news = nil
	return news
}

// Notable are those that are under way, wait for a person, or have failed, in their order.
func (m *Migration) Notable() (all []Entry) {
	for _, e := range m.sorted(func(*entry) bool { return true }) {
		all = append(all, e.Entry)
	}
	return all
}

// All are all of them, in their order.
func (m *Migration) All() (all []Entry) {
	for _, e := range m.entries {
		all = append(all, e.Entry)
	}
	return all
}

func (m *Migration) sorted(which func(*entry) bool) (all []*entry) {
	for e := range m.notable {
		if which(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.index - b.index })
	return all
}

// see remembers what later states no longer tell.
func (m *Migration) see(e *entry, fw *v1alpha1.FleetWorkload, now time.Time) {
	e.FleetWorkload, e.From = fw, fromOf(fw, m.rules.To)
	if asked := fw.Spec.Backend == m.rules.To; asked && !e.tried {
		e.tried = true
		if there(fw, m.rules.To) {
			e.already = true
		} else {
			e.Begun = begunAt(fw, m.rules.To, now)
		}
	}
	if record := fw.Status.Migration; record != nil && record.Phase != "" && record.To == m.rules.To {
		e.pass(Phase{Phase: record.Phase, Wave: record.Wave, Since: now})
	}
	m.counts.Clusters -= e.Clusters
	m.counts.HandedOver -= e.HandedOver
	e.Clusters, e.HandedOver = clustersOf(fw, m.rules.To)
	m.counts.Clusters += e.Clusters
	m.counts.HandedOver += e.HandedOver
	m.judge(e, now)
}

func (e *entry) pass(next Phase) {
	if n := len(e.Phases); n > 0 {
		last := e.Phases[n-1]
		sameWave := (last.Wave == nil) == (next.Wave == nil) && (last.Wave == nil || *last.Wave == *next.Wave)
		if last.Phase == next.Phase && sameWave {
			return
		}
	}
	e.Phases = append(slices.Clip(e.Phases), next)
}

// judge says anew what one counts as.
func (m *Migration) judge(e *entry, now time.Time) {
	before := e.State
	e.Standing = m.rules.stand(e, now)
	e.delayed = e.delayed || e.State == Waiting || e.State == Failed
	if e.State == Moved && e.Ended.IsZero() {
		e.Ended = now
		if !e.delayed {
			m.took, m.timed = m.took+max(0, now.Sub(e.Begun)), m.timed+1
		}
	}
	switch e.State {
	case UnderWay, Waiting, Failing, Failed:
		m.notable[e] = true
	default:
		delete(m.notable, e)
	}
	if e.State == ToGo {
		m.first = min(m.first, e.index)
	}
	if e.State != before {
		m.counts.of(before, -1)
		m.counts.of(e.State, 1)
		m.news = append(m.news, e.Entry)
	}
}

func keyOf(fw *v1alpha1.FleetWorkload) types.NamespacedName {
	return types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}
}

// Order is in which order FleetWorkloads begin.
type Order string

const (
	// OrderName begins with the first namespace, and in it with the first name.
	OrderName Order = "name"
	// OrderSize begins with those on the fewest clusters, and of these with those of the fewest replicas: what goes wrong first harms least.
	OrderSize Order = "size"
)

// Sort puts FleetWorkloads into an order. One whose size is not known comes last.
func Sort(all []*v1alpha1.FleetWorkload, order Order) {
	slices.SortFunc(all, func(a, b *v1alpha1.FleetWorkload) int {
		if order == OrderSize {
			if c := slices.Compare(sizeOf(a), sizeOf(b)); c != 0 {
				return c
			}
		}
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
}
