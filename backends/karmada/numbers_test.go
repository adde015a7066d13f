package karmada

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/randomspec"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// TestNumbersReachTheMember: each number of a template, a companion and a patch is as it was written after Karmada's own overriding.
func TestNumbersReachTheMember(t *testing.T) {
	first := randomspec.First(t)
	for seed := first; seed < first+300; seed++ {
		n := randomspec.NewNumbers(seed, "apps/v1", "Deployment")
		d, err := n.Desired()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		demand := func(what string, want []byte, obj map[string]any, path ...string) {
			t.Helper()
			got, found, err := unstructured.NestedFieldNoCopy(obj, path...)
			if err != nil || !found {
				t.Fatalf("seed %d: %s has no %v: %v", seed, what, path, err)
			}
			if diff := randomspec.DifferentNumbers(want, got); diff != "" {
				t.Fatalf("seed %d, %s: -want +got\n%s", seed, what, diff)
			}
		}
		r := mustRender(t, d)
		manifest := r.template.DeepCopy()
		if _, err := overrideWith(r.override, "m1", manifest); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		demand("the manifest for m1", n.Template, manifest.Object, "spec", "numbers")
		demand("the manifest for m1", n.Patched, manifest.Object, "spec", "patched")
		companionWork, err := renderCompanionWork(d.Key, "m1", d.Companions[0], false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		companion := map[string]any{}
		if err := utiljson.Unmarshal(companionWork.work.Spec.Workload.Manifests[0].Raw, &companion); err != nil {
			t.Fatal(err)
		}
		demand("the companion", n.Companion, companion, "numbers")
	}
}

// TestRecordsThatDifferInALargeNumber: the gate must not take an override that Karmada has carried out for another one.
func TestRecordsThatDifferInALargeNumber(t *testing.T) {
	rules := func(number int64) []any {
		return []any{rule([]string{"m1"}, jsondiff.Op{Op: jsondiff.OpAdd, Path: "/spec/x", Value: number})}
	}
	want, err := typedRules(rules(1700000000000000001))
	if err != nil {
		t.Fatal(err)
	}
	other, err := typedRules(rules(1700000000000000000))
	if err != nil {
		t.Fatal(err)
	}
	record := func(number int64) string {
		raw, err := json.Marshal([]any{map[string]any{"policyName": "p", "overriders": rules(number)[0].(map[string]any)["overriders"]}})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if !sameOverrides(record(1700000000000000001), "p", []policyv1alpha1.Overriders{want[0].Overriders}) {
		t.Error("the same record counts as another one")
	}
	if sameOverrides(record(1700000000000000001), "p", []policyv1alpha1.Overriders{other[0].Overriders}) {
		t.Error("another number counts as the same")
	}
}

// TestNumbersThatKarmadaWouldChange: its Lua calculates with floating point.
func TestNumbersThatKarmadaWouldChange(t *testing.T) {
	for _, test := range []struct {
		apiVersion, kind, template, patched, field string
	}{
		{"apps/v1", "Deployment", "1700000000000000001", "1", ""},
		{"apps.kruise.io/v1alpha1", "CloneSet", "9007199254740992", "0.1", ""},
		{"apps.kruise.io/v1alpha1", "CloneSet", `{"a":[1,-1700000000000000001]}`, "1", "spec.template"},
		{"apps.kruise.io/v1alpha1", "CloneSet", "1", "9007199254740993", "spec.overrides"},
		{"apps/v1", "StatefulSet", "1700000000000000001", "1", "spec.template"},
	} {
		n := randomspec.NewNumbers(0, test.apiVersion, test.kind)
		n.Template, n.Patched = []byte(test.template), []byte(test.patched)
		n.Write()
		d, err := n.Desired()
		if err != nil {
			t.Fatal(err)
		}
		_, err = render(d, currentState{})
		var refusal *backends.Error
		switch {
		case test.field == "" && err != nil:
			t.Errorf("%v: %v", test, err)
		case test.field != "" && (!errors.As(err, &refusal) || refusal.Field != test.field || refusal.Remedy == "" || refusal.Value == ""):
			t.Errorf("%v: got %v", test, err)
		}
	}
}
