//go:build e2e

package karmada

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-io/karmada/pkg/util/names"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// TestConformance holds the driver to the contract on the test fleet that `make lab-up` left running. LAB_DIR names
// another folder than .lab.
func TestConformance(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, environment(t))
}

func openLab(t *testing.T) *lab.Fleet {
	t.Helper()
	dir := os.Getenv("LAB_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", ".lab")
	}
	fleet, err := lab.Open(dir)
	if err != nil {
		t.Fatalf("no test fleet: %v", err)
	}
	return fleet
}

func labClient(t *testing.T, fleet *lab.Fleet, name string) client.WithWatch {
	t.Helper()
	cfg, err := fleet.RESTConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	c, err := client.NewWithWatch(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func environment(t *testing.T) backendtest.Environment {
	t.Helper()
	fleet := openLab(t)
	backend := labClient(t, fleet, lab.Karmada)
	backendtest.Unprotect(t, backend)
	members := map[string]client.WithWatch{}
	for _, m := range fleet.Members() {
		members[m.KarmadaName] = labClient(t, fleet, m.Name)
	}
	env := backendtest.Environment{
		NewDriver: func(t *testing.T, gate backendtest.Gate) backends.Driver {
			t.Helper()
			cfg, err := fleet.RESTConfig(lab.Karmada)
			if err != nil {
				t.Fatal(err)
			}
			d, err := New(wrapped(cfg, gate), Options{Interpreter: interpreterOf})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Namespace: func(t *testing.T) string {
			t.Helper()
			return newNamespace(t, backend, members)
		},
		Member:  func(name string) backendtest.Store { return backendtest.ClientStore(members[name]) },
		Backend: backendtest.ClientStore(backend),
		Owned: func(ctx context.Context, q backends.Query) ([]*unstructured.Unstructured, error) {
			return owned(ctx, backend, q)
		},
		Foreign: func(d backends.Desired) *unstructured.Unstructured {
			foreign := d.Template.DeepCopy()
			foreign.SetLabels(map[string]string{"app": "theirs"})
			foreign.SetAnnotations(nil)
			return foreign
		},
		// Karmada propagates the version that its API server prefers.
		Version: func(t *testing.T, kind schema.GroupKind) string {
			t.Helper()
			mapping, err := backend.RESTMapper().RESTMapping(kind)
			if meta.IsNoMatchError(err) {
				return ""
			}
			if err != nil {
				t.Fatal(err)
			}
			return mapping.GroupVersionKind.Version
		},
		Rival: func(_ *testing.T, cluster string, obj *unstructured.Unstructured) { putByAnother(cluster, obj) },
		OwnershipMarks: []string{
			"karmada.io/managed", "work.karmada.io/permanent-id", "resourcebinding.karmada.io/permanent-id",
			"propagationpolicy.karmada.io/permanent-id", "work.karmada.io/name", "work.karmada.io/namespace",
			"resourcebinding.karmada.io/name", "propagationpolicy.karmada.io/name", "resourcetemplate.karmada.io/uid",
		},
		InvalidOptions: &v1alpha1.BackendOptions{Karmada: &v1alpha1.KarmadaOptions{
			PropagationPolicy: &runtime.RawExtension{Raw: []byte(`{"schedulePriority": "high"}`)},
		}},
		Seed: os.Getenv("TEST_SEED"), Timeout: patience, Poll: 100 * time.Millisecond, Quiet: 5 * time.Second,
	}
	for _, m := range fleet.Members()[:3] {
		env.Clusters = append(env.Clusters, backends.Cluster{
			Name: m.KarmadaName, Labels: m.Labels, Identity: identity(t, members[m.KarmadaName]),
			Attributes: map[v1alpha1.Attribute]string{
				v1alpha1.AttributeProvider: m.Provider, v1alpha1.AttributeRegion: m.Region, v1alpha1.AttributeZone: m.Zone,
			},
		})
	}
	return env
}

// putByAnother gives the object all that another Karmada would have put on it, where the cluster has the same name there: the names of the
// Work are the same, too.
func putByAnother(cluster string, obj *unstructured.Unstructured) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		managedLabel: "true", "work.karmada.io/permanent-id": "0b1c-w", "resourcebinding.karmada.io/permanent-id": "0b1c-b",
		"propagationpolicy.karmada.io/permanent-id": "0b1c-p",
	})
	maps.Copy(annotations, map[string]string{
		"work.karmada.io/namespace": executionPrefix + cluster, "work.karmada.io/conflict-resolution": abort,
		"work.karmada.io/name":                       names.GenerateWorkName(obj.GetKind(), obj.GetName(), obj.GetNamespace()),
		"resourcebinding.karmada.io/name":            names.GenerateBindingName(obj.GetKind(), obj.GetName()),
		"resourcebinding.karmada.io/namespace":       obj.GetNamespace(),
		"propagationpolicy.karmada.io/name":          "theirs",
		"propagationpolicy.karmada.io/namespace":     obj.GetNamespace(),
		"resourcetemplate.karmada.io/uid":            "0b1c-t",
		"resourcetemplate.karmada.io/generation":     "1",
		"resourcetemplate.karmada.io/managed-labels": strings.Join(slices.Sorted(maps.Keys(labels)), ","),
	})
	annotations["resourcetemplate.karmada.io/managed-annotations"] = strings.Join(append(slices.Sorted(maps.Keys(annotations)), "resourcetemplate.karmada.io/managed-annotations"), ",")
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

func wrapped(cfg *rest.Config, gate backendtest.Gate) *rest.Config {
	cfg.QPS = -1
	cfg.Wrap(backendtest.Transport(gate))
	return cfg
}

func identity(t *testing.T, c client.Client) string {
	t.Helper()
	var namespace corev1.Namespace
	if err := c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		t.Fatal(err)
	}
	return string(namespace.UID)
}

var namespaces atomic.Int64

// newNamespace creates a namespace on Karmada, which creates it on the members.
func newNamespace(t *testing.T, backend client.Client, members map[string]client.WithWatch) string {
	t.Helper()
	name := fmt.Sprintf("kdrv-%d-%d", time.Now().Unix()%100000, namespaces.Add(1))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := backend.Create(t.Context(), ns.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if !lab.Temporary() {
		t.Cleanup(func() { _ = backend.Delete(context.Background(), ns.DeepCopy()) })
	}
	deadline := time.Now().Add(patience)
	for cluster, member := range members {
		for {
			err := member.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
			if err == nil {
				break
			}
			if !apierrors.IsNotFound(err) || time.Now().After(deadline) {
				t.Fatalf("namespace %s on %s: %v", name, cluster, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return name
}

// owned lists policies, template, binding and Works of a workload.
func owned(ctx context.Context, c client.Client, q backends.Query) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, gvk := range []schema.GroupVersionKind{scopeOf(q.Workload).policy, scopeOf(q.Workload).override, q.Workload.GVK} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := c.List(ctx, list, client.InNamespace(q.Workload.Namespace),
			client.MatchingLabels{v1alpha1.LabelUID: string(q.Key.UID)})
		if err != nil && !apierrors.IsNotFound(err) && !isNoMatch(err) {
			return nil, err
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	w := q.Workload
	binding := scopeOf(w).binding
	for gvk, only := range map[schema.GroupVersionKind]client.ListOption{
		binding: client.InNamespace(w.Namespace),
		{Group: binding.Group, Version: "v1alpha1", Kind: "Work"}: client.MatchingFields{
			metav1.ObjectNameField: names.GenerateWorkName(w.GVK.Kind, w.Name, w.Namespace)},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list, only); err != nil {
			return nil, err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			ours := obj.GetLabels()[v1alpha1.LabelUID] == string(q.Key.UID)
			if ours || client.ObjectKeyFromObject(obj) == bindingOf(w) || bindingOfWork(obj) == bindingOf(w) {
				found = append(found, obj)
			}
		}
	}
	return found, nil
}

func isNoMatch(err error) bool { return strings.Contains(err.Error(), "no matches for kind") }
