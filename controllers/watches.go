package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	pointer "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// backendIndex finds FleetWorkloads by the backends they have to do with.
const backendIndex = "backend"

func indexBackends(obj client.Object) []string {
	fw, ok := obj.(*v1alpha1.FleetWorkload)
	if !ok {
		return nil
	}
	if fw.Status.Backend == "" || fw.Status.Backend == fw.Spec.Backend {
		return []string{fw.Spec.Backend}
	}
	return []string{fw.Spec.Backend, fw.Status.Backend}
}

// objectIndex finds FleetWorkloads by the objects that they have.
const objectIndex = "object"

func indexObjects(obj client.Object) []string {
	fw, ok := obj.(*v1alpha1.FleetWorkload)
	if !ok {
		return nil
	}
	var keys []string
	for _, object := range pass.Objects(fw) {
		keys = append(keys, pass.ObjectKey(object))
	}
	return keys
}

// namespaceMetadata is of a namespace what is read and watched.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// requestsIn are the FleetWorkloads of a namespace, which looks different now.
func (r *Reconciler) requestsIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, namespace.GetName()) {
		return nil
	}
	return r.requests(ctx, "namespace "+namespace.GetName(), client.InNamespace(namespace.GetName()))
}

// told lets FleetWorkloads wait of which a backend tells, when their pause is over.
func (r *Reconciler) told(ctx context.Context, e event.TypedGenericEvent[BackendEvent], queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if e.Object.Name != (types.NamespacedName{}) {
		r.begun.told(e.Object.Name)
	}
	for _, req := range r.requestsFor(ctx, e.Object) {
		if !r.pauses.takes(req.NamespacedName, func(after time.Duration) { queue.AddAfter(req, after) }) {
			queue.AddAfter(req, max(together, r.pauses.left(req.NamespacedName, r.Clock.Now())))
		}
	}
}

// comes notes a FleetWorkload that is new, or was edited while nobody watched. Its pass goes before those that others' news bring.
func (r *Reconciler) comes(e event.CreateEvent) bool {
	if fw, is := e.Object.(*v1alpha1.FleetWorkload); is && fw.Generation != pointer.Deref(fw.Status.ObservedGeneration, 0) {
		r.begun.edit(client.ObjectKeyFromObject(fw), fw.Generation)
	}
	return true
}

// goes notes a FleetWorkload that is gone: it waits for no turn to begin.
func (r *Reconciler) goes(e event.DeleteEvent) bool {
	r.begun.edit(client.ObjectKeyFromObject(e.Object), e.Object.GetGeneration())
	return true
}

// matters tells whether a change of a FleetWorkload brings a pass. What a pass has written into the status brings none, unless passes go by it or
// another one has waited for it; nor does what was before our last write, whose own event is to come, or what a pass has written and gone on with.
func (r *Reconciler) matters(e event.UpdateEvent) bool {
	before, was := e.ObjectOld.(*v1alpha1.FleetWorkload)
	now, is := e.ObjectNew.(*v1alpha1.FleetWorkload)
	if was && is && (before.Generation != now.Generation || !equality.Semantic.DeepEqual(before.Annotations, now.Annotations)) {
		r.begun.edit(client.ObjectKeyFromObject(now), now.Generation) // as in comes
	}
	switch {
	case !was || !is || before.ResourceVersion == now.ResourceVersion:
		return true
	case r.written.before(now, r.Clock.Now().Add(-behindForLong)):
		return false
	case r.written.goneOn(now):
		return false
	case !r.written.shows(now):
		return true
	}
	same := equality.Semantic.DeepEqual
	return before.UID != now.UID || before.Generation != now.Generation || !before.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!same(before.Labels, now.Labels) || !same(before.Annotations, now.Annotations) || !same(before.Finalizers, now.Finalizers) ||
		!same(decided(before.Status), decided(now.Status))
}

// decided is what passes go by in a status: of the conditions that is Stalled alone, see pass.TakesTurn. All else is put together anew in each pass.
func decided(status v1alpha1.FleetWorkloadStatus) v1alpha1.FleetWorkloadStatus {
	status = withoutNumbers(status)
	status.SpecRevision = nil
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type != v1alpha1.ConditionStalled })
	return status
}

// requestsFor turns an event of a backend into FleetWorkloads to look at.
func (r *Reconciler) requestsFor(ctx context.Context, e BackendEvent) []reconcile.Request {
	if e.Name != (types.NamespacedName{}) {
		return []reconcile.Request{{NamespacedName: e.Name}}
	}
	return r.requests(ctx, "backend "+e.Backend, client.MatchingFields{backendIndex: e.Backend})
}

func (r *Reconciler) requests(ctx context.Context, of string, which client.ListOption) []reconcile.Request {
	var list v1alpha1.FleetWorkloadList
	if err := r.List(ctx, &list, which); err != nil {
		log.FromContext(ctx).Error(err, "List FleetWorkloads", "of", of)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
