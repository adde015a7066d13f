package ssa

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const created = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: space, labels: {ours: "1"}, annotations: {held: "true"}}
data: {a: "1", b: "2"}
`

const later = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: space, labels: {ours: "1"}}
data: {a: "3"}
`

// What was created and is no longer wanted goes, and nothing of others does.
func TestClaim(t *testing.T) {
	ctx := t.Context()
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	if err := Create(ctx, c, object(t, created)); err != nil {
		t.Fatal(err)
	}
	theirs := object(t, created)
	theirs.SetAnnotations(map[string]string{"theirs": "1"})
	theirs.SetLabels(nil)
	delete(theirs.Object, "data")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	read := func() *unstructured.Unstructured {
		live := object(t, later)
		if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		return live
	}
	for range 2 {
		if err := Claim(ctx, c, read(), object(t, later)); err != nil {
			t.Fatal(err)
		}
		if _, err := Send(ctx, c, object(t, later)); err != nil {
			t.Fatal(err)
		}
	}
	live := read()
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	if len(data) != 1 || data["a"] != "3" {
		t.Errorf("data is %v", data)
	}
	if a := live.GetAnnotations(); len(a) != 1 || a["theirs"] != "1" {
		t.Errorf("annotations are %v", a)
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == FieldOwner && entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("fields are owned by %s", entry.Operation)
		}
	}
}

// A change that leaves nothing out needs no request.
func TestClaimNothing(t *testing.T) {
	live := object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  managedFields:
  - {manager: fleetworkload, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {.: {}, "f:a": {}}}}
data: {a: "1"}`)
	if err := Claim(t.Context(), nil, live, object(t, later)); err != nil {
		t.Fatal(err)
	}
}

func TestCreateWhatIsThere(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if err := Create(t.Context(), c, object(t, later)); err != nil {
		t.Fatal(err)
	}
	if err := Create(t.Context(), c, object(t, created)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error is %v", err)
	}
}
