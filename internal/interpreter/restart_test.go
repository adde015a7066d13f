package interpreter

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRestartPath: every built-in kind that makes its pods anew says where, and every other one why not.
func TestRestartPath(t *testing.T) {
	kinds, err := New(
		Description{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", PodTemplatePath: "spec.pods", Health: Health{Healthy: "true"}},
		Description{Group: "example.com", Version: "v1", Kind: "Gadget", Resource: "gadgets", Health: Health{Healthy: "true"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{ // a path, or what an error says
		"Deployment": "spec.template", "StatefulSet": "spec.template", "DaemonSet": "spec.template", "CloneSet": "spec.template",
		"UnitedDeployment": "the UnitedDeployment has no pod template: none of spec.template.cloneSetTemplate.spec.template, ",
		"Job":              "Job cannot be restarted: it runs once", "BroadcastJob": "BroadcastJob cannot be restarted: it runs once",
		"CronJob": "CronJob cannot be restarted: each of its runs", "AdvancedCronJob": "AdvancedCronJob cannot be restarted: each of its runs",
		"Workflow":   "Workflow cannot be restarted: it runs once",
		"SidecarSet": "SidecarSet cannot be restarted: its pods are other workloads'",
		"Widget":     "spec.pods", "Gadget": "where example.com/v1 Gadget has its pod template is not said",
	}
	for _, kind := range kinds.Kinds() {
		text, known := want[kind.Definition.Kind]
		if !known {
			t.Errorf("%s: nothing is wanted of it", kind.GVK())
			continue
		}
		path, err := kind.RestartPath(&unstructured.Unstructured{Object: map[string]any{}})
		if err != nil && !strings.HasPrefix(err.Error(), text) || err == nil && strings.Join(path, ".") != text {
			t.Errorf("%s: %v, %v, want %s", kind.GVK(), path, err, text)
		}
	}
	united := kinds.For(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "UnitedDeployment"})
	path, err := united.RestartPath(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
		"statefulSetTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}},
	}}}})
	if got := strings.Join(path, "."); err != nil || got != "spec.template.statefulSetTemplate.spec.template" {
		t.Errorf("a UnitedDeployment of StatefulSets: %s, %v", got, err)
	}
	_, err = kinds.For(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}).RestartPath(&unstructured.Unstructured{Object: map[string]any{}})
	if err == nil || !strings.Contains(err.Error(), "where v1 Pod has its pod template is not known") {
		t.Errorf("a kind that nobody described: %v", err)
	}
}

// TestInPlace: OpenKruise writes annotations into running pods where it may, and makes none anew.
func TestInPlace(t *testing.T) {
	kinds, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ kind, path, value, want string }{
		{"apps.kruise.io/v1alpha1 CloneSet", "spec.updateStrategy.type", "InPlaceIfPossible", "set it to ReCreate"},
		{"apps.kruise.io/v1alpha1 CloneSet", "spec.updateStrategy.type", "InPlaceOnly", "set it to ReCreate"},
		{"apps.kruise.io/v1alpha1 CloneSet", "spec.updateStrategy.type", "ReCreate", ""},
		{"apps.kruise.io/v1beta1 StatefulSet", "spec.updateStrategy.rollingUpdate.podUpdatePolicy", "InPlaceIfPossible", "set it to ReCreate"},
		{"apps.kruise.io/v1alpha1 DaemonSet", "spec.updateStrategy.rollingUpdate.rollingUpdateType", "InPlaceIfPossible", "set it to Standard"},
		{"apps.kruise.io/v1alpha1 UnitedDeployment", "spec.template.cloneSetTemplate.spec.updateStrategy.type", "InPlaceIfPossible", "set it to ReCreate"},
		{"apps.kruise.io/v1alpha1 UnitedDeployment", "spec.template.advancedStatefulSetTemplate.spec.updateStrategy.rollingUpdate.podUpdatePolicy",
			"InPlaceOnly", "set it to ReCreate"},
		{"apps/v1 Deployment", "spec.strategy.type", "RollingUpdate", ""},
	} {
		version, name, _ := strings.Cut(test.kind, " ")
		kind := kinds.For(schema.FromAPIVersionAndKind(version, name))
		manifest := &unstructured.Unstructured{Object: map[string]any{}}
		path := strings.Split(test.path, ".")
		template := []string{"spec", "template"}
		if len(path) > 5 { // of a UnitedDeployment
			template = append(path[:4:4], "template")
		}
		for _, set := range []error{
			unstructured.SetNestedField(manifest.Object, test.value, path...),
			unstructured.SetNestedMap(manifest.Object, map[string]any{"spec": map[string]any{}}, template...),
		} {
			if set != nil {
				t.Fatal(set)
			}
		}
		_, err := kind.RestartPath(manifest)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path)) {
			t.Errorf("%s %s: %v, want %q", test.kind, test.value, err, test.want)
		}
	}
}
