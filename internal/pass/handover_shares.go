package pass

import (
	"maps"
	"slices"
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

// divideAnew gives the clusters their shares of the number that the spec asks for, if any is listed.
func (d *Decision) divideAnew(decided map[string]int32, listed, away []string) (map[string]int32, error) {
	p, current := d.work.plan, d.current()
	switch {
	case len(listed) == 0:
		return decided, nil
	case p.ByRoom():
		keep, kept := d.keepAway(current, listed, away)
		shares, err := p.Beside(kept).Shares(*d.fleet, listed, current)
		maps.Copy(keep, shares)
		return keep, err
	}
	return p.Shares(d.named(away), slices.Concat(listed, away), current)
}

// keepAway are the replicas of clusters that no backend lists, and their sum. Their room is not known, so that they get no more; of fewer
// replicas they give theirs before others do.
func (d *Decision) keepAway(current map[string]int32, listed, away []string) (keep map[string]int32, kept int32) {
	keep = map[string]int32{}
	left := int64(*d.work.plan.Replicas)
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
