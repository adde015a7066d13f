// Package expectations remembers what a driver has written until its cache shows it. Who decides on what the cache had before writes the same
// again, which the API server answers with Conflict or AlreadyExists, or takes a gate for closed that has just been opened.
//
// It is a help and no position: a new process begins with a cache that has everything.
package expectations

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long a cache is waited for before the API server is asked whether it will show the object: one that is gone, or has lost
// its labels, before the cache had it, makes no event.
const Patience = 10 * time.Second

// lagging is how long a watch may be behind what was written before the API server is asked nevertheless, and again after as long: versions may
// have begun anew without anybody having seen it. A watch that was cut off is behind until all objects are listed again, which can take a busy API
// server minutes.
const lagging = 60 * Patience

// Key is an object of a backend.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// KeyOf is the Key of an object.
func KeyOf(obj client.Object) Key {
	return Key{obj.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(obj)}
}

// Expectations are the writes that a cache is to show. The zero value has none, and goes by the real clock.
type Expectations struct {
	// Clock is another one than the real one.
	Clock clock.PassiveClock

	mu    sync.Mutex
	by    map[Key]expectation
	watch progress
}

// progress is how far a watch has come.
type progress struct {
	reached func() string
	// version was the last that was seen, and back is when it was found to be an earlier one than before.
	version string
	back    time.Time
}

// expectation is a version that was written, when that was, and when it was asked for last.
type expectation struct {
	version      string
	wrote, asked time.Time
}

// Watch names the newest resource version that the cache's watch has brought, of whatever object; empty when it is not known. While that is
// older than what was written, the cache is late for all objects alike, and asking for each of them would make a busy API server later still.
func (e *Expectations) Watch(reached func() string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch = progress{reached: reached}
}

// Wrote notes an object as the API server has answered to a write.
func (e *Expectations) Wrote(obj client.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[Key]expectation{}
	}
	now := e.now()
	e.watch.look(now)
	e.by[KeyOf(obj)] = expectation{version: obj.GetResourceVersion(), wrote: now, asked: now}
}

// Forget expects nothing of an object any more: it is being deleted, or not there.
func (e *Expectations) Forget(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.by, key)
}

// Behind tells whether a cache, whose object is live or nil, does not show yet what was written. After Patience, and again after as long,
// version asks the API server for the resource version of the object that the cache will show; empty when there is none. When the cache has
// just that, nothing is awaited: versions begin anew on an API server that comes back from a backup. Whoever gets true looks again after
// Patience.
func (e *Expectations) Behind(key Key, live metav1.Object, version func() (string, error)) (bool, error) {
	written, patient := e.awaits(key, live)
	if !written || patient {
		return written, nil
	}
	now, err := version()
	if err != nil {
		return true, fmt.Errorf("look for %s %s: %w", key.Kind, key.NamespacedName, err)
	}
	behind := now != "" && (live == nil || live.GetResourceVersion() != now)
	e.asked(key, behind)
	return behind, nil
}

// awaits tells whether a write is not shown, and whether there is no need to ask for it yet.
func (e *Expectations) awaits(key Key, live metav1.Object) (written, patient bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, found := e.by[key]
	if !found {
		return false, false
	}
	if live != nil && !older(live.GetResourceVersion(), x.version) {
		delete(e.by, key)
		return false, false
	}
	return true, e.now().Sub(x.asked) < Patience || e.watch.late(x, e.now())
}

// look notes how far the watch has come.
func (p *progress) look(now time.Time) {
	if p.reached == nil {
		return
	}
	if version := p.reached(); version != p.version {
		if older(version, p.version) {
			p.back = now // the API server comes from a backup
		}
		p.version = version
	}
}

// late tells whether the watch has not come to what was written yet, and will. Meanwhile it is of no use that the API server has an object:
// the cache does not show it before the watch is there. That it has none is found when the watch is.
func (p *progress) late(x expectation, now time.Time) bool {
	p.look(now)
	return older(p.version, x.version) && x.wrote.After(p.back) && now.Sub(x.asked) < lagging
}

func (e *Expectations) asked(key Key, behind bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, found := e.by[key]
	switch {
	case !found:
	case behind:
		x.asked = e.now()
		e.by[key] = x
	default:
		delete(e.by, key)
	}
}

func (e *Expectations) now() time.Time {
	if e.Clock == nil {
		return time.Now()
	}
	return e.Clock.Now()
}

// older tells whether a version of an object comes before another one. What cannot be compared does not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
