package tokens

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

// interval is how often tokens are looked at.
const interval = time.Minute

// Renewer renews the tokens in the kubeconfigs of backends, in Secrets that say so by AnnotationRenewAfter. The backend's account must be allowed to
// request tokens of itself. What fails is tried again each minute, and changes nothing until then.
type Renewer struct {
	// Client writes Secrets, and reads them from a cache or not.
	Client client.Client
	// Namespace of the Secrets.
	Namespace string
	Backends  []config.Backend
	// Source reads kubeconfigs as connections do, so that none is used here that they would refuse.
	Source connection.Source
	// Request asks a backend for another token; see the function Request.
	Request func(ctx context.Context, cfg *rest.Config, token Token) (Token, error)
	// Expires is told until when the token of a backend holds; nil tells nobody.
	Expires func(backend string, at time.Time)
	Clock   clock.WithTicker
	Log     logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: one replica renews, and all use what it wrote.
func (r *Renewer) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (r *Renewer) Start(ctx context.Context) error {
	ticker := r.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		r.renewAll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (r *Renewer) renewAll(ctx context.Context) {
	for _, backend := range r.Backends {
		if backend.Connection.SecretRef == nil {
			continue
		}
		log := r.Log.WithValues("backend", backend.Name, "secret", backend.Connection.SecretRef.Name)
		if err := r.renew(ctx, backend, log); err != nil && ctx.Err() == nil {
			log.Error(err, "Renew the token of a backend")
		}
	}
}

// renew renews the token of one backend if it is time.
func (r *Renewer) renew(ctx context.Context, backend config.Backend, log logr.Logger) error {
	ref := backend.Connection.SecretRef
	key := ref.Key
	if key == "" {
		key = connection.DefaultSecretKey
	}
	var secret corev1.Secret
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: ref.Name}, &secret); err != nil {
		return client.IgnoreNotFound(err) // the connection says so
	}
	text, asked := secret.Annotations[AnnotationRenewAfter]
	if !asked {
		return nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after <= 0 {
		return fmt.Errorf("annotation %s %q of Secret %s/%s: give a duration such as 19h12m", AnnotationRenewAfter, text, r.Namespace, ref.Name)
	}
	token, err := tokenIn(secret.Data[key])
	if err != nil {
		return fmt.Errorf("the token in Secret %s/%s, key %s, cannot be renewed: %w; take the annotation %s off, or make the Secret anew with kubectl fw kubeconfig",
			r.Namespace, ref.Name, key, err, AnnotationRenewAfter)
	}
	r.tell(backend.Name, token)
	if r.Clock.Now().Before(token.Issued.Add(after)) {
		return nil
	}
	next, err := r.replace(ctx, backend, &secret, key, token)
	switch {
	case apierrors.IsConflict(err):
		return nil // somebody has written it meanwhile: it is read again
	case err != nil:
		return fmt.Errorf("%w; it holds until %s. The account needs the right to create serviceaccounts/token of itself on the backend; "+
			"kubectl fw kubeconfig %s makes a new one", err, token.Expires.UTC().Format(time.RFC3339), backend.Name)
	}
	r.tell(backend.Name, next)
	log.Info("Renewed the token of a backend", "until", next.Expires.UTC())
	return nil
}

// replace asks for another token by the present one, and writes it.
func (r *Renewer) replace(ctx context.Context, backend config.Backend, secret *corev1.Secret, key string, token Token) (Token, error) {
	cfg, _, err := r.Source.Load(ctx, backend.Connection)
	if err != nil {
		return Token{}, err
	}
	next, err := r.Request(ctx, cfg, token)
	if err != nil {
		return Token{}, err
	}
	kubeconfig, err := with(secret.Data[key], next)
	if err != nil {
		return Token{}, err
	}
	renewed := secret.DeepCopy()
	renewed.Data[key] = kubeconfig
	if err := r.Client.Update(ctx, renewed); err != nil {
		return Token{}, fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return next, nil
}

func (r *Renewer) tell(backend string, token Token) {
	if r.Expires != nil {
		r.Expires(backend, token.Expires)
	}
}

func tokenIn(raw []byte) (Token, error) {
	_, user, err := of(raw)
	if err != nil {
		return Token{}, err
	}
	return Read(user.Token)
}

// Again asks for a token of the same account and with the same life.
func Again(ctx context.Context, cfg *rest.Config, token Token) (Token, error) {
	return Request(ctx, cfg, token.Account, token.Life())
}
