package installcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// briefly ends before anything is asked twice.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), interval/10)
	t.Cleanup(cancel)
	return ctx
}

func TestReady(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		says   string
		want   string // part of the error; none when empty
	}{
		"ready":     {status: http.StatusOK, says: "ok"},
		"not ready": {status: http.StatusInternalServerError, says: "[+]ping ok\n[-]webhook failed", want: "500 Internal Server Error: [+]ping ok [-]webhook failed"},
		"elsewhere": {status: http.StatusNotFound, want: "404"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.says)
			}))
			defer server.Close()
			judge(t, Ready(briefly(t), server.Client(), server.URL), c.want)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		judge(t, Ready(briefly(t), http.DefaultClient, server.URL), "connection refused; look at its pods")
	})
}

func judge(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("failed: %v", err)
	case want != "" && err == nil:
		t.Errorf("passed; want an error with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("the error does not say %q: %v", want, err)
	}
}

// TestReadyLater: an operator that has just been installed takes a while.
func TestReadyLater(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Ready(ctx, server.Client(), server.URL); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("was asked %d times", n)
	}
}

// server is an API server that answers every creation the same.
type server struct {
	client.Client
	answer error
	asked  []client.CreateOptions
}

func (s *server) Create(_ context.Context, obj client.Object, options ...client.CreateOption) error {
	if _, ok := obj.(*v1alpha1.FleetWorkload); !ok || obj.GetNamespace() != "system" {
		return fmt.Errorf("asked for %T in %q", obj, obj.GetNamespace())
	}
	s.asked = append(s.asked, *(&client.CreateOptions{}).ApplyOptions(options))
	return s.answer
}

func TestAuthors(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"refused by the webhook":     {`admission webhook "authors.fleetworkload.io" denied the request: user "jane" may not create deployments.apps`, ""},
		"accepted":                   {"", "nobody asks the webhook authors.fleetworkload.io"},
		"the webhook is unreachable": {`Internal error occurred: failed calling webhook "authors.fleetworkload.io": dial tcp: i/o timeout`, "network reaches the operator's pods"},
		"refused by another webhook": {`admission webhook "policy.example.com" denied the request: no`, "dry run: admission webhook"},
		"without the right":          {`fleetworkloads.apps.fleetworkload.io is forbidden: User "jane" cannot create resource`, "is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &server{}
			if c.answer != "" {
				api.answer = errors.New(c.answer)
			}
			judge(t, Authors(briefly(t), api, "system"), c.want)
			if len(api.asked) != 1 || len(api.asked[0].DryRun) == 0 {
				t.Errorf("was not asked once for a dry run: %+v", api.asked)
			}
		})
	}
}

// TestTheWebhookIsCalledSo: a refusal is known by the webhook's name.
func TestTheWebhookIsCalledSo(t *testing.T) {
	raw, err := os.ReadFile("../../config/webhook/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(raw, &configuration); err != nil {
		t.Fatal(err)
	}
	if len(configuration.Webhooks) != 1 || configuration.Webhooks[0].Name != Webhook {
		t.Errorf("config/webhook does not call it %s", Webhook)
	}
}
