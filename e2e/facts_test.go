//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// entryFacts names the part of a failed spec's report that tells how things are elsewhere: a member that does not do its part, or a
// backend that does not tell, looks like an operator that is wrong.
const entryFacts = "at that time"

func facts(ctx context.Context) string {
	return strings.Join(slices.Concat(operatorsAtWork(ctx), carriedBy(ctx), unhealthyObjects(ctx), unreadyPods(ctx)), "; ")
}

// operatorsAtWork tells what the operators are busy with, and of the FleetWorkloads in the failure's message when they were written last
// and what was said of them last.
func operatorsAtWork(ctx context.Context) []string {
	lines := []string{"it is " + time.Now().UTC().Format(time.TimeOnly)}
	for _, o := range operators() {
		lines = append(lines, o.doing())
	}
	for _, fw := range inFailure(ctx) {
		line := fmt.Sprintf("%s/%s is at resource version %s", fw.Namespace, fw.Name, fw.ResourceVersion)
		for _, entry := range fw.ManagedFields {
			line += fmt.Sprintf(", %s %s at %s", entry.Manager, entry.Subresource, entry.Time.UTC().Format(time.TimeOnly))
		}
		lines = append(lines, line)
		for _, o := range operators() {
			lines = append(lines, o.saidOf(fw)...)
		}
	}
	return lines
}

// inFailure are the FleetWorkloads in the failure's message.
func inFailure(ctx context.Context) []v1alpha1.FleetWorkload {
	var all v1alpha1.FleetWorkloadList
	if err := hub().List(ctx, &all); err != nil {
		return nil
	}
	return slices.DeleteFunc(all.Items, func(fw v1alpha1.FleetWorkload) bool {
		return !strings.Contains(CurrentSpecReport().FailureMessage(), fw.Namespace+"/"+fw.Name+" ")
	})
}

// carriedBy tells what the backends have of the FleetWorkloads in the failure's message: a deletion waits until they have nothing.
func carriedBy(ctx context.Context) []string {
	var lines []string
	all := inFailure(ctx)
	for cluster, kind := range map[string]schema.GroupVersionKind{
		lab.Karmada: {Group: "work.karmada.io", Version: "v1alpha1", Kind: "WorkList"},
		lab.Hub:     {Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWorkList"},
	} {
		works := &unstructured.UnstructuredList{}
		works.SetGroupVersionKind(kind)
		if err := world.clusters[cluster].List(ctx, works); err != nil {
			lines = append(lines, kind.Kind+": "+err.Error())
			continue
		}
		for _, w := range works.Items {
			raw, _ := json.Marshal(w.Object)
			if slices.ContainsFunc(all, func(fw v1alpha1.FleetWorkload) bool { return strings.Contains(string(raw), identity(&fw)) }) {
				delete(w.Object["spec"].(map[string]any), "workload")
				spec, _ := json.Marshal(w.Object["spec"])
				conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
				lines = append(lines, fmt.Sprintf("%s %s/%s, deleted %s, finalizers %v, labels %v, spec %.300s, conditions %v", w.GetKind(), w.GetNamespace(),
					w.GetName(), w.GetDeletionTimestamp(), w.GetFinalizers(), w.GetLabels(), spec, conditions))
			}
		}
	}
	const most = 4
	return lines[:min(len(lines), most)]
}

// unhealthyObjects tells of the FleetWorkloads in the failure's message, for the first rows that are not healthy, what the member's
// object and Karmada's Work say themselves.
func unhealthyObjects(ctx context.Context) []string {
	var lines []string
	for _, fw := range inFailure(ctx) {
		for _, row := range fw.Status.Clusters {
			if row.Health != v1alpha1.HealthHealthy && member(row.Name) != nil {
				lines = append(lines, statusesOf(ctx, &fw, row.Name))
			}
		}
	}
	const most = 3
	return lines[:min(len(lines), most)]
}

func statusesOf(ctx context.Context, fw *v1alpha1.FleetWorkload, cluster string) string {
	var obj unstructured.Unstructured
	if err := json.Unmarshal(fw.Spec.Template.Raw, &obj.Object); err != nil {
		return err.Error()
	}
	err := member(cluster).Get(ctx, client.ObjectKeyFromObject(fw), &obj)
	own, _, _ := unstructured.NestedMap(obj.Object, "status")
	raw, _ := json.Marshal(own)
	line := fmt.Sprintf("%s/%s on %s generation %d status %s %v", fw.Namespace, fw.Name, cluster, obj.GetGeneration(), raw, err)
	if fw.Spec.Backend != "karmada" {
		return line
	}
	works := &unstructured.UnstructuredList{}
	works.SetAPIVersion("work.karmada.io/v1alpha1")
	works.SetKind("WorkList")
	if err := world.clusters[lab.Karmada].List(ctx, works, client.InNamespace("karmada-es-"+cluster)); err != nil {
		return line + ", Works: " + err.Error()
	}
	for _, work := range works.Items {
		if a := work.GetAnnotations(); a["resourcebinding.karmada.io/namespace"] == fw.Namespace && strings.HasPrefix(a["resourcebinding.karmada.io/name"], fw.Name+"-") {
			reported, _, _ := unstructured.NestedSlice(work.Object, "status", "manifestStatuses")
			raw, _ := json.Marshal(reported)
			line += fmt.Sprintf(", its Work %s", raw)
		}
	}
	return line
}

// unreadyPods lists the pods on members that are neither ready nor finished, and why.
func unreadyPods(ctx context.Context) []string {
	var lines []string
	for _, name := range world.members {
		var pods corev1.PodList
		if err := member(name).List(ctx, &pods); err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		for i := range pods.Items {
			if line := unready(&pods.Items[i]); line != "" {
				lines = append(lines, name+": "+line)
			}
		}
	}
	const most = 5
	return lines[:min(len(lines), most)]
}

// unready says what a pod is that is neither ready nor finished, and is empty for any other.
func unready(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	why := ""
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
			return ""
		}
		if c.Status == corev1.ConditionFalse {
			why += fmt.Sprintf(" %s=False %s", c.Type, c.Message)
		}
	}
	return fmt.Sprintf("%s/%s %s on %q, deleted %s,%s", pod.Namespace, pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.DeletionTimestamp, why)
}
