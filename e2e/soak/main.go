// SPDX-License-Identifier: Apache-2.0

// Command soak has FleetWorkloads edited at random on a test fleet while clusters come and go and everything fails now and
// then, watches every pod and member object meanwhile, and tells what nothing has asked for. At the end all is healed, and
// everything must be as the last specs say. The same seed makes the same choices.
//
//	go run ./e2e/soak -seconds 600 -seed 7
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
)

// Environment variables for development, as the scenarios of e2e have them.
const (
	// envLabDir names the folder of a fleet that runs already; it is left running.
	envLabDir = "LAB_DIR"
	// envManager names a manager's binary to judge instead of building one.
	envManager = "E2E_MANAGER"
	// envKeep keeps logs and configuration in this folder.
	envKeep = "E2E_KEEP"
)

// options are what a soak is asked for.
type options struct {
	seed     uint64
	seconds  int
	calm     time.Duration
	end      time.Duration
	unjudged bool
	first    bool
	plan     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts := options{seed: uint64(rand.Uint32())}
	flag.Uint64Var(&opts.seed, "seed", opts.seed, "what choices are made from; when absent, one that was never used")
	flag.IntVar(&opts.seconds, "seconds", 600, "how long choices are made")
	flag.DurationVar(&opts.calm, "calm", time.Minute, "how long the operators must write nothing at the end")
	flag.DurationVar(&opts.end, "end", 5*time.Minute, "how long everything may take to be as asked at the end")
	flag.BoolVar(&opts.unjudged, "unjudged", false, "make those choices too that the oracle cannot judge")
	flag.BoolVar(&opts.first, "first", false, "end at the first violation")
	flag.BoolVar(&opts.plan, "plan", false, "print the choices and do nothing")
	flag.Parse()
	// While servers are down, the libraries' complaints would bury what is told.
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	ctrl.SetLogger(klog.NewKlogr())
	out := newReport(os.Stdout, opts)
	plan := choice.Make(opts.seed, time.Duration(opts.seconds)*time.Second, opts.unjudged)
	out.begin(plan)
	if opts.plan {
		printPlan(os.Stdout, plan)
		return
	}
	err := run(ctx, opts, plan, out)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if !out.end(err) {
		os.Exit(1)
	}
}

// printPlan shows what would be done.
func printPlan(out io.Writer, plan choice.Plan) {
	for _, s := range plan.Steps {
		fmt.Fprintf(out, "%7.1fs  %s\n", s.At.Seconds(), s.Action)
	}
	for _, a := range plan.End {
		fmt.Fprintf(out, "     end  %s\n", a)
	}
}
