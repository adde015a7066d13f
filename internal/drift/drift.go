// Package drift tells when somebody else has changed a workload's object on a cluster, or a companion's, and when it is whole again, from what a
// backend has reported before and reports now. It tells only what is sure: a change that it does not see is told by nobody, and one that it told wrongly would make all it tells
// worthless. It is pure.
package drift

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	// putBack is by how much the generation of an object rises that somebody has changed, and that was put back. What rises by less may have
	// got an annotation, or a default that is new on the cluster.
	putBack = 2
	// settle is how long a report may be behind the backend's own writes: it is made from a watch of the cluster.
	settle = 30 * time.Second
)

// Memory is what was last proven of each object. The zero value remembers nothing.
type Memory map[object]proven

// object is the workload's on a cluster, or a companion's of that title there.
type object struct{ cluster, companion string }

// String says it for a person.
func (o object) String() string {
	if o.companion == "" {
		return "the object there"
	}
	return "the companion " + o.companion + " there"
}

// proven is what a report has proven.
type proven struct {
	order backends.Order
	uid   types.UID
	// generation is the newest one, and since is when it was first reported.
	generation int64
	since      time.Time
	// stood is the generation that had stood before it rose by less than a change that is put back: what was changed may be reported, as if it
	// were whole, before it is put back. 0 if there is none.
	stood int64
	// lost is true from when others were seen to have changed the object until it is whole again.
	lost bool
	// told is when others were told to have changed it, zero when it is whole again. An order to put it back is another one, and keeps it.
	told time.Time
}

// Change is what somebody else has changed.
type Change struct {
	Cluster string
	// Companion is the kind and name of a companion; empty when it is the workload's own object.
	Companion string
	// Others are who has changed what; empty when that is not known.
	Others string
	// From and To are the object's generations, where they tell.
	From, To int64
	// Held is true when it is not put back for now, and Left when it stays (spec.drift Report).
	Held, Left bool
}

// String says it for a person.
func (c Change) String() string {
	text := "cluster " + c.Cluster + ": somebody else has changed " + object{c.Cluster, c.Companion}.String()
	switch {
	case c.Others == "":
		return text + fmt.Sprintf(": generation %d has become %d, while what is delivered has stayed the same", c.From, c.To)
	case c.Companion != "" && c.Held: // what becomes of it depends on why the cluster is held
	case c.Left:
		text += ", and it is left as it is (spec.drift Report)"
	case c.Held:
		text += ", where it is held, so that it is left as it is"
	default:
		text += ", and it is put back"
	}
	return text + ": " + c.Others
}

// PutBack is an object that has all again that is delivered, after somebody else was told to have changed it.
type PutBack struct {
	Cluster string
	// Companion is the kind and name of a companion; empty when it is the workload's own object.
	Companion string
	// After is how long after the change was seen; 0 when it was put back before anybody saw that.
	After time.Duration
}

// String says it for a person.
func (p PutBack) String() string {
	text := "cluster " + p.Cluster + ": " + object{p.Cluster, p.Companion}.String() + " is what is delivered again"
	if p.After == 0 {
		return text + ", and was so when the change was seen"
	}
	return text + ", " + duration.HumanDuration(p.After) + " after the change was seen"
}

// look is what comes of comparing reports.
type look struct {
	before, after Memory
	now           time.Time
	changes       []Change
	back          []PutBack
}

// Look compares what is reported with what was proven before. generations is false for kinds whose generation moves by itself.
func Look(before Memory, reported []backends.ClusterObservation, generations bool, now time.Time) (Memory, []Change, []PutBack) {
	l := look{before: before, after: make(Memory, len(reported)), now: now}
	for _, c := range reported {
		l.at(object{cluster: c.Cluster}, c, c.Delivered, generations)
		for _, companion := range slices.Sorted(maps.Keys(c.CompanionsDelivered)) {
			of := c
			of.UID, of.Left = "", nil // what is left is left of the workload's own object
			l.at(object{c.Cluster, companion}, of, c.CompanionsDelivered[companion], false)
		}
	}
	return l.after, l.changes, l.back
}

// at compares what is reported of one object. Companions have no generations here: only the workload's object is known to keep still.
func (l *look) at(o object, c backends.ClusterObservation, delivered *backends.Delivered, generations bool) {
	was, known := l.before[o]
	if delivered == nil {
		if known {
			l.after[o] = was // its order says whether it still counts
		}
		return
	}
	next, change, changed := l.prove(c, delivered, generations), Change{}, false
	if known && was.order == next.order && was.uid == next.uid {
		next, change, changed = was.compare(next)
	}
	if next.told = was.told; changed {
		change.Cluster, change.Companion, change.Others, change.Held, change.Left = o.cluster, o.companion, delivered.Others, c.Held, c.Left != nil
		l.changes = append(l.changes, change)
		next.told = l.now
	}
	if !next.told.IsZero() && !next.lost {
		l.back = append(l.back, PutBack{Cluster: o.cluster, Companion: o.companion, After: l.now.Sub(next.told)})
		next.told = time.Time{}
	}
	l.after[o] = next
}

func (l *look) prove(c backends.ClusterObservation, delivered *backends.Delivered, generations bool) proven {
	is := proven{order: delivered.Order, uid: c.UID, since: l.now, lost: delivered.Others != ""}
	if generations {
		is.generation = delivered.Generation
	}
	return is
}

// compare tells what is proven from now on, and what has changed since the last report of the same order.
func (was proven) compare(is proven) (next proven, change Change, changed bool) {
	rise := is.generation - was.generation
	if rise == 0 {
		is.since, is.stood = was.since, was.stood
		return is, Change{}, is.lost && !was.lost
	}
	is.stood = was.stood
	if settled := !is.since.Before(was.since.Add(settle)); settled {
		is.stood = was.generation
	}
	change = Change{From: is.stood, To: is.generation}
	changed = is.stood > 0 && change.To-change.From >= putBack
	if changed || rise < 0 {
		is.stood = 0
	}
	return is, change, changed || is.lost && !was.lost
}
