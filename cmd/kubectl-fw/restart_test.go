package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// TestRestart sets kubectl's annotation in the pod template, wherever the kind has it, and nothing else.
func TestRestart(t *testing.T) {
	kinds, err := interpreter.New(interpreter.Description{
		Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", PodTemplatePath: "spec.pods", Health: interpreter.Health{Healthy: "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const at = "2026-03-01T12:00:00Z"
	const restarted = `"kubectl.kubernetes.io/restartedAt":"` + at + `"`
	for name, test := range map[string]struct {
		template, want, fails string
	}{
		"a Deployment": {
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"metadata":{"annotations":{"a/b":"c"},"labels":{"app":"web"}},"spec":{}}}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"metadata":{"annotations":{"a/b":"c",` + restarted + `},"labels":{"app":"web"}},"spec":{}}}}`, ""},
		"once more": {
			`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2025-01-01T00:00:00Z"}}}}}`,
			`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"template":{"metadata":{"annotations":{` + restarted + `}}}}}`, ""},
		"without annotations": {
			`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"template":{"metadata":{"annotations":null,"labels":{"app":"web"}}}}}`,
			`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"template":{"metadata":{"annotations":{` + restarted + `},"labels":{"app":"web"}}}}}`, ""},
		"without metadata": {
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"StatefulSet","spec":{"template":{"spec":{}}}}`,
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"StatefulSet","spec":{"template":{"metadata":{"annotations":{` + restarted + `}},"spec":{}}}}`, ""},
		"a UnitedDeployment": {
			`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"UnitedDeployment","spec":{"template":{"cloneSetTemplate":{"spec":{"template":{"spec":{}}}}}}}`,
			`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"UnitedDeployment","spec":{"template":{"cloneSetTemplate":{"spec":{"template":{"metadata":{"annotations":{` + restarted + `}},"spec":{}}}}}}}`, ""},
		"a described kind": {
			`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"pods":{"spec":{}}}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"pods":{"metadata":{"annotations":{` + restarted + `}},"spec":{}}}}`, ""},
		"a Job":                   {`{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{}}}`, "", "FleetWorkload shop/web: Job cannot be restarted: it runs once"},
		"no pod template":         {`{"apiVersion":"apps/v1","kind":"DaemonSet","spec":{}}`, "", "spec.template.spec.template: there is no pod template"},
		"a kind nobody described": {`{"apiVersion":"example.com/v1","kind":"Gadget","spec":{}}`, "", "where example.com/v1 Gadget has its pod template is not known"},
		"within a second": {`{"apiVersion":"apps/v1","kind":"DaemonSet","spec":{"template":{"metadata":{"annotations":{` + restarted + `}}}}}`, "",
			"it was restarted within this second already"},
	} {
		t.Run(name, func(t *testing.T) {
			fw, objects := shipping(t, func(s *v1alpha1.FleetWorkloadSpec) { s.Template = runtime.RawExtension{Raw: []byte(test.template)} })
			_, c := pastOf(t, fw, objects)
			before, err := read(t.Context(), c, web)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err = restart(t.Context(), c, web, kinds, noon.In(time.UTC), &out)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("error is %v, want %q", err, test.fails)
			}
			after, err := read(t.Context(), c, web)
			if err != nil {
				t.Fatal(err)
			}
			if test.fails != "" {
				test.want = test.template
			} else if want := "shop/web makes its pods anew: kubectl.kubernetes.io/restartedAt is " + at + "\n"; out.String() != want {
				t.Errorf("printed %q, want %q", out.String(), want)
			}
			var want, got any
			if err := utiljson.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := utiljson.Unmarshal(after.Spec.Template.Raw, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the template (-want +got):\n%s", diff)
			}
			before.Spec.Template, after.Spec.Template = runtime.RawExtension{}, runtime.RawExtension{}
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
				t.Errorf("the rest of the spec is another (-before +after):\n%s", diff)
			}
		})
	}
}
