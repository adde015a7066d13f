//go:build e2e

package e2e

import (
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/otlp"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// sent are spans by their ids.
type sent map[string]*tracev1.Span

// path is what of a pass the span is: its name and backend, after those of the spans that it is in.
func (s sent) path(span *tracev1.Span) string {
	path := span.GetName()
	if backend := attribute(span, "fleetworkload.backend"); backend != "" {
		path += " " + backend
	}
	if parent := string(span.GetParentSpanId()); parent != "" {
		Expect(s).To(HaveKey(parent), "what %s is in was not sent", path)
		return s.path(s[parent]) + "/" + path
	}
	return path
}

func attribute(span *tracev1.Span, key string) string {
	for _, a := range span.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// What takes time in a pass can be seen, whichever backend it is spent on.
var _ = Describe("Traces", Label("traces", "karmada", "ocm"), func() {
	It("have all that is written in the pass that wrote it, and requests of nothing else", func(ctx SpecContext) {
		collector, err := otlp.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(collector.Stop)
		o, namespace := ownOperator(ctx, "traces", operatorOptions{
			replica: true, // which renews a lease meanwhile
			tracing: map[string]any{"endpoint": collector.Address(), "samplingRatePerMillion": 1_000_000},
		})
		o.start(ctx)
		var workloads []*v1alpha1.FleetWorkload
		for _, backend := range backends {
			workloads = append(workloads, create(ctx, workload(namespace, backend, backend, kinds[0], 3)))
		}
		becomesReady(ctx, workloads...)
		o.stop(ctx)

		all := sent{}
		for _, span := range collector.Spans() {
			all[string(span.GetSpanId())] = span
		}
		paths := map[string]bool{}
		var written, traced []string
		for _, entry := range o.journal.Entries() {
			written = append(written, entry.Method+" "+entry.Path)
		}
		for _, span := range all {
			path := all.path(span)
			Expect(path).To(HavePrefix("Reconcile"), "%s", span)
			paths[path] = true
			for _, secret := range []string{imageOld, world.tokens[lab.Karmada], world.tokens[lab.Hub]} {
				Expect(span.String()).NotTo(ContainSubstring(secret))
			}
			of, err := url.Parse(attribute(span, "url.full"))
			Expect(err).NotTo(HaveOccurred())
			if method := attribute(span, "http.request.method"); proxy.Mutates(method, of) {
				traced = append(traced, method+" "+of.Path)
			}
		}
		Expect(traced).To(ConsistOf(written))
		for _, backend := range backends {
			Expect(paths).To(HaveKey("Reconcile/Decide/Driver.Observe " + backend))
			Expect(paths).To(HaveKey("Reconcile/Driver.Apply " + backend + "/HTTP POST"))
		}
		Expect(paths).To(HaveKey("Reconcile/HTTP PATCH"))
	})
})
