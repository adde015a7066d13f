package karmada

import (
	"testing"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-io/karmada/pkg/util/names"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/randomspec"
)

// maxRequest is what etcd takes by default (--max-request-bytes).
const maxRequest = 1536 << 10

// TestBoundsAreCarriedOutOrRefused: what is rendered at the bounds of the API, Karmada stores, and can make Works of.
func TestBoundsAreCarriedOutOrRefused(t *testing.T) {
	server := newAPIServer(t)
	for what, c := range randomspec.Bounds() {
		t.Run(what, func(t *testing.T) {
			d, err := c.Desired()
			if err != nil {
				demandHelp(t, what, err)
				return
			}
			r, err := render(d, currentState{})
			if err != nil {
				demandHelp(t, what, err)
				t.Log(err)
				return
			}
			policy, override := admitAll(t, server, 0, nil, nil, r)
			for _, obj := range []*unstructured.Unstructured{policy, override, r.template} {
				if size := len(text(t, obj)); size > maxRequest {
					t.Errorf("%s has %d bytes", obj.GetKind(), size)
				}
			}
			demandMetadata(t, "template", r.template.GetNamespace() != "", r.template)
			w := d.Workload
			demandName(t, bindingName(w))
			demandName(t, names.GenerateWorkName(w.GVK.Kind, w.Name, w.Namespace))
			for i := 0; i < len(d.Targets); i += 1 + len(d.Targets)/7 { // reading a large policy takes a while
				demandRecord(t, r, d.Targets[i])
			}
		})
	}
}

func demandMetadata(t *testing.T, what string, namespaced bool, obj *unstructured.Unstructured) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace(), Labels: obj.GetLabels(), Annotations: obj.GetAnnotations()}
	if errs := apivalidation.ValidateObjectMeta(&meta, namespaced, apivalidation.NameIsDNSSubdomain, nil); len(errs) > 0 {
		t.Errorf("%s: %v", what, errs.ToAggregate())
	}
}

func demandName(t *testing.T, name string) {
	t.Helper()
	if errs := apivalidation.NameIsDNSSubdomain(name, false); len(errs) > 0 {
		t.Errorf("%s: %v", name, errs)
	}
}

// demandRecord: Karmada puts what it overrides for a cluster into an annotation of the Work.
func demandRecord(t *testing.T, r *rendered, target backends.Target) {
	t.Helper()
	demandMetadata(t, "manifest for "+target.Cluster, target.Manifest.GetNamespace() != "", target.Manifest)
	if !r.needsOverride {
		return
	}
	record, err := overrideWith(r.override, target.Cluster, r.template.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if err := apivalidation.ValidateAnnotationsSize(map[string]string{"record": record}); err != nil {
		t.Errorf("record of the overrides of %s: %v", target.Cluster, err)
	}
}
