package proposal

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// web is a FleetWorkload that there is.
func web(t *testing.T) *v1alpha1.FleetWorkload {
	t.Helper()
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Generation: 4}}
	fw.Status.Backend, fw.Status.Workload = "karmada", &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	if err := yaml.UnmarshalStrict([]byte(`
backend: karmada
replicas: 3
placement: {clusters: {names: [m1]}}
template: {apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: web, image: "nginx:1"}]}}}}
companions: [{apiVersion: v1, kind: Service, metadata: {name: web}}]
`), &fw.Spec); err != nil {
		t.Fatal(err)
	}
	return fw
}

// packed is a value with any text in it.
func packed(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// TestWhatIsAskedIsWhatIsRead: but for the spec, it is the FleetWorkload that there is, which stays as it is.
func TestWhatIsAskedIsWhatIsRead(t *testing.T) {
	fw := web(t)
	spec := fw.Spec.DeepCopy()
	spec.Placement.Clusters.Names = []string{"m1", "m2"}
	value, err := Encode(*spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(t.Context(), fw, value)
	if err != nil {
		t.Fatal(err)
	}
	want := web(t)
	want.Spec = *spec
	if !reflect.DeepEqual(got.ObjectMeta, want.ObjectMeta) || got.Status.Backend != "karmada" ||
		!reflect.DeepEqual(got.Spec.Placement.Clusters.Names, []string{"m1", "m2"}) || !strings.Contains(string(got.Spec.Template.Raw), `"nginx:1"`) ||
		len(got.Spec.Companions) != 1 || *got.Spec.Replicas != 3 {
		t.Errorf("it reads %+v", got)
	}
	if !reflect.DeepEqual(fw, web(t)) {
		t.Error("what is there was changed")
	}
	if Hash(value) == Hash(value+"x") || len(Hash(value)) > 63 {
		t.Errorf("the hash is %q", Hash(value))
	}
}

// TestWhatIsNotRead: what no API server would admit, and what is larger than anything that one keeps.
func TestWhatIsNotRead(t *testing.T) {
	for value, want := range map[string]string{
		"":           "gzip and base64",
		"not base64": "gzip and base64",
		base64.StdEncoding.EncodeToString([]byte("not gzip")): "gzip and base64",
		packed("{")[:12]:                               "gzip and base64",
		packed(`[]`):                                   "no JSON object",
		packed(`{"backend":"karmada"}`):                "spec.template",
		packed(`{"backendd":"karmada"}`):               "unknown fields: spec.backendd",
		packed(`"` + strings.Repeat("x", 2<<20) + `"`): "more than 1572864 bytes",
		packed(`{"backend":"karmada","template":{"apiVersion":"v1","kind":"Pod"},"placement":{"clusters":{}},"replicas":-1}`): "spec.replicas",
		packed(`{"backend":"karmada","template":{"apiVersion":"v1","kind":"Pod"},"placement":{"clusters":{}}}`):               "the kind of spec.template cannot change",
	} {
		if _, err := Decode(t.Context(), web(t), value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", value, err, want)
		}
	}
}

// TestTooLargeToAsk: what does not compress well has no room in an annotation.
func TestTooLargeToAsk(t *testing.T) {
	fw := web(t)
	noise := make([]byte, MostValue)
	for i := range noise {
		noise[i] = byte(rand.UintN(256))
	}
	fw.Spec.Template.Raw = []byte(`{"data":"` + base64.StdEncoding.EncodeToString(noise) + `"}`)
	if _, err := Encode(fw.Spec); err == nil || !strings.Contains(err.Error(), "has room for 196608") {
		t.Errorf("it is encoded: %v", err)
	}
}

// FuzzDecode: nobody can write a value at which the operator ends.
func FuzzDecode(f *testing.F) {
	raw, err := os.ReadFile("proposal.go")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{`{}`, `{"backend":"karmada","template":{},"placement":{"clusters":{}}}`, `{"placement":{"clusters":null}}`, string(raw)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		for _, value := range []string{text, packed(text)} {
			if got, err := Decode(t.Context(), fw, value); err == nil && got.Spec.Backend == "" {
				t.Errorf("a spec without a backend is read: %s", text)
			}
		}
	})
}
