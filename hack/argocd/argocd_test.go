// Package argocd tests what Argo CD is to know of our kind and of Open Cluster Management's, in the Lua virtual machine that it uses.
// The files have the layout and the test format of its repository (resource_customizations).
package argocd

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const (
	root          = "../../config/argocd/resource_customizations"
	fleetWorkload = root + "/apps.fleetworkload.io/FleetWorkload"
)

var update = flag.Bool("update", false, "write config/argocd/argocd-cm.yaml anew")

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type healthTests struct {
	Tests []struct {
		HealthStatus health `json:"healthStatus"`
		InputPath    string `json:"inputPath"`
	} `json:"tests"`
}

type actionTests struct {
	DiscoveryTests []struct {
		InputPath string `json:"inputPath"`
		Result    []struct {
			Name     string `json:"name"`
			Disabled bool   `json:"disabled"`
		} `json:"result"`
	} `json:"discoveryTests"`
	ActionTests []struct {
		Action             string `json:"action"`
		InputPath          string `json:"inputPath"`
		ExpectedOutputPath string `json:"expectedOutputPath"`
	} `json:"actionTests"`
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// run gives a script the object as the global obj, with the libraries that Argo CD opens for it, and decodes what it returns.
func run(t *testing.T, script string, obj map[string]any, into any) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.PreloadModule("os", safeOS)
	l.SetGlobal("obj", luajson.DecodeValue(l, obj))
	if err := l.DoFile(script); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	out, err := luajson.Encode(l.Get(-1))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	if err := yaml.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

// safeOS is what Argo CD leaves of the library os (util/lua/oslib_safe.go): time and date, which it has copied from the virtual machine.
func safeOS(l *lua.LState) int {
	lua.OpenOs(l)
	full, safe := l.CheckTable(-1), l.NewTable()
	for _, name := range []string{"time", "date"} {
		safe.RawSetString(name, full.RawGetString(name))
	}
	l.Push(safe)
	return 1
}

func object(t *testing.T, path string) map[string]any {
	t.Helper()
	obj := map[string]any{}
	read(t, path, &obj)
	return obj
}

func TestHealth(t *testing.T) {
	scripts, err := filepath.Glob(root + "/*/*/health.lua")
	if err != nil || len(scripts) != 3 {
		t.Fatalf("%v, %v", scripts, err)
	}
	for _, script := range scripts {
		dir := filepath.Dir(script)
		var tests healthTests
		read(t, dir+"/health_test.yaml", &tests)
		for _, test := range tests.Tests {
			t.Run(filepath.Base(dir)+"/"+test.InputPath, func(t *testing.T) {
				input := filepath.Join(dir, test.InputPath)
				read(t, input, typed(t, filepath.Base(dir))) // a fixture has fields that there are
				var got health
				run(t, script, object(t, input), &got)
				if diff := cmp.Diff(test.HealthStatus, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// typed is an empty object of a kind.
func typed(t *testing.T, kind string) any {
	t.Helper()
	made, is := map[string]any{
		"FleetWorkload": &v1alpha1.FleetWorkload{}, "ManifestWork": &workv1.ManifestWork{}, "ManifestWorkReplicaSet": &workv1alpha1.ManifestWorkReplicaSet{},
	}[kind]
	if !is {
		t.Fatalf("no type is known of %s", kind)
	}
	return made
}

// TestEveryFixtureIsTried: none lies about that no test reads.
func TestEveryFixtureIsTried(t *testing.T) {
	for _, dir := range []string{fleetWorkload, root + "/work.open-cluster-management.io/ManifestWork", root + "/work.open-cluster-management.io/ManifestWorkReplicaSet"} {
		tried := text(t, dir+"/health_test.yaml")
		if actions, err := os.ReadFile(dir + "/actions/action_test.yaml"); err == nil {
			tried += string(actions)
		}
		files, err := filepath.Glob(dir + "/testdata/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			if name := "testdata/" + filepath.Base(file) + "\n"; !strings.Contains(tried, name) {
				t.Errorf("%s is in no test", file)
			}
		}
	}
}

// elsewhere are the reasons that other conditions or events have, and Ready never.
var elsewhere = map[string]bool{
	v1alpha1.ReasonIndependent: true, v1alpha1.ReasonJoinedSince: true, v1alpha1.ReasonChangedOnCluster: true, v1alpha1.ReasonPutBackOnCluster: true,
	v1alpha1.ReasonReconciled: true, v1alpha1.ReasonNotStalled: true, v1alpha1.ReasonScheduled: true, v1alpha1.ReasonApplied: true, v1alpha1.ReasonHealthy: true,
}

// TestEveryReasonHasAFixture: there is a fixture for each reason that Ready can have.
func TestEveryReasonHasAFixture(t *testing.T) {
	var tests healthTests
	read(t, fleetWorkload+"/health_test.yaml", &tests)
	shown := map[string]bool{}
	for _, test := range tests.Tests {
		var fw v1alpha1.FleetWorkload
		read(t, filepath.Join(fleetWorkload, test.InputPath), &fw)
		if ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			shown[ready.Reason] = true
		}
	}
	reasons := regexp.MustCompile(`(?m)^\tReason\w+ += "(\w+)"$`).FindAllStringSubmatch(text(t, "../../api/v1alpha1/conditions.go"), -1)
	if len(reasons) < len(shown) {
		t.Fatalf("%d reasons were read, and %d have fixtures", len(reasons), len(shown))
	}
	for _, reason := range reasons {
		if name := reason[1]; shown[name] == elsewhere[name] {
			t.Errorf("reason %s: a fixture of Ready has it: %t; only other conditions or events do: %t", name, shown[name], elsewhere[name])
		}
	}
}

// TestAgreesWithKstatus: Argo CD and what reads by kstatus, such as Flux, call the same objects ready, and none that waits for a person
// one that will go on by itself.
func TestAgreesWithKstatus(t *testing.T) {
	files, err := filepath.Glob(fleetWorkload + "/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		var typed v1alpha1.FleetWorkload // a fixture is one that the API server could have
		read(t, file, &typed)
		obj := object(t, file)
		var got health
		run(t, fleetWorkload+"/health.lua", obj, &got)
		result, err := status.Compute(&unstructured.Unstructured{Object: normal(t, obj)})
		if err != nil {
			t.Fatal(err)
		}
		if ready := got.Status == "Healthy"; ready != (result.Status == status.CurrentStatus) && typed.Status.ObservedGeneration != nil {
			t.Errorf("%s: %s here, %s by kstatus", file, got.Status, result.Status)
		}
		if result.Status == status.FailedStatus && got.Status == "Progressing" {
			t.Errorf("%s: Progressing here, Failed by kstatus", file)
		}
	}
}

// normal has whole numbers as kstatus expects them.
func normal(t *testing.T, obj map[string]any) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = yaml.YAMLToJSON(raw); err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

func TestActions(t *testing.T) {
	var tests actionTests
	read(t, fleetWorkload+"/actions/action_test.yaml", &tests)
	for _, test := range tests.DiscoveryTests {
		t.Run("discovery/"+test.InputPath, func(t *testing.T) {
			var got map[string]struct {
				Disabled bool `json:"disabled"`
			}
			run(t, fleetWorkload+"/actions/discovery.lua", object(t, filepath.Join(fleetWorkload, test.InputPath)), &got)
			if len(got) != len(test.Result) {
				t.Errorf("got %d actions, want %d", len(got), len(test.Result))
			}
			for _, want := range test.Result {
				if action, is := got[want.Name]; !is || action.Disabled != want.Disabled {
					t.Errorf("%s: there %t, disabled %t, want %t", want.Name, is, action.Disabled, want.Disabled)
				}
			}
		})
	}
	for _, test := range tests.ActionTests {
		t.Run(test.Action, func(t *testing.T) {
			got := act(t, test.Action, test.InputPath)
			if diff := cmp.Diff(object(t, filepath.Join(fleetWorkload, test.ExpectedOutputPath)), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func act(t *testing.T, action, input string) map[string]any {
	t.Helper()
	got := map[string]any{}
	run(t, filepath.Join(fleetWorkload, "actions", action, "action.lua"), object(t, filepath.Join(fleetWorkload, input)), &got)
	return got
}

// TestRestart: what it writes is the time, in UTC wherever Argo CD runs, so that no file can say it.
func TestRestart(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("an hour east", 60*60)
	defer func() { time.Local = local }()
	before := time.Now().Truncate(time.Second)
	got := act(t, "restart", "testdata/ready.yaml")
	at, _, err := unstructured.NestedString(got, "spec", "template", "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	if err != nil {
		t.Fatal(err)
	}
	if when, err := time.Parse(time.RFC3339, at); err != nil || when.Before(before) || when.After(time.Now()) {
		t.Errorf("%q is not now, which is %s: %v", at, before.UTC().Format(time.RFC3339), err)
	}
}

// TestConfigMap: config/argocd/argocd-cm.yaml says the same as the files, in the words of Argo CD's configuration.
func TestConfigMap(t *testing.T) {
	data := map[string]string{}
	for _, kind := range []string{
		"apps.fleetworkload.io/FleetWorkload", "work.open-cluster-management.io/ManifestWork", "work.open-cluster-management.io/ManifestWorkReplicaSet",
	} {
		data[key("health", kind)] = text(t, filepath.Join(root, kind, "health.lua"))
	}
	type definition struct {
		Name string `json:"name"`
		Lua  string `json:"action.lua"`
	}
	actions := struct {
		Discovery   string       `json:"discovery.lua"`
		Definitions []definition `json:"definitions"`
	}{Discovery: text(t, fleetWorkload+"/actions/discovery.lua")}
	scripts, err := filepath.Glob(fleetWorkload + "/actions/*/action.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		actions.Definitions = append(actions.Definitions, definition{Name: filepath.Base(filepath.Dir(script)), Lua: text(t, script)})
	}
	raw, err := yaml.Marshal(actions)
	if err != nil {
		t.Fatal(err)
	}
	data[key("actions", "apps.fleetworkload.io/FleetWorkload")] = string(raw)
	raw, err = yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{"name": "argocd-cm", "labels": map[string]any{"app.kubernetes.io/part-of": "argocd"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte("# Generated by go test ./hack/argocd -update from resource_customizations. DO NOT EDIT.\n"), raw...)
	const path = "../../config/argocd/argocd-cm.yaml"
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(t, path); !bytes.Equal([]byte(got), want) {
		t.Errorf("%s is not what the files say: go test ./hack/argocd -update", path)
	}
}

func key(what, kind string) string {
	return fmt.Sprintf("resource.customizations.%s.%s_%s", what, filepath.Dir(kind), filepath.Base(kind))
}

func text(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
