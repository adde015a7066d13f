package backendtest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// watchLog keeps when an object of a member cluster came, changed and went, by the resource versions of the cluster's
// API server, which order all of its objects.
type watchLog struct {
	s       *session
	cluster string
	ref     Ref

	mu     sync.Mutex
	events []watchEvent
}

type watchEvent struct {
	kind    watch.EventType
	version uint64
	object  *unstructured.Unstructured
}

// watchLog watches an object until the test ends.
func (s *session) watchLog(cluster string, ref Ref) *watchLog {
	s.t.Helper()
	w, err := s.env.Member(cluster).Watch(s.t.Context(), ref)
	s.noError("watch "+cluster, err)
	c := &watchLog{s: s, cluster: cluster, ref: ref}
	go func() {
		for event := range w.ResultChan() {
			c.add(event)
		}
	}()
	s.t.Cleanup(w.Stop)
	return c
}

func (c *watchLog) add(event watch.Event) {
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark {
		return
	}
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, watchEvent{event.Type, version, obj})
}

// when waits for the first event that matches, and returns its version.
func (c *watchLog) when(what string, matches func(watchEvent) bool) uint64 {
	c.s.t.Helper()
	var version uint64
	c.s.until(fmt.Sprintf("%s of %s %s on %s", what, c.ref.GVK.Kind, c.ref.Name, c.cluster), func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.IndexFunc(c.events, matches)
		if i < 0 {
			return fmt.Sprintf("saw %d other events", len(c.events))
		}
		version = c.events[i].version
		return ""
	})
	return version
}

func (c *watchLog) came() uint64 {
	c.s.t.Helper()
	return c.when("the creation", func(h watchEvent) bool { return h.kind == watch.Added })
}

func (c *watchLog) went() uint64 {
	c.s.t.Helper()
	return c.when("the deletion", func(h watchEvent) bool { return h.kind == watch.Deleted })
}

// before checks the order of two moments on one cluster.
func (s *session) before(cluster, first string, a uint64, second string, b uint64) {
	s.t.Helper()
	if a >= b {
		s.t.Errorf("%s: %s (version %d) must be before %s (version %d)", cluster, first, a, second, b)
	}
}
