package karmada

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	events "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-io/karmada/pkg/util/overridemanager"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// TestKarmadaRendersTheTargetManifests gives the rendered objects to Karmada's own override manager, the way its binding
// controller does: the template with the scheduler's replicas in, the target manifest out.
func TestKarmadaRendersTheTargetManifests(t *testing.T) {
	edits := map[string]func(*unstructured.Unstructured){
		"nothing": func(*unstructured.Unstructured) {},
		"an added label with a slash": func(o *unstructured.Unstructured) {
			labels := o.GetLabels()
			labels["example.com/a~b"] = "x"
			o.SetLabels(labels)
		},
		"a removed zero value": func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "paused") },
		"a changed zero value": func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, true, "spec", "paused") },
		"a new map": func(o *unstructured.Unstructured) {
			set(o, map[string]any{"type": "InPlaceIfPossible"}, "spec", "updateStrategy")
		},
		"a longer list": func(o *unstructured.Unstructured) {
			set(o, []any{map[string]any{"name": "main", "image": "other:1"}, map[string]any{"name": "side", "image": "s:1"}},
				"spec", "template", "spec", "containers")
		},
		"an image": func(o *unstructured.Unstructured) {
			set(o, []any{map[string]any{"name": "main", "image": "other:2",
				"env": []any{map[string]any{"name": "GREETING", "value": ""}}}}, "spec", "template", "spec", "containers")
		},
		"a removed map": func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "labels")
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			for _, division := range []v1alpha1.DivisionType{v1alpha1.DivisionTypeDuplicated, v1alpha1.DivisionTypeDivided} {
				d := desiredFor("r1", "pause:1", division, share{cluster: "m1", replicas: 4, greeting: "hola"},
					share{cluster: "m2", replicas: 0}, share{cluster: "m3", replicas: 4})
				for i := range d.Targets {
					if d.Targets[i].Cluster != "m3" {
						edit(d.Targets[i].Manifest)
					}
				}
				for _, target := range d.Targets {
					got := asKarmada(t, mustRender(t, d), target.Cluster, func(*unstructured.Unstructured) {})
					if diff := cmp.Diff(target.Manifest.Object, got.Object); diff != "" {
						t.Errorf("%s %s (-target +rendered by Karmada):\n%s", division, target.Cluster, diff)
					}
				}
			}
		})
	}
}

// TestOverridesHoldForDefaultedTemplates does the same with a built-in kind that has gone through its Go type, which
// drops zero values and adds others.
func TestOverridesHoldForDefaultedTemplates(t *testing.T) {
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, share{cluster: "m1", replicas: 4, greeting: "hola"},
		share{cluster: "m2", replicas: 1})
	d.Workload.GVK = appsv1.SchemeGroupVersion.WithKind("Deployment")
	for _, o := range []*unstructured.Unstructured{d.Template, d.Targets[0].Manifest, d.Targets[1].Manifest} {
		o.SetAPIVersion("apps/v1")
		o.SetKind("Deployment")
	}
	unstructured.RemoveNestedField(d.Targets[0].Manifest.Object, "spec", "paused")
	set(d.Targets[1].Manifest, true, "spec", "paused")
	set(d.Template, "", "spec", "template", "spec", "hostname")
	for _, target := range d.Targets {
		got := asKarmada(t, mustRender(t, d), target.Cluster, throughType)
		if want := withoutLost(target.Manifest.Object, got.Object); !ssa.Contains(got.Object, want) {
			t.Errorf("%s:\n%s", target.Cluster, cmp.Diff(want, got.Object))
		}
	}
}

// TestAnotherTypeLosesTheOldOnesDefaults: an API server refuses a Deployment of type Recreate with what it has filled in
// for RollingUpdate.
func TestAnotherTypeLosesTheOldOnesDefaults(t *testing.T) {
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2})
	set(d.Template, "RollingUpdate", "spec", "strategy", "type")
	set(d.Targets[0].Manifest, "Recreate", "spec", "strategy", "type")
	got := asKarmada(t, mustRender(t, d), "m1", func(o *unstructured.Unstructured) {
		set(o, map[string]any{"maxSurge": "25%"}, "spec", "strategy", "rollingUpdate")
	})
	if diff := cmp.Diff(d.Targets[0].Manifest.Object, got.Object); diff != "" {
		t.Errorf("(-target +rendered by Karmada):\n%s", diff)
	}
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(o.Object, value, path...)
}

// throughType makes of a built-in kind's object what an API server keeps of it.
func throughType(o *unstructured.Unstructured) {
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		panic(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		panic(err)
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(err)
	}
	o.Object = out
}

// asKarmada renders one cluster's manifest with Karmada's code.
func asKarmada(t *testing.T, r *rendered, cluster string, stored func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	manifest := r.template.DeepCopy()
	stored(manifest)
	placement, err := policyPlacement(r.policy)
	if err != nil {
		t.Fatal(err)
	}
	replicas := simulateScheduler(&placement, int32(*r.total))[cluster]
	set(manifest, int64(replicas), "spec", "replicas")
	var override *unstructured.Unstructured
	if r.needsOverride {
		override = r.override
	}
	if _, err := overrideWith(override, cluster, manifest); err != nil {
		t.Fatalf("%s: %v", cluster, err)
	}
	return manifest
}

// overrideWith changes the manifest as Karmada's override manager does for one cluster, and returns the record of it that
// Karmada puts on the Work. override may be nil.
func overrideWith(override *unstructured.Unstructured, cluster string, manifest *unstructured.Unstructured) (record string, err error) {
	manager := overridemanager.New(policyReader{override: override}, &events.FakeRecorder{})
	wide, namespaced, err := manager.ApplyOverridePolicies(manifest, cluster)
	if err != nil {
		return "", err
	}
	for _, applied := range []*overridemanager.AppliedOverrides{wide, namespaced} {
		if applied == nil {
			continue
		}
		raw, err := applied.MarshalJSON()
		if err != nil {
			return "", err
		}
		record += string(raw)
	}
	return record, nil
}

// policyReader answers what the override manager asks: for one cluster, and for all policies, of which there is one.
type policyReader struct {
	client.Client
	override *unstructured.Unstructured
}

func (c policyReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetName(key.Name)
	return nil
}

func (c policyReader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	if c.override == nil || options.Namespace != c.override.GetNamespace() {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"items": []any{c.override.Object}})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, list)
}

// TestKarmadaDividesAsAsked gives our weights to Karmada's own division.
func TestKarmadaDividesAsAsked(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		var shares []share
		for i := range 1 + r.IntN(12) {
			shares = append(shares, share{cluster: string(rune('a' + i)), replicas: int32(r.IntN(1 + r.IntN(300)))})
		}
		want := mustRender(t, desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, shares...))
		placement, err := policyPlacement(want.policy)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.replicas, simulateScheduler(&placement, int32(*want.total))); diff != "" {
			t.Fatalf("%v (-want +Karmada):\n%s", shares, diff)
		}
	}
}

// TestAnUnequalDuplicationIsDivided: the numbers are what counts.
func TestAnUnequalDuplicationIsDivided(t *testing.T) {
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 3}, share{cluster: "m2", replicas: 2})
	want := mustRender(t, d)
	if *want.total != 5 || want.replicas["m1"] != 3 || want.replicas["m2"] != 2 {
		t.Errorf("total %d, replicas %v", *want.total, want.replicas)
	}
}
