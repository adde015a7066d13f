package karmada

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/backends"
)

func restarted(times ...int32) corev1.Pod {
	pod := corev1.Pod{}
	for _, n := range times {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{RestartCount: n})
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 10}}
	return pod
}

// TestRestarts asks a server that gives one pod a page, as Karmada's proxy gives what a member answers.
func TestRestarts(t *testing.T) {
	pages := map[string]corev1.PodList{
		"": {ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{restarted(1, 2)}}, "more": {Items: []corev1.Pod{restarted(4)}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != clustersPath+"/m1/proxy/api/v1/namespaces/shop/pods" || r.URL.Query().Get("labelSelector") != "app=web" {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
			return
		}
		page := pages[r.URL.Query().Get("continue")]
		page.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	reader, err := newPodReader(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	d, pods := &Driver{pods: reader}, labels.SelectorFromSet(labels.Set{"app": "web"})
	if n, err := d.Restarts(t.Context(), "m1", "shop", pods); err != nil || n == nil || *n != 27 {
		t.Errorf("got %v, %v", n, err)
	}
	_, err = d.Restarts(t.Context(), "m2", "shop", pods)
	if e := (*backends.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "list pods of cluster m2") {
		t.Errorf("a refusal is %v", err)
	}
	if n, err := (&Driver{}).Restarts(t.Context(), "m1", "shop", pods); n != nil || err != nil {
		t.Errorf("a driver that is not to look tells %v, %v", n, err)
	}
}
