//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"
	externalmetrics "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// The HorizontalPodAutoscaler of the management cluster scales FleetWorkloads by an external metric, of which one unit of
// spec.replicas is to bear 10: a pod of the fleet when replicas are divided, a pod on each cluster when they are not.
var _ = Describe("A HorizontalPodAutoscaler", Label("ocm", "karmada"), Ordered, func() {
	var (
		all   []*v1alpha1.FleetWorkload
		queue *metricServer
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace := newNamespace(ctx, "scaled")
		queue = serveMetric(ctx, hub(), externalmetrics.SchemeGroupVersion, 20)
		for _, backend := range backends {
			for name, division := range map[string]*v1alpha1.Division{"total": divided(), "each": nil} {
				fw := workload(namespace, name+"-"+backend, backend, kinds[0], 1)
				fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(world.members[:2]...), division
				all = append(all, create(ctx, fw))
				Expect(hub().Create(ctx, autoscaler(fw, 10))).To(Succeed())
			}
		}
	})

	for _, load := range []int64{20, 60, 30} {
		It("settles at a load of "+strconv.FormatInt(load, 10), func(ctx SpecContext) {
			queue.load.Store(load)
			for _, fw := range all {
				settles(ctx, fw, int32(load/10))
			}
			generations := map[string]int64{}
			for _, fw := range all {
				generations[fw.Name] = fw.Generation
			}
			// Each asks once in every period.
			asked := queue.asked.Load()
			Eventually(ctx, queue.asked.Load).WithTimeout(readyTimeout).Should(BeNumerically(">=", asked+int64(4*len(all))))
			for _, fw := range all {
				refresh(ctx, fw)
				Expect(fw.Generation).To(Equal(generations[fw.Name]), fw.Name+" is scaled again")
			}
		})
	}

	// As KEDA does it, which leaves all numbers from 1 on to a HorizontalPodAutoscaler.
	It("leaves a workload alone that somebody takes to zero, until it is taken back", func(ctx SpecContext) {
		for _, fw := range all {
			writeScale(ctx, fw, 0)
		}
		for _, fw := range all {
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				g.Expect(isReady(fw)).To(BeTrue())
				g.Expect(fw.Status.Replicas).To(HaveValue(BeZero()))
				g.Expect(scalingActive(ctx, fw)).To(HaveField("Reason", "ScalingDisabled"))
			})
			for _, name := range world.members[:2] {
				Expect(podsOf(ctx, fw, name)).To(BeEmpty())
				obj, err := object(ctx, member(name), kinds[0], client.ObjectKeyFromObject(fw))
				Expect(err).NotTo(HaveOccurred())
				Expect(obj).NotTo(BeNil(), fw.Name+" is gone from "+name)
			}
			Expect(fw.Spec.Replicas).To(HaveValue(BeZero()))
		}
		queue.load.Store(50)
		for _, fw := range all {
			writeScale(ctx, fw, 1)
		}
		for _, fw := range all {
			settles(ctx, fw, 5)
		}
	})
})

// settles waits until a FleetWorkload has so many replicas, and its autoscaler is content with them.
func settles(ctx context.Context, fw *v1alpha1.FleetWorkload, want int32) {
	GinkgoHelper()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	said := func() (text string) {
		for _, c := range hpa.Status.Conditions {
			text += fmt.Sprintf("%s=%s %s: %s; ", c.Type, c.Status, c.Reason, c.Message)
		}
		return text
	}
	eventually(ctx, fw, readyTimeout, func(g Gomega) {
		g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), hpa)).To(Succeed())
		g.Expect(fw.Spec.Replicas).To(HaveValue(Equal(want)), said)
		g.Expect(isReady(fw)).To(BeTrue())
		g.Expect(fw.Status.Replicas).To(HaveValue(Equal(want * units(fw))))
		g.Expect(hpa.Status.CurrentReplicas).To(Equal(want), said)
		g.Expect(hpa.Status.DesiredReplicas).To(Equal(want), said)
	})
}

// scalingActive is the condition that says whether an autoscaler does anything.
func scalingActive(ctx context.Context, fw *v1alpha1.FleetWorkload) (autoscalingv2.HorizontalPodAutoscalerCondition, error) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	err := hub().Get(ctx, client.ObjectKeyFromObject(fw), hpa)
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive {
			return c, err
		}
	}
	return autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionUnknown}, err
}

// writeScale reads and writes the scale with the client of the Kubernetes project, which finds by discovery what a scale is: KEDA and
// schedulers of replicas use it.
func writeScale(ctx context.Context, fw *v1alpha1.FleetWorkload, replicas int32) {
	GinkgoHelper()
	scales, err := scale.NewForConfig(hub().rest, hub().RESTMapper(), dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(hub().discovery))
	Expect(err).NotTo(HaveOccurred())
	fleetWorkloads := v1alpha1.GroupVersion.WithResource("fleetworkloads").GroupResource()
	// A status written in between is a conflict.
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := scales.Scales(fw.Namespace).Get(ctx, fleetWorkloads, fw.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec.Replicas = replicas
		_, err = scales.Scales(fw.Namespace).Update(ctx, fleetWorkloads, now, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// units is how many pods one of spec.replicas is.
func units(fw *v1alpha1.FleetWorkload) int32 {
	if fw.Spec.Placement.Division != nil {
		return 1
	}
	return 2
}

// autoscaler scales a FleetWorkload so that one replica bears some of the load, at once in both directions.
func autoscaler(fw *v1alpha1.FleetWorkload, each int64) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: fw.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "FleetWorkload", Name: fw.Name,
			},
			MinReplicas: ptr[int32](1), MaxReplicas: 12,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ExternalMetricSourceType,
				External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(each, resource.DecimalSI)},
				},
			}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr[int32](0)},
			},
		},
	}
}
