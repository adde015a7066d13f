//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// The operator's identity, as in config/rbac/account.
const (
	operatorNamespace = "fleetworkload-system"
	operatorAccount   = "fleetworkload"
)

// environment is the test fleet with an administrator's clients, and what it takes to run an operator.
type environment struct {
	fleet   *lab.Fleet
	dir     string
	config  string
	manager string

	clusters map[string]*cluster
	// tokens of the operator's ServiceAccount by control plane.
	tokens map[string]string
	// members are the names that both backends know.
	members []string
}

// cluster is one API server, with an administrator's rights.
type cluster struct {
	client.WithWatch
	name      string
	rest      *rest.Config
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
}

func newEnvironment(fleet *lab.Fleet, dir, config string) (*environment, error) {
	e := &environment{fleet: fleet, dir: dir, config: config, clusters: map[string]*cluster{}, tokens: map[string]string{}}
	names := []string{lab.Hub, lab.Karmada}
	for i, m := range fleet.Members() {
		if i == members {
			break
		}
		if m.KarmadaName != m.OCMName {
			return nil, fmt.Errorf("member %s has two names; these scenarios want one", m.Name)
		}
		e.members = append(e.members, m.Name)
		names = append(names, m.Name)
	}
	for _, name := range names {
		c, err := newCluster(fleet, name)
		if err != nil {
			return nil, err
		}
		e.clusters[name] = c
	}
	return e, nil
}

func newCluster(fleet *lab.Fleet, name string) (*cluster, error) {
	cfg, err := fleet.RESTConfig(name)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = 500, 1000
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c := &cluster{name: name, rest: cfg}
	if c.WithWatch, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("client of %s: %w", name, err)
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfig(cfg); err != nil {
		return nil, err
	}
	c.metadata, err = metadata.NewForConfig(cfg)
	return c, err
}

func hub() *cluster { return world.clusters[lab.Hub] }

func member(name string) *cluster { return world.clusters[name] }

// install applies config/ as a user would, and gets tokens for the account that it makes.
func (e *environment) install(ctx context.Context) error {
	for _, step := range []struct{ control, path string }{
		{lab.Hub, "crd"}, {lab.Hub, "rbac/account"}, {lab.Hub, "rbac/management"}, {lab.Hub, "rbac/users"}, {lab.Hub, "admission"},
		{lab.Hub, "flowcontrol"}, {lab.Hub, "backends/ocm"},
		{lab.Karmada, "backends/karmada"}, {lab.Karmada, "flowcontrol"},
	} {
		_, err := e.kubectl(ctx, step.control, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(e.config, step.path))
		if err != nil {
			return err
		}
	}
	if _, err := e.kubectl(ctx, lab.Hub, "wait", "--for=condition=Established", "--timeout=60s",
		"crd/fleetworkloads.apps.fleetworkload.io"); err != nil {
		return err
	}
	for _, control := range []string{lab.Hub, lab.Karmada} {
		if err := e.newToken(ctx, control); err != nil {
			return err
		}
	}
	return nil
}

// newToken gets the token with which operators come to a control plane that are made from now on.
func (e *environment) newToken(ctx context.Context, control string) error {
	clients, err := kubernetes.NewForConfig(e.clusters[control].rest)
	if err != nil {
		return err
	}
	seconds := int64(4 * 3600)
	token, err := clients.CoreV1().ServiceAccounts(operatorNamespace).CreateToken(ctx, operatorAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token of the operator on %s: %w", control, err)
	}
	e.tokens[control] = token.Status.Token
	return nil
}

// kubectl runs kubectl as an administrator and returns its output.
func (e *environment) kubectl(ctx context.Context, control string, args ...string) (string, error) {
	return e.kubectlWith(ctx, "", control, args...)
}

func (e *environment) kubectlWith(ctx context.Context, input, control string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.fleet.Kubectl(), append([]string{"--kubeconfig=" + e.fleet.Kubeconfig(control)}, args...)...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s on %s: %w: %s", strings.Join(args, " "), control, err, problems.String())
	}
	return out.String(), nil
}

// kubectl runs kubectl against the management cluster.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := world.kubectl(ctx, lab.Hub, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// newNamespace makes a namespace on the management cluster for the container or spec, and takes it away everywhere
// after it, when the FleetWorkloads in it are gone.
func newNamespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	name := makeNamespace(ctx, prefix)
	DeferCleanup(func(ctx SpecContext) { removeNamespace(ctx, name) })
	return name
}

func makeNamespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-" + prefix + "-"}}
	Expect(hub().Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// removeNamespace deletes the FleetWorkloads of a namespace through the operator, then the namespace on every cluster that stays.
func removeNamespace(ctx context.Context, namespace string) {
	GinkgoHelper()
	var left v1alpha1.FleetWorkloadList
	Expect(hub().List(ctx, &left, client.InNamespace(namespace))).To(Succeed())
	for i := range left.Items {
		// One by one: all in one request may take an API server longer than it gives itself.
		Expect(client.IgnoreNotFound(hub().Delete(ctx, &left.Items[i]))).To(Succeed())
	}
	problem := ""
	// The namespace must go even then: the failure is told at the end.
	tolerant := NewGomega(func(message string, _ ...int) { problem = message })
	tolerant.Eventually(func(g Gomega) {
		left = v1alpha1.FleetWorkloadList{}
		// A few tell enough, and of a hundred each look would cost more than their deletion.
		g.Expect(hub().List(ctx, &left, client.InNamespace(namespace), client.Limit(3))).To(Succeed())
		g.Expect(describeAll(left.Items)).To(BeEmpty(), "FleetWorkloads that are not deleted")
	}).WithContext(ctx).WithTimeout(2 * deleteTimeout).WithPolling(200 * time.Millisecond).Should(Succeed())
	if problem != "" {
		problem = whatOperatorsDo(ctx) + problem
		Expect(hub().List(ctx, &left, client.InNamespace(namespace))).To(Succeed())
		// Leave no finalizer behind that would keep the namespace for ever.
		for i := range left.Items {
			_ = hub().Patch(ctx, &left.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
	}
	for _, c := range world.clusters {
		if lab.Temporary() {
			break
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		Expect(client.IgnoreNotFound(c.Delete(ctx, ns))).To(Succeed())
	}
	Expect(problem).To(BeEmpty())
}

func describeAll(items []v1alpha1.FleetWorkload) string {
	var all []string
	for i := range items {
		all = append(all, describe(&items[i]))
	}
	return strings.Join(all, "\n")
}
