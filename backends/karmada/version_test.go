//go:build e2e

package karmada

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestAnotherVersion has a kind get a second version while a workload of it runs, as OpenKruise 1.9 did with SidecarSet: the members first, and
// then Karmada, which from then on propagates the new one alone.
func TestAnotherVersion(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	kind := "Part" + strings.ReplaceAll(l.namespace[len(l.namespace)-4:], "-", "x")
	definition := func(versions ...string) *unstructured.Unstructured {
		plural := strings.ToLower(kind) + "s"
		var all []any
		for i, version := range versions {
			all = append(all, map[string]any{
				"name": version, "served": true, "storage": i == 0, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			})
		}
		crd := reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+".kdrv.example.com")
		crd.Object["spec"] = map[string]any{
			"group": "kdrv.example.com", "scope": "Namespaced", "versions": all,
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
		}
		return crd
	}
	everywhere := []client.Client{l.members["member1"], l.members["member2"], l.backend}
	for _, c := range everywhere {
		create(t, c, definition("v1alpha1"))
		t.Cleanup(func() { _ = c.Delete(context.Background(), definition("v1alpha1")) })
	}
	parts := func(version, revision, image string) backends.Desired {
		d := l.desired(revision, image, v1alpha1.DivisionTypeDuplicated, share{cluster: "member1"}, share{cluster: "member2"})
		d.Workload.GVK = schema.GroupVersionKind{Group: "kdrv.example.com", Version: version, Kind: kind}
		d.Workload.Resource, d.Workload.ReplicasPath, d.Workload.Feedback = strings.ToLower(kind)+"s", nil, nil
		for i := range d.Targets {
			d.Targets[i].Replicas = nil
		}
		for _, o := range append([]*unstructured.Unstructured{d.Template}, manifests(d)...) {
			o.SetAPIVersion("kdrv.example.com/" + version)
			o.SetKind(kind)
			unstructured.RemoveNestedField(o.Object, "spec", "replicas")
		}
		return d
	}
	first := parts("v1alpha1", "r1", "pause:1")
	l.until("the kind is known", func() string {
		if _, err := l.driver.Apply(t.Context(), first); err != nil {
			return err.Error()
		}
		o, err := l.driver.Observe(t.Context(), first.Query)
		if err != nil {
			return err.Error()
		}
		if c := reportOf(o, "member2"); c.Applied != metav1.ConditionTrue {
			return "not applied: " + c.Message
		}
		return ""
	})
	l.apply("the first version", first)
	on := func(cluster string) *unstructured.Unstructured {
		t.Helper()
		obj := reference("kdrv.example.com/v1alpha1", kind, l.namespace, testName)
		if err := l.members[cluster].Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	uid := on("member1").GetUID()

	for _, c := range everywhere {
		upgraded := definition("v1alpha1", "v1beta1")
		found := definition("v1alpha1")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			t.Fatal(err)
		}
		upgraded.SetResourceVersion(found.GetResourceVersion())
		if err := c.Update(t.Context(), upgraded); err != nil {
			t.Fatal(err)
		}
	}
	l.apply("what runs is left alone", first)
	l.until("the old version is refused in a change", func() string {
		_ = l.driver.kinds.look(first.Workload.GVK) // as it does each few minutes
		_, err := l.driver.Apply(t.Context(), parts("v1alpha1", "r2", "pause:2"))
		if err == nil || !strings.Contains(err.Error(), "write apiVersion: kdrv.example.com/v1beta1") {
			return "not refused"
		}
		return ""
	})
	l.apply("the new version is taken", parts("v1beta1", "r2", "pause:2"))
	for _, cluster := range []string{"member1", "member2"} {
		l.until(cluster+" has it", func() string {
			if got := what(on(cluster)); !strings.HasPrefix(got, "pause:2") {
				return got
			}
			return ""
		})
	}
	if got := on("member1"); got.GetUID() != uid || got.GetGeneration() != 2 {
		t.Errorf("it was made anew or written more than once: %s, generation %d", got.GetUID(), got.GetGeneration())
	}
	l.delete("deleted", parts("v1beta1", "r2", "pause:2"), v1alpha1.DeletionPolicyDelete)
}
