// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	_ "sigs.k8s.io/controller-runtime" // registers its metrics
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestThePageIsWhole: the page has each metric, and what is registered without being understood is an error.
func TestThePageIsWhole(t *testing.T) {
	out := t.TempDir() + "/metrics.md"
	if err := run(out); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(written), "\n| `fleetworkload_"); n < 15 || strings.Contains(string(written), "{{ table }}") {
		t.Errorf("the page has %d metrics", n)
	}
	odd := prometheus.NewGauge(prometheus.GaugeOpts{Name: "a", Help: "a", ConstLabels: prometheus.Labels{"b": "c"}})
	if err := (&collected{}).Register(odd); err == nil {
		t.Error("a constant label was left out without a word")
	}
}

// TestLibrariesHaveWhatThePageSays: an update of theirs may take a metric or a label away.
func TestLibrariesHaveWhatThePageSays(t *testing.T) {
	descs := make(chan *prometheus.Desc)
	go func() { defer close(descs); metrics.Registry.(prometheus.Collector).Describe(descs) }()
	labelsOf := map[string]string{}
	for d := range descs {
		if m := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{(.*)\}\}$`).FindStringSubmatch(d.String()); m != nil {
			labelsOf[m[1]] = m[2]
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `((?:controller|workqueue|leader|rest)_\\w+)\\{([^}]*)\\}`").FindAllStringSubmatch(page, -1)
	if len(rows) < 10 {
		t.Errorf("looked at %d metrics", len(rows))
	}
	for _, row := range rows {
		known, there := labelsOf[row[1]]
		if !there {
			t.Errorf("there is no %s", row[1])
		}
		for _, label := range strings.Split(row[2], ",") {
			if name, _, _ := strings.Cut(label, "="); !strings.Contains(","+known+",", ","+name+",") {
				t.Errorf("%s has labels %s, and not %s", row[1], known, name)
			}
		}
	}
}
