package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is an API server of sorts, behind a proxy.
type server struct {
	proxy   *Proxy
	journal *Journal
	client  *http.Client
	writes  atomic.Int32
}

func start(t *testing.T) *server {
	t.Helper()
	s := &server{journal: &Journal{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /whoami", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	mux.HandleFunc("GET /watch", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "event %d\n", i)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"groups":[{"name":"apps"},{"name":"apps.kruise.io"}]}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.writes.Add(1)
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprint(w, "done")
	})
	back := httptest.NewTLSServer(mux)
	t.Cleanup(back.Close)
	cfg := &rest.Config{Host: back.URL, BearerToken: "admin", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	var err error
	if s.proxy, err = New("hub", cfg, s.journal); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.proxy.Close() })
	client, err := clientcmd.NewDefaultClientConfig(s.proxy.Kubeconfig("mine"), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if s.client, err = rest.HTTPClientFor(client); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) do(ctx context.Context, method, path string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.proxy.URL()+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

func TestForwardsWithTheClientsTokenAndCounts(t *testing.T) {
	s := start(t)
	if _, body, err := s.do(t.Context(), "GET", "/whoami"); err != nil || body != "Bearer mine" {
		t.Errorf("the server saw %q (%v)", body, err)
	}
	if status, body, err := s.do(t.Context(), "PATCH", "/apis/x/widgets/a"); err != nil || status != 201 || body != "done" {
		t.Errorf("got %d %q (%v)", status, body, err)
	}
	if _, _, err := s.do(t.Context(), "POST", "/apis/coordination.k8s.io/v1/namespaces/a/leases"); err != nil {
		t.Error(err)
	}
	want := "  1 hub PATCH /apis/x/widgets/a -> 201"
	if got := Describe(s.journal.Entries()); got != want {
		t.Errorf("journal is\n%s\nwant\n%s", got, want)
	}
	s.journal.Reset()
	if got := s.journal.Entries(); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
}

func TestMutates(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /a": false, "PATCH /a": true, "DELETE /a": true, "PUT /a": true, "POST /a": true,
		"POST /a?dryRun=All": false, "POST /api/v1/namespaces/x/events": false, "PATCH /apis/x/subjectaccessreviews": false,
		"PATCH /apis/x/namespaces/y/events-log/z": true,
	} {
		method, path, _ := strings.Cut(request, " ")
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := Mutates(method, u); got != want {
			t.Errorf("%s: got %v", request, got)
		}
	}
}

// TestConcerns: what stands for a workload lies in other namespaces than it does.
func TestConcerns(t *testing.T) {
	const ocm, karmada = "/apis/work.open-cluster-management.io/v1/namespaces/member1/", "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/"
	for request, want := range map[string]bool{
		"PATCH /apis/apps.fleetworkload.io/v1alpha1/namespaces/e2e-gitops-x7k2p/fleetworkloads/web/status": true,
		"PUT /apis/policy.karmada.io/v1alpha1/namespaces/e2e-gitops-x7k2p/overridepolicies/web":            true,
		"POST /apis/policy.karmada.io/v1alpha1/namespaces/e2e-gitops-x7k2p/propagationpolicies":            true,
		"PATCH /apis/policy.karmada.io/v1alpha1/namespaces/e2e-other-9k2lm/propagationpolicies/web":        false,
		"PATCH " + ocm + "manifestworks/e2e-gitops-x7k2p-web-0a1b2c3d4e":                                   true,
		"DELETE " + ocm + "manifestworks/e2e-gitops-x7k2p-web-0a1b2c3d4e":                                  true,
		"PATCH " + ocm + "manifestworks/fwc-e2e-gitops-x7k2p-configmap-settings-0a1b2c3d4e":                true,
		"PATCH " + ocm + "manifestworks/fleetworkload-ns-e2e-gitops-x7k2p":                                 true,
		"PATCH " + ocm + "manifestworks/e2e-other-9k2lm-web-0a1b2c3d4e":                                    false,
		"POST " + ocm + "manifestworks":                                                                    true,
		"PUT " + karmada + "works/web-6d4f8b9c5":                                                           true,
		"PATCH " + karmada + "works/web-6d4f8b9c5/status":                                                  true,
		"PATCH " + karmada + "works/other-6d4f8b9c5":                                                       false,
		"PATCH " + karmada + "works/web-app-6d4f8b9c5":                                                     false,
		"POST " + karmada + "works":                                                                        true,
		"POST /apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies":                                 false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := (Entry{Method: method, Path: path}).Concerns("e2e-gitops-x7k2p", "web"); got != want {
			t.Errorf("%s: got %v", request, got)
		}
	}
}

func TestStreamsPassAndEndWhenRefused(t *testing.T) {
	s := start(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.proxy.URL()+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("event %d\n", i) {
			t.Fatalf("got %q (%v)", line, err)
		}
	}
	s.proxy.Set(Refuse)
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("the stream goes on")
	}
	if _, _, err := s.do(t.Context(), "GET", "/whoami"); err == nil {
		t.Error("a request got through")
	}
	s.proxy.Set(Forward)
	if _, _, err := s.do(t.Context(), "GET", "/whoami"); err != nil {
		t.Error(err)
	}
}

func TestBlackhole(t *testing.T) {
	s := start(t)
	if _, _, err := s.do(t.Context(), "GET", "/whoami"); err != nil {
		t.Fatal(err)
	}
	s.proxy.Set(Blackhole)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.do(ctx, "POST", "/a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if n := s.writes.Load(); n != 0 {
		t.Error("a write got through")
	}
	s.proxy.Set(Forward)
	if _, _, err := s.do(t.Context(), "GET", "/whoami"); err != nil {
		t.Error(err)
	}
}

func TestAnswersInTheServersPlace(t *testing.T) {
	s := start(t)
	for mode, want := range map[Mode]int{TooManyRequests: 429, Unauthorized: 401} {
		s.proxy.Set(mode)
		if status, _, err := s.do(t.Context(), "POST", "/a"); err != nil || status != want {
			t.Errorf("got %d (%v), want %d", status, err, want)
		}
	}
	if n := s.writes.Load(); n != 0 {
		t.Error("a write got through")
	}
}

func TestHiddenGroups(t *testing.T) {
	s := start(t)
	s.proxy.HideGroups("apps.kruise.io")
	if _, body, err := s.do(t.Context(), "GET", "/apis"); err != nil || body != `{"groups":[{"name":"apps"}]}` {
		t.Errorf("got %s (%v)", body, err)
	}
	if status, _, err := s.do(t.Context(), "POST", "/apis/apps.kruise.io/v1alpha1/clonesets"); err != nil || status != 404 {
		t.Errorf("got %d (%v)", status, err)
	}
	if status, _, err := s.do(t.Context(), "POST", "/apis/apps/v1/deployments"); err != nil || status != 201 {
		t.Errorf("got %d (%v)", status, err)
	}
}

func TestKill(t *testing.T) {
	for name, c := range map[string]struct {
		arm    func(*Journal, func())
		writes int32
	}{
		"after":  {func(j *Journal, kill func()) { j.KillAfter(2, kill) }, 2},
		"before": {func(j *Journal, kill func()) { j.KillBefore(2, kill) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			kills := 0
			c.arm(s.journal, func() { kills++ })
			if _, _, err := s.do(t.Context(), "POST", "/a"); err != nil {
				t.Fatal(err)
			}
			if s.journal.Killed() {
				t.Error("killed too early")
			}
			for range 2 {
				if _, _, err := s.do(t.Context(), "POST", "/a"); err == nil {
					t.Error("the killed operator got an answer")
				}
			}
			if n := s.writes.Load(); n != c.writes || kills != 1 {
				t.Errorf("%d writes got through, %d kills", n, kills)
			}
			if !s.journal.Disarm() || s.journal.Disarm() {
				t.Error("Disarm does not tell whether it killed")
			}
			if _, _, err := s.do(t.Context(), "POST", "/a"); err != nil {
				t.Error(err)
			}
		})
	}
}
