package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

// traced has the passes of a world traced. Each write to the management cluster is a span of its own, as requests are.
func traced(t *testing.T, w *world) *tracetest.InMemoryExporter {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	w.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
	metrics, err := backends.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.Reconciler.Backends = metrics.Instrument(w.backends)
	request := func(ctx context.Context, name string) {
		if trace.SpanFromContext(ctx).IsRecording() {
			_, span := w.Tracer.Start(ctx, name)
			span.End()
		}
	}
	w.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			request(ctx, "create")
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			request(ctx, "patch")
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			request(ctx, "patch "+sub)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	return spans
}

// tree is the spans as text, each below its parent, in the order in which they began.
func tree(spans tracetest.SpanStubs) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var text strings.Builder
	var below func(parent trace.SpanID, indent string)
	below = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			if span.Parent.SpanID() != parent {
				continue
			}
			text.WriteString(indent + span.Name)
			for _, a := range span.Attributes {
				fmt.Fprintf(&text, " %s=%s", strings.TrimPrefix(string(a.Key), "fleetworkload."), a.Value.Emit())
			}
			text.WriteString("\n")
			below(span.SpanContext.SpanID(), indent+"  ")
		}
	}
	below(trace.SpanID{}, "")
	return text.String()
}

func TestTheTraceOfAPass(t *testing.T) {
	w := newWorld(t)
	spans := traced(t, w)
	w.create(divide(8))
	for _, want := range []string{
		`Reconcile namespace=shop name=web generation=1 outcome=success
  patch
  Decide
    Driver.Clusters backend=one code=ok
    Driver.Observe backend=one code=ok
  patch status
`,
		`Reconcile namespace=shop name=web generation=1 outcome=requeue_after
  Decide
    Driver.Clusters backend=one code=ok
    Driver.Observe backend=one code=ok
  Driver.Apply backend=one code=ok
`,
	} {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tree(spans.GetSpans())); diff != "" {
			t.Error(diff)
		}
		spans.Reset()
	}
}

// TestTracesQuoteNothing: what fails is marked, but what an error says, which may quote a spec, is left out.
func TestTracesQuoteNothing(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	spans := traced(t, w)
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", "nginx:2", 1))
	})
	w.backend.FailNext(memory.OpApply, errors.New("invalid value: nginx:2"))
	if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "nginx") {
		t.Fatalf("it fails with %v", err)
	}
	if quoted := fmt.Sprintf("%+v", spans.GetSpans()); strings.Contains(quoted, "nginx") {
		t.Errorf("a trace quotes the spec: %s", quoted)
	}
	var failed []string
	for _, span := range spans.GetSpans() {
		if span.Status.Code == codes.Error {
			failed = append(failed, span.Name)
		}
	}
	if diff := cmp.Diff([]string{"Driver.Apply", "Reconcile"}, failed); diff != "" {
		t.Error(diff)
	}
	for _, ended := range []string{"Driver.Apply backend=one code=error\n", "outcome=error\n"} {
		if got := tree(spans.GetSpans()); !strings.Contains(got, ended) {
			t.Errorf("%q lacks %q", got, ended)
		}
	}
}
