package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes remember the resource version of our last write to each FleetWorkload. A pass on an older object, which the cache
// has for a moment longer, would decide anew what is decided already and end in a conflict.
type writes struct {
	mu sync.Mutex
	by map[types.NamespacedName]version
}

type version struct {
	uid             types.UID
	resourceVersion string
	at              time.Time
}

// remember is called with what the API server answered to a write, and when.
func (w *writes) remember(obj client.Object, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[types.NamespacedName]version{}
	}
	w.by[client.ObjectKeyFromObject(obj)] = version{obj.GetUID(), obj.GetResourceVersion(), now}
}

// ahead tells whether obj is from before our last write to it, and when that was. The event of that write brings the next pass, or that of
// a later one that is another operator's.
func (w *writes) ahead(obj client.Object) (since time.Time, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.by[client.ObjectKeyFromObject(obj)]
	if !known || last.uid != obj.GetUID() {
		return time.Time{}, false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last.resourceVersion)
	return last.at, err == nil && order < 0
}

// forget is called when the object is gone.
func (w *writes) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by, key)
}
