package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// seeing is a registry whose backend "two" can look at pods, those of "m1" excepted.
type seeing struct {
	backends.Registry
	restarts int32
	asked    atomic.Int32
}

func (r *seeing) Driver(name string) (backends.Driver, error) {
	driver, err := r.Registry.Driver(name)
	if err != nil || name != "two" {
		return driver, err
	}
	return podDriver{driver, r}, nil
}

type podDriver struct {
	backends.Driver
	of *seeing
}

func (d podDriver) Restarts(_ context.Context, cluster, _ string, _ labels.Selector) (*int32, error) {
	d.of.asked.Add(1)
	if cluster == "m1" {
		return nil, errors.New("it does not answer")
	}
	return ptr(d.of.restarts), nil
}

// TestRestartsAreEvidence: counted before a cluster's turn, after it and at its wave's end, by the backend that can tell,
// and not in every pass.
func TestRestartsAreEvidence(t *testing.T) {
	w, two := newPair(t)
	pods := &seeing{Registry: w.Backends, restarts: 3}
	w.Backends = pods
	w.create(func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{{Size: ptr(intstr.FromString("100%")), Approval: v1alpha1.ApprovalPolicyManual}}}
	})
	w.both(two)
	w.edit(to("two"))
	w.both(two)
	m := w.get().Status.Migration
	if m.Approval == "" {
		t.Fatalf("the wave has not passed: %+v", m)
	}
	if pods.asked.Load() != 6 {
		t.Errorf("%d questions for 3 clusters", pods.asked.Load())
	}
	pods.restarts = 5
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: m.Approval}
	})
	w.both(two)
	for _, c := range w.get().Status.Migration.History[0].Clusters {
		before, after := c.Before.Restarts, c.After.Restarts
		if c.Name == "m1" {
			if before != nil || after != nil {
				t.Errorf("%s: %v, %v", c.Name, before, after)
			}
			continue
		}
		if before == nil || *before != 3 || after == nil || *after != 5 {
			t.Errorf("%s: %v, %v", c.Name, before, after)
		}
	}
}
