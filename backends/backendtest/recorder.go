package backendtest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// recorder watches one member object and keeps what it saw, so that a state that lasts for a moment only is seen too.
type recorder struct {
	s       *session
	cluster string
	plan    plan

	mu     sync.Mutex
	seen   []version
	closed bool
}

// version is a state of the object that its controllers would act on.
type version struct {
	uid        types.UID
	generation int64
	// spec is a hash. A Deployment gets a new generation for a new annotation too, which touches no pod.
	spec    string
	deleted bool
}

func versionOf(obj *unstructured.Unstructured) version {
	hash := fnv.New64a()
	fmt.Fprint(hash, obj.Object["spec"])
	return version{uid: obj.GetUID(), generation: obj.GetGeneration(), spec: strconv.FormatUint(hash.Sum64(), 16)}
}

// record watches the plan's object on a cluster until the test ends.
func (s *session) record(cluster string, p plan) *recorder {
	s.t.Helper()
	w, err := s.env.Member(cluster).Watch(s.t.Context(), p.ref())
	s.noError("watch "+cluster, err)
	r := &recorder{s: s, cluster: cluster, plan: p}
	go func() {
		for event := range w.ResultChan() {
			r.add(event)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.closed = true
	}()
	s.t.Cleanup(w.Stop)
	return r
}

func (r *recorder) add(event watch.Event) {
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark {
		return
	}
	v := versionOf(obj)
	v.deleted = event.Type == watch.Deleted
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.seen, v) {
		r.seen = append(r.seen, v)
	}
}

// caughtUp returns what was seen, once the newest is the member's object as it is now.
func (r *recorder) caughtUp() []version {
	r.s.t.Helper()
	var seen []version
	r.s.until("the watch on "+r.cluster, func() string {
		now := versionOf(r.s.mustMember(r.cluster, r.plan))
		r.mu.Lock()
		defer r.mu.Unlock()
		seen = slices.Clone(r.seen)
		switch {
		case r.closed:
			r.s.t.Fatalf("the watch on %s ended", r.cluster)
			return ""
		case !slices.Contains(seen, now):
			return fmt.Sprintf("saw %v, the object is at %v", seen, now)
		default:
			return ""
		}
	})
	return seen
}

// wantSpecs checks that the object had that many specs and was the same object all the time. Marks may have changed.
func (r *recorder) wantSpecs(want int) {
	r.s.t.Helper()
	seen := r.caughtUp()
	var specs []version
	for _, v := range seen {
		v.generation = 0
		if !slices.Contains(specs, v) {
			specs = append(specs, v)
		}
	}
	if len(specs) != want {
		r.s.t.Errorf("%s: the object went through %d specs, want %d: %+v", r.cluster, len(specs), want, seen)
	}
}

// wantVersions checks that the object was seen in that many states, none of them deleted.
func (r *recorder) wantVersions(want int) {
	r.s.t.Helper()
	if seen := r.caughtUp(); len(seen) != want {
		r.s.t.Errorf("%s: the object went through %d states, want %d: %+v", r.cluster, len(seen), want, seen)
	}
}
