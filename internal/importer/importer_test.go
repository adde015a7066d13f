package importer_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/crdcheck"
	"github.com/fleetworkload/fleetworkload/internal/importer"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// fleet are three clusters, as in cmd/kubectl-fw/testdata/inventory.yaml.
var fleet = backends.Fleet{Clusters: []backends.Cluster{
	{Name: "member1", Labels: map[string]string{"env": "prod", "tier": "a"}, Attributes: at("aws", "eu-west"), Ready: "True"},
	{Name: "member2", Labels: map[string]string{"env": "prod", "tier": "b"}, Attributes: at("aws", "eu-west"), Ready: "True"},
	{Name: "member3", Labels: map[string]string{"env": "staging", "tier": "a"}, Attributes: at("gcp", "us-east"), Ready: "True"},
}}

func at(provider, region string) map[v1alpha1.Attribute]string {
	return map[v1alpha1.Attribute]string{v1alpha1.AttributeProvider: provider, v1alpha1.AttributeRegion: region, v1alpha1.AttributeZone: region + "-1"}
}

func request(tb testing.TB) importer.Request {
	tb.Helper()
	kinds, err := interpreter.New()
	if err != nil {
		tb.Fatal(err)
	}
	return importer.Request{Backend: "here", Home: "home", Kinds: kinds, Fleet: fleet}
}

// read returns the objects of YAML documents; what is no map is left out.
func read(raw []byte) (objects []*unstructured.Unstructured, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return objects, err
		}
		asJSON, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return objects, err
		}
		var content any
		if err := utiljson.Unmarshal(asJSON, &content); err != nil {
			return objects, err
		}
		if object, is := content.(map[string]any); is {
			objects = append(objects, &unstructured.Unstructured{Object: object})
		}
	}
}

// importAs imports as the prefix of a name says. In plain ones, a document {cluster: NAME} stands before the objects of each.
func importAs(r importer.Request, name string, objects []*unstructured.Unstructured) (importer.Result, error) {
	switch source, _, _ := strings.Cut(name, "-"); source {
	case "karmada":
		return importer.Karmada(r, objects)
	case "ocm":
		return importer.OCM(r, objects)
	default:
		byCluster, cluster := map[string][]*unstructured.Unstructured{}, ""
		for _, obj := range objects {
			if named, is := obj.Object["cluster"].(string); is {
				cluster = named
				continue
			}
			byCluster[cluster] = append(byCluster[cluster], obj)
		}
		return importer.Plain(r, byCluster)
	}
}

// TestImport shows what becomes of each source, to be read. What is printed is admitted by the CRD, and understood by the operator's code.
func TestImport(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	schemas := crdcheck.LoadFile(t, "../../config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := read(raw)
			if err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprint(contents(objects))
			result, err := importAs(request(t), name, objects)
			if after := fmt.Sprint(contents(objects)); before != after {
				t.Errorf("the objects were changed:\n%s", cmp.Diff(before, after))
			}
			if err != nil {
				compareGolden(t, name, "error: "+err.Error()+"\n")
				return
			}
			compareGolden(t, name, picture(t, result))
			if _, err := schemas.Admit(t.Context(), asObject(t, result.FleetWorkload)); err != nil {
				t.Errorf("the CRD does not admit it: %v", err)
			}
		})
	}
}

func contents(objects []*unstructured.Unstructured) (all []map[string]any) {
	for _, obj := range objects {
		all = append(all, obj.Object)
	}
	return all
}

func asObject(tb testing.TB, fw *v1alpha1.FleetWorkload) *unstructured.Unstructured {
	tb.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fw)
	if err != nil {
		tb.Fatal(err)
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}
}

// picture is a result as text: the FleetWorkload, what it does not say, notes, what would change, and the steps.
func picture(t *testing.T, result importer.Result) string {
	t.Helper()
	raw, err := yaml.Marshal(asObject(t, result.FleetWorkload).Object)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(raw)
	for _, u := range result.Unexpressed {
		fmt.Fprintf(&b, "cannot: %s\n", u)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if result.Running != nil {
		for _, c := range changes(t, result) {
			fmt.Fprintf(&b, "change: %s %s %v pods %v\n", c.Cluster, c.What, c.Differences, c.Pods)
		}
	}
	for _, step := range result.TakeOver {
		fmt.Fprintf(&b, "step: %s\n", strings.Join(append([]string{step.What}, step.Commands...), "\n  $ "))
	}
	for _, step := range result.WayBack {
		fmt.Fprintf(&b, "back: %s\n", strings.Join(append([]string{step.What}, step.Commands...), "\n  $ "))
	}
	return b.String()
}

// changes compares with the targets of all clusters that the placement's one selector chooses; kubectl-fw decides as the operator does.
func changes(t *testing.T, result importer.Result) []importer.Change {
	t.Helper()
	targets, p := targetsOf(t, result.FleetWorkload)
	if p == nil {
		return nil
	}
	return importer.Compare(result.Running, targets, p.Kind)
}

func targetsOf(t *testing.T, fw *v1alpha1.FleetWorkload) ([]backends.Target, *plan.Plan) {
	t.Helper()
	p, err := plan.New(fw, request(t).Kinds)
	if err != nil {
		t.Logf("the operator refuses it: %v", err)
		return nil, nil
	}
	var chosen []string
	if clusters := fw.Spec.Placement.Clusters; clusters != nil {
		if chosen, err = fleet.Select(*clusters); err != nil {
			t.Fatal(err)
		}
	}
	targets, err := p.Targets(fleet, chosen, nil)
	if err != nil {
		t.Logf("no targets: %v", err)
	}
	return targets, p
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is right, go test -update (-want +got):\n%s", path, diff)
	}
}

// TestOddObjects puts something else into a random place of the fixtures, over and over: there is no panic, and what comes of it is understood
// by the operator, or it is said why not. cmd/kubectl-fw fuzzes the same from bytes on.
func TestOddObjects(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	imported := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(400) {
			objects, err := read(raw)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, 1))
			for range 1 + r.IntN(3) {
				disturb(r, objects[r.IntN(len(objects))].Object)
			}
			result, err := importAs(request(t), filepath.Base(file), objects)
			if err != nil {
				continue
			}
			imported++
			if _, err := plan.New(result.FleetWorkload, request(t).Kinds); err != nil && len(result.Unexpressed) == 0 {
				t.Errorf("%s, seed %d: the operator refuses it, and nobody said so: %v", file, seed, err)
			}
		}
	}
	if imported < 1000 {
		t.Errorf("only %d were imported", imported)
	}
}

// disturb changes one random place.
func disturb(r *rand.Rand, value any) {
	odd := []any{nil, "", "odd", int64(-1), int64(7), 1.5, true, []any{}, map[string]any{}, []any{nil, "a", map[string]any{"name": int64(1)}}, map[string]any{"a": nil}}
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			return
		}
		key := keys[r.IntN(len(keys))]
		if child := v[key]; r.IntN(4) > 0 && isContainer(child) {
			disturb(r, child)
			return
		}
		v[key] = runtime.DeepCopyJSONValue(odd[r.IntN(len(odd))])
	case []any:
		if len(v) == 0 {
			return
		}
		i := r.IntN(len(v))
		if r.IntN(4) > 0 && isContainer(v[i]) {
			disturb(r, v[i])
			return
		}
		v[i] = runtime.DeepCopyJSONValue(odd[r.IntN(len(odd))])
	}
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}
