package ssa

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const created = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: space, labels: {ours: "1"}, annotations: {held: "true"}}
data: {a: "1", b: "2"}
`

const later = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: space, labels: {ours: "1"}}
data: {a: "3"}
`

const theirs = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: space, annotations: {theirs: "1"}}
data: {c: "1"}
`

// What was created, patched or applied and is no longer wanted goes, and nothing of others does.
func TestPatch(t *testing.T) {
	for name, write := range map[string]func(c client.Client, live *unstructured.Unstructured) error{
		"created": func(client.Client, *unstructured.Unstructured) error { return nil },
		"patched": func(c client.Client, live *unstructured.Unstructured) error {
			_, err := Patch(t.Context(), c, live, object(t, created))
			return err
		},
		"applied": func(c client.Client, _ *unstructured.Unstructured) error {
			_, err := Send(t.Context(), c, object(t, created))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			c := fake.NewClientBuilder().WithReturnManagedFields().Build()
			read := func() *unstructured.Unstructured {
				live := object(t, later)
				if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
					t.Fatal(err)
				}
				return live
			}
			if _, err := Create(ctx, c, object(t, created)); err != nil {
				t.Fatal(err)
			}
			others := client.ApplyConfigurationFromUnstructured(object(t, theirs))
			if err := c.Apply(ctx, others, client.FieldOwner("somebody")); err != nil {
				t.Fatal(err)
			}
			if err := write(c, read()); err != nil {
				t.Fatal(err)
			}
			if _, err := Patch(ctx, c, read(), object(t, later)); err != nil {
				t.Fatal(err)
			}
			live := read()
			data, _, _ := unstructured.NestedStringMap(live.Object, "data")
			if want := map[string]string{"a": "3", "c": "1"}; !maps.Equal(data, want) {
				t.Errorf("data is %v, want %v", data, want)
			}
			if want := map[string]string{"theirs": "1"}; !maps.Equal(live.GetAnnotations(), want) {
				t.Errorf("annotations are %v, want %v", live.GetAnnotations(), want)
			}
		})
	}
}

// A patch on evidence fails when the object has changed since.
func TestPatchOnEvidence(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if _, err := Create(t.Context(), c, object(t, created)); err != nil {
		t.Fatal(err)
	}
	desired := object(t, later)
	desired.SetResourceVersion("12345")
	if _, err := Patch(t.Context(), c, object(t, created), desired); !apierrors.IsConflict(err) {
		t.Errorf("error is %v", err)
	}
}

func TestCreateWhatIsThere(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if _, err := Create(t.Context(), c, object(t, later)); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), c, object(t, created)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error is %v", err)
	}
}

// TestPatchTakesAnObjectOut: what was ours altogether leaves no empty object behind, and what somebody has a part in stays with that part.
func TestPatchTakesAnObjectOut(t *testing.T) {
	const (
		with = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: space}
spec: {securityContext: {seLinuxOptions: {user: a, role: b}, runAsUser: 1}, nodeName: node-1}
`
		without = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: space}
spec: {nodeName: node-1}
`
		theirs = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: space}
spec: {securityContext: {runAsGroup: 2}}
`
	)
	for other, want := range map[string]any{without: nil, theirs: map[string]any{"runAsGroup": int64(2)}} {
		c := fake.NewClientBuilder().WithReturnManagedFields().Build()
		if _, err := Create(t.Context(), c, object(t, with)); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object(t, other)), client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		live := object(t, with)
		read := func() {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				t.Fatal(err)
			}
		}
		read()
		if _, err := Patch(t.Context(), c, live, object(t, without)); err != nil {
			t.Fatal(err)
		}
		read()
		spec, _ := live.Object["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec["securityContext"]); diff != "" {
			t.Errorf("securityContext (-want +got):\n%s", diff)
		}
	}
}
