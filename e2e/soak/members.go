// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
)

// clusterGVKs are the types of the backends' cluster objects.
var clusterGVKs = map[string]schema.GroupVersionKind{
	history.Karmada: {Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
	history.OCM:     {Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"},
}

// effects are the backends' words for the effects of taints.
var effects = map[string]map[string]string{
	choice.TaintNew: {history.Karmada: "NoSchedule", history.OCM: "NoSelectIfNew"},
	choice.TaintAll: {history.Karmada: "NoExecute", history.OCM: "NoSelect"},
}

const taintKey = "soak.example.com/taint"

// patchCluster changes a cluster's object on both backends.
func (s *soak) patchCluster(ctx context.Context, name string, patch func(backend string) any) error {
	for _, backend := range []string{history.Karmada, history.OCM} {
		raw, err := json.Marshal(patch(backend))
		if err != nil {
			return fmt.Errorf("encode a patch of cluster %s: %w", name, err)
		}
		err = s.clusters[servers[backend]].Patch(ctx, clusterObject(backend, name), client.RawPatch(types.MergePatchType, raw))
		if err != nil {
			return fmt.Errorf("change cluster %s on %s: %w", name, backend, err)
		}
	}
	return nil
}

func clusterObject(backend, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(clusterGVKs[backend])
	obj.SetName(name)
	return obj
}

func (s *soak) label(ctx context.Context, a history.Action) error {
	if !s.judge.facts()[a.Cluster].Joined {
		return nil
	}
	return s.setLabel(ctx, a.Cluster, a.Workload, a.Fact.Labels[a.Workload])
}

// setLabel gives or takes the label by which a workload chooses a cluster.
func (s *soak) setLabel(ctx context.Context, cluster string, k history.Key, on bool) error {
	labels := map[string]any{manifest.LabelKey(k): nil}
	if on {
		labels[manifest.LabelKey(k)] = "on"
	}
	return s.patchCluster(ctx, cluster, func(string) any {
		return map[string]any{"metadata": map[string]any{"labels": labels}}
	})
}

func (s *soak) taint(ctx context.Context, a history.Action) error {
	added := time.Now().UTC().Format(time.RFC3339)
	return s.patchCluster(ctx, a.Cluster, func(backend string) any {
		taint := map[string]any{"key": taintKey, "effect": effects[a.Mode][backend], "timeAdded": added}
		return map[string]any{"spec": map[string]any{"taints": []any{taint}}}
	})
}

func (s *soak) untaint(ctx context.Context, a history.Action) error {
	return s.patchCluster(ctx, a.Cluster, func(string) any { return map[string]any{"spec": map[string]any{"taints": nil}} })
}

// leave takes a cluster out of both backends, and waits until they are done with it. Each takes along what it has there:
// Karmada the namespaces too, so that what OCM runs in them goes as well.
func (s *soak) leave(ctx context.Context, a history.Action) error {
	left := ""
	for _, backend := range []string{history.OCM, history.Karmada} {
		err := s.clusters[servers[backend]].Delete(ctx, clusterObject(backend, a.Cluster))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take cluster %s out of %s: %w", a.Cluster, backend, err)
		}
		if err == nil {
			left += " " + backend
		}
	}
	if left != "" {
		return fmt.Errorf("cluster %s is still known to%s", a.Cluster, left)
	}
	return nil
}

// wipe takes from a cluster that has left what is still there, as whoever gives it to somebody else would.
func (s *soak) wipe(ctx context.Context, a history.Action) error {
	left := ""
	for _, name := range namespaces() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		err := s.clusters[a.Cluster].Delete(ctx, ns)
		// One that is on its way out answers with a conflict.
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete namespace %s on %s: %w", name, a.Cluster, err)
		}
		if !apierrors.IsNotFound(err) {
			left += " " + name
		}
	}
	if left != "" {
		return fmt.Errorf("namespaces are still on %s:%s", a.Cluster, left)
	}
	return nil
}

// join brings a cluster back into both backends.
func (s *soak) join(ctx context.Context, a history.Action) error {
	return s.fleet.ResumeMember(ctx, a.Cluster)
}
