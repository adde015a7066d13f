package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func fixture(t *testing.T) *v1alpha1.FleetWorkload {
	t.Helper()
	raw, err := os.ReadFile("testdata/status.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fw := &v1alpha1.FleetWorkload{}
	if err := yaml.UnmarshalStrict(raw, fw); err != nil {
		t.Fatal(err)
	}
	return fw
}

func TestTable(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	unseen := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 1}}
	for name, fw := range map[string]*v1alpha1.FleetWorkload{
		"status.golden": fixture(t), "status-wide.golden": fixture(t), "status-unseen.golden": unseen,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeTable(&out, fw, now, name == "status-wide.golden"); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, out.String())
		})
	}
}

func TestOutputFormats(t *testing.T) {
	fw := fixture(t)
	for format, want := range map[string]string{"json": `"observedGeneration": 7`, "yaml": "observedGeneration: 7", "kyaml": "observedGeneration: 7"} {
		var out bytes.Buffer
		show, err := printerFor(statusOptions{output: inFormat(format, true)}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if err := show(fw); err != nil {
			t.Fatal(err)
		}
		var status v1alpha1.FleetWorkloadStatus
		if err := yaml.UnmarshalStrict(out.Bytes(), &status); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("-o %s: error %v, printed\n%s", format, err, out.String())
		}
	}
	for format, want := range map[string]string{"name": "fleetworkload.apps.fleetworkload.io/" + fw.Name + "\n", "jsonpath={.observedGeneration}": "7", "go-template={{.ready}}": fw.Status.Ready} {
		var out bytes.Buffer
		show, err := printerFor(statusOptions{output: inFormat(format, true)}, &out)
		if err := errors.Join(err, show(fw)); err != nil || out.String() != want {
			t.Errorf("-o %s: error %v, printed %q", format, err, out.String())
		}
	}
	for format, want := range map[string]string{"picture": `--output "picture": choose wide, json, yaml`, "jsonpath={.a": "unclosed action"} {
		if _, err := printerFor(statusOptions{output: inFormat(format, true)}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-o %s: %v, want %s", format, err, want)
		}
	}
}

func fakeClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	name := func(o client.Object) []string { return []string{o.GetName()} }
	of := func(field func(corev1.ObjectReference) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{field(o.(*corev1.Event).InvolvedObject)} }
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.FleetWorkload{}, "metadata.name", name).
		WithIndex(&corev1.Event{}, "involvedObject.kind", of(func(r corev1.ObjectReference) string { return r.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name", of(func(r corev1.ObjectReference) string { return r.Name })).
		WithStatusSubresource(&v1alpha1.FleetWorkload{}).Build()
}

func TestNotFound(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	none := func(*v1alpha1.FleetWorkload) error { return errors.New("shown") }
	for name, err := range map[string]error{
		"once":  showStatus(t.Context(), fakeClient(t), key, none),
		"watch": follow(t.Context(), fakeClient(t), key, none, &bytes.Buffer{}),
	} {
		if err == nil || !strings.Contains(err.Error(), `FleetWorkload "web" not found in namespace "shop"`) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// A watch shows what is there, each change once, and ends with the FleetWorkload.
func TestFollow(t *testing.T) {
	watching := make(chan struct{}, 10)
	c := interceptor.NewClient(fakeClient(t, fixture(t)), interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			watching <- struct{}{}
			return w, err
		},
	})
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	seen := make(chan string, 10)
	done := make(chan error, 1)
	var errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		done <- follow(ctx, c, key, func(fw *v1alpha1.FleetWorkload) error {
			seen <- fw.Status.Ready
			return nil
		}, &errOut)
	}()
	if got := <-seen; got != "10/16" {
		t.Fatalf("first seen is %q", got)
	}
	<-watching // the fake watch has no replay
	fw := &v1alpha1.FleetWorkload{}
	if err := c.Get(ctx, key, fw); err != nil {
		t.Fatal(err)
	}
	fw.Status.Ready = "16/16"
	if err := c.Status().Update(ctx, fw); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "16/16" {
		t.Fatalf("then seen is %q", got)
	}
	if err := c.Delete(ctx, fw); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errOut.String(), "was deleted") {
		t.Errorf("the deletion is not told: %q", errOut.String())
	}
}

func TestRedraw(t *testing.T) {
	if got := redraw(0, "a\n"); strings.Contains(got, "A\r") {
		t.Errorf("the first picture goes back: %q", got)
	}
	if got := redraw(3, "a\n"); !strings.HasPrefix(got, "\x1b[3A\r\x1b[J") {
		t.Errorf("the second picture does not replace three lines: %q", got)
	}
}

func TestDisplayName(t *testing.T) {
	for called, want := range map[string]string{
		"kubectl-fw": "kubectl-fw", "bin/kubectl-fw": "kubectl-fw", "/usr/local/bin/kubectl-fw": "kubectl fw",
		"/tmp/go-build/kubectl-fw.test": "kubectl fw", "/usr/bin/fw": "kubectl-fw",
	} {
		if got := displayName(called); got != want {
			t.Errorf("%s: %q, not %q", called, got, want)
		}
	}
}
