package tracing

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/e2e/otlp"
)

const all = 1_000_000

func collector(t *testing.T) *otlp.Collector {
	t.Helper()
	c, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

func provider(t *testing.T, endpoint string, rate int32) *Provider {
	t.Helper()
	p, err := NewProvider(t.Context(), Options{Endpoint: endpoint, SamplingRatePerMillion: rate, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// server answers everything, and tells which trace it was asked for.
func server(t *testing.T) (host string, traces <-chan string) {
	t.Helper()
	asked := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("traceparent") }))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func get(ctx context.Context, t *testing.T, cfg *rest.Config, url string) {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

// TestRequestsOfAPass: they are below the span that their context has, and the server learns of it; also where two configurations have wrapped the
// transport, as for a backend that is the management cluster. Others make no span.
func TestRequestsOfAPass(t *testing.T) {
	c := collector(t)
	p := provider(t, c.Address(), all)
	host, traces := server(t)
	management := &rest.Config{Host: host, BearerToken: "secret"}
	p.Requests(management)
	backend := rest.CopyConfig(management)
	p.Requests(backend)

	get(t.Context(), t, backend, host+"/lease")
	if parent := <-traces; parent != "" {
		t.Errorf("a request of no pass is of trace %s", parent)
	}
	ctx, span := p.Tracer().Start(t.Context(), "Reconcile")
	for _, cfg := range []*rest.Config{management, backend} {
		get(ctx, t, cfg, host+"/apis")
		if parent := <-traces; !strings.Contains(parent, span.SpanContext().TraceID().String()) {
			t.Errorf("the server is told of trace %q", parent)
		}
	}
	span.End()
	p.Stop(t.Context())

	var requests int
	for _, sent := range c.Spans() {
		if strings.Contains(sent.String(), "secret") {
			t.Errorf("a token leaves: %s", sent)
		}
		if sent.GetKind() == tracev1.Span_SPAN_KIND_CLIENT {
			requests++
			if parent := span.SpanContext().SpanID(); trace.SpanID(sent.GetParentSpanId()) != parent {
				t.Errorf("%s is below %x, not %s", sent.GetName(), sent.GetParentSpanId(), parent)
			}
		}
	}
	if requests != 2 || len(c.Spans()) != 3 {
		t.Errorf("%d requests among %d spans", requests, len(c.Spans()))
	}
}

// TestNothingIsSampled: with a rate of 0 there is no span, and servers are told of none.
func TestNothingIsSampled(t *testing.T) {
	c := collector(t)
	p := provider(t, c.Address(), 0)
	host, traces := server(t)
	cfg := &rest.Config{Host: host}
	p.Requests(cfg)
	ctx, span := p.Tracer().Start(t.Context(), "Reconcile")
	get(ctx, t, cfg, host)
	span.End()
	p.Stop(t.Context())
	if parent := <-traces; parent != "" || len(c.Spans()) != 0 {
		t.Errorf("%d spans, the server is told of %q", len(c.Spans()), parent)
	}
}

// TestOff: without an endpoint transports stay as they are, and spans are none.
func TestOff(t *testing.T) {
	p := provider(t, "", all)
	cfg := &rest.Config{}
	p.Requests(cfg)
	_, span := p.Tracer().Start(t.Context(), "Reconcile")
	p.Stop(t.Context())
	if cfg.WrapTransport != nil || span.IsRecording() {
		t.Errorf("wrapped: %t, recording: %t", cfg.WrapTransport != nil, span.IsRecording())
	}
}

// TestACollectorThatIsDown: more spans than are kept are over in no time, and so is the end.
func TestACollectorThatIsDown(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	for name, endpoint := range map[string]string{"it does not answer": silent.Addr().String(), "nobody listens": gone.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			var said strings.Builder
			p := provider(t, endpoint, all)
			p.log = funcr.New(func(_, args string) { said.WriteString(args) }, funcr.Options{})
			for i := range 10_000 {
				_, span := p.Tracer().Start(t.Context(), fmt.Sprint(i))
				span.End()
			}
			if took := time.Since(start); took > stopPatience {
				t.Errorf("spans have taken %s", took)
			}
			start = time.Now()
			p.Stop(t.Context())
			if took := time.Since(start); took > 2*stopPatience {
				t.Errorf("the end has taken %s", took)
			}
			if !strings.Contains(said.String(), "The last traces may be lost") {
				t.Errorf("it says %q", said.String())
			}
		})
	}
}
