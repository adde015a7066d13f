package tokens

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

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

// karmada is the backend of secretWith.
var karmada = config.Backend{
	Name: "karmada", Type: config.TypeKarmada, Connection: config.Connection{SecretRef: &config.SecretRef{Name: "karmada-kubeconfig"}},
}

func TestRenewed(t *testing.T) {
	token := issued(t, began)
	due, early, over := began.Add(20*time.Hour), began.Add(19*time.Hour), began.Add(25*time.Hour)
	forbidden := apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "fleetworkload", errors.New("no"))
	for name, test := range map[string]struct {
		after   string
		now     time.Time
		refused error
		text    string
		written error
		renewed bool
		failed  string
	}{
		"it is time":                     {after: "19h12m", now: due, renewed: true},
		"it is not time":                 {after: "19h12m", now: early},
		"a fifth is left of a short one": {after: "48h", now: due, renewed: true},
		"it is over already":             {after: "19h12m", now: over, renewed: true},
		"nobody asks for it":             {now: due},
		"nobody asks for a plain word":   {now: due, text: "s3cr3t"},
		"nobody can say when":            {after: "soon", now: due, failed: `"soon" of Secret fleetworkload-system/karmada-kubeconfig: give a duration`},
		"at once, always":                {after: "0s", now: due, failed: "give a duration"},
		"it is no token of ours":         {after: "1h", now: due, text: "s3cr3t", failed: "it is no JWT; take the annotation"},
		"the backend is away":            {after: "1h", now: due, refused: errors.New("away"), failed: "away; the token holds until 2026-01-02T00:00:00Z, and another"},
		"the backend refuses":            {after: "1h", now: due, refused: forbidden, failed: "no: apply config/backends/karmada there, by which the account"},
		"it is over, and refused": {after: "1h", now: over, refused: apierrors.NewUnauthorized("over"),
			failed: "over; the token ended at 2026-01-02T00:00:00Z: make another one with kubectl fw kubeconfig karmada --backend-kubeconfig FILE --secret karmada-kubeconfig"},
		"somebody writes it too": {after: "1h", now: due, written: apierrors.NewConflict(corev1.Resource("secrets"), "karmada-kubeconfig", nil)},
		"it cannot be written":   {after: "1h", now: due, written: errors.New("no"), failed: "write Secret fleetworkload-system/karmada-kubeconfig: no"},
		"it may not be written":  {after: "1h", now: due, written: forbidden, failed: "no: name it in the Role fleetworkload-management, by which the operator may update it"},
	} {
		t.Run(name, func(t *testing.T) {
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
			r := renewer(c, clocktesting.NewFakeClock(test.now))
			r.Expires = func(_ string, at time.Time) { told = at }
			r.Request = func(_ context.Context, cfg *rest.Config, present Token) (Token, error) {
				if cfg.BearerToken != token.Text || present.Text != token.Text {
					t.Errorf("it asks as %q about %q", cfg.BearerToken, present.Text)
				}
				return issued(t, test.now), test.refused
			}
			err := r.look(t.Context(), karmada, &turn{}, logr.Discard())
			if (err != nil) != (test.failed != "") || err != nil && !strings.Contains(err.Error(), test.failed) {
				t.Error(err)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), token.Text)) {
				t.Errorf("the error has the token: %v", err)
			}
			want := given
			if test.renewed {
				want = issued(t, test.now)
			}
			if expires := want.Expires; test.text == "" && !told.Equal(expires) || test.text != "" && !told.IsZero() {
				t.Errorf("it is told that it holds until %s", told)
			}
			now := readSecret(t, c)
			if diff := cmp.Diff(string(twoUsers(t, want)), string(now.Data["kubeconfig"])); diff != "" || string(now.Data["other"]) != "stays" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func renewer(c client.Client, clock *clocktesting.FakeClock) *Renewer {
	return &Renewer{
		Client: c, Namespace: "fleetworkload-system", Clock: clock, Log: logr.Discard(), Recorder: &events.FakeRecorder{},
		Source: connection.KubeconfigSource{Secrets: c, Namespace: "fleetworkload-system"},
	}
}

func readSecret(t *testing.T, c client.Client) corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "fleetworkload-system", Name: "karmada-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestTurns: a backend that refuses is asked ever less often, and again in time; its administrator sees the reason meanwhile.
func TestTurns(t *testing.T) {
	token := issued(t, began)
	clock := clocktesting.NewFakeClock(token.Issued.Add(RenewAfter(token.Life())))
	c := fake.NewClientBuilder().WithObjects(secretWith(twoUsers(t, token), "19h12m")).Build()
	var asked []string
	r := renewer(c, clock)
	r.Request = func(context.Context, *rest.Config, Token) (Token, error) {
		asked = append(asked, clock.Now().Sub(began).String())
		return Token{}, errors.New("away")
	}
	var remembered turn
	for clock.Now().Before(token.Expires.Add(time.Hour)) {
		if err := r.look(t.Context(), karmada, &remembered, logr.Discard()); err == nil || !strings.Contains(err.Error(), "away") {
			t.Fatalf("at %s: %v", clock.Now(), err)
		}
		clock.Step(interval)
	}
	if diff := cmp.Diff([]string{"19h12m0s", "19h13m0s", "19h15m0s", "19h19m0s", "19h27m0s", "19h42m0s"}, asked[:6]); diff != "" {
		t.Errorf("the first times (-want +got):\n%s", diff)
	}
	var before int
	for i, at := range asked {
		if at > "23h50m0s" && len(at) == len("23h50m0s") && before == 0 {
			before = i
		}
	}
	if diff := cmp.Diff([]string{"23h51m0s", "23h56m0s", "23h58m0s", "23h59m0s", "24h0m0s"}, asked[before:before+5]); diff != "" {
		t.Errorf("the last times (-want +got):\n%s", diff)
	}
	if len(asked) > 40 {
		t.Errorf("asked %d times", len(asked))
	}
}

// TestClocksThatDiffer: ours is ahead of the backend's by more than a token's life, or behind it.
func TestClocksThatDiffer(t *testing.T) {
	for _, off := range []time.Duration{-6 * time.Hour, 0, 30 * time.Hour} {
		theirs := began
		clock := clocktesting.NewFakeClock(theirs.Add(off))
		c := fake.NewClientBuilder().WithObjects(secretWith(twoUsers(t, issued(t, theirs.Add(-20*time.Hour))), "19h12m")).Build()
		r := renewer(c, clock)
		asked := 0
		r.Request = func(context.Context, *rest.Config, Token) (Token, error) { asked++; return issued(t, theirs), nil }
		remembered := turn{}
		if off < 0 { // it has asked for this one before, by its own clock
			secret := readSecret(t, c)
			present, err := tokenIn(secret.Data["kubeconfig"])
			if err != nil {
				t.Fatal(err)
			}
			remembered.renewed(clock.Now().Add(-20*time.Hour), present)
		}
		for range 24 * 60 {
			if err := r.look(t.Context(), karmada, &remembered, logr.Discard()); err != nil {
				t.Fatal(err)
			}
			clock.Step(interval)
			theirs = theirs.Add(interval)
		}
		if asked != 2 { // at once, and 19h12m later
			t.Errorf("%s ahead: asked %d times in a day", off, asked)
		}
	}
}

// TestTwoOperatorsAtOnce: both ask for another token of the same backend, and one of them writes it. The other one says nothing, and goes by what
// was written.
func TestTwoOperatorsAtOnce(t *testing.T) {
	clock := clocktesting.NewFakeClock(began.Add(20 * time.Hour))
	c := fake.NewClientBuilder().WithObjects(secretWith(twoUsers(t, issued(t, began)), "19h12m")).Build()
	recorder := events.NewFakeRecorder(10)
	both, asked := make(chan struct{}), atomic.Int32{}
	type operator struct {
		*Renewer
		turn    turn
		given   Token
		expires time.Time
	}
	operators := [2]operator{}
	for i := range operators {
		o := &operators[i]
		o.Renewer, o.given = renewer(c, clock), issued(t, clock.Now().Add(time.Duration(i)*time.Second))
		o.Recorder = recorder
		o.Expires = func(_ string, at time.Time) { o.expires = at }
		o.Request = func(context.Context, *rest.Config, Token) (Token, error) {
			if asked.Add(1) == 2 {
				close(both)
			}
			<-both // neither has written yet
			return o.given, nil
		}
	}
	look := func() {
		var group sync.WaitGroup
		for i := range operators {
			group.Go(func() {
				if err := operators[i].look(t.Context(), karmada, &operators[i].turn, logr.Discard()); err != nil {
					t.Errorf("operator %d: %v", i, err)
				}
			})
		}
		group.Wait()
	}
	for range 60 {
		look()
		clock.Step(interval)
	}
	token, err := tokenIn(readSecret(t, c).Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range operators {
		if o.turn.text != token.Text || !o.expires.Equal(token.Expires) {
			t.Errorf("operator %d goes by one that holds until %s, not by what is written, until %s", i, o.expires, token.Expires)
		}
	}
	if token != operators[0].given && token != operators[1].given || asked.Load() != 2 || len(recorder.Events) != 1 {
		t.Errorf("asked %d times, %d events, and it is written: %+v", asked.Load(), len(recorder.Events), token)
	}
}

// TestTwoOperatorsWithClocksThatDiffer from the backend's: neither takes what the other has just renewed for one that is over.
func TestTwoOperatorsWithClocksThatDiffer(t *testing.T) {
	theirs := began
	clock := clocktesting.NewFakeClock(theirs.Add(30 * time.Hour))
	c := fake.NewClientBuilder().WithObjects(secretWith(twoUsers(t, issued(t, theirs.Add(-20*time.Hour))), "19h12m")).Build()
	asked := 0
	r := renewer(c, clock)
	r.Request = func(context.Context, *rest.Config, Token) (Token, error) { asked++; return issued(t, theirs), nil }
	turns, step := [2]turn{}, 5*time.Minute
	for n := range int(24 * time.Hour / step) {
		if err := r.look(t.Context(), karmada, &turns[n%2], logr.Discard()); err != nil {
			t.Fatal(err)
		}
		clock.Step(step)
		theirs = theirs.Add(step)
	}
	if asked > 4 { // each at once, and one or both 19h12m later
		t.Errorf("asked %d times in a day", asked)
	}
}

// TestRenewerGoesOn: what fails is told once and tried again, and a backend without an answer keeps no other waiting.
func TestRenewerGoesOn(t *testing.T) {
	secret := secretWith(twoUsers(t, issued(t, began)), "1h")
	hangs := secretWith(twoUsers(t, issued(t, began)), "1h")
	hangs.Name = "hangs"
	c := fake.NewClientBuilder().WithObjects(secret, hangs).Build()
	clock := clocktesting.NewFakeClock(began.Add(2 * time.Hour))
	said := make(chan string, 10)
	looked, asked, waits := make(chan struct{}), make(chan error), make(chan struct{}, 10)
	r := renewer(c, clock)
	r.Client = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Name == secret.Name {
				select {
				case looked <- struct{}{}:
				case <-ctx.Done():
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	recorder := events.NewFakeRecorder(10)
	r.Recorder = recorder
	r.Log = funcr.New(func(_, args string) { said <- args }, funcr.Options{})
	r.Backends = []config.Backend{
		{Name: "here"}, {Name: "missing", Connection: config.Connection{SecretRef: &config.SecretRef{Name: "missing"}}},
		{Name: "hangs", Connection: config.Connection{SecretRef: &config.SecretRef{Name: "hangs"}}}, karmada,
	}
	r.Source = named{r.Source}
	r.Request = func(ctx context.Context, cfg *rest.Config, _ Token) (Token, error) {
		if cfg.UserAgent == "hangs" {
			waits <- struct{}{}
			<-ctx.Done()
			return Token{}, ctx.Err()
		}
		return issued(t, clock.Now()), <-asked
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	<-waits
	for answers := []error{errors.New("away"), errors.New("away"), nil}; len(answers) > 0; {
		select {
		case <-looked:
			clock.Step(interval)
		case asked <- answers[0]:
			answers = answers[1:]
		}
	}
	if first := <-said; !strings.Contains(first, "away") {
		t.Errorf("it says %s", first)
	}
	if second := <-said; !strings.Contains(second, "Renewed the token") || strings.Contains(second, ".signature") {
		t.Errorf("it says %s", second)
	}
	for _, want := range []string{"Warning TokenNotRenewed backend karmada: away; the token holds until ", "Normal TokenRenewed backend karmada: the token holds until "} {
		if got := <-recorder.Events; !strings.HasPrefix(got, want) || strings.Contains(got, ".signature") {
			t.Errorf("an Event says %s, not %s", got, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	now := readSecret(t, c)
	if token, err := tokenIn(now.Data["kubeconfig"]); err != nil || !token.Issued.After(began) {
		t.Errorf("it was not renewed: %v, %v", token.Issued, err)
	}
}

// named says in a configuration whose it is.
type named struct{ connection.Source }

func (n named) Load(ctx context.Context, from config.Connection) (*rest.Config, [32]byte, error) {
	cfg, mark, err := n.Source.Load(ctx, from)
	if err != nil {
		return nil, mark, fmt.Errorf("%s: %w", from.SecretRef.Name, err)
	}
	cfg.UserAgent = from.SecretRef.Name
	return cfg, mark, nil
}
