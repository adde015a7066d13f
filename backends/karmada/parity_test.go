package karmada

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative/luavm"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/native"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/randomspec"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// paritySpecs is how many random FleetWorkloads are tried.
const paritySpecs = 1000

// TestEveryClusterGetsItsTargetManifest sends random FleetWorkloads all the way: the plan, our rendering, the admission
// of Karmada's API server, its replicas and its overrides. Each cluster's manifest is the plan's, whatever its spec.
func TestEveryClusterGetsItsTargetManifest(t *testing.T) {
	server, karmada := newAPIServer(t), newControllers(t)
	carried, clusters, typed := 0, 0, 0
	for seed := randomspec.First(t); carried < paritySpecs; seed++ {
		c := randomspec.New(seed)
		d, err := c.Desired()
		if err != nil {
			demandHelp(t, fmt.Sprint("seed ", seed), err)
			continue
		}
		if len(d.Targets) == 0 {
			continue // nothing is rendered
		}
		carried++
		r := mustRender(t, d)
		policy, override := admitAll(t, server, seed, nil, nil, r)
		karmada.compare(t, seed, d, r, policy, override, sameJSON)
		clusters += len(d.Targets)
		if c.Typed && allConvert(d) {
			typed++
			karmada.compare(t, seed, d, r, policy, override, sameTyped)
		}
		if next, err := c.Next(seed).Desired(); err == nil && len(next.Targets) > 0 {
			admitAll(t, server, seed, policy, override, mustRender(t, next))
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, c.Workload.Spec.Template.Raw)
		}
	}
	t.Logf("%d specs, %d manifests, %d specs as their Go types keep them", carried, clusters, typed)
}

// demandHelp: what a spec may not say is refused in words for its author.
func demandHelp(t *testing.T, what string, err error) {
	t.Helper()
	var refusal *backends.Error
	if !errors.As(err, &refusal) || refusal.Field == "" || refusal.Remedy == "" {
		t.Errorf("%s: %v is no refusal with field and remedy", what, err)
	}
}

// admitAll sends the policies to the API server, and returns what it stores.
func admitAll(t *testing.T, server apiServer, seed uint64, livePolicy, liveOverride *unstructured.Unstructured, r *rendered,
) (policy, override *unstructured.Unstructured) {
	t.Helper()
	policy, err := server.apply(t.Context(), livePolicy, r.policy)
	if err != nil {
		t.Fatalf("seed %d: %s is refused: %v", seed, r.policy.GetKind(), err)
	}
	if override, err = server.apply(t.Context(), liveOverride, r.override); err != nil {
		t.Fatalf("seed %d: %s is refused: %v", seed, r.override.GetKind(), err)
	}
	if !ssa.Contains(policy.Object, r.policy.Object) || !ssa.Contains(override.Object, r.override.Object) {
		t.Errorf("seed %d: the driver would write the policies again", seed) // law 3
	}
	return policy, override
}

// controllers are the parts of Karmada's binding controller that change a manifest.
type controllers struct {
	ours       map[schema.GroupVersionKind]string
	vm         *luavm.VM
	thirdParty *thirdparty.ConfigurableInterpreter
	native     *native.DefaultInterpreter
}

func newControllers(t *testing.T) controllers {
	t.Helper()
	c := controllers{ours: map[schema.GroupVersionKind]string{}, vm: luavm.New(false, 1),
		thirdParty: thirdparty.NewConfigurableInterpreter(), native: native.NewDefaultInterpreter()}
	for _, i := range interpreters(t) {
		c.ours[i.GVK] = i.Scripts.ReplicaRevision
	}
	return c
}

// reviseReplica asks the interpreters in Karmada's order (pkg/resourceinterpreter/interpreter.go). Without ours, it is
// what Karmada does where the operator may not install any.
func (c controllers) reviseReplica(obj *unstructured.Unstructured, replicas int64, ours bool) (*unstructured.Unstructured, error) {
	const operation = configv1alpha1.InterpreterOperationReviseReplica
	gvk := obj.GroupVersionKind()
	if script := c.ours[gvk]; script != "" && ours {
		return c.vm.ReviseReplica(obj, replicas, script)
	}
	if c.thirdParty.HookEnabled(gvk, operation) {
		revised, _, err := c.thirdParty.ReviseReplica(obj, replicas)
		return revised, err
	}
	return c.native.ReviseReplica(obj, replicas)
}

// lua tells whether replicas of the kind are set by a script. Lua has no null, so that fields which are null go missing,
// and objects that hold nothing else with them.
func (c controllers) lua(gvk schema.GroupVersionKind) bool {
	return c.ours[gvk] != "" || c.thirdParty.HookEnabled(gvk, configv1alpha1.InterpreterOperationReviseReplica)
}

func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if child == nil || onlyNulls(child) {
				delete(v, key)
			}
			dropNulls(child)
		}
	case []any:
		for _, child := range v {
			dropNulls(child)
		}
	}
}

// dropEmptied drops objects of got that are empty where want has nulls alone: the script has lost the nulls, and an override has
// removed the rest.
func dropEmptied(got, want any) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for key, child := range w {
			if hollow(g[key]) && onlyNulls(child) {
				delete(g, key)
				continue
			}
			dropEmptied(g[key], child)
		}
	case []any:
		if g, ok := got.([]any); ok && len(g) == len(w) {
			for i := range w {
				dropEmptied(g[i], w[i])
			}
		}
	}
}

// onlyNulls tells whether an object holds nulls, and nothing else at any depth.
func onlyNulls(value any) bool {
	object, _ := value.(map[string]any)
	for _, child := range object {
		if child != nil && !onlyNulls(child) {
			return false
		}
	}
	return len(object) > 0
}

// hollow tells whether an object holds nothing but objects that hold nothing.
func hollow(value any) bool {
	object, is := value.(map[string]any)
	for _, child := range object {
		if !hollow(child) {
			return false
		}
	}
	return is
}

// comparison brings a template into the shape in which it is stored, and two manifests into one in which they must be
// equal.
type comparison struct {
	stored, shape func(*unstructured.Unstructured)
}

var (
	sameJSON  = comparison{func(*unstructured.Unstructured) {}, func(*unstructured.Unstructured) {}}
	sameTyped = comparison{throughType, throughType}
)

// compare makes each cluster's manifest as ensureWork does (pkg/controllers/binding/common.go), from the stored policies.
func (c controllers) compare(t *testing.T, seed uint64, d backends.Desired, r *rendered, policy, override *unstructured.Unstructured, by comparison) {
	t.Helper()
	placement, err := policyPlacement(policy)
	if err != nil {
		t.Fatal(err)
	}
	if !r.needsOverride {
		override = nil
	}
	for _, target := range d.Targets {
		got := r.template.DeepCopy()
		by.stored(got)
		if r.total != nil {
			replicas := simulateScheduler(&placement, int32(*r.total))[target.Cluster]
			if got, err = c.reviseReplica(got, int64(replicas), seed%2 == 0); err != nil {
				t.Fatalf("seed %d, cluster %s: replicas: %v", seed, target.Cluster, err)
			}
		}
		record, err := overrideWith(override, target.Cluster, got)
		if err != nil {
			t.Errorf("seed %d, cluster %s: overrides: %v\n%s", seed, target.Cluster, err, text(t, override))
			continue
		}
		want := target.Manifest.DeepCopy()
		if slices.Contains(r.overwriting, target.Cluster) {
			setMarks(want, nil, map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: overwrite})
		}
		// What the driver waits for before it lets a Work go (gate.go).
		if rules := rulesFor(r, target.Cluster); override != nil && !sameOverrides(record, override.GetName(), rules) {
			t.Errorf("seed %d, cluster %s: the driver does not know its overrides in %s", seed, target.Cluster, record)
		}
		if !ssa.Contains(got.Object, withoutLost(want.Object, got.Object)) {
			t.Errorf("seed %d, cluster %s: the driver does not know its manifest:\n%s", seed, target.Cluster, cmp.Diff(want.Object, got.Object))
		}
		by.shape(got)
		by.shape(want)
		if r.total != nil && c.lua(d.Workload.GVK) {
			dropEmptied(got.Object, want.Object)
			dropNulls(got.Object)
			dropNulls(want.Object)
		}
		if text(t, want) != text(t, got) {
			t.Errorf("seed %d, cluster %s (-target +made by Karmada):\n%s\nfrom\n%s", seed, target.Cluster,
				cmp.Diff(want.Object, got.Object), text(t, override))
		}
	}
}

// text is canonical: encoding/json sorts keys.
func text(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	if obj == nil {
		return ""
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// allConvert tells whether template and target manifests fit the Go type of their kind. An API server refuses the others.
func allConvert(d backends.Desired) bool {
	objects := []*unstructured.Unstructured{d.Template}
	for _, target := range d.Targets {
		objects = append(objects, target.Manifest)
	}
	for _, obj := range objects {
		typed, err := scheme.Scheme.New(obj.GroupVersionKind())
		if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, typed, true) != nil {
			return false
		}
	}
	return true
}
