package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

func TestReadCounts(t *testing.T) {
	if counts, err := readCounts("1,100"); err != nil || !slices.Equal(counts, []int{1, 100}) {
		t.Errorf("got %v, %v", counts, err)
	}
	for _, text := range []string{"", "0", "1,", "many"} {
		if _, err := readCounts(text); err == nil || !strings.Contains(err.Error(), "-migrations") {
			t.Errorf("%q: error is %v", text, err)
		}
	}
}

func TestCountEntries(t *testing.T) {
	w := countEntries([]proxy.Entry{
		{Server: toManagement, Method: "PATCH", Path: "/apis/apps.fleetworkload.io/v1alpha1/namespaces/n/fleetworkloads/w/status", Status: 409},
		{Server: toKarmada, Method: "DELETE", Path: "/apis/policy.karmada.io/v1alpha1/namespaces/n/propagationpolicies/p", Status: 200},
		{Server: toHub, Method: "POST", Path: "/apis/work.open-cluster-management.io/v1/namespaces/member1/manifestworks", Status: 201},
		{Server: toHub, Method: "PATCH", Path: "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/n/placements/p", Status: 200},
		{Server: toHub, Method: "POST", Path: "/api/v1/namespaces", Status: 201},
	}, []string{"member1"})
	if w.management != 1 || w.karmada != 1 || w.hub != 3 || w.works != 1 {
		t.Errorf("got %+v", w)
	}
	for _, kind := range []string{
		"management PATCH fleetworkloads/status (409)", "karmada DELETE propagationpolicies", "hub POST manifestworks",
		"hub PATCH placements", "hub POST namespaces",
	} {
		if w.kinds[kind] != 1 {
			t.Errorf("%s is not counted: %v", kind, w.kinds)
		}
	}
}

func TestIsWorkloadWrite(t *testing.T) {
	metric := func(pairs ...string) *dto.Metric {
		m := &dto.Metric{}
		for i := 0; i < len(pairs); i += 2 {
			m.Label = append(m.Label, &dto.LabelPair{Name: &pairs[i], Value: &pairs[i+1]})
		}
		return m
	}
	cloneSets := []string{"group", "apps.kruise.io", "resource", "clonesets"}
	for name, tc := range map[string]struct {
		labels []string
		want   bool
	}{
		"a write":    {[]string{"verb", "PUT"}, true},
		"a read":     {[]string{"verb", "GET"}, false},
		"its status": {[]string{"verb", "PUT", "subresource", "status"}, false},
		"a dry run":  {[]string{"verb", "PUT", "dry_run", "All"}, false},
	} {
		if got := isWorkloadWrite(metric(append(slices.Clone(cloneSets), tc.labels...)...)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDisturbed(t *testing.T) {
	before := map[string]int32{"a": 0, "b": 1, "c": 0}
	if n := disturbed(before, before); n != 0 {
		t.Errorf("%d, want none", n)
	}
	if n := disturbed(before, map[string]int32{"a": 0, "b": 2, "d": 0}); n != 3 {
		t.Errorf("%d, want 3: one restarted, one gone, one new", n)
	}
}

// Times are medians of moves, writes are those for one FleetWorkload, and one disturbed pod is one too many.
func TestMoveSummary(t *testing.T) {
	one := move{
		to: "ocm", n: 2, clusters: 3, pods: 6, all: 4 * time.Second, settled: 5 * time.Second,
		each:   []time.Duration{2 * time.Second, 4 * time.Second},
		writes: writes{management: 20, karmada: 10, hub: 24, works: 18, member: 12, moves: 2, kinds: map[string]int{"a": 1}},
	}
	other := one
	other.disturbed, other.all = 1, 6*time.Second
	got := summary([]move{one, other}).String()
	want := "migration-to-ocm/2 all=6.0s each=4.0s slowest=4.0s settled=5.0s writes: management=10.0 karmada=5.0 hub=12.0 " +
		"hub-per-cluster=3.0 member=2.0 pods=6 disturbed=1 short"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if one.writes.kinds["a"] != 1 {
		t.Error("the summary changes the moves")
	}
}
