package ocm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// companionWorksOf lists the cached companion works that the workload uses. They must not be changed.
func (d *Driver) companionWorksOf(ctx context.Context, key backends.Key) ([]*unstructured.Unstructured, error) {
	return d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexUser: string(key.UID)})
}

// applyCompanionWorks takes the next step with each companion of a cluster, and says what of them is awaited.
func (d *Driver) applyCompanionWorks(ctx context.Context, p plan, target clusterPlan, contact bool) (missing string, err error) {
	var waiting []string
	var errs []error
	for _, c := range target.companionWorks {
		step, err := d.applyCompanionWork(ctx, p.desired, target, c, contact)
		if err != nil {
			errs = append(errs, err)
		}
		if step != "" {
			waiting = append(waiting, step)
		}
	}
	return strings.Join(waiting, ", "), errors.Join(errs...)
}

// applyCompanionWork takes the next step with one companion on one cluster.
func (d *Driver) applyCompanionWork(
	ctx context.Context, desired backends.Desired, target clusterPlan, c companionWork, contact bool,
) (waiting string, err error) {
	live, err := d.cached(ctx, c.work)
	if err != nil {
		return "", err
	}
	if live != nil {
		d.created.Remove(desired.Key.UID, client.ObjectKeyFromObject(live))
	}
	title := companions.Title(c.companion.Object)
	in := intent{
		wanted: true, ready: contact, adopt: target.takes(desired, c.companion), observe: !target.mode.Owns(),
		alone: desired.Alone() && !c.companion.Shared, // a shared one may be another FleetWorkload's on the other backend
	}
	in.takeOver = in.adopt && target.mode == backends.ModeAdopt
	if live == nil {
		if used, err := d.carriedOtherwise(ctx, c); err != nil || used {
			return "", err
		}
		m := next(state{}, in)
		if err := d.refuseOthersOf(ctx, desired, c, m, nil, state{}); err != nil {
			return "", err
		}
		return title + ": " + awaited(m), d.createCompanionWork(ctx, c, variant(c.work, m), needOf(nil, desired.Key, target, c), desired.Key)
	}
	if live.GetDeletionTimestamp() != nil {
		return title + " (being removed, it will be made again)", nil
	}
	need := needOf(live.GetAnnotations(), desired.Key, target, c)
	in.observe = in.observe && !need.Owned() // others go on being served
	if foreign, err := foreignCompanionWork(live, c, need.Users); err != nil || foreign {
		if err != nil {
			return "", err
		}
		// What its owner sends is used as it is; being among its users keeps it when the owner goes.
		return "", d.patchCompanionWork(ctx, live, asWritten(live, asBefore(live, companionWorkFromLive(live)), need), c.companion)
	}
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	s := r.state()
	in.contested = d.contests.goesOn(live, s)
	m := next(s, in)
	if m.write != writeWork {
		return awaiting(title, m.waiting), nil
	}
	if err := d.refuseOthersOf(ctx, desired, c, m, live, s); err != nil {
		return "", err
	}
	wanted := variant(c.work, m)
	after := asWritten(live, wanted, need)
	changed := !sameSpec(live, wanted) || live.GetAnnotations()[annotationRemoving] != "" ||
		live.GetAnnotations()[annotationObserved] != wanted.GetAnnotations()[annotationObserved]
	if err := d.patchCompanionWork(ctx, live, after, c.companion); err != nil {
		return "", err
	}
	d.contests.note(live, s, m)
	return awaitCompanionWork(c.companion, s, m, changed), nil
}

// refuseOthersOf fails when a companion that is about to be taken over is carried by somebody else.
func (d *Driver) refuseOthersOf(
	ctx context.Context, desired backends.Desired, c companionWork, m move, live *unstructured.Unstructured, s state,
) error {
	if desired.ConflictPolicy != v1alpha1.ConflictPolicyAdopt || !m.begins(live, s) {
		return nil
	}
	return d.refuseOthers(ctx, c.work.GetNamespace(), firstManifest(c.work))
}

// needOf is the need of a companion work with that FleetWorkload among its users.
func needOf(annotations map[string]string, key backends.Key, target clusterPlan, c companionWork) companions.Need {
	need := companions.ReadNeed(annotations)
	if !target.mode.Owns() {
		return need.Observing(key)
	}
	return need.Owning(key, c.companion.Elsewhere[target.cluster])
}

// awaitCompanionWork says what is awaited of a companion; empty when the cluster has it.
func awaitCompanionWork(c backends.Companion, s state, m move, changed bool) string {
	title := companions.Title(c.Object)
	switch {
	case m.strategy == workv1.UpdateStrategyTypeReadOnly && !changed && (s.elsewhere || s.object == presenceForeign && c.Shared):
		return "" // it is used as it is
	case m.strategy == workv1.UpdateStrategyTypeReadOnly && s.object == presenceForeign:
		return companions.ForeignMessage(title)
	case m.waiting != "":
		return awaiting(title, companions.Say(c.Object.GetKind(), m.waiting))
	case changed || s.applied == metav1.ConditionUnknown:
		return title + ": the agent to apply it"
	case s.applied == metav1.ConditionFalse:
		return awaiting(title, companions.Say(c.Object.GetKind(), s.appliedMessage))
	default:
		return ""
	}
}

func awaited(m move) string {
	if m.waiting == "" {
		return "the agent to apply it"
	}
	return m.waiting
}

func awaiting(title, what string) string {
	if what == "" {
		return ""
	}
	return title + ": " + what
}

// foreignCompanionWork tells whether a companion work is somebody else's, who still uses it. That refuses a companion of one's own.
func foreignCompanionWork(live *unstructured.Unstructured, c companionWork, users companions.Users) (bool, error) {
	owner := live.GetLabels()[v1alpha1.LabelUID]
	if companions.IsCompanionWork(live) && owner == c.work.GetLabels()[v1alpha1.LabelUID] {
		return false, nil
	}
	_, uses := users[types.UID(owner)]
	switch {
	case !c.companion.Shared:
		return false, companions.NameConflict(c.companion.Object, companions.Whose(live))
	default:
		return uses, nil
	}
}

// carriedOtherwise tells whether the object is the workload of a FleetWorkload on that cluster.
func (d *Driver) carriedOtherwise(ctx context.Context, c companionWork) (bool, error) {
	others, err := d.delivering(ctx, c.work.GetNamespace(), firstManifest(c.work))
	if err != nil || len(others) == 0 {
		return false, err
	}
	if c.companion.Shared {
		return true, nil
	}
	return false, companions.NameConflict(c.companion.Object, "FleetWorkload "+others[0].GetAnnotations()[v1alpha1.AnnotationOwner])
}

// createCompanionWork never touches one that is there: the cache may be behind.
func (d *Driver) createCompanionWork(
	ctx context.Context, c companionWork, work *unstructured.Unstructured, need companions.Need, key backends.Key,
) error {
	annotations := work.GetAnnotations()
	need.Write(annotations)
	work.SetAnnotations(annotations)
	at := client.ObjectKeyFromObject(work)
	err := d.hub.Create(ctx, work, client.FieldOwner(ssa.FieldOwner))
	if err == nil {
		d.created.Add(key.UID, at)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return explainCompanionWork("create", work, c.companion, err)
	}
	partial, err := d.showAgain(ctx, work, types.UID(work.GetLabels()[v1alpha1.LabelUID]))
	switch {
	case err != nil || partial == nil || partial.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator:
		return err
	default:
		return companions.NameConflict(c.companion.Object, "a ManifestWork "+at.String()+" that the operator did not create")
	}
}

// patchCompanionWork writes what differs, unless the companion work has changed since it was read.
func (d *Driver) patchCompanionWork(ctx context.Context, live, after *unstructured.Unstructured, c backends.Companion) error {
	if maps.Equal(live.GetLabels(), after.GetLabels()) && maps.Equal(live.GetAnnotations(), after.GetAnnotations()) &&
		hashOf(live.Object["spec"]) == hashOf(after.Object["spec"]) {
		return nil
	}
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	return explainCompanionWork("patch", after, c, d.hub.Patch(ctx, after, patch, client.FieldOwner(ssa.FieldOwner)))
}

func explainCompanionWork(verb string, work *unstructured.Unstructured, c backends.Companion, err error) error {
	if err == nil {
		return nil
	}
	op := fmt.Sprintf("%s %s with %s", verb, title(work), companions.Title(c.Object))
	if !apierrors.IsConflict(err) && c.Object.GetKind() != "Secret" {
		if explained := explain(op, err); backends.CodeOf(explained) != "" {
			err = explained
		}
	}
	return companions.Explain(op, c.Object, c.Shared, err)
}

// leaveCompanionWorks lets go of the companions that are no longer wanted: of a cluster that is kept once the workload there
// is as wanted, of one that is left once the workload there has gone.
func (d *Driver) leaveCompanionWorks(ctx context.Context, p plan, works []*unstructured.Unstructured, fleet backends.Fleet) ([]string, error) {
	companionWorks, err := d.companionWorksOf(ctx, p.desired.Key)
	if err != nil {
		return nil, err
	}
	wanted, targets := map[types.NamespacedName]bool{}, map[string]clusterPlan{}
	for _, target := range p.targets {
		targets[target.cluster] = target
		for _, c := range target.companionWorks {
			wanted[client.ObjectKeyFromObject(c.work)] = true
		}
	}
	running := map[string]*unstructured.Unstructured{}
	for _, work := range works {
		running[work.GetNamespace()] = work
	}
	var waiting []string
	var errs []error
	for _, live := range companionWorks {
		cluster := live.GetNamespace()
		target, kept := targets[cluster]
		switch {
		case wanted[client.ObjectKeyFromObject(live)], !kept && !p.desired.Removes(cluster):
			continue
		case kept && target.observes():
			step, err := d.giveUpCompanionWork(ctx, live, p.desired.Key, fleet.InContact(cluster))
			errs = append(errs, err)
			if step != "" {
				waiting = append(waiting, cluster+": "+step)
			}
			continue
		case kept && !p.desired.Prune.Takes(companions.IsShared(live)):
			continue
		case kept && !d.hasArrived(running[cluster], target), !kept && running[cluster] != nil:
			waiting = append(waiting, cluster+": the workload to do without "+companions.Title(carried(live)))
			continue
		}
		step, err := d.leaveCompanionWork(ctx, live, p.desired.Key, intent{policy: v1alpha1.DeletionPolicyDelete, ready: fleet.InContact(cluster)})
		errs = append(errs, err)
		if step != "" {
			waiting = append(waiting, cluster+": "+step)
		}
	}
	slices.Sort(waiting)
	return waiting, errors.Join(errs...)
}

// hasArrived tells whether the cluster has the workload's newest manifest, or shall not get it.
func (d *Driver) hasArrived(work *unstructured.Unstructured, target clusterPlan) bool {
	if target.held() {
		return true
	}
	if work == nil || work.GetAnnotations()[annotationHash] != target.work.GetAnnotations()[annotationHash] {
		return false
	}
	r, err := d.reports.read(work)
	return err == nil && r.state().applied == metav1.ConditionTrue
}

// giveUpCarrier makes a companion that is no longer listed one that is only observed, as the workload is: another backend may remove it.
func (d *Driver) giveUpCompanionWork(ctx context.Context, live *unstructured.Unstructured, key backends.Key, ready bool) (waiting string, err error) {
	if live.GetDeletionTimestamp() != nil {
		return "", nil
	}
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	c := backends.Companion{Object: carried(live), Shared: companions.IsShared(live)}
	need := companions.ReadNeed(live.GetAnnotations()).Observing(key)
	if need.Owned() { // others go on being served
		return "", d.patchCompanionWork(ctx, live, asWritten(live, asBefore(live, companionWorkFromLive(live)), need), c)
	}
	m := nextObserve(r.state(), intent{ready: ready})
	err = d.patchCompanionWork(ctx, live, asWritten(live, variant(companionWorkFromLive(live), m), need), c)
	return awaiting(companions.Title(c.Object), m.waiting), err
}

// leaveCompanionWork takes one FleetWorkload off a companion work's users, and the companion off the cluster with the last of them.
func (d *Driver) leaveCompanionWork(
	ctx context.Context, live *unstructured.Unstructured, key backends.Key, in intent,
) (waiting string, err error) {
	obj := carried(live)
	c := backends.Companion{Object: obj, Shared: companions.IsShared(live)}
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	s, need := r.state(), companions.ReadNeed(live.GetAnnotations())
	if left := need.Leaving(key, in.policy); len(left.Users) > 0 {
		return "", d.patchCompanionWork(ctx, live, asWritten(live, d.leftTo(live, s, left), left), c)
	}
	in.policy, in.now = companions.Policy(obj.GetKind(), in.policy), time.Now()
	if need.Elsewhere() || s.elsewhere {
		in.policy = v1alpha1.DeletionPolicyOrphan
	}
	m := next(s, in)
	if err := d.enable(ctx, live, s, m); err != nil {
		return "", err
	}
	switch m.write {
	case writeWork:
		err = d.patchCompanionWork(ctx, live, asWritten(live, variant(companionWorkFromLive(live), m), need), c)
	case writeDelete:
		err = d.remove(ctx, live)
	case writeNothing, writeMarks:
	}
	return awaiting(companions.Title(obj), companions.Say(obj.GetKind(), m.waiting)), err
}

// leftTo is a companion work that one user leaves to others. To those that observe it is left as one that is only observed, and
// where another backend delivers, as one that is ReadOnly.
func (d *Driver) leftTo(live *unstructured.Unstructured, s state, left companions.Need) *unstructured.Unstructured {
	work := companionWorkFromLive(live)
	switch {
	case !left.Owned() && !s.observe:
		return variant(work, nextObserve(s, intent{}))
	case s.elsewhere:
		return variant(work, probe)
	default:
		return asBefore(live, work)
	}
}

// asBefore is the companion work with the marks that it has.
func asBefore(live, work *unstructured.Unstructured) *unstructured.Unstructured {
	for _, mark := range []string{annotationRemoving, annotationObserved} {
		if value := live.GetAnnotations()[mark]; value != "" {
			annotate(work, mark, value)
		}
	}
	return work
}

// deleteCompanionWorks lets go of all companions of a workload that is gone.
func (d *Driver) deleteCompanionWorks(
	ctx context.Context, key backends.Key, in intent, companionWorks []*unstructured.Unstructured,
) ([]string, error) {
	fleet, err := d.fleet(ctx)
	if err != nil {
		return nil, err
	}
	var waiting []string
	var errs []error
	for _, live := range companionWorks {
		in.ready = fleet.InContact(live.GetNamespace())
		step, err := d.leaveCompanionWork(ctx, live, key, in)
		errs = append(errs, err)
		if step != "" {
			waiting = append(waiting, live.GetNamespace()+": "+step)
		}
	}
	slices.Sort(waiting)
	if len(waiting) == 0 && len(companionWorks) > 0 {
		waiting = []string{"the hub to finish the removal of companions"}
	}
	return waiting, errors.Join(errs...)
}

// unseenCompanionWorks tells whether a companion work was created a moment ago and is not in the cache yet.
func (d *Driver) unseenCompanionWorks(ctx context.Context, key backends.Key) (bool, error) {
	return d.created.Unseen(key.UID, func(at types.NamespacedName) (bool, error) {
		there, err := caches.Lookup(ctx, d.hub, manifestWorkGVK, at)
		return there != nil, err
	})
}

// observeCompanionWorks adds to the reports what stands against a cluster's companions.
func (d *Driver) observeCompanionWorks(ctx context.Context, query backends.Query, o *backends.Observation) error {
	companionWorks, err := d.companionWorksToReport(ctx, query)
	if err != nil || len(companionWorks) == 0 {
		return err
	}
	o.Found = true
	at := map[string]int{}
	for i, c := range o.Clusters {
		at[c.Cluster] = i
	}
	foreign, elsewhere := map[string][]string{}, map[string][]string{}
	for _, live := range companionWorks {
		r, err := d.reports.read(live)
		if err != nil {
			return err
		}
		cluster, title := live.GetNamespace(), companions.Title(carried(live))
		if _, known := at[cluster]; !known {
			at[cluster] = len(o.Clusters)
			o.Clusters = append(o.Clusters, backends.ClusterObservation{Cluster: cluster, Applied: metav1.ConditionUnknown, Presence: backends.PresenceReleased})
		}
		c := &o.Clusters[at[cluster]]
		r.serve(live, c, query.Key)
		d.tellDelivered(r, c)
		if query.Companions {
			r.tellCompanion(live, c, query.Key)
		}
		switch r.companion(live, c) {
		case usedForeign:
			foreign[title] = append(foreign[title], cluster)
			c.Foreign = append(c.Foreign, title)
		case usedElsewhere:
			elsewhere[title] = append(elsewhere[title], cluster)
		case usedAsSent:
		}
	}
	for _, c := range o.Clusters {
		backends.SortCompanions(c.Companions)
	}
	o.Notes = append(o.Notes, companions.Notes(foreign, companions.ForeignNote)...)
	o.Notes = append(o.Notes, companions.Notes(elsewhere, companions.ElsewhereNote)...)
	return nil
}

// tellDelivered adds what the agent's word proves of what others do with a companion. That it was applied, or was not, needs no look at the object,
// and nothing is said of an object's generations: so it does not matter whether the member's UID is reported.
func (d *Driver) tellDelivered(r report, o *backends.ClusterObservation) {
	s, companion := r.state(), &unstructured.Unstructured{Object: r.manifest}
	of := backends.ClusterObservation{UID: r.workUID, Presence: backends.PresenceOf(s.deleting || r.ours.removing != "", s.released())}
	delivered := r.delivered(s, of)
	if delivered == nil && of.Presence == backends.PresenceActive {
		delivered = d.contests.lost(r)
	}
	if delivered != nil {
		delivered.Others = companions.Say(companion.GetKind(), delivered.Others)
	}
	if o.CompanionsDelivered == nil {
		o.CompanionsDelivered = map[string]*backends.Delivered{}
	}
	o.CompanionsDelivered[companions.Title(companion)] = delivered
}

// tellCompanion adds what a companion work delivers to its cluster's report.
func (r report) tellCompanion(live *unstructured.Unstructured, o *backends.ClusterObservation, key backends.Key) {
	s, need := r.state(), companions.ReadNeed(live.GetAnnotations())
	c := backends.CompanionObservation{
		Object: carried(live), Shared: companions.IsShared(live), Others: len(need.Leaving(key, v1alpha1.DeletionPolicyDelete).Users) > 0,
		Elsewhere: need.Elsewhere() || s.elsewhere, Removing: s.deleting || r.ours.removing != "",
	}
	switch {
	case s.elsewhere:
		c.Theirs = backends.TheirsBackend
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && s.object == presenceForeign:
		c.Theirs = backends.TheirsForeign
	}
	o.Companions = append(o.Companions, c)
}

// companionWorksToReport are the workload's companion works, as the query wants them read.
func (d *Driver) companionWorksToReport(ctx context.Context, query backends.Query) ([]*unstructured.Unstructured, error) {
	companionWorks, err := d.companionWorksOf(ctx, query.Key)
	if err != nil || query.Counterpart == backends.CounterpartNone {
		return companionWorks, err
	}
	fresh := make([]*unstructured.Unstructured, 0, len(companionWorks))
	for _, c := range companionWorks {
		live := unstructuredOf(manifestWorkGVK)
		if err := d.hub.Get(ctx, client.ObjectKeyFromObject(c), live); err == nil {
			fresh = append(fresh, live)
		} else if !apierrors.IsNotFound(err) {
			return nil, explain("get "+title(c), err)
		}
	}
	return fresh, nil
}

// use is how a companion is used on a cluster.
type use int

const (
	usedAsSent use = iota
	// usedForeign is somebody else's, and usedElsewhere another backend's: they are used as they are.
	usedForeign
	usedElsewhere
)

// serve adds what a hand-over needs to know of a companion: whether it has been given up, for whom else the backend goes on
// with it, and what another backend has left on it.
func (r report) serve(live *unstructured.Unstructured, o *backends.ClusterObservation, key backends.Key) {
	s, others := r.state(), companions.ReadNeed(live.GetAnnotations()).Owners(key.UID)
	if !s.released() && len(others) == 0 {
		o.Presence = backends.PresenceOf(o.Removing(), false)
	}
	companions.Serve(o, live, companions.Title(carried(live)), key)
	if !s.observe && !s.elsewhere {
		o.Marks = slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.Marks, r.marks()))))
	}
}

// companion adds one companion's report to its cluster's, and tells how it is used.
func (r report) companion(live *unstructured.Unstructured, o *backends.ClusterObservation) use {
	s, title := r.state(), companions.Title(carried(live))
	removing := s.deleting || r.ours.removing != ""
	asked := s.strategy == workv1.UpdateStrategyTypeReadOnly && s.object == presenceForeign
	switch {
	case s.observe:
	case removing:
		o.Presence = backends.PresenceOf(o.Removing() || o.Revision == "", o.Released())
	case s.elsewhere:
		return usedElsewhere
	case asked && companions.IsShared(live):
		return usedForeign
	case asked:
		o.Conflict, o.Applied, o.Message = true, metav1.ConditionFalse, companions.ForeignMessage(title)
		o.Current = false
	case s.conflict && o.Applied != metav1.ConditionFalse:
		o.Applied, o.Current = metav1.ConditionUnknown, false
		o.Message = title + ": " + companions.Say(carried(live).GetKind(), s.appliedMessage)
	case s.applied == metav1.ConditionFalse:
		o.Applied, o.Current = metav1.ConditionFalse, false
		o.Message = title + ": " + companions.Say(carried(live).GetKind(), s.appliedMessage)
	case o.Message == "" && o.Revision == "":
		o.Message = "companions are on their way"
	}
	return usedAsSent
}
