package pass

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// known is the FleetWorkload as backends know it: its UID is its identity there, the same for one that is made anew. Who knows of no
// installation, as kubectl fw where it may not read its name, goes by what is recorded.
func (d *Decision) known(fw *v1alpha1.FleetWorkload) *v1alpha1.FleetWorkload {
	known, recorded := *fw, d.in.FleetWorkload.Status.Identity // its spec is shared, and not changed
	switch {
	case d.record.workload == nil || d.byUID():
		return fw
	case d.in.Installation == "" && recorded == "":
		return fw
	case d.in.Installation == "":
		known.UID = types.UID(recorded)
		return &known
	}
	known.UID = v1alpha1.Identity(d.in.Installation, types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}, *d.record.workload)
	if known.Annotations = maps.Clone(fw.Annotations); known.Annotations == nil {
		known.Annotations = map[string]string{}
	}
	known.Annotations[v1alpha1.AnnotationInstallation] = d.in.Installation
	return &known
}

// byUID tells whether backends know the FleetWorkload by its own UID: it was first carried out by an operator from before identities, and
// stays so. Nothing was sent without a placement.
func (d *Decision) byUID() bool {
	recorded := d.in.FleetWorkload.Status
	return recorded.Placement != nil && recorded.Identity == "" || recorded.Identity == string(d.in.FleetWorkload.UID)
}

// identity is what is to be recorded of it: the one under which anything was sent, for as long as it carries that object.
func (d *Decision) identity() string {
	recorded, is := d.in.FleetWorkload.Status, d.record.workload
	switch {
	case is == nil || d.record.backend == "" || d.forgets:
		return ""
	case recorded.Identity != "" && recorded.Workload != nil && *recorded.Workload == *is:
		return recorded.Identity
	case d.in.Installation == "":
		return ""
	default:
		return string(d.known(d.in.FleetWorkload).UID)
	}
}

// claimed tells whether it is recorded which backend carries the FleetWorkload, and as what that knows it.
func (d *Decision) claimed() bool {
	recorded := d.in.FleetWorkload.Status
	return recorded.Backend != "" && (recorded.Identity != "" || d.in.Installation == "" || d.byUID())
}

// sameInstallation refuses to go on under another identity than the recorded one, while a backend has anything under that: what runs would be
// somebody else's. With nothing there the record is of an operator that was told a wrong installation, and is forgotten.
func (d *Decision) sameInstallation() error {
	status := d.in.FleetWorkload.Status
	if d.in.Installation == "" || status.Identity == "" || status.Identity == string(d.spec.UID) {
		return nil
	}
	query := d.work.query
	query.Key.UID = types.UID(status.Identity)
	for _, name := range d.everyBackend(status.Backend) {
		side, err := d.side(SideRead{Backend: name, Query: &query})
		switch {
		case errors.Is(err, errEnough):
			return err
		case err != nil && name == status.Backend:
			return err
		case err == nil && side.Observed.Found:
			return stall(v1alpha1.ReasonNameConflict, "installation %q in the operator's configuration: this FleetWorkload was carried out by another "+
				"installation, and nothing of it is touched. Set installation to that name again: it is the annotation %s of its objects on backend %q",
				d.in.Installation, v1alpha1.AnnotationInstallation, name)
		}
	}
	d.record, d.forgets = record{backend: d.in.FleetWorkload.Spec.Backend, workload: d.record.workload}, true
	d.waiting = "what its own installation has of it to be looked for"
	return errEnough
}

// everyBackend are all that are configured, that one first.
func (d *Decision) everyBackend(first string) []string {
	others := slices.DeleteFunc(slices.Sorted(slices.Values(d.in.Backends)), func(name string) bool { return name == first })
	return append([]string{first}, others...)
}

// recover looks on all backends for what an earlier life of a FleetWorkload has left, before its first claim: the management cluster may
// have been rebuilt, and the record is gone. What has something of it is claimed, or a hand-over between two goes on.
func (d *Decision) recover() error {
	if d.claimed() {
		return nil
	}
	holders, remnants, err := d.holders()
	if err != nil {
		return err
	}
	switch {
	case len(holders) > 2:
		return d.tooMany(holders)
	case len(holders) == 2:
		return d.resume(holders[0], holders[1])
	}
	owner := d.in.FleetWorkload.Spec.Backend
	for _, h := range holders {
		owner = h.Name
	}
	switch {
	case len(remnants) > 0:
		d.tidy(remnants, owner)
		return errEnough
	case len(holders) > 0:
		d.record.backend = owner
		return errEnough
	default:
		return nil
	}
}

// holders are the backends that have the workload on any cluster, and the names of those that have something else of it, such as a placement,
// which nobody will use.
func (d *Decision) holders() (holders []migration.Holder, remnants []string, err error) {
	wants := d.in.FleetWorkload.Spec.Backend
	all := d.everyBackend(wants)
	live := slices.ContainsFunc(all[1:], func(name string) bool {
		s := d.in.Sides[name]
		return s != nil && s.Observed != nil && s.Observed.Found
	})
	type silence struct {
		name string
		why  error
	}
	var silent []silence
	for _, name := range all {
		side, lost := d.lookOn(name, live)
		switch {
		case errors.Is(lost, errEnough):
			err = errEnough
		case lost == nil && side.Observed.Earlier != nil && d.in.FleetWorkload.DeletionTimestamp.IsZero():
			d.backend = name
			return nil, nil, side.Observed.Earlier
		case lost != nil:
			silent = append(silent, silence{name, lost})
		case len(side.Observed.Clusters) > 0:
			holders = append(holders, migration.Holder{
				Side: migration.Side{Name: name, Features: side.Features, Fleet: *side.Fleet}, Observed: *side.Observed,
			})
		case side.Observed.Found && (name != wants || !d.in.FleetWorkload.DeletionTimestamp.IsZero()):
			remnants = append(remnants, name)
		}
	}
	for _, s := range silent {
		if err == nil && d.waitsFor(s.name, s.why, holders) {
			err = d.unanswered(s.name, s.why)
		}
	}
	return holders, remnants, err
}

// lookOn reads what a backend has of the workload. Its cache is enough to find nothing; what is found is asked of its API server.
func (d *Decision) lookOn(name string, live bool) (*Side, error) {
	query := d.queryOn(name)
	if live {
		query.Counterpart = backends.CounterpartActive
	}
	read := SideRead{Backend: name, Fleet: true, Query: &query}
	if s := d.in.Sides[name]; live && s != nil && s.Err == nil && !s.Live {
		d.Reads.Sides = append(d.Reads.Sides, read)
		return nil, errEnough
	}
	return d.side(read)
}

// queryOn is the query with the clusters' names as a backend has them.
func (d *Decision) queryOn(name string) backends.Query {
	query := d.work.query
	query.Selectors = placement.Selectors(d.in.Aliases.Written(d.spec, name).Spec.Placement)
	return query
}

// waitsFor tells whether a backend that does not answer is waited for: while it connects at the operator's start, when another one has what
// is there only for the time of a hand-over, and, but for a deletion, the one that the spec names. Otherwise nobody need wait (law 8): who may
// write was given that right by all others.
func (d *Decision) waitsFor(name string, why error, holders []migration.Holder) bool {
	fw := d.in.FleetWorkload
	return d.in.early(why) || name == fw.Spec.Backend && fw.DeletionTimestamp.IsZero() ||
		len(holders) == 1 && !holders[0].Owns()
}

// unanswered says why a backend that the spec does not name is waited for.
func (d *Decision) unanswered(name string, err error) error {
	if d.backend = name; name == d.in.FleetWorkload.Spec.Backend || d.in.Starting || d.in.early(err) {
		return err
	}
	return fmt.Errorf("find out whether it has this workload too, which was being handed over when the record of it was lost: %w", err)
}

// resume has the hand-over between two backends go on.
func (d *Decision) resume(a, b migration.Holder) error {
	source, target := b, a // holders begin with spec.backend
	wants := d.in.FleetWorkload.Spec.Backend
	if a.Name != wants && a.Writes() {
		source, target = a, b
	}
	spec := migration.Kept(d.in.FleetWorkload.Spec)
	name, err := migration.KeptName(d.spec, spec, d.in.FleetWorkload.Generation)
	if err != nil {
		return err
	}
	record := migration.Interrupted{
		Source: source, Target: target, Aliases: d.in.Aliases, Strategy: d.in.Aliases.Written(d.spec, source.Name).Spec.Migration,
		Forward: target.Name == wants, Now: d.now.Time,
	}.Resume()
	record.SpecRevision = name
	d.end.Keep = &KeptSpec{Name: name, Spec: &spec}
	d.record.migration, d.record.backend = &record, source.Name
	if record.Phase == v1alpha1.MigrationPhaseReleasing {
		d.record.backend = target.Name
	}
	return errEnough
}

// tooMany refuses to choose among three backends.
func (d *Decision) tooMany(holders []migration.Holder) error {
	var names []string
	for _, h := range holders {
		names = append(names, h.Name)
	}
	return stall(v1alpha1.ReasonMigrationNotPossible, "spec.backend %q: backends %s all have something of this FleetWorkload from before, and "+
		"which of them may write is not known; nothing is touched. Take from the operator's configuration the one that has none of its objects in use",
		d.in.FleetWorkload.Spec.Backend, strings.Join(names, ", "))
}

// tidy takes away what backends have of the workload that runs nothing. Then the owner is claimed.
func (d *Decision) tidy(remnants []string, owner string) {
	for _, name := range remnants {
		d.Orders = append(d.Orders, Order{Backend: name, Delete: &Deletion{Query: d.queryOn(name), Policy: v1alpha1.DeletionPolicyOrphan}})
	}
	d.conclude = func(outcomes map[string]Outcome) error {
		gone := true
		for _, name := range remnants {
			done := outcomes[name]
			if done.Err != nil {
				d.backend = name
				return fmt.Errorf("leave the backend: %w", done.Err)
			}
			d.waiting, gone = cmp.Or(d.waiting, done.Progress.Waiting), gone && done.Progress.Done
		}
		if gone {
			d.record.backend = owner
		}
		return nil
	}
}
