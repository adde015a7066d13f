// Command mutants asks whether the tests are awake: it plants the faults of a list, each a line that breaks a law, one after the other in
// a copy of the tree, runs the tests that are to find it, and prints what did. It exits with 1 when one is not found, or does not build.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

func main() {
	var o options
	flag.StringVar(&o.list, "faults", "hack/mutants/faults.yaml", "list of faults")
	flag.StringVar(&o.run, "run", "", "plant only faults whose names match this regular expression")
	flag.IntVar(&o.histories, "histories", 1000, "how many histories are played before a fault counts as not found by them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ok, err := o.plant(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	list, run string
	histories int
}

// Fault is a way to break a law.
type Fault struct {
	Name string `json:"name"`
	// Law is the number of the law that it breaks.
	Law int `json:"law"`
	// File has Old exactly once, and New in its place is the fault.
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
	// Tests are run in order until one fails.
	Tests []Test `json:"tests"`
}

// Test is what go test runs.
type Test struct {
	Package string            `json:"package"`
	Run     string            `json:"run"`
	Env     map[string]string `json:"env,omitempty"`
}

// String names a test, for a person.
func (t Test) String() string {
	return strings.TrimPrefix(t.Package, "./") + " " + cmp.Or(t.Run, "all")
}

// plant tells whether all faults are found.
func (o options) plant(ctx context.Context, out io.Writer) (bool, error) {
	faults, err := o.read()
	if err != nil {
		return false, err
	}
	tree, err := copied(ctx)
	if err != nil {
		return false, fmt.Errorf("copy the tree: %w", err)
	}
	defer tree.remove()
	if err := tree.fresh(faults); err != nil {
		return false, err
	}
	width := len("fault")
	for _, f := range faults {
		width = max(width, len(f.Name))
	}
	begun, found := time.Now(), 0
	fmt.Fprintf(out, "%-*s  law  found by\n", width, "fault")
	for _, f := range faults {
		by, is, err := o.try(ctx, tree, f)
		if err != nil {
			return false, fmt.Errorf("%s: %w", f.Name, err)
		}
		if is {
			found++
		}
		fmt.Fprintf(out, "%-*s  %3d  %s\n", width, f.Name, f.Law, by)
	}
	fmt.Fprintf(out, "%d of %d found, in %s\n", found, len(faults), time.Since(begun).Round(time.Second))
	return found == len(faults), nil
}

// read reads the list, as far as it is asked for.
func (o options) read() ([]Fault, error) {
	raw, err := os.ReadFile(o.list)
	if err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	var all, some []Fault
	if err := yaml.UnmarshalStrict(raw, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.list, err)
	}
	wanted, err := regexp.Compile(o.run)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	for _, f := range all {
		if f.Name == "" || f.File == "" || f.Old == "" || f.Old == f.New || len(f.Tests) == 0 {
			return nil, fmt.Errorf("%s: a fault needs name, file, old, another new, and tests: %+v", o.list, f)
		}
		if wanted.MatchString(f.Name) {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("%s has no fault that matches %q", o.list, o.run)
	}
	return some, nil
}

// try plants one fault, tells what finds it, and takes it out again.
func (o options) try(ctx context.Context, tree tree, f Fault) (by string, found bool, err error) {
	for _, t := range f.Tests {
		if err := tree.sound(ctx, t, o.histories); err != nil {
			return "", false, err
		}
		failed, err := o.with(ctx, tree, f, t)
		var broken *buildError
		switch {
		case errors.As(err, &broken):
			return "DOES NOT BUILD: " + broken.text, false, nil
		case err != nil:
			return "", false, err
		case failed != "":
			return failed, true, nil
		}
	}
	return "NOT FOUND", false, nil
}

// with runs a test with a fault.
func (o options) with(ctx context.Context, tree tree, f Fault, t Test) (failed string, err error) {
	undo, err := tree.replace(f)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, undo()) }()
	return tree.test(ctx, t, o.histories)
}
