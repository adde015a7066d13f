package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/internal/importer"
)

const (
	importFixtures   = "testdata/import/"
	importerFixtures = "../../internal/importer/testdata/"
)

// importing runs the command offline.
func importing(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	return run(t, "", append([]string{"import", "--inventory", "testdata/inventory.yaml"}, args...)...)
}

// What users see of each source: the FleetWorkload, and the report beside it.
func TestImportPrints(t *testing.T) {
	for name, args := range map[string][]string{
		"karmada": {"--from", "karmada", "-f", importFixtures + "karmada.yaml"},
		"members": {"--from", "ocm", "--member", "member1=" + importFixtures + "member1.yaml", "--member", "member2=" + importFixtures + "member2.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := importing(t, args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, errOut)
			}
			compareGolden(t, "import/"+name+".golden.yaml", out)
			compareGolden(t, "import/"+name+".golden", errOut)
			report, _, err := importing(t, append(args, "-o", "report")...)
			if err != nil || report != errOut {
				t.Errorf("the report alone is another one: %v\n%s", err, report)
			}
			// What was printed is rendered like any FleetWorkload.
			file := filepath.Join(t.TempDir(), "fw.yaml")
			if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := run(t, "", "render", "-f", file, "--inventory", "testdata/inventory.yaml"); err != nil {
				t.Errorf("it cannot be rendered: %v", err)
			}
		})
	}
}

// Without leave there is no FleetWorkload of which something has to be known first: the next command may be kubectl apply.
func TestImportHoldsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"what cannot be said":   {[]string{"--from", "ocm", "-f", importerFixtures + "ocm-replicaset.yaml"}, "2 things cannot be said; "},
		"what would change":     {[]string{"--from", "karmada", "-f", importerFixtures + "karmada-changes.yaml"}, "3 clusters would change; "},
		"what is refused":       {[]string{"--from", "karmada", "--member", "gone=" + importFixtures + "member1.yaml"}, "1 thing cannot be said, the operator would refuse it; "},
		"what was not compared": {[]string{"--from", "karmada", "-f", withoutWorks(t)}, "what runs was not among what was read, so that nothing could be compared; "},
	} {
		t.Run(name, func(t *testing.T) {
			out, report, err := importing(t, tc.args...)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !strings.HasSuffix(err.Error(), "--accept-differences") {
				t.Errorf("error is %v", err)
			}
			if out != "" {
				t.Errorf("it printed all the same:\n%s", out)
			}
			accepted, again, err := importing(t, append(tc.args, "--accept-differences")...)
			if err != nil || again != report || !strings.Contains(accepted, "\nkind: FleetWorkload\n") {
				t.Errorf("with leave: error %v, printed:\n%s", err, accepted)
			}
			if n := strings.Count(accepted, "# not said here: "); n != strings.Count(report, "  why  ") {
				t.Errorf("%d things are told in the file", n)
			}
			raw, _, err := importing(t, append(tc.args, "-o", "json")...)
			var decoded importReport
			if err == nil || json.Unmarshal([]byte(raw), &decoded) != nil || decoded.problems() == "" {
				t.Errorf("as JSON: error %v, printed:\n%s", err, raw)
			}
		})
	}
}

// withoutWorks is a file that says nothing of what runs.
func withoutWorks(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(importFixtures + "karmada.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policies, _, _ := strings.Cut(string(raw), "---\napiVersion: work.karmada.io")
	file := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(file, []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The operator would hold a take-over that takes pods away, and the report says so in its words. Where they stay by the room that clusters
// have, nothing changes.
func TestImportAsksTheOperator(t *testing.T) {
	raw, err := os.ReadFile(importFixtures + "karmada.yaml")
	if err != nil {
		t.Fatal(err)
	}
	imported := func(from, to string) (string, error) {
		file := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(raw), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, err := run(t, "", "import", "--inventory", withRoom(t), "--from", "karmada", "-f", file, "-o", "report")
		return out, err
	}
	report, err := imported("clusterNames: [member2]}, weight: 2", "clusterNames: [member2]}, weight: 1")
	if err == nil || !strings.Contains(report, "member2 runs 4 and would be given 3. Nothing was written") || !strings.Contains(report, "replace /spec/replicas 3") {
		t.Errorf("error %v, report:\n%s", err, report)
	}
	report, err = imported("weightPreference:", "weightPreference:\n        dynamicWeight: AvailableReplicas")
	if err != nil || !strings.Contains(report, "- nothing: the target manifests of 2 clusters are what runs there now") {
		t.Errorf("error %v, report:\n%s", err, report)
	}
}

// A cluster out of contact is waited for: what would become of it is told all the same.
func TestImportOfClusterOutOfContact(t *testing.T) {
	raw, err := os.ReadFile("testdata/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "inventory.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(raw), "ready: true", "ready: Unknown", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, "", "import", "--inventory", file, "--from", "karmada", "-f", importFixtures+"karmada.yaml", "-o", "report")
	if err != nil || !strings.Contains(out, "- nothing: the target manifests of 2 clusters") || !strings.Contains(out, "cluster member1 cannot be reached now") {
		t.Errorf("error %v, report:\n%s", err, out)
	}
}

// withRoom is the inventory with clusters that tell what is free.
func withRoom(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "inventory.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), "    ready: true", "    free: {pods: 10}")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImportRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such backend":   {[]string{"--from", "argo", "-f", importFixtures + "karmada.yaml"}, `--from "argo": no such backend; configured are: karmada, ocm`},
		"nothing to read":   {[]string{"deployment/web", "--from", "karmada"}, "with --inventory nothing is read from a cluster"},
		"no such workload":  {[]string{"deployment/api", "--from", "karmada", "-f", importFixtures + "karmada.yaml"}, "deployment/api is not among what was read"},
		"another namespace": {[]string{"-n", "bank", "--from", "karmada", "-f", importFixtures + "karmada.yaml"}, "a workload is not among what was read"},
		"half a name":       {[]string{"web", "--from", "karmada", "-f", importFixtures + "karmada.yaml"}, `"web" is no KIND/NAME`},
		"half a member":     {[]string{"--from", "karmada", "--member", "member1"}, `--member "member1": write CLUSTER=FILE`},
		"an output":         {[]string{"--from", "karmada", "-f", importFixtures + "karmada.yaml", "-o", "table"}, `--output "table": choose yaml, report or json`},
		"the wrong backend": {[]string{"--from", "ocm", "-f", importFixtures + "karmada.yaml"}, "a workload is not among what was read"},
		"what is ours":      {[]string{"--from", "karmada", "-f", importerFixtures + "karmada-ours.yaml"}, "is FleetWorkload shop/web's already"},
		"one of several":    {[]string{"--from", "karmada", "-f", importerFixtures + "karmada-replicas.yaml", "-f", importFixtures + "karmada.yaml"}, "may be any of Deployment shop/web, StatefulSet shop/db"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := importing(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" {
				t.Errorf("error is\n%v\nand should have\n%s\nprinted:\n%s", err, tc.want, out)
			}
		})
	}
}

// What is read live is what the import needs, and comes to the same as from files.
func TestImportReadsLive(t *testing.T) {
	r := importReads{ctx: t.Context()}
	objects := objectsOf(t, importFixtures+"karmada.yaml")
	foreign := objectsOf(t, importerFixtures+"karmada-replicas.yaml") // a StatefulSet with policies and Works of its own
	binding := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding"}}
	binding.SetNamespace("shop")
	binding.SetName("web-deployment")
	binding.SetLabels(map[string]string{"resourcebinding.karmada.io/permanent-id": "rb-1"})
	all := append([]client.Object{binding}, asClientObjects(objects, foreign)...)
	r.client = fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapperOf(all)).WithObjects(all...).Build()
	r.karmada(importer.Request{Kind: "deployments", Namespace: "shop", Name: "web"})
	if len(r.errs) > 0 {
		t.Fatal(r.errs)
	}
	kinds := map[string]int{}
	for _, obj := range r.objects {
		kinds[obj.GetKind()]++
	}
	if kinds["Deployment"] != 1 || kinds["StatefulSet"] != 0 || kinds["PropagationPolicy"] != 4 || kinds["OverridePolicy"] != 2 || kinds["Work"] != 2 {
		t.Errorf("it has read %v", kinds)
	}
	missing := importReads{ctx: t.Context(), client: r.client}
	if missing.karmada(importer.Request{Kind: "deployment", Namespace: "shop", Name: "api"}); len(missing.errs) != 1 {
		t.Errorf("of a workload that is not there: %v", missing.errs)
	}

	hub := importReads{ctx: t.Context()}
	all = asClientObjects(objectsOf(t, importerFixtures+"ocm-replicaset.yaml"))
	hub.client = fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapperOf(all)).WithObjects(all...).Build()
	if hub.ocm(); len(hub.errs) > 0 || len(hub.objects) != len(all) {
		t.Errorf("it has read %d of %d objects: %v", len(hub.objects), len(all), hub.errs)
	}
}

func objectsOf(t *testing.T, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	found, err := readObjects(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		objects = append(objects, one.object)
	}
	return objects
}

func asClientObjects(lists ...[]*unstructured.Unstructured) (all []client.Object) {
	for _, list := range lists {
		for _, obj := range list {
			obj.SetResourceVersion("")
			all = append(all, obj)
		}
	}
	return all
}

// mapperOf knows the kinds of objects.
func mapperOf(objects []client.Object) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterPropagationPolicy"}, {Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterOverridePolicy"}} {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	for _, obj := range objects {
		mapper.Add(obj.GetObjectKind().GroupVersionKind(), meta.RESTScopeNamespace)
	}
	return mapper
}
