// SPDX-License-Identifier: Apache-2.0

// Package kustomize checks that config/kustomize lets kustomize reach into FleetWorkloads. What kustomize does to a Deployment of its own
// is what it has to do to the pods of any kind in a FleetWorkload.
package kustomize

import (
	"flag"
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

var update = flag.Bool("update", false, "write the golden files anew")

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

// entries are those of a map, which may be missing.
func entries(obj any) object {
	if found, ok := obj.(object); ok {
		return found
	}
	return object{}
}

// companion is one of a kind's FleetWorkload: a Service first, then a workload of the same kind.
func companion(got map[string]object, k kind, i int) any {
	return dig(got["FleetWorkload/"+k.name], "spec", "companions").([]any)[i]
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

// fleetWorkload has a workload as its template, and once more as a companion.
func fleetWorkload(t *testing.T, name string, workload object) object {
	t.Helper()
	spec := object{"backend": "karmada", "placement": object{"clusters": object{}}, "template": workload}
	beside := read(t, write(t, workload))
	beside["metadata"] = object{"name": "beside"}
	spec["companions"] = []any{object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "web"}}, beside}
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
		docs = append(docs, write(t, fleetWorkload(t, k.name, k.manifest(pod(t)))))
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

// TestPods: kustomize does to the pods of each kind in a FleetWorkload what it does to those of a Deployment, and does not without the
// component.
func TestPods(t *testing.T) {
	for _, trial := range trials {
		t.Run(trial.name, func(t *testing.T) {
			files := base(t, withComponent, trial.hashed)
			files["overlay/kustomization.yaml"] = "resources: [../base]\n" + trial.overlay
			got := mustBuild(t, "overlay", files)
			if reflect.DeepEqual(dig(got["Deployment/plain"], "spec", "template"), any(pod(t))) {
				t.Fatal("the trial changes nothing in a Deployment's pods")
			}
			comparePods(t, got)

			files = base(t, "", trial.hashed)
			files["overlay/kustomization.yaml"] = "resources: [../base]\n" + trial.overlay
			got = mustBuild(t, "overlay", files)
			for _, k := range kinds {
				template := dig(got["FleetWorkload/"+k.name], "spec", "template")
				if untouched := reflect.DeepEqual(template, any(k.manifest(pod(t)))); untouched == (trial.anyway != nil && trial.anyway(k)) {
					t.Errorf("without the component, %s is untouched: %v\n%s", k.name, untouched, write(t, template))
				}
			}
			if selects := dig(got["Deployment/plain"], "spec", "selector", "matchLabels", "stage") != nil; selects != trial.selects {
				t.Errorf("the selector of a Deployment is changed: %v", selects)
			}
		})
	}
}

// TestPlaces: the component may be listed in the base, in the overlay or in both.
func TestPlaces(t *testing.T) {
	for _, trial := range []string{"namePrefix: prod-\n", "labels: [{pairs: {stage: prod}, includeTemplates: true}]\n"} {
		for where, listed := range map[string][2]string{
			"base": {withComponent, ""}, "overlay": {"", withComponent}, "both": {withComponent, withComponent},
		} {
			t.Run(where, func(t *testing.T) {
				files := base(t, listed[0], "")
				files["overlay/kustomization.yaml"] = "resources: [../base]\n" + trial + listed[1]
				comparePods(t, mustBuild(t, "overlay", files))
			})
		}
	}
}

// comparePods compares each kind in a FleetWorkload with the Deployment beside it, but for the selector, which has to stay.
func comparePods(t *testing.T, got map[string]object) {
	t.Helper()
	plain := got["Deployment/plain"]
	want := dig(plain, "spec", "template").(object)
	for _, k := range kinds {
		for name, manifest := range map[string]any{k.name: dig(got["FleetWorkload/"+k.name], "spec", "template"), "a companion like " + k.name: companion(got, k, 1)} {
			equal(t, "pods of "+name, k.podOf(manifest, want), want)
			equal(t, "selector of "+name, dig(manifest, "spec", "selector", "matchLabels"), object{"app": "web"})
		}
		for _, metadata := range []string{"labels", "annotations"} {
			want := object{}
			maps.Copy(want, entries(dig(plain, "metadata", metadata)))
			delete(want, "id") // it is the FleetWorkload that has one
			equal(t, metadata+" of the companion of "+k.name, entries(dig(companion(got, k, 0), "metadata", metadata)), want)
			paths := [][]string{{"metadata", metadata}}
			if k.kind == "CronJob" {
				paths = append(paths, []string{"spec", "jobTemplate", "metadata", metadata})
			}
			for _, path := range paths {
				equal(t, strings.Join(path, ".")+" of "+k.name, entries(dig(got["FleetWorkload/"+k.name], append([]string{"spec", "template"}, path...)...)), want)
				equal(t, strings.Join(path, ".")+" of a companion like "+k.name, entries(dig(companion(got, k, 1), path...)), want)
			}
		}
	}
}

// forget makes kustomize forget what it was told about kinds in builds before, and afterwards what this one tells.
func forget(t *testing.T) {
	t.Helper()
	openapi.ResetOpenAPI()
	t.Cleanup(openapi.ResetOpenAPI)
}

// testdata are the files of a folder of testdata and of those below, by their paths there.
func testdata(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"base/*", "overlay/*"} {
		paths, err := filepath.Glob("testdata/" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(path, "testdata/")] = string(content)
		}
	}
	return files
}

const componentLines = "components:\n- ../" + component + "\n"

// TestFleetWorkload has what a FleetWorkload has beside its pods, with the component and without.
func TestFleetWorkload(t *testing.T) {
	with, without := testdata(t), testdata(t)
	without["overlay/kustomization.yaml"] = strings.Replace(without["overlay/kustomization.yaml"], componentLines, "", 1)
	for golden, files := range map[string]map[string]string{"with.yaml": with, "without.yaml": without} {
		got, err := build(t, "overlay", files)
		if err != nil {
			t.Fatal(err)
		}
		golden = "testdata/" + golden
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what kustomize builds; to write it anew: go test ./kustomize -update. It builds:\n%s", golden, got)
		}
	}
}

// TestLabels: labels on objects alone do not come to pods, which would be made anew.
func TestLabels(t *testing.T) {
	files := base(t, withComponent, "")
	files["overlay/kustomization.yaml"] = "resources: [../base]\nlabels: [{pairs: {stage: prod}}]\n"
	got := mustBuild(t, "overlay", files)
	for _, k := range kinds {
		metadata := object{"labels": object{"stage": "prod"}}
		want := k.manifest(pod(t))
		want["metadata"] = metadata
		equal(t, k.name, dig(got["FleetWorkload/"+k.name], "spec", "template"), want)
		equal(t, "companion of "+k.name, dig(companion(got, k, 0), "metadata", "labels"), metadata["labels"])
		want["metadata"] = object{"name": "beside", "labels": object{"stage": "prod"}}
		equal(t, "companion like "+k.name, companion(got, k, 1), any(want))
	}
}

func TestReplicas(t *testing.T) {
	files := base(t, "", "")
	files["overlay/kustomization.yaml"] = "resources: [../base]\nreplicas: [{name: cloneset, count: 12}]\n"
	if _, err := build(t, "overlay", files); err == nil || !strings.Contains(err.Error(), "resource with name cloneset does not match") {
		t.Errorf("without the component: %v", err)
	}
	files["overlay/kustomization.yaml"] += withComponent
	got := mustBuild(t, "overlay", files)
	if n := dig(got["FleetWorkload/cloneset"], "spec", "replicas"); n != float64(12) {
		t.Errorf("replicas are %v", n)
	}
}

// patchOf is a patch of pods that goes by the names of list entries.
func patchOf(t *testing.T) object {
	t.Helper()
	return read(t, `
spec:
  hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]
  initContainers: [{name: prepare, image: shop/prepare:2}]
  containers:
  - name: web
    env: [{name: LEVEL, value: debug, valueFrom: null}, {name: MORE, value: less}]
    ports: [{containerPort: 80, protocol: TCP, name: http}]
    volumeMounts: [{mountPath: /data, readOnly: true}]
  - {name: proxy, $patch: delete}
  volumes:
  - {name: data, persistentVolumeClaim: null, emptyDir: {}}
`)
}

// TestPatches: patches of pods reach list entries by name as they do in a Deployment. Without the schema that is so for kinds that
// kustomize knows, as it looks at apiVersion and kind wherever they are; lists of other kinds are replaced.
func TestPatches(t *testing.T) {
	patch := func(obj object) string {
		return "- patch: |\n    " + strings.ReplaceAll(write(t, obj), "\n", "\n    ") + "\n"
	}
	plain := wrap(patchOf(t), kinds[0].pods...)
	plain["apiVersion"], plain["kind"], plain["metadata"] = "apps/v1", "Deployment", object{"name": "plain"}
	patches := "patches:\n" + patch(plain)
	for _, k := range kinds {
		template := patchOf(t)
		if !k.bare {
			template = wrap(template, k.pods...)
		}
		patches += patch(object{
			"apiVersion": group + "/v1alpha1", "kind": "FleetWorkload", "metadata": object{"name": k.name},
			"spec": object{"template": template},
		})
	}
	for where, listed := range map[string][2]string{"base": {withBoth, ""}, "overlay": {"", withBoth}, "neither": {withComponent, withComponent}} {
		files := base(t, listed[0], "")
		files["overlay/kustomization.yaml"] = "resources: [../base]\n" + patches + listed[1]
		forget(t)
		got := mustBuild(t, "overlay", files)
		want := dig(got["Deployment/plain"], "spec", "template").(object)
		if containers := dig(want, "spec", "containers").([]any); len(containers) != 1 || dig(containers[0], "image") != "shop/web:1" {
			t.Errorf("listed in %s: a Deployment has the containers\n%s", where, write(t, containers))
		}
		for _, k := range kinds {
			pods := k.podOf(dig(got["FleetWorkload/"+k.name], "spec", "template"), want)
			if where != "neither" {
				equal(t, "listed in "+where+": pods of "+k.name, pods, want)
			} else if known := k.apiVersion == "apps/v1" || k.apiVersion == "batch/v1"; reflect.DeepEqual(pods, want) != known {
				t.Errorf("without the schema, the patch of %s goes by names: %v", k.name, !known)
			}
		}
	}
}

// TestOwnLists: overrides are found by name, those of the patch first. Lists whose order counts are replaced, as kustomize would put the
// patched entries first: a wave that only gets another soak would become the first one.
func TestOwnLists(t *testing.T) {
	const head = "apiVersion: " + group + "/v1alpha1\nkind: FleetWorkload\nmetadata: {name: web, annotations: {id: web}}\n"
	got := func(components string) any {
		forget(t)
		return mustBuild(t, "overlay", map[string]string{
			"overlay/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: patch.yaml}]\n" + components,
			"overlay/web.yaml": head + `
spec:
  overrides: [{name: asia, partition: 1}, {name: all, partition: 1}, {name: eu, partition: 1}, {name: us, partition: 1}]
  placement: {groups: [{name: first, clusters: {}}, {name: second, clusters: {}}]}
  migration: {waves: [{name: canary, size: 1}, {name: rest}]}
`,
			"overlay/patch.yaml": head + `
spec:
  overrides: [{name: africa, partition: 3}, {name: all}, {name: us, labels: {remove: [a]}}, {name: asia, $patch: delete}]
  placement: {groups: [{name: second, clusters: {}}]}
  migration: {waves: [{name: rest, soak: 5m}]}
`,
		})["FleetWorkload/web"]["spec"]
	}
	const replaced = `
placement: {groups: [{name: second, clusters: {}}]}
migration: {waves: [{name: rest, soak: 5m}]}
`
	equal(t, "with the schema", got(withBoth), read(t, replaced+`
overrides: [{name: africa, partition: 3}, {name: all, partition: 1}, {name: us, partition: 1, labels: {remove: [a]}}, {name: eu, partition: 1}]
`))
	without := got(withComponent).(object)
	if overrides := without["overrides"].([]any); len(overrides) != 4 || slices.ContainsFunc(overrides, func(o any) bool { return dig(o, "name") == "eu" }) {
		t.Errorf("without the schema, the overrides are\n%s", write(t, overrides))
	}
	delete(without, "overrides")
	equal(t, "without the schema", without, read(t, replaced))
}

// TestSchemaIsComplete holds the schema against the CRD's lists with keys and against Kubernetes' lists of pods.
func TestSchemaIsComplete(t *testing.T) {
	content := func(path string) object {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return read(t, string(text))
	}
	forget(t)
	kubernetes := openapi.Schema().Definitions
	ours := content(merge + "/schema/schema.yaml")["definitions"].(object)
	for definition, theirs := range map[string]string{"Spec": "PodSpec", "Container": "Container"} {
		want := read(t, write(t, kubernetes["io.k8s.api.core.v1."+theirs]))
		lists := 0
		for name, list := range want["properties"].(object) {
			if dig(list, "x-kubernetes-patch-merge-key") == nil {
				continue
			}
			lists++
			for _, key := range []string{"type", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-list-map-keys"} {
				equal(t, key+" of "+name, dig(ours["io.fleetworkload.kustomize."+definition], "properties", name, key), dig(list, key))
			}
		}
		if lists == 0 {
			t.Errorf("Kubernetes has no list with a key in %s", definition)
		}
	}
	version := content("config/crd/bases/" + group + "_fleetworkloads.yaml")["spec"].(object)["versions"].([]any)[0]
	lists := map[string]any{}
	var find func(path string, crd any)
	find = func(path string, crd any) {
		if keys := dig(crd, "x-kubernetes-list-map-keys"); keys != nil {
			lists[path] = keys
		}
		properties, _ := dig(crd, "properties").(object)
		for name, property := range properties {
			find(strings.TrimPrefix(path+"."+name, "."), property)
		}
	}
	find("", dig(version, "schema", "openAPIV3Schema", "properties", "spec"))
	key := []any{"name"}
	equal(t, "lists with keys; say in the schema which of them a patch goes into", lists,
		object{"overrides": key, "placement.groups": key, "migration.waves": key})
	spec := dig(ours["io.fleetworkload.apps."+dig(version, "name").(string)+".FleetWorkload"], "properties", "spec", "properties")
	equal(t, "key of overrides", dig(spec, "overrides", "x-kubernetes-patch-merge-key"), "name")
	equal(t, "fields on the way to lists", slices.Sorted(maps.Keys(spec.(object))), []string{"overrides", "template"})
}

// TestSchemaTakesNothingAway: kustomize reads the schema of Kubernetes' own kinds late, or not at all when it has been given one. A process
// may build one kustomization after the other without forgetting what it was given.
func TestSchemaTakesNothingAway(t *testing.T) {
	plain := kinds[0].manifest(pod(t))
	plain["metadata"] = object{"name": "plain", "annotations": object{"id": "plain"}}
	files := map[string]string{"overlay/plain.yaml": write(t, plain), "overlay/patch.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain}
spec: {template: {spec: {containers: [{name: web, command: [serve]}]}}}
`}
	forget(t)
	for _, components := range []string{"components: [../" + merge + "]\n", ""} {
		files["overlay/kustomization.yaml"] = "resources: [plain.yaml]\npatches: [{path: patch.yaml}]\n" + components
		got := mustBuild(t, "overlay", files)
		containers := dig(got["Deployment/plain"], "spec", "template", "spec", "containers").([]any)
		if len(containers) != 2 || dig(containers[0], "image") != "shop/web:1" {
			t.Errorf("with %q, the patch leaves\n%s", components, write(t, containers))
		}
	}
}

// TestPodsWithoutMetadata: they get none, unless no other kind has something else at that path.
func TestPodsWithoutMetadata(t *testing.T) {
	bare := pod(t)
	delete(bare, "metadata")
	docs := []string{}
	for _, k := range kinds {
		docs = append(docs, write(t, fleetWorkload(t, k.name, k.manifest(bare))))
	}
	got := mustBuild(t, "overlay", map[string]string{
		"overlay/kustomization.yaml": "resources: [all.yaml]\ncommonAnnotations: {team: shop}\n" + withComponent,
		"overlay/all.yaml":           strings.Join(docs, "---\n"),
	})
	for _, k := range kinds {
		template := dig(got["FleetWorkload/"+k.name], "spec", "template")
		want := k.manifest(maps.Clone(bare))
		want["metadata"] = object{"annotations": object{"team": "shop"}}
		if k.kind == "CronJob" {
			want["spec"].(object)["jobTemplate"].(object)["metadata"] = want["metadata"]
		}
		if len(k.pods) > 2 {
			dig(want, k.pods...).(object)["metadata"] = want["metadata"]
		}
		equal(t, k.name, template, want)
	}
}

// TestOtherKinds: users tell kustomize of more paths beside the component.
func TestOtherKinds(t *testing.T) {
	worker := kind{name: "other", apiVersion: "example.io/v1", kind: "Other", pods: path("spec.worker.template")}
	got := mustBuild(t, "overlay", map[string]string{
		"overlay/kustomization.yaml": "resources: [all.yaml]\nconfigurations: [more.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b], options: {annotations: {id: settings}}}]\n" + withComponent,
		"overlay/all.yaml":           write(t, fleetWorkload(t, "other", worker.manifest(pod(t)))),
		"overlay/more.yaml": "nameReference: [{kind: ConfigMap, version: v1, fieldSpecs: [{group: " + group + ", kind: FleetWorkload, " +
			"path: spec/template/spec/worker/template/spec/containers/envFrom/configMapRef/name}]}]",
	})
	want := dig(got["ConfigMap/settings"], "metadata", "name")
	container := dig(got["FleetWorkload/other"], path("spec.template.spec.worker.template.spec")...).(object)["containers"].([]any)[0]
	if name := dig(dig(container, "envFrom").([]any)[0], "configMapRef", "name"); name != want || want == "settings" {
		t.Errorf("the pods refer to %v instead of %v", name, want)
	}
}

// TestCompanions are reached one by one.
func TestCompanions(t *testing.T) {
	for name, overlay := range map[string]string{
		"a JSON patch": `patches: [{target: {kind: FleetWorkload, name: web}, patch: "- {op: replace, path: /spec/companions/0/metadata/name, value: web-a}"}]`,
		"a replacement": "replacements: [{source: {kind: ConfigMap, name: names, fieldPath: data.name}, targets: [{select: {kind: FleetWorkload}, " +
			"fieldPaths: ['spec.companions.[kind=Service].metadata.name']}]}]\nconfigMapGenerator: [{name: names, literals: [name=web-a]}]",
	} {
		files := testdata(t)
		files["overlay/kustomization.yaml"] = "resources: [../base]\n" + overlay + "\n"
		got, err := build(t, "overlay", files)
		if err != nil {
			t.Fatal(name, err)
		}
		doc, _, _ := strings.Cut(got, "\n---\n")
		companions := dig(read(t, doc), "spec", "companions").([]any)
		if dig(companions[0], "metadata", "name") != "web-a" || dig(companions[1], "metadata", "name") != "web" {
			t.Errorf("after %s, the companions are\n%s", name, write(t, companions))
		}
	}
}

// documented are the files that a page shows: blocks of code whose first line is a comment with the file's path.
func documented(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, block := range strings.Split(string(text), "```yaml\n# ")[1:] {
		block, _, _ = strings.Cut(block, "```")
		path, content, _ := strings.Cut(block, "\n")
		if strings.HasPrefix(path, "charts/") || strings.HasPrefix(path, "helm ") {
			continue // hack/tools/chart looks at these
		}
		files[path] = strings.ReplaceAll(content, componentURL, "../"+component)
	}
	return files
}

const componentURL = "https://github.com/fleetworkload/fleetworkload//" + component

// TestDocument builds the example of the page, which shows what comes out.
func TestDocument(t *testing.T) {
	forget(t)
	files := documented(t, "docs/gitops.md")
	const result = "kustomize build prod"
	want := files[result]
	delete(files, result)
	got, err := build(t, "prod", files)
	if err != nil {
		t.Fatal(err)
	}
	if got != want || want == "" {
		t.Errorf("the page shows\n%s\nkustomize builds\n%s", want, got)
	}
}
