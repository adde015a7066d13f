package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"
)

// scaleFigures are what a step cost the operator.
type scaleFigures struct {
	// first is when the first FleetWorkload was as wanted, clock when all were.
	first, clock time.Duration
	processor    time.Duration
	passes       int
	// requests by method and code, such as "PATCH 200". Watches are not among them.
	requests map[string]int
	// memory is the most that the operator has had in memory since its start, in bytes.
	memory int64
}

// scaleLine is one figure beside its bar, which it may reach.
type scaleLine struct {
	name       string
	value, bar float64
	// always is true when the bar holds at any size, and however slow the machine is.
	always bool
}

func (l scaleLine) ok() bool { return l.value <= l.bar }

func (l scaleLine) String() string {
	verdict := "ok"
	if !l.ok() {
		verdict = "short"
	}
	return fmt.Sprintf("%s: %.3g bar=%g %s", l.name, l.value, l.bar, verdict)
}

func (s *scale) line(name string, value, bar float64) {
	s.lines = append(s.lines, scaleLine{name: name, value: value, bar: bar})
}

// always is a line whose bar holds at any size, and however slow the machine is.
func (s *scale) always(name string, value, bar float64) {
	s.lines = append(s.lines, scaleLine{name: name, value: value, bar: bar, always: true})
}

// printMedian prints how long each of several took that came one after the other.
func (s *scale) printMedian(name string, took []time.Duration) {
	fmt.Fprintf(s.progress, "%-14s %s by the median, %s at most, for each of %d\n", name, median(took).Round(time.Millisecond),
		slices.Max(took).Round(time.Millisecond), len(took))
}

func (f scaleFigures) since(before scaleFigures) scaleFigures {
	f.processor, f.passes = f.processor-before.processor, f.passes-before.passes
	f.requests = maps.Clone(f.requests)
	for of, n := range before.requests {
		f.requests[of] -= n
	}
	maps.DeleteFunc(f.requests, func(_ string, n int) bool { return n == 0 })
	return f
}

func (f scaleFigures) sum(of func(method, code string) bool) (n int) {
	for request, times := range f.requests {
		if method, code, _ := strings.Cut(request, " "); of(method, code) {
			n += times
		}
	}
	return n
}

func (f scaleFigures) writes() int {
	return f.sum(func(method, _ string) bool { return method != http.MethodGet })
}

func (f scaleFigures) patches() int {
	return f.sum(func(method, _ string) bool { return method == http.MethodPatch })
}

func (f scaleFigures) reads() int {
	return f.sum(func(method, _ string) bool { return method == http.MethodGet })
}

// refused is the share of writes that were answered with Conflict.
func (f scaleFigures) refused() float64 {
	refused := f.sum(func(method, code string) bool { return method != http.MethodGet && code == "409" })
	return float64(refused) / float64(max(1, f.writes()))
}

func (f scaleFigures) String() string {
	var requests []string
	for _, of := range slices.Sorted(maps.Keys(f.requests)) {
		requests = append(requests, fmt.Sprintf("%s: %d", of, f.requests[of]))
	}
	return fmt.Sprintf("%s, the first after %s; operator %s, %d passes, at most %d MiB; %s", f.clock.Round(time.Millisecond),
		f.first.Round(time.Millisecond), f.processor.Round(time.Millisecond), f.passes, f.memory>>20, strings.Join(requests, ", "))
}

// figures are what the operator has used since its start.
func (o *operator) figures(ctx context.Context) (scaleFigures, error) {
	text, err := o.scrape(ctx)
	if err != nil {
		return scaleFigures{}, err
	}
	e, err := readEffort(bytes.NewReader(text))
	if err != nil {
		return scaleFigures{}, err
	}
	f := scaleFigures{processor: e.processor, passes: e.passes}
	if f.requests, err = readRequests(bytes.NewReader(text)); err != nil {
		return scaleFigures{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.command.Process.Pid))
	if err != nil {
		return scaleFigures{}, fmt.Errorf("read the operator's memory: %w", err)
	}
	f.memory, err = readPeak(status)
	return f, err
}

// readRequests counts what client-go has sent, by method and code.
func readRequests(metrics io.Reader) (map[string]int, error) {
	return readCounter(metrics, "rest_client_requests_total")
}

// observed is how many times the operator has read of a FleetWorkload what its backend reports.
func (o *operator) observed(ctx context.Context) (int, error) {
	text, err := o.scrape(ctx)
	if err != nil {
		return 0, err
	}
	calls, err := readCounter(bytes.NewReader(text), "fleetworkload_driver_calls_total")
	return calls["Observe ok"], err
}

// readCounter sums up a counter by method and code.
func readCounter(metrics io.Reader, name string) (map[string]int, error) {
	parser := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	counted := map[string]int{}
	for _, metric := range families[name].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		counted[labels["method"]+" "+labels["code"]] += int(metric.GetCounter().GetValue())
	}
	return counted, nil
}

// readPeak reads the most that a process has had in memory from its status in /proc.
func readPeak(status []byte) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("a process's status without VmHWM")
}
