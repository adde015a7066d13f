// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
