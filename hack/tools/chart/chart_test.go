// SPDX-License-Identifier: Apache-2.0

// Package chart checks that the Helm chart is sound and says the same as the kustomize bases in config/. It lives in
// the module of tools so that Helm and kustomize stay out of the operator's own module.
package chart

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../../.."
	chartDir  = root + "/charts/fleetworkload"
	namespace = "fleetworkload-system"
)

var kubeVersion = chartutil.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}

type object = map[string]any

// objects are found by kind/name.
type objects map[string]object

func (o objects) get(t *testing.T, key string) object {
	t.Helper()
	obj, ok := o[key]
	if !ok {
		t.Fatalf("%s is missing; there are %v", key, slices.Sorted(maps.Keys(o)))
	}
	return obj
}

// at follows a path of map keys and list indexes.
func at(t *testing.T, obj any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			obj = obj.(object)[step]
		case int:
			obj = obj.([]any)[step]
		}
		if obj == nil {
			t.Fatalf("nothing at %v of %v", step, path)
		}
	}
	return obj
}

func parse(t *testing.T, manifests ...string) objects {
	t.Helper()
	found := objects{}
	for _, manifest := range manifests {
		for _, doc := range strings.Split("\n"+manifest, "\n---") {
			obj := object{}
			if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
				t.Fatalf("parse rendered manifest: %v\n%s", err, doc)
			}
			if len(obj) == 0 {
				continue
			}
			key := at(t, obj, "kind").(string) + "/" + at(t, obj, "metadata", "name").(string)
			if found[key] != nil {
				t.Errorf("%s is there twice, which Helm fails to install", key)
			}
			found[key] = obj
		}
	}
	return found
}

func renderFiles(t *testing.T, values object, capabilities *chartutil.Capabilities) (map[string]string, error) {
	t.Helper()
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatalf("load chart: %v", err)
	}
	release := chartutil.ReleaseOptions{Name: "fleetworkload", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, all)
}

// render returns what an installation consists of, without what is there during a test only.
func render(t *testing.T, values object) (objects, error) {
	t.Helper()
	found, err := renderAll(t, values)
	maps.DeleteFunc(found, func(_ string, obj object) bool { return hook(obj) != "" })
	return found, err
}

// hook is when Helm creates the object, which it does with the rest when empty.
func hook(obj object) string {
	metadata, _ := obj["metadata"].(object)
	annotations, _ := metadata["annotations"].(object)
	when, _ := annotations["helm.sh/hook"].(string)
	return when
}

func renderAll(t *testing.T, values object) (objects, error) {
	t.Helper()
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = kubeVersion
	files, err := renderFiles(t, values, capabilities)
	if err != nil {
		return nil, err
	}
	manifests := map[bool][]string{}
	for name, content := range files {
		if filepath.Ext(name) == ".yaml" {
			inTest := strings.Contains(name, "/templates/tests/")
			manifests[inTest] = append(manifests[inTest], content)
		}
	}
	found := parse(t, manifests[false]...)
	for key, obj := range parse(t, manifests[true]...) {
		if _, twice := found[key]; twice || hook(obj) != "test" {
			t.Errorf("%s is in templates/tests, but not there for the test alone", key)
		}
		found[key] = obj
	}
	return found, nil
}

func mustRender(t *testing.T, values object) objects {
	t.Helper()
	found, err := render(t, values)
	if err != nil {
		t.Fatalf("render chart: %v", err)
	}
	return found
}

func build(t *testing.T, base string) objects {
	t.Helper()
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", base))
	if err != nil {
		t.Fatalf("kustomize build config/%s: %v", base, err)
	}
	manifest, err := result.AsYaml()
	if err != nil {
		t.Fatalf("write config/%s: %v", base, err)
	}
	return parse(t, string(manifest))
}

func equal(t *testing.T, what string, chart, config any) {
	t.Helper()
	if !reflect.DeepEqual(chart, config) {
		a, _ := yaml.Marshal(chart)
		b, _ := yaml.Marshal(config)
		t.Errorf("%s differs.\nchart:\n%s\nconfig:\n%s", what, a, b)
	}
}

func TestLint(t *testing.T) {
	for _, m := range lint.AllWithKubeVersion(chartDir, nil, namespace, &kubeVersion).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
}

func TestBasesBuild(t *testing.T) {
	for _, base := range []string{"crd", "default", "manager", "samples", "admission", "webhook", "rbac/users", "monitoring", "flowcontrol", "backends/karmada", "backends/ocm"} {
		if len(build(t, base)) == 0 {
			t.Errorf("config/%s is empty", base)
		}
	}
}

// TestTheNamespaceStaysWhereItIs: Karmada makes a namespace of its control plane on all members, unless a label says not to. With Helm,
// which cannot label one, a note tells how.
func TestTheNamespaceStaysWhereItIs(t *testing.T) {
	const label = "namespace.karmada.io/skip-auto-propagation"
	for _, base := range []string{"default", "backends/karmada", "backends/ocm"} {
		if got := at(t, build(t, base).get(t, "Namespace/"+namespace), "metadata", "labels", label); got != "true" {
			t.Errorf("%s: label %s is %v", base, label, got)
		}
	}
	for _, karmada := range []bool{true, false} {
		capabilities := chartutil.DefaultCapabilities.Copy()
		capabilities.KubeVersion = kubeVersion
		if karmada {
			capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), "policy.karmada.io/v1alpha1")
		}
		files, err := renderFiles(t, object{}, capabilities)
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["fleetworkload/templates/NOTES.txt"]; strings.Contains(notes, "kubectl label namespace "+namespace+" "+label+"=true") != karmada {
			t.Errorf("on Karmada %v, the notes say:\n%s", karmada, notes)
		}
	}
}

// TestNotesOnKubeconfigs: where the operator runs they say which Secrets it expects, and on a backend how such a one is made.
func TestNotesOnKubeconfigs(t *testing.T) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = kubeVersion
	for want, values := range map[string]object{
		"expects Secret hub with key kubeconfig in this namespace": {"backends": []any{object{"name": "ocm", "type": "OCM", "connection": object{"secretRef": object{"name": "hub"}}}}},
		"kubectl fw kubeconfig BACKEND --backend-kubeconfig FILE --service-account robot --service-account-namespace " + namespace: {
			"manager": object{"enabled": false}, "serviceAccount": object{"name": "robot"},
		},
	} {
		files, err := renderFiles(t, values, capabilities)
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["fleetworkload/templates/NOTES.txt"]; !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

func TestRulesAreEqual(t *testing.T) {
	chart := mustRender(t, object{"rbac": object{"karmada": true, "ocm": false}})
	maps.Copy(chart, mustRender(t, nil)) // with OCM's
	roles := 0
	for _, base := range []string{"rbac/management", "rbac/karmada", "rbac/ocm", "rbac/users", "webhook"} {
		for key, role := range build(t, base) {
			switch field := map[string]string{"ClusterRole": "rules", "Role": "rules", "ClusterRoleBinding": "roleRef", "RoleBinding": "roleRef"}[at(t, role, "kind").(string)]; field {
			case "":
				if base != "webhook" {
					t.Errorf("config/%s has %s, which this test does not know", base, key)
				}
			default:
				roles++
				equal(t, key, chart.get(t, key)[field], role[field])
				equal(t, "subjects of "+key, chart.get(t, key)["subjects"], role["subjects"])
			}
		}
	}
	for key, obj := range chart {
		if _, isRole := obj["rules"]; isRole {
			roles--
			t.Logf("compared %s", key)
		}
		if _, isBinding := obj["roleRef"]; isBinding {
			roles--
		}
	}
	if roles != 0 {
		t.Errorf("chart and config differ by %d roles and bindings", roles)
	}
}

func TestNoRoleIsTooStrong(t *testing.T) {
	for _, base := range []string{"rbac/management", "rbac/karmada", "rbac/ocm", "webhook"} {
		for key, role := range build(t, base) {
			rules, _ := role["rules"].([]any)
			for _, rule := range rules {
				for _, list := range []string{"apiGroups", "resources", "nonResourceURLs", "verbs"} {
					values, _ := rule.(object)[list].([]any)
					for _, value := range values {
						if value == "*" || list == "verbs" && (value == "escalate" || value == "impersonate" || value == "deletecollection") {
							t.Errorf("%s grants %s %v", key, list, value)
						}
					}
				}
			}
		}
	}
}

// TestWhichSecretsAreWritten: of the Secrets of its namespace, the operator may write those with kubeconfigs whose tokens it renews. Helm's releases,
// which are there too, would let it have anything installed.
func TestWhichSecretsAreWritten(t *testing.T) {
	secret := func(backend, name string) object {
		return object{"name": backend, "type": "Karmada", "connection": object{"secretRef": object{"name": name}}}
	}
	for name, test := range map[string]struct {
		backends []any
		want     []any
	}{
		"two, one of them twice": {[]any{secret("a", "one"), secret("b", "two"), secret("c", "one")}, []any{"one", "two"}},
		"none":                   {[]any{object{"name": "ocm", "type": "OCM", "connection": object{"inCluster": object{}}}}, nil},
	} {
		var got []any
		for _, rule := range at(t, mustRender(t, object{"backends": test.backends}).get(t, "Role/fleetworkload-management"), "rules").([]any) {
			rule := rule.(object)
			if !slices.Contains(rule["resources"].([]any), any("secrets")) || !slices.Contains(rule["verbs"].([]any), any("update")) {
				continue
			}
			if got, _ = rule["resourceNames"].([]any); len(got) == 0 {
				t.Errorf("%s: it may write all Secrets", name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: it may write %v", name, got)
		}
	}
}

// TestTheSameObjects: neither way to install leaves something out.
func TestTheSameObjects(t *testing.T) {
	chart, config := mustRender(t, nil), build(t, "default")
	for key := range config {
		if strings.HasPrefix(key, "ConfigMap/fleetworkload-config-") { // kustomize adds a hash
			delete(config, key)
			config["ConfigMap/fleetworkload-config"] = object{}
		}
	}
	delete(config, "Namespace/"+namespace) // Helm is told which one to make
	for key, obj := range chart {
		if _, found := config[key]; !found {
			t.Errorf("the chart alone has %s", key)
		}
		if strings.HasPrefix(key, "ValidatingAdmissionPolicy") {
			equal(t, key, obj["spec"], config[key]["spec"])
		}
	}
	for key := range config {
		if _, found := chart[key]; !found {
			t.Errorf("config/default alone has %s", key)
		}
	}
}

// TestABackendAlone: on an API server of its own, chart and config/backends make the same objects, and the account may ask for tokens of itself alone.
func TestABackendAlone(t *testing.T) {
	for _, backend := range []string{"karmada", "ocm"} {
		values := object{
			"manager": object{"enabled": false}, "crds": object{"install": false},
			"rbac": object{"management": false, "karmada": backend == "karmada", "ocm": backend == "ocm"},
		}
		chart, config := mustRender(t, values), build(t, "backends/"+backend)
		delete(config, "Namespace/"+namespace) // Helm is told which one to make
		for key, obj := range chart {
			if config[key] == nil {
				t.Errorf("%s: the chart alone has %s", backend, key)
				continue
			}
			for _, field := range []string{"rules", "roleRef", "subjects", "spec"} {
				equal(t, backend+": "+field+" of "+key, obj[field], config[key][field])
			}
		}
		for key := range config {
			if chart[key] == nil {
				t.Errorf("%s: config/backends alone has %s", backend, key)
			}
		}
		if rules := at(t, chart.get(t, "Role/fleetworkload-tokens"), "rules").([]any); len(rules) != 1 || len(at(t, rules[0].(object), "resourceNames").([]any)) != 1 {
			t.Errorf("%s: whose tokens: %v", backend, rules)
		}
	}
}

// TestPodsAreRestricted asks Kubernetes' own rules, of the level that config/rbac/account puts on the namespace.
func TestPodsAreRestricted(t *testing.T) {
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := renderAll(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]any{
		"the chart's Deployment": at(t, chart.get(t, "Deployment/fleetworkload"), "spec", "template", "spec"),
		"config's Deployment":    at(t, build(t, "default").get(t, "Deployment/fleetworkload"), "spec", "template", "spec"),
		"the pod of `helm test`": at(t, chart.get(t, "Pod/fleetworkload-test"), "spec"),
	} {
		raw, err := yaml.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		pod := corev1.PodSpec{}
		if err := yaml.UnmarshalStrict(raw, &pod); err != nil {
			t.Fatal(err)
		}
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		if result := policy.AggregateCheckResults(judge.EvaluatePod(level, &metav1.ObjectMeta{}, &pod)); !result.Allowed {
			t.Errorf("%s is not restricted: %s", name, result.ForbiddenDetail())
		}
	}
	if got := at(t, build(t, "default").get(t, "Namespace/"+namespace), "metadata", "labels", api.EnforceLevelLabel); got != string(api.LevelRestricted) {
		t.Errorf("the namespace enforces %v", got)
	}
}

// TestWhatIsLeftOutIsNotRead: a kind of dependencies that is not to be read needs no right, and others keep theirs.
func TestWhatIsLeftOutIsNotRead(t *testing.T) {
	resources := func(leaveOut ...any) []any {
		chart := mustRender(t, object{"dependencies": object{"leaveOut": leaveOut}})
		var all []any
		for _, rule := range at(t, chart.get(t, "ClusterRole/fleetworkload-management"), "rules").([]any) {
			if some := rule.(object)["resources"].([]any); len(some) > 0 {
				all = append(all, some...)
			} else {
				t.Errorf("a rule is empty without %v", leaveOut)
			}
		}
		return all
	}
	for kind, resource := range map[string]string{
		"ConfigMap": "configmaps", "Secret": "secrets", "ServiceAccount": "serviceaccounts", "PersistentVolumeClaim": "persistentvolumeclaims",
	} {
		equal(t, "resources without "+kind, resources(kind), slices.DeleteFunc(resources(), func(r any) bool { return r == resource }))
		if !slices.Contains(resources(), any(resource)) {
			t.Errorf("%s are not read at all", resource)
		}
	}
	if got := resources("ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"); !slices.Contains(got, any("fleetworkloads")) {
		t.Errorf("left are %v", got)
	}
}

func TestDeploymentsAreEqual(t *testing.T) {
	chart := mustRender(t, nil).get(t, "Deployment/fleetworkload")
	config := build(t, "default").get(t, "Deployment/fleetworkload")
	pod := []any{"spec", "template", "spec"}
	equal(t, "pod security", at(t, chart, append(pod, "securityContext")...), at(t, config, append(pod, "securityContext")...))
	equal(t, "service account", at(t, chart, append(pod, "serviceAccountName")...), at(t, config, append(pod, "serviceAccountName")...))
	fromChart := at(t, chart, append(pod, "containers", 0)...).(object)
	fromConfig := at(t, config, append(pod, "containers", 0)...).(object)
	for _, field := range []string{"image", "env", "ports", "livenessProbe", "readinessProbe", "resources", "securityContext", "volumeMounts"} {
		equal(t, field, fromChart[field], fromConfig[field])
	}
	args := slices.DeleteFunc(slices.Clone(fromChart["args"].([]any)), func(arg any) bool { return arg == "--zap-log-level=info" })
	equal(t, "args", args, fromConfig["args"])
	equal(t, "replicas", at(t, chart, "spec", "replicas"), at(t, config, "spec", "replicas"))
}

// TestWhoIsAskedIsEqual compares what the API server asks, and who.
func TestWhoIsAskedIsEqual(t *testing.T) {
	chart, config := mustRender(t, nil), build(t, "default")
	const hook, policy = "ValidatingWebhookConfiguration/fleetworkload", "ValidatingAdmissionPolicy/fleetworkload-authors"
	equal(t, hook, chart.get(t, hook)["webhooks"], config.get(t, hook)["webhooks"])
	equal(t, policy, chart.get(t, policy)["spec"], config.get(t, policy)["spec"])
	equal(t, policy+"'s binding", chart.get(t, "ValidatingAdmissionPolicyBinding/fleetworkload-authors")["spec"],
		config.get(t, "ValidatingAdmissionPolicyBinding/fleetworkload-authors")["spec"])
	for _, who := range []string{"viewer", "editor", "approver"} {
		role := "ClusterRole/fleetworkload-" + who
		for key, value := range at(t, config.get(t, role), "metadata", "labels").(object) {
			equal(t, role+"'s label "+key, at(t, chart.get(t, role), "metadata", "labels", key), value)
		}
	}
	// The policy lets pass what the webhook is not asked about, and nothing else.
	ships := ""
	for _, variable := range at(t, config.get(t, policy), "spec", "variables").([]any) {
		if at(t, variable, "name") == "ships" {
			ships = at(t, variable, "expression").(string)
		}
	}
	equal(t, "what is shipped", at(t, config.get(t, hook), "webhooks", 0, "matchConditions", 0, "expression"), any(ships))
}

// TestCertificates: the operator makes its own, or cert-manager does; without a webhook there is none.
func TestCertificates(t *testing.T) {
	own, off := mustRender(t, nil), mustRender(t, object{"webhook": object{"enabled": false}})
	managed := mustRender(t, object{"webhook": object{"certManager": object{"enabled": true}}})
	issued := mustRender(t, object{"webhook": object{"certManager": object{"enabled": true, "issuerRef": object{"kind": "ClusterIssuer", "name": "internal"}}}})
	for key, in := range map[string][3]bool{ // own, managed, off
		"ValidatingWebhookConfiguration/fleetworkload":    {true, true, false},
		"Service/fleetworkload-webhook":                   {true, true, false},
		"Role/fleetworkload-webhook":                      {true, false, false},
		"ClusterRole/fleetworkload-webhook":               {true, false, false},
		"Certificate/fleetworkload-webhook":               {false, true, false},
		"ValidatingAdmissionPolicy/fleetworkload-authors": {true, true, true},
	} {
		for i, chart := range []objects{own, managed, off} {
			if _, found := chart[key]; found != in[i] {
				t.Errorf("case %d: %s is there: %t", i, key, found)
			}
		}
	}
	const ca = "cert-manager.io/inject-ca-from"
	if got := at(t, managed.get(t, "ValidatingWebhookConfiguration/fleetworkload"), "metadata", "annotations", ca); got != namespace+"/fleetworkload-webhook" {
		t.Errorf("the CA is injected from %v", got)
	}
	equal(t, "issuer", at(t, issued.get(t, "Certificate/fleetworkload-webhook"), "spec", "issuerRef"), any(object{"kind": "ClusterIssuer", "name": "internal"}))
	pod := at(t, managed.get(t, "Deployment/fleetworkload"), "spec", "template", "spec")
	if args := at(t, pod, "containers", 0, "args").([]any); !slices.Contains(args, any("--webhook-cert-dir=/etc/fleetworkload-webhook")) {
		t.Errorf("the operator is not told of cert-manager's certificate: %v", args)
	}
	equal(t, "mounted Secret", at(t, pod, "volumes", 1, "secret", "secretName"), any("fleetworkload-webhook"))
}

func TestWhatIsServedIsEqual(t *testing.T) {
	chart, config := mustRender(t, nil), build(t, "default")
	for key, selector := range map[string][]any{
		"Service/fleetworkload-metrics":     {"spec", "selector"},
		"Service/fleetworkload-webhook":     {"spec", "selector"},
		"NetworkPolicy/fleetworkload":       {"spec", "podSelector", "matchLabels"},
		"PodDisruptionBudget/fleetworkload": {"spec", "selector", "matchLabels"},
	} {
		labels := at(t, chart.get(t, key), selector...).(object)
		if labels["app.kubernetes.io/instance"] == nil {
			t.Errorf("%s chooses the pods of every release", key)
		}
		delete(labels, "app.kubernetes.io/instance") // kustomize has one installation a namespace
		equal(t, key, chart.get(t, key)["spec"], config.get(t, key)["spec"])
	}
}

// TestWhatIsForPrometheusIsEqual: both ways to install have the same, and neither without being asked, as a cluster may lack the CRDs.
func TestWhatIsForPrometheusIsEqual(t *testing.T) {
	const rules, monitor = "PrometheusRule/fleetworkload", "ServiceMonitor/fleetworkload"
	on := object{"enabled": true}
	chart, config := mustRender(t, object{"monitoring": object{"rules": on, "serviceMonitor": on, "labels": object{"release": "prometheus"}}}), build(t, "monitoring")
	equal(t, rules, chart.get(t, rules)["spec"], config.get(t, rules)["spec"])
	selector := at(t, chart.get(t, monitor), "spec", "selector", "matchLabels").(object)
	if !chosen(selector, at(t, chart.get(t, "Service/fleetworkload-metrics"), "metadata", "labels").(object)) {
		t.Error("the chart's ServiceMonitor does not choose its Service")
	}
	if !chosen(at(t, config.get(t, monitor), "spec", "selector", "matchLabels").(object), at(t, build(t, "manager").get(t, "Service/fleetworkload-metrics"), "metadata", "labels").(object)) {
		t.Error("config's ServiceMonitor does not choose its Service")
	}
	delete(selector, "app.kubernetes.io/instance") // kustomize has one installation a namespace
	equal(t, monitor, chart.get(t, monitor)["spec"], config.get(t, monitor)["spec"])
	for _, key := range []string{rules, monitor} {
		equal(t, key+"'s label", at(t, chart.get(t, key), "metadata", "labels", "release"), any("prometheus"))
		if _, there := mustRender(t, nil)[key]; there {
			t.Errorf("%s is there without being asked for", key)
		}
		delete(config, key)
	}
	delete(config, "ConfigMap/fleetworkload-dashboard") // see below
	if len(config) > 0 {
		t.Errorf("config/monitoring alone has %v", slices.Sorted(maps.Keys(config)))
	}
	if _, there := mustRender(t, object{"manager": object{"enabled": false}, "monitoring": object{"serviceMonitor": on}})[monitor]; there {
		t.Error("where no operator is, it is scraped")
	}
}

// TestTheDashboardIsEqual: both ways to install have the same, with the label by which Grafana's sidecar finds it; the chart's is asked for.
func TestTheDashboardIsEqual(t *testing.T) {
	const dashboard = "ConfigMap/fleetworkload-dashboard"
	chart := mustRender(t, object{"monitoring": object{"dashboard": object{"enabled": true}}}).get(t, dashboard)
	config := build(t, "monitoring").get(t, dashboard)
	equal(t, "data of "+dashboard, chart["data"], config["data"])
	for _, found := range []object{chart, config} {
		equal(t, "the label", at(t, found, "metadata", "labels", "grafana_dashboard"), any("1"))
		equal(t, "the namespace", at(t, found, "metadata", "namespace"), any(namespace))
	}
	if _, there := mustRender(t, nil)[dashboard]; there {
		t.Error("the dashboard is there without being asked for")
	}
}

// TestFlowControlIsEqual: both ways to install have the same, and neither without being asked; the chart's is for the release's account.
func TestFlowControlIsEqual(t *testing.T) {
	chart, config := mustRender(t, object{"flowControl": object{"enabled": true}, "serviceAccount": object{"name": "robot"}}), build(t, "flowcontrol")
	for key, want := range config {
		got, there := chart[key]
		if _, unasked := mustRender(t, nil)[key]; !there || unasked {
			t.Errorf("%s: asked for %t, not asked for %t", key, there, unasked)
			continue
		}
		raw, err := yaml.Marshal(got["spec"])
		if err != nil {
			t.Fatal(err)
		}
		ours := strings.ReplaceAll(string(raw), "name: robot", "name: fleetworkload")
		theirs, err := yaml.Marshal(want["spec"])
		if err != nil {
			t.Fatal(err)
		}
		if ours != string(theirs) {
			t.Errorf("%s: the chart has\n%s\nand config/ has\n%s", key, ours, theirs)
		}
		if strings.HasPrefix(key, "FlowSchema/") && !strings.Contains(string(raw), "name: robot") {
			t.Errorf("%s is not for the release's account:\n%s", key, raw)
		}
	}
	if len(config) != 3 {
		t.Errorf("config/flowcontrol has %v", slices.Sorted(maps.Keys(config)))
	}
}

// TestHelmTest: the pod needs no other image and no more rights than the operator, reaches it, and is not taken for it.
func TestHelmTest(t *testing.T) {
	chart, err := renderAll(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, deployment := chart.get(t, "Pod/fleetworkload-test"), chart.get(t, "Deployment/fleetworkload")
	operator := []any{"spec", "template", "spec"}
	equal(t, "pod security", at(t, pod, "spec", "securityContext"), at(t, deployment, append(operator, "securityContext")...))
	for _, field := range []any{"securityContext", "image"} {
		equal(t, field.(string), at(t, pod, "spec", "containers", 0, field), at(t, deployment, append(operator, "containers", 0, field)...))
	}
	selector := at(t, deployment, "spec", "selector", "matchLabels").(object)
	if chosen(selector, at(t, pod, "metadata", "labels").(object)) {
		t.Error("the Services send people's requests to the test's pod")
	}
	equal(t, "whom the test asks", at(t, chart.get(t, "Service/fleetworkload-test"), "spec", "selector"), any(selector))
	rules := at(t, chart.get(t, "Role/fleetworkload-test"), "rules").([]any)
	equal(t, "rights", rules, []any{object{"apiGroups": []any{"apps.fleetworkload.io"}, "resources": []any{"fleetworkloads"}, "verbs": []any{"create"}}})
	allowed := false
	for _, port := range at(t, chart.get(t, "NetworkPolicy/fleetworkload"), "spec", "ingress", 0, "ports").([]any) {
		allowed = allowed || at(t, port, "port") == at(t, chart.get(t, "Service/fleetworkload-test"), "spec", "ports", 0, "targetPort")
	}
	if !allowed {
		t.Error("the NetworkPolicy does not let the test's pod reach the operator")
	}
	for name, c := range map[string]struct {
		values object
		there  int // Service, pod; ServiceAccount, role and binding
	}{
		"all":              {nil, 5},
		"no webhook":       {object{"webhook": object{"enabled": false}}, 2},
		"no roles":         {object{"rbac": object{"management": false}}, 2},
		"a remote backend": {object{"manager": object{"enabled": false}}, 0},
	} {
		chart, err := renderAll(t, c.values)
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(chart, func(_ string, obj object) bool { return hook(obj) == "" })
		if len(chart) != c.there {
			t.Errorf("%s: the test has %v", name, slices.Sorted(maps.Keys(chart)))
		}
		if pod, found := chart["Pod/fleetworkload-test"]; found {
			args := at(t, pod, "spec", "containers", 0, "args").([]any)
			_, account := at(t, pod, "spec").(object)["serviceAccountName"]
			if asks := slices.Contains(args, any("--webhook")); asks != (c.there == 5) || account != asks {
				t.Errorf("%s: the pod has an account %t, and runs %v", name, account, args)
			}
		}
	}
}

// chosen tells whether a selector chooses what has the labels.
func chosen(selector, labels object) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func TestConfigurationsAreEqual(t *testing.T) {
	read := func(configMap object) object {
		out := object{}
		if err := yaml.UnmarshalStrict([]byte(at(t, configMap, "data", "config.yaml").(string)), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	var config object
	for key, obj := range build(t, "default") {
		if strings.HasPrefix(key, "ConfigMap/fleetworkload-config-") {
			config = obj
		}
	}
	equal(t, "config.yaml", read(mustRender(t, nil).get(t, "ConfigMap/fleetworkload-config")), read(config))
}

// TestTracesAreConfigured: a number as large as this must not become 1e+06, which is no whole number to the operator.
func TestTracesAreConfigured(t *testing.T) {
	rendered := mustRender(t, object{"tracing": object{"endpoint": "otel:4317", "samplingRatePerMillion": 1_000_000}})
	text := at(t, rendered.get(t, "ConfigMap/fleetworkload-config"), "data", "config.yaml").(string)
	if want := "\ntracing:\n  endpoint: otel:4317\n  samplingRatePerMillion: 1000000"; !strings.Contains(text, want) {
		t.Errorf("%s\nlacks%s", text, want)
	}
}

// TestMoreOfTheEnvironment: what the chart sets itself stays.
func TestMoreOfTheEnvironment(t *testing.T) {
	container := []any{"spec", "template", "spec", "containers", 0, "env"}
	env := at(t, mustRender(t, nil).get(t, "Deployment/fleetworkload"), container...).([]any)
	more := object{"name": "GOGC", "value": "100"}
	rendered := mustRender(t, object{"manager": object{"extraEnv": []any{more}, "shards": []any{"a"}}})
	for _, name := range []string{"fleetworkload", "fleetworkload-a"} {
		equal(t, name, at(t, rendered.get(t, "Deployment/"+name), container...), append(slices.Clone(env), more))
	}
}

// TestShards: each namespace is one operator's, which has a lease of its own, and nothing else of the Deployments differs.
func TestShards(t *testing.T) {
	one := mustRender(t, nil)
	all := mustRender(t, object{"manager": object{"shards": []any{"a", "b"}}})
	if len(all) != len(one)+2 {
		t.Errorf("%d objects, and %d without shards", len(all), len(one))
	}
	before := at(t, one.get(t, "Deployment/fleetworkload"), "spec", "template", "spec", "containers", 0).(object)
	for name, want := range map[string][]any{
		"fleetworkload":   {"--watch-namespace-selector=fleetworkload.io/shard notin (a,b)"},
		"fleetworkload-a": {"--leader-election-id=fleetworkload-a.fleetworkload.io", "--watch-namespace-selector=fleetworkload.io/shard=a"},
		"fleetworkload-b": {"--leader-election-id=fleetworkload-b.fleetworkload.io", "--watch-namespace-selector=fleetworkload.io/shard=b"},
	} {
		deployment := all.get(t, "Deployment/"+name)
		container := at(t, deployment, "spec", "template", "spec", "containers", 0).(object)
		var more []any
		for _, arg := range container["args"].([]any) {
			if !slices.Contains(before["args"].([]any), arg) {
				more = append(more, arg)
			}
		}
		equal(t, name+" args", more, want)
		container["args"] = before["args"]
		equal(t, name, container, before)
		labels := at(t, deployment, "spec", "template", "metadata", "labels").(object)
		for key, value := range at(t, deployment, "spec", "selector", "matchLabels").(object) {
			equal(t, name+" "+key, labels[key], value)
		}
		for _, kind := range []string{"Service/fleetworkload-metrics", "Service/fleetworkload-webhook"} {
			for key, value := range at(t, all.get(t, kind), "spec", "selector").(object) {
				equal(t, kind+" "+key, labels[key], value)
			}
		}
	}
}

// TestTheAlertKnowsTheShards: hack/monitoring sees that the expression fires for one of which nothing is left. Nothing else of the rules differs.
func TestTheAlertKnowsTheShards(t *testing.T) {
	const rules, alert = "PrometheusRule/fleetworkload", "FleetWorkloadNoLeader"
	monitoring := object{"rules": object{"enabled": true}}
	one := mustRender(t, object{"monitoring": monitoring}).get(t, rules)
	all := mustRender(t, object{"monitoring": monitoring, "manager": object{"shards": []any{"a", "b"}}}).get(t, rules)
	want, err := os.ReadFile(filepath.Join(root, "hack", "monitoring", "testdata", "no-leader-of-shards.promql"))
	if err != nil {
		t.Fatal(err)
	}
	rule := at(t, all, "spec", "groups", 0, "rules", 0).(object)
	equal(t, "the first alert", rule["alert"], any(alert))
	equal(t, "its expression", rule["expr"], any(string(want)))
	rule["expr"] = at(t, one, "spec", "groups", 0, "rules", 0, "expr")
	equal(t, rules, all["spec"], one["spec"])
}

func TestCRDsAreEqual(t *testing.T) {
	const key = "CustomResourceDefinition/fleetworkloads.apps.fleetworkload.io"
	chart := mustRender(t, nil).get(t, key)
	equal(t, key, chart["spec"], build(t, "crd").get(t, key)["spec"])
	if got := at(t, chart, "metadata", "annotations", "helm.sh/resource-policy"); got != "keep" {
		t.Errorf("uninstalling would remove every FleetWorkload: resource-policy is %v", got)
	}
}

func TestValuesAreChecked(t *testing.T) {
	for name, values := range map[string]object{
		"unknown key":                    {"mangaer": object{}},
		"unknown backend":                {"backends": []any{object{"name": "a", "type": "Other", "connection": object{"inCluster": object{}}}}},
		"two connections":                {"backends": []any{object{"name": "a", "type": "OCM", "connection": object{"inCluster": object{}, "kubeconfigFile": "f"}}}},
		"traces by a field nobody knows": {"tracing": object{"url": "http://otel:4317", "samplingRatePerMillion": 1}},
		"more than every trace":          {"tracing": object{"endpoint": "otel:4317", "samplingRatePerMillion": 1_000_001}},
		"a shard twice":                  {"manager": object{"shards": []any{"a", "a"}}},
		"a shard that is no label":       {"manager": object{"shards": []any{"a,b"}}},
		"a number for a variable":        {"manager": object{"extraEnv": []any{object{"name": "GOGC", "value": 100}}}},
		"malformed image":                {"manager": object{"image": object{"digest": "latest"}}},
		"Karmada and OCM at once":        {"rbac": object{"karmada": true}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, values); err == nil {
				t.Error("was accepted")
			}
		})
	}
}

// TestValuesInDocs renders the chart with the values that pages show.
func TestValuesInDocs(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "```yaml\n# values.yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			values := object{}
			if err := yaml.UnmarshalStrict([]byte(block), &values); err != nil {
				t.Fatalf("%s: %v in\n%s", page, err, block)
			}
			image := mustRender(t, values).get(t, "Deployment/fleetworkload")
			if got := at(t, image, "spec", "template", "spec", "containers", 0, "image"); got != "registry.example.com/fleetworkload:trial" {
				t.Errorf("%s: the operator's image is %v", page, got)
			}
			rendered++
		}
	}
	if rendered < 2 {
		t.Errorf("rendered %d values", rendered)
	}
}

// TestDocumentedChart renders the example of the page, which shows what comes out.
func TestDocumentedChart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := func(language, begin string) string {
		t.Helper()
		_, rest, found := strings.Cut(string(text), "```"+language+"\n# "+begin+"\n")
		content, _, ends := strings.Cut(rest, "```")
		if !found || !ends {
			t.Fatalf("the page has no block that begins with %s", begin)
		}
		return content
	}
	values, err := chartutil.ReadValues([]byte(block("yaml", "charts/shop/values.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(values, chartutil.Values{"tag": "1.4", "partition": "25%"})
	const template = "templates/web.yaml"
	shop := &helmchart.Chart{
		Metadata:  &helmchart.Metadata{Name: "shop", Version: "1.0.0", APIVersion: helmchart.APIVersionV2},
		Templates: []*helmchart.File{{Name: template, Data: []byte(block("text", "charts/shop/"+template))}},
	}
	rendered, err := engine.Render(shop, chartutil.Values{"Values": values, "Release": chartutil.Values{"Name": "shop"}, "Chart": shop.Metadata})
	if err != nil {
		t.Fatal(err)
	}
	want := block("yaml", "helm template shop charts/shop --set tag=1.4 --set partition=25%")
	if got := rendered["shop/"+template]; got != want {
		t.Errorf("the page shows\n%s\nhelm renders\n%s", want, got)
	}
}
