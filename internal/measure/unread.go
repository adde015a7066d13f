package measure

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Unread counts reports that the operator could not read.
type Unread struct {
	errors *prometheus.CounterVec
}

// NewUnread registers the metric.
func NewUnread(registry prometheus.Registerer) (*Unread, error) {
	u := &Unread{errors: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetworkload_interpreter_errors_total",
		Help: "Times that what a cluster reports of an object could not be read, by its kind and by why: a field is wrong, or a rule of the configuration failed. Each pass that tries again counts.",
	}, []string{"backend", "group", "kind", "reason"})}
	if err := registry.Register(u.errors); err != nil {
		return nil, fmt.Errorf("register what cannot be read: %w", err)
	}
	return u, nil
}

// Failed learns of one more report. kind and group are those of a kind that FleetWorkloads may carry, and reason a word of the interpreter.
func (u *Unread) Failed(backend, group, kind, reason string) {
	if u != nil {
		u.errors.WithLabelValues(backend, group, kind, reason).Inc()
	}
}
