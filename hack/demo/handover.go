package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// moving are the samples that change hands: one of each kind whose pods OpenKruise manages itself.
func moving() []sample {
	return slices.DeleteFunc(samples(), func(s sample) bool { return s.name != "cloneset-karmada" && s.name != "statefulset-karmada" })
}

// handOver moves workloads to OCM and back to Karmada while every pod of them is watched.
func (d *demo) handOver(ctx context.Context, out io.Writer) error {
	watched, err := d.watchPods(ctx, moving())
	if err != nil {
		return err
	}
	defer watched.end()
	fmt.Fprintf(out, "watching %d pods on the members\n", watched.start)
	before, err := watched.now(ctx)
	if err != nil {
		return err
	}
	if err := d.move(ctx, out, "ocm", "OCM"); err != nil {
		return errors.Join(err, watched.verdict(out))
	}
	between, err := watched.now(ctx)
	if err != nil {
		return err
	}
	if err := d.move(ctx, out, "karmada", "Karmada"); err != nil {
		return errors.Join(err, watched.verdict(out))
	}
	after, err := watched.now(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	same := printPods(out, before, between, after)
	fmt.Fprintln(out)
	if err := errors.Join(same, watched.verdict(out)); err != nil {
		return fmt.Errorf("the hand-over was noticed:\n%w", err)
	}
	return nil
}

// move changes spec.backend, waits for the end of the hand-over, and looks whose the member objects are then.
func (d *demo) move(ctx context.Context, out io.Writer, to, carrier string) error {
	fmt.Fprintln(out)
	began := time.Now()
	for _, s := range moving() {
		patch := fmt.Sprintf(`{"spec":{"backend":%q}}`, to)
		fmt.Fprintf(out, "kubectl -n %s patch fleetworkload %s --type=merge -p '%s'\n", namespace, s.name, patch)
		if err := d.kubectl(ctx, io.Discard, lab.Hub, "-n", namespace, "patch", "fleetworkload", s.name, "--type=merge", "-p", patch); err != nil {
			return err
		}
	}
	if err := d.await(ctx, out, moving(), notReady); err != nil {
		return err
	}
	took := time.Since(began)
	var findings []finding
	for _, s := range moving() {
		found, err := d.inspect(ctx, s, carrier)
		if err != nil {
			return err
		}
		// Clusters that were not chosen are of no interest here, unless they have something.
		found = slices.DeleteFunc(found, func(f finding) bool { return s.clusters[f.cluster].replicas == 0 && len(f.problems) == 0 })
		findings = append(findings, found...)
	}
	fmt.Fprintf(out, "both are on %s, after %s\n", carrier, took.Round(100*time.Millisecond))
	return report(out, findings)
}
