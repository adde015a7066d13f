package pass

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestOneObjectTwoFleetWorkloads (law 5): what another FleetWorkload has through another backend is not taken, and nothing else is refused.
func TestOneObjectTwoFleetWorkloads(t *testing.T) {
	begin, two := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), int32(2)
	later := metav1.NewTime(begin.Add(time.Hour))
	has := func(rows ...v1alpha1.ClusterShare) *v1alpha1.PlacementRecord {
		return &v1alpha1.PlacementRecord{Clusters: rows}
	}
	runs := func(name string) v1alpha1.ClusterShare { return v1alpha1.ClusterShare{Name: name, Replicas: &two} }
	for name, test := range map[string]struct {
		change func(*Decision, *Rival)
		want   []string
	}{
		"both want a cluster that the other has": {func(*Decision, *Rival) {}, []string{"m1"}},
		"the other leaves it": {func(_ *Decision, r *Rival) {
			r.Placement = has(v1alpha1.ClusterShare{Name: "m1", Removal: v1alpha1.RemovalDeselected})
		}, []string{"m1"}},
		"the other has left it":           {func(_ *Decision, r *Rival) { r.Placement = has(v1alpha1.ClusterShare{Name: "m1", Baseline: &two}) }, nil},
		"the other has nothing yet":       {func(_ *Decision, r *Rival) { r.Placement = nil }, nil},
		"the other has another cluster":   {func(_ *Decision, r *Rival) { r.Placement = has(runs("m9")) }, nil},
		"another namespace":               {func(_ *Decision, r *Rival) { r.Namespace = "bank" }, nil},
		"of no namespace":                 {func(d *Decision, r *Rival) { r.Namespace, d.work.query.Workload.Namespace = "bank", "" }, []string{"m1"}},
		"the same backend":                {func(_ *Decision, r *Rival) { r.Backend = "one" }, nil},
		"itself":                          {func(d *Decision, r *Rival) { r.UID = d.in.FleetWorkload.UID }, nil},
		"left here":                       {func(d *Decision, _ *Rival) { d.placed.targets[0].Mode = backends.ModeRemove }, nil},
		"only asked yet":                  {func(d *Decision, _ *Rival) { d.placed.targets[0].Mode = backends.ModeProbe }, []string{"m1"}},
		"both have it, the other younger": {func(d *Decision, _ *Rival) { d.record.placement = has(runs("m1")) }, nil},
		"both have it, the other older": {func(d *Decision, r *Rival) {
			d.record.placement = has(runs("m1"))
			d.in.FleetWorkload.CreationTimestamp, r.Created = later, begin
		}, []string{"m1"}},
		"both have it, of the same second": {func(d *Decision, r *Rival) {
			d.record.placement = has(runs("m1"))
			r.Created, r.UID = begin, "a1"
		}, []string{"m1"}},
		"under the name that it has here": {func(d *Decision, r *Rival) {
			d.in.Aliases = []map[string]string{{"one": "m2", "two": "east"}}
			r.Placement = has(runs("east"))
		}, []string{"m2"}},
	} {
		d := moving(t)
		d.in.FleetWorkload.CreationTimestamp = begin
		d.work.query.Workload = backends.Workload{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
		d.placed.targets = []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}}
		rival := Rival{UID: "u2", Created: later, Backend: "two", Placement: has(runs("m1"))}
		rival.Namespace, rival.Name = "shop", "other"
		test.change(d, &rival)
		d.in.Rivals = &[]Rival{rival}
		var got []string
		if d.contests(rival) {
			got = d.shared(rival)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if err := d.contest(); (backends.CodeOf(err) == backends.CodeNameConflict) != (len(test.want) > 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
