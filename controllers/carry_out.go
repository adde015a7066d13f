package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// carryOut has backends carry orders out, one after the other, until one fails.
func (r *Reconciler) carryOut(ctx context.Context, orders []pass.Order) map[string]pass.Outcome {
	outcomes := map[string]pass.Outcome{}
	var before backends.Progress
	for _, order := range orders {
		if order.OnlyAfter && !before.Done {
			return outcomes
		}
		progress, err := r.order(ctx, order, order.AloneAfter && before.Done)
		outcomes[order.Backend] = pass.Outcome{Progress: progress, Err: err}
		if err != nil {
			return outcomes
		}
		before = progress
	}
	return outcomes
}

// order has one backend take its next step. alone is true when no other one has anything of the workload any more.
func (r *Reconciler) order(ctx context.Context, order pass.Order, alone bool) (backends.Progress, error) {
	driver, err := r.Backends.Driver(order.Backend)
	if err != nil {
		return backends.Progress{}, err
	}
	if order.Delete != nil {
		return driver.Delete(ctx, order.Delete.Query, order.Delete.Policy)
	}
	desired := *order.Apply
	if alone {
		desired.Counterpart = backends.CounterpartGone
	}
	return driver.Apply(ctx, desired)
}

// keep creates the object that keeps a spec for the time of a hand-over.
func (r *Reconciler) keep(ctx context.Context, fw *v1alpha1.FleetWorkload, spec *pass.KeptSpec) error {
	if spec == nil {
		return nil
	}
	raw, err := json.Marshal(spec.Spec)
	if err != nil {
		return fmt.Errorf("encode spec: %w", err)
	}
	kept := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fw.Namespace, Name: spec.Name,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: string(fw.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fw, v1alpha1.GroupVersion.WithKind("FleetWorkload"))},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: fw.Generation,
	}
	if err := r.Create(ctx, kept); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("keep the spec in ControllerRevision %s: %w", client.ObjectKeyFromObject(kept), err)
	}
	return nil
}

// forget removes a kept spec, once the record that names it is gone. What is left when this is cut off goes with the FleetWorkload.
func (r *Reconciler) forget(ctx context.Context, fw *v1alpha1.FleetWorkload, name string) error {
	if name == "" {
		return nil
	}
	kept := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: name}}
	if err := r.Delete(ctx, kept); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ControllerRevision %s: %w", name, err)
	}
	return nil
}
