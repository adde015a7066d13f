package guard

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Patience is how long a backend must go on not choosing a cluster that it has chosen before. OCM writes the decisions of a large
// placement page by page, and warns that what is missing for a moment is not to be deleted
// (https://github.com/open-cluster-management-io/api/blob/main/cluster/v1beta1/types_placementdecision.go).
const Patience = 30 * time.Second

// Selection is what a backend chooses.
type Selection struct {
	// Clusters are those that it chooses, sorted.
	Clusters []string
	// Fleet has all clusters of the backend; Matching are those of them that the spec's selectors choose, whatever the backend says.
	Fleet    backends.Fleet
	Matching []string
	// Excluded are those that the spec's selectors do not choose whatever labels they have: it names others, or excludes them.
	Excluded []string
	// Runs are the clusters that have the workload, with what they are to run.
	Runs map[string]int32
	Now  metav1.Time
}

// Deselected is what to go on with.
type Deselected struct {
	// Clusters are those that are chosen, and the Missing: chosen before, missing for less than Patience, and not taken out by a
	// change of the spec.
	Clusters, Missing []string
	// Vanished are those that run the workload, by the record or by what the backend has, and that it does not list any more, for less
	// than Patience, with what they are to run. That is left as it is. So are those that were missing before an edit that does not choose
	// them: nobody can tell whether it is the edit that takes them out.
	Vanished map[string]int32
	// Record remembers since when clusters are missing; nil when there was none.
	Record *v1alpha1.PlacementRecord
	// RequeueAfter is after what time the answer may be another one; 0 when time alone changes nothing.
	RequeueAfter time.Duration
}

// Deselect goes on with clusters that the backend has stopped choosing only a moment ago.
func Deselect(record *v1alpha1.PlacementRecord, asked Asked, s Selection) Deselected {
	d := Deselected{Clusters: slices.Clone(s.Clusters), Record: record.DeepCopy(), Vanished: map[string]int32{}}
	d.unrecorded(s)
	if record == nil {
		return d
	}
	edited := record.ClustersHash != asked.Clusters
	for i := range d.Record.Clusters {
		row := &d.Record.Clusters[i]
		// A choice may be from before a label went.
		chosen, matches := slices.Contains(s.Clusters, row.Name), slices.Contains(s.Matching, row.Name)
		_, known := s.Fleet.Get(row.Name)
		switch {
		case chosen && matches:
			row.DeselectedAt = nil
			continue
		case row.Replicas == nil, known && slices.Contains(s.Excluded, row.Name), edited && !matches && known && !asked.FellOut(*row):
			continue // what the workload was to leave already does not get it back, and an edit takes effect at once, or once it can
		}
		if row.DeselectedAt == nil {
			row.DeselectedAt = &s.Now
		}
		left := Patience - s.Now.Sub(row.DeselectedAt.Time)
		if left <= 0 {
			continue
		}
		d.RequeueAfter = backends.Sooner(d.RequeueAfter, left)
		if !known || edited && !matches { // an edit divides over what it chooses
			d.Vanished[row.Name] = *row.Replicas
			continue
		}
		if d.Missing = append(d.Missing, row.Name); !chosen {
			d.Clusters = append(d.Clusters, row.Name)
		}
	}
	slices.Sort(d.Clusters)
	return d
}

// unrecorded counts from now on, as any other, a cluster that is not listed and of which there is no row to count from: the status was
// lost. Without a record it counts from the first one on, which has a row for it.
func (d *Deselected) unrecorded(s Selection) {
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		if _, known := s.Fleet.Get(name); known {
			continue
		}
		switch n := s.Runs[name]; {
		case d.Record == nil:
			d.Vanished[name], d.RequeueAfter = n, Patience
		case !slices.ContainsFunc(d.Record.Clusters, func(c v1alpha1.ClusterShare) bool { return c.Name == name }):
			d.Record.Clusters = append(d.Record.Clusters, v1alpha1.ClusterShare{Name: name, Replicas: &n, Baseline: &n})
		}
	}
}
