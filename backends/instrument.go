package backends

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Metrics counts what drivers do. The label code is the error's Code, "ok", or "error".
type Metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	up       *prometheus.GaugeVec
	token    *prometheus.GaugeVec
	writes   *prometheus.CounterVec
}

// NewMetrics registers the drivers' metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetworkload_driver_calls_total", Help: "Calls of a backend's driver, by method and by the contract's error code, or \"ok\".",
		}, []string{"backend", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fleetworkload_driver_call_duration_seconds", Help: "Time a call of a backend's driver took.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"backend", "method"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetworkload_backend_up", Help: "1 when the backend is connected and answers, else 0.",
		}, []string{"backend"}),
		token: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetworkload_backend_token_expiry_timestamp_seconds", Help: "Until when the token of a backend holds.",
		}, []string{"backend"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetworkload_backend_writes_total",
			Help: "Requests to a backend's API server that change something, by verb and by status code, or \"error\" without an answer. Once all is as asked there are none.",
		}, []string{"backend", "verb", "code"}),
	}
	for _, c := range []prometheus.Collector{m.calls, m.duration, m.up, m.token, m.writes} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Up records whether a backend is connected.
func (m *Metrics) Up(backend string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(backend).Set(value)
}

// TokenExpires records until when the token of a backend holds; the zero time forgets it.
func (m *Metrics) TokenExpires(backend string, at time.Time) {
	if at.IsZero() {
		m.token.DeleteLabelValues(backend)
		return
	}
	m.token.WithLabelValues(backend).Set(float64(at.Unix()))
}

// Instrument returns a Registry whose drivers are counted.
func (m *Metrics) Instrument(registry Registry) Registry { return instrumented{registry, m} }

type instrumented struct {
	Registry
	metrics *Metrics
}

// Driver implements Registry.
func (r instrumented) Driver(name string) (Driver, error) {
	driver, err := r.Registry.Driver(name)
	if err != nil {
		return nil, err
	}
	return measured{Driver: driver, backend: name, metrics: r.metrics}, nil
}

type measured struct {
	Driver
	backend string
	metrics *Metrics
}

// Clusters implements Driver.
func (d measured) Clusters(ctx context.Context) (fleet Fleet, err error) {
	defer d.done("Clusters", time.Now(), &err)
	return d.Driver.Clusters(ctx)
}

// Observe implements Driver.
func (d measured) Observe(ctx context.Context, query Query) (observation Observation, err error) {
	defer d.done("Observe", time.Now(), &err)
	return d.Driver.Observe(ctx, query)
}

// Apply implements Driver.
func (d measured) Apply(ctx context.Context, desired Desired) (progress Progress, err error) {
	defer d.done("Apply", time.Now(), &err)
	return d.Driver.Apply(ctx, desired)
}

// Delete implements Driver.
func (d measured) Delete(ctx context.Context, query Query, policy v1alpha1.DeletionPolicy) (progress Progress, err error) {
	defer d.done("Delete", time.Now(), &err)
	return d.Driver.Delete(ctx, query, policy)
}

// Try implements Trier; a driver that is none has nothing to say.
func (d measured) Try(ctx context.Context, desired Desired) (against []string, err error) {
	trier, is := d.Driver.(Trier)
	if !is {
		return nil, nil
	}
	defer d.done("Try", time.Now(), &err)
	return trier.Try(ctx, desired)
}

// Brought implements Bringer; a driver that is none brings nothing.
func (d measured) Brought(ctx context.Context, workload Workload, clusters []string) (brought []Dependent, err error) {
	bringer, is := d.Driver.(Bringer)
	if !is {
		return nil, nil
	}
	defer d.done("Brought", time.Now(), &err)
	return bringer.Brought(ctx, workload, clusters)
}

// Restarts implements PodReader; a driver that is none does not look at pods.
func (d measured) Restarts(ctx context.Context, cluster, namespace string, pods labels.Selector) (restarts *int32, err error) {
	reader, is := d.Driver.(PodReader)
	if !is {
		return nil, nil
	}
	defer d.done("Restarts", time.Now(), &err)
	return reader.Restarts(ctx, cluster, namespace, pods)
}

func (d measured) done(method string, start time.Time, err *error) {
	code := "ok"
	if *err != nil {
		code = "error"
		if c := CodeOf(*err); c != "" {
			code = string(c)
		}
	}
	d.metrics.calls.WithLabelValues(d.backend, method, code).Inc()
	d.metrics.duration.WithLabelValues(d.backend, method).Observe(time.Since(start).Seconds())
}
