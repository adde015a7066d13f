// SPDX-License-Identifier: Apache-2.0

// Package kustomize checks that config/kustomize lets kustomize reach into FleetWorkloads. What kustomize does to a Deployment of its own
// is what it has to do to the pods of any kind in a FleetWorkload.
package kustomize

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../../.."
	component = "config/kustomize"
	merge     = component + "/merge"
	group     = "apps.fleetworkload.io"
)

type object = map[string]any

// build runs kustomize on files, beside which lies the component.
func build(t *testing.T, dir string, files map[string]string) (string, error) {
	t.Helper()
	memory := filesys.MakeFsInMemory()
	write := func(path, content string) {
		if err := memory.WriteFile("/"+path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range files {
		write(path, content)
	}
	if err := filepath.WalkDir(filepath.Join(root, component), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		relative, _ := filepath.Rel(root, path)
		write(relative, string(content))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/"+dir)
	if err != nil {
		return "", err
	}
	manifest, err := result.AsYaml()
	return string(manifest), err
}

func mustBuild(t *testing.T, dir string, files map[string]string) map[string]object {
	t.Helper()
	manifest, err := build(t, dir, files)
	if err != nil {
		t.Fatalf("kustomize build %s: %v", dir, err)
	}
	found := map[string]object{}
	for _, doc := range strings.Split(manifest, "\n---\n") {
		obj := read(t, doc)
		found[obj["kind"].(string)+"/"+dig(obj, "metadata", "annotations", "id").(string)] = obj
	}
	return found
}

func read(t *testing.T, text string) object {
	t.Helper()
	obj := object{}
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return obj
}

func write(t *testing.T, obj any) string {
	t.Helper()
	text, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dig follows keys, and gives nil where there is nothing.
func dig(obj any, path ...string) any {
	for _, key := range path {
		inner, ok := obj.(object)
		if !ok {
			return nil
		}
		obj = inner[key]
	}
	return obj
}

// wrap is the object that has value at path.
func wrap(value any, path ...string) object {
	for _, key := range slices.Backward(path) {
		value = object{key: value}
	}
	return value.(object)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", what, write(t, got), write(t, want))
	}
}

// kind is a workload kind with its pods at a path.
type kind struct {
	name, apiVersion, kind string
	pods                   []string
	// bare kinds have a pod spec without metadata, as a SidecarSet's spec.
	bare bool
}

func path(text string) []string { return strings.Split(text, ".") }

var kinds = []kind{
	{name: "deployment", apiVersion: "apps/v1", kind: "Deployment", pods: path("spec.template")},
	{name: "statefulset", apiVersion: "apps/v1", kind: "StatefulSet", pods: path("spec.template")},
	{name: "daemonset", apiVersion: "apps/v1", kind: "DaemonSet", pods: path("spec.template")},
	{name: "job", apiVersion: "batch/v1", kind: "Job", pods: path("spec.template")},
	{name: "cronjob", apiVersion: "batch/v1", kind: "CronJob", pods: path("spec.jobTemplate.spec.template")},
	{name: "cloneset", apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet", pods: path("spec.template")},
	{name: "advancedstatefulset", apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", pods: path("spec.template")},
	{name: "broadcastjob", apiVersion: "apps.kruise.io/v1alpha1", kind: "BroadcastJob", pods: path("spec.template")},
	{name: "cron-of-jobs", apiVersion: "apps.kruise.io/v1alpha1", kind: "AdvancedCronJob", pods: path("spec.template.jobTemplate.spec.template")},
	{name: "cron-of-broadcasts", apiVersion: "apps.kruise.io/v1alpha1", kind: "AdvancedCronJob", pods: path("spec.template.broadcastJobTemplate.spec.template")},
	{name: "united-clonesets", apiVersion: "apps.kruise.io/v1alpha1", kind: "UnitedDeployment", pods: path("spec.template.cloneSetTemplate.spec.template")},
	{name: "united-advanced", apiVersion: "apps.kruise.io/v1alpha1", kind: "UnitedDeployment", pods: path("spec.template.advancedStatefulSetTemplate.spec.template")},
	{name: "united-statefulsets", apiVersion: "apps.kruise.io/v1alpha1", kind: "UnitedDeployment", pods: path("spec.template.statefulSetTemplate.spec.template")},
	{name: "united-deployments", apiVersion: "apps.kruise.io/v1alpha1", kind: "UnitedDeployment", pods: path("spec.template.deploymentTemplate.spec.template")},
	{name: "sidecarset", apiVersion: "apps.kruise.io/v1alpha1", kind: "SidecarSet", bare: true},
}

// manifest is a workload of the kind with these pods.
func (k kind) manifest(pod object) object {
	manifest := wrap(pod, k.pods...)
	if k.bare {
		manifest = object{"spec": maps.Clone(pod["spec"].(object))}
	}
	manifest["apiVersion"], manifest["kind"] = k.apiVersion, k.kind
	manifest["spec"].(object)["selector"] = object{"matchLabels": object{"app": "web"}}
	return manifest
}

// podOf is the inverse of manifest. A bare kind's labels and annotations are taken from want, as it has none.
func (k kind) podOf(manifest any, want object) any {
	if !k.bare {
		return dig(manifest, k.pods...)
	}
	spec := maps.Clone(dig(manifest, "spec").(object))
	delete(spec, "selector")
	return object{"metadata": want["metadata"], "spec": spec}
}

func fleetWorkload(name string, spec object) object {
	spec["backend"], spec["placement"] = "karmada", object{"clusters": object{}}
	return object{
		"apiVersion": group + "/v1alpha1", "kind": "FleetWorkload",
		"metadata": object{"name": name, "annotations": object{"id": name}}, "spec": spec,
	}
}

func pod(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile("testdata/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(text))
}

// base has each kind in a FleetWorkload, a Deployment of its own, and what their pods refer to, of which one has a hash in its name.
func base(t *testing.T, kustomization, hashed string) map[string]string {
	t.Helper()
	plain := kinds[0].manifest(pod(t))
	plain["metadata"] = object{"name": "plain", "annotations": object{"id": "plain"}}
	docs := []string{write(t, plain)}
	for _, k := range kinds {
		docs = append(docs, write(t, fleetWorkload(k.name, object{"template": k.manifest(pod(t))})))
	}
	for _, k := range []string{"ServiceAccount runner", "PersistentVolumeClaim data"} {
		name, id, _ := strings.Cut(k, " ")
		docs = append(docs, write(t, object{
			"apiVersion": "v1", "kind": name, "metadata": object{"name": id, "annotations": object{"id": id}},
		}))
	}
	return map[string]string{"base/kustomization.yaml": "resources: [all.yaml]\n" +
		generated("configMapGenerator", "settings", hashed) + generated("secretGenerator", "keys", hashed) + kustomization, "base/all.yaml": strings.Join(docs, "---\n")}
}

const (
	withComponent = "components: [../" + component + "]\n"
	withBoth      = "components: [../" + component + ", ../" + merge + "]\n"
)

// trials are what users write in an overlay.
var trials = []struct {
	name, overlay string
	// hashed is the ConfigMap or Secret with a hash in its name.
	hashed string
	// selects is true for what changes selectors of Kubernetes' own kinds.
	selects bool
	// anyway names kinds whose pods kustomize reaches even without the component.
	anyway func(kind) bool
}{
	// kustomize looks for lists called containers and initContainers wherever they are.
	{name: "images", overlay: "images: [{name: shop/web, newName: registry.example.com/web, newTag: '2'}, {name: shop/prepare, digest: sha256:0}]\n",
		anyway: func(kind) bool { return true }},
	// It also looks at spec.template.spec.volumes of every kind.
	{name: "images of volumes", overlay: "images: [{name: shop/model, newTag: '2'}]\n", anyway: func(k kind) bool { return k.bare }},
	{name: "namePrefix", overlay: "namePrefix: prod-\n"},
	{name: "nameSuffix", overlay: "nameSuffix: -prod\n"},
	{name: "labels of pods", overlay: "labels: [{pairs: {stage: prod}, includeTemplates: true}]\n"},
	{name: "labels and selectors", overlay: "labels: [{pairs: {stage: prod}, includeSelectors: true}]\n", selects: true},
	{name: "commonLabels", overlay: "commonLabels: {stage: prod}\n", selects: true},
	{name: "commonAnnotations", overlay: "commonAnnotations: {stage: prod}\n"},
	{name: "hash of a ConfigMap", hashed: "settings"},
	{name: "hash of a Secret", hashed: "keys"},
}

func generated(generator, name, hashed string) string {
	plain := "true"
	if name == hashed {
		plain = "false"
	}
	return generator + ": [{name: " + name + ", literals: [a=b], options: {annotations: {id: " + name + "}, disableNameSuffixHash: " + plain + "}}]\n"
}

// TestPods: kustomize does to the pods of each kind in a FleetWorkload what it does to those of a Deployment, wherever the component is
// listed, and does not without it.
func TestPods(t *testing.T) {
	for _, trial := range trials {
		t.Run(trial.name, func(t *testing.T) {
			for where, listed := range map[string][2]string{
				"base": {withComponent, ""}, "overlay": {"", withComponent}, "both": {withComponent, withComponent},
			} {
				files := base(t, listed[0], trial.hashed)
				files["overlay/kustomization.yaml"] = "resources: [../base]\n" + trial.overlay + listed[1]
				got := reset(t, func() map[string]object { return mustBuild(t, "overlay", files) })
				want := dig(got["Deployment/plain"], "spec", "template").(object)
				if reflect.DeepEqual(want, pod(t)) {
					t.Fatalf("the trial changes nothing in a Deployment:\n%s", write(t, want))
				}
				for _, k := range kinds {
					template := dig(got["FleetWorkload/"+k.name], "spec", "template")
					equal(t, "listed in "+where+": pods of "+k.name, k.podOf(template, want), want)
					equal(t, "listed in "+where+": selector of "+k.name, dig(template, "spec", "selector", "matchLabels"), object{"app": "web"})
					for _, metadata := range []string{"labels", "annotations"} {
						want, _ := dig(got["Deployment/plain"], "metadata", metadata).(object)
						want = maps.Clone(want)
						delete(want, "id") // of the FleetWorkload, by which this test finds it
						found, _ := dig(template, "metadata", metadata).(object)
						if len(want)+len(found) > 0 {
							equal(t, metadata+" of "+k.name, found, want)
						}
					}
				}
			}
			files := base(t, "", trial.hashed)
			files["overlay/kustomization.yaml"] = "resources: [../base]\n" + trial.overlay
			got := reset(t, func() map[string]object { return mustBuild(t, "overlay", files) })
			for _, k := range kinds {
				template := dig(got["FleetWorkload/"+k.name], "spec", "template")
				if untouched := reflect.DeepEqual(template, k.manifest(pod(t))); untouched == (trial.anyway != nil && trial.anyway(k)) {
					t.Errorf("without the component, %s is untouched: %v\n%s", k.name, untouched, write(t, template))
				}
			}
			if selects := dig(got["Deployment/plain"], "spec", "selector", "matchLabels", "stage") != nil; selects != trial.selects {
				t.Errorf("the selector of a Deployment is changed: %v", selects)
			}
		})
	}
}

// reset keeps what one build tells kustomize about kinds from the next one.
func reset[T any](t *testing.T, run func() T) T {
	t.Helper()
	openapi.ResetOpenAPI()
	t.Cleanup(openapi.ResetOpenAPI)
	return run()
}
