package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/install"
)

// onKarmada are the samples that begin there.
func onKarmada() []sample {
	return slices.DeleteFunc(samples(), func(s sample) bool { return carrierOf(s.name) != "Karmada" })
}

// switchOff moves everything to OCM, unjoins the clusters from Karmada and stops it, while every pod is watched.
func (d *demo) switchOff(ctx context.Context, out io.Writer) error {
	watched, err := d.watchPods(ctx, samples())
	if err != nil {
		return err
	}
	defer watched.end()
	before, err := watched.now(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, io.Writer) error{d.moveRest, d.retireKarmada, d.forgetKarmada, d.unjoin, d.stopKarmada} {
		if err := step(ctx, out); err != nil {
			return errors.Join(err, watched.verdict(out))
		}
	}
	if err := d.await(ctx, out, samples(), notReady); err != nil {
		return err
	}
	after, err := watched.now(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	return errors.Join(printLasting(out, before, after), watched.verdict(out))
}

func (d *demo) moveRest(ctx context.Context, out io.Writer) error {
	args := []string{"-n", namespace, "migrate", "--all", "--to", "ocm"}
	fmt.Fprintf(out, "kubectl fw %s\n", strings.Join(args, " "))
	if err := d.kubectlFW(ctx, out, args...); err != nil {
		return err
	}
	return d.await(ctx, out, onKarmada(), notReady)
}

// retireKarmada is done by an administrator of Karmada.
func (d *demo) retireKarmada(ctx context.Context, out io.Writer) error {
	args := []string{
		"backend", "retire", "karmada", "--preserve", "--config", d.path("operator.yaml"), "--backend-kubeconfig", d.fleet.Kubeconfig(lab.Karmada),
	}
	fmt.Fprintf(out, "\nkubectl fw backend retire karmada --preserve --config %s --backend-kubeconfig %s\n",
		relative(d.path("operator.yaml")), relative(d.fleet.Kubeconfig(lab.Karmada)))
	return d.kubectlFW(ctx, out, args...)
}

// forgetKarmada takes it out of the operator's configuration.
func (d *demo) forgetKarmada(ctx context.Context, out io.Writer) error {
	d.operator.stop(out)
	if err := d.writeConfig("ocm"); err != nil {
		return err
	}
	began := time.Now()
	var err error
	if d.operator, err = d.start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "the operator runs again, with OCM alone: process %d\n", d.operator.pid)
	return d.awaitLease(ctx, began, out)
}

func (d *demo) unjoin(ctx context.Context, out io.Writer) error {
	args := []string{"delete", "clusters.cluster.karmada.io"}
	for _, m := range d.fleet.Members() {
		args = append(args, m.KarmadaName)
	}
	fmt.Fprintf(out, "kubectl %s     # on Karmada, as karmadactl unjoin does\n", strings.Join(args, " "))
	return d.kubectl(ctx, io.Discard, lab.Karmada, args...)
}

func (d *demo) stopKarmada(ctx context.Context, out io.Writer) error {
	names, err := d.fleet.ComponentsOf("karmada")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "stopping %s\n", strings.Join(names, ", "))
	return d.fleet.Stop(ctx, names...)
}

func (d *demo) kubectlFW(ctx context.Context, out io.Writer, args ...string) error {
	return install.Command(ctx, out, nil, "bin/kubectl-fw", append([]string{"--kubeconfig", d.fleet.Kubeconfig(lab.Hub)}, args...)...)
}

// printLasting shows the pods' UIDs before and after. It is an error when a pod is not the same.
func printLasting(out io.Writer, before, after map[podName]pod) error {
	var changed []error
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "POD\tCLUSTER\tUID BEFORE\tUID AFTER\tTHE SAME")
	for _, name := range allPods(before, after) {
		a, b, same := before[name], after[name], "yes"
		if a.uid != b.uid || a.restarts != b.restarts {
			same = "NO"
			changed = append(changed, fmt.Errorf("pod %s on %s is not the same: before %+v, after %+v", name.name, name.cluster, a, b))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name.name, name.cluster, orNone(a.uid), orNone(b.uid), same)
	}
	return errors.Join(append(changed, w.Flush())...)
}
