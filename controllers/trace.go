package controllers

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// startSpan begins a span below the one that the context has.
func (r *Reconciler) startSpan(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if r.Tracer == nil {
		return ctx, noop.Span{}
	}
	return r.Tracer.Start(ctx, name, trace.WithAttributes(attributes...))
}

// tracePass begins the span of a pass over a FleetWorkload.
func (r *Reconciler) tracePass(ctx context.Context, key types.NamespacedName) (context.Context, trace.Span) {
	return r.startSpan(ctx, "Reconcile",
		attribute.String("fleetworkload.namespace", key.Namespace), attribute.String("fleetworkload.name", key.Name))
}

// traceGeneration says on the span of a pass what it is about.
func traceGeneration(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int64("fleetworkload.generation", fw.Generation))
}

// traceOutcome says on the span how the pass ended, in the words of controller_runtime_reconcile_total. What the error says is left out: it may
// quote a spec.
func traceOutcome(span trace.Span, res reconcile.Result, err error) {
	outcome := "success"
	switch {
	case err != nil:
		outcome = "error"
		span.SetStatus(codes.Error, "")
	case res.RequeueAfter > 0:
		outcome = "requeue_after"
	}
	span.SetAttributes(attribute.String("fleetworkload.outcome", outcome))
}
