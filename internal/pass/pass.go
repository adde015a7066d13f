// Package pass decides what one pass over a FleetWorkload does. It is the only place where that is decided: the operator, kubectl fw,
// dry runs, histories and test equipment ask it. It is pure. Whoever asks reads what it wants to know, carries its orders out, and writes
// the status that it concludes:
//
//	for {
//	    d := pass.Decide(in)
//	    if d.Reads is empty { break }
//	    read them into in
//	}
//	carry d.Orders out
//	keep d.History, and tell d.Remembered what came of it
//	d.Conclude(outcomes) is what the status is to be
//
// A record is in the status before anything that follows from it is ordered (law 6).
package pass

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// Settings are the operator's configuration, as far as it decides anything.
type Settings struct {
	// Kinds knows the workload kinds.
	Kinds *interpreter.Registry
	// Installation is that of the operator; without one a FleetWorkload is known to backends by its UID.
	Installation string
	// Aliases are names of clusters that backends call differently.
	Aliases plan.Aliases
	// Backends are the names of those that are configured.
	Backends []string
	// LeaveOut are kinds of dependencies that are never read nor sent.
	LeaveOut []string
	// MaxRemovalPercent is the share of running replicas that may go away without a change of the spec.
	MaxRemovalPercent int32
	// MigrationsAtOnce is how many FleetWorkloads are handed over at once.
	MigrationsAtOnce int
	// Tenancy bounds what namespaces may use.
	Tenancy tenancy.Tenancy
}

// In is what is known. What Decide asks for in Reads is nil until it was read.
type In struct {
	Settings
	// FleetWorkload is what the API server has. It is not changed.
	FleetWorkload *v1alpha1.FleetWorkload
	// Undecodable says why FleetWorkload lacks what the API server has of it; empty when it is whole.
	Undecodable string
	// Now is the time of the pass.
	Now time.Time
	// Starting is true for the first moments of the operator, while it connects: what it lacks is no news then. Filling is true for longer: where
	// there is much to read for the first time, that is no news either.
	Starting, Filling bool
	// Sides are the backends, by their names.
	Sides map[string]*Side
	// Kept is the spec from the beginning of a hand-over.
	Kept *KeptSpec
	// Objects are what pods refer to, by Need.String.
	Objects map[string]Object
	// Turn tells whether it is this FleetWorkload's turn to be handed over.
	Turn *bool
	// Preflight is what stands against a hand-over, as far as the target's API server can tell.
	Preflight *Preflight
	// Rivals are the other FleetWorkloads that have an object of the same kind and name.
	Rivals *[]Rival
	// Access says what ServiceAccounts may do.
	Access map[Access]Answer
	// Namespace is that of the FleetWorkload.
	Namespace *Namespace
	// Planned is what the spec comes to.
	Planned *Planned
	// Restarts count the restarts of the pods that run in clusters, by RestartsRead.Cluster.
	Restarts map[string]*int32

	// rehearsed is true when nothing is carried out: see Rehearse.
	rehearsed bool
}

// Access asks whether a ServiceAccount of the FleetWorkload's namespace may do something on the management cluster.
type Access struct {
	ServiceAccount string
	plan.Right
}

// Answer is what was answered.
type Answer struct {
	Allowed bool
	// Err is why nobody could tell.
	Err error
}

// Namespace is what was found of one on the management cluster.
type Namespace struct {
	Labels map[string]string
	// Err is why it could not be read.
	Err error
}

// Side is one backend, as far as it was asked.
type Side struct {
	// Features are those of its driver; nil when there is none.
	Features backends.Features
	// Fleet and Observed are nil until they were read.
	Fleet    *backends.Fleet
	Observed *backends.Observation
	// Live is true when Observed is what the backend's API server has, and not a cache: see SideRead.Live.
	Live bool
	// Err is why something could not be read.
	Err error
}

// KeptSpec is a spec that is kept for the time of a hand-over.
type KeptSpec struct {
	Name string
	// Spec is nil when there is no object of that name.
	Spec *v1alpha1.FleetWorkloadSpec
	// Unreadable is true when there is one that holds no spec.
	Unreadable bool
	// Err is why it could not be read.
	Err error
}

// Object is what was found of something that pods refer to.
type Object struct {
	// Found is nil when there is none.
	Found *unstructured.Unstructured
	// Err is why it could not be read; Forbidden that the operator lacks the right.
	Err       error
	Forbidden bool
}

// Preflight is what was found against a hand-over.
type Preflight struct {
	Against []string
	// Brought is what the workload needs and would lose with the backend that is left.
	Brought []backends.Dependent
	Err     error
}

// Reads are what has to be known before anything can be decided.
type Reads struct {
	Sides []SideRead
	// KeptSpec names a kept spec.
	KeptSpec string
	Objects  []plan.Need
	Turn     bool
	Access   []Access
	// Namespace asks for the FleetWorkload's.
	Namespace bool
	Preflight *PreflightRead
	// Rivals asks who else has these objects.
	Rivals   []RivalsRead
	Restarts []RestartsRead
	// Plan asks what the spec comes to: see PlanOf.
	Plan bool
}

// Empty tells whether everything is known.
func (r Reads) Empty() bool {
	return len(r.Sides) == 0 && r.KeptSpec == "" && len(r.Objects) == 0 && !r.Turn && !r.Namespace && r.Preflight == nil && len(r.Rivals) == 0 && len(r.Restarts) == 0 && len(r.Access) == 0 && !r.Plan
}

// RivalsRead asks for the FleetWorkloads that have an object of that kind and name, in one namespace or, when it is empty, in all.
type RivalsRead struct {
	Object    v1alpha1.WorkloadReference
	Namespace string
}

// SideRead asks for a backend's features, and for more.
type SideRead struct {
	Backend string
	// Fleet asks for its clusters.
	Fleet bool
	// Query asks for what it has of the workload; nil does not.
	Query *backends.Query
}

// Live tells whether the backend's API server is to be asked, and no cache.
func (r SideRead) Live() bool {
	return r.Query != nil && r.Query.Counterpart == backends.CounterpartActive
}

// PreflightRead asks a backend what stands against carrying something out, and the one that is left what would go with it.
type PreflightRead struct {
	Backend string
	Desired backends.Desired
	// Source is the backend that is left, and On are the workload's clusters as that calls them.
	Source string
	On     []string
}

// RestartsRead asks how often containers of the pods in a cluster were restarted.
type RestartsRead struct {
	// Cluster is the name in the record of the migration; OnSource and OnTarget are what the backends call it, and empty when they are
	// not to be asked.
	Cluster            string
	OnSource, OnTarget string
	Namespace          string
	Pods               *metav1.LabelSelector
}

// Order is what one backend is to do: either Apply or Delete.
type Order struct {
	Backend string
	Apply   *backends.Desired
	Delete  *Deletion
	// OnlyAfter leaves the order out unless the one before is done.
	OnlyAfter bool
	// AloneAfter has it carried out with CounterpartGone once the one before is done: that backend has nothing left then.
	AloneAfter bool
}

// Deletion has a backend give everything up.
type Deletion struct {
	Query  backends.Query
	Policy v1alpha1.DeletionPolicy
}

// Outcome is what came of an order.
type Outcome struct {
	Progress backends.Progress
	Err      error
}

// TurnChange is what becomes of the turn to be handed over.
type TurnChange string

const (
	// TurnKept changes nothing.
	TurnKept TurnChange = ""
	// TurnEnds gives the turn, or the wait for it, to others.
	TurnEnds TurnChange = "Ends"
	// TurnGoesOn counts this FleetWorkload among those that are handed over.
	TurnGoesOn TurnChange = "GoesOn"
)

// Result is how a pass ends.
type Result struct {
	// Status is to be written where it differs.
	Status v1alpha1.FleetWorkloadStatus
	// Unchanged leaves the status as it is: nothing was learned.
	Unchanged bool
	// GoesOn is true when the status has a decision that nothing was ordered for yet. Once it is written, Decide may be asked again at once.
	GoesOn bool
	// Gone is true when a deleted FleetWorkload may go.
	Gone bool
	// Keep is to be created before the status is written, which names it. Forget names one to be deleted after that.
	Keep   *KeptSpec
	Forget string
	Turn   TurnChange
	// RequeueAfter is when to look again although nothing has happened; 0 when time alone changes nothing.
	RequeueAfter time.Duration
	// Err is a failure that is tried again soon, and later each time.
	Err error
}

// RetryInterval is how soon a pass runs again when no event may tell of the mending: a right granted on the backend, a CRD
// installed, a request that was throttled.
const RetryInterval = 15 * time.Second

// lookAnyway is how soon a pass runs again that waits for a backend. Its events bring the next pass; one that is lost must not
// keep a workload for ever.
const lookAnyway = time.Minute

// turnAnyway is how soon a pass runs again that waits for its turn to be handed over. It is woken for that, and there may be a thousand.
const turnAnyway = 5 * time.Minute

// early tells whether an error is only that the operator has not run for long.
func (in In) early(err error) bool {
	return backends.CodeOf(err) == backends.CodeNotReady && (in.Starting || in.Filling && backends.Filling(err))
}

// startingRetry is how soon a pass runs again that found the operator still starting. Backends tell when they are ready; a thousand FleetWorkloads
// must not ask them all the time.
const startingRetry = 2 * time.Second

// Decision is what a pass is to read, or what it is to carry out.
type Decision struct {
	// Reads are to be read, and Decide asked again. Without any, Orders hold, and may be none.
	Reads  Reads
	Orders []Order
	// Keep is to be created before any order is carried out.
	Keep *KeptSpec
	// History is to be kept when the orders have been carried out, whatever came of them: see Remembered. nil when nothing new is shipped.
	History *History
	// Refers are what the pods refer to, from now on; nil when that is not known.
	Refers *[]plan.Need

	in     In
	now    metav1.Time
	record record
	// spec is the FleetWorkload with the spec that is carried out: another one than the newest during a hand-over. here is spec with
	// clusters' names as the backend has them.
	spec, here *v1alpha1.FleetWorkload
	// backend is the name of the one that owns, or will own, the workload.
	backend string
	// work is what is carried; fleet and observed are where it stands.
	work     work
	fleet    *backends.Fleet
	observed *backends.Observation
	placed   placed
	// terms are what the namespace may use.
	terms tenancy.Terms
	// namespaceLabels are those that it is made with.
	namespaceLabels map[string]string
	travel          travel
	// forgets is true when the record is of nothing, and begins anew.
	forgets bool
	// handOver is nil but in a pass with two backends; begins but where a migration may begin.
	handOver *handOver
	begins   *beginning
	// joined are the reports, once targets are known.
	joined []aggregate.Report

	// rules is what evaluating the rules of a described kind may still cost; read is what was made of reports, and unread are those
	// that could not be read, by their statuses.
	rules  *interpreter.Budget
	read   map[reading]interpreter.State
	unread map[uintptr]Unread

	// unapproved says which change of the spec waits for a person, and how; empty when none does.
	unapproved string

	waiting      string
	requeueAfter time.Duration
	err          error
	conclude     func(map[string]Outcome) error
	end          Result
}

// work is the workload object, understood.
type work struct {
	query backends.Query
	kind  *interpreter.Kind
	plan  *plan.Plan
	asked guard.Asked
}

// placed is where the workload is to run.
type placed struct {
	choice  *placement.Choice
	targets []backends.Target
	// held are the targets that are given up and keep what they run for now.
	held []string
	// removals are why clusters are left.
	removals map[string]v1alpha1.RemovalReason
	// excluded are clusters that the spec does not choose whatever labels they have.
	excluded []string
	// vanished are clusters that the backend does not list for a moment, or that were missing before an edit that does not choose them, with
	// what they are to run. Nothing is said of them.
	vanished map[string]int32
	// probed are the clusters that are asked what they run, before it is taken over.
	probed []string
	// unused are the overrides that select no chosen cluster.
	unused []string
	// missing are clusters that the backend no longer chooses, and that are not left yet.
	missing []string
	// paused are the clusters on which nothing changes. Those that have the workload are pinned, with the replicas that they keep.
	paused []string
	pinned map[string]*int32
}

// record are the small explicit facts that the status keeps (law 6).
type record struct {
	backend   string
	workload  *v1alpha1.WorkloadReference
	placement *v1alpha1.PlacementRecord
	migration *v1alpha1.MigrationStatus
	revision  *v1alpha1.SpecRevision
	change    *v1alpha1.ChangeStatus
}

// errEnough ends a pass without a failure: what it has to read, to order or to record first is said.
var errEnough = errors.New("enough is known for this pass")

// step is one part of a decision. It ends it with an error, errEnough among them.
type step struct {
	name string
	run  func() error
}

// Decide says what a pass is to read, or else what each backend is to do.
func Decide(in In) *Decision {
	fw := in.FleetWorkload
	d := &Decision{
		in: in, now: metav1.NewTime(in.Now.Truncate(time.Second)), spec: fw, here: fw,
		// Until a driver is found for it, too: messages name the backend.
		backend: cmp.Or(fw.Status.Backend, fw.Spec.Backend),
		record: record{
			backend: fw.Status.Backend, workload: fw.Status.Workload, placement: fw.Status.Placement,
			migration: fw.Status.Migration.DeepCopy(), revision: fw.Status.SpecRevision, change: fw.Status.Change,
		},
		rules:    interpreter.NewBudget(),
		conclude: func(map[string]Outcome) error { return nil },
	}
	switch {
	case in.Undecodable != "":
		d.err = stall(v1alpha1.ReasonInvalidObject, "nothing is done, as the object cannot be read: %s", in.Undecodable)
	case !fw.DeletionTimestamp.IsZero():
		d.run(d.deletion())
	case HandsOver(fw):
		d.run(d.handingOver())
	default:
		d.run(d.ordinary())
	}
	if !d.Reads.Empty() || d.err != nil {
		d.Orders, d.History = nil, nil
	}
	return d
}

// run takes steps in order until one ends the decision.
func (d *Decision) run(steps []step) {
	for _, step := range steps {
		err := step.run()
		if errors.Is(err, errEnough) {
			return
		}
		if err != nil {
			d.err = fmt.Errorf("%s: %w", step.name, err)
			return
		}
	}
}

// ordinary is a pass with one backend.
func (d *Decision) ordinary() []step {
	return []step{
		{"wait for approval", d.awaitApproval},
		{"identify workload", d.identify},
		{"admit", d.admitNew},
		{"resolve backend", d.resolveBackend},
		{"look for an earlier life", d.recover},
		{"claim", d.claim},
		{"observe", d.observe},
		{"admit", d.admit},
		{"understand spec", d.understand},
		{"choose clusters", d.chooseClusters},
		{"look for others who have it", d.contest},
		{"guard adoption", d.guardAdoption},
		{"guard", d.guard},
		{"gather companions", d.gather},
		{"apply", d.apply},
		{"keep what is shipped", d.keepShipped},
		{"validate migration", d.validate},
	}
}

// suspended tells whether nothing is to be removed, moved or scaled.
func suspended(fw *v1alpha1.FleetWorkload) bool { return fw.Spec.Suspend != nil && *fw.Spec.Suspend }

// side is a backend of which a driver is known, or else is asked for.
func (d *Decision) side(read SideRead) (*Side, error) {
	s := d.in.Sides[read.Backend]
	missing := s == nil || s.Err == nil && (read.Fleet && s.Fleet == nil || read.Query != nil && s.Observed == nil)
	if missing {
		d.Reads.Sides = append(d.Reads.Sides, read)
		return nil, errEnough
	}
	return s, s.Err
}

// apply orders the workload's backend to take its next step.
func (d *Decision) apply() error {
	if d.unclaimed() {
		return errEnough
	}
	desired := d.work.plan.Desired(d.placed.targets)
	desired.Companions, desired.Prune = d.shipped(), d.travel.prune
	d.Orders = []Order{{Backend: d.backend, Apply: &desired}}
	d.conclude = d.concludeApply
	return nil
}

// concludeApply says what is awaited, whether a migration begins, and what was missing.
func (d *Decision) concludeApply(outcomes map[string]Outcome) error {
	done := outcomes[d.backend]
	if done.Err != nil {
		if d.begins != nil {
			d.end.Turn = TurnEnds
		}
		return fmt.Errorf("apply: %w", done.Err)
	}
	d.waiting, d.requeueAfter = done.Progress.Waiting, backends.Sooner(d.requeueAfter, done.Progress.RequeueAfter)
	if len(d.placed.probed) > 0 {
		d.waiting = d.awaitsProbe(done.Progress.Waiting)
	}
	if err := d.begin(); err != nil {
		return fmt.Errorf("validate migration: %w", err)
	}
	return d.reportMissing()
}
