package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// configuredWith is a ConfigMap of the operator's.
func configuredWith(name string, at time.Time, config string) client.Object {
	return ofKind("v1", "ConfigMap", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleetworkload-system", Name: name, CreationTimestamp: metav1.NewTime(at),
			Labels: map[string]string{"app.kubernetes.io/name": "fleetworkload"}},
		Data: map[string]string{"config.yaml": config},
	})
}

// completing are objects for whatever is completed: FleetWorkloads, two configurations of which one is of yesterday, and versions.
func completing(t *testing.T) []client.Object {
	t.Helper()
	fw, versions := shipping(t, replaced("nginx:1.26", "nginx:1.27"))
	boards, is := configuredWith("fleetworkload-grafana", noon.Add(2*time.Hour), "").(*corev1.ConfigMap) // the chart's, with the same label
	if !is {
		t.Fatal("not a ConfigMap")
	}
	boards.Data = map[string]string{"board.json": "{}"}
	fw.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "member1"}, {Name: "member2"}}
	objects := []client.Object{
		ofKind(v1alpha1.GroupVersion.String(), "FleetWorkload", fw),
		servedFleetWorkload("shop", "cart", func(fw *v1alpha1.FleetWorkload) { fw.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "member9"}} }),
		servedFleetWorkload("data", "lake", func(*v1alpha1.FleetWorkload) {}),
		servedNamespace("shop"), servedNamespace("data"), servedNamespace("fleetworkload-system"),
		configuredWith("fleetworkload-config-1", noon, "backends: [{name: retired, type: OCM}]"),
		configuredWith("fleetworkload-config-2", noon.Add(time.Hour), "backends: [{name: karmada, type: Karmada}, {name: ocm, type: OCM}, {name: ocm-eu, type: OCM}]\nnewField: 1\n"),
		boards,
	}
	for _, v := range versions {
		objects = append(objects, ofKind("apps/v1", "ControllerRevision", v))
	}
	return objects
}

// completed are the words that cobra offers to a shell, without what it says of them, and whether files are offered as well.
func completed(t *testing.T, kubeconfig string, line ...string) (found []string, files bool) {
	t.Helper()
	out, _, err := run(t, "", append([]string{"__complete", "--kubeconfig", kubeconfig}, line...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(line, "\t")
		found = append(found, word)
	}
	return found, lines[len(lines)-1] == ":0"
}

// TestCompletion asks as a shell does for each argument and flag that has completions. Cobra adds flags that a command cannot do without.
func TestCompletion(t *testing.T) {
	kubeconfig := managementWith(t, nil, completing(t)...)
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte("backends: [{name: of-file}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	backends := "karmada ocm ocm-eu"
	formats := "json yaml kyaml name go-template go-template-file template templatefile jsonpath jsonpath-as-json jsonpath-file wide"
	for line, want := range map[string]string{
		"get ":                                 "cart web",
		"get cart ":                            "web",
		"get -n data ":                         "lake",
		"status ":                              "cart web",
		"status w":                             "web",
		"status web ":                          "",
		"events ":                              "cart web",
		"logs ":                                "cart web",
		"migrate ":                             "--to cart web",
		"approve ":                             "cart web",
		"history ":                             "cart web",
		"undo ":                                "cart web",
		"restart ":                             "cart web",
		"suspend cart ":                        "web",
		"resume ":                              "cart web",
		"plan ":                                "cart web",
		"migrate web --to ":                    backends,
		"migrate web --to o":                   "ocm ocm-eu",
		"migrate -n empty --to ":               backends,
		"migrate --all --from ":                backends,
		"migrate --all --to ocm --order ":      "name size",
		"import --from ":                       backends,
		"import --config " + file + " --from ": "of-file",
		"import --inventory " + file + " --from ": "of-file",
		"status -o ":             "wide " + strings.TrimSuffix(formats, " wide"),
		"history web -o ":        "wide " + strings.TrimSuffix(formats, " wide"),
		"migrate --dry-run -o ":  strings.TrimSuffix(formats, " wide"),
		"backend retire ocm -o ": "wide " + strings.TrimSuffix(formats, " wide"),
		"plan web -o ":           "wide " + strings.TrimSuffix(formats, " wide"),
		"interpret -o ":          strings.TrimSuffix(formats, " wide"),
		"import -o ":             "yaml report json",
		"doctor -o ":             "json yaml",
		"doctor ":                "",
		"import ":                "--config --from --inventory",
		"render --backend ":      backends,
		"render --inventory " + file + " --backend ": "of-file",
		"kubeconfig ":         "--backend-kubeconfig " + backends,
		"kubeconfig karmada ": "--backend-kubeconfig",
		"kubeconfig -o ":      "yaml",
		"kubeconfig --backend-kubeconfig " + kubeconfig + " --backend-context ": "prod test",
		"backend retire ":                          "--config " + backends,
		"backend retire --config " + file + " ":    "of-file",
		"backend retire ocm --operator-namespace ": "data fleetworkload-system shop",
		"render --operator-namespace ":             "data fleetworkload-system shop",
		"import --operator-namespace ":             "data fleetworkload-system shop",
		"kubeconfig --operator-namespace ":         "data fleetworkload-system shop",
		"migrate --operator-namespace ":            "data fleetworkload-system shop",
		"get -n ":                                  "data fleetworkload-system shop",
		"get --namespace s":                        "shop",
		"get --context ":                           "prod test",
		"get --cluster ":                           "hub",
		"get --user ":                              "ops",
		"logs web --cluster ":                      "member1 member2",
		"logs web --cluster member2,":              "member2,member1",
		"logs --cluster ":                          "",
		"undo web --to-revision ":                  "2 1",
		"history web --revision ":                  "2 1",
		"history web --revision 1":                 "1",
		"undo --to-revision ":                      "",
		"get -o ":                                  formats,
		"events -o ":                               formats,
	} {
		t.Run(line, func(t *testing.T) {
			got, files := completed(t, kubeconfig, strings.Split(line, " ")...)
			if strings.Join(got, " ") != want || files {
				t.Errorf("offered are %v, want %s; files: %t", got, want, files)
			}
		})
	}
}

// TestFlagsAreCompleted: each command completes those of its flags that others complete as well.
func TestFlagsAreCompleted(t *testing.T) {
	looked := 0
	for _, command := range leaves(newRoot("kubectl-fw", genericiooptions.NewTestIOStreamsDiscard())) {
		for _, name := range []string{"output", "operator-namespace", "to", "from", "backend", "cluster"} {
			if command.LocalNonPersistentFlags().Lookup(name) == nil {
				continue
			}
			looked++
			if _, completes := command.GetFlagCompletionFunc(name); !completes {
				t.Errorf("%s does not complete --%s", command.CommandPath(), name)
			}
		}
	}
	if looked < 20 {
		t.Errorf("looked at %d flags", looked)
	}
}

// TestRevisionsAreToldApart: a number says nothing to who has to choose one.
func TestRevisionsAreToldApart(t *testing.T) {
	out, _, err := run(t, "", "__complete", "--kubeconfig", managementWith(t, nil, completing(t)...), "undo", "web", "--to-revision", "")
	if err != nil || !strings.Contains(out, "2\ttemplate: spec.template.spec.containers[0].image nginx:1.26 -> nginx:1.27\n1\tthe oldest that is kept\n") {
		t.Errorf("error %v, offered:\n%s", err, out)
	}
}

// TestCompletionWithFewRights: what one may not read is left out, in silence.
func TestCompletionWithFewRights(t *testing.T) {
	const configMaps, everywhere, all = "/api/v1/namespaces/fleetworkload-system", "/apis/apps.fleetworkload.io/v1alpha1/fleetworkloads", "/"
	for name, test := range map[string]struct {
		forbidden []string
		line      string
		want      []string
	}{
		"backends of all FleetWorkloads":        {[]string{configMaps}, "render -n empty --backend ", []string{"karmada", "ocm"}},
		"backends of those of the namespace":    {[]string{configMaps, everywhere}, "render -n data --backend ", []string{"ocm"}},
		"no backends":                           {[]string{all}, "render --backend ", nil},
		"no names":                              {[]string{all}, "status ", nil},
		"no namespaces":                         {[]string{all}, "status -n ", nil},
		"no versions":                           {[]string{"/apis/apps/v1/namespaces"}, "undo web --to-revision ", nil},
		"no clusters":                           {[]string{all}, "logs web --cluster ", nil},
		"contexts, which are in the kubeconfig": {[]string{all}, "status --context p", []string{"prod"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, files := completed(t, managementWith(t, test.forbidden, completing(t)...), strings.Split(test.line, " ")...)
			if !slices.Equal(got, test.want) || files {
				t.Errorf("offered are %v, want %v; files: %t", got, test.want, files)
			}
		})
	}
	if got, files := completed(t, filepath.Join(t.TempDir(), "none"), "status", ""); got != nil || files {
		t.Errorf("without a kubeconfig, %v, files: %t", got, files)
	}
}

// programs is a folder with kubectl-fw, the file that kubectl completes it by, and a kubectl that only knows how to start this plugin.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	completer, err := os.ReadFile("kubectl_complete-fw")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"kubectl-fw":          "#!/bin/sh\n" + asKubectlFW + "=1 exec '" + self + "' \"$@\"\n",
		"kubectl_complete-fw": string(completer),
		"kubectl":             "#!/bin/sh\n[ \"$1\" = fw ] && shift && exec kubectl-fw \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestKubectlCompletes starts what kubectl looks for on the PATH, with what it gives it: the words behind the plugin's name.
func TestKubectlCompletes(t *testing.T) {
	folder, kubeconfig := programs(t), managementWith(t, nil, completing(t)...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "kubectl_complete-fw"), "--kubeconfig", kubeconfig, "migrate", "web", "--to", "k")
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	if out, err := cmd.Output(); err != nil || string(out) != "karmada\n:4\n" {
		t.Errorf("error %v, kubectl reads %q", err, out)
	}
}

// inBash is what bash itself completes a line to: the script is loaded, and the function that it registers is called as bash does. The one of the
// package bash-completion that it calls is not everywhere.
const inBash = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
_init_completion() { _get_comp_words_by_ref; }
compopt() { :; } # bash has it only while it completes
source <(kubectl-fw completion bash) || exit 1
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
$(complete -p kubectl-fw | sed 's/.*-F \([^ ]*\).*/\1/') || exit 1
printf '%s\n' "${COMPREPLY[@]}"
`

func TestBashCompletes(t *testing.T) {
	folder, kubeconfig := programs(t), managementWith(t, nil, completing(t)...)
	for line, want := range map[string]string{
		"kubectl-fw st":                  "status",
		"kubectl-fw status ":             "cart\nweb",
		"kubectl-fw migrate web --to oc": "ocm\nocm-eu",
		"kubectl-fw -n ":                 "data\nfleetworkload-system\nshop",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", inBash, "bash"}, strings.Split(line, " ")...)...)
		cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), "\n"); err != nil || got != want {
			t.Errorf("%q: error %v, bash offers\n%s", line, err, got)
		}
	}
}

// TestCompletionScripts: each shell gets one that asks this program.
func TestCompletionScripts(t *testing.T) {
	for shell, registers := range map[string]string{
		"bash": "complete -o default -F __start_kubectl-fw kubectl-fw", "zsh": "#compdef kubectl-fw", "fish": "complete -c kubectl-fw", "powershell": "Register-ArgumentCompleter -CommandName 'kubectl-fw'",
	} {
		out, _, err := run(t, "", "completion", shell)
		if err != nil || !strings.Contains(out, registers) || !strings.Contains(out, "__complete") {
			t.Errorf("%s: error %v, without %q:\n%.300s", shell, err, registers, out)
		}
	}
}
