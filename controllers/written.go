package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes remember the resource version of the last write to each FleetWorkload, ours or that of an operator that had it before. A pass on an older object, which the cache
// has for a moment longer, would decide anew what is decided already and end in a conflict.
type writes struct {
	mu sync.Mutex
	by map[types.NamespacedName]version
}

type version struct {
	uid             types.UID
	resourceVersion string
	at              time.Time
	// awaited is true once a pass has found the cache without it.
	awaited bool
	// unknown is true while another operator writes the object, and when the cache has lacked our own write for long: what the last write is has to be read.
	unknown bool
	// goesOn is true while the pass that has written it goes on with it, so that its event brings no other one.
	goesOn bool
}

// remember is called with what the API server answered to a write, or has after the writes of another operator, and when. goesOn tells whether the
// pass that has written goes on with the object.
func (w *writes) remember(obj client.Object, now time.Time, goesOn bool) {
	w.set(client.ObjectKeyFromObject(obj), version{uid: obj.GetUID(), resourceVersion: obj.GetResourceVersion(), at: now, goesOn: goesOn})
}

// leave is called when the object is another operator's, or when the last write to it is in doubt.
func (w *writes) leave(key types.NamespacedName) { w.set(key, version{unknown: true}) }

func (w *writes) set(key types.NamespacedName, v version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[types.NamespacedName]version{}
	}
	w.by[key] = v
}

// unknown tells whether the last write to the object was unknown when it was last looked at.
func (w *writes) unknown(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by[key].unknown
}

// ahead tells whether obj is from before the last write that is known, and when that was. The event of that write brings the next pass.
func (w *writes) ahead(obj client.Object) (since time.Time, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.by[client.ObjectKeyFromObject(obj)]
	if !known || last.uid != obj.GetUID() {
		return time.Time{}, false
	}
	if is = last.older(obj); is {
		last.awaited = true
		w.by[client.ObjectKeyFromObject(obj)] = last
	}
	return last.at, is
}

// shows tells whether obj is as it was last written, and no pass has waited for that.
func (w *writes) shows(obj client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.by[client.ObjectKeyFromObject(obj)]
	return !last.awaited && !last.unknown && last.uid == obj.GetUID() && last.resourceVersion == obj.GetResourceVersion()
}

// goneOn tells whether obj is as it was last written, by a pass that went on with it.
func (w *writes) goneOn(obj client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.by[client.ObjectKeyFromObject(obj)]
	return last.goesOn && !last.awaited && last.uid == obj.GetUID() && last.resourceVersion == obj.GetResourceVersion()
}

// before tells whether obj is from before the last write, if that was made after since. It was made upon the newest object there was, so that a pass
// has seen obj.
func (w *writes) before(obj client.Object, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.by[client.ObjectKeyFromObject(obj)]
	return known && last.at.After(since) && last.older(obj)
}

// older tells whether obj is from before this version.
func (v version) older(obj client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), v.resourceVersion)
	return v.uid == obj.GetUID() && err == nil && order < 0
}

// last is when the object was last written, as far as is known.
func (w *writes) last(key types.NamespacedName) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by[key].at
}

// forget is called when the object is gone.
func (w *writes) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by, key)
}
