package backendtest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unprotect takes away what config/backends protects the operator's objects with: it knows the operator by an account
// that drivers under test do not have.
func Unprotect(t *testing.T, backend client.Client) {
	t.Helper()
	for _, name := range []string{"fleetworkload-protection", "fleetworkload-companions"} {
		binding := &unstructured.Unstructured{}
		binding.SetAPIVersion("admissionregistration.k8s.io/v1")
		binding.SetKind("ValidatingAdmissionPolicyBinding")
		binding.SetName(name)
		if err := client.IgnoreNotFound(backend.Delete(context.Background(), binding)); err != nil {
			t.Fatalf("delete ValidatingAdmissionPolicyBinding %s: %v", name, err)
		}
	}
}
