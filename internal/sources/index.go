package sources

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// index knows which FleetWorkloads refer to an object. Every pass over a FleetWorkload fills in its own part, so after
// the first pass over all of them it is whole; what changed before is seen by that pass.
type index struct {
	mu sync.Mutex
	// refs are those of each FleetWorkload; by are the FleetWorkloads of each object.
	refs map[types.NamespacedName][]Ref
	by   map[Ref]map[types.NamespacedName]bool
}

// set replaces what a FleetWorkload refers to. It returns objects that nobody refers to any more.
func (x *index) set(user types.NamespacedName, refs []Ref) (unused []Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Equal(x.refs[user], refs) {
		return nil
	}
	if x.refs == nil {
		x.refs, x.by = map[types.NamespacedName][]Ref{}, map[Ref]map[types.NamespacedName]bool{}
	}
	before := x.refs[user]
	for _, ref := range refs {
		if x.by[ref] == nil {
			x.by[ref] = map[types.NamespacedName]bool{}
		}
		x.by[ref][user] = true
	}
	for _, ref := range before {
		if slices.Contains(refs, ref) {
			continue
		}
		if delete(x.by[ref], user); len(x.by[ref]) == 0 {
			delete(x.by, ref)
			unused = append(unused, ref)
		}
	}
	if x.refs[user] = slices.Clone(refs); len(refs) == 0 {
		delete(x.refs, user)
	}
	return unused
}

func (x *index) users(ref Ref) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.by[ref]))
}

func (x *index) allUsers() []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.refs))
}
