package pass

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// Rival is another FleetWorkload that has an object of the same kind and name, as its workload or as a companion.
type Rival struct {
	types.NamespacedName
	UID     types.UID
	Created metav1.Time
	// Backend carries it.
	Backend string
	// Has are its objects.
	Has []v1alpha1.WorkloadReference
	// Placement is its record: which clusters have them, or are being left.
	Placement *v1alpha1.PlacementRecord
}

// RivalOf is what a FleetWorkload is to others.
func RivalOf(fw *v1alpha1.FleetWorkload) Rival {
	return Rival{
		NamespacedName: types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}, UID: fw.UID, Created: fw.CreationTimestamp,
		Backend: fw.Status.Backend, Has: Objects(fw), Placement: fw.Status.Placement,
	}
}

// Objects are what a FleetWorkload has, by its record.
func Objects(fw *v1alpha1.FleetWorkload) []v1alpha1.WorkloadReference {
	var objects []v1alpha1.WorkloadReference
	if fw.Status.Workload != nil {
		objects = append(objects, *fw.Status.Workload)
	}
	if p := fw.Status.Placement; p != nil {
		objects = append(objects, p.Companions...)
	}
	return objects
}

// ObjectKey tells objects of one namespace apart. It leaves the version out: one object is served in several.
func ObjectKey(ref v1alpha1.WorkloadReference) string {
	group, _, grouped := strings.Cut(ref.APIVersion, "/")
	if !grouped {
		group = ""
	}
	return group + "/" + ref.Kind + "/" + ref.Name
}

// contest refuses clusters where another FleetWorkload has one of the objects through another backend, whatever conflictPolicy says: both
// would write it for ever (law 5). On one backend its driver refuses that, which a plan has to foresee. Who has recorded a cluster and the
// object first has it; should both have, it is the older one's.
func (d *Decision) contest() error {
	wanted := d.carries()
	if d.in.Rivals == nil {
		d.Reads.Rivals = wanted
		return errEnough
	}
	for _, rival := range *d.in.Rivals {
		for i, want := range wanted {
			if !d.contests(rival, want) {
				continue
			}
			both, err := d.shared(rival, want.Object)
			if err != nil {
				return err
			}
			if len(both) > 0 {
				return refuse(rival, want.Object, both, i > 0)
			}
		}
	}
	return nil
}

// carries are the objects that the spec asks for, and where: the workload, and then its companions.
func (d *Decision) carries() []RivalsRead {
	wanted := []RivalsRead{{Object: *d.record.workload, Namespace: d.work.query.Workload.Namespace}}
	for _, c := range d.work.plan.Companions {
		wanted = append(wanted, RivalsRead{Object: *plan.Reference(c.Object), Namespace: c.Object.GetNamespace()})
	}
	return wanted
}

func refuse(rival Rival, object v1alpha1.WorkloadReference, clusters []string, companion bool) error {
	refusal := &backends.Error{
		Code: backends.CodeNameConflict, Field: "spec.template.metadata.name", Value: object.Name,
		Message: fmt.Sprintf("FleetWorkload %s has %s %s on %s already, through backend %q", rival, object.Kind, object.Name, brief.List(clusters), rival.Backend),
		Remedy:  "give this workload another name, leave those clusters out of spec.placement, or delete the other FleetWorkload first",
	}
	if companion {
		refusal.Field, refusal.Value = "spec.companions", object.Kind+" "+object.Name
		refusal.Remedy = "give the companion another name, leave those clusters out of spec.placement, or take it out of the other FleetWorkload first"
	}
	return refusal
}

// contests tells whether a rival can have the same object in a cluster.
func (d *Decision) contests(rival Rival, want RivalsRead) bool {
	return rival.UID != d.in.FleetWorkload.UID && rival.Backend != "" && (rival.Backend != d.backend || d.in.rehearsed) &&
		(want.Namespace == "" || rival.Namespace == want.Namespace) &&
		slices.ContainsFunc(rival.Has, func(has v1alpha1.WorkloadReference) bool { return ObjectKey(has) == ObjectKey(want.Object) })
}

// shared are the clusters that both want, and that are the rival's.
func (d *Decision) shared(rival Rival, object v1alpha1.WorkloadReference) (clusters []string, err error) {
	if rival.Placement == nil {
		return nil, nil
	}
	nameOf, err := d.namesOn(rival.Backend)
	if err != nil {
		return nil, err
	}
	fw, theirs := d.in.FleetWorkload, map[string]bool{}
	for _, row := range rival.Placement.Clusters {
		if row.Replicas != nil || row.Removal != "" {
			theirs[nameOf(row.Name)] = true
		}
	}
	older := fw.CreationTimestamp.Before(&rival.Created) || fw.CreationTimestamp.Equal(&rival.Created) && fw.UID < rival.UID
	for _, t := range d.placed.targets {
		if theirs[t.Cluster] && t.Mode != backends.ModeRemove && (!older || !d.has(object, t.Cluster)) {
			clusters = append(clusters, t.Cluster)
		}
	}
	return clusters, nil
}

// has tells whether an object and a cluster are recorded for this FleetWorkload.
func (d *Decision) has(object v1alpha1.WorkloadReference, cluster string) bool {
	record := d.record.placement
	if record == nil {
		return false
	}
	is := func(has v1alpha1.WorkloadReference) bool { return ObjectKey(has) == ObjectKey(object) }
	return (is(*d.record.workload) || slices.ContainsFunc(record.Companions, is)) &&
		slices.ContainsFunc(record.Clusters, func(row v1alpha1.ClusterShare) bool { return row.Name == cluster && row.Replicas != nil })
}

// namesOn says what this backend calls the clusters of another one: those of the same identity, where both tell it, and else those of the
// name that an alias gives. While the other backend cannot be read, names have to do.
func (d *Decision) namesOn(other string) (func(string) string, error) {
	side := d.in.Sides[other]
	if side == nil || side.Err == nil && side.Fleet == nil {
		d.Reads.Sides = append(d.Reads.Sides, SideRead{Backend: other, Fleet: true})
		return nil, errEnough
	}
	return func(name string) string {
		there, known := backends.Cluster{}, false
		if side.Fleet != nil {
			there, known = side.Fleet.Get(name)
		}
		if known && there.Identity != "" {
			for _, here := range d.fleet.Clusters {
				if here.Identity == there.Identity {
					return here.Name
				}
			}
		}
		alias := d.in.Aliases.On(d.backend, name)
		if here, is := d.fleet.Get(alias); is && known && there.Identity != "" && here.Identity != "" {
			return "" // of that name, and another one
		}
		return alias
	}, nil
}

// companionsOf are the companions to record: those that the spec lists, and, while pods may need them, those that it listed before.
func (d *Decision) companionsOf(before *v1alpha1.PlacementRecord) []v1alpha1.WorkloadReference {
	var recorded, former []v1alpha1.WorkloadReference
	for _, listed := range d.carries()[1:] {
		recorded = append(recorded, listed.Object)
	}
	if before != nil {
		former = slices.DeleteFunc(slices.Clone(before.Companions), func(c v1alpha1.WorkloadReference) bool { return slices.Contains(recorded, c) })
	}
	if !d.rolledOut() {
		room := max(0, mostRecorded-len(recorded)) // a file for kubectl fw may list more than the API server takes
		recorded = append(recorded, former[:min(len(former), room)]...)
	}
	slices.SortFunc(recorded, func(a, b v1alpha1.WorkloadReference) int { return strings.Compare(ObjectKey(a), ObjectKey(b)) })
	if len(recorded) == 0 {
		return nil
	}
	return recorded
}

// mostRecorded bounds the companions in the record: twice as many as a spec may list.
const mostRecorded = 64
