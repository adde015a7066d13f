package controllers

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// half is one side of a hand-over: what its backend calls the clusters, and what it may do on them.
type half struct {
	of   end
	name func(v1alpha1.MigrationClusterStatus) string
	mode func(cluster string) backends.Ownership
}

func (s *scope) halves() (source, target half) {
	orders := s.handOver.orders
	source = half{s.handOver.source, sourceName, func(cluster string) backends.Ownership { return orders.Clusters[cluster].Source }}
	target = half{s.handOver.target, migration.NameOnTarget, func(cluster string) backends.Ownership { return orders.Clusters[cluster].Target }}
	return source, target
}

// desiredOf is what one backend is to carry out: the same manifests on both, with what each may do.
func (s *scope) desiredOf(of end) backends.Desired {
	mine, other := s.halves()
	if of.name == other.of.name {
		mine, other = other, mine
	}
	// A backend is not asked to run anything on a cluster that it does not know, and has nothing for.
	clusters := slices.DeleteFunc(slices.Clone(s.record.migration.Clusters), func(c v1alpha1.MigrationClusterStatus) bool {
		_, known := of.fleet.Get(mine.name(c))
		_, present := of.observed.Of(mine.name(c))
		return !known && !present
	})
	targets := targetsOf(s.targets, clusters, mine.name, mine.mode)
	if !of.observed.Selection.Settled {
		targets = nil // the placement comes first
	}
	desired := of.plan.Desired(targets)
	desired.Companions, desired.Keep = s.travelling(mine, other), backends.KeepAll
	return desired
}

// travelling are the companions with the clusters' names as one backend has them, and with what the other one says of them.
func (s *scope) travelling(mine, other half) []backends.Companion {
	out := slices.Clone(s.companions)
	for i, c := range out {
		if c.Clusters == nil {
			continue
		}
		out[i].Clusters = []string{} // nil would mean all of them
		for _, cluster := range s.record.migration.Clusters {
			if slices.Contains(c.Clusters, cluster.Name) {
				out[i].Clusters = append(out[i].Clusters, mine.name(cluster))
			}
		}
		slices.Sort(out[i].Clusters)
	}
	for _, cluster := range s.record.migration.Clusters {
		if o, is := other.of.observed.Of(other.name(cluster)); is {
			share(out, mine.name(cluster), o)
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
