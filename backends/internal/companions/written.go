package companions

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// seenWithin bounds how long the cache is waited for: what was created may have been deleted before it was seen.
const seenWithin = 10 * time.Second

// Created remembers carriers that were created until a cache shows them. It is a help against a Delete that follows
// at once and finds nothing, not a position: a new process begins with a cache that has them.
type Created struct {
	mu sync.Mutex
	by map[types.UID]map[types.NamespacedName]time.Time
}

// Add remembers a carrier that was created for a FleetWorkload.
func (c *Created) Add(user types.UID, carrier types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[types.UID]map[types.NamespacedName]time.Time{}
	}
	if c.by[user] == nil {
		c.by[user] = map[types.NamespacedName]time.Time{}
	}
	c.by[user][carrier] = time.Now()
}

// Unseen tells whether the cache lacks any of them. seen tells whether it has one.
func (c *Created) Unseen(user types.UID, seen func(types.NamespacedName) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.by[user], func(carrier types.NamespacedName, at time.Time) bool {
		return time.Since(at) > seenWithin || seen(carrier)
	})
	if len(c.by[user]) == 0 {
		delete(c.by, user)
		return false
	}
	return true
}
