package controllers

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// mostConflicts is how many passes in a row may end at something that has changed since it was read. More of them are no race, and are told.
const mostConflicts = 10

// conflicts count the passes over each FleetWorkload that have ended so, one after the other.
type conflicts struct {
	mu sync.Mutex
	by map[types.NamespacedName]int
}

// last tells whether there have been so many in a row that they are told.
func (c *conflicts) last(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[key] >= mostConflicts
}

// count is called at the end of each pass.
func (c *conflicts) count(key types.NamespacedName, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !conflict(err):
		delete(c.by, key)
	case c.by == nil:
		c.by = map[types.NamespacedName]int{key: 1}
	default:
		c.by[key]++
	}
}

func conflict(err error) bool { return err != nil && apierrors.IsConflict(err) }
