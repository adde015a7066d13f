package connection

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// watcher is a driver that only holds watches.
type watcher struct{ backends.Driver }

func (watcher) Run(ctx context.Context, _ func(types.NamespacedName)) error {
	<-ctx.Done()
	return ctx.Err()
}

// scripted is a source whose answers a test sets.
type scripted struct{ answer atomic.Value }

type answer struct {
	host, token string
	fingerprint byte
	err         error
}

func (s *scripted) Load(context.Context, config.Connection) (*rest.Config, [sha256.Size]byte, error) {
	a, _ := s.answer.Load().(answer)
	return &rest.Config{Host: a.host, BearerToken: a.token}, [sha256.Size]byte{a.fingerprint}, a.err
}

// server answers /readyz as the flag says.
func server(t *testing.T, ready *atomic.Bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func start(t *testing.T, source Source) (*Pool, *atomic.Int32, <-chan struct{}) {
	t.Helper()
	built, changed := &atomic.Int32{}, make(chan struct{}, 100)
	pool := NewPool(Options{
		Backends: []config.Backend{{Name: "b", Type: config.TypeOCM, Connection: config.Connection{SecretRef: &config.SecretRef{Name: "s"}}}},
		Factories: map[config.Type]Factory{config.TypeOCM: func(cfg *rest.Config, _ config.Backend) (backends.Driver, error) {
			if cfg.UserAgent != "seen" {
				t.Error("nobody was asked about its requests")
			}
			built.Add(1)
			return &watcher{}, nil
		}},
		Source: source, Interval: 5 * time.Millisecond, Log: logr.Discard(),
		Notify:   func(string, types.NamespacedName) { changed <- struct{}{} },
		Requests: func(_ string, cfg *rest.Config) { cfg.UserAgent = "seen" },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = pool.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return pool, built, changed
}

// await waits for a change after which the condition holds.
func await(t *testing.T, changed <-chan struct{}, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("it did not happen")
		}
	}
}

func TestABackendIsLostAndFoundAgain(t *testing.T) {
	var ready atomic.Bool
	ready.Store(true)
	source := &scripted{}
	source.answer.Store(answer{host: server(t, &ready)})
	pool, built, changed := start(t, source)
	works := func() bool { _, err := pool.Driver("b"); return err == nil }
	await(t, changed, works)

	ready.Store(false)
	await(t, changed, func() bool {
		_, err := pool.Driver("b")
		return backends.CodeOf(err) == backends.CodeUnavailable && strings.Contains(err.Error(), "ask http")
	})
	ready.Store(true)
	await(t, changed, works)
	if built.Load() != 1 {
		t.Errorf("the driver was built %d times although its kubeconfig stayed", built.Load())
	}
}

func TestAKubeconfigThatChangesConnectsAnew(t *testing.T) {
	var ready atomic.Bool
	ready.Store(true)
	host := server(t, &ready)
	source := &scripted{}
	source.answer.Store(answer{err: errors.New("garbage")})
	pool, built, changed := start(t, source)
	await(t, changed, func() bool {
		_, err := pool.Driver("b")
		return err != nil && strings.Contains(err.Error(), "garbage")
	})
	source.answer.Store(answer{host: host, fingerprint: 1})
	await(t, changed, func() bool { _, err := pool.Driver("b"); return err == nil })
	source.answer.Store(answer{host: host, fingerprint: 2})
	await(t, changed, func() bool { _, err := pool.Driver("b"); return err == nil && built.Load() == 2 })
}

func TestABackendNobodyConfigured(t *testing.T) {
	pool := NewPool(Options{Backends: []config.Backend{{Name: "z"}, {Name: "a"}}})
	if _, err := pool.Driver("b"); !errors.Is(err, backends.ErrNotConfigured) {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(pool.Names(), " "); got != "a z" {
		t.Errorf("names are %s", got)
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://example.test"}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func TestKubeconfigFromASecret(t *testing.T) {
	user := func(user string) []byte { return []byte(strings.Replace(kubeconfig, "{token: hunter2}", user, 1)) }
	cluster := func(cluster string) []byte {
		return []byte(strings.Replace(kubeconfig, `{server: "https://example.test"}`, cluster, 1))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{
		"kubeconfig": []byte(kubeconfig), "garbage": []byte("hunter2: [:"),
		"plugin":   user("{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}"),
		"provider": user("{auth-provider: {name: oidc}}"),
		"token":    user("{tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}"),
		"cert":     user("{client-certificate: /etc/passwd}"),
		"key":      user("{client-key: /etc/passwd}"),
		"ca":       cluster(`{server: "https://example.test", certificate-authority: /etc/passwd}`),
		"proxy":    cluster(`{server: "https://example.test", proxy-url: "http://u:hunter2@example.test"}`),
		"insecure": cluster(`{server: "https://example.test", insecure-skip-tls-verify: true}`),
		"plain":    cluster(`{server: "http://example.test"}`),
	}}
	source := KubeconfigSource{Secrets: fake.NewClientBuilder().WithObjects(secret).Build(), Namespace: "ns"}
	load := func(name, key string) (*rest.Config, error) {
		cfg, _, err := source.Load(context.Background(), config.Connection{SecretRef: &config.SecretRef{Name: name, Key: key}})
		return cfg, err
	}
	if cfg, err := load("s", ""); err != nil || cfg.Host != "https://example.test" {
		t.Errorf("got %+v, %v", cfg, err)
	}
	for name, test := range map[string]struct{ secret, key, want string }{
		"no Secret":        {"gone", "", `read kubeconfig from Secret ns/gone`},
		"no key":           {"s", "other", `has no key "other"`},
		"garbage":          {"s", "garbage", "does not hold a valid kubeconfig"},
		"a program to run": {"s", "plugin", `exec or auth provider plugin in user "u"`},
		"a provider":       {"s", "provider", `exec or auth provider plugin in user "u"`},
		"a token's file":   {"s", "token", `names a file in user "u"`},
		"a certificate's":  {"s", "cert", `names a file in user "u"`},
		"a key's":          {"s", "key", `names a file in user "u"`},
		"a CA's":           {"s", "ca", `names a file in cluster "c"`},
		"a proxy":          {"s", "proxy", `has a proxy-url in cluster "c"`},
		"no verification":  {"s", "insecure", `does not verify the server of cluster "c"`},
		"no TLS":           {"s", "plain", `does not verify the server of cluster "c"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(test.secret, test.key)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes the kubeconfig: %v", err)
			}
		})
	}
}
