package controllers

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestALargeFleetsRecordsArePacked: the API server has them packed, and whoever reads has them whole, however they change. What has not changed
// is not written.
func TestALargeFleetsRecordsArePacked(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	w.settle()
	records := func(n, replicas int) *v1alpha1.PlacementRecord {
		record := w.get().Status.Placement.DeepCopy()
		record.Clusters = nil
		for i := range n {
			record.Clusters = append(record.Clusters, v1alpha1.ClusterShare{Name: fmt.Sprintf("cluster-%030d", i), Replicas: ptr(int32(replicas))})
		}
		return record
	}
	for _, step := range []struct {
		name               string
		clusters, replicas int
		packed             bool
		writes             int
	}{
		{"few", 9, 1, false, 1}, {"it grows", 2000, 1, true, 1}, {"it stays", 2000, 1, true, 0}, {"it changes", 2000, 2, true, 1},
		{"it shrinks", 9, 2, false, 1}, {"it grows again", 2000, 2, true, 1}, {"it shrinks to one", 1, 2, false, 1},
	} {
		fw, writes := w.get(), w.writes
		status := *fw.Status.DeepCopy()
		status.Placement = records(step.clusters, step.replicas)
		if err := w.writeStatus(t.Context(), fw, status); err != nil {
			t.Fatal(err)
		}
		got := w.get()
		if w.writes-writes != step.writes || (got.Status.Packed != "") != step.packed || step.packed && len(got.Status.Bare().Placement.Clusters) > 0 {
			t.Errorf("%s: %d writes, packed in %d bytes", step.name, w.writes-writes, len(got.Status.Packed))
		}
		if !equality.Semantic.DeepEqual(got.Status.Placement, status.Placement) {
			t.Errorf("%s: %d clusters are read", step.name, len(got.Status.Placement.Clusters))
		}
	}
}
