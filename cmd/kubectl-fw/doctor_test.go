package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

const crdFile = "../../config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml"

func crdOf(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		t.Fatal(err)
	}
	return crd
}

func leaseHeld(holder string, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "lease"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at},
	}
}

func webhookWith(authority string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "fleetworkload"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte(authority)}}},
	}
}

// examined is what doctor says of a management cluster with these objects.
func examined(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (string, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	o := doctorOptions{operatorNamespace: "ops", lease: "lease"}
	s := &section{title: "management cluster"}
	lookAtCRD(t.Context(), s, c)
	o.lookAtLease(t.Context(), s, c, noon)
	lookAtWebhook(t.Context(), s, c)
	fleet := &section{title: "FleetWorkloads"}
	inv, err := loadInventory("testdata/migrate/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lookAtFleetWorkloads(t.Context(), fleet, c, inv)
	var out bytes.Buffer
	err = report(&out, []*section{s, fleet})
	return out.String(), err
}

func TestDoctorOnTheManagementCluster(t *testing.T) {
	older := crdOf(t)
	versions, _, err := unstructured.NestedSlice(older.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "suspend")
	if err := unstructured.SetNestedSlice(older.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	forbidden := func(schema.GroupResource) error { return apierrors.NewForbidden(schema.GroupResource{}, "x", nil) }
	for name, test := range map[string]struct {
		objects []client.Object
		funcs   interceptor.Funcs
		fails   string
	}{
		"well": {objects: []client.Object{
			crdOf(t), leaseHeld("pod-1", noon.Add(-3*time.Second)), webhookWith("ca"), glanced("shop", "web", func(*v1alpha1.FleetWorkload) {}),
		}},
		"ill": {objects: []client.Object{
			older, leaseHeld("pod-1", noon.Add(-5*time.Minute)), webhookWith(""), glanced("shop", "web", func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Backend = "argo"
				fw.Status.Conditions = []metav1.Condition{
					{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBackendNotFound, Message: "there is none"},
					{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBackendNotFound},
				}
			}),
		}, fails: "5 problems found"},
		"empty":  {fails: "2 problems found"},
		"nobody": {objects: []client.Object{crdOf(t), webhookWith("ca"), leaseHeld("", noon)}, fails: "1 problem found"},
		"blind": {funcs: interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return forbidden(schema.GroupResource{})
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := examined(t, test.funcs, test.objects...)
			if (err == nil) != (test.fails == "") || err != nil && err.Error() != test.fails {
				t.Errorf("the error is %v, want %q", err, test.fails)
			}
			compareGolden(t, "doctor/"+name+".golden", out)
		})
	}
}

func TestDoctorOnBackends(t *testing.T) {
	inv, err := loadInventory("testdata/migrate/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sections []*section
	for _, name := range []string{"karmada", "small", "argo"} {
		s := &section{title: "backend " + name}
		lookAtBackend(s, inv, config.Backend{Name: name}, noon)
		sections = append(sections, s)
	}
	var out bytes.Buffer
	if err := report(&out, sections); err == nil || err.Error() != "2 problems found" {
		t.Errorf("the error is %v", err)
	}
	compareGolden(t, "doctor/backends.golden", out.String())
}

func TestDoctorOnClocks(t *testing.T) {
	for want, off := range map[string]time.Duration{"its clock is right": 0, "are 2m0s apart": 2 * time.Minute} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		}))
		s := &section{}
		lookAtClock(t.Context(), s, &rest.Config{Host: server.URL})
		server.Close()
		if got := s.findings[0].what; !strings.Contains(strings.Replace(got, "1m59s", "2m0s", 1), want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s := &section{}
	lookAtClock(t.Context(), s, &rest.Config{Host: "http://127.0.0.1:1"})
	if s.findings[0].is != gradeProblem {
		t.Errorf("got %v", s.findings)
	}
}
