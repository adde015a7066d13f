package ocm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/backends"
)

// TestAnOversizedManifestIsSentOnce: what the hub refuses for its size is not sent for every cluster; smaller ones are.
func TestAnOversizedManifestIsSentOnce(t *testing.T) {
	sent := 0
	hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			sent++
			if size := manifestSize(obj.(*unstructured.Unstructured)); size > 1000 {
				return tooLarge(size)
			}
			return nil
		},
	})
	d := &Driver{hub: hub}
	create := func(cluster string, bytes int) error {
		work := newObject(manifestWorkGVK, cluster, "w")
		work.Object["spec"] = map[string]any{"workload": map[string]any{"manifests": []any{
			map[string]any{"data": strings.Repeat("x", bytes)},
		}}}
		return d.createWork(t.Context(), work, backends.Key{})
	}
	for i := range 100 {
		err := create(fmt.Sprint("m", i), 2000)
		if backends.CodeOf(err) != backends.CodeRejected || !strings.Contains(err.Error(), "make the template smaller") || !errors.As(err, new(tooLarge)) {
			t.Fatalf("m%d: %v", i, err)
		}
	}
	if sent != 1 {
		t.Errorf("it was sent %d times", sent)
	}
	if err := create("m0", 100); err != nil || sent != 2 {
		t.Errorf("a smaller one: %v, sent %d times", err, sent)
	}
	if err := create("m0", 1500); err == nil || sent != 3 {
		t.Errorf("one that may fit: %v, sent %d times", err, sent)
	}
	if err := create("m0", 1600); err == nil || sent != 3 {
		t.Errorf("one that is larger than that: %v, sent %d times", err, sent)
	}
}
