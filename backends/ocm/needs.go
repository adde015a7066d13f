package ocm

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// needs remembers which workloads are about to use a prerequisite and have no ManifestWork yet that would show it. It
// is a help against pruning too early and for waking up whoever waits, not a position: a prerequisite pruned all the
// same is created again on the next pass.
type needs struct {
	mu sync.Mutex
	by map[types.NamespacedName]map[types.NamespacedName]bool
}

func (n *needs) set(cluster, prerequisite string, workload types.NamespacedName, needed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[types.NamespacedName]map[types.NamespacedName]bool{}
	}
	key := types.NamespacedName{Namespace: cluster, Name: prerequisite}
	if needed {
		if n.by[key] == nil {
			n.by[key] = map[types.NamespacedName]bool{}
		}
		n.by[key][workload] = true
		return
	}
	delete(n.by[key], workload)
	if len(n.by[key]) == 0 {
		delete(n.by, key)
	}
}

// drop forgets what a workload needs, on every cluster or, with keep, on those not kept.
func (n *needs) drop(workload types.NamespacedName, keep func(cluster string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, workloads := range n.by {
		if keep == nil || !keep(key.Namespace) {
			delete(workloads, workload)
			if len(workloads) == 0 {
				delete(n.by, key)
			}
		}
	}
}

func (n *needs) of(cluster, prerequisite string) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.by[types.NamespacedName{Namespace: cluster, Name: prerequisite}]))
}
