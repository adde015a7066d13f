package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClientStore makes a Store of a client that reads from the API server and not from a cache.
func ClientStore(c client.WithWatch) Store { return clientStore{c} }

type clientStore struct{ client client.WithWatch }

func (s clientStore) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GVK)
	if err := s.client.Get(ctx, ref.NamespacedName, obj); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", ref.GVK.Kind, ref.NamespacedName, err)
	}
	return obj, nil
}

func (s clientStore) Create(ctx context.Context, obj *unstructured.Unstructured) error {
	return s.client.Create(ctx, obj)
}

func (s clientStore) Update(ctx context.Context, obj *unstructured.Unstructured) error {
	return s.client.Update(ctx, obj)
}

func (s clientStore) Watch(ctx context.Context, ref Ref) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ref.GVK.GroupVersion().WithKind(ref.GVK.Kind + "List"))
	return s.client.Watch(ctx, list, client.InNamespace(ref.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", ref.Name)})
}

// Transport returns a wrapper for the HTTP transport of a driver's clients (rest.Config.Wrap) that asks the gate before
// each request. Dry runs count as reads; access reviews, discovery and watches do not count.
func Transport(gate Gate) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if kind, counts := classify(req); counts {
				if err := gate(kind, about(req)); err != nil {
					if req.Body != nil {
						_ = req.Body.Close()
					}
					if errors.Is(err, ErrNoAnswer) {
						<-req.Context().Done()
						err = req.Context().Err()
					}
					return nil, err
				}
			}
			return next.RoundTrip(req)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// about names a request, with the beginning of what it sends.
func about(req *http.Request) string {
	text := req.Method + " " + req.URL.Path
	if req.GetBody == nil {
		return text
	}
	body, err := req.GetBody()
	if err != nil {
		return text
	}
	defer func() { _ = body.Close() }()
	sent, _ := io.ReadAll(io.LimitReader(body, 4096))
	return text + " " + string(sent)
}

func classify(req *http.Request) (kind RequestKind, counts bool) {
	query := req.URL.Query()
	path := req.URL.Path
	switch {
	case strings.HasPrefix(path, "/apis/authorization.k8s.io/"), query.Get("watch") == "true", query.Get("watch") == "1":
		return ReadRequest, false
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		if query.Has("dryRun") {
			return ReadRequest, true
		}
		return WriteRequest, true
	default:
		return ReadRequest, isResource(path)
	}
}

// isResource tells resources from discovery: /api/v1/x and /apis/group/v1/x have something after the version.
func isResource(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[0] == "api" && len(parts) > 2 || parts[0] == "apis" && len(parts) > 3
}
