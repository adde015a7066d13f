package lua_test

import (
	"testing"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// customization is what the driver will install.
func customization(kind *interpreter.Kind, s lua.Scripts) *configv1alpha1.ResourceInterpreterCustomization {
	c := &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: kind.Resource + "." + kind.Version},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{Target: configv1alpha1.CustomizationTarget{
			APIVersion: kind.GVK().GroupVersion().String(), Kind: kind.Definition.Kind}},
	}
	into := &c.Spec.Customizations
	if s.Retention != "" {
		into.Retention = &configv1alpha1.LocalValueRetention{LuaScript: s.Retention}
	}
	if s.ReplicaResource != "" {
		into.ReplicaResource = &configv1alpha1.ReplicaResourceRequirement{LuaScript: s.ReplicaResource}
	}
	if s.ReplicaRevision != "" {
		into.ReplicaRevision = &configv1alpha1.ReplicaRevision{LuaScript: s.ReplicaRevision}
	}
	if s.StatusReflection != "" {
		into.StatusReflection = &configv1alpha1.StatusReflection{LuaScript: s.StatusReflection}
	}
	if s.StatusAggregation != "" {
		into.StatusAggregation = &configv1alpha1.StatusAggregation{LuaScript: s.StatusAggregation}
	}
	if s.HealthInterpretation != "" {
		into.HealthInterpretation = &configv1alpha1.HealthInterpretation{LuaScript: s.HealthInterpretation}
	}
	if s.DependencyInterpretation != "" {
		into.DependencyInterpretation = &configv1alpha1.DependencyInterpretation{LuaScript: s.DependencyInterpretation}
	}
	return c
}

// TestCustomizations: all kinds together, as customizations in one interpreter of Karmada, whose states run the scripts
// of all of them.
func TestCustomizations(t *testing.T) {
	var all []*configv1alpha1.ResourceInterpreterCustomization
	for _, kind := range kinds(t) {
		all = append(all, customization(kind, generate(t, kind)))
	}
	karmada := declarative.NewConfigurableInterpreter(nil)
	karmada.LoadConfig(all)
	for seed := range int64(20) {
		for _, kind := range kinds(t) {
			g := newGenerator(seeded(seed), kind)
			object := parse(t, dump(g.object()))
			state, _ := kind.State(interpreter.ReportOf(object))
			healthy, enabled, err := karmada.InterpretHealth(object)
			if err != nil || !enabled || healthy != (state.Health == "Healthy") {
				t.Fatalf("%s, seed %d: %t, %t, %v; Go says %+v", kind.GVK(), seed, healthy, enabled, err, state)
			}
			if _, enabled, err := karmada.GetDependencies(object); err != nil || !enabled {
				t.Errorf("%s, seed %d: dependencies %t, %v", kind.GVK(), seed, enabled, err)
			}
			if _, enabled, err := karmada.ReflectStatus(object); err != nil || !enabled {
				t.Errorf("%s, seed %d: status %t, %v", kind.GVK(), seed, enabled, err)
			}
			target, items := g.target(), g.items()
			got, enabled, err := karmada.AggregateStatus(target, items)
			if err != nil || enabled != (kind.Definition.Kind != "Workflow") {
				t.Errorf("%s, seed %d: aggregation %t, %v", kind.GVK(), seed, enabled, err)
			}
			want := expected(kind, target, items)
			if !enabled || err != nil || len(want) == 0 {
				continue
			}
			if err := same(normal(want), normal(got.Object["status"])); err != nil {
				t.Errorf("%s, seed %d: %v", kind.GVK(), seed, err)
			}
		}
	}
}
