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
	// by is keyed by the prerequisite's ManifestWork, then by the workload.
	by map[types.NamespacedName]map[types.NamespacedName]bool
}

func (n *needs) add(prerequisite, workload types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[types.NamespacedName]map[types.NamespacedName]bool{}
	}
	if n.by[prerequisite] == nil {
		n.by[prerequisite] = map[types.NamespacedName]bool{}
	}
	n.by[prerequisite][workload] = true
}

// drop forgets what a workload needs, but for what is kept, and returns what it has forgotten.
func (n *needs) drop(workload types.NamespacedName, keep map[types.NamespacedName]bool) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	var dropped []types.NamespacedName
	for prerequisite, workloads := range n.by {
		if !workloads[workload] || keep[prerequisite] {
			continue
		}
		dropped = append(dropped, prerequisite)
		delete(workloads, workload)
		if len(workloads) == 0 {
			delete(n.by, prerequisite)
		}
	}
	return dropped
}

// of lists the workloads that need a prerequisite.
func (n *needs) of(prerequisite types.NamespacedName) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.by[prerequisite]))
}
