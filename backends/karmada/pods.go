package karmada

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	// podsPage is how many pods a request asks for.
	podsPage = 500
	// podsTimeout is how long a member has to answer for one page.
	podsTimeout = 5 * time.Second
	// clustersPath leads to Karmada's clusters; CLUSTER/proxy below it is the member's API server, as whom the caller is
	// there (pkg/registry/cluster/storage/proxy.go of Karmada).
	clustersPath = "/apis/cluster.karmada.io/v1alpha1/clusters"
)

// podReader lists pods of members.
type podReader struct{ api rest.Interface }

func newPodReader(cfg *rest.Config, httpClient *http.Client) (*podReader, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	return &podReader{api: api}, nil
}

// Restarts counts restarts of containers, those of init containers too: sidecars may be among them.
func (d *Driver) Restarts(ctx context.Context, cluster, namespace string, pods labels.Selector) (*int32, error) {
	if d.pods == nil {
		return nil, nil
	}
	var sum int32
	opts := metav1.ListOptions{LabelSelector: pods.String(), Limit: podsPage}
	for {
		page, err := d.pods.list(ctx, cluster, namespace, opts)
		if err != nil {
			return nil, backends.Classify("list pods of cluster "+cluster, err)
		}
		for i := range page.Items {
			status := &page.Items[i].Status
			for _, containers := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
				for _, c := range containers {
					sum += c.RestartCount
				}
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return &sum, nil
		}
	}
}

func (r *podReader) list(ctx context.Context, cluster, namespace string, opts metav1.ListOptions) (*corev1.PodList, error) {
	page := &corev1.PodList{}
	err := r.api.Get().AbsPath(clustersPath, cluster, "proxy", "api", "v1", "namespaces", namespace, "pods").
		VersionedParams(&opts, scheme.ParameterCodec).Timeout(podsTimeout).Do(ctx).Into(page)
	return page, err
}
