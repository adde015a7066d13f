// Command demo shows the operator at work: it starts the test fleet, runs the operator with exactly its own rights,
// hands it five FleetWorkloads, shows their status while it changes, and then looks at the member clusters whether they
// really run what was asked. Two of them move to the other backend and back; at the end all are on OCM, and Karmada is switched off for
// good. No pod may notice. Fleet and operator are left running.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// namespace takes the demo's FleetWorkloads, and with them the workloads on the members.
const namespace = "demo"

// demo is one run.
type demo struct {
	dir      string
	timeout  time.Duration
	out      io.Writer
	fleet    *lab.Fleet
	operator *operator
}

func main() {
	dir := flag.String("dir", lab.DefaultDir, "folder of the test fleet")
	timeout := flag.Duration("timeout", 5*time.Minute, "how long the workloads may take to become ready, and to move")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{dir: *dir, timeout: *timeout, out: os.Stdout}
	if err := d.run(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; the fleet still runs, make lab-down stops it")
		}
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// run does everything in order. An operator that it started is stopped again when the run is interrupted.
func (d *demo) run(ctx context.Context) error {
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run it in the repository's root: make demo")
	}
	began := time.Now()
	p := newProgress(d.out)
	defer func() {
		if ctx.Err() != nil && d.operator != nil {
			d.operator.stop(d.out)
		}
	}()
	for _, step := range []struct {
		title string
		run   func(context.Context, io.Writer) error
	}{
		{"Build the operator and kubectl-fw", build},
		{"Start the test fleet: Karmada, Open Cluster Management, three member clusters", d.startFleet},
		{"Install the CRD and the operator's rights", d.install},
		{"Run the operator with its own account", d.runOperator},
		{"Apply five FleetWorkloads", d.applySamples},
		{"Watch them become ready", d.watch},
		{"Look at the member clusters: do they run what was asked?", d.prove},
		{"Hand a CloneSet and an Advanced StatefulSet over to OCM and back, with an eye on every pod", d.handOver},
		{"Move everything to OCM, and switch Karmada off for good", d.switchOff},
	} {
		if err := p.step(ctx, step.title, step.run); err != nil {
			return d.withLogs(ctx, err)
		}
	}
	fmt.Fprintf(d.out, "\nEverything runs as asked, Karmada is off, and no pod noticed, after %s.\n", time.Since(began).Round(time.Second))
	d.sayNext()
	return nil
}

// startFleet starts the test fleet, or what of it does not run.
func (d *demo) startFleet(ctx context.Context, out io.Writer) error {
	var err error
	if d.fleet, err = lab.Up(ctx, lab.Options{Dir: d.dir, Members: lab.DefaultMembers, WithoutWorkflows: true, Out: out}); err != nil {
		return err
	}
	if n := len(d.fleet.Members()); n != lab.DefaultMembers {
		return fmt.Errorf("the fleet in %s has %d members, and the samples are meant for %d; make lab-down, then try again",
			relative(d.fleet.Dir()), n, lab.DefaultMembers)
	}
	return nil
}

// path is a path within the demo's own folder, which goes with the fleet's.
func (d *demo) path(name string) string { return filepath.Join(d.fleet.Dir(), "demo", name) }

// client is an administrator's client of a cluster.
func (d *demo) client(cluster string) (dynamic.Interface, *rest.Config, error) {
	cfg, err := d.fleet.RESTConfig(cluster)
	if err != nil {
		return nil, nil, err
	}
	cfg.QPS, cfg.Burst = 50, 100
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("client of %s: %w", cluster, err)
	}
	return c, cfg, nil
}

// withLogs adds the ends of the logs that may tell why a step failed.
func (d *demo) withLogs(ctx context.Context, err error) error {
	if ctx.Err() != nil || d.operator == nil {
		return err
	}
	return fmt.Errorf("%w\n\nlast lines of %s:\n%s\n\nFleet and operator still run; make lab-down stops them",
		err, relative(d.operator.log), tail(d.operator.log, 12))
}
