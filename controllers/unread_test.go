package controllers

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/measure"
)

// garbling has one cluster report what the kind's API does not allow.
type garbling struct {
	backends.Registry

	cluster string
}

// Driver implements backends.Registry.
func (g *garbling) Driver(name string) (backends.Driver, error) {
	driver, err := g.Registry.Driver(name)
	return garblingDriver{driver, g}, err
}

type garblingDriver struct {
	backends.Driver

	*garbling
}

// Observe implements backends.Driver.
func (d garblingDriver) Observe(ctx context.Context, q backends.Query) (backends.Observation, error) {
	o, err := d.Driver.Observe(ctx, q)
	for i := range o.Clusters {
		if o.Clusters[i].Cluster == d.cluster {
			o.Clusters[i].Status = map[string]any{"replicas": "many"}
		}
	}
	return o, err
}

// TestWhatCannotBeReadIsCounted: once for each cluster in each pass, by the kind and by why, and by no name.
func TestWhatCannotBeReadIsCounted(t *testing.T) {
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	var err error
	if w.Unread, err = measure.NewUnread(registry); err != nil {
		t.Fatal(err)
	}
	reports := &garbling{Registry: w.Backends}
	w.Backends = reports
	counted := func() (n float64, labels map[string]string) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []*dto.Metric
		for _, family := range families {
			all = append(all, family.GetMetric()...)
		}
		if len(all) > 1 {
			t.Fatalf("%d series", len(all))
		}
		labels = map[string]string{}
		for _, m := range all {
			n += m.GetCounter().GetValue()
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
		}
		return n, labels
	}
	pass := func() {
		t.Helper()
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	w.create(divide(8))
	w.settle()
	if n, _ := counted(); n != 0 {
		t.Fatalf("%v are counted while all can be read", n)
	}
	reports.cluster = "m2"
	pass()
	pass()
	n, labels := counted()
	if n != 2 || labels["backend"] != "one" || labels["group"] != "apps" || labels["kind"] != "Deployment" || labels["reason"] != "Malformed" || len(labels) != 4 {
		t.Errorf("%v are counted as %v, want 2", n, labels)
	}
}
