package ssa

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Create makes an object that is not there, and fails with AlreadyExists when it is: one request, where an apply would
// need a look before. Fields that the server does not know are refused, as by an apply.
//
// To the server, what was created was not applied: before an apply that leaves something out, call Claim.
func Create(ctx context.Context, c client.Client, desired *unstructured.Unstructured) error {
	return c.Create(ctx, desired.DeepCopy(), &client.CreateOptions{
		FieldManager: FieldOwner, FieldValidation: metav1.FieldValidationStrict,
	})
}

// Claim sees to it that an apply of desired takes out what we have created and desired lacks. Nearly always there is
// nothing to do, and no request is made.
func Claim(ctx context.Context, c client.Client, live, desired *unstructured.Unstructured) error {
	if claimed, err := isClaimed(live, desired); err != nil || claimed {
		return err
	}
	key := client.ObjectKeyFromObject(live)
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(live.GroupVersionKind())
	// The cache does not have other managers' fields, which must stay.
	if err := c.Get(ctx, key, current); err != nil {
		return fmt.Errorf("get %s %s: %w", live.GetKind(), key, err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(current, sets.New(FieldOwner), FieldOwner)
	if err != nil || len(patch) == 0 {
		return err
	}
	if err := c.Patch(ctx, current, client.RawPatch("application/json-patch+json", patch), client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("claim fields of %s %s: %w", live.GetKind(), key, err)
	}
	return nil
}

// isClaimed is false when desired lacks a field that we own otherwise than by apply.
func isClaimed(live, desired *unstructured.Unstructured) (bool, error) {
	owned, err := fieldsOf(live, metav1.ManagedFieldsOperationUpdate)
	if err != nil {
		return false, err
	}
	claimed := true
	owned.Leaves().Iterate(func(p fieldpath.Path) { claimed = claimed && has(desired.Object, p) })
	return claimed, nil
}
