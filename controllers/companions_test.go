package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/sources"
)

const secretContent = "c3dvcmRmaXNo"

// referTo makes the pods refer to a ConfigMap of that name and a Secret.
func referTo(configMap string) func(*v1alpha1.FleetWorkloadSpec) {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.Dependencies = v1alpha1.DependencyPolicyPropagate
		from := `"image":"nginx:1","envFrom":[{"configMapRef":{"name":"` + configMap + `"}},{"secretRef":{"name":"key"}}]`
		s.Template.Raw = []byte(strings.Replace(template, `"image":"nginx:1"`, from, 1))
	}
}

func ref(kind, name string) sources.Ref {
	return sources.Ref{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind},
		NamespacedName:   types.NamespacedName{Namespace: key.Namespace, Name: name},
	}
}

// put puts an object on the management cluster; an empty content takes it away.
func (w *world) put(kind, name, content string) {
	w.t.Helper()
	at := ref(kind, name)
	if content == "" {
		delete(w.sources.objects, at)
		return
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": content}}}
	obj.SetGroupVersionKind(at.GroupVersionKind)
	obj.SetNamespace(at.Namespace)
	obj.SetName(at.Name)
	w.versions++
	obj.SetResourceVersion(strconv.Itoa(w.versions))
	w.sources.objects[at] = obj
}

// sent is a companion's content on the first member, empty when it is not there.
func (w *world) sent(kind, name string) string {
	w.t.Helper()
	at := ref(kind, name)
	obj, err := w.backend.Member("m1").Get(context.Background(), backendtest.Ref{GVK: at.GroupVersionKind, NamespacedName: at.NamespacedName})
	if err != nil {
		return ""
	}
	content, _, _ := unstructured.NestedString(obj.Object, "data", "value")
	return content
}

func (w *world) wantSent(settings, other string) {
	w.t.Helper()
	if diff := cmp.Diff([]string{settings, other}, []string{w.sent("ConfigMap", "settings"), w.sent("ConfigMap", "other")}); diff != "" {
		w.t.Errorf("ConfigMaps settings and other on m1: %s", diff)
	}
}

func TestDependenciesTravel(t *testing.T) {
	w := newWorld(t)
	w.put("ConfigMap", "settings", "one")
	w.put("ConfigMap", "other", "two")
	w.put("Secret", "key", secretContent)
	w.create(referTo("settings"))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.wantSent("one", "")
	revision := w.get().Status.Revision

	w.put("ConfigMap", "settings", "three")
	w.settle()
	w.wantSent("three", "")
	if got := w.get().Status.Revision; got != revision {
		t.Errorf("the revision changed with a content: %s, %s", revision, got)
	}
	w.edit(func(fw *v1alpha1.FleetWorkload) { referTo("other")(&fw.Spec) })
	w.backend.LimitReady("m1", 0)
	w.settle()
	w.wantSent("three", "two") // old pods run
	w.backend.LimitReady("m1", -1)
	w.settle()
	w.wantSent("", "two")
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.sources.refs[key]; !cmp.Equal(got, []sources.Ref{ref("ConfigMap", "other"), ref("Secret", "key")}) {
		t.Errorf("looked at again for %v", got)
	}
}

func TestWhatIsMissingHoldsOnlyWhatNeedsIt(t *testing.T) {
	w := newWorld(t)
	w.put("Secret", "key", secretContent)
	w.create(referTo("settings"))
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDependencyMissing,
		"ConfigMap settings", `namespace "shop"`, "m1, m2, m3", "Create what is missing")
	if got := w.members(); got != "-1 -1 -1" {
		t.Errorf("members run %s", got)
	}
	w.put("ConfigMap", "settings", "one")
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	w.put("ConfigMap", "settings", "")
	w.put("Secret", "key", "bmV3")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) })
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDependencyMissing)
	w.wantSent("one", "")
	if got := w.members(); got != "1 1 1" || w.sent("Secret", "key") != "bmV3" {
		t.Errorf("members run %s, the Secret is %q", got, w.sent("Secret", "key"))
	}
	w.put("ConfigMap", "settings", "two")
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.members(); got != "3 3 3" {
		t.Errorf("members run %s", got)
	}
}

func TestWhatWasSentStaysWhenDependenciesAreIgnored(t *testing.T) {
	w := newWorld(t)
	w.put("ConfigMap", "settings", "one")
	w.put("Secret", "key", secretContent)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		referTo("settings")(s)
		s.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"},"data":{"value":"own"}}`)}}
	})
	w.settle()
	w.wantSent("one", "own")
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Dependencies, fw.Spec.Companions = v1alpha1.DependencyPolicyIgnore, nil
	})
	w.put("ConfigMap", "settings", "two")
	w.settle()
	w.wantSent("one", "")
	if err := w.client.Delete(context.Background(), w.get()); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.backend.Step()
	}
	w.wantSent("", "")
}

func TestSuspendFreezesCompanions(t *testing.T) {
	w := newWorld(t)
	w.put("ConfigMap", "settings", "one")
	w.put("Secret", "key", secretContent)
	w.create(referTo("settings"))
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Suspend = ptr(true)
		referTo("other")(&fw.Spec)
	})
	w.put("ConfigMap", "settings", "two")
	w.settle()
	w.wantSent("one", "")
}

// TestWhatMayNotBeReadIsExplained, whether the API server says so to whoever asks, or a cache has found out.
func TestWhatMayNotBeReadIsExplained(t *testing.T) {
	for name, err := range map[string]error{
		"asked": apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no")),
		"cache": &backends.Error{Code: backends.CodeForbidden, Message: "watch configmaps", Err: errors.New("no"), Remedy: "grant it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sources.err = err
			w.create(referTo("settings"))
			for range 10 {
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				w.backend.Step()
			}
			w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDependencyForbidden, "configmaps", "leaveOut")
			if result, err := w.reconcile(); err != nil || result.RequeueAfter != pass.RetryInterval {
				t.Errorf("got %+v, %v", result, err)
			}
			w.sources.err = nil
			w.LeaveOut = []string{"ConfigMap", "Secret"}
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		})
	}
}

func TestNothingToldQuotesASecret(t *testing.T) {
	w := newWorld(t)
	w.put("ConfigMap", "settings", "one")
	w.put("Secret", "key", secretContent)
	w.create(referTo("settings"))
	// Somebody else's Secret is in the way on one cluster.
	theirs := w.sources.objects[ref("Secret", "key")].DeepCopy()
	if err := w.backend.Member("m2").Create(context.Background(), theirs); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "Secret key on m2 is not the operator's")
	status, err := json.Marshal(w.get().Status)
	if err != nil {
		t.Fatal(err)
	}
	told := string(status)
	recorder, _ := w.Recorder.(*events.FakeRecorder)
	for len(recorder.Events) > 0 {
		told += <-recorder.Events
	}
	if strings.Contains(told, secretContent) {
		t.Errorf("a Secret is quoted: %s", told)
	}
}
