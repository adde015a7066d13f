//go:build api

package install

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// remoteKarmada installs what the operator needs on a Karmada that is an API server of its own.
	remoteKarmada = "helm install fleetworkload charts/fleetworkload -n fleetworkload-system --create-namespace --kubeconfig karmada-admin.kubeconfig \\\n" +
		"  --set manager.enabled=false --set crds.install=false --set rbac.management=false --set rbac.karmada=true --set rbac.ocm=false"
	// everySwitch has each value of the chart that brings objects of its own.
	everySwitch = `
manager: {shards: [a, b], podAnnotations: {example.com/a: "1"}, nodeSelector: {kubernetes.io/os: linux}, priorityClassName: system-cluster-critical}
installation: prod
dependencies: {leaveOut: [Secret]}
tracing: {endpoint: "otel:4317", samplingRatePerMillion: 10000}
webhook: {certManager: {enabled: true}}
monitoring: {rules: {enabled: true}, serviceMonitor: {enabled: true}, labels: {release: prometheus}, dashboard: {enabled: true}}
flowControl: {enabled: true}
rbac: {karmada: true, ocm: false}
serviceAccount: {name: robot, annotations: {example.com/a: "1"}}
`
)

// trySwitches installs the chart with other values, each time anew, and wants all of it to go again.
func (a *administrator) trySwitches(tb testing.TB) {
	tb.Helper()
	a.knowsOthers(tb)
	link(tb, a.server.Kubeconfig(), filepath.Join(a.dir, "karmada-admin.kubeconfig"))
	for _, c := range []struct {
		name, command, values string
		there, never          []string
	}{
		{"its own values", helmInstall, "", []string{"deployments fleetworkload", "clusterroles fleetworkload-ocm"},
			[]string{"flowschemas fleetworkload", "configmaps fleetworkload-dashboard", "clusterroles fleetworkload-karmada"}},
		{"every switch", helmInstall, everySwitch, []string{"deployments fleetworkload", "deployments fleetworkload-a", "deployments fleetworkload-b",
			"flowschemas fleetworkload", "flowschemas fleetworkload-lease", "prioritylevelconfigurations fleetworkload", "certificates fleetworkload-webhook",
			"issuers fleetworkload-webhook", "prometheusrules fleetworkload", "servicemonitors fleetworkload", "configmaps fleetworkload-dashboard",
			"clusterroles fleetworkload-karmada", "serviceaccounts robot", "validatingadmissionpolicies fleetworkload-companions",
			"validatingadmissionpolicies fleetworkload-protection"}, []string{"serviceaccounts fleetworkload"}},
		{"a Karmada of its own", remoteKarmada, "", []string{"clusterroles fleetworkload-karmada", "roles fleetworkload-tokens", "serviceaccounts fleetworkload",
			"validatingadmissionpolicies fleetworkload-companions"}, []string{"deployments fleetworkload", "clusterroles fleetworkload-ocm", "clusterroles fleetworkload-management"}},
	} {
		a.writes(tb, "values.yaml", c.values)
		a.types(tb, c.command)
		found := a.inventory(tb)
		for _, name := range c.there {
			if found[name] == "" {
				tb.Errorf("%s: %s is not there; there are %v", c.name, name, found.names())
			}
		}
		for _, name := range c.never {
			if found[name] != "" {
				tb.Errorf("%s: %s is there", c.name, name)
			}
		}
		if found["flowschemas fleetworkload"] != "" {
			a.hasLevels(tb)
		}
		a.types(tb, helmUninstall)
		same(tb, "left of "+c.name, a.inventory(tb).names(), afterwards())
	}
}

// hasLevels waits until the API server has found the level of each flow schema.
func (a *administrator) hasLevels(tb testing.TB) {
	tb.Helper()
	for _, name := range []string{"fleetworkload", "fleetworkload-lease"} {
		eventually(tb, "the flow schema "+name, func(ctx context.Context) string {
			flow := &flowcontrolv1.FlowSchema{}
			if err := a.api.Get(ctx, client.ObjectKey{Name: name}, flow); err != nil {
				return err.Error()
			}
			if c := flow.Status.Conditions; len(c) != 1 || c[0].Type != flowcontrolv1.FlowSchemaConditionDangling || c[0].Status != flowcontrolv1.ConditionFalse {
				return fmt.Sprintf("the conditions are %v", c)
			}
			return ""
		})
	}
}

// knowsOthers makes the kinds of other projects that values ask for, and waits until they are served. What is in them is theirs.
func (a *administrator) knowsOthers(tb testing.TB) {
	tb.Helper()
	kinds := []struct{ group, kind, plural string }{
		{"monitoring.coreos.com", "PrometheusRule", "prometheusrules"},
		{"monitoring.coreos.com", "ServiceMonitor", "servicemonitors"},
		{"cert-manager.io", "Certificate", "certificates"},
		{"cert-manager.io", "Issuer", "issuers"},
	}
	for _, kind := range kinds {
		anything := true
		a.create(tb, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: kind.plural + "." + kind.group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.kind, Plural: kind.plural},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything},
					},
				}},
			},
		})
	}
	for _, kind := range kinds {
		eventually(tb, kind.plural, func(ctx context.Context) string {
			objects := &metav1.PartialObjectMetadataList{}
			objects.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.group, Version: "v1", Kind: kind.kind})
			if err := a.api.List(ctx, objects); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// tryAnotherName: the CRD that a release has left is for a release of its name and namespace, or for who takes it over.
func (a *administrator) tryAnotherName(tb testing.TB) {
	tb.Helper()
	const another = "helm install another charts/fleetworkload -n another --create-namespace"
	if out, err := a.shell(tb, another); err == nil || !strings.Contains(out, "invalid ownership metadata") {
		tb.Errorf("%s: %v\n%s", another, err, out)
	}
	if out, err := a.shell(tb, another+" --take-ownership"); err != nil {
		tb.Errorf("%s: %v\n%s", another, err, out)
	}
}
