package connection

import (
	"net/http"
	"reflect"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// bearer sends the token that a kubeconfig has by now. With it a renewed token needs no other connection: drivers keep their caches, and the backend is
// not lost for a moment.
type bearer struct{ token atomic.Value }

// carry has a configuration's token sent by a bearer. A configuration without one, or with a file that client-go reads again, stays as it is.
func carry(cfg *rest.Config) (*rest.Config, *bearer) {
	b := &bearer{}
	if cfg.BearerToken == "" || cfg.BearerTokenFile != "" {
		return cfg, b
	}
	b.token.Store(cfg.BearerToken)
	carried := rest.CopyConfig(cfg)
	carried.BearerToken = ""
	carried.Wrap(func(next http.RoundTripper) http.RoundTripper { return bearing{b, next} })
	return carried, b
}

// take takes the token of now over when nothing else differs from before.
func (b *bearer) take(before, now *rest.Config) bool {
	if b.token.Load() == nil || now.BearerToken == "" || now.BearerTokenFile != "" {
		return false
	}
	same := rest.CopyConfig(now)
	same.BearerToken = before.BearerToken
	if !reflect.DeepEqual(before, same) {
		return false
	}
	b.token.Store(now.BearerToken)
	return true
}

type bearing struct {
	*bearer
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearing) RoundTrip(request *http.Request) (*http.Response, error) {
	token, _ := b.token.Load().(string)
	sent := request.Clone(request.Context()) // a RoundTripper must leave the request as it is
	sent.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(sent)
}

// WrappedRoundTripper lets client-go reach the transport, to close idle connections.
func (b bearing) WrappedRoundTripper() http.RoundTripper { return b.next }
