package memory

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// companionWorks are the orders for companions that a workload uses.
func (d *Driver) companionWorks(key backends.Key) []*unstructured.Unstructured {
	return slices.DeleteFunc(d.backend.backend.list(orderKind.Kind), func(obj *unstructured.Unstructured) bool {
		_, uses := companions.ReadUsers(obj.GetAnnotations())[key.UID]
		return !uses || !companions.IsCompanionWork(obj)
	})
}

func companionWorkRef(cluster string, obj *unstructured.Unstructured) backendtest.Ref {
	name := strings.ToLower(obj.GetKind()) + "." + obj.GetName() + ".companion." + cluster
	return backendtest.Ref{GVK: orderKind, NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}
}

// companions makes sure that a cluster has what must come first, and says what is awaited.
func (d *Driver) companions(desired backends.Desired, target backends.Target) (missing string, err error) {
	var waiting []string
	for _, c := range desired.Companions {
		if !c.NeededOn(target.Cluster) {
			continue
		}
		step, err := d.companion(desired, target, c)
		if err != nil {
			return "", err
		}
		if step != "" {
			waiting = append(waiting, companions.Title(c.Object)+": "+step)
		}
	}
	return strings.Join(waiting, ", "), nil
}

func (d *Driver) companion(desired backends.Desired, target backends.Target, c backends.Companion) (waiting string, err error) {
	ref, uid := companionWorkRef(target.Cluster, c.Object), companions.UID(c, desired.Key)
	live, next := d.backend.backend.get(ref), newObject(ref, desired.Key)
	if live != nil {
		next = live.DeepCopy()
	}
	need, owner := companions.ReadNeed(next.GetAnnotations()), next.GetLabels()[v1alpha1.LabelUID]
	_, owned := need.Users[types.UID(owner)]
	if !target.Mode.Owns() {
		need = need.Observing(desired.Key)
	} else {
		need = need.Owning(desired.Key, c.Elsewhere[target.Cluster])
	}
	spec := companionWorkSpec(desired, target, c, live, need)
	switch {
	case live == nil || owner == uid:
	case !c.Shared:
		return "", companions.NameConflict(c.Object, "somebody else")
	case owned:
		spec, uid = read[orderObject](live).Spec, owner
	}
	markCompanionWork(next, uid, c, need)
	next.Object["spec"] = toMap(&spec)
	if err := d.put(live, next); err != nil {
		return "", err
	}
	if live == nil || !reflect.DeepEqual(live.Object["spec"], next.Object["spec"]) {
		return "it to be applied", nil
	}
	order := read[orderObject](live)
	switch {
	case !order.carriedOut():
		return "it to be applied", nil
	case order.Status.Conflict && c.Shared || order.Status.Applied:
		return "", nil
	default:
		return order.Status.Message, nil
	}
}

// companionWorkSpec is the order for a companion: only observed as long as nobody who needs it owns anything of it.
func companionWorkSpec(
	desired backends.Desired, target backends.Target, c backends.Companion, live *unstructured.Unstructured, need companions.Need,
) orderSpec {
	spec := orderSpec{
		Cluster: target.Cluster, Conflict: desired.ConflictPolicy, Mode: backends.ModeOwn,
		Workload: workloadRef{
			APIVersion: c.Object.GetAPIVersion(), Kind: c.Object.GetKind(),
			Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(),
		},
		Manifest: c.Object.DeepCopy().Object,
	}
	before := backends.ModeOwn
	if live != nil && c.Shared {
		before = read[orderObject](live).Spec.Mode
	}
	switch {
	case !need.Owned():
		spec.Mode = backends.ModeObserve
	case target.Mode == backends.ModeAdopt && !slices.Contains(c.Foreign, target.Cluster),
		before == backends.ModeAdopt: // one user must not take back what another has taken over
		spec.Mode = backends.ModeAdopt
	}
	return spec
}

// markCompanionWork puts the marks of a companion work on it.
func markCompanionWork(obj *unstructured.Unstructured, uid string, c backends.Companion, need companions.Need) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	if uid == companions.UID(c, backends.Key{UID: types.UID(uid)}) {
		labels[companions.Label], labels[v1alpha1.LabelUID] = companions.Kind(c), uid
		if c.Shared {
			delete(annotations, v1alpha1.AnnotationOwner)
		}
	}
	need.Write(annotations)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

// put writes an object that was read before, when it differs.
func (d *Driver) put(live, next *unstructured.Unstructured) error {
	if live != nil && reflect.DeepEqual(live.Object, next.Object) {
		return nil
	}
	if err := d.gate(backendtest.WriteRequest, "write "+next.GetKind()+" "+next.GetName()); err != nil {
		return fmt.Errorf("write %s %s: %w", next.GetKind(), next.GetName(), err)
	}
	var err error
	if live == nil {
		err = d.backend.backend.create(next)
	} else {
		err = d.backend.backend.replace(next)
	}
	if err != nil && !apierrors.IsConflict(err) {
		return backends.Classify("write "+next.GetName(), err)
	}
	d.backend.wrote()
	return err
}

// leave lets go of the companion works that are not kept.
func (d *Driver) leave(
	query backends.Query, policy v1alpha1.DeletionPolicy, keep func(companionWork *unstructured.Unstructured, cluster string) bool,
) (waiting []string, err error) {
	key := query.Key
	for _, obj := range d.companionWorks(key) {
		order := read[orderObject](obj)
		if keep(obj, order.Spec.Cluster) {
			continue
		}
		next, need := obj.DeepCopy(), companions.ReadNeed(obj.GetAnnotations())
		if left := need.Leaving(key, policy); len(left.Users) > 0 {
			annotations := next.GetAnnotations()
			left.Write(annotations)
			next.SetAnnotations(annotations)
			if !left.Owned() {
				order.Spec.Mode = backends.ModeObserve
				next.Object["spec"] = toMap(&order.Spec)
			}
			if err := d.put(obj, next); err != nil {
				return nil, err
			}
			continue
		}
		removal := companions.Policy(order.Spec.Workload.Kind, policy)
		if need.Elsewhere() {
			removal = v1alpha1.DeletionPolicyOrphan
		}
		if order.Spec.Removal == removal && order.carriedOut() && order.Status.Removed {
			if err := d.drop(backendtest.RefOf(obj)); err != nil {
				return nil, err
			}
			continue
		}
		order.remove(removal, query.Alone())
		next.Object["spec"] = toMap(&order.Spec)
		if err := d.put(obj, next); err != nil {
			return nil, err
		}
		waiting = append(waiting, order.Spec.Cluster+" to give "+order.Spec.Workload.Kind+" "+order.Spec.Workload.Name+" up")
	}
	return waiting, nil
}

// release lets go of companions that are not listed, where the workload no longer needs them.
func (d *Driver) release(desired backends.Desired, missing map[string]string) ([]string, error) {
	running := map[string]*orderObject{}
	for _, obj := range d.orders(desired.Key) {
		order := read[orderObject](obj)
		running[order.Spec.Cluster] = order
	}
	targets := map[string]backends.Target{}
	for _, target := range desired.Targets {
		targets[target.Cluster] = target
	}
	listed := func(companionWork *unstructured.Unstructured, cluster string) bool {
		return slices.ContainsFunc(desired.Companions, func(c backends.Companion) bool {
			return c.NeededOn(cluster) && companionWorkRef(cluster, c.Object) == backendtest.RefOf(companionWork)
		})
	}
	releasing, err := d.giveUp(desired.Key, func(companionWork *unstructured.Unstructured, cluster string) bool {
		target, said := targets[cluster]
		return said && target.Mode != backends.ModeRemove && !target.Mode.Owns() && !listed(companionWork, cluster)
	})
	if err != nil {
		return nil, err
	}
	waiting, err := d.leave(desired.Query, v1alpha1.DeletionPolicyDelete, func(companionWork *unstructured.Unstructured, cluster string) bool {
		target, said := targets[cluster]
		order := running[cluster]
		switch {
		case !said:
			return true
		case target.Mode == backends.ModeRemove:
			return order != nil
		case !target.Mode.Owns():
			return true
		}
		arrived := target.Mode == backends.ModeHold || missing[cluster] == "" && order != nil && order.carriedOut() && order.Status.Applied &&
			order.Spec.Revision == desired.Revision
		return listed(companionWork, cluster) || !desired.Prune.Takes(companions.IsShared(companionWork)) || !arrived
	})
	return append(releasing, waiting...), err
}

// giveUp only observes companion works that are no longer listed.
func (d *Driver) giveUp(
	key backends.Key, gives func(companionWork *unstructured.Unstructured, cluster string) bool,
) (waiting []string, err error) {
	for _, obj := range d.companionWorks(key) {
		order := read[orderObject](obj)
		if !gives(obj, order.Spec.Cluster) {
			continue
		}
		next, need := obj.DeepCopy(), companions.ReadNeed(obj.GetAnnotations()).Observing(key)
		annotations := next.GetAnnotations()
		need.Write(annotations)
		next.SetAnnotations(annotations)
		if !need.Owned() {
			order.Spec.Mode = backends.ModeObserve
			next.Object["spec"] = toMap(&order.Spec)
		}
		if err := d.put(obj, next); err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(obj.Object["spec"], next.Object["spec"]) || !need.Owned() && !order.released() {
			waiting = append(waiting, order.Spec.Cluster+" to give "+order.Spec.Workload.Kind+" "+order.Spec.Workload.Name+" up")
		}
	}
	return waiting, nil
}

// observeCompanions adds what stands against companions to the reports.
func (d *Driver) observeCompanions(query backends.Query, o *backends.Observation) {
	key, at := query.Key, map[string]int{}
	for i, c := range o.Clusters {
		at[c.Cluster] = i
	}
	for _, obj := range d.companionWorks(key) {
		o.Found = true
		order := read[orderObject](obj)
		cluster, title := order.Spec.Cluster, order.Spec.Workload.Kind+" "+order.Spec.Workload.Name
		if _, known := at[cluster]; !known {
			at[cluster] = len(o.Clusters)
			o.Clusters = append(o.Clusters, backends.ClusterObservation{
				Cluster: cluster, Applied: metav1.ConditionUnknown, Presence: backends.PresenceOf(order.Spec.Removal != "", true),
			})
		}
		c := &o.Clusters[at[cluster]]
		others := companions.ReadNeed(obj.GetAnnotations()).Owners(key.UID)
		c.Presence = backends.PresenceOf(c.Removing(), c.Released() && (order.released() || len(others) > 0))
		companions.Serve(c, obj, title, key)
		if query.Companions {
			need := companions.ReadNeed(obj.GetAnnotations())
			told := backends.CompanionObservation{
				Object: &unstructured.Unstructured{Object: order.Spec.Manifest}, Shared: companions.IsShared(obj), Elsewhere: need.Elsewhere(),
				Others: len(need.Leaving(key, v1alpha1.DeletionPolicyDelete).Users) > 0, Removing: order.Spec.Removal != "",
			}
			if order.carriedOut() && order.Status.Conflict {
				told.Theirs = backends.TheirsForeign
			}
			c.Companions = append(c.Companions, told)
			backends.SortCompanions(c.Companions)
		}
		switch {
		case !order.carriedOut() || order.Status.Applied || order.Spec.Removal != "":
		case order.Status.Conflict && companions.IsShared(obj):
			o.Notes = append(o.Notes, companions.ForeignNote(title, []string{cluster}))
			c.Foreign = append(c.Foreign, title)
		default:
			c.Conflict, c.Applied, c.Current = order.Status.Conflict, metav1.ConditionFalse, false
			c.Message = title + ": " + order.Status.Message
		}
	}
}
