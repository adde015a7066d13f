// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/oracle"
)

// mostTold is how many violations are told in full: one cause often has many.
const mostTold = 25

// clock counts from when everything was ready.
type clock struct{ zero time.Time }

func (c *clock) start() { c.zero = time.Now() }

func (c *clock) at(d time.Duration) time.Time { return c.zero.Add(d) }

func (c *clock) since(t time.Time) float64 {
	if c.zero.IsZero() {
		return 0
	}
	return t.Sub(c.zero).Seconds()
}

// report is what people are told.
type report struct {
	out   io.Writer
	opts  options
	clock *clock

	mu      sync.Mutex
	actions map[string]int
	faults  map[string]int
	failed  int
	lines   []string // of the summary
	// enough is closed when nothing more is wanted.
	enough chan struct{}
}

func newReport(out io.Writer, opts options) *report {
	return &report{out: out, opts: opts, clock: &clock{}, actions: map[string]int{}, faults: map[string]int{}, enough: make(chan struct{})}
}

// repeat is the command that makes the same choices.
func (r *report) repeat() string {
	unjudged := ""
	if r.opts.unjudged {
		unjudged = " -unjudged"
	}
	return fmt.Sprintf("go run ./e2e/soak -seconds %d -seed %d%s", r.opts.seconds, r.opts.seed, unjudged)
}

func (r *report) begin(plan choice.Plan) {
	fmt.Fprintf(r.out, "soak: seed %d, %d choices in %d s; the same again: %s\n", r.opts.seed, len(plan.Steps), r.opts.seconds, r.repeat())
	if r.opts.unjudged {
		return
	}
	for _, u := range choice.AllUnjudged() {
		fmt.Fprintf(r.out, "left out, since the oracle cannot judge it: %s (%d times here)\n", u.Choices, plan.LeftOut[u.Name])
	}
}

// say prints a line with the time.
func (r *report) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%7.1fs  %s\n", r.clock.since(time.Now()), fmt.Sprintf(format, args...))
}

// action is told when it is chosen; it may have to wait.
func (r *report) action(a history.Action) {
	r.mu.Lock()
	counts := r.actions
	switch a.Verb {
	case history.Kill, history.Stop, history.End, history.Cut, history.Unlease, history.Lose:
		counts = r.faults
	case history.Continue, history.Start, history.Mend, history.Return, history.Untaint:
		counts = map[string]int{}
	default:
	}
	counts[a.Kind]++
	r.mu.Unlock()
	r.say("%s", a)
}

// violation tells what nobody has asked for.
func (r *report) violation(v oracle.Violation) {
	r.fail("VIOLATION at %.1fs: %s\n          seed %d: %s\n          after\n            %s",
		r.clock.since(v.At), v, r.opts.seed, r.repeat(), strings.Join(v.Actions, "\n            "))
}

// fail tells something that makes the soak fail.
func (r *report) fail(format string, args ...any) {
	r.mu.Lock()
	r.failed++
	n := r.failed
	if n == 1 && r.opts.first {
		close(r.enough)
	}
	r.mu.Unlock()
	if n <= mostTold {
		r.say(format, args...)
	}
}

func (r *report) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed > 0
}

// sum adds a line to the summary.
func (r *report) sum(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// end prints the summary, and tells whether all is well.
func (r *report) end(err error) bool {
	if err != nil {
		r.fail("%v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "actions: %s\nfaults: %s\n", counted(r.actions), counted(r.faults))
	for _, line := range r.lines {
		fmt.Fprintln(r.out, line)
	}
	if r.failed > mostTold {
		fmt.Fprintf(r.out, "%d more failures are not told\n", r.failed-mostTold)
	}
	fmt.Fprintf(r.out, "violations and failures: %d; seed %d; the same again: %s\n", r.failed, r.opts.seed, r.repeat())
	passed := 1
	if r.failed > 0 {
		passed = 0
	}
	fmt.Fprintf(r.out, "soak: %d passed, %d failed\n", passed, 1-passed)
	return r.failed == 0
}

// counted shows counts, the largest first.
func counted(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	all := 0
	parts := make([]string, 0, len(names))
	for _, name := range names {
		all += counts[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return fmt.Sprintf("%d (%s)", all, strings.Join(parts, ", "))
}
