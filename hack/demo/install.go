package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/install"
)

// deletionTimeout is how long the deletion of FleetWorkloads of an earlier run may take.
const deletionTimeout = time.Minute

// build makes the binaries that the demo runs and recommends. It takes seconds when nothing has changed.
func build(ctx context.Context, out io.Writer) error {
	return install.Command(ctx, out, nil, "go", "build", "-o", "bin/", "./cmd/manager", "./cmd/kubectl-fw")
}

// install puts onto both control planes what an administrator would.
func (d *demo) install(ctx context.Context, out io.Writer) error {
	return install.Bases(ctx, d.fleet, out)
}

// sample is a file of config/samples and what it asks for, as a person reads it. The operator has no part in these
// expectations.
type sample struct {
	name, kind, resource, group string
	// clusters that must run it; all others must not.
	clusters map[string]want
}

// want is what one cluster must run.
type want struct {
	replicas int64
	image    string
	// difference is this cluster's own: an environment variable of the container, or a label of the workload.
	difference, value string
}

func samples() []sample {
	divided := map[string]want{
		"member1": {replicas: 8, image: "nginx:1.27", difference: "env LOG_LEVEL", value: "warn"},
		"member3": {replicas: 4, image: "nginx:1.27", difference: "env LOG_LEVEL", value: "debug"},
	}
	duplicated := map[string]want{
		"member1": {replicas: 3, image: "nginx:1.27", difference: "label example.com/channel", value: ""},
		"member2": {replicas: 3, image: "nginx:1.27-alpine", difference: "label example.com/channel", value: "canary"},
	}
	cloneSet := func(name string) sample {
		return sample{name: name, kind: "CloneSet", resource: "clonesets", group: "apps.kruise.io/v1alpha1", clusters: divided}
	}
	deployment := func(name string) sample {
		return sample{name: name, kind: "Deployment", resource: "deployments", group: "apps/v1", clusters: duplicated}
	}
	statefulSet := sample{
		name: "statefulset-karmada", kind: "StatefulSet", resource: "statefulsets", group: "apps.kruise.io/v1beta1",
		clusters: map[string]want{
			"member1": {replicas: 2, image: "nginx:1.27", difference: "label example.com/channel", value: ""},
			"member2": {replicas: 2, image: "nginx:1.27", difference: "label example.com/channel", value: "canary"},
		},
	}
	return []sample{
		cloneSet("cloneset-karmada"), cloneSet("cloneset-ocm"), deployment("deployment-karmada"), deployment("deployment-ocm"), statefulSet,
	}
}

func (s sample) file() string { return filepath.Join("config", "samples", s.name+".yaml") }

// applySamples applies the samples and says of each what its file says.
func (d *demo) applySamples(ctx context.Context, out io.Writer) error {
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, namespace)
	args := []string{d.fleet.Kubectl(), "--kubeconfig", d.fleet.Kubeconfig(lab.Hub), "apply", "--server-side", "-f", "-"}
	if err := install.Command(ctx, io.Discard, strings.NewReader(manifest), args[0], args[1:]...); err != nil {
		return err
	}
	if err := d.awaitDeleted(ctx, out); err != nil {
		return err
	}
	for _, s := range samples() {
		fmt.Fprintf(out, "kubectl -n %s apply -f %s\n", namespace, s.file())
		if intro := introduction(s.file()); intro != "" {
			fmt.Fprintf(out, "%s%s\n", indent, intro)
		}
		if err := d.kubectl(ctx, io.Discard, lab.Hub, "-n", namespace, "apply", "--server-side", "--force-conflicts", "-f", s.file()); err != nil {
			return err
		}
	}
	return nil
}

// awaitDeleted waits until FleetWorkloads that somebody has deleted are gone: applied now, they would go all the same.
func (d *demo) awaitDeleted(ctx context.Context, out io.Writer) error {
	c, _, err := d.client(lab.Hub)
	if err != nil {
		return err
	}
	fleetWorkloads := c.Resource(v1alpha1.GroupVersion.WithResource("fleetworkloads")).Namespace(namespace)
	ctx, cancel := context.WithTimeoutCause(ctx, deletionTimeout, fmt.Errorf("they are still there after %s", deletionTimeout))
	defer cancel()
	for said := false; ; said = true {
		list, err := fleetWorkloads.List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list FleetWorkloads: %w", err)
		}
		going := slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
		if !going {
			return nil
		}
		if !said {
			fmt.Fprintln(out, "FleetWorkloads of an earlier run are being deleted, waiting for that")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until deleted FleetWorkloads of namespace %s are gone: %w", namespace, context.Cause(ctx))
		case <-time.After(time.Second / 2):
		}
	}
}

// introduction is the comment on a file's first line.
func introduction(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	text, found := strings.CutPrefix(first, "# ")
	if !found {
		return ""
	}
	return text
}

// kubectl runs the fleet's kubectl as administrator of a cluster.
func (d *demo) kubectl(ctx context.Context, out io.Writer, cluster string, args ...string) error {
	return install.Kubectl(ctx, d.fleet, out, cluster, args...)
}
