package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
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

// issued is a certificate that holds until then, with its key: an authority, or for a host by one.
func issued(t *testing.T, until time.Time, host string, by *certified) *certified {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: noon.AddDate(-1, 0, 0), NotAfter: until, BasicConstraintsValid: true}
	if by == nil {
		template.IsCA, template.Subject = true, pkix.Name{CommonName: "an authority until " + until.String()}
		by = &certified{template, key, ""}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &certified{parsed, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

type certified struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        string
}

// authority is a certificate that holds until then.
func authority(t *testing.T, until time.Time) string {
	t.Helper()
	return issued(t, until, "", nil).text
}

// servedWith is the Secret of the webhook's certificate.
func servedWith(certificate string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "fleetworkload-webhook"}, Data: map[string][]byte{"tls.crt": []byte(certificate)}}
}

// webhookWith is one behind a Service.
func webhookWith(authority string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "fleetworkload"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: []byte(authority), Service: &admissionregistrationv1.ServiceReference{Namespace: "ops", Name: "webhook"},
		}}},
	}
}

// endpoints are those of the webhook's Service.
func endpoints(ready ...bool) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "webhook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "webhook"}}}
	for i := range ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &ready[i]}})
	}
	return slice
}

// examined is what doctor says of a management cluster with these objects.
func examined(t *testing.T, funcs interceptor.Funcs, output string, objects ...client.Object) (string, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	o := doctorOptions{operatorNamespace: "ops", lease: "lease"}
	found := atOnce(t.Context(), o.managementLooks(c, func() time.Time { return noon })...)
	inv, err := loadInventory("testdata/migrate/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list v1alpha1.FleetWorkloadList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	sections := []section{{"management cluster", found}, {"FleetWorkloads", lookAtFleetWorkloads(list.Items, inv)}}
	remedied(t, sections)
	var out bytes.Buffer
	err = report(&out, output, sections)
	return out.String(), err
}

// remedied wants a remedy with everything that is not well, of its own.
func remedied(t *testing.T, sections []section) {
	t.Helper()
	for _, s := range sections {
		for _, f := range s.findings {
			if (f.Remedy == "") != (f.Grade == gradeOK) || f.Remedy == anyway || f.Aspect == "" || f.Message == "" {
				t.Errorf("%s: the finding is not whole: %+v", s.title, f)
			}
		}
	}
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
	const name = "webhook.ops.svc"
	led, ca := leaseHeld("pod-1", noon.Add(-3*time.Second)), issued(t, noon.AddDate(1, 0, 0), "", nil)
	year, serving := ca.text, servedWith(issued(t, noon.AddDate(0, 2, 0), name, ca).text)
	ends := issued(t, noon.Add(48*time.Hour), "", nil)
	at := func(url, authority string) client.Object {
		hook := webhookWith(authority)
		hook.Webhooks[0].ClientConfig.Service, hook.Webhooks[0].ClientConfig.URL = nil, &url
		return hook
	}
	// looked is a management cluster of which only the webhook may be ill.
	looked := func(objects ...client.Object) []client.Object { return append(objects, crdOf(t), led, endpoints(true)) }
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", nil)
	lost := glanced("shop", "web", func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Backend = "argo"
		fw.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBackendNotFound, Message: "there is none"},
			{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBackendNotFound},
		}
	})
	ill := []client.Object{older, leaseHeld("pod-1", noon.Add(-5*time.Minute)), webhookWith(""), endpoints(), lost}
	for name, test := range map[string]struct {
		objects []client.Object
		funcs   interceptor.Funcs
		output  string
		fails   string
	}{
		"well": {objects: []client.Object{crdOf(t), led, webhookWith(year), serving, endpoints(false, true), glanced("shop", "web", func(*v1alpha1.FleetWorkload) {})}},
		"ill":  {objects: ill, fails: "6 problems found"}, "ill-json": {objects: ill, output: "json", fails: "6 problems found"},
		"ill-yaml":           {objects: ill, output: "yaml", fails: "6 problems found"},
		"empty":              {fails: "2 problems found"},
		"nobody":             {objects: []client.Object{crdOf(t), webhookWith(year), serving, endpoints(true), leaseHeld("", noon)}, fails: "1 problem found"},
		"unready":            {objects: []client.Object{crdOf(t), led, webhookWith(year), serving, endpoints(false)}, fails: "1 problem found"},
		"expired":            {objects: looked(webhookWith(authority(t, noon.Add(-time.Hour))), serving), fails: "1 problem found"},
		"expires":            {objects: looked(webhookWith(authority(t, noon.Add(-time.Hour))+ends.text), servedWith(issued(t, noon.AddDate(0, 2, 0), name, ends).text))},
		"garbled":            {objects: looked(webhookWith("ca"), serving), fails: "1 problem found"},
		"serving-expired":    {objects: looked(webhookWith(year), servedWith(issued(t, noon.Add(-time.Hour), name, ca).text)), fails: "1 problem found"},
		"serving-expires":    {objects: looked(webhookWith(year), servedWith(issued(t, noon.Add(48*time.Hour), name, ca).text))},
		"serving-elsewhere":  {objects: looked(webhookWith(year), servedWith(issued(t, noon.AddDate(0, 2, 0), "other.ops.svc", ca).text)), fails: "1 problem found"},
		"serving-distrusted": {objects: looked(webhookWith(year), servedWith(issued(t, noon.AddDate(0, 2, 0), name, ends).text)), fails: "1 problem found"},
		"serving-garbled":    {objects: looked(webhookWith(year), servedWith("crt")), fails: "1 problem found"},
		"serving-unkept":     {objects: looked(webhookWith(year))},
		"serving-at-a-url":   {objects: looked(at("https://127.0.0.1:9443/validate", year), serving), fails: "1 problem found"},
		"blind": {funcs: interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return forbidden
		}}},
		"serving-hidden": {objects: looked(webhookWith(year), serving), funcs: interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*corev1.Secret); is {
				return forbidden
			}
			return c.Get(ctx, key, obj, opts...)
		}}},
		"sightless": {objects: []client.Object{crdOf(t), led, webhookWith(year), serving}, funcs: interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*discoveryv1.EndpointSliceList); is {
				return forbidden
			}
			return c.List(ctx, list, opts...)
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := examined(t, test.funcs, test.output, test.objects...)
			if (err == nil) != (test.fails == "") || err != nil && err.Error() != test.fails {
				t.Errorf("the error is %v, want %q", err, test.fails)
			}
			compareGolden(t, "doctor/"+name+".golden", out)
		})
	}
}

// TestDoctorPrintsWhatProgramsRead: the names of fields and aspects stay.
func TestDoctorPrintsWhatProgramsRead(t *testing.T) {
	var out bytes.Buffer
	if err := report(&out, "json", []section{{"backend a (OCM)", []finding{well(aspectClock, "fine"), ill(gradeNote, aspectRights, do("grant it"), "less\nthan that")}}}); err != nil {
		t.Fatal(err)
	}
	var printed map[string]any
	if err := utiljson.Unmarshal(out.Bytes(), &printed); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"about": "backend a (OCM)", "aspect": "Clock", "grade": "ok", "message": "fine"},
		map[string]any{"about": "backend a (OCM)", "aspect": "Rights", "grade": "note", "message": "less than that", "remedy": "grant it"},
	}
	if got := printed["findings"]; !equalJSON(t, got, want) || printed["problems"] != int64(0) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, _, err := run(t, "", "doctor", "-o", "wide"); err == nil || !strings.Contains(err.Error(), `--output "wide": choose json or yaml`) {
		t.Errorf("-o wide: %v", err)
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	one, err := utiljson.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := utiljson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

func TestDoctorOnClocks(t *testing.T) {
	for name, test := range map[string]struct {
		date func() string
		want string
		is   grade
	}{
		"right":    {func() string { return time.Now().UTC().Format(http.TimeFormat) }, "^it is right$", gradeOK},
		"wrong":    {func() string { return time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat) }, "are (2m0s|1m59s) apart$", gradeNote},
		"timeless": {func() string { return "today" }, "it does not tell the time$", gradeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", test.date()) }))
			defer server.Close()
			found := newEndpoint(&rest.Config{Host: server.URL}).lookAtClock(t.Context(), "it is right")
			remedied(t, []section{{name, []finding{found}}})
			if got := found; got.Grade != test.is || !regexp.MustCompile(test.want).MatchString(got.Message) {
				t.Errorf("got %+v, want %s %q", got, test.is, test.want)
			}
		})
	}
	found := newEndpoint(&rest.Config{Host: "http://127.0.0.1:1"}).lookAtReach(t.Context())
	if found[0].Grade != gradeProblem || found[0].Remedy == "" {
		t.Errorf("got %v", found)
	}
}

// TestNothingIsFoundWrongWithoutARemedy: findings and remedies are made in one place each, and no remedy is empty.
func TestNothingIsFoundWrongWithoutARemedy(t *testing.T) {
	files, err := filepath.Glob("doctor*.go")
	if err != nil {
		t.Fatal(err)
	}
	makers, remedies := []string{"well", "ill", "do"}, 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.CompositeLit:
					if of, is := n.Type.(*ast.Ident); is && (of.Name == "finding" || of.Name == "remedy") && !slices.Contains(makers, function.Name.Name) {
						t.Errorf("%s: %s makes a %s by itself", file, function.Name.Name, of.Name)
					}
				case *ast.CallExpr:
					if of, is := n.Fun.(*ast.Ident); is && of.Name == "do" {
						remedies++
						if text, is := n.Args[0].(*ast.BasicLit); is && len(text.Value) < len(`"do it"`) && len(n.Args) == 1 {
							t.Errorf("%s: %s has the remedy %s", file, function.Name.Name, text.Value)
						}
					}
				}
				return true
			})
		}
	}
	if remedies < 30 {
		t.Errorf("looked at %d remedies", remedies)
	}
	if f := ill(gradeNote, aspectClock, remedy{}, "x"); f.Remedy != anyway {
		t.Errorf("the remedy is %q", f.Remedy)
	}
}
