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

// keepShipped wants what is shipped to be kept once it is another than the record's, or when too many older ones are. What is refused or held
// never comes here, and during a hand-over nothing new is shipped.
func (d *Decision) keepShipped() error {
	spec, record := &d.in.FleetWorkload.Spec, d.record.revision
	version, err := revisions.VersionOf(d.in.FleetWorkload, revisions.Of(spec))
	if err != nil {
		return err
	}
	limit := revisions.Limit(spec)
	if record == nil || record.Name != version.Name || pointer.Deref(record.Older, 0) > limit {
		d.History = &History{Version: version, Limit: limit}
	}
	return nil
}

// Remembered says what came of History; it is said before Conclude. What could not be kept holds up nothing, and is tried again.
func (d *Decision) Remembered(record *v1alpha1.SpecRevision, err error) {
	if err != nil {
		d.again = backends.Sooner(d.again, lookAnyway)
		return
	}
	d.record.revision = record
}
