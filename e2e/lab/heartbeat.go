// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	managedClusterAPI  = "cluster.open-cluster-management.io/v1"
	availableCondition = "ManagedClusterConditionAvailable"

	// leaseSeconds is the ManagedClusters' lease. The hub takes a cluster as lost after five times as long.
	leaseSeconds = 10
	beatInterval = 3 * time.Second
)

// Heartbeat does for every member of the fleet in dir what OCM's registration agent does in a real cluster: as long as
// the member's API server answers, it renews the cluster's lease and keeps its status. It returns when ctx ends.
func Heartbeat(ctx context.Context, dir string, out io.Writer) error {
	f, err := newFleet(dir, out)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		// Read each time: members come and go while we run.
		if err := f.state.reload(); err != nil {
			f.printf("%v", err)
		}
		for _, m := range f.Members() {
			if err := f.beat(ctx, m); err != nil {
				f.printf("%s: %v", m.Name, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// beat renews the lease of a member that answers.
func (f *Fleet) beat(ctx context.Context, m Member) error {
	ctx, cancel := context.WithTimeout(ctx, beatInterval)
	defer cancel()
	f.state.mu.Lock()
	port := f.state.Ports[apiServerName(m.Name)]
	f.state.mu.Unlock()
	if err := answers(httpsURL(port, "/readyz"))(ctx); err != nil {
		return fmt.Errorf("does not answer, no heartbeat: %w", err)
	}
	hub, err := f.client(Hub)
	if err != nil {
		return err
	}
	cluster, err := hub.get(ctx, managedClusterAPI, "ManagedCluster", "", m.OCMName)
	if err != nil {
		return err
	}
	lease := object{"spec": object{"renewTime": time.Now().UTC().Format(metav1.RFC3339Micro)}}
	if err := hub.mergePatch(ctx, "coordination.k8s.io/v1", "Lease", m.OCMName, "managed-cluster-lease", lease); err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	// The conditions come first: a cluster that was never available is tainted until they are there.
	if conditionTrue(cluster, availableCondition) == nil && conditionTrue(cluster, "ManagedClusterJoined") == nil {
		return nil
	}
	status, err := f.managedClusterStatus(ctx, m, cluster)
	if err != nil {
		return err
	}
	return hub.mergePatch(ctx, managedClusterAPI, "ManagedCluster", "", m.OCMName, object{"status": status}, "status")
}

// managedClusterStatus is the status as the registration agent reports it. It keeps the conditions of others: a merge
// patch replaces a list as a whole.
func (f *Fleet) managedClusterStatus(ctx context.Context, m Member, cluster *unstructured.Unstructured) (object, error) {
	id, err := f.clusterID(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	ours := map[string]object{
		"ManagedClusterJoined": {"reason": "ManagedClusterJoined", "message": "Managed cluster joined"},
		availableCondition:     {"reason": "ManagedClusterAvailable", "message": "Managed cluster is available"},
	}
	var conditions []any
	old, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions")
	for _, c := range old {
		if condition := c.(object); ours[fmt.Sprint(condition["type"])] == nil {
			conditions = append(conditions, condition)
		}
	}
	for kind, condition := range ours {
		condition["type"], condition["status"] = kind, "True"
		condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
		conditions = append(conditions, condition)
	}
	nodes := len(m.nodeZones())
	capacity := object{"cpu": fmt.Sprint(nodes * nodeCPU), "memory": fmt.Sprintf("%dGi", nodes*nodeMemoryGi)}
	return object{
		"conditions": conditions, "capacity": capacity, "allocatable": capacity, "version": object{"kubernetes": f.state.kubernetes()},
		"clusterClaims": []any{
			object{"name": "id.k8s.io", "value": id},
			object{"name": "platform.open-cluster-management.io", "value": m.Provider},
			object{"name": "region.open-cluster-management.io", "value": m.Region},
			object{"name": "zone.open-cluster-management.io", "value": m.Zone},
		},
	}, nil
}

func (c *client) mergePatch(ctx context.Context, apiVersion, kind, namespace, name string, patch object, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.resource(schema.FromAPIVersionAndKind(apiVersion, kind), namespace).
		Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "fleetworkload-lab"}, subresources...)
	return err
}
