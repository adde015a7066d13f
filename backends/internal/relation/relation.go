// Package relation remembers what belongs together, such as which workloads stand on an object of a backend.
//
// It is a help and no position: a new process begins with nothing.
package relation

import (
	"sync"
	"unique"
)

// Relation are pairs. The zero value has none. All methods may be called concurrently.
type Relation[A, B comparable] struct {
	mu sync.Mutex
	// by has eight bytes for each pair: a thousand workloads may stand on the same objects of a hundred clusters.
	by map[A]map[unique.Handle[B]]struct{}
}

// Add remembers a pair.
func (r *Relation[A, B]) Add(a A, b B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[A]map[unique.Handle[B]]struct{}{}
	}
	if r.by[a] == nil {
		r.by[a] = map[unique.Handle[B]]struct{}{}
	}
	r.by[a][unique.Make(b)] = struct{}{}
}

// Remove forgets a pair.
func (r *Relation[A, B]) Remove(a A, b B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(a, unique.Make(b))
}

func (r *Relation[A, B]) remove(a A, b unique.Handle[B]) {
	if delete(r.by[a], b); len(r.by[a]) == 0 {
		delete(r.by, a)
	}
}

// Drop forgets b, but for what is kept, and returns with what it was.
func (r *Relation[A, B]) Drop(b B, keep map[A]bool) []A {
	r.mu.Lock()
	defer r.mu.Unlock()
	var dropped []A
	handle := unique.Make(b)
	for a, with := range r.by {
		if _, has := with[handle]; has && !keep[a] {
			dropped = append(dropped, a)
			r.remove(a, handle)
		}
	}
	return dropped
}

// Of is all that belongs to a, in no order.
func (r *Relation[A, B]) Of(a A) []B {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]B, 0, len(r.by[a]))
	for b := range r.by[a] {
		all = append(all, b.Value())
	}
	return all
}
