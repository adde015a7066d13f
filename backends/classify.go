package backends

import (
	"context"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Classify turns an error of a Kubernetes client into an *Error where its kind is known, and wraps it otherwise. op says what
// was attempted, such as "apply manifestwork member1/web"; err need not. What is an *Error already is returned as it is.
func Classify(op string, err error) error {
	if err == nil || CodeOf(err) != "" {
		return err
	}
	wrap := func(code Code, remedy string) error {
		return &Error{Code: code, Message: op, Remedy: remedy, Err: err}
	}
	var netErr net.Error
	switch {
	case apierrors.IsForbidden(err):
		return wrap(CodeForbidden, "grant the operator's user this right on the backend, see docs/installation.md")
	case apierrors.IsUnauthorized(err):
		return wrap(CodeUnavailable, "the backend's credentials were refused: renew its kubeconfig")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return wrap(CodeRejected, "correct the template, or the override that leads to this manifest")
	case meta.IsNoMatchError(err):
		return wrap(CodeNotReady, "install the backend's CRDs")
	case apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err),
		apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr):
		return wrap(CodeUnavailable, "check that the backend's API server is up and reachable")
	default:
		return fmt.Errorf("%s: %w", op, err)
	}
}
