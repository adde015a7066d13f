// Package install puts the operator's kinds and rights onto the test fleet, as an administrator would.
package install

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// The operator's ServiceAccount, as in config/rbac/account.
const (
	Namespace = "fleetworkload-system"
	Account   = "fleetworkload"
)

// Bases applies the kustomize bases of config/ to both control planes, all but the operator's Deployment, which is a process
// here. It is to be called in the repository's root.
func Bases(ctx context.Context, fleet *lab.Fleet, out io.Writer) error {
	for _, base := range []struct{ cluster, path string }{
		{lab.Hub, "config/crd"},
		{lab.Hub, "config/rbac/account"},
		{lab.Hub, "config/rbac/management"},
		{lab.Hub, "config/rbac/users"},
		{lab.Hub, "config/admission"},
		{lab.Hub, "config/backends/ocm"},
		{lab.Karmada, "config/backends/karmada"},
	} {
		fmt.Fprintf(out, "%-8s kubectl apply -k %s\n", base.cluster, base.path)
		if err := Kubectl(ctx, fleet, io.Discard, base.cluster, "apply", "--server-side", "--force-conflicts", "-k", base.path); err != nil {
			return err
		}
	}
	return Kubectl(ctx, fleet, io.Discard, lab.Hub, "wait", "--for=condition=Established", "--timeout=30s",
		"crd/fleetworkloads.apps.fleetworkload.io")
}

// Token issues a token with which the operator has its ServiceAccount's rights and no others.
func Token(ctx context.Context, admin *rest.Config, cluster string, lifetime time.Duration) (string, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return "", fmt.Errorf("client of %s: %w", cluster, err)
	}
	seconds := int64(lifetime.Seconds())
	token, err := clients.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, Account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("issue a token of ServiceAccount %s/%s on %s: %w", Namespace, Account, cluster, err)
	}
	return token.Status.Token, nil
}

// Kubectl runs the fleet's kubectl as administrator of a cluster.
func Kubectl(ctx context.Context, fleet *lab.Fleet, out io.Writer, cluster string, args ...string) error {
	return Command(ctx, out, nil, fleet.Kubectl(), append([]string{"--kubeconfig", fleet.Kubeconfig(cluster)}, args...)...)
}

// Command runs a program. Its error has what the program said.
func Command(ctx context.Context, out io.Writer, in io.Reader, name string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, io.MultiWriter(out, &said)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
