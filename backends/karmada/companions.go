package karmada

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// companionWorkByUser is the index of companion works by the UIDs of the FleetWorkloads that use them.
const companionWorkByUser = "companion-user"

func indexCompanionWork(obj client.Object) []string {
	if obj.GetLabels()[companions.Label] == "" {
		return nil
	}
	return companions.ReadUsers(obj.GetAnnotations()).UIDs()
}

// companionWorksOf lists the cached companion works that a workload uses. They must not be changed.
func (d *Driver) companionWorksOf(ctx context.Context, key backends.Key) ([]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := d.cache.List(ctx, &list, client.MatchingFields{companionWorkByUser: string(key.UID)}); err != nil {
		return nil, backends.Classify("list companions of "+key.String(), err)
	}
	works := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		works = append(works, &list.Items[i])
	}
	return works, nil
}

func (d *Driver) companionWork(ctx context.Context, at types.NamespacedName) (*workv1alpha1.Work, error) {
	live := &workv1alpha1.Work{}
	err := d.cache.Get(ctx, at, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, backends.Classify("get work "+at.String(), err)
	}
	return live, nil
}

// first is how far the companions have come that must be there before the workload.
type first struct {
	// pending is what all clusters wait for.
	pending []string
	// blocked are the clusters that cannot have the workload for now, with the reason.
	blocked map[string]string
	// moving is true when a change of one may not have reached its cluster yet, see companionWorkStep.
	moving bool
}

// applyCompanionWorks takes the next step with every companion on every target.
func (d *Driver) applyCompanionWorks(ctx context.Context, desired backends.Desired, fleet backends.Fleet) (first, error) {
	out := first{blocked: map[string]string{}}
	now := time.Now()
	var errs []error
	namespace, written := false, renderings{}
	for _, t := range desired.Targets {
		for _, c := range desired.Companions {
			if !c.NeededOn(t.Cluster) {
				continue
			}
			step, err := d.applyCompanionWork(ctx, desired, t, c, fleet.InContact(t.Cluster), &namespace, written)
			errs = append(errs, err)
			out.moving = out.moving || step.moving(now)
			if step.pending != "" {
				out.pending = append(out.pending, t.Cluster+": "+step.pending)
			}
			if step.blocked != "" {
				out.blocked[t.Cluster] = step.blocked
			}
		}
	}
	return out, errors.Join(errs...)
}

// applyCompanionWork takes the next step with one companion on one cluster. namespace is true once Karmada is known to have it.
func (d *Driver) applyCompanionWork(
	ctx context.Context, desired backends.Desired, t backends.Target, c backends.Companion, ready bool, namespace *bool, written renderings,
) (companionWorkStep, error) {
	live, err := d.companionWork(ctx, companionWorkKey(t.Cluster, c.Object))
	if err != nil {
		return companionWorkStep{}, err
	}
	if live != nil {
		d.created.Remove(desired.Key.UID, client.ObjectKeyFromObject(live))
	}
	want, err := written.companionWork(desired.Key, t.Cluster, c, mayTakeOver(desired, t, c, live) && takesOver(live, t.Mode))
	if err != nil {
		return companionWorkStep{}, err
	}
	if !t.Mode.Owns() {
		step := nextObserve(live, &want, desired.Key)
		return step, d.patchCompanionWork(ctx, live, step.patch, c)
	}
	step, err := nextCompanionWork(live, want, desired.Key, ready)
	if step.live = live; err != nil {
		return step, err
	}
	if step.create != nil {
		if !*namespace {
			if err := d.ensureNamespace(ctx, c.Object.GetNamespace(), desired.Workload.NamespaceLabels); err != nil {
				return step, err
			}
			*namespace = true
		}
		return step, d.createCompanionWork(ctx, step.create, c, desired.Key)
	}
	return step, d.patchCompanionWork(ctx, live, step.patch, c)
}

// mayTakeOver tells whether a companion that is somebody else's may be taken over on a cluster. Who shares one goes on with what another
// FleetWorkload has begun.
func mayTakeOver(desired backends.Desired, t backends.Target, c backends.Companion, live *workv1alpha1.Work) bool {
	if !t.Mode.Owns() {
		return false
	}
	return desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt ||
		t.Mode == backends.ModeAdopt && !slices.Contains(c.Foreign, t.Cluster) || c.Shared && live != nil && companions.IsCompanionWork(live) && adopts(live)
}

// createCompanionWork never touches a Work that is there: the cache may be behind.
func (d *Driver) createCompanionWork(ctx context.Context, work *workv1alpha1.Work, c backends.Companion, key backends.Key) error {
	err := d.client.Create(ctx, work, client.FieldOwner(ssa.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache will show whose it is
	}
	if err == nil {
		d.created.Add(key.UID, client.ObjectKeyFromObject(work))
	}
	return companions.Explain("create work "+client.ObjectKeyFromObject(work).String(), c.Object, c.Shared, err)
}

// patchCompanionWork writes what differs, unless the Work has changed since it was read.
func (d *Driver) patchCompanionWork(ctx context.Context, live, after *workv1alpha1.Work, c backends.Companion) error {
	if after == nil || maps.Equal(live.Labels, after.Labels) && maps.Equal(live.Annotations, after.Annotations) &&
		equality.Semantic.DeepEqual(live.Spec, after.Spec) {
		return nil
	}
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	err := d.client.Patch(ctx, after, patch, client.FieldOwner(ssa.FieldOwner))
	return companions.Explain("patch work "+client.ObjectKeyFromObject(live).String(), c.Object, c.Shared, err)
}

// waitingFor returns desired with the blocked clusters held: the others go on without them.
func waitingFor(desired backends.Desired, blocked map[string]string) backends.Desired {
	if len(blocked) == 0 {
		return desired
	}
	desired.Targets = slices.Clone(desired.Targets)
	for i, t := range desired.Targets {
		if _, waits := blocked[t.Cluster]; waits && t.Mode.Owns() {
			desired.Targets[i].Mode = backends.ModeHold
		}
	}
	return desired
}

// leaveCompanionWorks lets go of the companions that are no longer wanted: of a cluster that is kept once the workload there
// is as wanted, of one that is to be left once the workload there has gone. settled is true when nothing of the workload
// waits to be written. On a cluster that is only observed all of them stay as they are, until it is owned again.
func (d *Driver) leaveCompanionWorks(
	ctx context.Context, desired backends.Desired, removed map[string]bool, live currentState, fleet backends.Fleet, settled bool,
) (waiting []string, requeueAfter time.Duration, err error) {
	companionWorks, err := d.companionWorksOf(ctx, desired.Key)
	if err != nil || len(companionWorks) == 0 {
		return nil, 0, err
	}
	wanted, targets := wantedCompanionWorks(desired), map[string]backends.Target{}
	for _, t := range desired.Targets {
		targets[t.Cluster] = t
	}
	var arrived map[string]bool
	var errs []error
	for _, w := range companionWorks {
		cluster := newWork(w).cluster
		t, kept := targets[cluster]
		if wanted[client.ObjectKeyFromObject(w)] || !kept && !removed[cluster] {
			continue
		}
		if kept && !t.Mode.Owns() {
			step := nextObserve(w, nil, desired.Key)
			errs = append(errs, d.patchCompanionWork(ctx, w, step.patch, companionOf(w)))
			if step.blocked != "" {
				waiting = append(waiting, cluster+": "+step.blocked)
			}
			continue
		}
		if kept && !desired.Prune.Takes(companions.IsShared(w)) {
			continue
		}
		if arrived == nil {
			arrived = hasArrived(desired, live, fleet)
		}
		if stillNeeded(t, kept, live.has(cluster), settled && arrived[cluster]) {
			waiting = append(waiting, cluster+": the workload to do without "+titleOf(w))
			continue
		}
		step, err := d.leaveCompanionWork(ctx, w, desired.Key, v1alpha1.DeletionPolicyDelete, fleet)
		errs, requeueAfter = append(errs, err), backends.Sooner(requeueAfter, step.requeueAfter)
		if step.waiting != "" {
			waiting = append(waiting, step.waiting)
		}
	}
	slices.Sort(waiting)
	return slices.Compact(waiting), requeueAfter, errors.Join(errs...)
}

// stillNeeded tells whether the workload on a cluster may need what is no longer listed: until its newest manifest has arrived there, or,
// where it is to be left, until it has gone.
func stillNeeded(t backends.Target, kept, has, arrived bool) bool {
	if kept {
		return t.Mode != backends.ModeHold && !arrived
	}
	return has
}

func wantedCompanionWorks(desired backends.Desired) map[types.NamespacedName]bool {
	wanted := map[types.NamespacedName]bool{}
	for _, t := range desired.Targets {
		for _, c := range desired.Companions {
			if c.NeededOn(t.Cluster) {
				wanted[companionWorkKey(t.Cluster, c.Object)] = true
			}
		}
	}
	return wanted
}

// hasArrived tells which clusters have the workload's newest manifest.
func hasArrived(desired backends.Desired, live currentState, fleet backends.Fleet) map[string]bool {
	out := map[string]bool{}
	for _, c := range translate(desired.Query, live, fleet).Clusters {
		out[c.Cluster] = c.Applied == metav1.ConditionTrue && c.Revision == desired.Revision && !c.Removing()
	}
	return out
}

// has tells whether anything of the workload is on the cluster, on its way out as well.
func (l currentState) has(cluster string) bool {
	return l.runs(cluster) || slices.ContainsFunc(l.works, func(w work) bool { return w.cluster == cluster })
}

func (d *Driver) leaveCompanionWork(
	ctx context.Context, w *workv1alpha1.Work, key backends.Key, policy v1alpha1.DeletionPolicy, fleet backends.Fleet,
) (step leaveStep, err error) {
	step = nextLeaving(w, key, policy, fleet, time.Now())
	switch {
	case step.release:
		err = d.release(ctx, newWork(w))
	case step.remove:
		err = d.discard(ctx, newWork(w))
	case step.patch != nil:
		err = d.patchCompanionWork(ctx, w, step.patch, companionOf(w))
	}
	if step.waiting != "" {
		step.waiting = titleOf(w) + ": " + step.waiting
	}
	return step, err
}

// companionOf is what a companion work delivers.
func companionOf(w *workv1alpha1.Work) backends.Companion {
	c := backends.Companion{Object: carried(w), Shared: companions.IsShared(w)}
	if c.Object == nil {
		c.Object = reference("v1", "Secret", w.Namespace, w.Name) // unknown, so nothing is told of it
	}
	return c
}

func titleOf(w *workv1alpha1.Work) string {
	if obj := carried(w); obj != nil {
		return companions.Title(obj)
	}
	return "Work " + w.Name
}

// deleteCompanionWorks lets go of all companions of a workload that is gone. It returns what is awaited.
func (d *Driver) deleteCompanionWorks(
	ctx context.Context, query backends.Query, policy v1alpha1.DeletionPolicy, fleet backends.Fleet,
) (awaited string, requeueAfter time.Duration, err error) {
	key := query.Key
	companionWorks, err := d.companionWorksOf(ctx, key)
	if err != nil {
		return "", 0, err
	}
	var waiting []string
	var errs []error
	for _, w := range companionWorks {
		if need := companions.ReadNeed(w.Annotations); query.Alone() && need.Observes(key.UID) {
			w = withNeed(w, need.Owning(key, nil))
		}
		step, err := d.leaveCompanionWork(ctx, w, key, policy, fleet)
		errs, requeueAfter = append(errs, err), backends.Sooner(requeueAfter, step.requeueAfter)
		if step.waiting != "" {
			waiting = append(waiting, step.waiting)
		}
	}
	unseen, err := d.unseenCompanionWorks(ctx, key)
	errs = append(errs, err)
	slices.Sort(waiting)
	switch {
	case len(waiting) > 0:
		awaited = brief.Clauses(waiting, mostNamed)
	case len(companionWorks) > 0 || unseen:
		awaited = "the cache to show the companions"
	}
	return awaited, requeueAfter, errors.Join(errs...)
}

// unseenCompanionWorks tells whether a companion work was created a moment ago and is not in the cache yet.
func (d *Driver) unseenCompanionWorks(ctx context.Context, key backends.Key) (bool, error) {
	return d.created.Unseen(key.UID, func(at types.NamespacedName) (bool, error) {
		there, err := caches.Lookup(ctx, d.client, workv1alpha1.SchemeGroupVersion.WithKind("Work"), at)
		return there != nil, err
	})
}

// mostNamed bounds how many clusters or companions a message names.
const mostNamed = 5

// observeCompanionWorks adds to the reports what stands against a cluster's companions.
func (d *Driver) observeCompanionWorks(ctx context.Context, query backends.Query, o *backends.Observation) error {
	companionWorks, err := d.companionWorksOf(ctx, query.Key)
	if err != nil || len(companionWorks) == 0 {
		return err
	}
	o.Found = true
	at := map[string]int{}
	for i, c := range o.Clusters {
		at[c.Cluster] = i
	}
	foreign := map[string][]string{}
	for _, live := range companionWorks {
		w := newWork(live)
		if _, known := at[w.cluster]; !known {
			at[w.cluster] = len(o.Clusters)
			o.Clusters = append(o.Clusters, backends.ClusterObservation{Cluster: w.cluster, Applied: metav1.ConditionUnknown, Presence: backends.PresenceReleased})
		}
		report := &o.Clusters[at[w.cluster]]
		if report.Released() {
			if live, err = d.latest(ctx, query, live); err != nil {
				return err
			}
			report.Presence = backends.PresenceOf(report.Removing(), live == nil || releasedFor(live, query.Key))
		}
		if live == nil {
			continue
		}
		w = newWork(live)
		companions.Serve(report, live, titleOf(live), query.Key)
		if w.companion(report) {
			title := titleOf(live)
			foreign[title] = append(foreign[title], w.cluster)
			report.Foreign = append(report.Foreign, title)
		}
		if query.Companions {
			w.tellCompanion(report, query.Key)
		}
	}
	for _, c := range o.Clusters {
		backends.SortCompanions(c.Companions)
	}
	slices.SortFunc(o.Clusters, func(a, b backends.ClusterObservation) int { return strings.Compare(a.Cluster, b.Cluster) })
	o.Notes = append(o.Notes, companions.Notes(foreign, companions.ForeignNote)...)
	return nil
}

// latest is a companion work as the query wants it read; nil when it has gone.
func (d *Driver) latest(ctx context.Context, query backends.Query, cached *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	if query.Counterpart == backends.CounterpartNone {
		return cached, nil
	}
	at, now := client.ObjectKeyFromObject(cached), &workv1alpha1.Work{}
	err := d.client.Get(ctx, at, now)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, backends.Classify("get work "+at.String(), err)
	}
	return now, nil
}

// companion adds one companion's report to its cluster's. It tells whether it is somebody else's and used as it is.
func (w work) companion(o *backends.ClusterObservation) (foreign bool) {
	applied := w.applied()
	failed := applied != nil && applied.Status == metav1.ConditionFalse && !w.suspended()
	switch {
	case w.terminating() || w.preserved():
		o.Presence = backends.PresenceOf(o.Removing() || o.Revision == "", o.Released())
	case failed && conflicts(w) && companions.IsShared(w.Work):
		return true
	case failed:
		title := titleOf(w.Work)
		o.Conflict, o.Applied, o.Current = o.Conflict || conflicts(w), metav1.ConditionFalse, false
		switch kind, _, _ := strings.Cut(title, " "); {
		case w.ofAnother():
			o.Message = title + ": " + anotherMessage
		case conflicts(w):
			o.Message = companions.ForeignMessage(title)
		default:
			o.Message = title + ": " + companions.Say(kind, applied.Message)
		}
	case o.Message == "" && o.Revision == "":
		o.Message = "companions are on their way"
	}
	return false
}

// tellCompanion adds what the Work delivers to its cluster's report.
func (w work) tellCompanion(o *backends.ClusterObservation, key backends.Key) {
	manifest := w.manifest()
	if manifest == nil {
		return // a companion that cannot be read is written anew
	}
	need := companions.ReadNeed(w.Annotations)
	c := backends.CompanionObservation{
		Object: manifest, Shared: companions.IsShared(w.Work), Others: len(need.Leaving(key, v1alpha1.DeletionPolicyDelete).Users) > 0,
		Elsewhere: need.Elsewhere(), Removing: w.terminating(),
	}
	if conflicts(w) && !w.suspended() {
		c.Theirs = backends.TheirsForeign
	}
	o.Companions = append(o.Companions, c)
}

// onCompanionWork tells the users of companion works; see onWork for the Works of bindings.
func (w *watches) onCompanionWork() toolscache.ResourceEventHandler {
	tell := func(before, now *workv1alpha1.Work, same bool) {
		if !companions.IsCompanionWork(now) {
			return
		}
		for _, user := range companions.Changed(before, now, same) {
			w.tellName(user)
		}
	}
	alone := func(w *workv1alpha1.Work) { tell(w, w, false) }
	return caches.Handler(alone, func(before, now *workv1alpha1.Work) {
		tell(before, now, equality.Semantic.DeepEqual(before.Status, now.Status))
	}, alone)
}
