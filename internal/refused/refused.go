// Package refused knows what an API server does not let a cache list and watch. Informers try again for ever, show what they had, and say why only
// in the log.
package refused

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/fleetworkload/fleetworkload/backends"
)

// patience is how long a list or watch is refused before it counts. An API server that has just started refuses everybody for a moment, until it
// has read its roles.
const patience = 5 * time.Second

// OnManagement is the Remedy where the API server is the management cluster's.
const OnManagement = "grant the operator's ServiceAccount this right on the management cluster, see config/rbac/management"

// Reads are the lists and watches that are refused again and again. The zero value has none, is a backend's, and goes by the real clock.
type Reads struct {
	// Remedy is what helps, if it is not a backend's right.
	Remedy string
	// Clock is another one than the real one.
	Clock clock.PassiveClock

	mu  sync.Mutex
	all map[read]refusal
	// changed is told when one is refused, or granted again.
	changed func()
}

type read struct {
	schema.GroupResource
	verb string
}

// refusal is that of one read: since when, and whether it counts.
type refusal struct {
	since  time.Time
	counts bool
}

// Notify has changed called when a list or watch is refused, or granted again.
func (r *Reads) Notify(changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
}

// Err is a Forbidden that names what is refused of these resources, or of all when none is given; nil when nothing is.
func (r *Reads) Err(resources ...schema.GroupResource) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rights []string
	for one, refusal := range r.all {
		if !refusal.counts {
			continue
		}
		if len(resources) == 0 || slices.Contains(resources, one.GroupResource) {
			rights = append(rights, one.verb+" "+one.String())
		}
	}
	if len(rights) == 0 {
		return nil
	}
	slices.Sort(rights)
	return &backends.Error{
		Code: backends.CodeForbidden, Message: strings.Join(rights, ", "), Err: errors.New("the API server does not let the operator's user do this"),
		Remedy: cmp.Or(r.Remedy, "grant the operator's user this right on the backend, see docs/installation.md"),
	}
}

// Client is like one, and learns from the answers that it gets. It is for a cache, which asks again until it is granted: what another client was
// refused once would be so for ever.
func (r *Reads) Client(c *http.Client) *http.Client {
	learning := *c
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	learning.Transport = r.wrap(next)
	return &learning
}

func (r *Reads) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err == nil && request.Method == http.MethodGet {
			if one, is := readOf(request); is {
				r.answered(one, answer.StatusCode)
			}
		}
		return answer, err
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

func (r *Reads) answered(one read, status int) {
	r.mu.Lock()
	was, known := r.all[one]
	is := was
	switch {
	case status == http.StatusForbidden && !known:
		is.since = r.now()
	case status == http.StatusForbidden:
		is.counts = r.now().Sub(was.since) >= patience
	case status < http.StatusBadRequest:
		is = refusal{}
	}
	if one.verb == "watch" && status < http.StatusBadRequest {
		// An informer lists only where it could not stream the list: it will not ask again for what it has now.
		list := read{one.GroupResource, "list"}
		was.counts = was.counts || r.all[list].counts
		delete(r.all, list)
	}
	if is == (refusal{}) {
		delete(r.all, one)
	} else {
		if r.all == nil {
			r.all = map[read]refusal{}
		}
		r.all[one] = is
	}
	changed := r.changed
	r.mu.Unlock()
	if changed != nil && is.counts != was.counts {
		changed()
	}
}

func (r *Reads) now() time.Time {
	if r.Clock == nil {
		return clock.RealClock{}.Now()
	}
	return r.Clock.Now()
}

// readOf is the list or watch that a GET asks for; is is false when it asks for something else
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris).
func readOf(request *http.Request) (one read, is bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	for i, part := range parts { // an API server may be under a path of a proxy
		switch {
		case part == "api" && i+2 < len(parts):
			parts = parts[i+2:]
		case part == "apis" && i+3 < len(parts):
			one.Group, parts = parts[i+1], parts[i+3:]
		default:
			continue
		}
		if parts[0] == "namespaces" && len(parts) > 2 {
			parts = parts[2:]
		}
		one.Resource, one.verb = parts[0], "list"
		if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			one.verb = "watch"
		}
		return one, len(parts) == 1
	}
	return one, false
}
