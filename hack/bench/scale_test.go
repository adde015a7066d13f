package main

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func TestScaleSize(t *testing.T) {
	if workloads, clusters, err := scaleSize("300x100"); workloads != 300 || clusters != 100 || err != nil {
		t.Errorf("%d, %d, %v", workloads, clusters, err)
	}
	for _, text := range []string{"", "300", "300x", "x100", "1x100", "300x1", "300x100x2", "-3x5"} {
		if _, _, err := scaleSize(text); err == nil || !strings.Contains(err.Error(), "300x100") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestScaleFigures(t *testing.T) {
	requests := func(metrics string) scaleFigures {
		t.Helper()
		counted, err := readRequests(strings.NewReader("# TYPE rest_client_requests_total counter\n" + metrics))
		if err != nil {
			t.Fatal(err)
		}
		return scaleFigures{requests: counted}
	}
	before := requests(`rest_client_requests_total{code="200",host="a",method="GET"} 7` + "\n")
	after := requests(`rest_client_requests_total{code="200",host="a",method="GET"} 9
rest_client_requests_total{code="200",host="b",method="GET"} 1
rest_client_requests_total{code="201",host="a",method="POST"} 3
rest_client_requests_total{code="409",host="a",method="PATCH"} 1
`)
	if f := after.since(before); f.reads() != 3 || f.writes() != 4 || f.refused() != 0.25 || !strings.Contains(f.String(), "GET 200: 3, PATCH 409: 1, POST 201: 3") {
		t.Errorf("%s: %d reads, %d writes, %g refused", f, f.reads(), f.writes(), f.refused())
	}
	if f := after.since(after); f.reads() != 0 || f.refused() != 0 {
		t.Errorf("between the same: %s", f)
	}
	if peak, err := readPeak([]byte("Name:\tmanager\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n")); peak != 2<<20 || err != nil {
		t.Errorf("%d, %v", peak, err)
	}
	for _, status := range []string{"", "VmHWM:\t much\n"} {
		if _, err := readPeak([]byte(status)); err == nil {
			t.Errorf("%q is read", status)
		}
	}
}

func TestScaleLine(t *testing.T) {
	for bar, want := range map[float64]string{0.1: "reads: 0.25 bar=0.1 short", 0.25: "reads: 0.25 bar=0.25 ok"} {
		if got := (scaleLine{name: "reads", value: 0.25, bar: bar}).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestSight: those count that are looked for, once each, with a condition about the newest spec.
func TestSight(t *testing.T) {
	fw := func(name string, generation int64, ready metav1.ConditionStatus) *v1alpha1.FleetWorkload {
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		meta.SetStatusCondition(&fw.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: ready, ObservedGeneration: generation})
		return fw
	}
	var s sight
	s.begin([]string{"a", "b"}, metav1.ConditionTrue, 0, 0)
	for _, seen := range []*v1alpha1.FleetWorkload{fw("a", 1, "True"), fw("a", 2, "False"), fw("c", 2, "True"), fw("a", 2, "True"), fw("a", 2, "True")} {
		s.see(seen)
	}
	if err := s.await(t.Context(), time.Nanosecond); err == nil {
		t.Error("one is missing, and it is not said")
	}
	s.see(fw("b", 2, "True"))
	if err := s.await(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	spread := fw("a", 2, "True")
	s.begin([]string{"a"}, metav1.ConditionTrue, 3, 0)
	for on := range int32(3) {
		spread.Status.ClusterSummary = &v1alpha1.ClusterSummary{Applied: &on}
		s.see(spread)
	}
	if err := s.await(t.Context(), time.Nanosecond); err == nil {
		t.Error("a cluster is missing, and it is not said")
	}
	three := int32(3)
	spread.Status.ClusterSummary.Applied = &three
	s.see(spread)
	if err := s.await(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	s.begin([]string{"a"}, metav1.ConditionTrue, 0, 2)
	s.see(fw("a", 2, "True"))
	if err := s.await(t.Context(), time.Nanosecond); err == nil {
		t.Error("it is as it was before the edit, and it is not said")
	}
	edited := fw("a", 3, "True")
	edited.Generation = 3
	s.see(edited)
	if err := s.await(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if first, last := s.times(); first.IsZero() || last.Before(first) {
		t.Errorf("the first at %s, the last at %s", first, last)
	}
}
