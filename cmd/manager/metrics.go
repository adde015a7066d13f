package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/measure"
)

// ownMetrics are those that are told of what happens. docs/metrics.md has all of them.
type ownMetrics struct {
	drivers *backends.Metrics
	changes *measure.Changes
	drift   *measure.Drift
	unread  *measure.Unread
}

// newMetrics registers the operator's own metrics beside those of controller-runtime.
func newMetrics(mgr ctrl.Manager, cfg config.Configuration) (own ownMetrics, err error) {
	if own.drivers, err = backends.NewMetrics(metrics.Registry); err != nil {
		return own, fmt.Errorf("register metrics: %w", err)
	}
	if own.changes, err = measure.NewChanges(metrics.Registry); err != nil {
		return own, err
	}
	if own.drift, err = measure.NewDrift(metrics.Registry); err != nil {
		return own, err
	}
	if own.unread, err = measure.NewUnread(metrics.Registry); err != nil {
		return own, err
	}
	names := make([]string, len(cfg.Backends))
	for i, b := range cfg.Backends {
		names[i] = b.Name
	}
	_, err = measure.NewStates(metrics.Registry, measure.StatesOptions{
		Reader: mgr.GetClient(), Elected: mgr.Elected(), Backends: names, Log: ctrl.Log.WithName("metrics"),
	})
	return own, err
}
