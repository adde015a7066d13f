// Command bench runs every comparison of the project: what we do beside what somebody else does, measured in the same
// run. It prints a line each, and exits with 1 when one is short of its bar.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	// What libraries say is not asked for.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// The test fleet's programs collect garbage early, since many are idle in little memory. These are measured, with what they have in production.
	if err := os.Setenv("GOGC", cmp.Or(os.Getenv("GOGC"), "100")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	var o options
	flag.IntVar(&o.clusters, "clusters", 1000, "clusters of the fan-out")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of the fan-out, and of hand-overs of one FleetWorkload")
	flag.BoolVar(&o.onlyFanOut, "only-fanout", false, "leave the other comparisons out")
	flag.StringVar(&o.migrations, "migrations", "",
		"numbers of FleetWorkloads, such as 1,100, to hand over between backends on the test fleet, in place of all comparisons")
	flag.StringVar(&o.fleet, "fleet", "", "folder of a running test fleet without an operator, for the hand-overs; when empty, one is started and removed")
	flag.StringVar(&o.scale, "scale", "", "how many FleetWorkloads on how many simulated clusters to measure, such as 300x100, in place of all comparisons")
	flag.StringVar(&o.karmada, "karmada", "",
		"how many workloads, such as 60, to bring to Karmada's members on the test fleet, beside plain Karmada, in place of all comparisons")
	flag.IntVar(&o.registered, "registered", 0,
		"with -karmada, bring them to so many simulated clusters that are registered with Karmada, instead of its members")
	flag.BoolVar(&o.direct, "direct", false, "with -karmada, have nothing between the operator and the API servers: times are its own, and writes are not counted")
	flag.BoolVar(&o.copied, "copied", false,
		"with -scale, have them created on one cluster only and copied to the others, and measure what comes after a creation")
	flag.BoolVar(&o.shape, "shape", false, "with -scale, fail only for what must be so at any size, on any machine")
	flag.DurationVar(&o.rest, "rest", time.Minute, "how long the operator is watched at rest, with -scale")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ok, err := o.bench(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	clusters, rounds int
	registered       int
	direct           bool
	onlyFanOut       bool
	migrations       string
	fleet            string
	scale, karmada   string
	shape, copied    bool
	rest             time.Duration
}

func (o options) bench(ctx context.Context) (bool, error) {
	if o.migrations != "" {
		return handOvers(ctx, o, os.Stderr)
	}
	if o.karmada != "" {
		return onKarmada(ctx, o, os.Stderr)
	}
	if o.scale != "" {
		return measureScale(ctx, o, os.Stderr)
	}
	return comparisons(ctx, o)
}

func comparisons(ctx context.Context, o options) (bool, error) {
	// Not among the lines, which are for machines too.
	fmt.Fprintf(os.Stderr, "%s/%s, %d processors, %s; medians; aggregate: processor time, fanout: time on the clock\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	ok := true
	if !o.onlyFanOut {
		var err error
		if ok, err = run(os.Stdout, meter{rounds: 9, slice: 100 * time.Millisecond}); err != nil {
			return false, err
		}
	}
	results, err := fanOutComparisons(ctx, o.clusters, o.rounds, os.Stderr)
	if err != nil {
		return false, fmt.Errorf("fan-out: %w", err)
	}
	for _, r := range results {
		ok = ok && r.ok()
		fmt.Println(r)
	}
	return ok, nil
}

// run prints a line for each comparison within this process, and tells whether all reach their bars.
func run(out io.Writer, m meter) (bool, error) {
	comparisons, err := aggregation()
	if err != nil {
		return false, err
	}
	all := true
	for _, c := range comparisons {
		r, err := m.measure(c)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.name, err)
		}
		all = all && r.ok()
		if _, err := fmt.Fprintln(out, r); err != nil {
			return false, err
		}
	}
	return all, nil
}
