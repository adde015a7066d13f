// Package drift tells when somebody else has changed a workload's object on a cluster, from what a backend has reported before and reports
// now. It tells only what is sure: a change that it does not see is told by nobody, and one that it told wrongly would make all it tells
// worthless. It is pure.
package drift

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	// putBack is by how much the generation of an object rises that somebody has changed, and that was put back. What rises by less may have
	// got an annotation, or a default that is new on the cluster.
	putBack = 2
	// settle is how long a report may be behind the backend's own writes: it is made from a watch of the cluster.
	settle = 30 * time.Second
)

// Memory is what was last proven of each cluster. The zero value remembers nothing.
type Memory map[string]proven

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
	// lost is true from when others were told to have changed the object until it is whole again.
	lost bool
}

// Change is what somebody else has changed.
type Change struct {
	Cluster string
	// Others are who has changed what; empty when that is not known.
	Others string
	// From and To are the object's generations, where they tell.
	From, To int64
	// Held is true when it is not put back for now, and Left when it stays (spec.drift Report).
	Held, Left bool
}

// String says it for a person.
func (c Change) String() string {
	text := "cluster " + c.Cluster + ": somebody else has changed the object there"
	switch {
	case c.Others == "":
		return text + fmt.Sprintf(": generation %d has become %d, while what is delivered has stayed the same", c.From, c.To)
	case c.Left:
		text += ", and it is left as it is (spec.drift Report)"
	case c.Held:
		text += ", where it is held, so that it is left as it is"
	default:
		text += ", and it is put back"
	}
	return text + ": " + c.Others
}

// Look compares what is reported with what was proven before. generations is false for kinds whose generation moves by itself.
func Look(before Memory, reported []backends.ClusterObservation, generations bool, now time.Time) (Memory, []Change) {
	after := make(Memory, len(reported))
	var changes []Change
	for _, c := range reported {
		was, known := before[c.Cluster]
		switch is := prove(c, generations, now); {
		case c.Delivered == nil && known:
			after[c.Cluster] = was // its order says whether it still counts
		case c.Delivered == nil:
		case !known || was.order != is.order || was.uid != is.uid:
			after[c.Cluster] = is
		default:
			next, change, changed := was.compare(is)
			if after[c.Cluster] = next; changed {
				change.Cluster, change.Others, change.Held, change.Left = c.Cluster, c.Delivered.Others, c.Held, c.Left != nil
				changes = append(changes, change)
			}
		}
	}
	return after, changes
}

func prove(c backends.ClusterObservation, generations bool, now time.Time) proven {
	if c.Delivered == nil {
		return proven{}
	}
	is := proven{order: c.Delivered.Order, uid: c.UID, since: now, lost: c.Delivered.Others != ""}
	if generations {
		is.generation = c.Delivered.Generation
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
