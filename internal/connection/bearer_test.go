package connection

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// guarded is a backend that takes one token only. It tells when it is asked with it.
func guarded(t *testing.T) (host string, takes *atomic.Value, asked <-chan string) {
	t.Helper()
	takes = &atomic.Value{}
	tokens := make(chan string, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if accepted, _ := takes.Load().(string); !strings.Contains(accepted, token) || token == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		tokens <- token
	}))
	t.Cleanup(s.Close)
	return s.URL, takes, tokens
}

// TestAnotherTokenKeepsTheConnection: the backend is not lost for a moment, and the driver is the one from before.
func TestAnotherTokenKeepsTheConnection(t *testing.T) {
	host, takes, asked := guarded(t)
	takes.Store("first second")
	source := &scripted{}
	source.answer.Store(answer{host: host, token: "first", fingerprint: 1})
	pool, built, changed := start(t, source)
	await(t, changed, func() bool { _, err := pool.Driver("b"); return err == nil })

	source.answer.Store(answer{host: host, token: "second", fingerprint: 2})
	for token := range asked {
		if token == "second" {
			break
		}
	}
	takes.Store("second")
	for range 3 { // the next one asks with what the driver has, too
		if token := <-asked; token != "second" {
			t.Errorf("asked with %s once more", token)
		}
	}
	if _, err := pool.Driver("b"); err != nil || built.Load() != 1 || len(changed) > 0 {
		t.Errorf("%d drivers, %d changes, %v", built.Load(), len(changed), err)
	}

	takes.Store("third")
	await(t, changed, func() bool {
		_, err := pool.Driver("b")
		var told *backends.Error
		return errors.As(err, &told) && told.Code == backends.CodeUnavailable &&
			strings.HasSuffix(told.Remedy, "kubectl fw kubeconfig b --backend-kubeconfig FILE --secret s")
	})
	source.answer.Store(answer{host: host, token: "third", fingerprint: 3})
	await(t, changed, func() bool { _, err := pool.Driver("b"); return err == nil })
	if built.Load() != 1 {
		t.Errorf("%d drivers were built", built.Load())
	}
}

// TestClientsSendTheTokenOfNow: also those that were built before, and from copies.
func TestClientsSendTheTokenOfNow(t *testing.T) {
	host, takes, asked := guarded(t)
	takes.Store("first second")
	read := &rest.Config{Host: host, BearerToken: "first"}
	cfg, b := carry(read)
	client, err := rest.HTTPClientFor(rest.CopyConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second"} {
		if !b.take(read, &rest.Config{Host: host, BearerToken: token}) {
			t.Fatal("not taken")
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK || <-asked != token || request.Header.Get("Authorization") != "" {
			t.Errorf("%s: %s, headers %v", token, response.Status, request.Header)
		}
	}
}

// TestWhatConnectsAnew: only a token can change under a connection.
func TestWhatConnectsAnew(t *testing.T) {
	ca := rest.TLSClientConfig{CAData: []byte("ca")}
	for name, test := range map[string]struct {
		before, now rest.Config
		taken       bool
	}{
		"another token":                {rest.Config{BearerToken: "a", TLSClientConfig: ca}, rest.Config{BearerToken: "b", TLSClientConfig: ca}, true},
		"another address":              {rest.Config{BearerToken: "a"}, rest.Config{BearerToken: "b", Host: "https://b"}, false},
		"another authority":            {rest.Config{BearerToken: "a", TLSClientConfig: ca}, rest.Config{BearerToken: "b"}, false},
		"another user":                 {rest.Config{BearerToken: "a"}, rest.Config{BearerToken: "b", Impersonate: rest.ImpersonationConfig{UserName: "c"}}, false},
		"a certificate until now":      {rest.Config{}, rest.Config{BearerToken: "b"}, false},
		"a certificate from now on":    {rest.Config{BearerToken: "a"}, rest.Config{}, false},
		"a file that is read anyway":   {rest.Config{BearerToken: "a", BearerTokenFile: "f"}, rest.Config{BearerToken: "b", BearerTokenFile: "f"}, false},
		"a file that is read from now": {rest.Config{BearerToken: "a"}, rest.Config{BearerToken: "b", BearerTokenFile: "f"}, false},
	} {
		_, b := carry(&test.before)
		if got := b.take(&test.before, &test.now); got != test.taken {
			t.Errorf("%s: taken is %t", name, got)
		}
	}
}

func TestAnew(t *testing.T) {
	got := Anew(config.Backend{Name: "b", Connection: config.Connection{SecretRef: &config.SecretRef{Name: "s", Key: "admin"}}})
	if diff := cmp.Diff("kubectl fw kubeconfig b --backend-kubeconfig FILE --secret s --key admin", got); diff != "" {
		t.Error(diff)
	}
}
