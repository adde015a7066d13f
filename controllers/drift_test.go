package controllers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/measure"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// proving has the reports of one backend prove something of member objects.
type proving struct {
	backends.Registry

	backend string
	proves  backends.Delivered
	// companion is what is proven of a companion; nil when there is none.
	companion *backends.Delivered
}

// Driver implements backends.Registry.
func (p *proving) Driver(name string) (backends.Driver, error) {
	driver, err := p.Registry.Driver(name)
	if err != nil || name != p.backend {
		return driver, err
	}
	return provingDriver{driver, p.proves, p.companion}, nil
}

type provingDriver struct {
	backends.Driver

	proves    backends.Delivered
	companion *backends.Delivered
}

// Observe implements backends.Driver.
func (d provingDriver) Observe(ctx context.Context, q backends.Query) (backends.Observation, error) {
	o, err := d.Driver.Observe(ctx, q)
	for i := range o.Clusters {
		proves := d.proves
		o.Clusters[i].Delivered = &proves
		if d.companion != nil {
			o.Clusters[i].CompanionsDelivered = map[string]*backends.Delivered{"ConfigMap settings": d.companion}
		}
	}
	return o, err
}

// TestWhatOthersChangeIsTold: each change is an event and is counted, and another event tells that it is put back; what a FleetWorkload does itself is neither, also when it is handed over.
func TestWhatOthersChangeIsTold(t *testing.T) {
	w, two := newPair(t)
	registry := prometheus.NewRegistry()
	var err error
	if w.Drift, err = measure.NewDrift(registry); err != nil {
		t.Fatal(err)
	}
	one := &proving{Registry: w.Backends, backend: "one", proves: backends.Delivered{Order: backends.Order{UID: "w", Generation: 1}, Generation: 3}}
	w.Backends = one
	recorder := events.NewFakeRecorder(100)
	w.Recorder = recorder
	clock, is := w.Clock.(*clocktesting.FakePassiveClock)
	if !is {
		t.Fatal("it has another clock")
	}
	counted := func() (n float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			n += family.GetMetric()[0].GetCounter().GetValue()
		}
		return n
	}
	expect := func(when string, count float64, events ...string) {
		t.Helper()
		for _, event := range append(events, "") {
			if got := recorded(recorder, "OnCluster"); got != event {
				t.Errorf("%s: told is %q, want %q", when, got, event)
			}
		}
		if got := counted(); got != count {
			t.Errorf("%s: %v are counted, want %v", when, got, count)
		}
	}
	later := func() { clock.SetTime(clock.Now().Add(time.Minute)) }
	w.create(func(s *v1alpha1.FleetWorkloadSpec) { divide(8)(s) })
	w.both(two)
	later()
	w.both(two)
	expect("at rest", 0)

	one.proves.Generation += 2
	w.both(two)
	each := func(severity, reason, words string) string {
		return fmt.Sprintf("%s %s cluster m1: %[3]s; cluster m2: %[3]s; cluster m3: %[3]s", severity, reason, words)
	}
	expect("changed", 3, each("Warning", "ChangedOnCluster",
		"somebody else has changed the object there: generation 3 has become 5, while what is delivered has stayed the same"),
		each("Normal", "PutBackOnCluster", "the object there is what is delivered again, and was so when the change was seen"))
	w.both(two)
	expect("told once", 3)

	before := w.get().ResourceVersion
	one.companion = &backends.Delivered{Order: one.proves.Order}
	w.both(two)
	expect("a companion that is new", 3)
	one.companion.Others = `conflict with "kubectl-edit" using v1: .data.a`
	w.both(two)
	expect("a companion is changed", 6, each("Warning", "ChangedOnCluster",
		`somebody else has changed the companion ConfigMap settings there, and it is put back: conflict with "kubectl-edit" using v1: .data.a`))
	later()
	w.both(two)
	expect("as long as it lasts", 6)
	later()
	one.companion = &backends.Delivered{Order: backends.Order{UID: "w", Generation: 2}}
	w.both(two)
	expect("put back", 6, each("Normal", "PutBackOnCluster", "the companion ConfigMap settings there is what is delivered again, 2m after the change was seen"))
	w.both(two)
	expect("told once that it is back", 6)
	if after := w.get().ResourceVersion; after != before {
		t.Errorf("telling has written the FleetWorkload: it was %s, and is %s", before, after)
	}

	later()
	one.proves.Order.Generation, one.proves.Generation = 2, 7
	w.both(two)
	expect("another order", 6)

	later()
	w.edit(to("two"))
	for range 100 {
		if pass.HandsOver(w.get()) {
			break
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.backend.Step()
		two.Step()
	}
	one.proves.Generation += 2
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if fw := w.get(); !pass.HandsOver(fw) || fw.Status.Backend != "one" {
		t.Fatalf("it is not being handed over: %+v", fw.Status.Migration)
	}
	w.both(two)
	w.edit(to("one"))
	one.proves.Generation += 2
	w.both(two)
	if w.get().Status.Backend != "one" {
		t.Fatalf("it is not back: %+v", w.get().Status)
	}
	expect("handed over and back", 6)

	later()
	one.proves.Generation += 2
	w.restart()
	w.Backends, w.Recorder = one, recorder
	w.both(two)
	expect("the operator was restarted meanwhile", 6)

	fw := w.get()
	if err := w.client.Delete(context.Background(), fw); err != nil {
		t.Fatal(err)
	}
	w.both(two)
	if len(w.drifts.by) != 0 {
		t.Errorf("it is remembered: %v", w.drifts.by)
	}
}
