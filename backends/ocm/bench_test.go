package ocm

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/backends"
)

// BenchmarkConverged is what Apply and Observe compute for 1,000 clusters that need nothing.
func BenchmarkConverged(b *testing.B) {
	d := wantedDelivery()
	d.Targets = nil
	for i := range 1000 {
		d.Targets = append(d.Targets, target(fmt.Sprintf("m%04d", i), 2, false))
	}
	first, err := newPlan(d, Options{}.withDefaults())
	if err != nil {
		b.Fatal(err)
	}
	var live []*unstructured.Unstructured
	for _, t := range first.targets {
		live = append(live, t.work)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := newPlan(d, Options{}.withDefaults())
		if err != nil {
			b.Fatal(err)
		}
		for i, t := range p.targets {
			r, err := readWork(live[i])
			if err != nil {
				b.Fatal(err)
			}
			_ = r.observe(backends.Workload{})
			m := next(r.state(), want)
			if m.strategy != deliver.strategy || !upToDate(live[i], variant(t.work, m)) {
				b.Fatal("not up to date")
			}
		}
	}
}
