package karmada

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// Interpreter is what Karmada may be told about one kind.
type Interpreter struct {
	GVK schema.GroupVersionKind
	// Resource is the plural of the kind.
	Resource string
	// Scripts are the interpreters; empty ones are left to Karmada.
	Scripts lua.Scripts
}

var customizationGVK = configv1alpha1.SchemeGroupVersion.WithKind(configv1alpha1.ResourceKindResourceInterpreterCustomization)

// operations are the fields of spec.customizations with the operations that they are for.
var operations = []struct {
	field     string
	operation configv1alpha1.InterpreterOperation
	script    func(*lua.Scripts) *string
}{
	{"retention", configv1alpha1.InterpreterOperationRetain, func(s *lua.Scripts) *string { return &s.Retention }},
	{"replicaResource", configv1alpha1.InterpreterOperationInterpretReplica, func(s *lua.Scripts) *string { return &s.ReplicaResource }},
	{"replicaRevision", configv1alpha1.InterpreterOperationReviseReplica, func(s *lua.Scripts) *string { return &s.ReplicaRevision }},
	{"statusReflection", configv1alpha1.InterpreterOperationInterpretStatus, func(s *lua.Scripts) *string { return &s.StatusReflection }},
	{"statusAggregation", configv1alpha1.InterpreterOperationAggregateStatus, func(s *lua.Scripts) *string { return &s.StatusAggregation }},
	{"healthInterpretation", configv1alpha1.InterpreterOperationInterpretHealth, func(s *lua.Scripts) *string { return &s.HealthInterpretation }},
	{"dependencyInterpretation", configv1alpha1.InterpreterOperationInterpretDependency, func(s *lua.Scripts) *string { return &s.DependencyInterpretation }},
}

// customization renders what is to be installed for one kind.
func customization(i Interpreter) *unstructured.Unstructured {
	scripts := map[string]any{}
	for _, o := range operations {
		if script := *o.script(&i.Scripts); script != "" {
			scripts[o.field] = map[string]any{"luaScript": script}
		}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"target":         map[string]any{"apiVersion": i.GVK.GroupVersion().String(), "kind": i.GVK.Kind},
		"customizations": scripts,
	}}}
	obj.SetGroupVersionKind(customizationGVK)
	// The core group has no name.
	obj.SetName(strings.ReplaceAll(strings.Join([]string{"fleetworkload", i.Resource, i.GVK.Group, i.GVK.Version}, "."), "..", "."))
	obj.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	return obj
}

// installPlan is what is to be written for one kind, and what stands against it.
type installPlan struct {
	// write is nil when nothing is to be written.
	write *write
	// notes say what others decide, for a person.
	notes []string
	// retains is true when Karmada has, or is to have, our interpreter of what members keep: it answers probes.
	retains bool
	// alone is true when Karmada reports the kind with our interpreters, and nobody else has any for it.
	alone bool
	// version of the customizations that this was decided on.
	version int
}

// planInstallation decides what to install for a kind next to the customizations that are there. Karmada takes the first of two for
// one operation, in the order of names, and its webhook refuses the second, so that what others have is left out
// (pkg/webhook/resourceinterpretercustomization). It is pure.
func planInstallation(want *unstructured.Unstructured, installed []unstructured.Unstructured) installPlan {
	var l installPlan
	want = want.DeepCopy()
	scripts, _, _ := unstructured.NestedMap(want.Object, "spec", "customizations")
	var live *unstructured.Unstructured
	for i := range installed {
		other := &installed[i]
		if other.GetName() == want.GetName() {
			live = other
		}
		if ours(other) || target(other) != target(want) {
			continue
		}
		var taken []string
		for _, o := range operations {
			if has(other, o.field) {
				delete(scripts, o.field)
				taken = append(taken, string(o.operation))
			}
		}
		if len(taken) > 0 {
			l.notes = append(l.notes, fmt.Sprintf("note: ResourceInterpreterCustomization %s, which is not the operator's, decides %s of %s on Karmada",
				other.GetName(), strings.Join(taken, ", "), target(want).kind))
		}
	}
	slices.Sort(l.notes)
	want.Object["spec"].(map[string]any)["customizations"] = scripts
	_, retains := scripts["retention"]
	l.retains = retains && (live == nil || ours(live))
	_, reflects := scripts["statusReflection"]
	l.alone = reflects && len(l.notes) == 0 && live != nil && ours(live)
	switch {
	case live != nil && !ours(live):
		l.notes = append(l.notes, fmt.Sprintf("note: ResourceInterpreterCustomization %s is not the operator's, and left alone", live.GetName()))
	case len(scripts) == 0 && live != nil:
		l.write = &write{object: live, remove: true}
	case len(scripts) > 0 && (live == nil || !ssa.UpToDate(live, want)):
		l.write = &write{object: want}
	}
	return l
}

type targetKind struct{ apiVersion, kind string }

func target(customization *unstructured.Unstructured) targetKind {
	apiVersion, _, _ := unstructured.NestedString(customization.Object, "spec", "target", "apiVersion")
	kind, _, _ := unstructured.NestedString(customization.Object, "spec", "target", "kind")
	return targetKind{apiVersion, kind}
}

func has(customization *unstructured.Unstructured, field string) bool {
	script, _, _ := unstructured.NestedString(customization.Object, "spec", "customizations", field, "luaScript")
	return script != ""
}

func ours(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator
}

// customizationInstaller keeps Karmada's interpreters for the kinds that are used. It installs them before the first workload of a kind
// is written: what Karmada has read before, it does not read again.
type customizationInstaller struct {
	// interpreter gives what Karmada may be told about a kind; nil leaves everything to Karmada.
	interpreter func(schema.GroupVersionKind) (Interpreter, error)

	mu sync.Mutex
	// wanted are the customizations of the kinds that were asked for.
	wanted map[schema.GroupVersionKind]*unstructured.Unstructured
	// version counts the changes of customizations; plans were decided at a version.
	version int
	plans   map[schema.GroupVersionKind]installPlan
}

func newCustomizationInstaller(interpreter func(schema.GroupVersionKind) (Interpreter, error)) *customizationInstaller {
	return &customizationInstaller{
		interpreter: interpreter,
		wanted:      map[schema.GroupVersionKind]*unstructured.Unstructured{}, plans: map[schema.GroupVersionKind]installPlan{},
	}
}

// want is the customization of a kind as it would be without others.
func (t *customizationInstaller) want(gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if want := t.wanted[gvk]; want != nil {
		return want, nil
	}
	i, err := t.interpreter(gvk)
	if err != nil {
		return nil, fmt.Errorf("write interpreters of %s: %w", gvk, err)
	}
	t.wanted[gvk] = customization(i)
	return t.wanted[gvk], nil
}

// changed says that a customization has come, changed or gone.
func (t *customizationInstaller) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
}

// prepare decides on a kind, again only when customizations have changed.
func (t *customizationInstaller) prepare(ctx context.Context, reader cache.Cache, gvk schema.GroupVersionKind) (installPlan, error) {
	if t.interpreter == nil {
		return installPlan{}, nil
	}
	want, err := t.want(gvk)
	if err != nil {
		return installPlan{}, err
	}
	t.mu.Lock()
	last, known := t.plans[gvk]
	version := t.version
	t.mu.Unlock()
	if known && last.version == version {
		return last, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(customizationGVK.GroupVersion().WithKind(customizationGVK.Kind + "List"))
	if err := reader.List(ctx, list); err != nil {
		return installPlan{}, backends.Classify("list Karmada's interpreters", err)
	}
	l := planInstallation(want, list.Items)
	l.version = version
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plans[gvk] = l
	return l, nil
}

// install makes sure that Karmada has the interpreters of a kind. It returns what is awaited.
func (t *customizationInstaller) install(ctx context.Context, reader cache.Cache, c client.Client, gvk schema.GroupVersionKind) (waiting string, err error) {
	l, err := t.prepare(ctx, reader, gvk)
	if err != nil || l.write == nil {
		return "", err
	}
	if l.write.remove {
		err = client.IgnoreNotFound(c.Delete(ctx, l.write.object))
	} else {
		_, err = ssa.Send(ctx, c, l.write.object)
	}
	if err != nil {
		return "", refusedLesson(l.write.object.GetName(), err)
	}
	return fmt.Sprintf("Karmada to take up ResourceInterpreterCustomization %s", l.write.object.GetName()), nil
}

func refusedLesson(name string, err error) error {
	op := "write ResourceInterpreterCustomization " + name
	classified := backends.Classify(op, err)
	// What admission refuses is forbidden too: somebody was faster with a customization for the same kind.
	if apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook") {
		return &backends.Error{
			Code: backends.CodeOf(classified), Message: op + " is not allowed to the operator's user",
			Remedy: "grant it the rights of config/rbac/karmada, or set karmada.interpreters to None for this backend", Err: err,
		}
	}
	return classified
}
