package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// conflictRetry is how soon a pass that read an outdated object runs again.
const conflictRetry = time.Second

// behindForLong is how long the cache may lack our own write before it is doubted.
const behindForLong = 30 * time.Second

// finish is the one exit of a step: it writes the status when it differs, or lets a deleted FleetWorkload go.
func (r *Reconciler) finish(ctx context.Context, fw *v1alpha1.FleetWorkload, result pass.Result) (res reconcile.Result, goesOn bool, err error) {
	if conflict(result.Err) && !r.conflicts.last(client.ObjectKeyFromObject(fw)) {
		return ctrl.Result{}, false, result.Err
	}
	if result.Gone {
		r.MigrationLimiter.end(client.ObjectKeyFromObject(fw))
		return ctrl.Result{}, false, r.removeFinalizer(ctx, fw)
	}
	if !result.Unchanged {
		r.begun.note(client.ObjectKeyFromObject(fw), result.Status, r.Clock.Now())
		if later := r.later(fw, result.Status); later > 0 {
			result.RequeueAfter = soonest(result.RequeueAfter, later)
		} else if goesOn, err = r.writeStatus(ctx, fw, result.Status, result.GoesOn); err != nil {
			if conflict(err) {
				return ctrl.Result{}, false, err
			}
			return ctrl.Result{}, false, errors.Join(result.Err, err)
		}
	}
	switch result.Turn {
	case pass.TurnEnds:
		r.MigrationLimiter.end(client.ObjectKeyFromObject(fw))
	case pass.TurnGoesOn:
		r.MigrationLimiter.goesOn(client.ObjectKeyFromObject(fw))
	case pass.TurnKept:
	}
	if err := r.forget(ctx, fw, result.Forget); err != nil {
		return ctrl.Result{}, false, errors.Join(result.Err, err)
	}
	return ctrl.Result{RequeueAfter: result.RequeueAfter}, goesOn, result.Err
}

// outdated is why an order was refused because something has changed since it was read; nil when none was.
func outdated(outcomes map[string]pass.Outcome) error {
	for _, done := range outcomes {
		if conflict(done.Err) {
			return done.Err
		}
	}
	return nil
}

// ended is the end of a pass. One that read something outdated runs again soon rather than complaining, unless that does not end.
func (r *Reconciler) ended(key types.NamespacedName, res reconcile.Result, err error) (reconcile.Result, error) {
	if r.conflicts.count(key, err); conflict(err) && !r.conflicts.last(key) {
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	return res, err
}

// behind is the end of a pass that finds the cache without our own write of that time. After a while the next pass looks past the cache: an API
// server that was restored from a backup does not have that write, and never will.
func (r *Reconciler) behind(ctx context.Context, key types.NamespacedName, since time.Time) reconcile.Result {
	if lacks := r.Clock.Now().Sub(since); lacks > behindForLong {
		log.FromContext(ctx).Info("The cache does not show this FleetWorkload as it was last written; it is read past the cache",
			"for", lacks.Round(time.Second).String())
		r.written.leave(key)
	}
	return ctrl.Result{RequeueAfter: conflictRetry}
}

// younger tells whether the first pass was less than that ago. While connections are made and caches fill for the first time, what they lack is
// no news about a workload, and its status stays as it is (law 3).
func (r *Reconciler) younger(than time.Duration) bool {
	now := r.Clock.Now()
	r.first.CompareAndSwap(nil, &now)
	return now.Sub(*r.first.Load()) < than
}

// writeStatus writes a status that differs. When the pass goes on with it, fw is afterwards as the API server has it; wentOn is false when nothing
// was to be written.
func (r *Reconciler) writeStatus(
	ctx context.Context, fw *v1alpha1.FleetWorkload, status v1alpha1.FleetWorkloadStatus, goesOn bool,
) (wentOn bool, err error) {
	same := equality.Semantic.DeepEqual
	if same(fw.Status, status) {
		return false, nil
	}
	packed, err := status.Pack()
	if err != nil {
		return false, fmt.Errorf("write status of %s: %w", client.ObjectKeyFromObject(fw), err)
	}
	before, after := fw.DeepCopy(), fw.DeepCopy()
	before.Status, after.Status = *fw.Status.Bare(), *packed
	if same(before.Status, after.Status) {
		return false, nil // what it lacks has no room
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, after, patch); err != nil {
		return false, fmt.Errorf("write status of %s: %w", client.ObjectKeyFromObject(fw), err)
	}
	r.written.remember(after, r.Clock.Now(), goesOn)
	r.Changes.Written(client.ObjectKeyFromObject(fw), fw.Status, status, r.Clock.Now())
	r.announce(ctx, fw, status)
	r.announceMigration(fw, fw.Status.Migration, status.Migration)
	if goesOn {
		*fw = *after
	}
	return goesOn, nil
}

const (
	// numbersPace is how often at most a status is written for numbers alone: pods that start on three clusters change them many times a second.
	numbersPace = time.Second
	// statusPace is the same while manyAnswers or more clusters are to answer: an API server takes as long for a status with a row for each of a
	// hundred clusters as for five ManifestWorks. With as many rows, and beside others on their way, it is paceOfMany.
	statusPace  = 3 * time.Second
	manyAnswers = 20
	// wordsPace is the same for messages alone: what is awaited now is soon something else. Beside others on their way it is longestPace.
	wordsPace = 3 * time.Second
	// paceForOthers is added for each FleetWorkload that is on its way and has no worker to itself, until it is longestPace.
	paceForOthers = 200 * time.Millisecond
	longestPace   = 10 * time.Second
	longestOfMany = 30 * time.Second
)

// paceOfMany is how often at most a status of many rows is written for numbers beside others: half of the time that the FleetWorkload is on its way,
// within bounds. What takes two minutes need not be told twelve times.
func paceOfMany(onItsWay time.Duration) time.Duration {
	return min(max(longestPace, onItsWay/2), longestOfMany)
}

// later is for how long the write of a status may wait, 0 when it may not. Decisions are written at once, and what a person waits for: that all clusters
// have the manifest, which Ready does not say where one cannot be reached.
func (r *Reconciler) later(fw *v1alpha1.FleetWorkload, status v1alpha1.FleetWorkloadStatus) time.Duration {
	key := client.ObjectKeyFromObject(fw)
	now := r.Clock.Now()
	others, many := r.begun.more(key, r.Concurrency, now), r.begun.unanswered(key) >= manyAnswers
	pace := min(longestPace, numbersPace+time.Duration(others)*paceForOthers)
	switch {
	case others > 0 && len(status.Clusters) >= manyAnswers:
		pace = paceOfMany(r.begun.onItsWay(key, now))
	case many:
		pace = max(pace, statusPace)
	}
	was, is := fw.Status, status
	if others > 0 || many {
		was.SpecRevision, is.SpecRevision = nil, nil // see shipped
	}
	if equality.Semantic.DeepEqual(withoutWords(was), withoutWords(is)) {
		pace = max(pace, wordsPace)
		if others > 0 {
			pace = max(pace, longestPace)
		}
	}
	before, after := withoutNumbers(was), withoutNumbers(is)
	before.Conditions, after.Conditions = withoutReports(before.Conditions), withoutReports(after.Conditions)
	after.Placement = withoutArrivals(before.Placement, after.Placement)
	if equal := equality.Semantic.DeepEqual; !equal(before, after) || equal(fw.Status, status) || awaitsUnreachable(status) && !awaitsUnreachable(fw.Status) {
		return 0
	}
	return pace - now.Sub(r.written.last(key))
}

// withoutNumbers is a status without what clusters report from one moment to the next, and how far that is.
func withoutNumbers(status v1alpha1.FleetWorkloadStatus) v1alpha1.FleetWorkloadStatus {
	status.Clusters, status.ClusterSummary, status.Truncated = nil, nil, nil
	status.Ready, status.ClustersReady, status.Scale = "", "", nil
	status.Replicas, status.ReadyReplicas, status.UpdatedReplicas, status.AvailableReplicas = nil, nil, nil, nil
	status.Conditions = slices.Clone(status.Conditions)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Message = ""
		if onItsWay(c.Reason) {
			c.Reason = ""
		}
	}
	return status
}

// withoutWords is a status without what messages say of the way to where it is going.
func withoutWords(status v1alpha1.FleetWorkloadStatus) v1alpha1.FleetWorkloadStatus {
	status.Conditions, status.Clusters = slices.Clone(status.Conditions), slices.Clone(status.Clusters)
	for i := range status.Conditions {
		if onItsWay(status.Conditions[i].Reason) {
			status.Conditions[i].Message = ""
		}
	}
	for i := range status.Clusters {
		status.Clusters[i].Message = ""
	}
	return status
}

// onItsWay tells whether a condition with that reason is soon another one, if all goes well.
func onItsWay(reason string) bool {
	return reason == v1alpha1.ReasonApplying || reason == v1alpha1.ReasonProgressing || reason == v1alpha1.ReasonUnknown
}

// withoutReports are the conditions but for those that say how far clusters have come. Ready says when all have.
func withoutReports(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionApplied || c.Type == v1alpha1.ConditionHealthy
	})
}

// withoutArrivals is a record as if nothing had arrived on clusters since the one before. What arrives is read anew in each pass.
func withoutArrivals(before, record *v1alpha1.PlacementRecord) *v1alpha1.PlacementRecord {
	if before == nil || record == nil || len(before.Clusters) != len(record.Clusters) {
		return record
	}
	record = record.DeepCopy()
	for i, was := range before.Clusters {
		if is := &record.Clusters[i]; was.State == v1alpha1.ClusterShareJoining && was.Name == is.Name {
			is.State, is.Baseline, is.PendingBaseline = was.State, was.Baseline, was.PendingBaseline
		}
	}
	return record
}

// soonest is the shorter of two times to wait, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
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
		r.Recorder.Eventf(fw, nil, severity, after.Reason, "Reconcile", "%s", brief.Note(after.Message))
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
		r.Recorder.Eventf(fw, nil, severity, "Migration"+string(phase), "Migrate", "%s", brief.Note(fmt.Sprintf(format, args...)))
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

func find(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
