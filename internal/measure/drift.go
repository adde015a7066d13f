package measure

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Drift counts what others change on clusters.
type Drift struct {
	changes *prometheus.CounterVec
}

// NewDrift registers the metric.
func NewDrift(registry prometheus.Registerer) (*Drift, error) {
	d := &Drift{changes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetworkload_drift_total",
		Help: "Changes that somebody else has made to a workload's object, or on OCM to a companion, on a cluster. Counted is what is sure: not every change is seen.",
	}, []string{"backend"})}
	if err := registry.Register(d.changes); err != nil {
		return nil, fmt.Errorf("register what others change: %w", err)
	}
	return d, nil
}

// Changed learns of one more change.
func (d *Drift) Changed(backend string) {
	if d != nil {
		d.changes.WithLabelValues(backend).Inc()
	}
}
