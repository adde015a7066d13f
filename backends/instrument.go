package backends

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// tracerName is whose spans they are.
const tracerName = "github.com/fleetworkload/fleetworkload/backends"

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

// Instrument returns a Registry whose drivers are counted, and traced in passes that are.
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
	ctx, end := d.begin(ctx, "Clusters")
	defer end(&err)
	return d.Driver.Clusters(ctx)
}

// Observe implements Driver.
func (d measured) Observe(ctx context.Context, query Query) (observation Observation, err error) {
	ctx, end := d.begin(ctx, "Observe")
	defer end(&err)
	return d.Driver.Observe(ctx, query)
}

// Apply implements Driver.
func (d measured) Apply(ctx context.Context, desired Desired) (progress Progress, err error) {
	ctx, end := d.begin(ctx, "Apply")
	defer end(&err)
	return d.Driver.Apply(ctx, desired)
}

// Delete implements Driver.
func (d measured) Delete(ctx context.Context, query Query, policy v1alpha1.DeletionPolicy) (progress Progress, err error) {
	ctx, end := d.begin(ctx, "Delete")
	defer end(&err)
	return d.Driver.Delete(ctx, query, policy)
}

// DryRun implements DryRunner; a driver that is none has nothing to say.
func (d measured) DryRun(ctx context.Context, desired Desired) (against []string, err error) {
	dryRunner, is := d.Driver.(DryRunner)
	if !is {
		return nil, nil
	}
	ctx, end := d.begin(ctx, "DryRun")
	defer end(&err)
	return dryRunner.DryRun(ctx, desired)
}

// Brought implements Bringer; a driver that is none brings nothing.
func (d measured) Brought(ctx context.Context, workload Workload, clusters []string) (brought []Dependent, err error) {
	bringer, is := d.Driver.(Bringer)
	if !is {
		return nil, nil
	}
	ctx, end := d.begin(ctx, "Brought")
	defer end(&err)
	return bringer.Brought(ctx, workload, clusters)
}

// Restarts implements PodReader; a driver that is none does not look at pods.
func (d measured) Restarts(ctx context.Context, cluster, namespace string, pods labels.Selector) (restarts *int32, err error) {
	reader, is := d.Driver.(PodReader)
	if !is {
		return nil, nil
	}
	ctx, end := d.begin(ctx, "Restarts")
	defer end(&err)
	return reader.Restarts(ctx, cluster, namespace, pods)
}

// begin is the beginning of a call: a span below the pass's when that one is traced. What it returns ends the call.
func (d measured) begin(ctx context.Context, method string) (context.Context, func(*error)) {
	start := time.Now()
	ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName).Start(ctx, "Driver."+method,
		trace.WithAttributes(attribute.String("fleetworkload.backend", d.backend)))
	return ctx, func(err *error) {
		code := outcome(*err)
		d.metrics.calls.WithLabelValues(d.backend, method, code).Inc()
		d.metrics.duration.WithLabelValues(d.backend, method).Observe(time.Since(start).Seconds())
		span.SetAttributes(attribute.String("fleetworkload.code", code))
		if *err != nil {
			span.SetStatus(codes.Error, "") // what it says may quote a spec
		}
		span.End()
	}
}

// outcome is the label code of a call.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if c := CodeOf(err); c != "" {
		return string(c)
	}
	return "error"
}
