// Command bench runs every comparison of the project: what we do beside what somebody else does, measured in the same
// run. It prints a line each, and exits with 1 when one is short of its bar.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

func main() {
	// Not among the lines, which are for machines too.
	fmt.Fprintf(os.Stderr, "%s/%s, %d processors, %s; processor time, medians\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	ok, err := run(os.Stdout, meter{rounds: 9, slice: 100 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run prints a line a comparison, and tells whether all reach their bars.
func run(out io.Writer, m meter) (bool, error) {
	comparisons, err := aggregation(10, 100, 1000)
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
