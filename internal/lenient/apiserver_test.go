//go:build api

package lenient_test

import (
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/internal/lenient"
)

// TestOthersAreSeen: with a CRD that admits anything for spec.suspend, one FleetWorkload with a word there hides no other one, neither
// when all are listed nor when they change.
func TestOthersAreSeen(t *testing.T) {
	server, err := lab.StartAPIServer(t.Context(), t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), loosened(t)); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	becomes(t, "the CRD is served", func() error { return api.Create(t.Context(), workload("wrong", "maybe")) })
	if err := api.Create(t.Context(), workload("fine", false)); err != nil {
		t.Fatal(err)
	}

	if err := api.List(t.Context(), &v1alpha1.FleetWorkloadList{}); err == nil {
		t.Fatal("a client decodes it: the test shows nothing")
	}
	cfg.Wrap(lenient.Transport)
	seen, err := cache.New(cfg, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seen.GetInformer(t.Context(), &v1alpha1.FleetWorkload{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = seen.Start(t.Context()) }()
	if !seen.WaitForCacheSync(t.Context()) {
		t.Fatal("nothing is seen")
	}
	at := func(name string) *v1alpha1.FleetWorkload {
		fw := &v1alpha1.FleetWorkload{}
		if err := seen.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, fw); err != nil {
			t.Fatal(err)
		}
		return fw
	}
	if fw := at("wrong"); lenient.Problem(fw) == "" || fw.UID == "" {
		t.Errorf("%+v", fw)
	}
	if fw := at("fine"); lenient.Problem(fw) != "" || *fw.Spec.Suspend {
		t.Errorf("%+v", fw)
	}
	change := func(name string, suspend any) {
		t.Helper()
		live := workload(name, nil)
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(live.Object, suspend, "spec", "suspend"); err != nil {
			t.Fatal(err)
		}
		if err := api.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	change("wrong", "perhaps")
	change("fine", true)
	becomes(t, "the other one's change is seen", func() error { return is(*at("fine").Spec.Suspend) })
	change("wrong", true)
	becomes(t, "it is corrected", func() error { return is(lenient.Problem(at("wrong")) == "" && *at("wrong").Spec.Suspend) })
}

func is(so bool) error {
	if !so {
		return errors.New("it is not")
	}
	return nil
}

func becomes(t *testing.T, what string, lacks func() error) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		err := lacks()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within half a minute: %s: %v", what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// loosened is the CRD with anything admitted for spec.suspend.
func loosened(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile("../../config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		t.Fatal(err)
	}
	anything := true
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["suspend"] = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: &anything}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	return crd
}

func workload(name string, suspend any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "FleetWorkload", "metadata": map[string]any{"namespace": "shop", "name": name},
		"spec": map[string]any{
			"backend": "ocm", "suspend": suspend, "placement": map[string]any{"clusters": map[string]any{}},
			"template": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"},
		},
	}}
}
