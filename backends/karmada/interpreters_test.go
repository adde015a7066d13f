package karmada

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/native"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

var cloneSetGVK = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}

// interpreterOf is what the operator installs by default.
func interpreterOf(gvk schema.GroupVersionKind) (Interpreter, error) {
	kinds, err := interpreter.New()
	if err != nil {
		return Interpreter{}, err
	}
	scripts, err := lua.Generate(kinds.For(gvk))
	return Interpreter{GVK: gvk, Resource: kinds.For(gvk).Resource, Scripts: scripts}, err
}

// interpreters are those of all built-in kinds.
func interpreters(t *testing.T) []Interpreter {
	t.Helper()
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	var all []Interpreter
	for _, kind := range kinds.Kinds() {
		i, err := interpreterOf(kind.GVK())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	return all
}

// foreign is a customization of somebody else.
func foreign(name, kind string, fields ...string) unstructured.Unstructured {
	scripts := map[string]any{}
	for _, field := range fields {
		scripts[field] = map[string]any{"luaScript": "function F() end"}
	}
	obj := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"target": map[string]any{"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind}, "customizations": scripts,
	}}}
	obj.SetGroupVersionKind(customizationGVK)
	obj.SetName(name)
	return obj
}

func installedFields(obj *unstructured.Unstructured) []string {
	scripts, _, _ := unstructured.NestedMap(obj.Object, "spec", "customizations")
	var fields []string
	for field := range scripts {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	return fields
}

func TestLearn(t *testing.T) {
	want, err := newCustomizationInstaller(interpreterOf).want(cloneSetGVK)
	if err != nil {
		t.Fatal(err)
	}
	every := installedFields(want)
	tests := map[string]struct {
		installed []unstructured.Unstructured
		fields    []string
		removed   bool
		note      string
	}{
		"nothing there":                      {fields: every},
		"another kind's":                     {installed: []unstructured.Unstructured{foreign("theirs", "SidecarSet", "retention")}, fields: every},
		"what others decide is left":         {installed: []unstructured.Unstructured{foreign("theirs", "CloneSet", "healthInterpretation")}, fields: slices.DeleteFunc(slices.Clone(every), func(f string) bool { return f == "healthInterpretation" }), note: "theirs, which is not the operator's, decides InterpretHealth of CloneSet"},
		"others decide all of it":            {installed: []unstructured.Unstructured{foreign("theirs", "CloneSet", every...)}, note: "theirs"},
		"ours goes when others decide all":   {installed: []unstructured.Unstructured{*want, foreign("theirs", "CloneSet", every...)}, removed: true, note: "theirs"},
		"somebody has our name":              {installed: []unstructured.Unstructured{foreign(want.GetName(), "Other", "retention")}, note: "is not the operator's, and left alone"},
		"dependencies are not shared either": {installed: []unstructured.Unstructured{foreign("theirs", "CloneSet", "dependencyInterpretation")}, fields: slices.DeleteFunc(slices.Clone(every), func(f string) bool { return f == "dependencyInterpretation" }), note: "InterpretDependency"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := want.DeepCopy()
			l := planInstallation(want, test.installed)
			if diff := cmp.Diff(before, want); diff != "" {
				t.Errorf("the argument changed: %s", diff)
			}
			switch {
			case test.removed != (l.write != nil && l.write.remove):
				t.Errorf("removed: %+v", l.write)
			case !test.removed && (l.write != nil) != (len(test.fields) > 0):
				t.Errorf("written: %+v", l.write)
			case !test.removed && l.write != nil:
				if diff := cmp.Diff(test.fields, installedFields(l.write.object)); diff != "" {
					t.Error(diff)
				}
			}
			if note := strings.Join(l.notes, "; "); !strings.Contains(note, test.note) || (note == "") != (test.note == "") {
				t.Errorf("notes: %q", note)
			}
		})
	}
}

// TestBuiltinInterpreters: the table of what Karmada has is what Karmada has, and Missing leaves none of it.
func TestBuiltinInterpreters(t *testing.T) {
	own, thirdParty := native.NewDefaultInterpreter(), thirdparty.NewConfigurableInterpreter()
	for _, i := range interpreters(t) {
		for _, o := range operations {
			has := thirdParty.HookEnabled(i.GVK, o.operation)
			// Native code answers for the status of every kind, by copying it.
			if o.operation != configv1alpha1.InterpreterOperationInterpretStatus || i.GVK.Group == "apps" || i.GVK.Kind == "Job" {
				has = has || own.HookEnabled(i.GVK, o.operation)
			}
			if i.GVK.Kind == "UnitedDeployment" {
				has = false // see builtinInterpreters
			}
			if listed := slices.Contains(builtinInterpreters(i.GVK), o.operation); listed != has {
				t.Errorf("%s %s: listed %t, Karmada has %t", i.GVK, o.operation, listed, has)
			}
		}
	}
	for _, i := range interpreters(t) {
		i = Missing(i)
		for _, o := range operations {
			if *o.script(&i.Scripts) != "" && slices.Contains(builtinInterpreters(i.GVK), o.operation) {
				t.Errorf("%s: %s is not missing", i.GVK, o.operation)
			}
		}
		// Nothing but ours answers a probe.
		if i.GVK == cloneSetGVK && i.Scripts != (lua.Scripts{Retention: i.Scripts.Retention}) {
			t.Errorf("Karmada has everything else for %s, and still %v is installed", i.GVK, installedFields(customization(i)))
		}
	}
}
