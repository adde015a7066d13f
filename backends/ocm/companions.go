package ocm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// carriersOf lists the cached carriers that the workload uses. They must not be changed.
func (d *Driver) carriersOf(ctx context.Context, key backends.Key) ([]*unstructured.Unstructured, error) {
	return d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexUser: string(key.UID)})
}

// applyCarriers takes the next step with each companion of a cluster, and says what of them is awaited.
func (d *Driver) applyCarriers(ctx context.Context, p plan, target clusterPlan, contact bool) (missing string, err error) {
	var waiting []string
	var errs []error
	for _, c := range target.carriers {
		step, err := d.applyCarrier(ctx, p.desired, c, contact)
		if err != nil {
			errs = append(errs, err)
		}
		if step != "" {
			waiting = append(waiting, step)
		}
	}
	return strings.Join(waiting, ", "), errors.Join(errs...)
}

// applyCarrier takes the next step with one companion on one cluster.
func (d *Driver) applyCarrier(ctx context.Context, desired backends.Desired, c carrier, contact bool) (waiting string, err error) {
	live, err := d.cached(ctx, c.work)
	if err != nil {
		return "", err
	}
	if live != nil {
		d.created.Seen(desired.Key.UID, client.ObjectKeyFromObject(live))
	}
	title := companions.Title(c.companion.Object)
	in := intent{wanted: true, ready: contact, adopt: desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt}
	if live == nil {
		if used, err := d.carriedOtherwise(ctx, c); err != nil || used {
			return "", err
		}
		m := next(state{}, in)
		return title + ": " + awaited(m), d.createCarrier(ctx, c, variant(c.work, m), desired.Key)
	}
	if live.GetDeletionTimestamp() != nil {
		return title + " (being removed, it will be made again)", nil
	}
	users := companions.ReadUsers(live.GetAnnotations()).With(desired.Key)
	if foreign, err := foreignCarrier(live, c, users); err != nil || foreign {
		if err != nil {
			return "", err
		}
		// What its owner sends is used as it is; being among its users keeps it when the owner goes.
		return "", d.patchCarrier(ctx, live, asWritten(live, carrierFromLive(live), users), c.companion)
	}
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	s := r.state()
	m := next(s, in)
	if m.write != writeWork {
		return awaiting(title, m.waiting), nil
	}
	wanted := variant(c.work, m)
	after := asWritten(live, wanted, users)
	changed := !sameSpec(live, wanted) || live.GetAnnotations()[annotationRemoving] != ""
	if err := d.patchCarrier(ctx, live, after, c.companion); err != nil {
		return "", err
	}
	return awaitCarrier(c.companion, s, m, changed), nil
}

// awaitCarrier says what is awaited of a companion; empty when the cluster has it.
func awaitCarrier(c backends.Companion, s state, m move, changed bool) string {
	title := companions.Title(c.Object)
	switch {
	case m.strategy == workv1.UpdateStrategyTypeReadOnly && s.object == presenceForeign && c.Shared:
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

// foreignCarrier tells whether a carrier is somebody else's, who still uses it. That refuses a companion of one's own.
func foreignCarrier(live *unstructured.Unstructured, c carrier, users companions.Users) (bool, error) {
	owner := live.GetLabels()[v1alpha1.LabelUID]
	if isCarrier(live) && owner == c.work.GetLabels()[v1alpha1.LabelUID] {
		return false, nil
	}
	_, uses := users[types.UID(owner)]
	switch {
	case !c.companion.Shared && isShared(live):
		return false, companions.NameConflict(c.companion.Object, "FleetWorkloads whose pods refer to it")
	case !c.companion.Shared:
		return false, companions.NameConflict(c.companion.Object, "FleetWorkload "+live.GetAnnotations()[v1alpha1.AnnotationOwner])
	default:
		return uses, nil
	}
}

// carriedOtherwise tells whether the object is the workload of a FleetWorkload on that cluster.
func (d *Driver) carriedOtherwise(ctx context.Context, c carrier) (bool, error) {
	others, err := d.list(ctx, listOf(manifestWorkGVK), client.InNamespace(c.work.GetNamespace()),
		client.MatchingFields{indexObject: identity(firstManifest(c.work))})
	if err != nil || len(others) == 0 {
		return false, err
	}
	if c.companion.Shared {
		return true, nil
	}
	return false, companions.NameConflict(c.companion.Object, "FleetWorkload "+others[0].GetAnnotations()[v1alpha1.AnnotationOwner])
}

// createCarrier never touches one that is there: the cache may be behind.
func (d *Driver) createCarrier(ctx context.Context, c carrier, work *unstructured.Unstructured, key backends.Key) error {
	annotate(work, companions.AnnotationUsers, companions.Users{}.With(key).String())
	at := client.ObjectKeyFromObject(work)
	err := d.hub.Create(ctx, work, client.FieldOwner(ssa.FieldOwner))
	if err == nil {
		d.created.Add(key.UID, at)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return explainCarrier("create", work, c.companion, err)
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(manifestWorkGVK)
	if err := d.hub.Get(ctx, at, partial); err != nil {
		return explain("get "+title(work), client.IgnoreNotFound(err))
	}
	if partial.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator {
		return companions.NameConflict(c.companion.Object, "a ManifestWork "+at.String()+" that the operator did not create")
	}
	return nil
}

// patchCarrier writes what differs, unless the carrier has changed since it was read.
func (d *Driver) patchCarrier(ctx context.Context, live, after *unstructured.Unstructured, c backends.Companion) error {
	if maps.Equal(live.GetLabels(), after.GetLabels()) && maps.Equal(live.GetAnnotations(), after.GetAnnotations()) &&
		hashOf(live.Object["spec"]) == hashOf(after.Object["spec"]) {
		return nil
	}
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	return explainCarrier("patch", after, c, d.hub.Patch(ctx, after, patch, client.FieldOwner(ssa.FieldOwner)))
}

func explainCarrier(verb string, work *unstructured.Unstructured, c backends.Companion, err error) error {
	if err == nil {
		return nil
	}
	op := fmt.Sprintf("%s %s with %s", verb, title(work), companions.Title(c.Object))
	if !apierrors.IsConflict(err) && c.Object.GetKind() != "Secret" {
		err = explain(op, err)
	}
	return companions.Explain(op, c.Object, c.Shared, err)
}

// leaveCarriers lets go of the companions that are no longer wanted: of a cluster that is kept once the workload there
// is as wanted, of one that is left once the workload there has gone.
func (d *Driver) leaveCarriers(ctx context.Context, p plan, works []*unstructured.Unstructured, fleet backends.Fleet) ([]string, error) {
	carriers, err := d.carriersOf(ctx, p.desired.Key)
	if err != nil {
		return nil, err
	}
	wanted, targets := map[types.NamespacedName]bool{}, map[string]clusterPlan{}
	for _, target := range p.targets {
		targets[target.cluster] = target
		for _, c := range target.carriers {
			wanted[client.ObjectKeyFromObject(c.work)] = true
		}
	}
	running := map[string]*unstructured.Unstructured{}
	for _, work := range works {
		running[work.GetNamespace()] = work
	}
	var waiting []string
	var errs []error
	for _, live := range carriers {
		cluster := live.GetNamespace()
		target, kept := targets[cluster]
		switch {
		case wanted[client.ObjectKeyFromObject(live)], kept && p.desired.Keep.Keeps(isShared(live)):
			continue
		case kept && !d.hasArrived(running[cluster], target), !kept && running[cluster] != nil:
			waiting = append(waiting, cluster+": the workload to do without "+companions.Title(carried(live)))
			continue
		}
		step, err := d.leaveCarrier(ctx, live, p.desired.Key, v1alpha1.DeletionPolicyDelete, inContact(fleet, cluster))
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
	if target.hold {
		return true
	}
	if work == nil || work.GetAnnotations()[annotationHash] != target.work.GetAnnotations()[annotationHash] {
		return false
	}
	r, err := d.reports.read(work)
	return err == nil && r.state().applied == metav1.ConditionTrue
}

// leaveCarrier takes one FleetWorkload off a carrier's users, and the companion off the cluster with the last of them.
func (d *Driver) leaveCarrier(
	ctx context.Context, live *unstructured.Unstructured, key backends.Key, policy v1alpha1.DeletionPolicy, contact bool,
) (waiting string, err error) {
	obj := carried(live)
	c := backends.Companion{Object: obj, Shared: isShared(live)}
	users := companions.ReadUsers(live.GetAnnotations())
	if others := users.Without(key); len(others) > 0 {
		return "", d.patchCarrier(ctx, live, asWritten(live, carrierFromLive(live), others), c)
	}
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	m := next(r.state(), intent{policy: companions.Policy(obj.GetKind(), policy), ready: contact})
	switch m.write {
	case writeWork:
		err = d.patchCarrier(ctx, live, asWritten(live, variant(carrierFromLive(live), m), users), c)
	case writeDelete:
		err = d.remove(ctx, live)
	case writeNothing, writeMarks:
	}
	return awaiting(companions.Title(obj), companions.Say(obj.GetKind(), m.waiting)), err
}

// deleteCarriers lets go of all companions of a workload that is gone.
func (d *Driver) deleteCarriers(
	ctx context.Context, key backends.Key, policy v1alpha1.DeletionPolicy, carriers []*unstructured.Unstructured,
) ([]string, error) {
	fleet, err := d.fleet(ctx)
	if err != nil {
		return nil, err
	}
	var waiting []string
	var errs []error
	for _, live := range carriers {
		step, err := d.leaveCarrier(ctx, live, key, policy, inContact(fleet, live.GetNamespace()))
		errs = append(errs, err)
		if step != "" {
			waiting = append(waiting, live.GetNamespace()+": "+step)
		}
	}
	slices.Sort(waiting)
	if len(waiting) == 0 && len(carriers) > 0 {
		waiting = []string{"the hub to finish the removal of companions"}
	}
	return waiting, errors.Join(errs...)
}

// unseenCarriers tells whether a carrier was created a moment ago and is not in the cache yet.
func (d *Driver) unseenCarriers(ctx context.Context, key backends.Key) (bool, error) {
	return d.created.Unseen(key.UID, func(at types.NamespacedName) (bool, error) {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(manifestWorkGVK)
		err := d.hub.Get(ctx, at, live)
		return err == nil, explain("get ManifestWork "+at.String(), client.IgnoreNotFound(err))
	})
}

// observeCarriers adds to the reports what stands against a cluster's companions.
func (d *Driver) observeCarriers(ctx context.Context, key backends.Key, o *backends.Observation) error {
	carriers, err := d.carriersOf(ctx, key)
	if err != nil || len(carriers) == 0 {
		return err
	}
	o.Found = true
	at := map[string]int{}
	for i, c := range o.Clusters {
		at[c.Cluster] = i
	}
	foreign := map[string][]string{}
	for _, live := range carriers {
		r, err := d.reports.read(live)
		if err != nil {
			return err
		}
		cluster := live.GetNamespace()
		if _, known := at[cluster]; !known {
			at[cluster] = len(o.Clusters)
			o.Clusters = append(o.Clusters, backends.ClusterObservation{Cluster: cluster, Applied: metav1.ConditionUnknown})
		}
		if note := r.companion(live, &o.Clusters[at[cluster]]); note != "" {
			foreign[note] = append(foreign[note], cluster)
		}
	}
	for _, title := range slices.Sorted(maps.Keys(foreign)) {
		o.Notes = append(o.Notes, companions.ForeignNote(title, slices.Sorted(slices.Values(foreign[title]))))
	}
	return nil
}

// companion adds one companion's report to its cluster's. It returns the title of one that is used as it is.
func (r report) companion(live *unstructured.Unstructured, o *backends.ClusterObservation) string {
	s, title := r.state(), companions.Title(carried(live))
	removing := s.deleting || r.annotations[annotationRemoving] != ""
	if removing {
		o.Removing = o.Removing || o.Revision == ""
		return ""
	}
	asked := s.strategy == workv1.UpdateStrategyTypeReadOnly && s.object == presenceForeign
	switch {
	case asked && isShared(live):
		return title
	case asked:
		o.Conflict, o.Applied, o.Message = true, metav1.ConditionFalse, companions.ForeignMessage(title)
		o.Current = false
	case s.applied == metav1.ConditionFalse:
		o.Applied, o.Current = metav1.ConditionFalse, false
		o.Message = title + ": " + companions.Say(carried(live).GetKind(), s.appliedMessage)
	case o.Message == "" && o.Revision == "":
		o.Message = "companions are on their way"
	}
	return ""
}
