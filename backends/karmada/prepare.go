package karmada

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
)

// prepare makes sure, before the first write, that what is missing in the cache is not there in truth: the cache holds
// only what has our label. It also creates the namespace; it is never deleted, since Karmada would delete it on members
// with everything in it.
func (d *Driver) prepare(ctx context.Context, desired backends.Desired, want *rendered, live currentState) error {
	for _, pair := range []struct{ live, want *unstructured.Unstructured }{
		{live.template, want.template}, {live.policy, want.policy}, {live.override, want.override},
	} {
		if pair.live != nil {
			continue
		}
		err := d.checkFree(ctx, desired.Query, pair.want)
		if err != nil && pair.want == want.template && desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt {
			return d.refuseRaw(ctx, desired.Query, pair.want, err)
		}
		if err != nil {
			return err
		}
	}
	if live.policy != nil || live.override != nil || live.template != nil || desired.Workload.Namespace == "" {
		return nil
	}
	return d.ensureNamespace(ctx, desired.Workload.Namespace, desired.Workload.NamespaceLabels)
}

func (d *Driver) checkFree(ctx context.Context, q backends.Query, want *unstructured.Unstructured) error {
	found, err := caches.Lookup(ctx, d.client, want.GroupVersionKind(), client.ObjectKeyFromObject(want))
	if err != nil || found == nil || found.Labels[v1alpha1.LabelUID] == string(q.Key.UID) { // the cache will show it
		return err
	}
	obj := reference(want.GetAPIVersion(), want.GetKind(), want.GetNamespace(), want.GetName())
	obj.SetAnnotations(found.Annotations)
	return nameConflict(obj, q)
}

// showAgain has the cache show what somebody took the label off: it would be awaited for ever, or stay. It says what is awaited then.
func (d *Driver) showAgain(ctx context.Context, q backends.Query, live currentState) (waiting string, err error) {
	for _, object := range live.objects(q) {
		if object.live != nil {
			continue
		}
		at := types.NamespacedName{Namespace: q.Workload.Namespace, Name: object.name}
		found, err := caches.Lookup(ctx, d.client, object.gvk, at)
		if meta.IsNoMatchError(err) {
			continue
		}
		shows := false
		if err == nil {
			shows, err = caches.ShowAgain(ctx, d.client, found, q.Key.UID)
		}
		if err != nil {
			return "", err
		}
		if shows {
			waiting = fmt.Sprintf("the cache to show %s %s", object.gvk.Kind, at)
		}
	}
	return waiting, nil
}

// ensureNamespace makes a namespace that is missing, with these labels: Karmada makes it on the members as it is here
// (pkg/controllers/namespace). One that is there is left as it is.
func (d *Driver) ensureNamespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	err := d.client.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		err = d.client.Create(ctx, namespace)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		op := "create namespace " + name
		return backends.Classify(op, err)
	}
	return nil
}
