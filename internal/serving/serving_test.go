package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts = []string{"fleetworkload-webhook.fleetworkload-system.svc"}
)

// trusts tells whether an API server that was told of those authorities trusts the certificate.
func trusts(trust []byte, cert *x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust)
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: hosts[0], CurrentTime: now})
	return err
}

// For thirty years, looked after once a day: what is served today and what was yesterday is trusted by who was told yesterday, and by who is
// told today. Clocks that are an hour late make no difference.
func TestThereIsNoMomentWithoutTrust(t *testing.T) {
	var b bundle
	var trustBefore []byte
	authorities := 0
	for day := range 30 * 365 {
		now := begin.AddDate(0, 0, day)
		before := b
		next, changed, err := b.renewed(now, hosts)
		if err != nil {
			t.Fatal(err)
		}
		if changed {
			data, err := next.data()
			if err != nil {
				t.Fatal(err)
			}
			if next, err = parse(data); err != nil {
				t.Fatalf("day %d: it cannot be read again: %v", day, err)
			}
		}
		b = next
		authorities = max(authorities, len(b.authorities))
		for what, cert := range map[string]*x509.Certificate{"today's": b.serving.cert, "yesterday's": before.serving.cert} {
			for who, trust := range map[string][]byte{"today": b.trust(), "yesterday": trustBefore} {
				if cert == nil || trust == nil {
					continue
				}
				for _, at := range []time.Time{now, now.Add(-time.Hour + time.Minute)} {
					if err := trusts(trust, cert, at); err != nil {
						t.Fatalf("day %d: who was told %s does not trust %s certificate: %v", day, who, what, err)
					}
				}
			}
		}
		if left := b.serving.cert.NotAfter.Sub(now); left < certRenew {
			t.Fatalf("day %d: it is good for %s only", day, left)
		}
		trustBefore = b.trust()
	}
	if authorities != 2 {
		t.Errorf("up to %d authorities are trusted at once, not 2", authorities)
	}
}

// Nothing is made anew that is good, and all that is not.
func TestRenewed(t *testing.T) {
	good, _, err := bundle{}.renewed(begin, hosts)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := bundle{}.renewed(begin, hosts)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		b       bundle
		now     time.Time
		hosts   []string
		changed bool
	}{
		"the same":                   {good, begin.Add(time.Hour), hosts, false},
		"after half its life":        {good, begin.Add(46 * 24 * time.Hour), hosts, true},
		"after it has ended":         {good, begin.AddDate(10, 0, 0), hosts, true},
		"before it begins":           {good, begin.AddDate(-1, 0, 0), hosts, true},
		"another name":               {good, begin, []string{"other"}, true},
		"signed by somebody else":    {bundle{good.authorities, other.serving}, begin, hosts, true},
		"nobody who has signed it":   {bundle{nil, good.serving}, begin, hosts, true},
		"no certificate, but a CA":   {bundle{authorities: good.authorities}, begin, hosts, true},
		"nothing that is kept there": {bundle{}, begin, hosts, true},
	} {
		got, changed, err := test.b.renewed(test.now, test.hosts)
		if err != nil || changed != test.changed || !got.serves(test.now, test.hosts) {
			t.Errorf("%s: changed %t, %v", name, changed, err)
		}
	}
}

func TestParse(t *testing.T) {
	b, _, err := bundle{}.renewed(begin, hosts)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string][]byte){
		"without a certificate": func(d map[string][]byte) { delete(d, keyCertificate); delete(d, keyCertificateKey) },
		"without a key":         func(d map[string][]byte) { delete(d, keyCertificateKey) },
		"another's key":         func(d map[string][]byte) { d[keyCertificateKey] = d[keyAuthoritiesKey] },
		"no certificate at all": func(d map[string][]byte) {
			d[keyAuthorities] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		},
	} {
		data, err := b.data()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(data); err != nil {
			t.Fatal(err)
		}
		spoil(data)
		if _, err := parse(data); err == nil {
			t.Errorf("%s it is read all the same", name)
		}
	}
}

// management is an API server with a webhook's configuration, and Keepers of two replicas.
type management struct {
	client.Client
	clock *testingclock.FakeClock
	// fails is what all writes end with, and deaf those of the webhook's configuration.
	fails, deaf error
	wrote       int
}

func newManagement(t *testing.T) *management {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 1)}
	configuration.Name = "fleetworkload"
	m := &management{clock: testingclock.NewFakeClock(begin)}
	m.Client = fake.NewClientBuilder().WithObjects(configuration).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			m.wrote++
			if m.fails != nil {
				return m.fails
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			m.wrote++
			if _, is := obj.(*admissionregistrationv1.ValidatingWebhookConfiguration); is && m.deaf != nil {
				return m.deaf
			}
			if m.fails != nil {
				return m.fails
			}
			return c.Update(ctx, obj, opts...)
		},
	}).Build()
	return m
}

func (m *management) keeper() *Keeper {
	return &Keeper{Client: m, Secret: types.NamespacedName{Namespace: "system", Name: "webhook"}, Configuration: "fleetworkload", Hosts: hosts, Clock: m.clock}
}

func (m *management) check(t *testing.T, k *Keeper) {
	t.Helper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := m.Get(t.Context(), types.NamespacedName{Name: "fleetworkload"}, &configuration); err != nil {
		t.Fatal(err)
	}
	cert, err := k.Certificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	if err := trusts(configuration.Webhooks[0].ClientConfig.CABundle, cert.Leaf, m.clock.Now()); err != nil {
		t.Error(err)
	}
}

// Two replicas serve what one has made; nothing is written when nothing is to do; what somebody spoils is mended.
func TestKeeper(t *testing.T) {
	m := newManagement(t)
	one, two := m.keeper(), m.keeper()
	if one.Check(nil) == nil {
		t.Error("it is ready before there is a certificate")
	}
	for _, k := range []*Keeper{one, two, one, two} {
		if err := k.Keep(t.Context()); err != nil || k.Check(nil) != nil {
			t.Fatal(err)
		}
		m.check(t, k)
	}
	if m.wrote != 2 {
		t.Errorf("it writes %d times, not twice", m.wrote)
	}
	var secret corev1.Secret
	if err := m.Get(t.Context(), one.Secret, &secret); err != nil {
		t.Fatal(err)
	}
	secret.Data[keyCertificate] = []byte("spoiled")
	if err := m.Client.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Keeper{one, two} {
		if err := k.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.check(t, one)
	m.check(t, two)
}

// What cannot be written is not served: the API server would not trust it. What was served goes on.
func TestWhatIsNotTrustedIsNotServed(t *testing.T) {
	m := newManagement(t)
	k := m.keeper()
	m.fails = errors.New("read-only")
	if k.Keep(t.Context()) == nil || k.Check(nil) == nil {
		t.Error("it serves what nobody was told of")
	}
	m.fails, m.deaf = nil, errors.New("nobody may write it")
	if k.Keep(t.Context()) == nil || k.Check(nil) == nil {
		t.Error("it serves what the API server was not told of")
	}
	m.deaf = nil
	if err := k.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := k.Certificate(nil)
	m.fails = errors.New("read-only")
	m.clock.Step(60 * 24 * time.Hour)
	if k.Keep(t.Context()) == nil {
		t.Error("a failure is not told")
	}
	if after, _ := k.Certificate(nil); after != before {
		t.Error("it serves another one")
	}
	m.check(t, k)
}

// Start looks again, until it is stopped.
func TestStart(t *testing.T) {
	m := newManagement(t)
	k := m.keeper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.Start(ctx) }()
	waits := func(context.Context) (bool, error) { return m.clock.HasWaiters(), nil }
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, waits); err != nil {
		t.Fatal(err)
	}
	before, _ := k.Certificate(nil)
	m.clock.Step(60 * 24 * time.Hour)
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, waits); err != nil {
		t.Fatal(err)
	}
	if after, err := k.Certificate(nil); err != nil || after == before {
		t.Errorf("it is not renewed, %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
