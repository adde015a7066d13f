// Package relation remembers what belongs together, such as which workloads stand on an object of a backend.
//
// It is a help and no position: a new process begins with nothing.
package relation

import (
	"maps"
	"slices"
	"sync"
)

// Relation are pairs. The zero value has none. All methods may be called concurrently.
type Relation[A, B comparable] struct {
	mu sync.Mutex
	by map[A]map[B]bool
}

// Add remembers a pair.
func (r *Relation[A, B]) Add(a A, b B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[A]map[B]bool{}
	}
	if r.by[a] == nil {
		r.by[a] = map[B]bool{}
	}
	r.by[a][b] = true
}

// Remove forgets a pair.
func (r *Relation[A, B]) Remove(a A, b B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(a, b)
}

func (r *Relation[A, B]) remove(a A, b B) {
	if delete(r.by[a], b); len(r.by[a]) == 0 {
		delete(r.by, a)
	}
}

// Drop forgets b, but for what is kept, and returns with what it was.
func (r *Relation[A, B]) Drop(b B, keep map[A]bool) []A {
	r.mu.Lock()
	defer r.mu.Unlock()
	var dropped []A
	for a, with := range r.by {
		if with[b] && !keep[a] {
			dropped = append(dropped, a)
			r.remove(a, b)
		}
	}
	return dropped
}

// Of is all that belongs to a, in no order.
func (r *Relation[A, B]) Of(a A) []B {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.by[a]))
}
