package karmada

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// carryOut sends the writes in order, then releases Works, and stops at the first that fails.
func (d *Driver) carryOut(ctx context.Context, step decision) error {
	for _, w := range step.writes {
		if w.remove {
			if err := d.remove(ctx, w.object); err != nil {
				return err
			}
			continue
		}
		sent, err := ssa.Send(ctx, d.client, w.object)
		if err != nil {
			return err
		}
		d.expected.Wrote(sent)
	}
	for _, w := range step.release {
		if err := d.release(ctx, w); err != nil {
			return err
		}
	}
	for _, t := range step.tell {
		if err := d.patchWork(ctx, t.work.Work, t.told(), "set preserveResourcesOnDeletion of"); err != nil {
			return err
		}
	}
	for _, w := range step.discard {
		if err := d.discard(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the object if it is still the one that was seen.
func (d *Driver) remove(ctx context.Context, obj *unstructured.Unstructured) error {
	d.expected.Forget(expectations.KeyOf(obj))
	opts := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if uid := obj.GetUID(); uid != "" {
		opts = append(opts, client.Preconditions{UID: &uid})
	}
	target := reference(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName())
	if err := client.IgnoreNotFound(d.client.Delete(ctx, target, opts...)); err != nil {
		op := fmt.Sprintf("delete %s %s", obj.GetKind(), client.ObjectKeyFromObject(obj))
		return backends.Classify(op, err)
	}
	return nil
}

// discard deletes a Work that is still as it was seen: what it says of the member object is carried out.
func (d *Driver) discard(ctx context.Context, w work) error {
	seen := asSeen(w)
	err := d.client.Delete(ctx, seen, client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return backends.Classify(fmt.Sprintf("delete work %s/%s", w.Namespace, w.Name), err)
	}
	return nil
}

// release takes Karmada's finalizer from a Work, see untouchable.
func (d *Driver) release(ctx context.Context, w work) error {
	if !slices.Contains(w.Finalizers, executionFinalizer) {
		return nil
	}
	before := asSeen(w)
	after := before.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == executionFinalizer })
	return d.patchWork(ctx, before, after, "release")
}

// asSeen is the Work with nothing but what tells which one it is, and which state of it.
func asSeen(w work) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion, Finalizers: slices.Clone(w.Finalizers),
	}}
}

// patchWork sends what differs, if the Work is still as it was seen.
func (d *Driver) patchWork(ctx context.Context, before, after *workv1alpha1.Work, operation string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(d.client.Patch(ctx, after, patch)); err != nil {
		return backends.Classify(fmt.Sprintf("%s work %s/%s", operation, before.Namespace, before.Name), err)
	}
	return nil
}
