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
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// keepSpec keeps the spec for the time of the hand-over, in a ControllerRevision that is named by what it holds.
func (r *Reconciler) keepSpec(ctx context.Context, fw *v1alpha1.FleetWorkload) (string, error) {
	spec := migration.Kept(fw.Spec)
	name, err := migration.KeptName(fw, spec, fw.Generation)
	if err != nil {
		return "", err
	}
	return name, r.createKept(ctx, fw, name, spec)
}

func (r *Reconciler) createKept(ctx context.Context, fw *v1alpha1.FleetWorkload, name string, spec v1alpha1.FleetWorkloadSpec) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode spec: %w", err)
	}
	kept := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fw.Namespace, Name: name,
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

// readKeptSpec reads the spec as it was when the hand-over began. Scaling, suspending and the strategy do not wait.
func (r *Reconciler) readKeptSpec(ctx context.Context, s *scope) error {
	name := s.record.migration.SpecRevision
	spec, err := r.kept(ctx, s.fw, name)
	if err != nil {
		return err
	}
	if spec == nil {
		present := migration.Kept(s.fw.Spec)
		if !migration.Names(name, s.fw, present) {
			return lostSpec(s.fw, name)
		}
		if err := r.createKept(ctx, s.fw, name, present); err != nil {
			return err
		}
		spec = &present
	}
	spec.Replicas, spec.Suspend, spec.Backend = s.fw.Spec.Replicas, s.fw.Spec.Suspend, s.fw.Spec.Backend
	s.spec = s.fw.DeepCopy()
	s.spec.Spec = *spec
	s.here = r.Aliases.Written(s.spec, s.record.migration.From)
	return nil
}

// kept reads a spec that was kept; nil when it is gone. What somebody else has put in its place is refused: it would be rolled out.
func (r *Reconciler) kept(ctx context.Context, fw *v1alpha1.FleetWorkload, name string) (*v1alpha1.FleetWorkloadSpec, error) {
	key, kept := client.ObjectKey{Namespace: fw.Namespace, Name: name}, &appsv1.ControllerRevision{}
	if err := r.Get(ctx, key, kept); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get ControllerRevision %s with the spec from the beginning of the migration: %w", key, err)
	}
	spec := &v1alpha1.FleetWorkloadSpec{}
	if err := json.Unmarshal(kept.Data.Raw, spec); err != nil || !migration.Names(name, fw, *spec) {
		return nil, stall(v1alpha1.ReasonMigrationSpecLost,
			"ControllerRevision %s does not hold the spec from the beginning of the migration to backend %q: somebody else has written it. "+
				"Nothing is changed. Delete it: kubectl delete controllerrevision %s -n %s", key, fw.Status.Migration.To, name, fw.Namespace)
	}
	return spec, nil
}

func lostSpec(fw *v1alpha1.FleetWorkload, name string) error {
	return stall(v1alpha1.ReasonMigrationSpecLost,
		"ControllerRevision %s/%s with the spec from the beginning of the migration to backend %q is gone, and the spec was changed since. "+
			"Nothing is changed. Bring it back from a backup, or set the spec to what it was; replicas, suspend and backend do not matter",
		fw.Namespace, name, fw.Status.Migration.To)
}

// forget removes the spec from the beginning, once the record that names it is gone. What is left when this is cut off goes with
// the FleetWorkload.
func (r *Reconciler) forget(ctx context.Context, fw *v1alpha1.FleetWorkload) error {
	revision := fw.Status.Migration.SpecRevision
	if revision == "" {
		return nil
	}
	kept := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: revision}}
	if err := r.Delete(ctx, kept); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ControllerRevision %s: %w", revision, err)
	}
	return nil
}
