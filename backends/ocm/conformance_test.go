//go:build e2e

package ocm_test

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

var (
	labOptions      = ocm.Options{ClusterSets: []string{"global"}}
	manifestWorkGVK = schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"}
	placementGVK    = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "Placement"}
)

// patience is how long anything may take: the machine may be busy with other tests.
const patience = 3 * time.Minute

// TestConformance holds the driver to the contract on the real test fleet, which must be up (make lab-up).
func TestConformance(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	backendtest.Unprotect(t, f.hub)
	env := backendtest.Environment{
		NewDriver: func(t *testing.T, gate backendtest.Gate) backends.Driver {
			t.Helper()
			config := f.config(t, lab.Hub)
			config.Wrap(backendtest.Transport(gate))
			if os.Getenv("LOG_WRITES") != "" {
				config.Wrap(func(next http.RoundTripper) http.RoundTripper { return logged{t, next} })
			}
			driver, err := ocm.New(config, labOptions)
			if err != nil {
				t.Fatal(err)
			}
			return driver
		},
		Namespace: f.namespace,
		Member:    func(cluster string) backendtest.Store { return backendtest.ClientStore(f.clients[cluster]) },
		Backend:   backendtest.ClientStore(f.hub),
		Owned:     f.owned,
		Foreign: func(desired backends.Desired) *unstructured.Unstructured {
			return f.foreignWork(t, desired)
		},
		Rival: f.putByAnother,
		InvalidOptions: &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{
			Placement: &runtime.RawExtension{Raw: []byte(`{"predicates": []}`)},
		}},
		Seed: os.Getenv("TEST_SEED"), Timeout: patience, Poll: 200 * time.Millisecond, Quiet: 5 * time.Second,
	}
	for _, member := range f.lab.Members()[:3] {
		cluster := backends.Cluster{
			Name: member.OCMName, Labels: member.Labels, Identity: f.identity(t, member.OCMName),
			Attributes: map[v1alpha1.Attribute]string{
				v1alpha1.AttributeProvider: member.Provider, v1alpha1.AttributeRegion: member.Region,
				v1alpha1.AttributeZone: member.Zone,
			},
		}
		env.Clusters = append(env.Clusters, cluster)
	}
	// The suite tells clusters apart by the first one's attributes and labels.
	env.Clusters[0], env.Clusters[2] = env.Clusters[2], env.Clusters[0]
	backendtest.Run(t, env)
}

// putByAnother makes the object one that the agent of another hub has applied.
func (f *fleet) putByAnother(t *testing.T, cluster string, obj *unstructured.Unstructured) {
	t.Helper()
	applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"hubHash": "another-hub", "agentID": "another-agent", "manifestWorkName": obj.GetName(),
	}}}
	applied.SetAPIVersion("work.open-cluster-management.io/v1")
	applied.SetKind("AppliedManifestWork")
	applied.SetGenerateName("another-hub-")
	if err := f.clients[cluster].Create(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.clients[cluster].Delete(context.Background(), applied) })
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: applied.GetAPIVersion(), Kind: applied.GetKind(), Name: applied.GetName(), UID: applied.GetUID(),
	}})
}

// logged writes every request that changes something to the test's log.
type logged struct {
	t    *testing.T
	next http.RoundTripper
}

func (l logged) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		body := ""
		if req.GetBody != nil {
			if r, err := req.GetBody(); err == nil {
				data, _ := io.ReadAll(r)
				body = string(data)
			}
		}
		l.t.Logf("%s %s %s %s", time.Now().Format("05.000"), req.Method, req.URL.Path, body)
	}
	return l.next.RoundTrip(req)
}

// fleet is the running test fleet with a client for each control plane, by OCM's names.
type fleet struct {
	lab     *lab.Fleet
	hub     client.WithWatch
	clients map[string]client.WithWatch
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	dir := os.Getenv("LAB_DIR")
	if dir == "" {
		dir = "../../.lab"
	}
	running, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{lab: running, clients: map[string]client.WithWatch{}}
	f.hub = f.client(t, lab.Hub)
	for _, member := range running.Members() {
		f.clients[member.OCMName] = f.client(t, member.Name)
	}
	return f
}

func (f *fleet) config(t *testing.T, name string) *rest.Config {
	t.Helper()
	config, err := f.lab.RESTConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	return config
}

func (f *fleet) client(t *testing.T, name string) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(f.config(t, name), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fleet) identity(t *testing.T, cluster string) string {
	t.Helper()
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := f.clients[cluster].Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, ns); err != nil {
		t.Fatal(err)
	}
	return string(ns.UID)
}

// namespace makes a namespace on the hub and on every member.
func (f *fleet) namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("odrv-%08x", rand.Uint32())
	everywhere := []client.WithWatch{f.hub}
	for _, c := range f.clients {
		everywhere = append(everywhere, c)
	}
	for _, c := range everywhere {
		ns := &unstructured.Unstructured{}
		ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		ns.SetName(name)
		if err := c.Create(t.Context(), ns.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if lab.Temporary() {
			continue
		}
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(t.Context()), ns); err != nil && !apierrors.IsNotFound(err) {
				t.Logf("delete namespace %s: %v", name, err)
			}
		})
	}
	return name
}

func (f *fleet) owned(ctx context.Context, query backends.Query) ([]*unstructured.Unstructured, error) {
	var owned []*unstructured.Unstructured
	for _, gvk := range []schema.GroupVersionKind{manifestWorkGVK, placementGVK} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := f.hub.List(ctx, list, client.MatchingLabels{v1alpha1.LabelUID: string(query.Key.UID)}); err != nil {
			return nil, err
		}
		for i := range list.Items {
			owned = append(owned, &list.Items[i])
		}
	}
	return owned, nil
}

// foreignWork is a ManifestWork of the name that the driver would use, with a ConfigMap in it.
func (f *fleet) foreignWork(t *testing.T, desired backends.Desired) *unstructured.Unstructured {
	t.Helper()
	objects, err := ocm.Render(desired, labOptions)
	if err != nil {
		t.Fatal(err)
	}
	foreign := objects[len(objects)-1]
	foreign.SetLabels(nil)
	foreign.SetAnnotations(nil)
	foreign.Object["spec"] = map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "foreign", "namespace": desired.Key.Namespace},
	}}}}
	t.Cleanup(func() {
		if err := f.hub.Delete(context.WithoutCancel(t.Context()), foreign); err != nil && !apierrors.IsNotFound(err) {
			t.Logf("delete the foreign ManifestWork: %v", err)
		}
	})
	return foreign
}
