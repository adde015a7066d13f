package migration

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// Holder is a backend that has something of the workload.
type Holder struct {
	Side
	Observed backends.Observation
}

// Interrupted is a hand-over whose record is gone: both backends have something of the workload. Source is the one that it left.
type Interrupted struct {
	Source, Target Holder
	Aliases        plan.Aliases
	Strategy       *v1alpha1.MigrationStrategy
	// Forward is true while the spec asks for the target.
	Forward bool
	Now     time.Time
}

// Resume is a record with which the hand-over can go on. It is as safe as any: who may write follows from what the other backend confirms,
// and not from the record.
//
// Where the target runs all that the source may no longer write, nothing is left but to release the source: whether the last wave was still
// soaking nobody knows. Otherwise it begins anew with the comparison of both. A cluster that the target may write goes back to the source
// for that.
func (i Interrupted) Resume() v1alpha1.MigrationStatus {
	record := v1alpha1.MigrationStatus{From: i.Source.Name, To: i.Target.Name, Phase: v1alpha1.MigrationPhaseReleasing, StartedAt: at(i.Now)}
	record.Clusters = i.clusters()
	if !i.Forward || !i.through(record.Clusters) {
		record.Phase, record.WaveStartedAt = v1alpha1.MigrationPhaseShadowing, at(i.Now)
	}
	for n := range record.Clusters {
		c := &record.Clusters[n]
		c.Phase = record.Phase
		if source, target := i.presence(*c); writes(target) || !writes(source) || !i.Source.applied(c.Name) {
			c.Before = &v1alpha1.MigrationEvidence{} // the target may have owned it: see modes
		}
	}
	Candidate{Source: i.Source.Side, Target: i.Target.Side, Strategy: i.Strategy}.assignWaves(record.Clusters)
	return record
}

// clusters are those on which either has something, by the source's names, sorted.
func (i Interrupted) clusters() (all []v1alpha1.MigrationClusterStatus) {
	ofTarget := map[string]bool{}
	for _, o := range i.Source.Observed.Clusters {
		own, _ := i.Source.Fleet.Get(o.Cluster)
		entry := v1alpha1.MigrationClusterStatus{Name: o.Cluster}
		twin, known := Twin(own, i.Aliases.On(i.Target.Name, o.Cluster), i.Target.Fleet)
		if known && twin.Name != o.Cluster {
			entry.TargetName = twin.Name
		}
		ofTarget[NameOnTarget(entry)] = true
		all = append(all, entry)
	}
	for _, o := range i.Target.Observed.Clusters {
		if ofTarget[o.Cluster] {
			continue
		}
		own, _ := i.Target.Fleet.Get(o.Cluster)
		entry := v1alpha1.MigrationClusterStatus{Name: o.Cluster}
		if twin, known := Twin(own, i.Aliases.On(i.Source.Name, o.Cluster), i.Source.Fleet); known && twin.Name != o.Cluster {
			entry.Name, entry.TargetName = twin.Name, o.Cluster
		}
		all = append(all, entry)
	}
	all = slices.DeleteFunc(all, func(c v1alpha1.MigrationClusterStatus) bool {
		source, target := i.presence(c)
		return !stays(source) && !stays(target)
	})
	slices.SortFunc(all, func(a, b v1alpha1.MigrationClusterStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// through tells whether the target has taken every cluster over.
func (i Interrupted) through(clusters []v1alpha1.MigrationClusterStatus) bool {
	return len(clusters) > 0 && !slices.ContainsFunc(clusters, func(c v1alpha1.MigrationClusterStatus) bool {
		source, target := i.presence(c)
		return writes(source) || !writes(target)
	})
}

// presence is how both have the workload on a cluster.
func (i Interrupted) presence(c v1alpha1.MigrationClusterStatus) (source, target backends.Presence) {
	return i.Source.presence(c.Name), i.Target.presence(NameOnTarget(c))
}

func (h Holder) presence(cluster string) backends.Presence {
	o, is := h.Observed.Of(cluster)
	if !is || o.Probe != nil { // what is only asked is not there yet
		return backends.PresenceAbsent
	}
	return o.Presence
}

// applied tells whether the backend has confirmed that it wrote the member object.
func (h Holder) applied(cluster string) bool {
	o, _ := h.Observed.Of(cluster)
	return o.Applied == metav1.ConditionTrue
}

// Writes tells whether the backend may write on any cluster.
func (h Holder) Writes() bool {
	return slices.ContainsFunc(h.Observed.Clusters, func(o backends.ClusterObservation) bool { return writes(h.presence(o.Cluster)) })
}

// Owns tells whether the backend may write on every cluster where it has the workload.
func (h Holder) Owns() bool {
	return !slices.ContainsFunc(h.Observed.Clusters, func(o backends.ClusterObservation) bool { return o.Probe == nil && o.Released() })
}

// writes tells whether a backend may write the member object.
func writes(p backends.Presence) bool { return p != backends.PresenceAbsent && !p.Released() }

// stays tells whether a backend has the workload there, and keeps it.
func stays(p backends.Presence) bool { return p != backends.PresenceAbsent && !p.Removing() }
