package controllers

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetworkload/fleetworkload/internal/measure"
)

// TestChangesAreMeasured: what the reconciler writes is what rollouts and migrations are measured by.
func TestChangesAreMeasured(t *testing.T) {
	w, two := newPair(t)
	registry := prometheus.NewRegistry()
	var err error
	if w.Changes, err = measure.NewChanges(registry); err != nil {
		t.Fatal(err)
	}
	w.create(divide(8))
	w.both(two)
	w.edit(to("two"))
	w.both(two)
	measured := func(name string) uint64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == name {
				return family.GetMetric()[0].GetHistogram().GetSampleCount()
			}
		}
		return 0
	}
	for _, name := range []string{"fleetworkload_rollout_duration_seconds", "fleetworkload_migration_duration_seconds"} {
		if got := measured(name); got != 1 {
			t.Errorf("%s: %d", name, got)
		}
	}
}
