package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// merge does to an object what an API server does with a merge patch. The fake client keeps objects as they decode, unpacked.
func merge(object, patch map[string]any) {
	for field, value := range patch {
		below, is := value.(map[string]any)
		switch at, has := object[field].(map[string]any); {
		case value == nil:
			delete(object, field)
		case is && has:
			merge(at, below)
		default:
			object[field] = value
		}
	}
}

// TestALargeFleetsRecordsArePacked: the API server has them packed, and whoever reads has them whole, however they change. What has not changed
// is not written.
func TestALargeFleetsRecordsArePacked(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	fw, server, writes := w.get(), map[string]any{}, 0
	over, is := w.client.(client.WithWatch)
	if !is {
		t.Fatal("the client does not watch")
	}
	w.Reconciler.Client = interceptor.NewClient(over, interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			sent := map[string]any{}
			writes++
			err = apijson.Unmarshal(data, &sent)
			merge(server, sent)
			return err
		},
	})
	clusters := func(n, replicas int) (all []v1alpha1.ClusterShare) {
		for i := range n {
			all = append(all, v1alpha1.ClusterShare{Name: fmt.Sprintf("cluster-%030d", i), Replicas: ptr(int32(replicas))})
		}
		return all
	}
	moved := func(n int) *v1alpha1.MigrationStatus {
		m := &v1alpha1.MigrationStatus{From: "one", To: "two"}
		for i := range n {
			m.Clusters = append(m.Clusters, v1alpha1.MigrationClusterStatus{Name: fmt.Sprintf("cluster-%030d", i)})
		}
		return m
	}
	for _, step := range []struct {
		name                      string
		clusters, replicas, moved int
		packed                    bool
		writes                    int
	}{
		{"few", 9, 1, 0, false, 1}, {"it grows", 2000, 1, 0, true, 1}, {"it stays", 2000, 1, 0, true, 0}, {"it changes", 2000, 2, 0, true, 1},
		{"it moves", 500, 2, 2000, true, 1}, {"it has moved", 500, 2, 0, false, 1}, {"it moves back", 500, 2, 2000, true, 1},
		{"it shrinks", 1, 2, 1, false, 1}, {"it grows again", 2000, 1, 0, true, 1}, {"nothing is left", 0, 1, 0, false, 1},
	} {
		before, status := writes, *fw.Status.DeepCopy()
		status.Placement = &v1alpha1.PlacementRecord{Group: "g", Clusters: clusters(step.clusters, step.replicas)}
		status.Migration = moved(step.moved)
		if _, err := w.writeStatus(t.Context(), fw, status, false); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(server["status"])
		if err != nil {
			t.Fatal(err)
		}
		fw.Status = v1alpha1.FleetWorkloadStatus{}
		if err := apijson.Unmarshal(raw, &fw.Status); err != nil {
			t.Fatal(err)
		}
		if writes-before != step.writes || (fw.Status.Packed != "") != step.packed || step.packed && len(raw) > 50_000 {
			t.Errorf("%s: %d writes, packed in %d bytes of %d", step.name, writes-before, len(fw.Status.Packed), len(raw))
		}
		status.Packed, fw.Status.Packed = "", ""
		if !equality.Semantic.DeepEqual(fw.Status, status) {
			t.Errorf("%s: %d clusters are read, and %d that move", step.name, len(fw.Status.Placement.Clusters), len(fw.Status.Migration.Clusters))
		}
		_ = apijson.Unmarshal(raw, &fw.Status)
	}
}

// TestAStatusThatIsCutToFitRests: what there is no room for is counted, and is no reason to write again. Records are whole.
func TestAStatusThatIsCutToFitRests(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	fw, sent := w.get(), map[string]any{}
	over, is := w.client.(client.WithWatch)
	if !is {
		t.Fatal("the client does not watch")
	}
	writes := 0
	w.Reconciler.Client = interceptor.NewClient(over, interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			writes++
			return apijson.Unmarshal(data, &sent)
		},
	})
	hash := func(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))[:63] }
	status := *fw.Status.DeepCopy()
	status.Placement = &v1alpha1.PlacementRecord{}
	for i := range 4000 {
		status.Placement.Clusters = append(status.Placement.Clusters, v1alpha1.ClusterShare{Name: hash(i), Replicas: ptr(int32(i))})
	}
	for i := range 100 {
		status.Clusters = append(status.Clusters, v1alpha1.ClusterStatus{Name: hash(i), Message: strings.Repeat(hash(i), 10)})
	}
	status.Truncated = ptr(int32(3900))
	for pass := range 2 {
		if _, err := w.writeStatus(t.Context(), fw, status, false); err != nil {
			t.Fatal(err)
		}
		if writes != 1 {
			t.Fatalf("pass %d: %d writes", pass, writes)
		}
		raw, err := json.Marshal(sent["status"])
		if err != nil {
			t.Fatal(err)
		}
		fw.Status = v1alpha1.FleetWorkloadStatus{}
		if err := apijson.Unmarshal(raw, &fw.Status); err != nil {
			t.Fatal(err)
		}
		rows := len(fw.Status.Clusters)
		if rows < 10 || rows == 100 || int(*fw.Status.Truncated)+rows != 4000 || *status.Truncated != 3900 {
			t.Errorf("%d rows, %d more", rows, *fw.Status.Truncated)
		}
		if !equality.Semantic.DeepEqual(fw.Status.Placement, status.Placement) || !equality.Semantic.DeepEqual(fw.Status.Clusters, status.Clusters[:rows]) {
			t.Error("a record is lost, or a row that is shown")
		}
	}
}
