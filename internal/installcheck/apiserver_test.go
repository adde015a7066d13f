//go:build api

package installcheck

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/internal/admission"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

const namespace = "fleetworkload-system"

// TestAuthorsOnAnAPIServer: the account of `helm test` is refused by the operator's own webhook, and told apart from one that nobody asks and one that
// does not answer.
func TestAuthorsOnAnAPIServer(t *testing.T) {
	api, jane := start(t)
	hook := serve(t, api)
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	create(t, api, configuration(t, hook))
	if err := Authors(long, jane, namespace); err != nil {
		t.Errorf("the webhook answers: %v", err)
	}
	hook.Close()
	judge(t, Authors(briefly(t), jane, namespace), "gets no answer from the operator's webhook")
	if err := api.Delete(t.Context(), configuration(t, hook)); err != nil {
		t.Fatal(err)
	}
	late, cancelLate := context.WithTimeout(t.Context(), 5*time.Second) // API servers learn of it a moment later
	defer cancelLate()
	judge(t, Authors(late, jane, namespace), "nobody asks the webhook")
	list := &v1alpha1.FleetWorkloadList{}
	if err := api.List(t.Context(), list); err != nil || len(list.Items) > 0 {
		t.Errorf("%d FleetWorkloads were stored: %v", len(list.Items), err)
	}
}

// start runs an API server with the CRD, and gives clients of its administrator and of somebody with the rights of the account of `helm test`.
func start(t *testing.T) (api, author client.Client) {
	t.Helper()
	running, err := lab.StartAPIServer(t.Context(), t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Stop() })
	cfg, err := running.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if api, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(t, "../../config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml", crd)
	create(t, api, crd)
	create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "jane"}
	create(t, api, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"fleetworkloads"}, Verbs: []string{"create"}},
	}})
	create(t, api, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jane"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "jane"},
	})
	for deadline := time.Now().Add(time.Minute); api.List(t.Context(), &v1alpha1.FleetWorkloadList{}) != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the CRD is not served")
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate.UserName, cfg.QPS = "jane", -1
	if author, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return api, author
}

// serve answers as the operator does.
func serve(t *testing.T, api client.Client) *httptest.Server {
	t.Helper()
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := ctrladmission.StandaloneWebhook(&webhook.Admission{
		Handler: &admission.Validator{Reviews: api, Decoder: ctrladmission.NewDecoder(api.Scheme()), Kinds: kinds},
	}, ctrladmission.StandaloneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewTLSServer(handler)
	t.Cleanup(served.Close)
	return served
}

// configuration is the operator's, but for the address.
func configuration(t *testing.T, hook *httptest.Server) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	out := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	read(t, "../../config/webhook/configuration.yaml", out)
	url := hook.URL + admission.Path
	out.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
	}
	return out
}

func create(t *testing.T, api client.Client, obj client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}
