package pass

import (
	"maps"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// handed are the clusters of the migration that a backend lists, and those that none does: they have left, or are back in a moment.
func (d *Decision) handed() (listed, away []string) {
	for _, c := range d.record.migration.Clusters {
		if _, known := d.fleet.Get(c.Name); known {
			listed = append(listed, c.Name)
		} else {
			away = append(away, c.Name)
		}
	}
	return listed, away
}

// divideOver gives clusters their shares of a plan's replicas: those that the fleet lists, and those away.
func (d *Decision) divideOver(p *plan.Plan, fleet backends.Fleet, listed, away []string) (map[string]int32, error) {
	current := d.current()
	if p.ByRoom() {
		keep, kept := keepAway(*p.Replicas, current, listed, away)
		shares, err := p.Beside(kept).Shares(fleet, listed, current)
		maps.Copy(keep, shares)
		return keep, err
	}
	var unlisted []backends.Cluster // weights may count them; no more than their names is known
	for _, name := range away {
		unlisted = append(unlisted, backends.Cluster{Name: name})
	}
	return p.Shares(withClusters(fleet, unlisted), slices.Concat(listed, away), current)
}

// withClusters is a fleet with some clusters more.
func withClusters(fleet backends.Fleet, more []backends.Cluster) backends.Fleet {
	fleet.Clusters = slices.Concat(fleet.Clusters, more)
	slices.SortFunc(fleet.Clusters, func(a, b backends.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return fleet
}

// keepAway are the replicas of clusters that no backend lists, and their sum. Their room is not known, so that they get no more; of fewer
// replicas they give theirs before others do.
func keepAway(replicas int32, current map[string]int32, listed, away []string) (keep map[string]int32, kept int32) {
	keep = map[string]int32{}
	left := int64(replicas)
	for _, name := range listed {
		left -= int64(current[name])
	}
	for _, name := range away {
		n := int32(max(0, min(left, int64(current[name]))))
		keep[name], kept, left = n, kept+n, left-int64(n)
	}
	return keep, kept
}

// goOn are what the clusters that no backend lists go on with; 1 for kinds without replicas.
func (d *Decision) goOn(away []string, shares map[string]int32) map[string]int32 {
	all := map[string]int32{}
	for _, name := range away {
		if all[name] = shares[name]; d.work.plan.Replicas == nil {
			all[name] = 1
		}
	}
	return all
}
