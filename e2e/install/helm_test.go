//go:build api

package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// What the pages have people type.
const (
	makeNamespace = "kubectl apply -f config/rbac/account/namespace.yaml"
	helmInstall   = "helm install fleetworkload charts/fleetworkload -n fleetworkload-system --create-namespace -f values.yaml"
	helmOwnImage  = "helm install fleetworkload charts/fleetworkload -n fleetworkload-system -f values.yaml " +
		"--set manager.image.repository=registry.example.com/fleetworkload --set manager.image.tag=v0.1.0-1"
	helmTest      = "helm test fleetworkload -n fleetworkload-system"
	helmReplace   = "helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system -f values.yaml"
	helmUpgrade   = "helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system --reset-then-reuse-values"
	helmRollback  = "helm rollback fleetworkload -n fleetworkload-system"
	helmUninstall = "helm uninstall fleetworkload -n fleetworkload-system"
	deleteTrial   = "kubectl delete fleetworkload web -n fw-trial"
)

// afterwards is what is there when the chart was installed and nobody has used it.
func afterwards(more ...string) []string {
	return slices.Sorted(slices.Values(append(more, "apiservices v1alpha1.apps.fleetworkload.io",
		"customresourcedefinitions "+crdName, "namespaces "+namespace, "serviceaccounts default")))
}

// TestHelm goes through a release's life: the first hour, other values, another version and back, uninstalled and installed again, and gone.
func TestHelm(t *testing.T) {
	t.Parallel()
	a := newAdministrator(t)
	values := a.files(t, "values.yaml", 2)
	a.types(t, makeNamespace)
	a.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karmada-kubeconfig"}})
	a.writes(t, "values.yaml", values[0])
	a.types(t, helmInstall)
	a.isInstalled(t, "registry.example.com/fleetworkload:trial")
	a.actsAsOperator(t)
	fw := a.authors(t)
	a.asksInAPod(t)

	alone := a.inventory(t)
	a.writes(t, "values.yaml", both(t, values))
	a.types(t, helmReplace)
	a.isTrusted(t)
	a.isConfigured(t, `installation: "trial"`, "name: karmada", "name: ocm")
	a.hasMore(t, alone, "clusterrolebindings fleetworkload-ocm", "clusterroles fleetworkload-ocm", "validatingadmissionpolicies fleetworkload-protection",
		"validatingadmissionpolicybindings fleetworkload-protection")
	a.types(t, helmRollback)
	a.isConfigured(t, `installation: "trial"`, "name: karmada")
	a.hasMore(t, alone)
	a.isUntouched(t, fw)
	a.changesVersions(t, fw)

	a.types(t, helmUninstall)
	left := []string{"fleetworkloads fw-trial/web", "leases fleetworkload.fleetworkload.io", "pods fleetworkload-test", "secrets fleetworkload-webhook", "secrets karmada-kubeconfig"}
	same(t, "left after helm uninstall", a.inventory(t).names(), afterwards(left...))
	lists(t, "fleetworkload-webhook", "fleetworkload.fleetworkload.io", "fleetworkload-test", "the CRD and all FleetWorkloads", "the operator's namespace |", "kubeconfigs' Secrets")
	a.isUntouched(t, fw)
	a.writes(t, "values.yaml", values[1])
	a.types(t, helmOwnImage)
	a.isConfigured(t, `installation: "trial"`, "name: ocm")
	a.isInstalled(t, "registry.example.com/fleetworkload:v0.1.0-1")
	a.isUntouched(t, fw)

	a.isDeleted(t, deleteTrial, fw)
	a.types(t, helmUninstall)
	a.types(t, "kubectl delete crd fleetworkloads.apps.fleetworkload.io")
	a.types(t, "kubectl delete namespace fleetworkload-system")
	same(t, "left of all", a.inventory(t).names(), nil)

	a.trySwitches(t)
	a.tryAnotherName(t)
	a.hasTyped(t, func(command string) bool { return strings.HasPrefix(command, "helm ") }, map[string]string{
		"helm test":      "it names the command above it",
		"helm uninstall": "it names the command of the first hour",
	})
}

// lists wants the page to say of these that they are left.
func lists(tb testing.TB, left ...string) {
	tb.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "installation.md"))
	if err != nil {
		tb.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Uninstalling\n")
	table, _, _ := strings.Cut(section, "\n**To go on")
	for _, text := range left {
		if !strings.Contains(table, text) {
			tb.Errorf("docs/installation.md does not list %q among what is left", text)
		}
	}
}

// both are the values of a page for one backend each, put together as it says: the backends, and no rbac.
func both(tb testing.TB, values []string) string {
	tb.Helper()
	var all map[string]any
	var backends []any
	for _, text := range values {
		all = nil
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			tb.Fatal(err)
		}
		backends = append(backends, all["backends"].([]any)...)
	}
	delete(all, "rbac")
	all["backends"] = backends
	raw, err := yaml.Marshal(all)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

// changesVersions upgrades to a version with another default, a new value and a new field, and back.
func (a *administrator) changesVersions(tb testing.TB, fw *v1alpha1.FleetWorkload) {
	tb.Helper()
	before, older := a.inventory(tb), a.dir
	a.dir = newerVersion(tb)
	reusing := strings.Replace(helmUpgrade, "--reset-then-reuse-values", "--reuse-values", 1)
	if out, err := a.shell(tb, reusing); err == nil || !strings.Contains(out, "nil pointer evaluating") {
		tb.Errorf("%s: %v\n%s", reusing, err, out)
	}
	a.types(tb, helmUpgrade)
	a.isTrusted(tb)
	a.hasMore(tb, before, "configmaps novelty")
	a.isConfigured(tb, `installation: "trial"`, "name: karmada")
	a.runs(tb, "registry.example.com/fleetworkload:trial", "--zap-log-level=debug")
	a.isUntouched(tb, fw)
	a.hasField(tb, true)

	a.dir = older
	a.types(tb, helmRollback)
	a.hasMore(tb, before)
	a.runs(tb, "registry.example.com/fleetworkload:trial", "--zap-log-level=info")
	a.isUntouched(tb, fw)
	a.hasField(tb, false)
	a.isTrusted(tb)
}

// newerVersion is a checkout of another version of the chart.
func newerVersion(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	chart := filepath.Join(dir, "charts", "fleetworkload")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(root, "charts", "fleetworkload"))); err != nil {
		tb.Fatal(err)
	}
	for _, change := range []struct{ file, from, to string }{
		{"Chart.yaml", "\nversion: 0.1.0\n", "\nversion: 0.2.0\n"},
		{"values.yaml", "\n  logLevel: info\n", "\n  logLevel: debug\n"},
		{"values.yaml", "\nserviceAccount:\n", "\nnovelty:\n  enabled: true\nserviceAccount:\n"},
		{"values.schema.json", `    "global": {"type": "object"},`, `    "global": {"type": "object"}, "novelty": {"type": "object"},`},
		{"files/crd.yaml", "\n              suspend:\n", "\n              novelty:\n                type: string\n              suspend:\n"},
	} {
		path := filepath.Join(chart, change.file)
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		if n := strings.Count(string(text), change.from); n != 1 {
			tb.Fatalf("%s has %q %d times", change.file, change.from, n)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), change.from, change.to, 1)), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	template := "{{- if .Values.novelty.enabled }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: novelty}\n{{- end }}\n"
	if err := os.WriteFile(filepath.Join(chart, "templates", "novelty.yaml"), []byte(template), 0o600); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// hasField wants the CRD to be the one with the new field, or the one without.
func (a *administrator) hasField(tb testing.TB, want bool) {
	tb.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := a.api.Get(tb.Context(), client.ObjectKey{Name: crdName}, crd); err != nil {
		tb.Fatal(err)
	}
	if _, has := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["novelty"]; has != want {
		tb.Errorf("the CRD has the new field: %t, want %t", has, want)
	}
}
