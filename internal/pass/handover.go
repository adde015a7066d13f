package pass

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// handSide is one backend of a hand-over.
type handSide struct {
	name string
	// nameOf is what it calls a cluster of the migration.
	nameOf   func(v1alpha1.MigrationClusterStatus) string
	plan     *plan.Plan
	fleet    backends.Fleet
	observed backends.Observation
}

// handOver is a pass with two backends.
type handOver struct {
	source, target handSide
	input          migration.Input
	orders         migration.Orders
}

// HandsOver tells whether clusters may change hands: the record says so, and it is past Validating.
func HandsOver(fw *v1alpha1.FleetWorkload) bool {
	m := fw.Status.Migration
	return m != nil && m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating
}

// TakesTurn tells whether a FleetWorkload counts among those that are handed over at once: by its status it neither waits for a person nor
// is suspended.
func TakesTurn(fw *v1alpha1.FleetWorkload) bool {
	return HandsOver(fw) && fw.Status.Migration.Approval == "" && !suspended(fw) &&
		!meta.IsStatusConditionTrue(fw.Status.Conditions, v1alpha1.ConditionStalled)
}

// handingOver is a pass with two backends. Only what its record and both backends say decides; the spec is the one from
// the beginning.
func (d *Decision) handingOver() []step {
	return []step{
		{"read the spec from the beginning", d.readKeptSpec},
		{"identify workload", d.identify},
		{"observe both backends", d.observeBoth},
		{"admit", d.admit},
		{"understand spec", d.understandBoth},
		{"let clusters join", d.letJoin},
		{"pin replicas", d.pin},
		{"gather companions", d.gather},
		{"decide", d.decideHandOver},
		{"carry out", d.orderBoth},
	}
}

// readKeptSpec reads the spec as it was when the hand-over began. Scaling, suspending, the strategy and the account do not wait.
func (d *Decision) readKeptSpec() error {
	fw, name, kept := d.in.FleetWorkload, d.record.migration.SpecRevision, d.in.Kept
	if kept == nil || kept.Name != name {
		d.Reads.KeptSpec = name
		return errEnough
	}
	spec := kept.Spec
	switch {
	case kept.Err != nil:
		return kept.Err
	case kept.Unreadable || spec != nil && !migration.Names(name, d.known(fw), *spec):
		// What somebody else has put in its place would be rolled out.
		return stall(v1alpha1.ReasonMigrationSpecLost,
			"ControllerRevision %s/%s does not hold the spec from the beginning of the migration to backend %q: somebody else has written it. "+
				"Nothing is changed. Delete it: kubectl delete controllerrevision %s -n %s", fw.Namespace, name, d.record.migration.To, name, fw.Namespace)
	case spec == nil:
		present := migration.Kept(fw.Spec)
		if !migration.Names(name, d.known(fw), present) {
			return stall(v1alpha1.ReasonMigrationSpecLost,
				"ControllerRevision %s/%s with the spec from the beginning of the migration to backend %q is gone, and the spec was changed since. "+
					"Nothing is changed. Bring it back from a backup, or set the spec to what it was; replicas, suspend and backend do not matter",
				fw.Namespace, name, d.record.migration.To)
		}
		d.Keep, spec = &KeptSpec{Name: name, Spec: &present}, &present
	}
	d.spec = fw.DeepCopy()
	d.spec.Spec = *spec.DeepCopy()
	d.spec.Spec.Replicas, d.spec.Spec.Suspend, d.spec.Spec.Backend = fw.Spec.Replicas, fw.Spec.Suspend, fw.Spec.Backend
	d.spec.Spec.ServiceAccountName = fw.Spec.ServiceAccountName
	d.here = d.in.Aliases.Written(d.spec, d.record.migration.From)
	return nil
}

// observeBoth has both backends read from their API servers. What cannot be read freezes the hand-over.
func (d *Decision) observeBoth() error {
	m, h := d.record.migration, &handOver{}
	d.handOver, d.work.query.Counterpart = h, backends.CounterpartActive
	h.source = handSide{name: m.From, nameOf: sourceName}
	h.target = handSide{name: m.To, nameOf: migration.NameOnTarget}
	var enough error
	for _, s := range []*handSide{&h.source, &h.target} {
		query := d.work.query
		query.Selectors = placement.Selectors(d.in.Aliases.Written(d.spec, s.name).Spec.Placement)
		read, err := d.side(SideRead{Backend: s.name, Fleet: true, Query: &query})
		if errors.Is(err, errEnough) {
			enough = err
			continue
		}
		if err != nil && enough == nil {
			d.freeze(s.name)
			return d.notConfigured(s.name, err)
		}
		if err == nil {
			s.fleet, s.observed = *read.Fleet, *read.Observed
		}
	}
	if enough != nil {
		return enough
	}
	d.merge()
	return nil
}

// freeze stops the clock of the migration while a backend cannot be read.
func (d *Decision) freeze(backend string) {
	next, _ := migration.Decide(*d.record.migration, migration.Input{Now: d.now.Time, Unavailable: backend})
	d.backend, d.record.migration = backend, &next
}

func (d *Decision) notConfigured(backend string, err error) error {
	if errors.Is(err, backends.ErrNotConfigured) {
		return stall(v1alpha1.ReasonBackendNotFound,
			"the migration needs backend %q, which is no longer in the operator's configuration; add it again", backend)
	}
	return err
}

// understandBoth reads the spec with the names that each backend has for its clusters.
func (d *Decision) understandBoth() (err error) {
	if err := d.understand(); err != nil {
		return err
	}
	d.handOver.source.plan = d.work.plan
	d.handOver.target.plan, err = d.work.plan.With(d.in.Aliases.Written(d.spec, d.handOver.target.name))
	return err
}

// merge shows the workload as one: of each cluster, the report of the backend whose it is, by the source's name. What nobody lists is in no
// fleet: its labels, which say what it is to run, and its room are not known.
func (d *Decision) merge() {
	h := d.handOver
	fleet, observed := backends.Fleet{}, backends.Observation{Found: true, Selection: backends.Selection{Settled: true}}
	for _, c := range d.record.migration.Clusters {
		owner, other := h.source, h.target
		if migration.IsTargets(c.Phase) {
			owner, other = other, owner
		}
		known, is := h.source.fleet.Get(c.Name)
		if !is { // it has left the source, or the fleet
			known, is = h.target.fleet.Get(migration.NameOnTarget(c))
			known.Name, known.Ready = c.Name, metav1.ConditionUnknown
		}
		if at, is := owner.fleet.Get(owner.nameOf(c)); is {
			known.Ready = at.Ready
		}
		if is {
			fleet.Clusters = append(fleet.Clusters, known)
		}
		if o, is := owner.observed.Of(owner.nameOf(c)); is && o.Presence != backends.PresenceNamed {
			o.Cluster = c.Name
			if last, is := other.observed.Of(other.nameOf(c)); is && o.Status == nil {
				o.Status = last.Status // the new owner has nothing to say yet; what is shown is no longer current
			}
			observed.Clusters = append(observed.Clusters, o)
		}
	}
	observed.Notes = slices.Concat(h.source.observed.Notes, h.target.observed.Notes)
	d.fleet, d.observed = &fleet, &observed
}

// pin gives the clusters of the migration, and no others, their replicas: what was decided before it began, and shares of another
// number once the spec asks for that. Nothing else moves replicas meanwhile, and a cluster that gets none keeps its object. Nothing is
// said of one that no backend lists: it may be back in a moment.
func (d *Decision) pin() error {
	listed, away := d.handed()
	chosen, shares := slices.Concat(listed, away), guard.Decided(d.record.placement)
	for _, name := range chosen {
		shares[name] += 0
	}
	waits := suspended(d.in.FleetWorkload)
	var err error
	switch {
	case !d.scaled():
	case len(listed) == 0:
		waits = true // another number waits for who is to run it
	default:
		if shares, err = d.divideOver(d.work.plan, *d.fleet, listed, away); err != nil {
			return err
		}
	}
	d.placed.vanished = d.goOn(away, shares)
	if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, listed, shares); err != nil || waits {
		return err
	}
	record, removal := guard.Check(guard.In{
		Record: d.record.placement, Asked: d.work.asked, Runs: d.runs(), Reports: d.reported(), Next: d.next(), Chosen: chosen,
		Confirmation: d.in.FleetWorkload.Annotations[v1alpha1.AnnotationConfirmRemoval], MaxPercent: d.in.MaxRemovalPercent,
	})
	if removal != nil {
		return d.hold(removal)
	}
	if madeAnew(d.record.placement) {
		record.ClustersHash = ""
	}
	return d.decided(record)
}

// madeAnew tells whether the record was lost while the workload moved, and made anew from what was found. It speaks of no spec: which one what
// runs was asked for by is not known, and that the present one asks for less is no edit.
func madeAnew(record *v1alpha1.PlacementRecord) bool {
	return record == nil || record.ClustersHash == ""
}

// decideHandOver asks the state machine. A record that changes is written before anything follows from it.
func (d *Decision) decideHandOver() error {
	h := d.handOver
	h.input = d.migrationInput()
	if suspended(d.in.FleetWorkload) {
		h.input.Unavailable = "spec.suspend"
	}
	next, orders := migration.Decide(*d.record.migration, h.input)
	h.orders = orders
	if err := d.countRestarts(&next); err != nil {
		return err
	}
	if d.remember(next) {
		return errEnough
	}
	return nil
}

// remember tells whether the record changes.
func (d *Decision) remember(next v1alpha1.MigrationStatus) (changes bool) {
	changes = !equality.Semantic.DeepEqual(*d.record.migration, next)
	orders := d.handOver.orders
	if orders.TargetOwns {
		d.record.backend = d.handOver.target.name
	}
	if orders.Ended && d.record.backend == d.handOver.target.name {
		d.record.placement = guard.Renamed(d.record.placement, d.onTarget)
	}
	if orders.Ended && madeAnew(d.record.placement) {
		d.record.placement = nil
	}
	d.record.migration = &next
	return changes
}

// onTarget is what the target calls a cluster of the migration.
func (d *Decision) onTarget(cluster string) string {
	for _, c := range d.record.migration.Clusters {
		if c.Name == cluster {
			return migration.NameOnTarget(c)
		}
	}
	return cluster
}

// orderBoth lets the source take its next step, and then the target; one that is to be released comes first.
func (d *Decision) orderBoth() error {
	h := d.handOver
	d.Orders = slices.Concat(d.orderOf(h.source, h.target, h.orders.Source), d.orderOf(h.target, h.source, h.orders.Target))
	if h.orders.Target == migration.ActRelease {
		slices.Reverse(d.Orders)
	}
	releases := h.orders.Source == migration.ActRelease || h.orders.Target == migration.ActRelease
	for i := range d.Orders {
		d.Orders[i].AloneAfter = releases && d.Orders[i].Apply != nil
	}
	d.conclude = d.concludeHandOver
	return nil
}

func (d *Decision) orderOf(mine, other handSide, act migration.Act) []Order {
	switch act {
	case migration.ActApply:
		desired := d.desiredOf(mine, other)
		return []Order{{Backend: mine.name, Apply: &desired}}
	case migration.ActRelease:
		query := d.work.query
		query.Counterpart = backends.CounterpartHeir
		return []Order{{Backend: mine.name, Delete: &Deletion{Query: query, Policy: v1alpha1.DeletionPolicyOrphan}}}
	default:
		return nil
	}
}

// concludeHandOver says what is awaited, whether the migration has ended, and what a person has to decide.
func (d *Decision) concludeHandOver(outcomes map[string]Outcome) error {
	h := d.handOver
	for _, order := range d.Orders {
		done := outcomes[order.Backend]
		if done.Err != nil {
			d.backend = order.Backend
			return fmt.Errorf("carry out: %w", done.Err)
		}
		if d.waiting == "" && done.Progress.Waiting != "" {
			d.waiting = fmt.Sprintf("backend %s: %s", order.Backend, done.Progress.Waiting)
		}
		d.requeueAfter = backends.Sooner(d.requeueAfter, done.Progress.RequeueAfter)
		if order.Delete != nil && done.Progress.Done {
			h.input.SourceGone = h.input.SourceGone || order.Backend == h.source.name
			h.input.TargetGone = h.input.TargetGone || order.Backend == h.target.name
		}
	}
	if h.input.SourceGone || h.input.TargetGone {
		next, orders := migration.Decide(*d.record.migration, h.input)
		h.orders = orders
		d.keepRestarts(&next)
		if d.remember(next) {
			return nil
		}
	}
	return d.ask()
}

// ask ends the pass with what a person has to decide.
func (d *Decision) ask() error {
	m, orders, fw := d.record.migration, d.handOver.orders, d.in.FleetWorkload
	if orders.Overdue != "" {
		return stall(v1alpha1.ReasonMigrationNotPossible, "the migration to backend %q has handed no cluster over yet: %s. It goes on when that is "+
			"mended; or set spec.backend back to %q", m.To, orders.Overdue, m.From)
	}
	if m.Approval == "" || orders.Ended {
		return nil
	}
	approve := fmt.Sprintf("kubectl annotate fleetworkload %s -n %s %s=%s --overwrite", fw.Name, fw.Namespace,
		v1alpha1.AnnotationApproveMigration, m.Approval)
	back := fmt.Sprintf("set spec.backend back to %q to undo the migration", m.From)
	if m.Failure != "" {
		return stall(v1alpha1.ReasonMigrationFailed, "the migration to backend %q: wave %d failed: %s. Its clusters are in phase %s. Try it "+
			"again with: %s; or %s", m.To, *m.Wave, m.Failure, m.Phase, approve, back)
	}
	return stall(v1alpha1.ReasonMigrationNeedsApproval, "the migration to backend %q: wave %d has passed. Let it go on with: %s; or %s",
		m.To, *m.Wave, approve, back)
}

// progressOf says how far the migration of a FleetWorkload has come, as backends know it.
func progressOf(fw *v1alpha1.FleetWorkload, m v1alpha1.MigrationStatus) string {
	if m.Phase == "" {
		return ""
	}
	handed := 0
	for _, c := range m.Clusters {
		if c.Phase == v1alpha1.MigrationPhaseVerifying || c.Phase == v1alpha1.MigrationPhaseReleasing {
			handed++
		}
	}
	text := fmt.Sprintf("moving from backend %s to %s: %s, %d of %d clusters handed over", m.From, m.To, m.Phase, handed, len(m.Clusters))
	if m.Wave != nil {
		text += fmt.Sprintf(", wave %d", *m.Wave)
	}
	for _, c := range m.Clusters {
		if c.Message != "" {
			text += fmt.Sprintf("; cluster %s: %s", c.Name, c.Message)
			break
		}
	}
	if !migration.Names(m.SpecRevision, fw, migration.Kept(fw.Spec)) {
		text += "; changes of the spec other than replicas wait until it is over"
	}
	return text
}

// migrationInput translates what both backends say.
func (d *Decision) migrationInput() migration.Input {
	fw, h := d.in.FleetWorkload, d.handOver
	in := migration.Input{
		Now: d.now.Time, Forward: fw.Spec.Backend == h.target.name,
		Waves: migration.Waves(d.spec.Spec.Migration), Timeout: migration.Timeout(fw.Spec.Migration), Pause: migration.Pauses(fw.Spec.Migration),
		Approval: fw.Annotations[v1alpha1.AnnotationApproveMigration], Clusters: map[string]migration.Pair{},
	}
	for _, c := range d.record.migration.Clusters {
		t, _ := targetOf(d.placed.targets, c.Name)
		in.Clusters[c.Name] = migration.Pair{Source: d.reportOf(h.source, c, t), Target: d.reportOf(h.target, c, t)}
	}
	return in
}

// reportOf is what one backend says of one cluster.
func (d *Decision) reportOf(s handSide, c v1alpha1.MigrationClusterStatus, t backends.Target) migration.Report {
	o, present := s.observed.Of(s.nameOf(c))
	cluster, known := s.fleet.Get(s.nameOf(c))
	switch {
	case !present && !known:
		return migration.Report{Presence: backends.PresenceUnknown}
	case !present:
		return migration.Report{Presence: backends.PresenceAbsent}
	case o.Presence == backends.PresenceNamed:
		return migration.Report{Presence: o.Presence}
	}
	r := migration.Report{
		Presence: o.Presence, Asked: o.Asked, Marked: len(o.Marks) > 0, Message: o.Message,
		Rendered: o.Revision == d.work.plan.Revision && (t.Replicas == nil || o.Asked != nil && *o.Asked == *t.Replicas),
		Current:  o.Current && o.Applied == metav1.ConditionTrue && known && cluster.Ready == metav1.ConditionTrue,
	}
	r.Evidence.UID = string(o.UID)
	if revision, is := o.Status["updateRevision"].(string); is {
		r.Evidence.PodRevision = revision
	}
	if state := d.interpret(s.name, t, o); state != nil {
		r.Evidence.Health, r.Evidence.Ready = state.Health, state.Ready
	}
	return r
}
