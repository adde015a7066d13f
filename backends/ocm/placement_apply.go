package ocm

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

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
		d.successors.Add(client.ObjectKeyFromObject(p.placement), key) // before the look, so that no event is missed after it
		stale, err := d.hasDecisions(ctx, p.placement)
		if err == nil && stale {
			_, err = d.showAgain(ctx, p.placement, p.desired.Key.UID)
		}
		if err != nil || stale {
			return selected, []string{"the former Placement's decisions to go"}, err
		}
		d.successors.Drop(key, nil)
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
