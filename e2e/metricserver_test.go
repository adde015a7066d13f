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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	custommetrics "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalmetrics "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metricServer is a metrics API with one metric: a load that is all there is to bear, or what each pod bears of it.
type metricServer struct {
	load, asked atomic.Int64
}

// serveMetric registers one with an API server.
func serveMetric(ctx context.Context, c *cluster, group schema.GroupVersion, load int64) *metricServer {
	GinkgoHelper()
	m := &metricServer{}
	m.load.Store(load)
	server := httptest.NewTLSServer(m)
	DeferCleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.ParseInt(port, 10, 64)
	Expect(err).NotTo(HaveOccurred())
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
		Expect(c.Create(ctx, u)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(c.Delete(ctx, u))).To(Succeed()) })
	}
	return m
}

// ServeHTTP implements http.Handler.
func (m *metricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := m.answer(r)
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		err = json.NewEncoder(w).Encode(answer)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// answer to a path such as /apis/GROUP/VERSION/namespaces/NAMESPACE/queue, or …/NAMESPACE/RESOURCE/NAME/queue.
func (m *metricServer) answer(r *http.Request) (any, error) {
	custom := strings.HasPrefix(r.URL.Path, "/apis/"+custommetrics.GroupName+"/")
	_, path, values := strings.Cut(r.URL.Path, "/namespaces/")
	if values {
		m.asked.Add(1)
	}
	switch parts := strings.Split(path, "/"); {
	case !values && custom:
		return resourceList(custommetrics.SchemeGroupVersion, "MetricValueList", "pods/queue", "deployments.apps/queue"), nil
	case !values:
		return resourceList(externalmetrics.SchemeGroupVersion, "ExternalMetricValueList", "queue"), nil
	case !custom:
		return m.external(), nil
	case parts[1] == "pods":
		return m.perPod(r.Context(), parts[0], r.URL.Query().Get("labelSelector"))
	default:
		return m.custom(1000*m.load.Load(), corev1.ObjectReference{Kind: "Deployment", Name: parts[2], Namespace: parts[0]}), nil
	}
}

func (m *metricServer) external() externalmetrics.ExternalMetricValueList {
	group := externalmetrics.SchemeGroupVersion
	return externalmetrics.ExternalMetricValueList{
		TypeMeta: typeOf(group.WithKind("ExternalMetricValueList")),
		Items: []externalmetrics.ExternalMetricValue{{
			TypeMeta: typeOf(group.WithKind("ExternalMetricValue")), MetricName: "queue",
			Timestamp: metav1.Now(), Value: *resource.NewQuantity(m.load.Load(), resource.DecimalSI),
		}},
	}
}

// perPod divides the load evenly between the pods of all members.
func (m *metricServer) perPod(ctx context.Context, namespace, selector string) (any, error) {
	matching, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var described []corev1.ObjectReference
	for _, name := range world.members {
		var pods corev1.PodList
		if err := member(name).List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: matching}); err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil {
				described = append(described, corev1.ObjectReference{Kind: "Pod", Name: pod.Name, Namespace: namespace})
			}
		}
	}
	return m.custom(1000*m.load.Load()/max(1, int64(len(described))), described...), nil
}

// custom has the same value, in thousandths, for each object.
func (m *metricServer) custom(value int64, described ...corev1.ObjectReference) custommetrics.MetricValueList {
	list := custommetrics.MetricValueList{TypeMeta: typeOf(custommetrics.SchemeGroupVersion.WithKind("MetricValueList"))}
	for _, d := range described {
		list.Items = append(list.Items, custommetrics.MetricValue{
			DescribedObject: d, Metric: custommetrics.MetricIdentifier{Name: "queue"},
			Timestamp: metav1.Now(), Value: *resource.NewMilliQuantity(value, resource.DecimalSI),
		})
	}
	return list
}

func resourceList(group schema.GroupVersion, kind string, names ...string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group.String()}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: true, Kind: kind, Verbs: metav1.Verbs{"get"}})
	}
	return list
}

func typeOf(gvk schema.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}
