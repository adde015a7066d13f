package sources

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/refused"
)

// before shows of every object the metadata that it once had.
type before struct{ cache.Cache }

func (before) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	obj.SetUID("uid-1")
	obj.SetResourceVersion("1")
	return nil
}

type status int

// RoundTrip implements http.RoundTripper.
func (s status) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(s), Body: http.NoBody}, nil
}

// TestACacheThatMayNotWatchIsNotBelieved: it shows what it had. What is refused of one kind is nothing to the others.
func TestACacheThatMayNotWatchIsNotBelieved(t *testing.T) {
	configMap, secret := corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret")
	name := types.NamespacedName{Namespace: "shop", Name: "settings"}
	kinds, known := meta.NewDefaultRESTMapper(nil), map[Ref]*unstructured.Unstructured{}
	for _, kind := range []schema.GroupVersionKind{configMap, secret} {
		kinds.Add(kind, meta.RESTScopeNamespace)
		known[Ref{kind, name}] = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "uid-1", "resourceVersion": "1"}}}
	}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r := &Reader{
		metadata: before{}, live: fake.NewClientBuilder().WithRESTMapper(kinds).Build(), contents: known,
		refused: refused.Reads{Remedy: refused.OnManagement, Clock: clock}, watched: map[schema.GroupVersionKind]bool{configMap: true, secret: true},
	}
	watch := func(code int) {
		t.Helper()
		clock.SetTime(clock.Now().Add(time.Minute))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://management/api/v1/configmaps?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.refused.Client(&http.Client{Transport: status(code)}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	shown := func(kind schema.GroupVersionKind) {
		t.Helper()
		if obj, err := r.Get(t.Context(), Ref{kind, name}); err != nil || obj == nil {
			t.Errorf("%s: %v, %v", kind.Kind, obj, err)
		}
	}
	shown(configMap)
	watch(http.StatusForbidden)
	shown(configMap) // the API server may have just started
	watch(http.StatusForbidden)
	obj, err := r.Get(t.Context(), Ref{configMap, name})
	if obj != nil || backends.CodeOf(err) != backends.CodeForbidden || !strings.Contains(err.Error(), "watch configmaps:") ||
		!strings.Contains(err.Error(), "config/rbac/management") {
		t.Errorf("while it may not watch ConfigMaps: %v, %v", obj, err)
	}
	shown(secret)
	watch(http.StatusOK)
	shown(configMap)
}

// TestWhatHasChangedIsReadAnew: what is in memory is returned for as long as the cache shows the same version, and no longer.
func TestWhatHasChangedIsReadAnew(t *testing.T) {
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	now := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"colour": "blue"}}
	ref := Ref{configMap, client.ObjectKeyFromObject(now)}
	r := &Reader{
		metadata: before{}, live: fake.NewClientBuilder().WithObjects(now).Build(), watched: map[schema.GroupVersionKind]bool{configMap: true},
		contents: map[Ref]*unstructured.Unstructured{ref: {Object: map[string]any{"metadata": map[string]any{"uid": "uid-1", "resourceVersion": "0"}}}},
	}
	obj, err := r.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if colour, _, _ := unstructured.NestedString(obj.Object, "data", "colour"); colour != "blue" {
		t.Errorf("it returns %v", obj)
	}
}
