//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		queue = serveMetric(ctx, 20)
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
			want := int32(load / 10)
			for _, fw := range all {
				eventually(ctx, fw, readyTimeout, func(g Gomega) {
					g.Expect(fw.Spec.Replicas).To(HaveValue(Equal(want)))
					g.Expect(isReady(fw)).To(BeTrue())
					g.Expect(fw.Status.Replicas).To(HaveValue(Equal(want * units(fw))))
					hpa := &autoscalingv2.HorizontalPodAutoscaler{}
					g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), hpa)).To(Succeed())
					g.Expect(hpa.Status.CurrentReplicas).To(Equal(want))
					g.Expect(hpa.Status.DesiredReplicas).To(Equal(want))
				})
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
})

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

// metricServer is the external metrics API with one metric.
type metricServer struct {
	load, asked atomic.Int64
}

// serveMetric registers one with the management cluster.
func serveMetric(ctx context.Context, load int64) *metricServer {
	GinkgoHelper()
	m := &metricServer{}
	m.load.Store(load)
	server := httptest.NewTLSServer(m)
	DeferCleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.ParseInt(port, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	group := externalmetrics.SchemeGroupVersion
	for _, obj := range []map[string]any{
		{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "queue-metrics", "namespace": "default"},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
		},
		{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": group.Version + "." + group.Group},
			"spec": map[string]any{
				"group": group.Group, "version": group.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
				"insecureSkipTLSVerify": true,
				"service":               map[string]any{"name": "queue-metrics", "namespace": "default", "port": number},
			},
		},
	} {
		u := &unstructured.Unstructured{Object: obj}
		Expect(hub().Create(ctx, u)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, u))).To(Succeed()) })
	}
	return m
}

// ServeHTTP implements http.Handler.
func (m *metricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group := externalmetrics.SchemeGroupVersion
	var answer any = metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group.String(),
		APIResources: []metav1.APIResource{{Name: "queue", Namespaced: true, Kind: "ExternalMetricValueList", Verbs: metav1.Verbs{"get"}}},
	}
	if strings.Contains(r.URL.Path, "/namespaces/") {
		m.asked.Add(1)
		answer = externalmetrics.ExternalMetricValueList{
			TypeMeta: typeOf(group.WithKind("ExternalMetricValueList")),
			Items: []externalmetrics.ExternalMetricValue{{
				TypeMeta: typeOf(group.WithKind("ExternalMetricValue")), MetricName: "queue",
				Timestamp: metav1.Now(), Value: *resource.NewQuantity(m.load.Load(), resource.DecimalSI),
			}},
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func typeOf(gvk schema.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}
