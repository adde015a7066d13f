package refused

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetworkload/fleetworkload/backends"
)

func TestReadOf(t *testing.T) {
	for path, want := range map[string]string{
		"/apis/work.io/v1/manifestworks":                                  "list manifestworks.work.io",
		"/apis/work.io/v1/manifestworks?watch=true&resourceVersion=5":     "watch manifestworks.work.io",
		"/apis/work.io/v1/namespaces/m1/manifestworks?watch=1":            "watch manifestworks.work.io",
		"/proxy/of/a/hub/apis/work.io/v1/manifestworks":                   "list manifestworks.work.io",
		"/api/v1/namespaces":                                              "list namespaces",
		"/api/v1/namespaces/m1":                                           "",
		"/api/v1/namespaces/m1/secrets":                                   "list secrets",
		"/api/v1/namespaces/m1/secrets/s":                                 "",
		"/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/pods": "",
		"/apis/work.io/v1":                                                "",
		"/api":                                                            "",
		"/version":                                                        "",
		"/openapi/v3":                                                     "",
	} {
		one, is := readOf(httptest.NewRequest(http.MethodGet, path, nil))
		if got := strings.TrimSuffix(one.verb+" "+one.String(), "."); is != (want != "") || is && got != want {
			t.Errorf("%s: %q, %t, want %q", path, got, is, want)
		}
	}
}

// TestReads: what is refused is named until it is granted; what fails otherwise says nothing about rights.
func TestReads(t *testing.T) {
	const works, placements = "/apis/work.io/v1/manifestworks", "/apis/cluster.io/v1/placements"
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	reads := Reads{Clock: clock}
	told := 0
	reads.Notify(func() { told++ })
	status := 0
	client := reads.Client(&http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	})})
	for _, step := range []struct {
		method, path string
		status       int
		want         string
		told         int
	}{
		{http.MethodGet, works, 200, "", 0},
		{http.MethodGet, works + "?watch=true", 403, "", 0},
		{http.MethodGet, works + "?watch=true", 200, "", 0}, // it had just started
		{http.MethodGet, works + "?watch=true", 403, "", 0},
		{http.MethodGet, works + "?watch=true", 403, "", 0},
		{http.MethodGet, works + "?watch=true", 403, "watch manifestworks.work.io", 1},
		{http.MethodGet, works + "?watch=true", 403, "watch manifestworks.work.io", 1},
		{http.MethodGet, works, 200, "watch manifestworks.work.io", 1},
		{http.MethodGet, placements, 403, "watch manifestworks.work.io", 1},
		{http.MethodGet, placements, 500, "watch manifestworks.work.io", 1},
		{http.MethodGet, placements, 403, "list placements.cluster.io, watch manifestworks.work.io", 2},
		{http.MethodGet, works + "?watch=true", 500, "list placements.cluster.io, watch manifestworks.work.io", 2},
		{http.MethodPost, placements, 201, "list placements.cluster.io, watch manifestworks.work.io", 2},
		{http.MethodPost, works, 403, "list placements.cluster.io, watch manifestworks.work.io", 2},
		{http.MethodGet, works + "?watch=true", 200, "list placements.cluster.io", 3},
		{http.MethodGet, placements, 200, "", 4},
		// Neither was granted, and both are now: a list that is streamed is not asked for once more.
		{http.MethodGet, works, 403, "", 4},
		{http.MethodGet, works, 403, "", 4},
		{http.MethodGet, works, 403, "list manifestworks.work.io", 5},
		{http.MethodGet, works + "?watch=true", 200, "", 6},
	} {
		status = step.status
		clock.SetTime(clock.Now().Add(patience / 2))
		request := httptest.NewRequest(step.method, "http://hub"+step.path, nil)
		request.RequestURI = ""
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		got := reads.Err()
		if (got == nil) != (step.want == "") || got != nil && (!strings.Contains(got.Error(), step.want+":") || backends.CodeOf(got) != backends.CodeForbidden) || told != step.told {
			t.Errorf("after %s %s %d: %v, told %d times", step.method, step.path, step.status, got, told)
		}
		one := reads.Err(schema.GroupResource{Group: "work.io", Resource: "manifestworks"})
		if (one != nil) != strings.Contains(step.want, "manifestworks") {
			t.Errorf("after %s %s %d, of ManifestWorks alone: %v", step.method, step.path, step.status, one)
		}
	}
}
