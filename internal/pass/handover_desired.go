package pass

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// desiredOf is what one backend is to carry out: the same manifests on both, with what each may do.
func (d *Decision) desiredOf(mine, other handSide) backends.Desired {
	modes := d.handOver.orders.Clusters
	mode := func(cluster string) backends.Mode {
		if mine.name == d.handOver.source.name {
			return modes[cluster].Source
		}
		return modes[cluster].Target
	}
	targets := targetsOf(d.placed.targets, d.there(mine), mine.nameOf, mode)
	if !mine.observed.Selection.Settled {
		targets = nil // the placement comes first
	}
	desired := mine.plan.Desired(targets)
	desired.Companions, desired.Prune = d.travelling(mine, other), backends.PruneNone
	return desired
}

// there are the clusters that a backend is asked for: it is not asked to run anything on one that it does not know, and has nothing for.
// The name of such a one it drops as soon as it is asked for others; when there are none, it is to hold back there.
func (d *Decision) there(mine handSide) (there []v1alpha1.MigrationClusterStatus) {
	var named []v1alpha1.MigrationClusterStatus
	for _, c := range d.record.migration.Clusters {
		_, known := mine.fleet.Get(mine.nameOf(c))
		o, present := mine.observed.Of(mine.nameOf(c))
		switch {
		case known, present && o.Presence != backends.PresenceNamed:
			there = append(there, c)
		case present:
			named = append(named, c)
		}
	}
	if len(there) == 0 {
		return named
	}
	return there
}

// travelling are the companions with the clusters' names as one backend has them, and with what the other one says of them.
func (d *Decision) travelling(mine, other handSide) []backends.Companion {
	out := slices.Clone(d.travel.companions)
	for i, c := range out {
		if c.Clusters == nil {
			continue
		}
		out[i].Clusters = []string{} // nil would mean all of them
		for _, cluster := range d.record.migration.Clusters {
			if slices.Contains(c.Clusters, cluster.Name) {
				out[i].Clusters = append(out[i].Clusters, mine.nameOf(cluster))
			}
		}
		slices.Sort(out[i].Clusters)
	}
	for _, cluster := range d.record.migration.Clusters {
		if o, is := other.observed.Of(other.nameOf(cluster)); is {
			share(out, mine.nameOf(cluster), o)
		}
	}
	return out
}

// share tells of companions what the other backend says of them: for whom else it goes on with them, and whose they are.
func share(travelling []backends.Companion, cluster string, other backends.ClusterObservation) {
	for i, c := range travelling {
		title := c.Object.GetKind() + " " + c.Object.GetName()
		if uids := other.Serves[title]; len(uids) > 0 {
			travelling[i].Elsewhere = maps.Clone(c.Elsewhere)
			if c.Elsewhere == nil {
				travelling[i].Elsewhere = map[string][]types.UID{}
			}
			travelling[i].Elsewhere[cluster] = uids
		}
		if slices.Contains(other.Foreign, title) {
			travelling[i].Foreign = append(slices.Clone(c.Foreign), cluster)
		}
	}
}
