package tokens

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

// patience bounds one look at a token, so that a backend without an answer does not end the looking.
const patience = 30 * time.Second

// Renewer renews the tokens in the kubeconfigs of backends, in Secrets that say so by AnnotationRenewAfter. The backend's account must be allowed to
// request tokens of itself. What fails is told once and tried again after a while, and changes nothing until then.
type Renewer struct {
	// Client writes Secrets, and reads them from a cache or not.
	Client client.Client
	// Namespace of the Secrets.
	Namespace string
	Backends  []config.Backend
	// Source reads kubeconfigs as connections do, so that none is used here that they would refuse.
	Source connection.Source
	// Request asks a backend for another token; see the function Again.
	Request func(ctx context.Context, cfg *rest.Config, token Token) (Token, error)
	// Expires is told until when the token of a backend holds, renewed here or not, and the zero time when nothing says so; nil tells nobody.
	Expires func(backend string, at time.Time)
	// Recorder gets Events of the Secrets: TokenRenewed, and TokenNotRenewed with what the log has.
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	Log      logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: one replica renews, and all use what it wrote.
func (r *Renewer) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. No backend waits for another.
func (r *Renewer) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for _, backend := range r.Backends {
		if backend.Connection.SecretRef != nil {
			group.Go(func() { r.keep(ctx, backend) })
		}
	}
	group.Wait()
	return nil
}

// keep renews the token of one backend until ctx ends.
func (r *Renewer) keep(ctx context.Context, backend config.Backend) {
	log := r.Log.WithValues("backend", backend.Name, "secret", backend.Connection.SecretRef.Name)
	ticker := r.Clock.NewTicker(interval)
	defer ticker.Stop()
	var t turn
	said := ""
	for {
		switch err := r.look(ctx, backend, &t, log); {
		case err == nil:
			said = ""
		case err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			log.Error(err, "The token of a backend is not renewed")
			r.warn(ctx, backend, said)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// warn tells whoever looks at the Secret.
func (r *Renewer) warn(ctx context.Context, backend config.Backend, message string) {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: backend.Connection.SecretRef.Name}, secret); err != nil {
		return // the log has it
	}
	r.Recorder.Eventf(secret, nil, corev1.EventTypeWarning, "TokenNotRenewed", "Renew", "%s", brief.Note("backend "+backend.Name+": "+message))
}

// look renews the token of one backend if it is time. Its error is why the token is not renewed, also while the next try waits.
func (r *Renewer) look(ctx context.Context, backend config.Backend, t *turn, log logr.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ref := backend.Connection.SecretRef
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: ref.Name}, secret); err != nil {
		r.tell(backend.Name, time.Time{})
		return client.IgnoreNotFound(err) // the connection says so
	}
	token, unread := tokenIn(secret.Data[connection.SecretKey(ref)])
	r.tell(backend.Name, token.Expires)
	after, asked, err := renewAfter(secret)
	switch {
	case !asked:
		return nil
	case err != nil:
		return err
	case unread != nil:
		return fmt.Errorf("the token in Secret %s/%s, key %s, cannot be renewed: %w; take the annotation %s off, or make the Secret anew: %s",
			r.Namespace, ref.Name, connection.SecretKey(ref), unread, AnnotationRenewAfter, connection.Anew(backend))
	}
	t.see(token)
	if t.due(r.Clock.Now(), token.Life(), after) {
		r.renew(ctx, backend, secret, token, t, log)
	}
	if t.failure == nil {
		return nil
	}
	return r.inVain(backend, token, t.failure)
}

// renew asks for another token, and remembers what came of it.
func (r *Renewer) renew(ctx context.Context, backend config.Backend, secret *corev1.Secret, token Token, t *turn, log logr.Logger) {
	next, err := r.replace(ctx, backend, secret, token)
	switch {
	case apierrors.IsConflict(err): // somebody has written it meanwhile: it is read again
	case err != nil:
		t.failed(r.Clock.Now(), token.Life(), err)
	default:
		t.renewed(r.Clock.Now(), next)
		r.tell(backend.Name, next.Expires)
		log.Info("Renewed the token of a backend", "until", next.Expires.UTC())
		r.Recorder.Eventf(secret, nil, corev1.EventTypeNormal, "TokenRenewed", "Renew", "backend %s: the token holds until %s", backend.Name,
			next.Expires.UTC().Format(time.RFC3339))
	}
}

// inVain words why a token is not renewed, and what becomes of it.
func (r *Renewer) inVain(backend config.Backend, token Token, err error) error {
	at := token.Expires.UTC().Format(time.RFC3339)
	if r.Clock.Now().Before(token.Expires) {
		return fmt.Errorf("%w; the token holds until %s, and another one is asked for until then", err, at)
	}
	return fmt.Errorf("%w; the token ended at %s: make another one with %s", err, at, connection.Anew(backend))
}

// replace asks for another token by the present one, and writes it.
func (r *Renewer) replace(ctx context.Context, backend config.Backend, secret *corev1.Secret, token Token) (Token, error) {
	cfg, _, err := r.Source.Load(ctx, backend.Connection)
	if err != nil {
		return Token{}, err
	}
	next, err := r.Request(ctx, cfg, token)
	switch {
	case apierrors.IsForbidden(err):
		return Token{}, fmt.Errorf("%w: apply config/backends/%s there, by which the account may ask for tokens of itself", err, strings.ToLower(string(backend.Type)))
	case err != nil:
		return Token{}, err
	}
	key := connection.SecretKey(backend.Connection.SecretRef)
	kubeconfig, err := with(secret.Data[key], next)
	if err != nil {
		return Token{}, err
	}
	renewed := secret.DeepCopy()
	renewed.Data[key] = kubeconfig
	switch err := r.Client.Update(ctx, renewed); {
	case apierrors.IsForbidden(err):
		return Token{}, fmt.Errorf("write Secret %s/%s: %w: name it in the Role fleetworkload-management, by which the operator may update it", secret.Namespace, secret.Name, err)
	case err != nil:
		return Token{}, fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return next, nil
}

func (r *Renewer) tell(backend string, at time.Time) {
	if r.Expires != nil {
		r.Expires(backend, at)
	}
}

// renewAfter is what a Secret says of when its token is renewed, and whether it is.
func renewAfter(secret *corev1.Secret) (after time.Duration, asked bool, err error) {
	text, asked := secret.Annotations[AnnotationRenewAfter]
	if !asked {
		return 0, false, nil
	}
	after, err = time.ParseDuration(text)
	if err != nil || after <= 0 {
		return 0, true, fmt.Errorf("annotation %s %q of Secret %s/%s: give a duration such as 19h12m", AnnotationRenewAfter, text, secret.Namespace, secret.Name)
	}
	return after, true, nil
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
