package pass

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// Conclude says how the pass ends, after its orders were carried out, with what came of each by the backend's name. One that was not
// carried out has no outcome. It is asked once.
func (d *Decision) Conclude(outcomes map[string]Outcome) Result {
	if d.err == nil {
		d.err = d.conclude(outcomes)
	}
	return d.result()
}

// Fail says how the pass ends when what is to be kept could not be created: nothing that rests on it has begun.
func (d *Decision) Fail(err error) Result {
	d.err, d.end.Keep = err, nil
	if d.begins != nil {
		d.end.Turn, d.record.migration = TurnEnds, &d.begins.next
	}
	return d.result()
}

func (d *Decision) result() Result {
	if d.end.Gone {
		d.end.Turn = TurnEnds
		return d.end
	}
	if d.in.early(d.err) {
		again := startingRetry
		if backends.Filling(d.err) {
			again = RetryInterval // the backend tells when all is read
		}
		return Result{Unchanged: true, RequeueAfter: again, Turn: d.end.Turn}
	}
	problem, next := problemOf(d.err, d.backend)
	out := d.end
	out.GoesOn = out.GoesOn && problem == nil
	out.Status = aggregate.Fleet(d.in.FleetWorkload.Status, d.facts(problem))
	out.Status.Backend, out.Status.Workload = d.record.backend, d.record.workload
	out.Status.Identity = d.identity()
	out.Status.Placement, out.Status.SpecRevision = d.record.placement, d.record.revision
	out.Status.Migration, out.Status.Change = onlyUsed(d.record.migration), d.record.change
	if HandsOver(d.in.FleetWorkload) {
		d.concludeTurn(&out, problem)
	}
	switch next {
	case retryWithBackoff:
		out.Err = d.err
	case retryLater:
		out.RequeueAfter = RetryInterval
	default:
		out.RequeueAfter = d.lookAgain()
	}
	return out
}

// concludeTurn gives the turn up when the hand-over has ended, and while it waits for a person, for whatever reason, is suspended or
// overdue: then it keeps no other one waiting.
func (d *Decision) concludeTurn(out *Result, problem *aggregate.Problem) {
	waits := problem != nil && problem.Stalled || d.record.migration.Approval != "" || suspended(d.in.FleetWorkload)
	switch h := d.handOver; {
	case h == nil && !waits: // both backends are not read yet, or one of them cannot be
		return
	case waits || h.orders.Overdue != "":
		out.Turn = TurnEnds
	default:
		out.Turn = TurnGoesOn
	}
	if d.handOver != nil && d.handOver.orders.Ended {
		out.Turn, out.Forget = TurnEnds, d.in.FleetWorkload.Status.Migration.SpecRevision
	}
}

// lookAgain is when time alone may change what is decided; 0 when it does not.
func (d *Decision) lookAgain() time.Duration {
	again := d.requeueAfter
	switch {
	case d.begins != nil && d.begins.waitsForTurn:
		again = backends.Sooner(again, turnAnyway)
	case d.waiting != "":
		again = backends.Sooner(again, lookAnyway)
	}
	switch {
	case d.handOver != nil:
		return backends.Sooner(d.handOver.orders.RequeueAfter, again)
	case d.placed.choice != nil:
		return backends.Sooner(d.placed.choice.RequeueAfter, again)
	default:
		return again
	}
}

// other is the backend that a migration leaves behind, the one under way or else the last: of its record, so that it is known whatever
// can be read. nil when the workload has never moved.
func (d *Decision) other() *aggregate.Other {
	m, wants := d.record.migration, d.in.FleetWorkload.Spec.Backend
	switch {
	case m == nil:
		return nil
	case m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating:
		return &aggregate.Other{Name: leftBehind(*m, wants), Moving: true, Marks: d.marks(*m)}
	case wants != "" && wants != d.record.backend:
		return &aggregate.Other{Name: d.record.backend, Moving: true}
	case len(m.History) == 0:
		return nil
	default:
		return d.leftLast(m.History[0])
	}
}

// leftBehind is the backend that is to have nothing in the end: the target when the workload goes back.
func leftBehind(m v1alpha1.MigrationStatus, wants string) string {
	if m.Phase == v1alpha1.MigrationPhaseReleasing || wants == m.To || wants == "" {
		return m.From
	}
	return m.To
}

// leftLast is the backend that the last migration has left behind. It has seen to the clusters that it had: not to those where the
// workload has come since, and to none when the workload has changed backends since then, which it may while it runs nowhere.
func (d *Decision) leftLast(last v1alpha1.MigrationRecord) *aggregate.Other {
	has, left, nameOf := last.To, last.From, migration.NameOnTarget
	if last.Phase != v1alpha1.MigrationPhaseCompleted {
		has, left, nameOf = last.From, last.To, sourceName
	}
	asked := map[string]bool{}
	if has == d.record.backend {
		for _, c := range last.Clusters {
			asked[nameOf(c)] = true
		}
	} else {
		left = has
	}
	runs := guard.Decided(d.record.placement)
	maps.DeleteFunc(runs, func(cluster string, replicas int32) bool { return replicas == 0 || asked[cluster] })
	return &aggregate.Other{Name: left, Unasked: slices.Sorted(maps.Keys(runs))}
}

// marks are what of the backend that is being released, or to be gone back from, its heir still sees on clusters.
func (d *Decision) marks(m v1alpha1.MigrationStatus) (all []string) {
	if d.handOver == nil {
		return nil
	}
	heir := d.handOver.source
	switch {
	case m.Phase == v1alpha1.MigrationPhaseReleasing:
		heir = d.handOver.target
	case m.Phase != v1alpha1.MigrationPhaseRollingBack:
		return nil
	}
	for _, o := range heir.observed.Clusters {
		if len(o.Marks) > 0 {
			all = append(all, fmt.Sprintf("cluster %s: %s", o.Cluster, brief.List(slices.Sorted(slices.Values(o.Marks)))))
		}
	}
	return all
}

// facts are what the pass has learned, for the status.
func (d *Decision) facts(problem *aggregate.Problem) aggregate.Facts {
	fw := d.in.FleetWorkload
	facts := aggregate.Facts{
		Generation: fw.Generation, Now: d.now, Problem: problem,
		Reported: d.observed != nil, Settled: d.placed.targets != nil, Waiting: d.waiting,
		Suspended: suspended(fw), Unapproved: d.unapproved, Paused: d.withheld(), Duplicated: plan.DivisionOf(fw.Spec.Placement) == v1alpha1.DivisionTypeDuplicated,
		Deleting: !fw.DeletionTimestamp.IsZero(),
	}
	if m := d.record.migration; m != nil && (d.handOver != nil || m.Phase != v1alpha1.MigrationPhaseValidating) {
		facts.Migrating = progressOf(d.known(fw), *m)
	}
	facts.Other = d.other()
	if d.handOver != nil && d.handOver.orders.Ended {
		facts.Migrating = fmt.Sprintf("the migration is over: backend %s carries the present spec out", d.record.backend)
	}
	if p := d.work.plan; p != nil {
		facts.Revision = p.Revision
		facts.Selector = interpreter.Selector(d.work.kind, p.Template)
	}
	if choice := d.placed.choice; choice != nil {
		facts.Choice = append([]string{choice.Message}, d.notePaused()...)
		for _, field := range d.placed.unused {
			facts.Choice = append(facts.Choice, field+": selects none of the chosen clusters")
		}
		if missing := d.unpinned(d.placed.missing); len(missing) > 0 {
			facts.Choice = append(facts.Choice, fmt.Sprintf("no longer chosen, and left as they are for %d seconds in case they come back: %s",
				guard.Patience/time.Second, brief.List(missing)))
		}
	}
	if d.observed != nil {
		facts.Reports, facts.Notes = d.reports(), slices.Concat(d.observed.Notes, d.travel.notes)
		if p := d.work.plan; p != nil {
			facts.Notes = append(facts.Notes, p.Notes...)
		}
	}
	return facts
}

// reports joins targets, observations and clusters. Before targets are known, every cluster that has something counts
// as one, unless it is being left.
func (d *Decision) reports() []aggregate.Report {
	if d.joined != nil {
		return d.joined
	}
	byName := map[string]*aggregate.Report{}
	var names []string
	at := func(name string) *aggregate.Report {
		if r, seen := byName[name]; seen {
			return r
		}
		r := &aggregate.Report{Name: name}
		if c, known := d.fleet.Get(name); known {
			r.Cluster = &c
		}
		byName[name] = r
		names = append(names, name)
		return r
	}
	targets := map[string]backends.Target{}
	for _, t := range d.placed.targets {
		targets[t.Cluster] = t
		r := at(t.Cluster)
		r.Target, r.Desired, r.Removal = !slices.Contains(d.placed.held, t.Cluster) && t.Mode != backends.ModeRemove, t.Replicas, t.Reason
	}
	for _, o := range d.observed.Clusters {
		r := at(o.Cluster)
		r.Observed = &o
		if d.placed.targets == nil {
			r.Target, r.Desired = !o.Removing(), o.Asked
		}
		if n, pinned := d.placed.pinned[o.Cluster]; pinned && d.placed.targets != nil {
			r.Paused, r.Target, r.Desired = true, true, n
		}
		_, r.Numbered = d.work.asked.Own[o.Cluster]
		r.GivenUp = d.placed.choice != nil && slices.Contains(d.placed.choice.GivenUp, o.Cluster) || d.failedOver(r)
		r.State = d.interpret(d.backend, targets[o.Cluster], o)
	}
	out := make([]aggregate.Report, 0, len(names))
	for _, name := range names {
		out = append(out, *byName[name])
	}
	if d.placed.targets != nil {
		d.joined = out
	}
	return out
}

// Unread is a cluster's report that could not be read.
type Unread struct {
	// Backend has told it.
	Backend string
	Kind    schema.GroupKind
	Reason  interpreter.Reason
}

// Unread are the reports that could not be read, each once.
func (d *Decision) Unread() []Unread { return slices.Collect(maps.Values(d.unread)) }

// failedOver tells whether a cluster that cannot be reached is left, and others have taken its place.
func (d *Decision) failedOver(r *aggregate.Report) bool {
	return d.placed.targets != nil && !r.Target && d.in.FleetWorkload.Spec.Placement.Failover != nil &&
		(r.Cluster == nil || r.Cluster.Ready != metav1.ConditionTrue)
}

// reading is a report with what it is read for. Statuses and manifests live as long as the decision.
type reading struct {
	manifest *unstructured.Unstructured
	status   uintptr
	desired  int32
	asked    bool
}

// interpret reads one cluster's report, once: each time would cost rules of the configuration as much again. A report that cannot be read is
// Unknown and says why.
func (d *Decision) interpret(backend string, target backends.Target, o backends.ClusterObservation) *interpreter.State {
	if o.Status == nil || d.work.kind == nil {
		return nil
	}
	desired := target.Replicas
	if desired == nil {
		desired = o.Asked
	}
	if o.Left != nil && o.Left.Replicas != nil {
		desired = o.Left.Replicas // it is whole as somebody has changed it
	}
	as := reading{target.Manifest, reflect.ValueOf(o.Status).Pointer(), ptr.Deref(desired, 0), desired != nil}
	if state, known := d.read[as]; known {
		return &state
	}
	state, err := d.work.kind.State(interpreter.Report{Manifest: target.Manifest, Desired: desired, Status: o.Status, Budget: d.rules})
	if err != nil {
		if d.unread == nil {
			d.unread = map[uintptr]Unread{}
		}
		d.unread[as.status] = Unread{Backend: backend, Kind: d.work.kind.GVK().GroupKind(), Reason: state.Reason}
	}
	if d.read == nil {
		d.read = map[reading]interpreter.State{}
	}
	d.read[as] = state
	return &state
}
