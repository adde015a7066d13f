package companions

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Created remembers carriers that were created until a cache shows them. It is a help against a Delete that follows
// at once and finds nothing, not a position: a new process begins with a cache that has them.
type Created struct {
	mu sync.Mutex
	by map[types.UID]map[types.NamespacedName]bool
}

// Add remembers a carrier that was created for a FleetWorkload.
func (c *Created) Add(user types.UID, carrier types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[types.UID]map[types.NamespacedName]bool{}
	}
	if c.by[user] == nil {
		c.by[user] = map[types.NamespacedName]bool{}
	}
	c.by[user][carrier] = true
}

// Seen forgets a carrier: the cache shows it.
func (c *Created) Seen(user types.UID, carrier types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.by[user], carrier); len(c.by[user]) == 0 {
		delete(c.by, user)
	}
}

// Unseen tells whether a carrier that is there is still to be shown by the cache, which then sends an event. exists asks
// the API server, since one may have come and gone before anybody looked.
func (c *Created) Unseen(user types.UID, exists func(types.NamespacedName) (bool, error)) (bool, error) {
	for _, carrier := range c.of(user) {
		there, err := exists(carrier)
		if err != nil || there {
			return there, err
		}
		c.Seen(user, carrier)
	}
	return false, nil
}

func (c *Created) of(user types.UID) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	carriers := make([]types.NamespacedName, 0, len(c.by[user]))
	for carrier := range c.by[user] {
		carriers = append(carriers, carrier)
	}
	return carriers
}
