package backends

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// CountWrites counts what is written through the configuration from now on. Requests that change nothing are left out: dry runs, and reviews
// that only ask.
func (m *Metrics) CountWrites(backend string, cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(req)
			if verb := writes(req); verb != "" {
				m.writes.WithLabelValues(backend, verb, answer(res)).Inc()
			}
			return res, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// writes is the verb of a request that changes something; empty of another.
func writes(req *http.Request) string {
	verb := map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[req.Method]
	asks := slices.ContainsFunc([]string{"/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"}, func(group string) bool {
		return strings.Contains(req.URL.Path, group)
	})
	if asks || req.URL.Query().Has("dryRun") {
		return ""
	}
	return verb
}

// answer is the status code, or error when there was no answer.
func answer(res *http.Response) string {
	if res == nil {
		return "error"
	}
	return strconv.Itoa(res.StatusCode)
}
