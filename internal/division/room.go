package division

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/backends"
)

// preferenceField is the field that errors about room blame.
const preferenceField = "spec.placement.division.preference"

// Room is what a cluster runs of a workload, and what it can still take.
type Room struct {
	Cluster string
	// Current replicas, as the cluster was asked to run them.
	Current int32
	// Free is how many more it can take.
	Free int64
}

// ByCapacity divides by what clusters can take. A running replica moves only when its cluster is gone: with the same total
// all stay, more of them go to the clusters in proportion to their room, and fewer are taken in proportion to what runs. The
// result has an entry for every room, and adds up to total.
//
// Karmada v1.17.1 does the same for dynamic weights (dynamicScaleUp and dynamicScaleDown in
// pkg/scheduler/core/division_algorithm.go), but for rounding, and for new workloads of which it divides all anew.
func ByCapacity(total int32, rooms []Room) (map[string]int32, error) {
	more, err := wanted(total, rooms)
	switch {
	case err != nil:
		return nil, err
	case more < 0:
		shares := make([]Share, 0, len(rooms))
		for _, r := range rooms {
			shares = append(shares, Share{Cluster: r.Cluster, Weight: int64(r.Current)})
		}
		// No number exceeds its weight, since none falls as the total grows to the sum of the weights.
		return Apportion(total, shares)
	}
	shares := make([]Share, 0, len(rooms))
	for _, r := range rooms {
		shares = append(shares, Share{Cluster: r.Cluster, Weight: r.Free})
	}
	added, err := Apportion(int32(more), shares)
	if err != nil {
		return nil, err
	}
	for _, r := range rooms {
		added[r.Cluster] += r.Current
	}
	return added, nil
}

// Aggregate divides over as few clusters as possible. A running replica moves only when its cluster is gone: more of them
// fill the clusters that run most, and then those with most room; fewer are taken from the clusters that run least. The
// result has an entry for every room, and adds up to total.
//
// Karmada v1.17.1's Aggregated differs in that it takes from all clusters when it scales down (dynamicScaleDown in
// pkg/scheduler/core/division_algorithm.go hands what runs to the same fill as if it were room).
func Aggregate(total int32, rooms []Room) (map[string]int32, error) {
	more, err := wanted(total, rooms)
	if err != nil {
		return nil, err
	}
	ordered := slices.SortedFunc(slices.Values(rooms), func(a, b Room) int {
		return cmp.Or(cmp.Compare(b.Current, a.Current), cmp.Compare(b.Free, a.Free), cmp.Compare(a.Cluster, b.Cluster))
	})
	result := make(map[string]int32, len(rooms))
	for _, r := range ordered {
		n := max(0, min(more, r.Free))
		result[r.Cluster] = r.Current + int32(n)
		more -= n
	}
	slices.Reverse(ordered)
	for _, r := range ordered {
		n := min(-min(more, 0), int64(r.Current))
		result[r.Cluster] -= int32(n)
		more += n
	}
	return result, nil
}

// wanted is how many more replicas there are to place; it is negative when there are some to take.
func wanted(total int32, rooms []Room) (int64, error) {
	if total < 0 {
		return 0, fmt.Errorf("dividing %d replicas: the number is negative", total)
	}
	seen := map[string]bool{}
	more, free := int64(total), int64(0)
	for _, r := range rooms {
		switch {
		case r.Current < 0 || r.Free < 0:
			return 0, fmt.Errorf("dividing replicas: cluster %q has negative numbers: %d replicas, room for %d", r.Cluster, r.Current, r.Free)
		case seen[r.Cluster]:
			return 0, fmt.Errorf("dividing replicas: cluster %q is listed twice", r.Cluster)
		}
		seen[r.Cluster] = true
		more -= int64(r.Current)
		free += r.Free
	}
	if more > free {
		return 0, &backends.Error{
			Code: backends.CodeNoCapacity, Field: preferenceField,
			Message: fmt.Sprintf("%d more replicas are wanted, and the %d chosen clusters have room for %d", more, len(rooms), free),
			Remedy:  "lower spec.replicas or the requests of the pods, choose more clusters, or give them more nodes",
		}
	}
	return more, nil
}
