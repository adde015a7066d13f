package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/hack/docs"
)

// example is a command of a page that needs no cluster, and so can be run with what the page shows of its output.
type example struct {
	page, command string
	// files are what it reads, by the names that the page gives them.
	files map[string]string
}

func examples(t *testing.T) []example {
	t.Helper()
	objects, sample := testdata(t, "import/karmada.yaml"), testdata(t, "../../../config/samples/deployment-karmada.yaml")
	held := changed(t, objects, "propagateDeps: true", "activationPreference: Lazy")
	held = changed(t, held, "mirror.example.com/nginx:1.27", "mirror.example.com/nginx:1.26")
	unknown := changed(t, sample, "name: deployment-karmada\nspec:\n  backend: karmada", "name: typo\n  namespace: demo\nspec:\n  backend: ocm")
	unknown = changed(t, unknown, "    clusters:\n      selector:\n        matchLabels:\n          env: prod\n", "    clusters: {names: [member1, membr2]}\n")
	return []example{
		{"docs/importing.md", "kubectl fw import -f objects.yaml --from karmada --inventory clusters.yaml > web.yaml", map[string]string{"objects.yaml": objects}},
		{"docs/importing.md", "kubectl fw import -f held.yaml --from karmada --inventory clusters.yaml", map[string]string{"held.yaml": held}},
		{"docs/kubectl-fw.md", "kubectl fw -n demo render -f config/samples/deployment-karmada.yaml --inventory clusters.yaml",
			map[string]string{"config/samples/deployment-karmada.yaml": sample}},
		{"docs/kubectl-fw.md", "kubectl fw render -f typo.yaml --inventory clusters.yaml", map[string]string{"typo.yaml": unknown}},
		{"docs/kubectl-fw.md", "kubectl fw interpret -f web.yaml", map[string]string{"web.yaml": testdata(t, "interpret/cloneset-partitioned.yaml")}},
		{"docs/kubectl-fw.md", "kubectl fw interpret -f member1.yaml -f member2.yaml",
			map[string]string{"member1.yaml": listed(t, "interpret/list.yaml", 0), "member2.yaml": listed(t, "interpret/list.yaml", 1)}},
		{"docs/kubectl-fw.md", "kubectl fw interpret -f bad.yaml -o json > result.json", map[string]string{"bad.yaml": testdata(t, "interpret/malformed.yaml")}},
	}
}

// TestOutputsInDocs runs each command of the pages that needs no cluster, and compares. Of a page, a line of three dots stands for any lines.
func TestOutputsInDocs(t *testing.T) {
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	inventory := testdata(t, "inventory.yaml")
	left := map[[2]string]example{}
	for _, e := range examples(t) {
		left[[2]string{e.page, e.command}] = e
	}
	for _, page := range pages {
		for command, shown := range shownOutputs(page) {
			key := [2]string{page.Path, command}
			e, known := left[key]
			if !known {
				t.Errorf("%s shows what this test cannot run yet: %s", page.Path, command)
				continue
			}
			delete(left, key)
			t.Run(page.Path+" "+command, func(t *testing.T) {
				e.files["clusters.yaml"] = inventory
				got := typed(t, command, e.files)
				if !docs.Like(shown).MatchString(got) {
					t.Errorf("%s shows other lines (-page +now):\n%s", page.Path, cmp.Diff(shown, got))
				}
			})
		}
	}
	for key := range left {
		t.Errorf("%s does not show %q any more", key[0], key[1])
	}
}

// TestImportedInDocs: the FleetWorkload on the page is what the import prints.
func TestImportedInDocs(t *testing.T) {
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, "", "import", "-f", "testdata/import/karmada.yaml", "--from", "karmada", "--inventory", "testdata/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	printed := object(t, out)
	unstructured.RemoveNestedField(printed, "spec", "template")
	compared := 0
	for _, page := range pages {
		for _, block := range page.Blocks {
			if page.Path == "docs/importing.md" && strings.HasPrefix(block.Text, "# web.yaml, without spec.template\n") {
				compared++
				if diff := cmp.Diff(object(t, block.Text), printed); diff != "" {
					t.Errorf("%s is not what is printed (-page +now):\n%s", block.Where, diff)
				}
			}
		}
	}
	if compared != 1 {
		t.Errorf("compared %d blocks", compared)
	}
}

// TestFleetWorkloadsInDocs: the operator would carry out each whole FleetWorkload of the pages, on either backend.
func TestFleetWorkloadsInDocs(t *testing.T) {
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	inventory := filepath.Join(t.TempDir(), "inventory.yaml")
	clusters := changed(t, testdata(t, "inventory.yaml"), "  - name: member3\n", "  - name: paris\n  - name: member3\n") // of docs/gitops.md
	if err := os.WriteFile(inventory, []byte(clusters), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, page := range pages {
		for _, block := range page.Blocks {
			if block.Language != "yaml" || !strings.Contains(block.Text, "kind: FleetWorkload\n") || !strings.Contains(block.Text, "\n  backend: ") ||
				strings.Contains(block.Text, "without spec.template") {
				continue
			}
			rendered++
			for _, backend := range []string{"karmada", "ocm"} {
				if _, _, err := run(t, block.Text, "render", "-f", "-", "--inventory", inventory, "--backend", backend); err != nil {
					t.Errorf("%s on %s: %v", block.Where, backend, err)
				}
			}
		}
	}
	if rendered < 4 {
		t.Errorf("rendered %d FleetWorkloads", rendered)
	}
}

// TestTheStory: what the import of the story says and prints, when Karmada has the page's objects and the Works that come of them.
func TestTheStory(t *testing.T) {
	const page, command = "docs/karmada-to-ocm.md", "kubectl fw import deployment/web -n store --from karmada --config operator.yaml > web.yaml"
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	story := pages[slices.IndexFunc(pages, func(p docs.Page) bool { return p.Path == page })]
	var objects, shown string
	for _, block := range story.Blocks {
		switch {
		case strings.HasPrefix(block.Text, "# plain.yaml\n"):
			objects = block.Text
		case strings.HasPrefix(block.Text, "$ "+command+"\n"):
			shown = strings.TrimPrefix(block.Text, "$ "+command+"\n")
		}
	}
	_, works, _ := strings.Cut(testdata(t, "import/karmada.yaml"), "---\napiVersion: work.karmada.io")
	works = strings.NewReplacer("namespace: shop", "namespace: store", "rb-1", "00000000-0000-0000-0000-000000000000").Replace(works)
	all := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(all, []byte(objects+"---\napiVersion: work.karmada.io"+works), 0o600); err != nil {
		t.Fatal(err)
	}
	out, report, err := run(t, "", "import", "-f", all, "--from", "karmada", "--inventory", "testdata/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown, report = docs.Alike(shown), docs.Alike(report)
	if shown == "" || !docs.Like(shown).MatchString(report) {
		t.Errorf("%s shows other lines (-page +now):\n%s", page, cmp.Diff(shown, report))
	}
	printed := object(t, out)
	unstructured.RemoveNestedField(printed, "spec", "template")
	if diff := cmp.Diff(object(t, imported(t)), printed); diff != "" {
		t.Errorf("%s shows another FleetWorkload (-page +now):\n%s", page, diff)
	}
}

// imported is the FleetWorkload of the story, without its template.
func imported(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/karmada-to-ocm.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "```yaml\n# web.yaml, without spec.template\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("the story has no FleetWorkload")
	}
	return text
}

const (
	// divided is the FleetWorkload of the picture in docs/placement.md, and room the clusters.
	divided = `
apiVersion: apps.fleetworkload.io/v1alpha1
kind: FleetWorkload
metadata: {name: web, namespace: shop}
spec:
  backend: ocm
  replicas: 12
  template:
    apiVersion: apps/v1
    kind: Deployment
    spec: {template: {spec: {containers: [{name: web, image: nginx, resources: {requests: {cpu: "1"}}}]}}}
  placement:
    clusters: {}
    division: `
	room = `
backends:
- name: ocm
  type: OCM
  clusters:
  - {name: a, free: {cpu: "8", pods: "100"}}
  - {name: b, free: {cpu: "5", pods: "100"}}
  - {name: c, free: {cpu: "2", pods: "100"}}
`
)

// TestThePictureOfDivision: the clusters get the replicas that docs/placement.md draws.
func TestThePictureOfDivision(t *testing.T) {
	page, err := os.ReadFile("../../docs/placement.md")
	if err != nil {
		t.Fatal(err)
	}
	inventory := filepath.Join(t.TempDir(), "inventory.yaml")
	if err := os.WriteFile(inventory, []byte(room), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\{type: .*\\})` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) != 5 {
		t.Errorf("the picture has %d rows", len(rows))
	}
	for _, row := range rows {
		out, _, err := run(t, divided+row[1], "render", "-f", "-", "--inventory", inventory)
		if err != nil {
			t.Fatal(err)
		}
		drawn := map[string]int64{}
		for i, cell := range strings.Split(row[2], " | ") {
			number, dots, _ := strings.Cut(cell, " ")
			if n := int64(strings.Count(dots, "●")); n > 0 {
				drawn[string(rune('a'+i))] = n
			}
			if n := strings.Count(dots, "●"); number != "-" && number != strconv.Itoa(n) {
				t.Errorf("%s: %s has %d dots", row[1], number, n)
			}
		}
		if diff := cmp.Diff(drawn, replicasOf(t, out)); diff != "" {
			t.Errorf("%s (-page +now):\n%s", row[1], diff)
		}
	}
}

// replicasOf reads the replicas of a Deployment by cluster, from what is rendered for Open Cluster Management.
func replicasOf(t *testing.T, rendered string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for _, document := range strings.Split(rendered, "\n---\n") {
		work := object(t, document)
		manifests, _, err := unstructured.NestedSlice(work, "spec", "workload", "manifests")
		if err != nil {
			t.Fatal(err)
		}
		for _, manifest := range manifests {
			if content := manifest.(map[string]any); content["kind"] == "Deployment" {
				n, _, err := unstructured.NestedInt64(content, "spec", "replicas")
				if err != nil {
					t.Fatal(err)
				}
				found[(&unstructured.Unstructured{Object: work}).GetNamespace()] = n
			}
		}
	}
	return found
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

var offline = regexp.MustCompile(`^kubectl fw .*\b(render|import|interpret)\b`)

// shownOutputs are the commands that need no cluster, each with the lines that stand below it.
func shownOutputs(page docs.Page) map[string]string {
	shown := map[string]string{}
	for _, block := range page.Blocks {
		for _, part := range strings.Split("\n"+block.Text, "\n$ ")[1:] {
			command, output, _ := strings.Cut(part, "\n")
			if offline.MatchString(command) && !strings.Contains(command, "--config") && output != "" {
				shown[command] = strings.TrimSuffix(output, "\n") + "\n"
			}
		}
	}
	return shown
}

// typed returns what a terminal would show.
func typed(t *testing.T, command string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	line, _, redirected := strings.Cut(strings.TrimPrefix(command, "kubectl fw "), " > ")
	out, shown, err := run(t, "", strings.Fields(line)...)
	if !redirected {
		shown = out + shown
	}
	if err != nil {
		shown += "error: " + err.Error() + "\n"
	}
	return shown
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// changed replaces what stands in the text once.
func changed(t *testing.T, text, before, after string) string {
	t.Helper()
	if n := strings.Count(text, before); n != 1 {
		t.Fatalf("%q stands %d times in the fixture", before, n)
	}
	return strings.Replace(text, before, after, 1)
}

// listed is an object of a List.
func listed(t *testing.T, name string, index int) string {
	t.Helper()
	items, _, err := unstructured.NestedSlice(object(t, testdata(t, name)), "items")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.Marshal(items[index])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
