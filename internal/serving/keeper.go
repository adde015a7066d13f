package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// How often the Secret is looked at: what was renewed by another replica, or spoiled by somebody, is seen after this time at most.
const (
	lookAgain    = time.Minute
	lookAfterErr = 5 * time.Second
)

// Keeper serves the certificate of a Secret, renews it in time, and tells the API server whom to trust. Every replica has one: who comes second
// finds the Secret changed, and reads it again.
type Keeper struct {
	// Client reads and writes the Secret and the webhook's configuration, not from a cache.
	Client client.Client
	// Secret is made when it is not there.
	Secret types.NamespacedName
	// Configuration is the name of the ValidatingWebhookConfiguration whose webhooks trust it.
	Configuration string
	// Hosts are the DNS names under which API servers call the webhook.
	Hosts []string
	Clock clock.Clock

	current atomic.Pointer[tls.Certificate]
}

// NeedLeaderElection says that each replica serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start looks after the certificate until the context ends. That it fails stops nobody: it is logged, and tried again.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		again := lookAgain
		if err := k.Keep(ctx); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // stopped, which is no failure
			}
			log.FromContext(ctx).Error(err, "Cannot keep the webhook's certificate", "secret", k.Secret)
			again = lookAfterErr
		}
		timer := k.Clock.NewTimer(wait.Jitter(again, 0.2))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// Keep looks once: it renews what is due, serves what there is, and has the API server trust it. Trust comes before use: a certificate of a CA
// that the API server was not told of is not served.
func (k *Keeper) Keep(ctx context.Context) error {
	kept, err := k.load(ctx)
	if err != nil {
		return err
	}
	if err := k.tell(ctx, kept.trust()); err != nil {
		return err
	}
	k.current.Store(kept.certificate())
	return nil
}

// load returns the Secret's bundle, renewed when that is due.
func (k *Keeper) load(ctx context.Context) (bundle, error) {
	var secret corev1.Secret
	err := k.Client.Get(ctx, k.Secret, &secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return bundle{}, fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	found := err == nil
	known, err := parse(secret.Data)
	if err != nil {
		if found && len(secret.Data) > 0 {
			log.FromContext(ctx).Error(err, "The webhook's certificate is spoiled, and made anew", "secret", k.Secret)
		}
		known = bundle{}
	}
	renewed, changed, err := known.renewed(k.Clock.Now(), k.Hosts)
	if err != nil || !changed {
		return renewed, err
	}
	if secret.Data, err = renewed.data(); err != nil {
		return bundle{}, err
	}
	if found {
		err = k.Client.Update(ctx, &secret)
	} else {
		secret.ObjectMeta = metav1.ObjectMeta{Name: k.Secret.Name, Namespace: k.Secret.Namespace}
		err = k.Client.Create(ctx, &secret)
	}
	if err != nil {
		return bundle{}, fmt.Errorf("write Secret %s: %w", k.Secret, err)
	}
	log.FromContext(ctx).Info("Renewed the webhook's certificate", "secret", k.Secret, "until", renewed.serving.cert.NotAfter)
	return renewed, nil
}

// tell has the API server trust the authorities. A configuration that is not there yet is told of later.
func (k *Keeper) tell(ctx context.Context, trust []byte) error {
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := k.Client.Get(ctx, types.NamespacedName{Name: k.Configuration}, &configuration); err != nil {
		return fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	changed := false
	for i := range configuration.Webhooks {
		if to := &configuration.Webhooks[i].ClientConfig; !bytes.Equal(to.CABundle, trust) {
			to.CABundle, changed = trust, true
		}
	}
	if !changed {
		return nil
	}
	if err := k.Client.Update(ctx, &configuration); err != nil {
		return fmt.Errorf("write ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	return nil
}

// Certificate is what a TLS server serves: see GetCertificate of crypto/tls.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := k.current.Load(); cert != nil {
		return cert, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Check is a readiness check: it fails until there is a certificate to serve.
func (k *Keeper) Check(*http.Request) error {
	_, err := k.Certificate(nil)
	return err
}
