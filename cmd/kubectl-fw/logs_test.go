package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// TestLogs prints a command for each cluster that has the workload, which a shell can run.
func TestLogs(t *testing.T) {
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	const labelled = `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"selector":{"matchLabels":{"app":"web"}}}}`
	for name, test := range map[string]struct {
		template    string
		opts        logsOptions
		nowhere     bool
		want, fails string
	}{
		"all clusters": {template: labelled, want: "kubectl --context m1 -n shop logs -l app=web --all-containers --prefix --tail=20\n" +
			"kubectl --context m2 -n shop logs -l app=web --all-containers --prefix --tail=20\n"},
		"one, under another name": {
			template: labelled, opts: logsOptions{clusters: []string{"m2"}, contexts: map[string]string{"m2": "prod eu"}, flags: []string{"--since=1h"}},
			want: "kubectl --context 'prod eu' -n shop logs -l app=web --since=1h\n",
		},
		"an expression": {
			template: `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchExpressions":[{"key":"app","operator":"In","values":["a","b"]}]}}}`,
			opts:     logsOptions{clusters: []string{"m1"}, flags: []string{"-f"}}, want: "kubectl --context m1 -n shop logs -l 'app in (a,b)' -f\n",
		},
		"a Job": {
			template: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"once"},"spec":{}}`, opts: logsOptions{clusters: []string{"m1"}, flags: []string{"-f"}},
			want: "kubectl --context m1 -n shop logs job/once -f\n",
		},
		"a Workflow":      {template: `{"apiVersion":"argoproj.io/v1alpha1","kind":"Workflow","spec":{}}`, fails: "the pods of a Workflow are found is not known"},
		"a SidecarSet":    {template: `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","spec":{}}`, fails: "the pods of a SidecarSet are of other workloads"},
		"another cluster": {template: labelled, opts: logsOptions{clusters: []string{"m3"}}, fails: "FleetWorkload shop/web has nothing on cluster m3"},
		"nowhere yet":     {template: labelled, nowhere: true, fails: "FleetWorkload shop/web is on no cluster yet"},
	} {
		t.Run(name, func(t *testing.T) {
			fw, objects := shipping(t, func(s *v1alpha1.FleetWorkloadSpec) { s.Template = runtime.RawExtension{Raw: []byte(test.template)} })
			if !test.nowhere {
				fw.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "m1"}, {Name: "m2"}}
			}
			_, c := pastOf(t, fw, objects)
			var out bytes.Buffer
			err := printLogs(t.Context(), c, web, kinds, test.opts, &out)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("error is %v, want %q", err, test.fails)
			}
			if test.fails == "" && out.String() != test.want {
				t.Errorf("printed\n%swant\n%s", out.String(), test.want)
			}
		})
	}
}

// TestShellWord: a shell reads each word as it is.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"": "''", "app=web": "app=web", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q is %s, want %s", word, got, want)
		}
	}
}
