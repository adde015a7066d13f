//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	custommetrics "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalmetrics "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// The same load scales Deployments on Karmada by its own FederatedHPA, and a FleetWorkload by a HorizontalPodAutoscaler. A pod is to bear
// 10. FederatedHPA takes no external metrics; with duplicated replicas it comes to other numbers by an Object metric than by one of Pods
// (docs/autoscaling.md).
var _ = Describe("Beside Karmada's FederatedHPA", Label("karmada"), Ordered, func() {
	const each = 10
	loads := []int64{20, 60, 30}
	// Two clusters that have as many as each other cannot have three.
	divides, duplicates := []int{2, 6, 3}, []int{2, 6, 4}
	theirs := []federated{
		{name: "divided-pods", divided: true, pods: divides},
		{name: "divided-object", divided: true, object: true, pods: divides},
		{name: "duplicated-pods", pods: duplicates},
		// Too few: each pod of the last two bears 15.
		{name: "duplicated-object", object: true, pods: []int{2, 4, 2}},
	}
	var (
		namespace            string
		ours                 []*v1alpha1.FleetWorkload
		ourQueue, theirQueue *metricServer
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace = newNamespace(ctx, "beside")
		karmada := world.clusters[lab.Karmada]
		ensureNamespace(ctx, karmada, namespace)
		ourQueue = serveMetric(ctx, hub(), externalmetrics.SchemeGroupVersion, loads[0])
		theirQueue = serveMetric(ctx, karmada, custommetrics.SchemeGroupVersion, loads[0])
		for _, f := range theirs {
			for _, obj := range f.objects(namespace, each) {
				Expect(karmada.Create(ctx, obj)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(karmada.Delete(ctx, obj))).To(Succeed()) })
			}
		}
		for name, division := range map[string]*v1alpha1.Division{"total": divided(), "each": nil} {
			fw := workload(namespace, name, "karmada", deployment, 1)
			fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(world.members[:2]...), division
			ours = append(ours, create(ctx, fw))
			// One replica is so many pods, and bears what they bear.
			Expect(hub().Create(ctx, autoscaler(fw, each*int64(units(fw))))).To(Succeed())
		}
	})

	for i, load := range loads {
		It(fmt.Sprintf("has as many pods at a load of %d", load), func(ctx SpecContext) {
			ourQueue.load.Store(load)
			theirQueue.load.Store(load)
			for _, fw := range ours {
				pods := duplicates
				if fw.Spec.Placement.Division != nil {
					pods = divides
				}
				settles(ctx, fw, int32(pods[i])/units(fw))
			}
			for _, f := range theirs {
				f.settles(ctx, namespace, f.pods[i])
			}
			// They ask once in every period, and have settled only if they stay.
			asked := theirQueue.asked.Load()
			Eventually(ctx, theirQueue.asked.Load).WithTimeout(readyTimeout).Should(BeNumerically(">=", asked+int64(3*len(theirs))))
			for _, f := range theirs {
				f.settles(ctx, namespace, f.pods[i])
			}
		})
	}
})

// federated is a Deployment with a FederatedHPA, and the pods that it comes to at each load.
type federated struct {
	name            string
	divided, object bool
	pods            []int
}

func (f federated) perReplica() int {
	if f.divided {
		return 1
	}
	return 2
}

func (f federated) objects(namespace string, each int64) []*unstructured.Unstructured {
	GinkgoHelper()
	var workload map[string]any
	Expect(json.Unmarshal(template(deployment, f.name, imageOld).Raw, &workload)).To(Succeed())
	Expect(unstructured.SetNestedField(workload, int64(1), "spec", "replicas")).To(Succeed())
	ref := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": f.name}
	placement := map[string]any{"clusterAffinity": map[string]any{"clusterNames": []any{world.members[0], world.members[1]}}}
	if f.divided {
		placement["replicaScheduling"] = map[string]any{"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
	}
	target := map[string]any{"type": "AverageValue", "averageValue": fmt.Sprint(each)}
	metric := map[string]any{"type": "Pods", "pods": map[string]any{"metric": map[string]any{"name": "queue"}, "target": target}}
	if f.object {
		metric = map[string]any{"type": "Object", "object": map[string]any{
			"metric": map[string]any{"name": "queue"}, "target": target, "describedObject": ref,
		}}
	}
	objects := []map[string]any{
		{
			"apiVersion": "autoscaling.karmada.io/v1alpha1", "kind": "FederatedHPA",
			"spec": map[string]any{
				"scaleTargetRef": ref, "minReplicas": int64(1), "maxReplicas": int64(12), "metrics": []any{metric},
				"behavior": map[string]any{"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(0)}},
			},
		},
		{
			"apiVersion": policyGVK.GroupVersion().String(), "kind": policyGVK.Kind,
			"spec": map[string]any{"resourceSelectors": []any{ref}, "placement": placement},
		},
		workload,
	}
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		u := &unstructured.Unstructured{Object: obj}
		u.SetNamespace(namespace)
		u.SetName(f.name)
		out = append(out, u)
	}
	return out
}

// settles waits until so many pods are ready, and the FederatedHPA is content with them.
func (f federated) settles(ctx context.Context, namespace string, pods int) {
	GinkgoHelper()
	key := client.ObjectKey{Namespace: namespace, Name: f.name}
	hpa := &unstructured.Unstructured{}
	hpa.SetAPIVersion("autoscaling.karmada.io/v1alpha1")
	hpa.SetKind("FederatedHPA")
	Eventually(func(g Gomega) {
		g.Expect(world.clusters[lab.Karmada].Get(ctx, key, hpa)).To(Succeed())
		for _, field := range []string{"currentReplicas", "desiredReplicas"} {
			got, _, err := unstructured.NestedInt64(hpa.Object, "status", field)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeEquivalentTo(pods/f.perReplica()), field)
		}
		ready := 0
		for _, name := range world.members[:2] {
			there, err := podsNamed(ctx, namespace, f.name, name)
			g.Expect(err).NotTo(HaveOccurred())
			for i := range there {
				g.Expect(podReady(&there[i])).To(BeTrue())
			}
			ready += len(there)
		}
		g.Expect(ready).To(Equal(pods))
	}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed(), func() string { return f.name + ": " + fmt.Sprint(hpa.Object["status"]) })
}
