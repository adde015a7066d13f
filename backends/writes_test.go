package backends

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
)

func TestWritesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{}
	metrics.CountWrites("ocm", cfg)
	transport := cfg.WrapTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/lost" {
			return nil, errors.New("lost")
		}
		return &http.Response{StatusCode: http.StatusConflict, Body: http.NoBody}, nil
	}))
	for _, request := range [][2]string{
		{http.MethodGet, "/api/v1/pods"}, {http.MethodPost, "/api/v1/pods?dryRun=All"}, {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		{http.MethodPost, "/api/v1/pods"}, {http.MethodPatch, "/api/v1/pods/a"}, {http.MethodPatch, "/api/v1/pods/b"}, {http.MethodDelete, "/lost"},
	} {
		res, err := transport.RoundTrip(httptest.NewRequest(request[0], request[1], nil))
		if err == nil {
			_ = res.Body.Close()
		}
	}
	want := map[[3]string]float64{{"ocm", "create", "409"}: 1, {"ocm", "patch", "409"}: 2, {"ocm", "delete", "error"}: 1}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		key := [3]string{value(m, "backend"), value(m, "verb"), value(m, "code")}
		if m.GetCounter().GetValue() != want[key] {
			t.Errorf("%v is counted %v times", key, m.GetCounter().GetValue())
		}
		delete(want, key)
	}
	if families[0].GetName() != "fleetworkload_backend_writes_total" || len(want) > 0 {
		t.Errorf("not counted in %s: %v", families[0].GetName(), want)
	}
}

func value(m *dto.Metric, label string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == label {
			return pair.GetValue()
		}
	}
	return ""
}
