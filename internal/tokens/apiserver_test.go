//go:build api

package tokens

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

var account = types.NamespacedName{Namespace: "fleetworkload-system", Name: "fleetworkload"}

// TestOnAnAPIServer: the rights in config are enough, and no more; a token ends with the account, also when the account is made again.
func TestOnAnAPIServer(t *testing.T) {
	admin, cfg := start(t)
	token, err := Request(t.Context(), cfg, account, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the account may renew", func() bool {
		renews, err := Renews(t.Context(), cfg, token)
		return err == nil && renews
	})
	kubeconfig, err := Kubeconfig(cfg, token)
	if err != nil {
		t.Fatal(err)
	}
	secret := secretWith(kubeconfig, "48m")
	create(t, admin, secret)

	operator := as(t, kubeconfig)
	clock := clocktesting.NewFakeClock(token.Issued.Add(50 * time.Minute))
	r := renewer(operator, clock)
	r.Request = Again
	var remembered turn
	if err := r.look(t.Context(), karmada, &remembered, logr.Discard()); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	next, err := tokenIn(secret.Data[connection.DefaultSecretKey])
	if err != nil || next.Text == token.Text || next.Account != account || next.Life() != time.Hour {
		t.Fatalf("it was not renewed: %s, %s, %v", next.Account, next.Life(), err)
	}
	renewed := as(t, secret.Data[connection.DefaultSecretKey])
	if err := renewed.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}); err != nil {
		t.Errorf("the renewed token does not work: %v", err)
	}
	other, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[connection.DefaultSecretKey])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Request(t.Context(), other, types.NamespacedName{Namespace: account.Namespace, Name: "default"}, time.Hour); !apierrors.IsForbidden(err) {
		t.Errorf("a token of another account: %v", err)
	}

	release := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: "sh.helm.release.v1.fleetworkload.v1"}}
	create(t, admin, release)
	if err := renewed.Update(t.Context(), release); !apierrors.IsForbidden(err) {
		t.Errorf("it writes a Secret that is no kubeconfig: %v", err)
	}

	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: "fleetworkload-tokens"}}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	await(t, "the account may not renew", func() bool {
		renews, err := Renews(t.Context(), cfg, next)
		return err == nil && !renews
	})
	clock.Step(50 * time.Minute)
	if err := r.look(t.Context(), karmada, &remembered, logr.Discard()); err == nil || !strings.Contains(err.Error(), "forbidden") ||
		!strings.Contains(err.Error(), "apply config/backends/karmada there") || strings.Contains(err.Error(), next.Text) {
		t.Errorf("without the right: %v", err)
	}

	revoke(t, admin)
	for _, c := range []client.Client{operator, renewed} {
		await(t, "the token has ended", func() bool {
			return apierrors.IsUnauthorized(c.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}))
		})
	}
}

// revoke does what docs/security.md says about a stolen token.
func revoke(t *testing.T, admin client.Client) {
	t.Helper()
	if err := admin.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}); err != nil {
		t.Fatal(err)
	}
	install(t, admin, "account/service_account.yaml", &corev1.ServiceAccount{})
}

// start runs an API server that is the backend and the management cluster in one, with what config installs on both.
func start(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	running, err := lab.StartAPIServer(t.Context(), t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Stop() })
	cfg, err := running.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	install(t, admin, "account/namespace.yaml", &corev1.Namespace{})
	install(t, admin, "account/service_account.yaml", &corev1.ServiceAccount{})
	for _, folder := range []string{"tokens", "management"} {
		install(t, admin, folder+"/role.yaml", &rbacv1.Role{})
		install(t, admin, folder+"/role_binding.yaml", &rbacv1.RoleBinding{})
	}
	return admin, cfg
}

func install(t *testing.T, admin client.Client, file string, obj client.Object) {
	t.Helper()
	raw, err := os.ReadFile("../../config/rbac/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, obj); err != nil {
		t.Fatal(err)
	}
	create(t, admin, obj)
}

func create(t *testing.T, admin client.Client, obj client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// as reaches the API server by a kubeconfig.
func as(t *testing.T, kubeconfig []byte) client.Client {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await gives an API server a minute for what it learns of a moment later.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
