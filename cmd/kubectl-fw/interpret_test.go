package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files are live objects of several kinds. What is made of them, as text, as JSON and as an error, must be seen when
// it changes.
func TestInterpret(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		// wrong are the lines of the error, in order; none when all is understood.
		wrong []string
	}{
		"cloneset-partitioned":   {},
		"deployment-progressing": {},
		"sidecarset":             {},
		"job-failed":             {},
		"workflow":               {},
		"list":                   {},
		"unknown":                {},
		"described":              {args: []string{"-f", "testdata/interpret/unknown.yaml", "--config", "testdata/interpret-config.yaml"}},
		"malformed": {wrong: []string{
			"document 3: it is not a Kubernetes object: not even a map",
			"document 4: it is not a Kubernetes object: apiVersion or kind is missing",
			"document 5: yaml: ",
			"document 1: Deployment shop/api: status.replicas: want a number, got a string",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if args == nil {
				args = []string{"-f", filepath.Join("testdata", "interpret", name+".yaml")}
			}
			for extension, output := range map[string][]string{".golden": nil, ".json": {"-o", "json"}} {
				out, errOut, err := run(t, "", append(append([]string{"interpret"}, args...), output...)...)
				if errOut != "" {
					t.Errorf("standard error: %s", errOut)
				}
				expectLines(t, err, tc.wrong)
				compareGolden(t, filepath.Join("interpret", name+extension), out)
			}
		})
	}
}

func expectLines(t *testing.T, err error, want []string) {
	t.Helper()
	var lines []string
	if err != nil {
		lines = strings.Split(err.Error(), "\n")
	}
	if len(lines) != len(want) {
		t.Fatalf("error is\n%v\nand should have %d lines", err, len(want))
	}
	for i := range lines {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("the error says\n%s\nand should say\n%s", lines[i], want[i])
		}
	}
}

// The same objects say the same, however they are handed over.
func TestInterpretReads(t *testing.T) {
	first := `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "replicas": 1}}`
	second := strings.Replace(first, `"spec": {"replicas": 1}`, `"spec": {"replicas": 2}`, 1)
	bare := strings.NewReplacer(`"apiVersion": "apps/v1", "kind": "Deployment", `, "")
	file := filepath.Join(t.TempDir(), "second.json")
	if err := os.WriteFile(file, []byte(second), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   string
		args []string
	}{
		"YAML documents":      {in: "# one\n---\n" + first + "\n---\n\n---\n# nothing\n---\n" + second + "\n"},
		"JSON, one by one":    {in: first + "\n" + second},
		"List":                {in: `{"apiVersion": "v1", "kind": "List", "items": [` + first + "," + second + "]}"},
		"typed list":          {in: `{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [` + bare.Replace(first) + "," + bare.Replace(second) + "]}"},
		"List of lists":       {in: `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [` + first + "]}, " + second + "]}"},
		"several files":       {in: first, args: []string{"-f", file}},
		"an empty list apart": {in: first + "\n---\n" + second + "\n---\n{apiVersion: v1, kind: List, items: []}"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := run(t, tc.in, append([]string{"interpret", "-f", "-", "-o", "json"}, tc.args...)...)
			if err != nil || errOut != "" {
				t.Fatalf("error %v, standard error %q", err, errOut)
			}
			var got interpretation
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Items) != 2 || got.Items[1].Kind != "Deployment" || *got.Items[1].Replicas.Desired != 2 {
				t.Fatalf("items are\n%s", out)
			}
			if a := got.Aggregate; a.Workloads != 1 || *a.Replicas.Desired != 3 || a.Behind.Desired != 2 || *a.Replicas.Current != 2 {
				t.Errorf("aggregate is %+v", a)
			}
		})
	}
}

func TestInterpretRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		in, want string
		args     []string
	}{
		"nothing":       {in: "# only a comment\n", want: "standard input has no object"},
		"an empty list": {in: "{apiVersion: v1, kind: List, items: []}", want: "standard input has no object"},
		"no separator": {
			in:   "apiVersion: v1\nkind: ConfigMap\napiVersion: v1\nkind: ConfigMap\n",
			want: `key "apiVersion" already set in map`,
		},
		"items that are none": {in: "{apiVersion: v1, kind: List, items: [5]}", want: "standard input, item 1: it is not a Kubernetes object"},
		"a strange version":   {in: "{apiVersion: a/b/c, kind: Job}", want: "unexpected GroupVersion string: a/b/c"},
		"no such file":        {args: []string{"-f", "none.yaml"}, want: "read objects: open none.yaml"},
		"no such output":      {args: []string{"-o", "wide"}, want: `--output "wide": choose json`},
		"no such config":      {args: []string{"--config", "none.yaml"}, want: "read operator configuration"},
		"a config with a kind that cannot be": {
			args: []string{"--config", "testdata/interpret-wrong-config.yaml"}, want: "kinds[0].health: at least one rule is required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, tc.in, append([]string{"interpret", "-f", "-"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is\n%v\nand should have\n%s", err, tc.want)
			}
			if out != "" {
				t.Errorf("it printed all the same:\n%s", out)
			}
		})
	}
}

// TestInterpretFormats: the formats of kubectl have the fields of json.
func TestInterpretFormats(t *testing.T) {
	for format, want := range map[string]string{
		"yaml":                              "aggregate:\n  ",
		"name":                              "cloneset.apps.kruise.io/web\njob.batch/",
		"jsonpath={.items[*].health}":       "Healthy Degraded",
		"go-template={{.aggregate.health}}": "Degraded",
	} {
		out, _, err := run(t, "", "interpret", "-o", format, "-f", "testdata/interpret/cloneset-partitioned.yaml", "-f", "testdata/interpret/job-failed.yaml")
		if err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("-o %s: error %v, printed\n%s", format, err, out)
		}
	}
}

// A workload is told apart by kind, namespace and name; sums over different ones would mean nothing.
func TestInterpretManyWorkloads(t *testing.T) {
	out, _, err := run(t, "", "interpret", "-o", "json",
		"-f", "testdata/interpret/cloneset-partitioned.yaml", "-f", "testdata/interpret/job-failed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got interpretation
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	a := got.Aggregate
	if a.Workloads != 2 || a.Replicas != nil || len(a.Fields) != 0 || a.Health != "Degraded" || a.Healthy != 1 {
		t.Errorf("aggregate is %+v", a)
	}
}

// What could not be read may be anything: the whole is not healthy, even when all else is.
func TestInterpretUnread(t *testing.T) {
	good := "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, generation: 1}, spec: {}, status: {}}\n"
	for name, tc := range map[string]struct {
		in, health string
		fails      bool
	}{
		"all read":              {in: good + "---\n" + good, health: "Healthy"},
		"one not":               {in: good + "---\njust words\n", health: "Unknown", fails: true},
		"an unknown kind":       {in: "{apiVersion: example.io/v1, kind: Gadget, metadata: {name: a}}", health: "Unknown"},
		"an unheard-of version": {in: "{apiVersion: apps/v7, kind: Deployment, metadata: {name: a}}", health: "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, tc.in, "interpret", "-f", "-", "-o", "json")
			if (err != nil) != tc.fails {
				t.Errorf("error is %v", err)
			}
			var got interpretation
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if a := got.Aggregate; string(a.Health) != tc.health || a.Reason == "" {
				t.Errorf("aggregate is %+v", a)
			}
		})
	}
}
