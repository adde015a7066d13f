//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// entryFacts names the part of a failed spec's report that tells how things are on the members: a member that does not do its part,
// or a backend that does not tell, looks like an operator that is wrong.
const entryFacts = "on the members"

func facts(ctx context.Context) string {
	return strings.Join(append(unhealthyObjects(ctx), unreadyPods(ctx)...), "; ")
}

// unhealthyObjects tells of the FleetWorkloads in the failure's message, for the first rows that are not healthy, what the member's
// object and Karmada's Work say themselves.
func unhealthyObjects(ctx context.Context) []string {
	var all v1alpha1.FleetWorkloadList
	if err := hub().List(ctx, &all); err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for i := range all.Items {
		fw := &all.Items[i]
		if !strings.Contains(CurrentSpecReport().FailureMessage(), fw.Namespace+"/"+fw.Name+" ") {
			continue
		}
		for _, row := range fw.Status.Clusters {
			if row.Health != v1alpha1.HealthHealthy && member(row.Name) != nil {
				lines = append(lines, statusesOf(ctx, fw, row.Name))
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
