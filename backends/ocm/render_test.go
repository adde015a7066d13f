package ocm

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/options"
)

var update = flag.Bool("update", false, "write the golden files")

func wantedDelivery() backends.Desired {
	d := backends.Desired{ConflictPolicy: v1alpha1.ConflictPolicyFail, Division: v1alpha1.DivisionTypeDivided, Revision: "r1"}
	d.Key = backends.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "0000-1111"}
	d.Workload = cloneSets
	d.Workload.GVK = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
	d.Selectors = []v1alpha1.ClusterSelector{
		{
			Names: []string{"m1", `m"2`}, Exclude: []string{"m3"},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			Attributes: []v1alpha1.AttributeRequirement{
				{Key: v1alpha1.AttributeRegion, Operator: v1alpha1.AttributeOperatorNotIn, Values: []string{"eu"}},
			},
		},
		{Names: []string{"fallback"}},
	}
	d.Targets = []backends.Target{target("m1", 2, false), target("m2", 1, false)}
	return d
}

func target(cluster string, replicas int32, hold bool) backends.Target {
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "creationTimestamp": nil, "uid": "x", "ownerReferences": []any{},
			"labels":      map[string]any{v1alpha1.LabelUID: "0000-1111"},
			"annotations": map[string]any{v1alpha1.AnnotationRevision: "r1"},
		},
		"spec":   map[string]any{"replicas": int64(replicas)},
		"status": map[string]any{"replicas": int64(7)},
	}}
	mode := backends.ModeOwn
	if hold {
		mode = backends.ModeHold
	}
	return backends.Target{Cluster: cluster, Replicas: &replicas, Manifest: manifest, Mode: mode}
}

func TestRenderGolden(t *testing.T) {
	objects, err := Render(wantedDelivery(), Options{ClusterSets: []string{"global"}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, obj := range objects {
		data, err := yaml.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(data)
		if len(obj.GetName()) > 63 {
			t.Errorf("%s is too long", obj.GetName())
		}
		strictly(t, obj)
	}
	golden := filepath.Join("testdata", "render.yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("run with -update if it is meant (-want +got):\n%s", diff)
	}
}

// strictly checks that the object has only fields that OCM 1.2 has.
func strictly(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	var err error
	switch obj.GetKind() {
	case "Placement":
		_, err = options.Option{Field: "spec"}.Merge(spec, nil, &clusterv1beta1.PlacementSpec{})
	case "ManifestWork":
		_, err = options.Option{Field: "spec"}.Merge(spec, nil, &workv1.ManifestWorkSpec{})
	}
	if err != nil {
		t.Error(err)
	}
}

func TestPlacementName(t *testing.T) {
	d := wantedDelivery()
	name := func(change func(*backends.Desired)) string {
		copied := d
		copied.Selectors = slices.Clone(d.Selectors)
		if change != nil {
			change(&copied)
		}
		placement, err := renderPlacement(copied.Query, Options{}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		return placement.GetName()
	}
	first := name(nil)
	if name(nil) != first {
		t.Error("the name changes by itself")
	}
	for what, change := range map[string]func(*backends.Desired){
		"spec":        func(d *backends.Desired) { d.Selectors[0].Names = []string{"m1"} },
		"UID":         func(d *backends.Desired) { d.Key.UID = "other" },
		"group":       func(d *backends.Desired) { d.Selectors = d.Selectors[:1] },
		"name beyond": func(d *backends.Desired) { d.Key.Name = strings.Repeat("a.", 31) + "b" },
	} {
		if other := name(change); other == first || len(other) > 63 || strings.Contains(other, ".-") {
			t.Errorf("another %s gives %s", what, other)
		}
	}
	if name(func(d *backends.Desired) { d.Division = v1alpha1.DivisionTypeDuplicated }) != first {
		t.Error("what does not choose clusters changes the name")
	}
}

func TestRefusals(t *testing.T) {
	option := func(placement, work string) func(*backends.Desired) {
		return func(d *backends.Desired) {
			d.Options = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{}}
			if placement != "" {
				d.Options.OCM.Placement = &runtime.RawExtension{Raw: []byte(placement)}
			}
			if work != "" {
				d.Options.OCM.ManifestWork = &runtime.RawExtension{Raw: []byte(work)}
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*backends.Desired)
		code   backends.Code
		says   string
	}{
		"selector": {func(d *backends.Desired) {
			d.Selectors[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"no good": ""}}
		}, backends.CodeRejected, "spec.placement"},
		"no name":                     {func(d *backends.Desired) { d.Targets[0].Manifest.SetName("") }, backends.CodeInvalidTemplate, "m1"},
		"predicates":                  {option(`{"predicates": []}`, ""), backends.CodeInvalidOptions, "placement.predicates"},
		"spread policy":               {option(`{"spreadPolicy": {}}`, ""), backends.CodeInvalidOptions, "spreadPolicy"},
		"unknown field":               {option(`{"sortBy": "Score"}`, ""), backends.CodeInvalidOptions, "sortBy"},
		"tolerations":                 {option(`{"tolerations": []}`, ""), backends.CodeInvalidOptions, "spec.placement.tolerations"},
		"number of clusters":          {option(`{"numberOfClusters": 2}`, ""), backends.CodeInvalidOptions, "spec.placement.numberOfClusters"},
		"wrong type":                  {option(`{"clusterSets": "two"}`, ""), backends.CodeInvalidOptions, "placement"},
		"no object":                   {option(`[]`, ""), backends.CodeInvalidOptions, "placement"},
		"manifests":                   {option("", `{"workload": {}}`), backends.CodeInvalidOptions, "workload"},
		"delete option":               {option("", `{"deleteOption": {"propagationPolicy": "Foreground"}}`), backends.CodeInvalidOptions, "deletionPolicy"},
		"strategy":                    {option("", `{"manifestConfigs": [{"updateStrategy": {"type": "Update"}}]}`), backends.CodeInvalidOptions, "ServerSideApply"},
		"no strategy":                 {option("", `{"manifestConfigs": [{"updateStrategy": null}]}`), backends.CodeInvalidOptions, "updateStrategy"},
		"strategy's manager":          {option("", `{"manifestConfigs": [{"updateStrategy": {"serverSideApply": {"fieldManager": "me"}}}]}`), backends.CodeInvalidOptions, "fieldManager"},
		"ignored metadata":            {option("", ignoring(`.metadata.annotations`)), backends.CodeInvalidOptions, "ignoreFields"},
		"ignored by a template":       {option("", ignoring(`.spec.x}{.metadata.annotations`)), backends.CodeInvalidOptions, "ignoreFields"},
		"ignored by descent":          {option("", ignoring(`.spec..metadata`)), backends.CodeInvalidOptions, "ignoreFields"},
		"the whole spec ignored":      {option("", ignoring(`.spec`)), backends.CodeInvalidOptions, "ignoreFields"},
		"nothing ignored":             {option("", `{"manifestConfigs": [{"updateStrategy": {"serverSideApply": {"ignoreFields": [null]}}}]}`), backends.CodeInvalidOptions, "ignoreFields"},
		"no entry":                    {option("", `{"manifestConfigs": [null]}`), backends.CodeInvalidOptions, "exactly one entry"},
		"ignored by another spelling": {option("", ignoring(`$['metadata']`)), backends.CodeInvalidOptions, "ignoreFields"},
		"executor":                    {option("", `{"executor": {"subject": {"type": "ServiceAccount"}}}`), backends.CodeInvalidOptions, "spec.backendOptions.ocm.executor"},
		"executor without account": {func(d *backends.Desired) {
			d.Options = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{Executor: v1alpha1.ExecutorServiceAccount}}
		}, backends.CodeInvalidOptions, "set spec.serviceAccountName"},
		"another letter case":  {option("", `{"Workload": {}}`), backends.CodeInvalidOptions, "Workload"},
		"manifests to nothing": {option("", `{"workload": null}`), backends.CodeInvalidOptions, "spec.template"},
		"freezing condition":   {option("", `{"manifestConfigs": [{"conditionRules": [{"condition": "Complete", "type": "CEL"}]}]}`), backends.CodeInvalidOptions, "freeze"},
		"another object":       {option("", `{"manifestConfigs": [{"resourceIdentifier": {"resource": "pods"}}]}`), backends.CodeInvalidOptions, "resourceIdentifier"},
		"taken feedback name":  {option("", `{"manifestConfigs": [{"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "readyReplicas", "path": ".x"}]}]}]}`), backends.CodeInvalidOptions, "readyReplicas"},
		"well-known feedback":  {option("", `{"manifestConfigs": [{"feedbackRules": [{"type": "WellKnownStatus"}]}]}`), backends.CodeInvalidOptions, "JSONPaths"},
		"work's unknown":       {option("", `{"manifestConfigs": [{"jsonPointers": []}]}`), backends.CodeInvalidOptions, "jsonPointers"},
	} {
		t.Run(name, func(t *testing.T) {
			d := wantedDelivery()
			c.change(&d)
			_, err := Render(d, Options{})
			if backends.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func ignoring(path string) string {
	return `{"manifestConfigs": [{"updateStrategy": {"serverSideApply": {"ignoreFields": [{"jsonPaths": ["` + path + `"]}]}}}]}`
}

func TestOptions(t *testing.T) {
	d := wantedDelivery()
	d.Options = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{
		Placement: &runtime.RawExtension{Raw: []byte(`{"prioritizerPolicy": null,
			"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "50%"}}}`)},
		ManifestWork: &runtime.RawExtension{Raw: []byte(`{
			"manifestConfigs": [{
				"updateStrategy": {"serverSideApply": {"ignoreFields": [{"jsonPaths": [".spec.replicas"]}]}},
				"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "more", "path": ".status.more"}]}],
				"conditionRules": [{"condition": "Progressing", "type": "CEL", "celExpressions": ["true"]}]}]}`)},
	}}
	objects, err := Render(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	placement, work := objects[0], objects[len(objects)-1]
	strictly(t, placement)
	strictly(t, work)
	text := func(obj *unstructured.Unstructured) string {
		data, _ := json.Marshal(obj.Object["spec"])
		return string(data)
	}
	for _, want := range []string{`"tolerations":[{"operator":"Exists"}]`, `"clustersPerDecisionGroup":"50%"`} {
		if !strings.Contains(text(placement), want) {
			t.Errorf("the Placement lacks %s: %s", want, text(placement))
		}
	}
	if strings.Contains(text(placement), "prioritizerPolicy") {
		t.Error("null does not remove")
	}
	for _, want := range []string{
		`"fw:uid"`, `"more"`, `"Progressing"`, `"condition":"OnSpokePresent"`, `"force":false`, `"fieldManager":"work-agent"`,
		`"propagationPolicy":"Orphan"`,
	} {
		if !strings.Contains(text(work), want) {
			t.Errorf("the ManifestWork lacks %s: %s", want, text(work))
		}
	}
}

// TestVariants: nothing but strategy, delete option and marks differ, so that no manifest in between is ever delivered.
func TestVariants(t *testing.T) {
	objects, err := Render(wantedDelivery(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	work := objects[len(objects)-1]
	if diff := cmp.Diff(work, variant(work, deliver)); diff != "" {
		t.Errorf("what is delivered is not what is rendered:\n%s", diff)
	}
	for _, m := range []move{probe, claiming, disown} {
		v := variant(work, m)
		strictly(t, v)
		if diff := cmp.Diff(firstManifest(work), firstManifest(v)); diff != "" {
			t.Errorf("%s:\n%s", m.strategy, diff)
		}
		if v.GetAnnotations()[annotationHash] == work.GetAnnotations()[annotationHash] {
			t.Errorf("%s+%s has the same hash", m.strategy, m.deletion)
		}
	}
}

// TestExecutor: agents write as the account what is the FleetWorkload's alone, and let go of it as themselves.
func TestExecutor(t *testing.T) {
	d := wantedDelivery()
	d.Options = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{Executor: v1alpha1.ExecutorServiceAccount}}
	d.ServiceAccount = "deployer"
	settings := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop"},
	}}
	shared := settings.DeepCopy()
	shared.SetName("shared")
	d.Companions = []backends.Companion{{Object: settings, Resource: "configmaps"}, {Object: shared, Resource: "configmaps", Shared: true}}
	objects, err := Render(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	executorOf := func(work *unstructured.Unstructured) any {
		spec, _ := work.Object["spec"].(map[string]any)
		return spec["executor"]
	}
	deployer := map[string]any{"subject": map[string]any{
		"type": "ServiceAccount", "serviceAccount": map[string]any{"namespace": "shop", "name": "deployer"},
	}}
	for _, obj := range objects {
		if obj.GroupVersionKind() != manifestWorkGVK {
			continue
		}
		strictly(t, obj)
		var want any
		if obj.GetLabels()[labelPrerequisite] == "" && !companions.IsShared(obj) {
			want = deployer
		}
		if diff := cmp.Diff(want, executorOf(obj)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", obj.GetName(), diff)
		}
	}
	work := objects[len(objects)-1]
	for name, c := range map[string]struct {
		m    move
		want any
	}{
		"asked":                {probe, deployer},
		"written":              {deliver.byForce(), deployer},
		"given up":             {disown, nil},
		"claimed":              {claiming, nil},
		"asked before it goes": {move{strategy: probe.strategy, deletion: probe.deletion, removing: "Delete"}, nil},
	} {
		if diff := cmp.Diff(c.want, executorOf(variant(work, c.m))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUpToDate(t *testing.T) {
	objects, err := Render(wantedDelivery(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	work := objects[len(objects)-1]
	if !upToDate(work.DeepCopy(), work) {
		t.Error("the same is not up to date")
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"a field added to the manifest": func(u *unstructured.Unstructured) {
			firstManifest(u)["spec"].(map[string]any)["paused"] = true
		},
		"another value":      func(u *unstructured.Unstructured) { firstManifest(u)["spec"].(map[string]any)["replicas"] = int64(9) },
		"held":               func(u *unstructured.Unstructured) { annotate(u, annotationHeld, "true") },
		"being removed":      func(u *unstructured.Unstructured) { annotate(u, annotationRemoving, "Delete") },
		"rendered otherwise": func(u *unstructured.Unstructured) { annotate(u, annotationHash, "x") },
	} {
		live := work.DeepCopy()
		change(live)
		if upToDate(live, work) {
			t.Errorf("%s: passes for up to date", name)
		}
	}
}

func TestClusterScoped(t *testing.T) {
	d := wantedDelivery()
	d.Workload.Namespace = ""
	objects, err := Render(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if strings.HasPrefix(obj.GetName(), "fleetworkload-ns-") {
			t.Error("a cluster-scoped workload needs no namespace")
		}
	}
	if _, found := firstManifest(objects[len(objects)-1])["metadata"].(map[string]any)["namespace"]; found {
		t.Error("the agent would ask for a namespaced resource")
	}
}

func TestPrerequisites(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, group string
		want             int
	}{
		"Deployment":                     {"shop", "apps", 1},
		"Deployment in default":          {"default", "apps", 0},
		"CloneSet in a system namespace": {"kube-system", "apps.kruise.io", 1},
		"CloneSet":                       {"shop", "apps.kruise.io", 2},
	} {
		w := backends.Workload{GVK: schema.GroupVersionKind{Group: c.group}, Resource: "things", Namespace: c.namespace}
		works := renderPrerequisites("m1", w)
		if len(works) != c.want {
			t.Errorf("%s: %d", name, len(works))
		}
		for i, work := range works {
			strictly(t, work)
			if work.GetName() != prerequisiteNames(c.namespace, c.group, "things")[i] {
				t.Errorf("%s: %s", name, work.GetName())
			}
		}
	}
}
