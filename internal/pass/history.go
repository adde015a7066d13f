package pass

import (
	pointer "k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// History is a version of what is shipped that is to be kept, with so many older ones beside it.
type History struct {
	revisions.Version
	Limit int32
}

// keepShipped wants what is shipped to be kept once it may be another than was kept last, or when too many older ones are. What is refused or held
// never comes here, what waits for approval is not shipped, and during a hand-over nothing new is shipped.
func (d *Decision) keepShipped() error {
	if d.unapproved != "" {
		return nil
	}
	fw, record := d.in.FleetWorkload, d.record.revision
	version, err := revisions.VersionOf(fw, revisions.Of(&fw.Spec))
	if err != nil {
		return err
	}
	limit := revisions.Limit(&fw.Spec)
	if record == nil || record.Name != version.Name || pointer.Deref(record.Older, 0) > limit || missed(record, fw.Generation) {
		d.History = &History{Version: version, Limit: limit}
		return nil
	}
	d.record.revision = record.DeepCopy()
	d.record.revision.ObservedGeneration = pointer.To(fw.Generation)
	return nil
}

// missed tells whether the record knows nothing of a spec before this one: what that shipped may have been kept.
func missed(record *v1alpha1.SpecRevision, generation int64) bool {
	return pointer.Deref(record.ObservedGeneration, 0)+1 < generation
}

// Remembered says what came of History; it is said before Conclude. What could not be kept holds up nothing, and is tried again.
func (d *Decision) Remembered(record *v1alpha1.SpecRevision, err error) {
	if err != nil {
		d.requeueAfter = backends.Sooner(d.requeueAfter, lookAnyway)
		return
	}
	record.ObservedGeneration = pointer.To(d.in.FleetWorkload.Generation)
	d.record.revision = record
}
