//go:build api

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/config/rbac"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/tokens"
)

// TestDoctorOnAnAPIServer: a hub that is the management cluster, too, is looked at with the operator's token and without. A right that is taken away
// is found both ways.
func TestDoctorOnAnAPIServer(t *testing.T) {
	server := startAPIServer(t)
	api, role := hubOn(t, server)
	path := configured(t, server)
	said := func() map[string]string {
		t.Helper()
		out, err := command(t.Context(), server, "doctor", "--config", path, "--operator-namespace", "ops", "--service-account", "operator")
		if out == "" {
			t.Fatal(err)
		}
		by := map[string]string{}
		for _, s := range strings.Split(out, "\n\n") {
			title, findings, _ := strings.Cut(s, "\n")
			by[title] = findings
		}
		return by
	}
	const well = "  ok       connected; 1 of 1 cluster ready\n  ok       its clock is right\n" +
		"  ok       it serves what the operator needs: cluster.open-cluster-management.io v1, v1beta1, v1beta2; work.open-cluster-management.io v1\n" +
		"  ok       the operator has the rights of config/backends/ocm\n" +
		"  unknown  OpenKruise on m1: not known"
	both := []string{"backend token (OCM)", "backend here (OCM)"}
	now := said()
	for _, backend := range both {
		if got := now[backend]; !strings.HasPrefix(got, well) {
			t.Errorf("%s:\n%s\nwant\n%s", backend, got, well)
		}
	}

	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, "placements") {
			role.Rules[i].Verbs = []string{"get", "list", "watch", "create"}
		}
	}
	if err := api.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	const lacking = "  problem  the operator may not patch, delete placements.cluster.open-cluster-management.io\n"
	for deadline := time.Now().Add(time.Minute); !strings.Contains(now[both[0]], lacking) || !strings.Contains(now[both[1]], lacking); now = said() {
		if time.Now().After(deadline) {
			t.Fatalf("nobody misses the rights that are gone:\n%s\n%s", now[both[0]], now[both[1]])
		}
	}
}

// hubOn makes an OCM hub of an API server, with one cluster and the operator's account, and returns the role of that.
func hubOn(t *testing.T, server *lab.APIServer) (client.Client, *rbacv1.ClusterRole) {
	t.Helper()
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rbac.Rules("ocm")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: rules}
	fleetworkloads := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crdOf(t).Object, fleetworkloads); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{
		fleetworkloads, role, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "operator"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "operator"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "operator"}}},
	}
	objects = append(objects, definitions()...)
	for _, object := range objects {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": map[string]any{"name": "m1"}, "spec": map[string]any{"hubAcceptsClient": true},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "ManagedClusterConditionAvailable", "status": "True"}},
			"clusterClaims": []any{map[string]any{"name": "id.k8s.io", "value": "1"}}},
	}}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := api.Create(ctx, cluster)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil // the kind is not served yet
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return api, role
}

// definitions are CRDs of what the driver needs of OCM, with any fields.
func definitions() (all []client.Object) {
	anything := true
	for _, kind := range drivers.Needs(config.Backend{Type: config.TypeOCM}) {
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		scope := apiextensionsv1.NamespaceScoped
		if kind.Kind == "ManagedCluster" {
			scope = apiextensionsv1.ClusterScoped
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: plural.GroupResource().String(), Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved"},
		}}
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural.Resource, Singular: singular.Resource},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}},
		}
		all = append(all, crd)
	}
	return all
}

// configured is the path of an operator's configuration: the hub by the token of its account, and by being the management cluster.
func configured(t *testing.T, server *lab.APIServer) string {
	t.Helper()
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	token, err := tokens.Request(t.Context(), cfg, types.NamespacedName{Namespace: "ops", Name: "operator"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tokens.Kubeconfig(cfg, token)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig, path := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "operator.yaml")
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\ninstallation: test\nbackends:\n- {name: token, type: OCM, connection: {kubeconfigFile: %q}}\n- {name: here, type: OCM, connection: {inCluster: {}}}\n",
		config.APIVersion, config.Kind, kubeconfig)
	for file, content := range map[string][]byte{kubeconfig: raw, path: []byte(text)} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
