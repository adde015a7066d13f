package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/measure"
)

// newMetrics registers the operator's own metrics beside those of controller-runtime. docs/metrics.md has all of them.
func newMetrics(mgr ctrl.Manager, cfg config.Configuration) (*backends.Metrics, *measure.Changes, error) {
	drivers, err := backends.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, nil, fmt.Errorf("register metrics: %w", err)
	}
	changes, err := measure.NewChanges(metrics.Registry)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, len(cfg.Backends))
	for i, b := range cfg.Backends {
		names[i] = b.Name
	}
	_, err = measure.NewStates(metrics.Registry, measure.StatesOptions{
		Reader: mgr.GetClient(), Elected: mgr.Elected(), Backends: names, Log: ctrl.Log.WithName("metrics"),
	})
	return drivers, changes, err
}
