package karmada

import (
	"context"
	"fmt"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-io/karmada/pkg/webhook/clusteroverridepolicy"
	"github.com/karmada-io/karmada/pkg/webhook/clusterpropagationpolicy"
	"github.com/karmada-io/karmada/pkg/webhook/overridepolicy"
	"github.com/karmada-io/karmada/pkg/webhook/propagationpolicy"

	"github.com/fleetworkload/fleetworkload/backends/backendtest/crdcheck"
)

// apiServer is what stands before the storage of a Karmada control plane: the schemas of the policies, and Karmada's own
// webhooks.
type apiServer struct {
	schemas              crdcheck.Schemas
	mutating, validating map[string]admission.Handler
}

func newAPIServer(t *testing.T) apiServer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := admission.NewDecoder(scheme)
	return apiServer{
		schemas: crdcheck.Load(t, "github.com/karmada-io/karmada", "charts/karmada/_crds/bases/policy/*.yaml"),
		mutating: map[string]admission.Handler{
			policyv1alpha1.ResourceKindPropagationPolicy:        propagationpolicy.NewMutatingHandler(decoder),
			policyv1alpha1.ResourceKindClusterPropagationPolicy: clusterpropagationpolicy.NewMutatingHandler(decoder),
			policyv1alpha1.ResourceKindOverridePolicy:           &overridepolicy.MutatingAdmission{Decoder: decoder},
		},
		validating: map[string]admission.Handler{
			policyv1alpha1.ResourceKindPropagationPolicy:        &propagationpolicy.ValidatingAdmission{Decoder: decoder},
			policyv1alpha1.ResourceKindClusterPropagationPolicy: &clusterpropagationpolicy.ValidatingAdmission{Decoder: decoder},
			policyv1alpha1.ResourceKindOverridePolicy:           &overridepolicy.ValidatingAdmission{Decoder: decoder},
			policyv1alpha1.ResourceKindClusterOverridePolicy:    &clusteroverridepolicy.ValidatingAdmission{Decoder: decoder},
		},
	}
}

// apply returns the policy as it is stored, or why it is refused. live is what was stored before, or nil.
func (s apiServer) apply(ctx context.Context, live, rendered *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	sent := merged(live, rendered)
	stored, err := s.schemas.Admit(ctx, sent)
	if err != nil {
		return nil, fmt.Errorf("as sent: %w", err)
	}
	if handler := s.mutating[rendered.GetKind()]; handler != nil {
		if stored, err = review(ctx, handler, live, stored); err != nil {
			return nil, fmt.Errorf("mutating webhook: %w", err)
		}
	}
	if stored, err = s.schemas.Admit(ctx, stored); err != nil {
		return nil, fmt.Errorf("after the mutating webhook: %w", err)
	}
	_, err = review(ctx, s.validating[rendered.GetKind()], live, stored)
	return stored, err
}

// merged is what server-side apply makes of a policy: metadata of others stays, and the spec is the rendered one. What a
// webhook has added to the spec is not kept here, which it comes to anew.
func merged(live, rendered *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		return rendered.DeepCopy()
	}
	out := live.DeepCopy()
	labels := out.GetLabels()
	for key, value := range rendered.GetLabels() {
		labels[key] = value
	}
	out.SetLabels(labels)
	out.Object["spec"] = rendered.DeepCopy().Object["spec"]
	return out
}

// review sends the object through a webhook, and returns it with the webhook's patches.
func review(ctx context.Context, handler admission.Handler, live, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := obj.MarshalJSON()
	if err != nil {
		return nil, err
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "review", Operation: admissionv1.Create, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		Object: runtime.RawExtension{Raw: raw},
	}}
	if live != nil {
		request.Operation = admissionv1.Update
		if request.OldObject.Raw, err = live.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	response := handler.Handle(ctx, request)
	if err := response.Complete(request); err != nil {
		return nil, err
	}
	if !response.Allowed {
		return nil, fmt.Errorf("denied: %s", response.Result.Message)
	}
	if len(response.Patch) == 0 {
		return obj, nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return nil, err
	}
	if raw, err = patch.Apply(raw); err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(raw)
}
