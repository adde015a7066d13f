//go:build api

package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// What the pages have people type.
const (
	applyAll      = "kubectl apply --server-side -k config/default"
	deleteAll     = "kubectl delete -k config/default --ignore-not-found"
	deleteManager = "kubectl delete -k config/manager"
	deleteWebhook = "kubectl delete -k config/webhook"
	monitor       = "kubectl apply -k config/monitoring"
)

// TestKustomize: installed, the operator alone stopped, installed again, and all deleted: first while nobody takes finalizers off.
func TestKustomize(t *testing.T) {
	t.Parallel()
	a := newAdministrator(t)
	a.types(t, makeNamespace)
	a.types(t, applyAll)
	a.isInstalled(t, "ghcr.io/fleetworkload/fleetworkload:v0.1.0")
	fw := a.authors(t)
	all := a.inventory(t)
	config := all.names()[slices.IndexFunc(all.names(), func(name string) bool { return strings.HasPrefix(name, "configmaps fleetworkload-config-") })]

	a.types(t, deleteManager)
	a.types(t, deleteWebhook)
	same(t, "left without the operator", a.inventory(t).names(), all.without(t, config, "deployments fleetworkload", "networkpolicies fleetworkload",
		"poddisruptionbudgets fleetworkload", "services fleetworkload-metrics", "services fleetworkload-webhook", "validatingwebhookconfigurations fleetworkload",
		"clusterroles fleetworkload-webhook", "clusterrolebindings fleetworkload-webhook", "roles fleetworkload-webhook", "rolebindings fleetworkload-webhook"))
	a.isUntouched(t, fw)
	a.types(t, applyAll)
	same(t, "applied again", a.inventory(t).names(), all.names())
	a.isInstalled(t, "ghcr.io/fleetworkload/fleetworkload:v0.1.0")
	a.isUntouched(t, fw)

	a.deletesTooMuch(t, fw)
	a.types(t, applyAll)
	a.isServed(t)
	a.knowsOthers(t)
	before := a.inventory(t)
	a.types(t, monitor)
	a.hasMore(t, before, "configmaps fleetworkload-dashboard", "prometheusrules fleetworkload", "servicemonitors fleetworkload")
	a.types(t, deleteAll)
	same(t, "left of all", a.inventory(t).names(), nil)
	a.hasTyped(t, func(command string) bool { return strings.Contains(command, "-k config/") }, map[string]string{
		"kubectl --kubeconfig karmada-admin.kubeconfig apply -k config/backends/karmada": "scenarios run with it",
		"kubectl apply -k config/backends/ocm":                                           "scenarios run with it",
	})
}

// deletesTooMuch deletes everything while there is a FleetWorkload: the operator is gone before it has taken its finalizer off, and kubectl waits.
// Installed once more, the operator finishes what was begun.
func (a *administrator) deletesTooMuch(tb testing.TB, fw *v1alpha1.FleetWorkload) {
	tb.Helper()
	var out bytes.Buffer
	deleting := a.command(tb, deleteAll, &out)
	if err := deleting.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- deleting.Wait() }()
	eventually(tb, "all but the FleetWorkload", func(context.Context) string {
		left := a.inventory(tb).names()
		if !slices.Equal(left, []string{"apiservices v1alpha1.apps.fleetworkload.io", "customresourcedefinitions " + crdName, "fleetworkloads fw-trial/web"}) {
			return fmt.Sprintf("there are %v", left)
		}
		return ""
	})
	select {
	case err := <-ended:
		tb.Fatalf("%s does not wait: %v\n%s", deleteAll, err, &out)
	default:
	}
	if err := deleting.Process.Signal(os.Interrupt); err != nil {
		tb.Error(err)
	}
	<-ended
	a.types(tb, applyAll)
	a.runs(tb, "ghcr.io/fleetworkload/fleetworkload:v0.1.0")
	a.letsGo(tb, fw)
	eventually(tb, "the CRD", func(ctx context.Context) string {
		err := a.api.Get(ctx, client.ObjectKey{Name: crdName}, &apiextensionsv1.CustomResourceDefinition{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("is there: %v", err)
		}
		return ""
	})
}
