package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// TestOneObjectTwoFleetWorkloads (law 5): what another FleetWorkload has through another backend is not taken, and nothing else is refused.
func TestOneObjectTwoFleetWorkloads(t *testing.T) {
	begin, two := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), int32(2)
	later := metav1.NewTime(begin.Add(time.Hour))
	has := func(rows ...v1alpha1.ClusterShare) *v1alpha1.PlacementRecord {
		return &v1alpha1.PlacementRecord{Clusters: rows}
	}
	companion := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "shop"},
	}}
	service, other := *plan.Reference(companion), v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "other"}
	runs := func(name string) v1alpha1.ClusterShare { return v1alpha1.ClusterShare{Name: name, Replicas: &two} }
	for name, test := range map[string]struct {
		change func(*Decision, *Rival)
		want   []string
	}{
		"both want a cluster that the other has": {func(*Decision, *Rival) {}, []string{"m1"}},
		"the other leaves it": {func(_ *Decision, r *Rival) {
			r.Placement = has(v1alpha1.ClusterShare{Name: "m1", Removal: v1alpha1.RemovalDeselected})
		}, []string{"m1"}},
		"the other has left it":                         {func(_ *Decision, r *Rival) { r.Placement = has(v1alpha1.ClusterShare{Name: "m1", Baseline: &two}) }, nil},
		"the other has nothing yet":                     {func(_ *Decision, r *Rival) { r.Placement = nil }, nil},
		"the other has another cluster":                 {func(_ *Decision, r *Rival) { r.Placement = has(runs("m9")) }, nil},
		"another namespace":                             {func(_ *Decision, r *Rival) { r.Namespace = "bank" }, nil},
		"of no namespace":                               {func(d *Decision, r *Rival) { r.Namespace, d.work.query.Workload.Namespace = "bank", "" }, []string{"m1"}},
		"another name":                                  {func(_ *Decision, r *Rival) { r.Has[0].Name = "other" }, nil},
		"another group":                                 {func(_ *Decision, r *Rival) { r.Has[0].APIVersion = "example.io/v1" }, nil},
		"another version":                               {func(_ *Decision, r *Rival) { r.Has[0].APIVersion = "apps/v2" }, []string{"m1"}},
		"a companion that the other has as a companion": {func(_ *Decision, r *Rival) { r.Has = append(r.Has[:0], service) }, []string{"m1"}},
		"a companion that is the other's workload":      {func(_ *Decision, r *Rival) { r.Has = append(r.Has[:0], other, service) }, []string{"m1"}},
		"a companion in another namespace, of a workload of none": {func(d *Decision, r *Rival) {
			r.Namespace, d.work.query.Workload.Namespace, r.Has = "bank", "", append(r.Has[:0], service)
		}, nil},
		"a new companion, the other younger": {func(d *Decision, r *Rival) {
			d.record.placement, r.Has = has(runs("m1")), append(r.Has[:0], service)
		}, []string{"m1"}},
		"a companion that both have, the other younger": {func(d *Decision, r *Rival) {
			d.record.placement, r.Has = has(runs("m1")), append(r.Has[:0], service)
			d.record.placement.Companions = []v1alpha1.WorkloadReference{service}
		}, nil},
		"of another name there, and one cluster": {func(d *Decision, r *Rival) {
			d.fleet.Clusters[1].Identity, d.in.Sides["two"].Fleet.Clusters = "i", []backends.Cluster{{Name: "east", Identity: "i"}}
			r.Placement = has(runs("east"))
		}, []string{"m2"}},
		"of one name, and two clusters": {func(d *Decision, _ *Rival) {
			d.fleet.Clusters[0].Identity, d.in.Sides["two"].Fleet.Clusters = "i", []backends.Cluster{{Name: "m1", Identity: "j"}}
		}, nil},
		"of one name, and of one no identity is known": {func(d *Decision, _ *Rival) {
			d.in.Sides["two"].Fleet.Clusters = []backends.Cluster{{Name: "m1", Identity: "j"}}
		}, []string{"m1"}},
		"of one name, and of neither an identity is known": {func(d *Decision, r *Rival) {
			d.in.Sides["two"].Fleet.Clusters = []backends.Cluster{{Name: "m2"}}
			r.Placement = has(runs("m2"))
		}, []string{"m2"}},
		"of one name, and here an identity is known": {func(d *Decision, _ *Rival) {
			d.fleet.Clusters[0].Identity, d.in.Sides["two"].Fleet.Clusters = "i", []backends.Cluster{{Name: "m1"}}
		}, []string{"m1"}},
		"the other's backend is lost": {func(d *Decision, _ *Rival) { d.in.Sides["two"] = &Side{Err: errors.New("lost")} }, []string{"m1"}},
		"the same backend":            {func(_ *Decision, r *Rival) { r.Backend = "one" }, nil},
		"the same backend, of a plan": {func(d *Decision, r *Rival) {
			r.Backend, d.in.rehearsed, d.in.Sides["one"] = "one", true, &Side{Fleet: &backends.Fleet{}}
		}, []string{"m1"}},
		"itself":         {func(d *Decision, r *Rival) { r.UID = d.in.FleetWorkload.UID }, nil},
		"left here":      {func(d *Decision, _ *Rival) { d.placed.targets[0].Mode = backends.ModeRemove }, nil},
		"only asked yet": {func(d *Decision, _ *Rival) { d.placed.targets[0].Mode = backends.ModeProbe }, []string{"m1"}},
		"it is recorded here for another cluster, the other younger": {func(d *Decision, _ *Rival) { d.record.placement = has(runs("m2")) }, []string{"m1"}},
		"it was recorded here before, the other younger": {func(d *Decision, _ *Rival) {
			d.record.placement = has(v1alpha1.ClusterShare{Name: "m1", Removal: v1alpha1.RemovalDeselected})
		}, []string{"m1"}},
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
		d.work.plan.Companions = []backends.Companion{{Object: companion}}
		d.record.workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		d.in.Sides = map[string]*Side{"two": {Fleet: &backends.Fleet{}}}
		d.work.query.Workload = backends.Workload{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
		d.placed.targets = []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}}
		rival := Rival{UID: "u2", Created: later, Backend: "two", Placement: has(runs("m1")), Has: []v1alpha1.WorkloadReference{*d.record.workload}}
		rival.Namespace, rival.Name = "shop", "other"
		test.change(d, &rival)
		d.in.Rivals = &[]Rival{rival}
		err := d.contest()
		if (backends.CodeOf(err) == backends.CodeNameConflict) != (len(test.want) > 0) || err != nil && len(test.want) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if len(test.want) > 0 && !strings.Contains(err.Error(), " on "+strings.Join(test.want, ", ")+" already") {
			t.Errorf("%s: %v, want it for %v", name, err, test.want)
		}
		field := "spec.template.metadata.name"
		if rival.Has[0] == service || len(rival.Has) > 1 {
			field = "spec.companions"
		}
		if len(test.want) > 0 && !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v does not say that %s is to be changed", name, err, field)
		}
	}
}

// TestWhoElseIsAskedFor: of all that is sent, in its namespace, and of the names that another backend gives to clusters.
func TestWhoElseIsAskedFor(t *testing.T) {
	d := moving(t)
	d.record.workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	d.work.query.Workload = backends.Workload{Namespace: "shop", Name: "web"}
	if err := d.contest(); !errors.Is(err, errEnough) || len(d.Reads.Rivals) != 1 || d.Reads.Rivals[0].Namespace != "shop" {
		t.Errorf("asked for %+v, %v", d.Reads.Rivals, err)
	}
	rival := Rival{UID: "u2", Backend: "two", Has: []v1alpha1.WorkloadReference{*d.record.workload}, Placement: &v1alpha1.PlacementRecord{}}
	rival.Namespace = "shop"
	d.in.Rivals, d.Reads = &[]Rival{rival}, Reads{}
	if err := d.contest(); !errors.Is(err, errEnough) || len(d.Reads.Sides) != 1 || d.Reads.Sides[0].Backend != "two" || !d.Reads.Sides[0].Fleet {
		t.Errorf("asked for %+v, %v", d.Reads.Sides, err)
	}
}

// TestCompanionsAreRecorded: those that are listed no more stay recorded for as long as pods may need them.
func TestCompanionsAreRecorded(t *testing.T) {
	d := moving(t)
	d.record.workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	d.placed.targets = []backends.Target{{Cluster: "m1", Mode: backends.ModeOwn}}
	listed := func(names ...string) (refs []v1alpha1.WorkloadReference) {
		d.work.plan.Companions = nil
		for _, name := range names {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name}}}
			d.work.plan.Companions = append(d.work.plan.Companions, backends.Companion{Object: obj})
			refs = append(refs, *plan.Reference(obj))
		}
		return refs
	}
	before := listed("a", "b")
	if got := d.companionsOf(nil); !slices.Equal(got, before) {
		t.Errorf("recorded %v", got)
	}
	listed("b")
	if got := d.companionsOf(&v1alpha1.PlacementRecord{Companions: before}); !slices.Equal(got, before) {
		t.Errorf("recorded before it was rolled out: %v", got)
	}
	d.placed.targets, d.joined = nil, nil // nobody has pods of an earlier revision
	if got := d.companionsOf(&v1alpha1.PlacementRecord{Companions: before}); !slices.Equal(got, before[1:]) {
		t.Errorf("recorded after it was rolled out: %v", got)
	}
	listed()
	if got := d.companionsOf(&v1alpha1.PlacementRecord{Companions: before}); got != nil {
		t.Errorf("recorded of none: %v", got)
	}
}

// TestTheRecordOfCompanionsIsBounded: by what the API server takes; those that the spec lists come before those that it listed. kubectl fw may
// read a spec that lists more.
func TestTheRecordOfCompanionsIsBounded(t *testing.T) {
	for spec, former := range map[int]int{32: 32, 64: 0, 65: 0} {
		d := moving(t)
		d.record.workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		d.placed.targets = []backends.Target{{Cluster: "m1", Mode: backends.ModeOwn}}
		for i := range spec {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": fmt.Sprint("new-", i)}}}
			d.work.plan.Companions = append(d.work.plan.Companions, backends.Companion{Object: obj})
		}
		before := &v1alpha1.PlacementRecord{}
		for i := range 64 {
			before.Companions = append(before.Companions, v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "Service", Name: fmt.Sprint("old-", i)})
		}
		listed := 0
		got := d.companionsOf(before)
		for _, ref := range got {
			if strings.HasPrefix(ref.Name, "new-") {
				listed++
			}
		}
		if listed != spec || len(got)-listed != former {
			t.Errorf("of %d that are listed %d are recorded, and %d former ones", spec, listed, len(got)-listed)
		}
	}
}

// TestWhatAFleetWorkloadHas: its object and its companions, as far as they are recorded.
func TestWhatAFleetWorkloadHas(t *testing.T) {
	workload := v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	service := v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "Service", Name: "web"}
	for name, test := range map[string]struct {
		status v1alpha1.FleetWorkloadStatus
		want   []v1alpha1.WorkloadReference
	}{
		"nothing":       {v1alpha1.FleetWorkloadStatus{}, nil},
		"its object":    {v1alpha1.FleetWorkloadStatus{Workload: &workload}, []v1alpha1.WorkloadReference{workload}},
		"no companions": {v1alpha1.FleetWorkloadStatus{Workload: &workload, Placement: &v1alpha1.PlacementRecord{}}, []v1alpha1.WorkloadReference{workload}},
		"its companions": {v1alpha1.FleetWorkloadStatus{
			Workload: &workload, Placement: &v1alpha1.PlacementRecord{Companions: []v1alpha1.WorkloadReference{service}},
		}, []v1alpha1.WorkloadReference{workload, service}},
	} {
		fw := moving(t).in.FleetWorkload
		fw.Status = test.status
		if got := RivalOf(fw); !slices.Equal(got.Has, test.want) || got.UID != fw.UID || got.Placement != fw.Status.Placement {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
