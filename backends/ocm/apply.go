package ocm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

const (
	// writers bounds how many clusters' objects are written at once.
	writers = 10
	// maxWaiting bounds how many clusters a Waiting message names.
	maxWaiting = 5
	// pruneAge keeps a prerequisite that nobody seems to need for a moment: after a restart, the workload that it was
	// made for may have no ManifestWork yet.
	pruneAge = time.Minute
)

// Apply implements backends.Driver.
func (d *Driver) Apply(ctx context.Context, desired backends.Desired) (backends.Progress, error) {
	if err := d.ready(ctx); err != nil {
		return backends.Progress{}, err
	}
	plan, err := newPlan(desired, d.opts)
	if err != nil {
		return backends.Progress{}, err
	}
	if err := d.refuseEarlier(ctx, desired.Key); err != nil {
		return backends.Progress{}, err
	}
	fleet, err := d.fleet(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	if err := refuseUnknown(desired.Selectors, fleet); err != nil {
		return backends.Progress{}, err
	}
	selected, waiting, err := d.applyPlacement(ctx, plan)
	shipped, wrong := d.shipDefinitions(ctx, desired.Query, selected.Unfit)
	if waiting = append(waiting, shipped...); wrong != nil || err != nil && len(shipped) > 0 {
		return progress(waiting), wrong
	}
	if err != nil || len(desired.Targets) == 0 {
		return progress(waiting), err
	}
	more, behind, err := d.applyWorks(ctx, plan, fleet, selected)
	return lookingAgain(progress(append(waiting, more...)), behind), err
}

// lookingAgain looks again when the cache is behind: what it is to show may have gone before it was there, and then no event comes.
func lookingAgain(p backends.Progress, behind bool) backends.Progress {
	if behind {
		p.Again = expectations.Patience
	}
	return p
}

func progress(waiting []string) backends.Progress {
	if len(waiting) == 0 {
		return backends.Progress{Done: true}
	}
	if n := len(waiting) - maxWaiting; n > 0 {
		waiting = append(slices.Clone(waiting[:maxWaiting]), fmt.Sprintf("and %d more", n))
	}
	return backends.Progress{Waiting: strings.Join(waiting, "; ")}
}

// applyPlacement makes bindings and the Placement, and removes former Placements once the new one has settled. It returns
// the choice, which is not settled while something is awaited.
func (d *Driver) applyPlacement(ctx context.Context, p plan) (selected backends.Selection, waiting []string, err error) {
	for _, binding := range p.bindings {
		live, err := d.cached(ctx, binding)
		if err != nil {
			return selected, nil, err
		}
		if live != nil && live.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator {
			continue
		}
		if err := d.applyInNamespace(ctx, live, binding); err != nil {
			return selected, nil, err
		}
	}
	live, err := d.cached(ctx, p.placement)
	if err != nil {
		return selected, nil, err
	}
	if live != nil && live.GetLabels()[v1alpha1.LabelUID] != string(p.desired.Key.UID) {
		return selected, nil, nameConflict(p.placement)
	}
	switch {
	case live != nil && live.GetDeletionTimestamp() != nil:
		return selected, []string{"the former Placement to go"}, nil
	case live != nil && live.GetGeneration() > 1:
		// Its decisions are for what somebody has made of it; see readSelection.
		return selected, []string{"the Placement that somebody has changed to be replaced"}, d.remove(ctx, live)
	case live == nil:
		key := p.desired.Key.NamespacedName
		d.successors.add(client.ObjectKeyFromObject(p.placement), key) // before the look, so that no event is missed after it
		stale, err := d.hasDecisions(ctx, p.placement)
		if err == nil && stale {
			_, err = d.showAgain(ctx, p.placement, p.desired.Key.UID)
		}
		if err != nil || stale {
			return selected, []string{"the former Placement's decisions to go"}, err
		}
		d.successors.drop(key, nil)
		if err := d.refuseForeign(ctx, p.placement, p.desired.Key); err != nil {
			return selected, nil, err
		}
	}
	if err := d.applyInNamespace(ctx, live, p.placement); err != nil {
		return selected, nil, err
	}
	selected, err = d.selection(ctx, p.placement, p.desired.Query)
	if err != nil {
		return selected, nil, err
	}
	if !selected.Settled {
		return selected, []string{selected.Message}, nil
	}
	return selected, nil, d.pruneFormer(ctx, p)
}

func (d *Driver) pruneFormer(ctx context.Context, p plan) error {
	placements, err := d.placementsOf(ctx, p.desired.Key)
	if err != nil {
		return err
	}
	for _, former := range placements {
		if former.GetName() != p.placement.GetName() && former.GetDeletionTimestamp() == nil {
			if err := d.remove(ctx, former); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasDecisions tells whether decisions of an earlier Placement of the name wait for the garbage collector: a new one
// would take them over and lose them again.
func (d *Driver) hasDecisions(ctx context.Context, placement *unstructured.Unstructured) (bool, error) {
	var decisions clusterv1beta1.PlacementDecisionList
	err := d.cache.List(ctx, &decisions, client.InNamespace(placement.GetNamespace()),
		client.MatchingLabels{clusterv1beta1.PlacementLabel: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("list cached PlacementDecisions: %w", err)
	}
	return len(decisions.Items) > 0, nil
}

// refuseForeign fails when the API server has an object of that name that is not the workload's; the caches hold only
// objects with our label.
func (d *Driver) refuseForeign(ctx context.Context, obj *unstructured.Unstructured, key backends.Key) error {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(obj.GroupVersionKind())
	err := d.hub.Get(ctx, client.ObjectKeyFromObject(obj), partial)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return explain("get "+title(obj), err)
	case partial.Labels[v1alpha1.LabelUID] != string(key.UID):
		return nameConflict(obj)
	default:
		return nil
	}
}

// refuseEarlier fails while the hub has objects of an earlier FleetWorkload of the same name.
func (d *Driver) refuseEarlier(ctx context.Context, key backends.Key) error {
	for _, kind := range []*unstructured.UnstructuredList{listOf(manifestWorkGVK), listOf(placementGVK)} {
		objects, err := d.list(ctx, kind, client.MatchingFields{indexOwner: key.String()})
		if err != nil {
			return err
		}
		for _, obj := range objects {
			if obj.GetLabels()[v1alpha1.LabelUID] == string(key.UID) {
				continue
			}
			return &backends.Error{
				Code: backends.CodeNameConflict, Value: obj.GetNamespace() + "/" + obj.GetName(),
				Message: "the hub has a " + obj.GetKind() + " of an earlier FleetWorkload of this name",
				Remedy:  cmp.Or(key.EarlierLife(obj.GetAnnotations()), "wait until that one is deleted, or delete its objects on the hub"),
			}
		}
	}
	return nil
}

func nameConflict(obj *unstructured.Unstructured) error {
	return &backends.Error{
		Code: backends.CodeNameConflict, Value: obj.GetNamespace() + "/" + obj.GetName(),
		Message: "the hub has a " + obj.GetKind() + " of this name that is not this FleetWorkload's",
		Remedy:  "remove it, or rename the FleetWorkload",
	}
}

// applyInNamespace applies an object and creates its namespace on the hub when that is missing. Namespaces are never
// removed: others may have put something into them.
func (d *Driver) applyInNamespace(ctx context.Context, live, obj *unstructured.Unstructured) error {
	_, err := ssa.Apply(ctx, d.hub, live, obj)
	if !isNamespaceMissing(err, obj.GetNamespace()) {
		return explain("apply "+title(obj), err)
	}
	namespace := unstructuredOf(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetName(obj.GetNamespace())
	if err := d.hub.Create(ctx, namespace, client.FieldOwner(ssa.FieldOwner)); err != nil && !apierrors.IsAlreadyExists(err) {
		return explain("create namespace "+obj.GetNamespace(), err)
	}
	_, err = ssa.Apply(ctx, d.hub, live, obj)
	return explain("apply "+title(obj), err)
}

func isNamespaceMissing(err error, namespace string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound &&
		status.Status().Details != nil && status.Status().Details.Kind == "namespaces" &&
		status.Status().Details.Name == namespace
}

// outcome is what one cluster's step has come to.
type outcome struct {
	cluster string
	waiting string
	err     error
}

// applyWorks takes the next step on every cluster that is wanted or to be left. What fails on one
// cluster does not keep the others from going on. behind tells that the cache does not show everything that was written.
func (d *Driver) applyWorks(
	ctx context.Context, p plan, fleet backends.Fleet, selected backends.Selection,
) (waiting []string, behind bool, err error) {
	works, err := d.worksOf(ctx, p.desired.Key)
	if err != nil {
		return nil, false, err
	}
	jobs, err := d.jobs(p, works, selected)
	if err != nil {
		return nil, false, err
	}
	owned := map[string]*unstructured.Unstructured{}
	for cluster, j := range jobs {
		if j.target != nil && j.target.mode.Owns() && j.work != nil {
			owned[cluster] = j.work
		}
	}
	if err := d.refuseCarried(ctx, owned); err != nil {
		return nil, false, err
	}
	var late atomic.Bool
	waiting, err = inParallel(ctx, jobs, func(cluster string, j *job) (string, error) {
		if behind, err := d.behind(ctx, cluster, p.desired.Key, j.work); behind {
			late.Store(true)
			return waitsForCache, err
		}
		contact := inContact(fleet, cluster)
		if j.target == nil {
			return d.removeWork(ctx, j.work, intent{policy: v1alpha1.DeletionPolicyDelete, ready: contact})
		}
		if _, known := fleet.Get(cluster); !known && j.work == nil {
			return "", &backends.Error{
				Code: backends.CodeClusterNotFound, Field: "spec.placement.clusters", Value: cluster,
				Message: "the hub knows no accepted cluster of this name",
				Remedy:  "register the cluster and accept it, or correct the name",
			}
		}
		return d.applyWork(ctx, p, *j.target, j.work, contact)
	})
	leaving, leaveErr := d.leaveCarriers(ctx, p, works, fleet)
	return append(waiting, leaving...), late.Load(), errors.Join(err, leaveErr, d.pruneDropped(ctx, p, works))
}

// waitsForCache is what a cluster waits for whose ManifestWork the cache does not have as it was written.
const waitsForCache = "the cache to show the ManifestWork"

// behind tells whether the cache has a workload's ManifestWork, nil when it has none, from before it was written last.
func (d *Driver) behind(ctx context.Context, cluster string, key backends.Key, work *unstructured.Unstructured) (bool, error) {
	at := types.NamespacedName{Namespace: cluster, Name: workName(key)}
	var live metav1.Object
	if work != nil {
		live = work
	}
	return d.expected.Behind(expectations.Key{GroupKind: manifestWorkGVK.GroupKind(), NamespacedName: at}, live, func() (string, error) {
		there, err := d.onHub(ctx, at)
		if there == nil || there.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator || there.Labels[v1alpha1.LabelUID] != string(key.UID) {
			return "", err
		}
		return there.ResourceVersion, nil
	})
}

// job is what is to be done on a cluster: a ManifestWork is to be made as the target is, or to go.
type job struct {
	target *clusterPlan
	work   *unstructured.Unstructured
}

// jobs are those of all clusters that the workload is for, or is to leave.
func (d *Driver) jobs(p plan, works []*unstructured.Unstructured, selected backends.Selection) (map[string]*job, error) {
	jobs := map[string]*job{}
	for i := range p.targets {
		jobs[p.targets[i].cluster] = &job{target: &p.targets[i]}
	}
	for _, work := range works {
		if work.GetName() != workName(p.desired.Key) {
			continue
		}
		if jobs[work.GetNamespace()] == nil {
			leaves, err := d.isToLeave(p.desired, work, selected)
			if err != nil {
				return nil, err
			}
			if !leaves {
				continue
			}
			jobs[work.GetNamespace()] = &job{}
		}
		jobs[work.GetNamespace()].work = work
	}
	return jobs, nil
}

// isToLeave tells whether the workload is to be taken off a cluster: that was said, and its ManifestWork does not go on asking.
func (d *Driver) isToLeave(desired backends.Desired, work *unstructured.Unstructured, selected backends.Selection) (bool, error) {
	if !desired.Removes(work.GetNamespace()) {
		return false, nil
	}
	stays, err := d.goesOnAsking(work, selected)
	return !stays, err
}

// pruneDropped removes the prerequisites that the workload has needed until now. What it cannot know about, after a
// restart, is left to the next Delete: Apply of what is already there must not write.
func (d *Driver) pruneDropped(ctx context.Context, p plan, works []*unstructured.Unstructured) error {
	needed := map[types.NamespacedName]bool{}
	for _, work := range works {
		for _, name := range neededBy(work) {
			key := types.NamespacedName{Namespace: work.GetNamespace(), Name: name}
			d.needs.add(key, p.desired.Key.NamespacedName)
			needed[key] = true
		}
	}
	for _, target := range p.targets {
		for _, prerequisite := range target.prerequisites {
			needed[client.ObjectKeyFromObject(prerequisite)] = true
		}
	}
	for _, key := range d.needs.drop(p.desired.Key.NamespacedName, needed) {
		prerequisite := newObject(manifestWorkGVK, key.Namespace, key.Name)
		live, err := d.cached(ctx, prerequisite)
		if err != nil {
			return err
		}
		if live == nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		if err := d.prunePrerequisite(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

func inContact(fleet backends.Fleet, cluster string) bool {
	c, known := fleet.Get(cluster)
	return known && c.Ready == metav1.ConditionTrue
}

// inParallel runs f for every cluster and puts the results in the clusters' order.
func inParallel[T any](ctx context.Context, jobs map[string]T, f func(cluster string, job T) (string, error)) ([]string, error) {
	outcomes := make([]outcome, 0, len(jobs))
	for cluster := range jobs {
		outcomes = append(outcomes, outcome{cluster: cluster})
	}
	slices.SortFunc(outcomes, func(a, b outcome) int { return strings.Compare(a.cluster, b.cluster) })
	workqueue.ParallelizeUntil(ctx, writers, len(outcomes), func(i int) {
		outcomes[i].waiting, outcomes[i].err = f(outcomes[i].cluster, jobs[outcomes[i].cluster])
	})
	var waiting []string
	var errs []error
	for _, o := range outcomes {
		if o.waiting != "" {
			waiting = append(waiting, o.cluster+": "+o.waiting)
		}
		if o.err != nil {
			errs = append(errs, o.err)
		}
	}
	return waiting, errors.Join(append(errs, ctx.Err())...)
}

// applyWork takes the next step on one cluster.
func (d *Driver) applyWork(
	ctx context.Context, p plan, target clusterPlan, live *unstructured.Unstructured, contact bool,
) (string, error) {
	var s state
	if live != nil {
		r, err := d.reports.read(live)
		if err != nil {
			return "", err
		}
		s = r.state()
		if identity(r.manifest) != identity(firstManifest(target.work)) && !target.held() {
			// Another object: with Orphan, the agent would leave the old one behind.
			waiting, err := d.removeWork(ctx, live, intent{policy: v1alpha1.DeletionPolicyDelete, ready: contact})
			return "the former object to go: " + waiting, err
		}
	}
	in := intent{
		wanted: true, hold: target.held(), ready: contact,
		adopt: target.adopts(p.desired), takeOver: target.mode == backends.ModeAdopt, observe: target.observes(), probe: target.probes(),
		alone: p.desired.Alone(), contested: d.contests.goesOn(live, s),
	}
	missing, again, err := d.applyFirst(ctx, p, target, contact)
	if err != nil {
		return "", err
	}
	if !target.held() {
		in.missing = missing
		if err := d.refuseTwice(ctx, target, live); err != nil {
			return "", err
		}
	}
	m := next(s, in)
	if again && m.waiting == "" {
		m.waiting = missing // what runs may do without it for a while, but there is something left to write
	}
	if in.missing != "" && len(target.carriers) > 0 && !in.observe && m.write == writeWork && m.strategy == deliver.strategy {
		// What runs may need what is on its way, so it is not changed before.
		return in.missing, nil
	}
	if p.desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt && m.begins(live, s) {
		if err := d.refuseOthers(ctx, target.cluster, firstManifest(target.work)); err != nil {
			return "", err
		}
	}
	switch m.write {
	case writeWork:
		wrote, err := d.writeWork(ctx, live, p.variants.of(target.work, m), m, p.desired.Key)
		if err == nil {
			d.contests.note(live, s, m)
		}
		if wrote && m.waiting == "" {
			// What the agent has said is about the ManifestWork before.
			m = m.wait(waitForAgent(in, "the agent to take up the change"))
		}
		return m.waiting, err
	case writeMarks:
		held := fromLive(live)
		annotate(held, annotationHeld, "true")
		return m.waiting, explain("patch "+title(held), d.patchWork(ctx, live, held))
	case writeNothing, writeDelete:
	}
	return m.waiting, nil
}

// writeWork makes the ManifestWork what is wanted, the variant that the move asks for, if it is not.
func (d *Driver) writeWork(ctx context.Context, live, wanted *unstructured.Unstructured, m move, key backends.Key) (wrote bool, err error) {
	if live == nil {
		return true, d.createWork(ctx, wanted, key)
	}
	if d.reports.equal(live, wanted, upToDate) {
		return false, nil
	}
	if m.onEvidence {
		wanted.SetResourceVersion(live.GetResourceVersion())
	}
	err = d.sizes.send(wanted, func() error { return d.patchWork(ctx, live, wanted) })
	if isConflict(err) || apierrors.IsNotFound(err) {
		// It has changed since it was read, or is gone; the change wakes the controller up.
		return true, nil
	}
	return true, explain("patch "+title(wanted), err)
}

func (d *Driver) patchWork(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	patched, err := ssa.Patch(ctx, d.hub, live, wanted)
	if err == nil {
		d.expected.Wrote(patched)
	}
	return err
}

// createWork never touches one that is there: the cache may be behind, and an apply would turn a ManifestWork that delivers
// back into one that asks.
func (d *Driver) createWork(ctx context.Context, work *unstructured.Unstructured, key backends.Key) error {
	err := d.sizes.send(work, func() error {
		created, err := ssa.Create(ctx, d.hub, work)
		if err == nil {
			d.expected.Wrote(created)
		}
		return err
	})
	if !apierrors.IsAlreadyExists(err) {
		return explain("create "+title(work), err)
	}
	partial, err := d.showAgain(ctx, work, key.UID)
	if err == nil && partial != nil && partial.Labels[v1alpha1.LabelUID] != string(key.UID) {
		return nameConflict(work)
	}
	return err
}

// showAgain puts the label back by which the cache has an object, when somebody took it off one that has the UID as its label: nobody
// would look at it again. It returns what the hub has; nil when that is nothing.
func (d *Driver) showAgain(ctx context.Context, obj *unstructured.Unstructured, uid types.UID) (*metav1.PartialObjectMetadata, error) {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(obj.GroupVersionKind())
	if err := d.hub.Get(ctx, client.ObjectKeyFromObject(obj), partial); err != nil {
		return nil, explain("get "+title(obj), client.IgnoreNotFound(err))
	}
	return partial, d.label(ctx, partial, uid)
}

func (d *Driver) label(ctx context.Context, partial *metav1.PartialObjectMetadata, uid types.UID) error {
	if partial.Labels[v1alpha1.LabelUID] != string(uid) || partial.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelManagedBy, v1alpha1.ManagedByOperator)
	err := client.IgnoreNotFound(d.hub.Patch(ctx, partial, client.RawPatch(types.MergePatchType, patch)))
	return explain(fmt.Sprintf("put the label %s back on %s %s/%s", v1alpha1.LabelManagedBy, partial.Kind, partial.Namespace, partial.Name), err)
}

// upToDate also sees fields that somebody has added to the manifest: for the API server it is one value.
func upToDate(live, wanted *unstructured.Unstructured) bool {
	if !ssa.UpToDate(live, wanted) {
		return false
	}
	for _, mark := range []string{annotationHeld, annotationRemoving, annotationObserved} {
		if live.GetAnnotations()[mark] != wanted.GetAnnotations()[mark] {
			return false
		}
	}
	return ssa.Contains(firstManifest(wanted), firstManifest(live))
}

// fromLive is the ManifestWork as we have written it, to be applied again with other marks, strategy or delete option.
func fromLive(live *unstructured.Unstructured) *unstructured.Unstructured {
	obj := unstructuredOf(manifestWorkGVK)
	obj.SetNamespace(live.GetNamespace())
	obj.SetName(live.GetName())
	labels, annotations := map[string]string{}, map[string]string{}
	for _, key := range []string{v1alpha1.LabelManagedBy, v1alpha1.LabelUID} {
		labels[key] = live.GetLabels()[key]
	}
	for _, key := range []string{v1alpha1.AnnotationOwner, annotationHash} {
		if value, ok := live.GetAnnotations()[key]; ok {
			annotations[key] = value
		}
	}
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	obj.Object["spec"] = spec
	return obj
}

// removeWork takes the next step towards having nothing of the workload for one cluster.
func (d *Driver) removeWork(ctx context.Context, live *unstructured.Unstructured, in intent) (string, error) {
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	in.now = time.Now()
	s := r.state()
	m := next(s, in)
	if err := d.enable(ctx, live, s, m); err != nil {
		return "", err
	}
	switch m.write {
	case writeWork:
		_, err := d.writeWork(ctx, live, variant(fromLive(live), m), m, backends.Key{})
		return m.waiting, err
	case writeDelete:
		return m.waiting, d.remove(ctx, live)
	case writeNothing, writeMarks:
	}
	return m.waiting, nil
}

// applyFirst ensures what must be on the cluster before the workload: prerequisites, then companions. Without
// companions, a cluster that is held gets nothing. What is missing may be on its way out, to be made again.
func (d *Driver) applyFirst(ctx context.Context, p plan, target clusterPlan, contact bool) (missing string, again bool, err error) {
	if target.held() && len(target.carriers) == 0 {
		return "", false, nil
	}
	missing, again, err = d.applyPrerequisites(ctx, p, target)
	if err != nil || missing != "" || len(target.carriers) == 0 {
		return missing, again, err
	}
	missing, err = d.applyCarriers(ctx, p, target, contact)
	return missing, false, err
}

// applyPrerequisites ensures what the cluster needs first, and says what of it is awaited, and whether that is to be made again: whoever
// stood on it last takes it away, and does not see at once that somebody stands on it anew.
func (d *Driver) applyPrerequisites(ctx context.Context, p plan, target clusterPlan) (missing string, again bool, err error) {
	for _, wanted := range target.prerequisites {
		d.needs.add(client.ObjectKeyFromObject(wanted), p.desired.Key.NamespacedName)
		if wanted, err = d.unmanaging(ctx, wanted, p.desired.Alone() && !target.held()); err != nil {
			return "", false, err
		}
		live, err := d.applyPrerequisite(ctx, wanted)
		if err != nil {
			return "", false, err
		}
		if live != nil && live.GetDeletionTimestamp() != nil {
			return prerequisiteTitle(wanted) + " (being removed, it will be made again)", true, nil
		}
		if missing == "" {
			missing = d.awaitPrerequisite(live, wanted)
		}
	}
	return missing, false, nil
}

// applyPrerequisite makes a prerequisite as it should be, unless it is being removed, and returns what it was.
func (d *Driver) applyPrerequisite(ctx context.Context, wanted *unstructured.Unstructured) (was *unstructured.Unstructured, err error) {
	was, err = d.cached(ctx, wanted)
	if err != nil || was != nil && was.GetDeletionTimestamp() != nil || d.reports.equal(was, wanted, ssa.UpToDate) {
		return was, err
	}
	_, err = ssa.Send(ctx, d.hub, wanted)
	return was, explain("apply "+title(wanted), err)
}

// enable gives an agent that is asked about an object on its way out the rights to look for it. A cluster that was held from
// the beginning never got any.
func (d *Driver) enable(ctx context.Context, live *unstructured.Unstructured, s state, m move) error {
	group, resource, _ := carriedKind(live)
	if m.strategy != probe.strategy || s.object != presenceUnknown || s.notServed || slices.Contains(groupsOfAdmin, group) {
		return nil
	}
	_, err := d.applyPrerequisite(ctx, renderRightsWork(live.GetNamespace(), group, resource))
	return err
}

// awaitPrerequisite says what is awaited of a prerequisite; empty when the agent has applied it.
func (d *Driver) awaitPrerequisite(live, wanted *unstructured.Unstructured) string {
	what := "the agent to apply " + prerequisiteTitle(wanted)
	if live == nil {
		return what
	}
	r, err := d.reports.read(live)
	switch {
	case err != nil || r.applied == nil:
		return what
	case r.applied.Status != metav1.ConditionTrue:
		return what + ": " + r.message()
	default:
		return ""
	}
}

// refuseTwice fails when another FleetWorkload delivers the same object to the cluster. The older one keeps it.
func (d *Driver) refuseTwice(ctx context.Context, target clusterPlan, live *unstructured.Unstructured) error {
	others, err := d.list(ctx, listOf(manifestWorkGVK), client.InNamespace(target.cluster),
		client.MatchingFields{indexObject: identity(firstManifest(target.work))})
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.GetName() == target.work.GetName() || live != nil && !older(other, live) {
			continue
		}
		whose := "FleetWorkload " + other.GetAnnotations()[v1alpha1.AnnotationOwner] + " delivers"
		if isShared(other) {
			whose = "FleetWorkloads whose pods refer to it deliver"
		}
		return &backends.Error{
			Code: backends.CodeNameConflict, Field: "spec.template.metadata.name",
			Value:   fmt.Sprint(firstManifest(target.work)["kind"]) + "/" + unstructuredName(target.work),
			Message: whose + " the same object to cluster " + target.cluster,
			Remedy:  "give the template another name",
		}
	}
	return nil
}

func unstructuredName(work *unstructured.Unstructured) string {
	manifest := unstructured.Unstructured{Object: firstManifest(work)}
	return manifest.GetName()
}

func older(a, b *unstructured.Unstructured) bool {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if x.Equal(&y) {
		return a.GetUID() < b.GetUID()
	}
	return x.Before(&y)
}

// sweepPrerequisites removes the prerequisites that no ManifestWork stands on any more: the workload's own, and those
// that others have left behind.
func (d *Driver) sweepPrerequisites(ctx context.Context, workload backends.Workload) error {
	own := prerequisiteNames(workload.Namespace, workload.GVK.Group, workload.Resource)
	for _, kind := range []string{prerequisiteNamespace, prerequisiteRights, prerequisiteDefinition} {
		works, err := d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexPrerequisite: kind})
		if err != nil {
			return err
		}
		for _, work := range works {
			old := time.Since(work.GetCreationTimestamp().Time) > pruneAge
			if work.GetDeletionTimestamp() != nil || !old && !slices.Contains(own, work.GetName()) {
				continue
			}
			if err := d.prunePrerequisite(ctx, work); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Driver) prunePrerequisite(ctx context.Context, work *unstructured.Unstructured) error {
	if len(d.needs.of(client.ObjectKeyFromObject(work))) > 0 {
		return nil
	}
	users, err := d.list(ctx, listOf(manifestWorkGVK), client.InNamespace(work.GetNamespace()),
		client.MatchingFields{indexNeeds: work.GetName()})
	if err != nil || len(users) > 0 {
		return err
	}
	return d.remove(ctx, work)
}

// Delete implements backends.Driver.
func (d *Driver) Delete(
	ctx context.Context, query backends.Query, policy v1alpha1.DeletionPolicy,
) (backends.Progress, error) {
	if err := d.ready(ctx); err != nil {
		return backends.Progress{}, err
	}
	works, err := d.worksOf(ctx, query.Key)
	if err != nil {
		return backends.Progress{}, err
	}
	if len(works) > 0 {
		return d.deleteWorks(ctx, query.Key, works, intent{policy: policy, alone: query.Alone()})
	}
	carriers, err := d.carriersOf(ctx, query.Key)
	if err != nil {
		return backends.Progress{}, err
	}
	if waiting, err := d.deleteCarriers(ctx, query.Key, intent{policy: policy, alone: query.Alone()}, carriers); err != nil || len(waiting) > 0 {
		return progress(waiting), err
	}
	if unseen, err := d.unseenCarriers(ctx, query.Key); err != nil || unseen {
		return backends.Progress{Waiting: "the cache to show the companions"}, err
	}
	placements, err := d.placementsOf(ctx, query.Key)
	if err != nil {
		return backends.Progress{}, err
	}
	d.needs.drop(query.Key.NamespacedName, nil)
	d.successors.drop(query.Key.NamespacedName, nil)
	if len(placements) > 0 {
		if err := d.deletePlacements(ctx, query, placements); err != nil {
			return backends.Progress{}, err
		}
	}
	if err := d.pruneBindings(ctx, query.Key); err != nil {
		return backends.Progress{}, err
	}
	if len(placements) > 0 {
		// A FleetWorkload of the same name would still meet them in the cache.
		return backends.Progress{Waiting: "the hub to finish the removal of Placements"}, nil
	}
	// The cache may be behind what was written a moment ago, and after Done nobody looks again.
	for _, gvk := range []schema.GroupVersionKind{manifestWorkGVK, placementGVK} {
		left, err := d.leftOnHub(ctx, gvk, query.Key)
		if err != nil {
			return backends.Progress{}, err
		}
		if left {
			return backends.Progress{Waiting: "the hub to finish the removal of " + gvk.Kind + "s"}, nil
		}
	}
	return backends.Progress{Done: true}, nil
}

// deletePlacements removes what is shared and no longer needed first: as long as a Placement is there, a Delete that
// was cut off goes on here.
func (d *Driver) deletePlacements(ctx context.Context, query backends.Query, placements []*unstructured.Unstructured) error {
	if err := d.sweepPrerequisites(ctx, query.Workload); err != nil {
		return err
	}
	for _, placement := range placements {
		if placement.GetDeletionTimestamp() != nil {
			continue
		}
		if err := d.remove(ctx, placement); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) deleteWorks(
	ctx context.Context, key backends.Key, works []*unstructured.Unstructured, in intent,
) (backends.Progress, error) {
	fleet, err := d.fleet(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	jobs := map[string]*unstructured.Unstructured{}
	for _, work := range works {
		jobs[work.GetNamespace()] = work
	}
	var late atomic.Bool
	waiting, err := inParallel(ctx, jobs, func(cluster string, work *unstructured.Unstructured) (string, error) {
		if behind, err := d.behind(ctx, cluster, key, work); behind {
			late.Store(true)
			return waitsForCache, err
		}
		here := in
		here.ready = inContact(fleet, cluster)
		return d.removeWork(ctx, work, here)
	})
	if err == nil && len(waiting) == 0 {
		waiting = []string{"the hub to finish the removal"}
	}
	return lookingAgain(progress(waiting), late.Load()), err
}

// leftOnHub tells whether the hub has an object of the workload that no cache shows. One that none would show for ever shows again.
func (d *Driver) leftOnHub(ctx context.Context, gvk schema.GroupVersionKind, key backends.Key) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := d.hub.List(ctx, list, client.MatchingLabels{v1alpha1.LabelUID: string(key.UID)})
	if err != nil {
		return false, explain("list "+gvk.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		if err := d.label(ctx, &list.Items[i], key.UID); err != nil {
			return true, err
		}
	}
	return len(list.Items) > 0, nil
}

// pruneBindings removes our set bindings with the last FleetWorkload of the namespace, unless somebody else has Placements there, which may
// choose by them: without a binding OCM takes their workloads away. The cache has our own Placements only, and it may be behind.
func (d *Driver) pruneBindings(ctx context.Context, key backends.Key) error {
	placements, err := d.list(ctx, listOf(placementGVK), client.InNamespace(key.Namespace))
	if err != nil {
		return err
	}
	for _, placement := range placements {
		if placement.GetLabels()[v1alpha1.LabelUID] != string(key.UID) {
			return nil
		}
	}
	bindings, err := d.list(ctx, listOf(bindingGVK), client.InNamespace(key.Namespace),
		client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	if err != nil || len(bindings) == 0 {
		return err
	}
	if used, err := d.choosesFor(ctx, key); err != nil || used {
		return err
	}
	for _, binding := range bindings {
		if binding.GetDeletionTimestamp() == nil {
			if err := d.remove(ctx, binding); err != nil {
				return err
			}
		}
	}
	return nil
}

// choosesFor tells whether the hub has a Placement in the namespace that is not the workload's.
func (d *Driver) choosesFor(ctx context.Context, key backends.Key) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementGVK.GroupVersion().WithKind("PlacementList"))
	if err := d.hub.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return false, explain("list Placements of namespace "+key.Namespace, err)
	}
	return slices.ContainsFunc(list.Items, func(p metav1.PartialObjectMetadata) bool {
		return p.Labels[v1alpha1.LabelUID] != string(key.UID)
	}), nil
}
