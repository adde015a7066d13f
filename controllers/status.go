package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// conflictRetry is how soon a pass that read an outdated object runs again.
const conflictRetry = time.Second

// startingRetry is how soon a pass runs again that found the operator still starting.
const startingRetry = 250 * time.Millisecond

// lookAgain is how soon a pass runs again when no event may tell of the mending: a right granted on the backend, a CRD
// installed, a request that was throttled.
const lookAgain = 15 * time.Second

// finish is the one exit of a pass: it writes the status when it differs, or lets a deleted FleetWorkload go.
func (r *Reconciler) finish(ctx context.Context, s *scope, err error) (reconcile.Result, error) {
	if conflict(err) {
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	if s.gone {
		r.Turns.end(client.ObjectKeyFromObject(s.fw))
		return written(r.removeFinalizer(ctx, s.fw))
	}
	if backends.CodeOf(err) == backends.CodeNotReady && r.starting() {
		return ctrl.Result{RequeueAfter: startingRetry}, nil
	}
	problem, next := problemOf(err, s.backend)
	status := aggregate.Fleet(s.fw.Status, s.facts(problem))
	status.Backend, status.Workload = s.record.backend, s.record.workload
	status.Placement = s.record.placement
	status.Migration = onlyUsed(s.record.migration)
	if writeErr := r.writeStatus(ctx, s.fw, status); writeErr != nil {
		if conflict(writeErr) {
			return written(writeErr)
		}
		return ctrl.Result{}, errors.Join(err, writeErr)
	}
	if s.handOver != nil && s.record.migration.Approval == "" {
		r.Turns.goesOn(client.ObjectKeyFromObject(s.fw))
	} else if s.handOver != nil {
		r.Turns.end(client.ObjectKeyFromObject(s.fw)) // one that waits for a person keeps no other one waiting
	}
	if s.handOver != nil && s.handOver.orders.Ended {
		r.Turns.end(client.ObjectKeyFromObject(s.fw))
		if forgetErr := r.forget(ctx, s.fw); forgetErr != nil {
			return ctrl.Result{}, errors.Join(err, forgetErr)
		}
	}
	switch next {
	case retryWithBackoff:
		return ctrl.Result{}, err
	case retryLater:
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	default:
		return ctrl.Result{RequeueAfter: s.again()}, nil
	}
}

// lookAnyway is how soon a pass runs again that waits for a backend. Its events bring the next pass; one that is lost must not
// keep a workload for ever.
const lookAnyway = time.Minute

// again is when time alone may change what is decided; 0 when it does not.
func (s *scope) again() time.Duration {
	again := s.backendAgain
	if s.waiting != "" {
		again = sooner(again, lookAnyway)
	}
	switch {
	case s.handOver != nil:
		return sooner(s.handOver.orders.Again, again)
	case s.waitsForTurn:
		return lookAgain
	case s.choice != nil:
		return sooner(s.choice.Again, again)
	default:
		return again
	}
}

// sooner is the shorter of two times, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// written is the end of a pass whose last act was a write. An outdated object is read again rather than complained about.
func written(err error) (reconcile.Result, error) {
	if conflict(err) {
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	return ctrl.Result{}, err
}

// starting is true while connections are made and caches fill for the first time. What they lack then is no news about
// a workload, and its status stays as it is (law 3).
func (r *Reconciler) starting() bool {
	now := r.Clock.Now()
	r.first.CompareAndSwap(nil, &now)
	return now.Sub(*r.first.Load()) < r.StartGrace
}

func conflict(err error) bool { return err != nil && apierrors.IsConflict(err) }

func (r *Reconciler) writeStatus(ctx context.Context, fw *v1alpha1.FleetWorkload, status v1alpha1.FleetWorkloadStatus) error {
	if equality.Semantic.DeepEqual(fw.Status, status) {
		return nil
	}
	after := fw.DeepCopy()
	after.Status = status
	patch := client.MergeFromWithOptions(fw, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("write status of %s: %w", client.ObjectKeyFromObject(fw), err)
	}
	r.written.remember(after)
	r.announce(ctx, fw, status)
	r.announceMigration(fw, fw.Status.Migration, status.Migration)
	return nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, fw *v1alpha1.FleetWorkload) error {
	after := fw.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(fw, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer from %s: %w", client.ObjectKeyFromObject(fw), err)
	}
	log.FromContext(ctx).Info("FleetWorkload deleted", "backend", fw.Status.Backend)
	return nil
}

// facts are what the pass has learned, for the status.
func (s *scope) facts(problem *aggregate.Problem) aggregate.Facts {
	facts := aggregate.Facts{
		Generation: s.fw.Generation, Now: s.now, Problem: problem,
		Reported: s.observed != nil, Settled: s.targets != nil, Waiting: s.waiting,
		Suspended: suspended(s.fw),
		Deleting:  !s.fw.DeletionTimestamp.IsZero(),
	}
	if s.handOver != nil && handsOver(s.fw) {
		facts.Migrating = progressOf(s.fw, *s.record.migration)
	}
	if s.plan != nil {
		facts.Revision = s.plan.Revision
		facts.Selector = interpreter.Selector(s.kind, s.plan.Template)
	}
	if s.choice != nil {
		facts.Choice = []string{s.choice.Message}
		for _, field := range s.unused {
			facts.Choice = append(facts.Choice, field+": selects none of the chosen clusters")
		}
		if len(s.missing) > 0 {
			facts.Choice = append(facts.Choice, fmt.Sprintf("no longer chosen, and left as they are for %d seconds in case they come back: %s",
				guard.Patience/time.Second, bounded(s.missing)))
		}
	}
	if s.observed != nil {
		facts.Reports, facts.Notes = s.reports(), slices.Concat(s.observed.Notes, s.notes)
	}
	return facts
}

// reports joins targets, observations and clusters. Before targets are known, every cluster that has something counts
// as one, unless it is being left.
func (s *scope) reports() []aggregate.Report {
	if s.joined != nil {
		return s.joined
	}
	byName := map[string]*aggregate.Report{}
	var names []string
	at := func(name string) *aggregate.Report {
		if r, seen := byName[name]; seen {
			return r
		}
		r := &aggregate.Report{Name: name}
		if c, known := s.fleet.Get(name); known {
			r.Cluster = &c
		}
		byName[name] = r
		names = append(names, name)
		return r
	}
	targets := map[string]backends.Target{}
	for _, t := range s.targets {
		targets[t.Cluster] = t
		r := at(t.Cluster)
		r.Target, r.Desired = !slices.Contains(s.keeps, t.Cluster), t.Replicas
	}
	for _, o := range s.observed.Clusters {
		r := at(o.Cluster)
		r.Observed = &o
		if s.targets == nil {
			r.Target, r.Desired = !o.Removing, o.Desired
		}
		r.GivenUp = s.choice != nil && slices.Contains(s.choice.GivenUp, o.Cluster) || s.failedOver(r)
		r.State = s.interpret(targets[o.Cluster], o)
	}
	out := make([]aggregate.Report, 0, len(names))
	for _, name := range names {
		out = append(out, *byName[name])
	}
	if s.targets != nil {
		s.joined = out
	}
	return out
}

// failedOver tells whether a cluster that cannot be reached is left, and others have taken its place.
func (s *scope) failedOver(r *aggregate.Report) bool {
	return s.targets != nil && !r.Target && s.fw.Spec.Placement.Failover != nil &&
		(r.Cluster == nil || r.Cluster.Ready != metav1.ConditionTrue)
}

// interpret reads one cluster's report. A report that cannot be read is Unknown and says why.
func (s *scope) interpret(target backends.Target, o backends.ClusterObservation) *interpreter.State {
	if o.Status == nil || s.kind == nil {
		return nil
	}
	desired := target.Replicas
	if desired == nil {
		desired = o.Desired
	}
	state, _ := s.kind.State(interpreter.Report{Manifest: target.Manifest, Desired: desired, Status: o.Status})
	return &state
}

// announce records events for what has happened, not for states.
func (r *Reconciler) announce(ctx context.Context, fw *v1alpha1.FleetWorkload, status v1alpha1.FleetWorkloadStatus) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
		before, after := find(fw.Status.Conditions, kind), find(status.Conditions, kind)
		if after.Status != metav1.ConditionTrue || (before.Status == after.Status && before.Reason == after.Reason) {
			continue
		}
		severity := "Normal"
		if kind == v1alpha1.ConditionStalled {
			severity = "Warning"
		}
		r.Recorder.Eventf(fw, nil, severity, after.Reason, "Reconcile", "%s", eventNote(after.Message))
		log.FromContext(ctx).Info("Status changed", "condition", kind, "reason", after.Reason, "message", after.Message)
	}
	if fw.Status.Revision != status.Revision && fw.Status.Revision != "" {
		r.Recorder.Eventf(fw, nil, "Normal", "RevisionChanged", "Render", "revision changed from %s to %s", fw.Status.Revision, status.Revision)
	}
}

// announceMigration records an event for each phase of a migration, and for its end.
func (r *Reconciler) announceMigration(fw *v1alpha1.FleetWorkload, before, after *v1alpha1.MigrationStatus) {
	before, after = cmp.Or(before, &v1alpha1.MigrationStatus{}), cmp.Or(after, &v1alpha1.MigrationStatus{})
	moved := func(phase v1alpha1.MigrationPhase, severity, format string, args ...any) {
		r.Recorder.Eventf(fw, nil, severity, "Migration"+string(phase), "Migrate", "%s", eventNote(fmt.Sprintf(format, args...)))
	}
	switch {
	case before.Phase != "" && after.Phase == "" && len(after.History) > 0:
		last := after.History[0]
		moved(last.Phase, "Normal", "the migration from backend %s to %s has ended: %s", last.From, last.To, last.Phase)
	case after.Failure != "" && before.Failure != after.Failure:
		moved(after.Phase, "Warning", "from backend %s to %s: %s", after.From, after.To, after.Failure)
	case after.Phase != before.Phase || !equality.Semantic.DeepEqual(after.Wave, before.Wave):
		text := fmt.Sprintf("from backend %s to %s", after.From, after.To)
		if after.Wave != nil {
			text += fmt.Sprintf(", wave %d", *after.Wave)
		}
		moved(after.Phase, "Normal", "%s", text)
	case (after.FrozenSince == nil) != (before.FrozenSince == nil) && after.FrozenSince != nil:
		moved("Frozen", "Warning", "from backend %s to %s: it waits for a backend that cannot be asked", after.From, after.To)
	}
}

// eventNote fits a message into an event's note, or an entry of the status, which API servers bound to 1 KiB.
func eventNote(message string) string {
	const most = 1000
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") // a character may have been cut in two
	}
	return message
}

func find(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
