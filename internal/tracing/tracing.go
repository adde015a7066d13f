// Package tracing sends spans of passes, and of the requests that they make, to a collector of OpenTelemetry.
package tracing

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// stopPatience bounds how long the operator's end waits until the last spans are sent.
const stopPatience = 3 * time.Second

// Options say where spans go.
type Options struct {
	// Endpoint is the collector's address, host:port, where it takes OTLP over gRPC without TLS. When empty nothing is traced.
	Endpoint string
	// SamplingRatePerMillion is how many passes of a million are traced.
	SamplingRatePerMillion int32
	// Version is the operator's.
	Version string
	Log     logr.Logger
}

// Provider makes spans and sends them.
type Provider struct {
	tracing.TracerProvider
	wrap func(http.RoundTripper) http.RoundTripper
	log  logr.Logger
}

// NewProvider returns a Provider. It connects on its own later, so that a collector that is down keeps nothing waiting.
func NewProvider(ctx context.Context, opts Options) (*Provider, error) {
	if opts.Endpoint == "" {
		return &Provider{TracerProvider: tracing.NewNoopTracerProvider()}, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		opts.Log.Info("Traces were lost on the way to the collector", "endpoint", opts.Endpoint, "reason", err.Error())
	}))
	provider, err := tracing.NewProvider(ctx,
		&tracingapi.TracingConfiguration{Endpoint: &opts.Endpoint, SamplingRatePerMillion: &opts.SamplingRatePerMillion}, nil,
		[]resource.Option{
			resource.WithAttributes(semconv.ServiceName("fleetworkload"), semconv.ServiceVersion(opts.Version)),
			resource.WithHost(),
		})
	if err != nil {
		return nil, fmt.Errorf("set up traces to %s: %w", opts.Endpoint, err)
	}
	return &Provider{TracerProvider: provider, log: opts.Log, wrap: requests(provider)}, nil
}

// Tracer begins spans of passes.
func (p *Provider) Tracer() trace.Tracer {
	return p.TracerProvider.Tracer("github.com/fleetworkload/fleetworkload")
}

// Requests has requests that a traced pass makes through the configuration traced, too.
func (p *Provider) Requests(cfg *rest.Config) {
	if p.wrap != nil {
		cfg.Wrap(p.wrap)
	}
}

// Stop sends what has not been sent. A collector that does not take it is not waited for.
func (p *Provider) Stop(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	if err := p.Shutdown(bounded); err != nil {
		p.log.Info("The last traces may be lost", "reason", err.Error())
	}
}

// requests traces the requests of passes, and tells API servers which trace they belong to.
func requests(provider trace.TracerProvider) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(tracing.Propagators()),
			otelhttp.WithFilter(ofTracedPass))
	}
}

// ofTracedPass leaves out what belongs to no pass, such as watches and the lease, or to one that is not sampled. It also leaves out what has a span
// by now: requests to a backend that is the management cluster come by twice.
func ofTracedPass(request *http.Request) bool {
	sampled, is := trace.SpanFromContext(request.Context()).(sdktrace.ReadOnlySpan)
	return is && sampled.SpanKind() != trace.SpanKindClient
}
