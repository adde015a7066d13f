package tokens

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// jwt is a token with these claims.
func jwt(claims string) string {
	return "header." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
}

// issued is a token of a day.
func issued(t *testing.T, at time.Time) Token {
	t.Helper()
	token, err := Read(jwt(fmt.Sprintf(`{"sub": "system:serviceaccount:fleetworkload-system:fleetworkload", "iat": %d, "exp": %d}`,
		at.Unix(), at.Add(24*time.Hour).Unix())))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestRead(t *testing.T) {
	token := issued(t, began)
	want := types.NamespacedName{Namespace: "fleetworkload-system", Name: "fleetworkload"}
	if token.Account != want || !token.Issued.Equal(began) || token.Life() != 24*time.Hour {
		t.Errorf("read: %+v", token)
	}
	for name, text := range map[string]string{
		"nothing":           "",
		"a plain word":      "s3cr3t",
		"two dots":          "s3cr3t.s3cr3t.s3cr3t",
		"no JSON":           jwt(`s3cr3t`),
		"a person":          jwt(`{"sub": "jane", "iat": 1, "exp": 2}`),
		"half a name":       jwt(`{"sub": "system:serviceaccount:s3cr3t", "iat": 1, "exp": 2}`),
		"one without end":   jwt(`{"sub": "system:serviceaccount:a:b", "iat": 1}`),
		"one without start": jwt(`{"sub": "system:serviceaccount:a:b", "exp": 1}`),
		"one that is over":  jwt(`{"sub": "system:serviceaccount:a:b", "iat": 2, "exp": 2}`),
	} {
		if token, err := Read(text); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %+v, %v", name, token, err)
		}
	}
}

// TestTheOperatorTakesWhatIsMade: a kubeconfig from a Secret must be data only.
func TestTheOperatorTakesWhatIsMade(t *testing.T) {
	admin := &rest.Config{
		Host: "https://karmada.example.com:5443", BearerToken: "an administrator's",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key"), ServerName: "karmada"},
	}
	token := issued(t, began)
	raw, err := Kubeconfig(admin, token)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "administrator") {
		t.Errorf("it has the administrator's token:\n%s", raw)
	}
	secret := secretWith(raw, "")
	source := connection.KubeconfigSource{Secrets: fake.NewClientBuilder().WithObjects(secret).Build(), Namespace: secret.Namespace}
	got, _, err := source.Load(t.Context(), config.Connection{SecretRef: &config.SecretRef{Name: secret.Name}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != admin.Host || got.BearerToken != token.Text || string(got.CAData) != "ca" || got.ServerName != "karmada" || got.CertData != nil {
		t.Errorf("it reaches %+v", got)
	}
	for name, change := range map[string]func(*rest.Config){
		"plain HTTP":             func(c *rest.Config) { c.Host = "http://karmada" },
		"without verification":   func(c *rest.Config) { c.Insecure = true },
		"a file that is not one": func(c *rest.Config) { c.CAData, c.CAFile = nil, "/does/not/exist" },
	} {
		other := rest.CopyConfig(admin)
		change(other)
		if _, err := Kubeconfig(other, token); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func secretWith(kubeconfig []byte, after string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleetworkload-system", Name: "karmada-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig, "other": []byte("stays")},
	}
	if after != "" {
		secret.Annotations = map[string]string{AnnotationRenewAfter: after}
	}
	return secret
}

// twoUsers is a kubeconfig in which somebody else has a part.
func twoUsers(t *testing.T, token Token) []byte {
	t.Helper()
	raw, err := Kubeconfig(&rest.Config{Host: "https://karmada.example.com"}, token)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	cfg.AuthInfos["somebody"] = cfg.AuthInfos["fleetworkload"].DeepCopy()
	cfg.AuthInfos["somebody"].Token = "somebody's"
	if raw, err = clientcmd.Write(*cfg); err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRenewed(t *testing.T) {
	token := issued(t, began)
	due, early := began.Add(20*time.Hour), began.Add(19*time.Hour)
	for name, test := range map[string]struct {
		after   string
		now     time.Time
		refused error
		text    string
		written error
		renewed bool
		failed  string
	}{
		"it is time":             {after: "19h12m", now: due, renewed: true},
		"it is not time":         {after: "19h12m", now: early},
		"it is over already":     {after: "19h12m", now: began.Add(25 * time.Hour), renewed: true},
		"nobody asks for it":     {now: due},
		"nobody can say when":    {after: "soon", now: due, failed: `"soon" of Secret fleetworkload-system/karmada-kubeconfig: give a duration`},
		"at once, always":        {after: "0s", now: due, failed: "give a duration"},
		"it is no token of ours": {after: "1h", now: due, text: "s3cr3t", failed: "it is no JWT; take the annotation"},
		"the backend refuses":    {after: "1h", now: due, refused: errors.New("forbidden"), failed: "forbidden; it holds until 2026-01-02T00:00:00Z"},
		"somebody writes it too": {after: "1h", now: due, written: apierrors.NewConflict(corev1.Resource("secrets"), "karmada-kubeconfig", nil)},
		"it may not be written":  {after: "1h", now: due, written: errors.New("no"), failed: "write Secret fleetworkload-system/karmada-kubeconfig: no"},
	} {
		given := token
		if test.text != "" {
			given.Text = test.text
		}
		secret := secretWith(twoUsers(t, given), test.after)
		c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(secret.DeepCopy()).Build(), interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				if test.written != nil {
					return test.written
				}
				return c.Update(ctx, obj, opts...)
			},
		})
		var told time.Time
		r := &Renewer{
			Client: c, Namespace: secret.Namespace, Clock: clocktesting.NewFakeClock(test.now), Log: logr.Discard(),
			Source:  connection.KubeconfigSource{Secrets: c, Namespace: secret.Namespace},
			Expires: func(_ string, at time.Time) { told = at },
			Request: func(_ context.Context, cfg *rest.Config, present Token) (Token, error) {
				if cfg.BearerToken != token.Text || present.Text != token.Text {
					t.Errorf("%s: it asks as %q about %q", name, cfg.BearerToken, present.Text)
				}
				return issued(t, test.now), test.refused
			},
		}
		backend := config.Backend{Name: "karmada", Connection: config.Connection{SecretRef: &config.SecretRef{Name: secret.Name}}}
		err := r.renew(t.Context(), backend, logr.Discard())
		if (err != nil) != (test.failed != "") || err != nil && !strings.Contains(err.Error(), test.failed) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), token.Text)) {
			t.Errorf("%s: the error has the token: %v", name, err)
		}
		var now corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), &now); err != nil {
			t.Fatal(err)
		}
		want := given
		if test.renewed {
			want = issued(t, test.now)
		}
		if test.renewed && !told.Equal(want.Expires) {
			t.Errorf("%s: it is told that it holds until %s", name, told)
		}
		if diff := cmp.Diff(string(twoUsers(t, want)), string(now.Data["kubeconfig"])); diff != "" || string(now.Data["other"]) != "stays" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRenewerGoesOn: what fails is tried again, also for other backends.
func TestRenewerGoesOn(t *testing.T) {
	secret := secretWith(twoUsers(t, issued(t, began)), "1h")
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	clock := clocktesting.NewFakeClock(began.Add(2 * time.Hour))
	asked := make(chan error)
	ref := &config.SecretRef{Name: secret.Name}
	r := &Renewer{
		Client: c, Namespace: secret.Namespace, Clock: clock, Log: logr.Discard(),
		Source: connection.KubeconfigSource{Secrets: c, Namespace: secret.Namespace},
		Backends: []config.Backend{
			{Name: "here"}, {Name: "missing", Connection: config.Connection{SecretRef: &config.SecretRef{Name: "missing"}}},
			{Name: "karmada", Connection: config.Connection{SecretRef: ref}},
		},
		Request: func(context.Context, *rest.Config, Token) (Token, error) { return issued(t, clock.Now()), <-asked },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	asked <- errors.New("away")
	for !clock.HasWaiters() {
		time.Sleep(time.Millisecond) // the fake clock cannot be awaited
	}
	clock.Step(interval)
	asked <- nil
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var now corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), &now); err != nil {
		t.Fatal(err)
	}
	if token, err := tokenIn(now.Data["kubeconfig"]); err != nil || !token.Issued.Equal(clock.Now()) {
		t.Errorf("it was not renewed: %v, %v", token.Issued, err)
	}
}
