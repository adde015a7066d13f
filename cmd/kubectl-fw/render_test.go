package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// run executes a command line without any cluster at hand.
func run(t *testing.T, stdin string, args ...string) (out, errOut string, err error) {
	t.Helper()
	// No kubeconfig of whoever runs the test.
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	var stdout, stderr bytes.Buffer
	root := newRoot("kubectl-fw", genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &stdout, ErrOut: &stderr})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// The samples are what users copy first: a change in what they become on a backend must be seen.
func TestRenderSamples(t *testing.T) {
	for _, sample := range []string{"cloneset-karmada", "cloneset-ocm", "deployment-karmada", "deployment-ocm"} {
		t.Run(sample, func(t *testing.T) {
			out, errOut, err := run(t, "", "render", "-n", "demo", "-f", "../../config/samples/"+sample+".yaml", "--inventory", "testdata/inventory.yaml")
			if err != nil || errOut != "" {
				t.Fatalf("error %v, standard error %q", err, errOut)
			}
			compareGolden(t, "render-"+sample+".yaml", out)
		})
	}
}

// Law 9: a workload asks both backends for the same member objects, so moving it is only a change of the envelope.
func TestRenderOtherBackend(t *testing.T) {
	asked := func(args ...string) string {
		args = append([]string{"render", "-n", "demo", "--inventory", "testdata/inventory.yaml"}, args...)
		out, _, err := run(t, "", args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	file := "../../config/samples/cloneset-karmada.yaml"
	moved := asked("-f", file, "--backend", "ocm")
	if strings.Contains(moved, "kind: PropagationPolicy") || !strings.Contains(moved, "kind: ManifestWork") {
		t.Errorf("--backend ocm does not render for Open Cluster Management:\n%s", moved)
	}
	for _, want := range []string{"replicas: 8", "replicas: 4", "value: debug"} {
		if !strings.Contains(moved, want) {
			t.Errorf("%q is missing on the other backend:\n%s", want, moved)
		}
	}
}

// What two FleetWorkloads share is printed once; other kinds are skipped, and said to be.
func TestRenderStream(t *testing.T) {
	var stream strings.Builder
	stream.WriteString("# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")
	for _, sample := range []string{"cloneset-ocm", "deployment-ocm"} {
		raw, err := os.ReadFile("../../config/samples/" + sample + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		stream.WriteString("---\n" + string(raw))
	}
	out, errOut, err := run(t, stream.String(), "render", "-f", "-", "--inventory", "testdata/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "kind: ManagedClusterSetBinding"); n != 1 {
		t.Errorf("the set binding is printed %d times, not once", n)
	}
	if !strings.Contains(errOut, `v1 ConfigMap "settings" is not a FleetWorkload`) {
		t.Errorf("the skipped object is not named: %q", errOut)
	}
	if !strings.Contains(out, "namespace: default") {
		t.Error("without -n and kubeconfig, the namespace must be default")
	}
}

func TestRenderRefuses(t *testing.T) {
	head := "apiVersion: apps.fleetworkload.io/v1alpha1\nkind: FleetWorkload\nmetadata: {name: web, namespace: shop}\n"
	template := "{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: nginx, image: nginx}]}}}}"
	valid := head + "spec: {backend: karmada, placement: {clusters: {}}, template: " + template + "}\n"
	tests := map[string]struct {
		in   string
		args []string
		want string
	}{
		"a backend that is not there": {
			in:   strings.Replace(valid, "backend: karmada", "backend: argo", 1),
			want: `FleetWorkload shop/web: spec.backend "argo": no such backend; configured are: karmada, ocm. Choose one of them`,
		},
		"a cluster that is not there": {
			in:   strings.Replace(valid, "clusters: {}", "clusters: {names: [m9]}", 1),
			want: `backend "karmada": spec.placement.clusters.names[0] "m9": the backend knows no such cluster; it knows: member1, member2, member3; correct the name`,
		},
		"no cluster that matches": {
			in:   strings.Replace(valid, "clusters: {}", "clusters: {selector: {matchLabels: {env: none}}}", 1),
			want: `spec.placement: no cluster of backend "karmada" matches`,
		},
		"a field that does not exist": {
			in:   strings.Replace(valid, "{backend:", "{replica: 3, backend:", 1),
			want: `unknown field "spec.replica"`,
		},
		"a kind that is not supported": {
			in:   strings.Replace(valid, "kind: Deployment", "kind: Gadget", 1),
			want: `backend "karmada": spec.template.kind "apps/v1 Gadget": FleetWorkloads may not carry this kind`,
		},
		"another namespace than the file's": {
			in: valid, args: []string{"-n", "demo"},
			want: `FleetWorkload shop/web: the file's namespace is not "demo"`,
		},
		"no FleetWorkload": {
			in:   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
			want: "standard input has no FleetWorkload",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"render", "-f", "-", "--inventory", "testdata/inventory.yaml"}, tc.args...)
			out, _, err := run(t, tc.in, args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is\n%v\nand should have\n%s", err, tc.want)
			}
			if out != "" {
				t.Errorf("it printed all the same:\n%s", out)
			}
		})
	}
}

// A new workload goes where the backend would start it.
func TestInventoryRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"type":     {"backends: [{name: a, type: Argo}]", `backends[0].type: "Argo" is neither Karmada nor OCM`},
		"twice":    {"backends: [{name: a, type: OCM}, {name: a, type: OCM}]", `backends[1].name: "a" is empty or there twice`},
		"ready":    {"backends: [{name: a, type: OCM, clusters: [{name: m, ready: maybe}]}]", "is none of true, false and Unknown"},
		"unnamed":  {"backends: [{name: a, type: OCM, clusters: [{}]}]", "backends[0].clusters[0].name"},
		"spelling": {"backends: [{name: a, type: OCM, cluster: []}]", `unknown field "backends[0].cluster"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "inventory.yaml")
			if err := os.WriteFile(file, []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := loadInventory(file); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v and should have %s", err, tc.want)
			}
		})
	}
}
