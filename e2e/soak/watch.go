// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
	"github.com/fleetworkload/fleetworkload/e2e/soak/oracle"
)

var podGVK = corev1.SchemeGroupVersion.WithKind("Pod")

// watch follows pods and member objects in all members until ctx ends.
func (j *judge) watch(ctx context.Context, s *soak) {
	for _, member := range choice.Facts().Names() {
		for _, gvk := range append(workloadGVKs(), podGVK) {
			e := &eye{judge: j, cluster: s.clusters[member], gvk: gvk, seen: map[string]history.Key{}, contact: time.Now()}
			go e.follow(ctx)
		}
	}
	go s.followStatuses(ctx)
}

func workloadGVKs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		manifest.GVKs[history.CloneSet], manifest.GVKs[history.Deployment], manifest.GVKs[history.AdvancedStatefulSet],
	}
}

// eye watches one type in one member.
type eye struct {
	judge   *judge
	cluster *cluster
	gvk     schema.GroupVersionKind
	// seen are the objects that are there, by UID.
	seen map[string]history.Key
	// contact is when the member last told us anything, or broke off.
	contact time.Time
}

// follow sees every event. An API server that was started again does not tell what happened before: then what is there
// tells.
func (e *eye) follow(ctx context.Context) {
	for ctx.Err() == nil {
		watcher, err := e.look(ctx)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
			continue
		}
		for event := range watcher.ResultChan() {
			obj, is := event.Object.(*unstructured.Unstructured)
			if !is || event.Type == watch.Error {
				break // such as that it is too late to begin there
			}
			e.contact = time.Now()
			if e.see(obj, event.Type == watch.Deleted, e.contact); event.Type == watch.Deleted {
				delete(e.seen, string(obj.GetUID()))
			}
		}
		watcher.Stop()
		e.contact = time.Now()
	}
}

// look compares with what is there, and watches from then on.
func (e *eye) look(ctx context.Context) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(e.gvk.GroupVersion().WithKind(e.gvk.Kind + "List"))
	limited, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	if err := e.cluster.List(limited, list); err != nil {
		return nil, fmt.Errorf("list %s of %s: %w", e.gvk.Kind, e.cluster.name, err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[string(list.Items[i].GetUID())] = true
	}
	for uid, k := range e.seen {
		if !there[uid] {
			e.gone(k, uid, e.contact)
			delete(e.seen, uid)
		}
	}
	for i := range list.Items {
		e.see(&list.Items[i], false, e.contact)
	}
	e.contact = time.Now()
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watcher, err := e.cluster.Watch(ctx, list, from)
	if err != nil {
		return nil, fmt.Errorf("watch %s of %s: %w", e.gvk.Kind, e.cluster.name, err)
	}
	return watcher, nil
}

// see hands on what an object is, or that it is gone, with since when that may be.
func (e *eye) see(obj *unstructured.Unstructured, deleted bool, since time.Time) {
	k, ours := e.keyOf(obj)
	if !ours {
		return
	}
	uid := string(obj.GetUID())
	e.seen[uid] = k
	if deleted {
		e.gone(k, uid, since)
		return
	}
	e.judge.with(func(o *oracle.Oracle) {
		e.judge.events++
		span := oracle.Span{From: since, To: time.Now()}
		if e.gvk == podGVK {
			e.judge.pods[uid] = true
			o.SeePod(e.cluster.name, k, podOf(obj), span)
			return
		}
		replicas, pods, whole, err := manifest.Object(obj)
		if err != nil {
			e.judge.out.fail("%s: %v", e.cluster.name, err)
			return
		}
		o.SeeObject(e.cluster.name, k, oracle.Object{
			UID: uid, Replicas: replicas, Pods: pods, Whole: whole, Terminating: obj.GetDeletionTimestamp() != nil,
		}, span)
	})
}

func (e *eye) gone(k history.Key, uid string, since time.Time) {
	e.judge.with(func(o *oracle.Oracle) {
		e.judge.events++
		span := oracle.Span{From: since, To: time.Now()}
		if e.gvk == podGVK {
			o.PodGone(e.cluster.name, k, uid, span)
			return
		}
		o.ObjectGone(e.cluster.name, k, uid, span)
	})
}

// keyOf is the workload that an object is, or a pod belongs to.
func (e *eye) keyOf(obj *unstructured.Unstructured) (history.Key, bool) {
	k := history.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if e.gvk == podGVK {
		k.Name = obj.GetLabels()["app"]
	}
	return k, slices.Contains(choice.Keys(), k)
}

// podOf reads what matters of a pod.
func podOf(obj *unstructured.Unstructured) oracle.Pod {
	p := oracle.Pod{Name: obj.GetName(), UID: string(obj.GetUID()), Terminating: obj.GetDeletionTimestamp() != nil}
	// Those of a Deployment are a ReplicaSet's.
	if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind != "ReplicaSet" {
		p.Owner = string(owner.UID)
	}
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "containers")
	for _, c := range containers {
		p.Pods = manifest.Container(c)
	}
	statuses, _, _ := unstructured.NestedSlice(obj.Object, "status", "containerStatuses")
	for _, c := range statuses {
		fields, _ := c.(map[string]any)
		n, _, _ := unstructured.NestedInt64(fields, "restartCount")
		p.Restarts += int(n)
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		if fields["type"] == string(corev1.PodReady) {
			p.Ready = fields["status"] == string(corev1.ConditionTrue)
		}
	}
	return p
}

// short is a list for a message.
func short(all []string) string {
	const most = 6
	if len(all) > most {
		return strings.Join(all[:most], "; ") + fmt.Sprintf("; and %d more", len(all)-most)
	}
	return strings.Join(all, "; ")
}
