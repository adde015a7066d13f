package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestAnotherOperatorsFleetWorkloads: an operator writes nothing for namespaces that it does not serve, and goes on with one that it gets.
func TestAnotherOperatorsFleetWorkloads(t *testing.T) {
	w := newWorld(t)
	var err error
	if w.Serves, err = labels.Parse("shard=a"); err != nil {
		t.Fatal(err)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName("shop")
	namespace.SetLabels(map[string]string{"shard": "b"})
	if err := w.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.create(divide(8))
	before := w.writes
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if w.writes != before {
		t.Errorf("%d writes for what is another's", w.writes-before)
	}
	namespace.SetLabels(map[string]string{"shard": "a"})
	if err := w.client.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.settle()
	fw := &v1alpha1.FleetWorkload{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, fw); err != nil {
		t.Fatal(err)
	}
	if fw.Status.ObservedGeneration == nil {
		t.Error("nobody has looked at it")
	}
	for _, req := range w.requestsIn(t.Context(), namespace) {
		if req.Name != "web" {
			t.Errorf("a change of the namespace asks for %s", req)
		}
	}
	if w.Namespaces = []string{"other"}; w.requestsIn(t.Context(), namespace) != nil {
		t.Error("a namespace that is not watched is looked at")
	}
}
