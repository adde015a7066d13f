package memory

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
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
)

// stepLimit bounds Settle: a backend that does not come to rest is a bug.
const stepLimit = 1000

// Settle steps until nothing moves any more.
func (b *Backend) Settle() {
	for range stepLimit {
		if !b.Step() {
			return
		}
	}
	panic("the memory backend does not come to rest")
}

// Step moves everything one hop: clusters are chosen, members report, orders are carried out, and what runs on members
// gets on. So a new manifest is on the member after the first step, seen by its controller in the same step, ready after
// the second, reported ready after the third. It tells whether anything changed.
func (b *Backend) Step() (changed bool) {
	b.stepping.Lock()
	defer b.stepping.Unlock()
	fleet := backends.Fleet{Clusters: b.fleet()}
	for _, obj := range b.backend.list(placementKind.Kind) {
		changed = b.choose(obj, fleet) || changed
	}
	for _, obj := range b.backend.list(orderKind.Kind) {
		order := read[orderObject](obj)
		c, known := fleet.Get(order.Spec.Cluster)
		switch {
		case !known && order.Spec.Removal == "": // with a cluster goes what the backend had for it
			b.backend.remove(backendtest.Ref{GVK: orderKind, NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}})
			changed = true
		case !known || c.Ready == metav1.ConditionTrue:
			changed = b.advance(obj, order, known) || changed
		}
	}
	return b.members.simulate() || changed
}

// settled tells whether a write of the backend itself took place: one that meets a newer object is made next time.
func settled(err error) bool {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		panic(err)
	}
	return true
}

// choose decides a placement as a backend's scheduler would.
func (b *Backend) choose(obj *unstructured.Unstructured, fleet backends.Fleet) bool {
	placement := read[placementObject](obj)
	clusters, _ := fleet.Select(placement.Spec.Selectors...) // of selectors that are not valid, none is chosen
	if placement.Status.ObservedGeneration == placement.Generation && slices.Equal(placement.Status.Clusters, clusters) {
		return false
	}
	placement.Status.ObservedGeneration, placement.Status.Clusters = placement.Generation, clusters
	return settled(b.backend.updateStatus(obj, toMap(&placement.Status)))
}

// advance reports a member object and carries the order for it out. Of a cluster that the backend has forgotten there
// is nothing left to take off.
func (b *Backend) advance(obj *unstructured.Unstructured, order *orderObject, known bool) bool {
	member := b.members.store(order.Spec.Cluster)
	live := member.get(order.Spec.Workload.ref())
	status := orderStatus{ObservedGeneration: order.Generation, Applied: true}
	if live != nil && (b.owns(live, order) || !order.Spec.Mode.Owns()) {
		status.Report = &memberReport{
			UID:      live.GetUID(),
			Revision: live.GetAnnotations()[v1alpha1.AnnotationRevision], Generation: live.GetGeneration(),
			Object: map[string]any{"status": live.Object["status"], "spec": live.Object["spec"]},
		}
	}
	var err error
	switch {
	case order.Spec.Removal != "":
		status.Removed = true
		if known {
			err = b.takeOff(member, live, order)
		}
	default:
		status.Conflict, err = b.deliver(member, live, order)
	}
	if err != nil {
		status.Applied, status.Removed, status.Message = false, false, err.Error()
	}
	if reflect.DeepEqual(order.Status, status) {
		return false
	}
	return settled(b.backend.updateStatus(obj, toMap(&status)))
}

// owner is the mark of an order's member object.
func (b *Backend) owner(order *orderObject) string {
	return b.id + "/" + order.Labels[v1alpha1.LabelUID]
}

// owns tells whether the member object is the order's, and not somebody else's.
func (b *Backend) owns(live *unstructured.Unstructured, order *orderObject) bool {
	return live.GetAnnotations()[OwnerMark] == b.owner(order)
}

// takeOff deletes a member object, or gives it up.
func (b *Backend) takeOff(member *objectStore, live *unstructured.Unstructured, order *orderObject) error {
	if live == nil || !b.owns(live, order) {
		return nil
	}
	if order.Spec.Removal == v1alpha1.DeletionPolicyDelete && order.Spec.Mode.Owns() {
		member.remove(backendtest.RefOf(live))
		return nil
	}
	annotations := live.GetAnnotations()
	delete(annotations, OwnerMark)
	live.SetAnnotations(annotations)
	return member.replace(live)
}

// deliver writes the order's manifest, unless it may not or must not.
func (b *Backend) deliver(member *objectStore, live *unstructured.Unstructured, order *orderObject) (conflict bool, err error) {
	spec := order.Spec
	if spec.Hold || !spec.Mode.Owns() || spec.Manifest == nil {
		return false, nil
	}
	wanted := (&unstructured.Unstructured{Object: spec.Manifest}).DeepCopy()
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[OwnerMark] = b.owner(order)
	wanted.SetAnnotations(annotations)
	if live == nil {
		return false, member.create(wanted)
	}
	adopts := spec.Conflict == v1alpha1.ConflictPolicyAdopt || spec.Mode == backends.ModeAdopt
	if !b.owns(live, order) && !adopts {
		return true, fmt.Errorf("%s %s exists and is not ours", live.GetKind(), live.GetName())
	}
	return false, member.replace(merged(live, wanted))
}

// merged is wanted with the metadata of live, to which its labels and annotations are added. None are taken away.
func merged(live, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	result := wanted.DeepCopy()
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, wanted.GetLabels())
	maps.Copy(annotations, wanted.GetAnnotations())
	result.Object["metadata"] = live.DeepCopy().Object["metadata"]
	result.SetLabels(labels)
	result.SetAnnotations(annotations)
	return result
}

// simulate returns the status that the member's controller would write next.
func simulate(obj *unstructured.Unstructured, limit int64, limited bool) map[string]any {
	was, _, _ := unstructured.NestedMap(obj.Object, "status")
	status := map[string]any{"observedGeneration": obj.GetGeneration()}
	kind := obj.GetKind()
	if kind != deploymentKind && kind != cloneSetKind {
		return status
	}
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	revision := templateHash(obj)
	updated, ready := replicas, replicas
	if limited {
		ready = min(ready, limit)
	}
	if observed, _, _ := unstructured.NestedInt64(was, "observedGeneration"); observed != obj.GetGeneration() {
		before, _, _ := unstructured.NestedInt64(was, "readyReplicas")
		ready = min(ready, before)
		updated = ready
		if was["updateRevision"] != revision {
			updated = 0
		}
	}
	maps.Copy(status, map[string]any{
		"replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready,
		"updateRevision": revision,
	})
	if kind == cloneSetKind {
		status["updatedReadyReplicas"] = min(updated, ready)
		return status
	}
	// A Deployment leaves zeros out.
	maps.DeleteFunc(status, func(_ string, value any) bool { return value == int64(0) })
	return status
}

// templateHash changes with the pod template.
func templateHash(obj *unstructured.Unstructured) string {
	template, _, _ := unstructured.NestedMap(obj.Object, "spec", "template")
	encoded, err := json.Marshal(template)
	if err != nil {
		panic(err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write(encoded)
	return fmt.Sprintf("%s-%08x", obj.GetName(), hash.Sum32())
}

// ownerName is the name of the FleetWorkload that an order belongs to.
func ownerName(order *unstructured.Unstructured) string {
	_, name, _ := strings.Cut(order.GetAnnotations()[v1alpha1.AnnotationOwner], "/")
	return name
}
