// Command rights asks whether the operator needs what config/ lets it do: it takes each right away alone, runs the shortest scenarios that used
// it, and prints which failed. It exits with 1 when none of them did for a right, or one fails with all rights.
//
// Who used what says the file that E2E_USES names when all scenarios have run. TEST_SEED must be as it was then.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/rights"
)

func main() {
	var o options
	flag.StringVar(&o.uses, "uses", ".lab-e2e.uses", "file that says which scenario used which right")
	flag.StringVar(&o.run, "run", "", "take away only rights that match this regular expression")
	flag.IntVar(&o.fleets, "fleets", 2, "how many fleets are worked on side by side")
	flag.IntVar(&o.tries, "tries", 3, "how many of the shortest scenarios that used a right are tried until one fails, and of the others")
	flag.DurationVar(&o.patience, "patience", 25*time.Second, "how long scenarios wait for most things")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ok, err := o.takeAll(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	uses, run     string
	fleets, tries int
	patience      time.Duration
	// dir has the binaries and the fleets.
	dir string
}

// takeAll tells whether each right is missed by a scenario.
func (o options) takeAll(ctx context.Context, out io.Writer) (ok bool, err error) {
	list, err := o.read()
	if err != nil {
		return false, err
	}
	if o.dir, err = os.MkdirTemp("", "fleetworkload-rights-"); err != nil {
		return false, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	if err := o.build(ctx); err != nil {
		return false, err
	}
	begun, taken := time.Now(), make(chan taking)
	results := make(chan taking)
	failures := make([]error, o.fleets)
	var workers sync.WaitGroup
	for n := range o.fleets {
		workers.Go(func() { failures[n] = o.work(ctx, n, taken, results) })
	}
	go func() {
		defer close(taken)
		for _, t := range list {
			select {
			case taken <- t:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		workers.Wait()
		close(results)
	}()
	missed := 0
	for t := range results {
		if t.failed != "" {
			missed++
		}
		fmt.Fprintf(out, "%-100s %s\n", t.right, cmp.Or(t.failed, fmt.Sprintf("NOBODY MISSES IT: %q", t.scenarios)))
	}
	fmt.Fprintf(out, "%d of %d are missed, in %s\n", missed, len(list), time.Since(begun).Round(time.Second))
	return missed == len(list), errors.Join(append(failures, ctx.Err())...)
}

// taking is a right that is taken away.
type taking struct {
	right rights.Right
	// wider is one for all namespaces that would do in its place, and is taken away before; empty when there is none.
	wider string
	// scenarios used it, the shortest first.
	scenarios []string
	// failed is the one that failed.
	failed string
}

// read finds out which scenarios are to be run for each right.
func (o options) read() ([]taking, error) {
	raw, err := os.ReadFile(o.uses)
	if err != nil {
		return nil, fmt.Errorf("read who used what: %w", err)
	}
	var uses []rights.Use
	if err := json.Unmarshal(raw, &uses); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.uses, err)
	}
	wanted, err := regexp.Compile(o.run)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	roles, err := rights.Roles("config")
	if err != nil {
		return nil, err
	}
	var all []rights.Right
	for _, role := range roles {
		all = append(all, role.Rights()...)
	}
	by := users(uses)
	var list []taking
	seen := map[rights.Right]bool{}
	for _, r := range all {
		if seen[r.Alike()] || rights.Unused[r.String()] != "" || !wanted.MatchString(r.String()) {
			continue
		}
		seen[r.Alike()] = true
		t := taking{right: r, scenarios: o.some(by[r.Alike()])}
		if scenario := rights.Missed[r.String()]; scenario != "" {
			t.scenarios = []string{scenario}
		}
		wider := r
		if wider.Own = false; r.Own && slices.Contains(all, wider) {
			t.wider = wider.String()
		}
		list = append(list, t)
	}
	return list, nil
}

// users are the scenarios that used each right, the shortest first.
func users(uses []rights.Use) map[rights.Right][]string {
	// A cache that may list and not watch lists again and again, at first every second. What is refused is said after some seconds.
	const refused = 12
	slices.SortStableFunc(uses, func(a, b rights.Use) int { return cmp.Compare(a.Seconds, b.Seconds) })
	by := map[rights.Right][]string{}
	for _, use := range uses {
		if use.Scenario == "" {
			continue
		}
		for _, r := range use.Rights {
			rights.Takes(r, func(right rights.Right) {
				if right.Own != r.Own || right.Verb == "watch" && use.Seconds < refused {
					return
				}
				if !slices.Contains(by[right], use.Scenario) {
					by[right] = append(by[right], use.Scenario)
				}
			})
		}
	}
	return by
}

// some are the shortest of the scenarios, and others from all over the list: a short one may use a right and not look at what came of it.
func (o options) some(scenarios []string) []string {
	if len(scenarios) <= 2*o.tries {
		return scenarios
	}
	some := slices.Clone(scenarios[:o.tries])
	rest := scenarios[o.tries:]
	for i := range o.tries {
		some = append(some, rest[i*len(rest)/o.tries])
	}
	return some
}

// build makes the programs that all runs share.
func (o options) build(ctx context.Context) error {
	for _, args := range [][]string{
		{"build", "-o", o.path("manager"), "./cmd/manager"},
		{"build", "-o", o.path("lab"), "./e2e/lab/cmd/lab"},
		{"test", "-c", "-vet=off", "-tags=e2e", "-o", o.path("scenarios"), "./e2e"},
	} {
		if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w: %s", args, err, out)
		}
	}
	return nil
}

func (o options) path(name string) string { return filepath.Join(o.dir, name) }

// work takes rights away on a fleet of its own.
func (o options) work(ctx context.Context, n int, list <-chan taking, results chan<- taking) (err error) {
	f := fleet{options: o, dir: o.path(fmt.Sprint("fleet", n)), ports: fmt.Sprint(2000 + 1000*n), whole: map[[2]string]bool{}}
	if err := f.lab(ctx, "up"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.lab(context.WithoutCancel(ctx), "down")) }()
	for t := range list {
		for _, scenario := range t.scenarios {
			if passes, err := f.passes(ctx, scenario, t.wider); err != nil || !passes {
				return errors.Join(err, fmt.Errorf("%q fails with all rights but %q", scenario, t.wider))
			}
			passes, err := f.scenario(ctx, scenario, strings.Trim(t.wider+","+t.right.String(), ","))
			if err != nil {
				return err
			}
			if !passes {
				t.failed = scenario
				break
			}
		}
		results <- t
	}
	return nil
}

// fleet is one that scenarios run on.
type fleet struct {
	options
	dir string
	// ports is the first that its operators listen on.
	ports string
	// whole are scenarios that pass with all rights, or all but a wider one.
	whole map[[2]string]bool
}

func (f fleet) lab(ctx context.Context, verb string) error {
	cmd := exec.CommandContext(ctx, f.path("lab"), verb, "--dir", f.dir)
	cmd.Env = append(os.Environ(), "LAB_TEMPORARY=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("lab %s: %w: %s", verb, err, out)
	}
	return nil
}

// passes tells whether a scenario passes with all rights, or all but a wider one.
func (f fleet) passes(ctx context.Context, scenario, wider string) (bool, error) {
	run := [2]string{scenario, wider}
	if f.whole[run] {
		return true, nil
	}
	passes, err := f.scenario(ctx, scenario, wider)
	f.whole[run] = passes
	return passes, err
}

// scenario runs one without rights that are given, with commas between.
func (f fleet) scenario(ctx context.Context, scenario, without string) (passes bool, err error) {
	cmd := exec.CommandContext(ctx, f.path("scenarios"), "-test.timeout=15m", "-ginkgo.no-color", "-ginkgo.focus="+regexp.QuoteMeta(scenario))
	cmd.Dir = "e2e"
	cmd.Env = append(os.Environ(), "LAB_TEMPORARY=1", "LAB_DIR="+f.dir, "E2E_MANAGER="+f.path("manager"), "E2E_WITHOUT="+without,
		"E2E_PATIENCE="+f.patience.String(), "E2E_REPORT=", "E2E_USES=", "E2E_PORTS="+f.ports)
	if strings.Contains(without, "list ") {
		// An API server that streams lists asks for no right to list.
		cmd.Env = append(cmd.Env, "KUBE_FEATURE_WatchListClient=false")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case bytes.Contains(out, []byte("Will run 0 of")):
		return false, fmt.Errorf("there is no scenario %q; TEST_SEED is to be as when it ran", scenario)
	case err == nil:
		return true, nil
	case errors.As(err, &failed) && ctx.Err() == nil && (bytes.Contains(out, []byte("[FAIL]")) || bytes.Contains(out, []byte("[PANICKED!]"))):
		if !strings.Contains(without, " ") {
			fmt.Fprintf(os.Stderr, "%q fails with all rights:\n%s\n", scenario, out)
		}
		return false, nil
	default:
		return false, fmt.Errorf("run %q: %w: %s", scenario, err, out)
	}
}
