// SPDX-License-Identifier: Apache-2.0

// Program metrics writes docs/metrics.md from what the operator registers.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	_ "embed"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/measure"
)

//go:embed page.md
var page string

func main() {
	out := flag.String("out", "docs/metrics.md", "file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	rows, err := table()
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, []byte(strings.Replace(page, "{{ table }}\n", rows, 1)), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// table has a row for each metric, by name.
func table() (string, error) {
	all := &collected{}
	if _, err := backends.NewMetrics(all); err != nil {
		return "", err
	}
	if _, err := measure.NewChanges(all); err != nil {
		return "", err
	}
	if _, err := measure.NewDrift(all); err != nil {
		return "", err
	}
	if _, err := measure.NewUnread(all); err != nil {
		return "", err
	}
	if _, err := measure.NewStates(all, measure.StatesOptions{}); err != nil {
		return "", err
	}
	slices.Sort(all.rows)
	return "| metric | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(all.rows, "\n") + "\n", nil
}

// collected is a registry that keeps a row for each metric.
type collected struct {
	prometheus.Registerer
	rows []string
}

// described is how a description shows itself, which is the only way to read one.
var described = regexp.MustCompile(`^Desc\{fqName: "([a-z_]+)", help: "(.*)", constLabels: \{\}, variableLabels: \{([a-z_,]*)\}\}$`)

// Register implements prometheus.Registerer.
func (c *collected) Register(collector prometheus.Collector) error {
	kind := "gauge"
	switch collector.(type) {
	case *prometheus.CounterVec:
		kind = "counter"
	case *prometheus.HistogramVec:
		kind = "histogram"
	}
	descs := make(chan *prometheus.Desc)
	go func() { defer close(descs); collector.Describe(descs) }()
	var unread []string
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			unread = append(unread, d.String())
			continue
		}
		c.rows = append(c.rows, fmt.Sprintf("| `%s` | %s | %s | %s |", m[1], kind, labels(m[3]), strings.ReplaceAll(m[2], `\"`, "`")))
	}
	if len(unread) > 0 {
		return fmt.Errorf("description %q cannot be read", unread)
	}
	return nil
}

func labels(list string) string {
	if list == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(list, ",", "`, `") + "`"
}
