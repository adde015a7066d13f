package pass

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Rival is another FleetWorkload whose workload object has the same kind and name.
type Rival struct {
	types.NamespacedName
	UID     types.UID
	Created metav1.Time
	// Backend carries it.
	Backend string
	// Placement is its record: what it has, or is leaving.
	Placement *v1alpha1.PlacementRecord
}

// RivalOf is what a FleetWorkload is to others.
func RivalOf(fw *v1alpha1.FleetWorkload) Rival {
	return Rival{
		NamespacedName: types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}, UID: fw.UID, Created: fw.CreationTimestamp,
		Backend: fw.Status.Backend, Placement: fw.Status.Placement,
	}
}

// contest refuses clusters where another FleetWorkload has the same object through another backend, whatever conflictPolicy says: both
// would write it for ever (law 5). On one backend its driver refuses that. Who has recorded a cluster first has it; should both have, it
// is the older one's.
func (d *Decision) contest() error {
	if d.in.Rivals == nil {
		d.Reads.Rivals = d.record.workload
		return errEnough
	}
	for _, rival := range *d.in.Rivals {
		if !d.contests(rival) {
			continue
		}
		if both := d.shared(rival); len(both) > 0 {
			w := d.work.query.Workload
			return &backends.Error{
				Code: backends.CodeNameConflict, Field: "spec.template.metadata.name", Value: w.Name,
				Message: fmt.Sprintf("FleetWorkload %s has %s %s on %s already, through backend %q", rival, w.GVK.Kind, w.Name, firstOf(both), rival.Backend),
				Remedy:  "give this workload another name, leave those clusters out of spec.placement, or delete the other FleetWorkload first",
			}
		}
	}
	return nil
}

// contests tells whether a rival can have the same object in a cluster.
func (d *Decision) contests(rival Rival) bool {
	fw := d.in.FleetWorkload
	return rival.UID != fw.UID && rival.Backend != "" && rival.Backend != d.backend &&
		(d.work.query.Workload.Namespace == "" || rival.Namespace == fw.Namespace)
}

// shared are the clusters that both want, and that are the rival's.
func (d *Decision) shared(rival Rival) (clusters []string) {
	if rival.Placement == nil {
		return nil
	}
	fw, theirs := d.in.FleetWorkload, map[string]bool{}
	for _, row := range rival.Placement.Clusters {
		if row.Replicas != nil || row.Removal != "" {
			theirs[d.in.Aliases.On(d.backend, row.Name)] = true
		}
	}
	older := fw.CreationTimestamp.Before(&rival.Created) || fw.CreationTimestamp.Equal(&rival.Created) && fw.UID < rival.UID
	for _, t := range d.placed.targets {
		had := older && d.record.placement != nil && slices.ContainsFunc(d.record.placement.Clusters, func(row v1alpha1.ClusterShare) bool {
			return row.Name == t.Cluster && row.Replicas != nil
		})
		if theirs[t.Cluster] && t.Mode != backends.ModeRemove && !had {
			clusters = append(clusters, t.Cluster)
		}
	}
	return clusters
}
