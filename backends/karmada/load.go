package karmada

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
)

// readerFor is the API server when the query asks for it, else the cache.
func (d *Driver) readerFor(q backends.Query) client.Reader {
	if q.Counterpart != backends.CounterpartNone {
		return d.client
	}
	return d.cache
}

// load reads what Karmada has of the workload. With a kind that is not served it returns that error, and all the rest.
func (d *Driver) load(ctx context.Context, from client.Reader, q backends.Query) (currentState, error) {
	if err := d.watches.ready(); err != nil {
		return currentState{}, err
	}
	d.watches.remember(q)
	notServed := d.watchKind(ctx, q.Workload)
	if notServed != nil && backends.CodeOf(notServed) != backends.CodeKindNotServed {
		return currentState{}, notServed
	}
	var live currentState
	var err error
	name, kinds := policyName(q), scopeOf(q.Workload)
	if notServed == nil {
		live.template = &unstructured.Unstructured{}
		live.template.SetGroupVersionKind(q.Workload.GVK)
		err = get(ctx, from, q.Workload.Namespace, q.Workload.Name, &live.template)
	}
	live.policy, live.override = &unstructured.Unstructured{}, &unstructured.Unstructured{}
	live.policy.SetGroupVersionKind(kinds.policy)
	live.override.SetGroupVersionKind(kinds.override)
	err = errors.Join(err, get(ctx, from, q.Workload.Namespace, name, &live.policy),
		get(ctx, from, q.Workload.Namespace, name, &live.override))
	if err != nil {
		return currentState{}, err
	}
	if err := errors.Join(loadBinding(ctx, from, q, &live), d.loadWorks(ctx, from, q, &live)); err != nil {
		return currentState{}, err
	}
	return live, notServed
}

func loadBinding(ctx context.Context, from client.Reader, q backends.Query, live *currentState) error {
	at := bindingOf(q.Workload)
	namespaced, wide := &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}
	var obj client.Object = namespaced
	if at.Namespace == "" {
		obj = wide
	}
	switch err := from.Get(ctx, at, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return backends.Classify("get binding "+at.String(), err)
	}
	live.binding = namespaced
	if at.Namespace == "" {
		live.binding = asBinding(wide)
	}
	return nil
}

// loadWorks needs the binding. Only the cache finds Works that are left without one.
func (d *Driver) loadWorks(ctx context.Context, from client.Reader, q backends.Query, live *currentState) error {
	at, label := bindingOf(q.Workload), scopeOf(q.Workload).bindingID
	var chosen client.ListOption = client.MatchingFields{workByBinding: at.String()}
	if from != d.cache {
		if live.binding != nil && live.binding.Labels[label] != "" {
			chosen = client.MatchingLabels{label: live.binding.Labels[label]}
		} else {
			from = d.cache
		}
	}
	var works workv1alpha1.WorkList
	if err := from.List(ctx, &works, chosen); err != nil {
		return backends.Classify("list works of "+at.String(), err)
	}
	for i := range works.Items {
		w := newWork(&works.Items[i])
		w.read = &reading{}
		id := w.Labels[label]
		if w.ours(q.Key) || live.binding != nil && id != "" && id == live.binding.Labels[label] {
			live.works = append(live.works, w)
		}
	}
	slices.SortFunc(live.works, func(a, b work) int { return compareWorks(a, b) })
	return nil
}

// get reads an object, and sets the pointer to nil when there is none.
func get(ctx context.Context, from client.Reader, namespace, name string, obj **unstructured.Unstructured) error {
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, *obj)
	if err == nil {
		return nil
	}
	kind := (*obj).GetKind()
	*obj = nil
	if apierrors.IsNotFound(err) {
		return nil
	}
	return backends.Classify(fmt.Sprintf("get %s %s/%s", kind, namespace, name), err)
}

// behind says which of the objects the cache does not show yet as they were written; it is empty when it is up to date.
func (d *Driver) behind(ctx context.Context, q backends.Query, live currentState) (string, error) {
	for _, object := range live.objects(q) {
		key := expectations.Key{
			GroupKind: object.gvk.GroupKind(), NamespacedName: types.NamespacedName{Namespace: q.Workload.Namespace, Name: object.name},
		}
		var seen metav1.Object
		if object.live != nil {
			seen = object.live
		}
		behind, err := d.expected.Behind(key, seen, caches.Version(ctx, d.client, object.gvk, key.NamespacedName, q.Key.UID))
		if err != nil {
			return "", backends.Classify("read what was written", err)
		}
		if behind {
			return fmt.Sprintf("the cache to show %s %s", object.gvk.Kind, key.NamespacedName), nil
		}
	}
	return "", nil
}
