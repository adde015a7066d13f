package companions

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends/internal/relation"
)

// Created remembers the companion works that were created for a FleetWorkload until a cache shows them: then they are removed. It helps against a
// Delete that follows at once and finds nothing.
type Created struct {
	relation.Relation[types.UID, types.NamespacedName]
}

// Unseen tells whether a companion work that is there is still to be shown by the cache, which then sends an event. exists asks
// the API server, since one may have come and gone before anybody looked.
func (c *Created) Unseen(user types.UID, exists func(types.NamespacedName) (bool, error)) (bool, error) {
	for _, companionWork := range c.Of(user) {
		there, err := exists(companionWork)
		if err != nil || there {
			return there, err
		}
		c.Remove(user, companionWork)
	}
	return false, nil
}
