// Package otlp is a collector of OpenTelemetry's that keeps what it is sent, for tests.
package otlp

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector takes spans over gRPC.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	server  *grpc.Server
	address string
	mu      sync.Mutex
	spans   []*tracev1.Span
}

// Start starts a collector on a port of its own.
func Start() (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	c := &Collector{server: grpc.NewServer(), address: listener.Addr().String()}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// Address is where it listens.
func (c *Collector) Address() string { return c.address }

// Stop ends it.
func (c *Collector) Stop() { c.server.Stop() }

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Spans are those that have come so far.
func (c *Collector) Spans() []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}
