package interpreter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// karmadaCase is a test case of Karmada's own interpreters
// (pkg/resourceinterpreter/default/thirdparty/resourcecustomizations/<group>/<version>/<kind>/testdata).
type karmadaCase struct {
	Name          string                     `json:"name"`
	DesiredObj    *unstructured.Unstructured `json:"desiredObj"`
	ObservedObj   *unstructured.Unstructured `json:"observedObj"`
	StatusItems   []karmadaItem              `json:"statusItems"`
	InputReplicas int64                      `json:"inputReplicas"`
	Operation     string                     `json:"operation"`
	Output        map[string]json.RawMessage `json:"output"`
}

type karmadaItem struct {
	ClusterName string          `json:"clusterName"`
	Status      json.RawMessage `json:"status"`
}

// difference is where we say something else than a test case of Karmada, and why ours is right. docs/health.md has the
// list.
type difference struct{ kind, operation, name, why string }

const (
	whyUnreal    = "The case is about an object that OpenKruise does not have: its UnitedDeployment has no status.availableReplicas, and its pod template is below spec.template.<kind>Template."
	whyParallel  = "Parallelism is a cap on pods at work, not a number of replicas: dividing it would run the whole job on every cluster, slower."
	whyNothing   = "No cluster has reported, so nothing is known. Karmada writes zeros, and takes the newest generation for observed."
	whyActive    = "The list of active jobs of all clusters may outgrow what etcd takes, and its names say nothing outside their cluster."
	whyUnwatched = "The status has no observedGeneration, so it may be of any generation."
	whyNoCount   = "The status lacks replicas, which the API always has: no pod is there."
	whyPhase     = "The status lacks the phase, which the API always has: the job has not started."
	whyTimes     = "Start and end are known: the first start, and the last end once all have one."
	whyComplete  = "The type of the condition is Complete (kruise-api apps/v1alpha1, JobComplete)."
	whyOmitted   = "updatedReadyPods is left out of a status when it is 0, so absence is 0."
)

var differences = []difference{
	{"AdvancedCronJob", "AggregateStatus", "AdvancedCronJob with multiple clusters", whyActive},
	{"AdvancedCronJob", "AggregateStatus", "AdvancedCronJob with multiple active jobs per cluster", whyActive},
	{"AdvancedCronJob", "AggregateStatus", "AdvancedCronJob with partial data", whyActive},
	{"AdvancedCronJob", "AggregateStatus", "AdvancedCronJob with single cluster", whyActive},
	{"BroadcastJob", "AggregateStatus", "BroadcastJob with two status items", whyTimes},
	{"BroadcastJob", "AggregateStatus", "BroadcastJob completed in all clusters", whyComplete},
	{"BroadcastJob", "InterpretHealth", "BroadcastJob healthy when active or succeeded exists", whyPhase},
	{"BroadcastJob", "InterpretReplica", "BroadcastJob with parallelism set to 3", whyParallel},
	{"BroadcastJob", "InterpretReplica", "BroadcastJob without parallelism", whyParallel},
	{"BroadcastJob", "ReviseReplica", "BroadcastJob revise replica should update parallelism", whyParallel},
	{"CloneSet", "AggregateStatus", "CloneSet with no status items", whyNothing},
	{"DaemonSet", "AggregateStatus", "DaemonSet: aggregate status with no members", whyNothing},
	{"SidecarSet", "AggregateStatus", "SidecarSet with two status items", whyOmitted},
	{"SidecarSet", "InterpretHealth", "SidecarSet interpreting health test", whyUnwatched},
	{"SidecarSet", "InterpretHealth", "SidecarSet healthy when no pods are matched", whyUnwatched},
	{"StatefulSet", "AggregateStatus", "StatefulSet with no status items", whyNothing},
	{"StatefulSet", "InterpretHealth", "StatefulSet healthy when rollout and availability are complete", whyNoCount},
	{"UnitedDeployment", "AggregateStatus", "UnitedDeployment with two status items", whyUnreal},
	{"UnitedDeployment", "AggregateStatus", "UnitedDeployment with mixed observed generations", whyUnreal},
	{"UnitedDeployment", "AggregateStatus", "UnitedDeployment with no status items", whyNothing},
	{"UnitedDeployment", "InterpretDependency", "UnitedDeployment with configmap and secret dependency", whyUnreal},
	{"Workflow", "InterpretReplica", "Workflow with parallelism set to 2", whyParallel},
	{"Workflow", "InterpretReplica", "Workflow with parallelism unset", whyParallel},
	{"Workflow", "ReviseReplica", "Workflow revise replica should update parallelism", whyParallel},
}

// fixtureDir finds Karmada's test data in the module cache.
func fixtureDir(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/karmada-io/karmada").Output()
	if err != nil {
		t.Fatalf("find Karmada's module: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "pkg/resourceinterpreter/default/thirdparty/resourcecustomizations")
}

func TestKarmadaFixtures(t *testing.T) {
	root := fixtureDir(t)
	cases := 0
	used := map[difference]bool{}
	for _, kind := range registry(t).Kinds() {
		dir := filepath.Join(root, kind.Group, kind.Version, kind.Definition.Kind, "testdata")
		files, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, c := range readCases(t, filepath.Join(dir, file.Name())) {
				cases++
				problem := compare(kind, c)
				i := slices.IndexFunc(differences, func(d difference) bool {
					return d.kind == kind.Definition.Kind && d.operation == c.Operation && d.name == c.Name
				})
				switch {
				case problem == "" && i >= 0:
					t.Errorf("%s %s %q passes; take it off the list of differences", kind.Definition.Kind, c.Operation, c.Name)
				case problem != "" && i < 0:
					t.Errorf("%s %s %q: %s", kind.Definition.Kind, c.Operation, c.Name, problem)
				case i >= 0:
					used[differences[i]] = true
				}
			}
		}
	}
	if cases < 60 {
		t.Errorf("only %d test cases were found under %s", cases, root)
	}
	for _, d := range differences {
		if !used[d] {
			t.Errorf("no such test case: %+v", d)
		}
	}
	t.Logf("%d test cases of Karmada, %d differences", cases, len(differences))
}

func readCases(t *testing.T, path string) []karmadaCase {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []karmadaCase
	decoder := kyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var c karmadaCase
		err := decoder.Decode(&c)
		if errors.Is(err, io.EOF) {
			return cases
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if c.Operation != "" {
			cases = append(cases, c)
		}
	}
}

// compare returns what is different, or "".
func compare(kind *Kind, c karmadaCase) string {
	var err error
	switch c.Operation {
	case "InterpretReplica":
		err = compareReplica(kind, c)
	case "ReviseReplica":
		err = compareRevise(kind, c)
	case "InterpretHealth":
		err = compareHealth(kind, c)
	case "InterpretDependency":
		err = compareDependencies(kind, c)
	case "AggregateStatus":
		err = compareAggregate(kind, c)
	case "InterpretStatus", "Retain":
		// What is reflected and retained is Lua's alone.
	default:
		err = fmt.Errorf("operation %s is not known", c.Operation)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func compareReplica(kind *Kind, c karmadaCase) error {
	var want int32
	if err := json.Unmarshal(c.Output["replica"], &want); err != nil {
		return err
	}
	got, given, err := Replicas(kind, c.DesiredObj)
	if err == nil && !given && len(kind.ReplicasPath()) > 0 {
		got, err = DefaultReplicas(kind, c.DesiredObj)
	}
	if err != nil || got != want {
		return fmt.Errorf("replicas %d, %w, want %d", got, err, want)
	}
	return nil
}

func compareRevise(kind *Kind, c karmadaCase) error {
	var want map[string]any
	if err := json.Unmarshal(c.Output["revised"], &want); err != nil {
		return err
	}
	got := c.DesiredObj.DeepCopy()
	if err := SetReplicas(kind, got, int32(c.InputReplicas)); err != nil {
		return err
	}
	return sameJSON(got.Object, want)
}

func sameJSON(a, b any) error {
	normal := func(v any) any {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		var out any
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		return out
	}
	if diff := cmp.Diff(normal(b), normal(a)); diff != "" {
		return errors.New(diff)
	}
	return nil
}

func compareHealth(kind *Kind, c karmadaCase) error {
	var want bool
	if err := json.Unmarshal(c.Output["healthy"], &want); err != nil {
		return err
	}
	s, err := kind.State(ReportOf(c.ObservedObj))
	if got := s.Health == healthy; err != nil || got != want {
		return fmt.Errorf("%s %s %q, want healthy: %t", s.Health, s.Reason, s.Message, want)
	}
	return nil
}

func compareDependencies(kind *Kind, c karmadaCase) error {
	var refs []struct{ APIVersion, Kind, Namespace, Name string }
	if err := json.Unmarshal(c.Output["dependencies"], &refs); err != nil {
		return err
	}
	want := map[string]bool{}
	for _, r := range refs {
		want[r.APIVersion+" "+r.Kind+" "+r.Namespace+"/"+r.Name] = true
	}
	found, err := Dependencies(kind, c.DesiredObj)
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, d := range found {
		got[d.GroupVersion().String()+" "+d.Kind+" "+d.Namespace+"/"+d.Name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// compareAggregate compares the fields that combine, and observedGeneration.
func compareAggregate(kind *Kind, c karmadaCase) error {
	var want struct {
		Status map[string]any `json:"status"`
	}
	if c.Output["aggregatedStatus"] == nil {
		return nil // the case expects no more than no error
	}
	if err := json.Unmarshal(c.Output["aggregatedStatus"], &want); err != nil {
		return err
	}
	statuses := make([]map[string]any, len(c.StatusItems))
	for i, item := range c.StatusItems {
		if item.Status == nil {
			continue
		}
		if err := utiljson.Unmarshal(item.Status, &statuses[i]); err != nil {
			return err
		}
	}
	fleet := kind.Aggregate(statuses)
	got := comparable(fleet.Status())
	if v, found, _ := unstructured.NestedInt64(c.DesiredObj.Object, "status", "observedGeneration"); found {
		got["observedGeneration"] = v
	}
	if fleet.Observed(c.DesiredObj.GetGeneration()) && want.Status["observedGeneration"] != nil {
		got["observedGeneration"] = c.DesiredObj.GetGeneration()
	}
	return sameJSON(got, comparable(want.Status))
}

// comparable leaves out what is another way to say the same: "" for what no cluster reported, and the words of
// conditions.
func comparable(status map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range status {
		if v == "" {
			continue
		}
		out[name] = v
	}
	list, _ := status["conditions"].([]any)
	var conditions []any
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			conditions = append(conditions, map[string]any{"type": c["type"], "status": c["status"]})
		}
	}
	if list != nil {
		out["conditions"] = conditions
	}
	return out
}

func TestGenericCompiles(t *testing.T) {
	k := registry(t).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Gadget"})
	if k.Known() || k.Resource != "gadgets" {
		t.Errorf("got %+v", k.Definition)
	}
}
