package memory

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetworkload/fleetworkload/backends/backendtest"
)

// objectStore behaves like an API server where it matters here: UIDs, resource versions, generations that follow the
// spec, watches.
type objectStore struct {
	// changed is called after each change, outside the lock.
	changed func(*unstructured.Unstructured)

	mu       sync.Mutex
	objects  map[backendtest.Ref]*unstructured.Unstructured
	watchers map[backendtest.Ref][]chan watch.Event
	version  int64
}

func newObjectStore(changed func(*unstructured.Unstructured)) *objectStore {
	return &objectStore{
		changed: changed, objects: map[backendtest.Ref]*unstructured.Unstructured{}, watchers: map[backendtest.Ref][]chan watch.Event{},
	}
}

// watchBuffer is how many events a watcher may lag behind; one that lags more is closed.
const watchBuffer = 1000

// get returns nil for an object that is not there.
func (m *objectStore) get(ref backendtest.Ref) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[ref].DeepCopy()
}

// list returns the objects of a kind, sorted.
func (m *objectStore) list(kind string) []*unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*unstructured.Unstructured
	for ref, obj := range m.objects {
		if kind == "" || ref.GVK.Kind == kind {
			found = append(found, obj.DeepCopy())
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()),
			cmp.Compare(a.GetKind(), b.GetKind()))
	})
	return found
}

// create adds an object.
func (m *objectStore) create(obj *unstructured.Unstructured) error {
	if err := validate(obj); err != nil {
		return err
	}
	created := obj.DeepCopy()
	ref := backendtest.RefOf(created)
	created.SetUID(uuid.NewUUID())
	created.SetGeneration(1)
	delete(created.Object, "status")
	m.mu.Lock()
	if _, taken := m.objects[ref]; taken {
		m.mu.Unlock()
		return apierrors.NewAlreadyExists(resourceOf(ref), ref.Name)
	}
	m.put(watch.Added, created)
	m.mu.Unlock()
	m.changed(created)
	return nil
}

// replace updates all but the status. An update that changes nothing is none.
func (m *objectStore) replace(obj *unstructured.Unstructured) error {
	if err := validate(obj); err != nil {
		return err
	}
	return m.update(obj, func(live *unstructured.Unstructured) *unstructured.Unstructured {
		updated := obj.DeepCopy()
		updated.SetUID(live.GetUID())
		updated.SetGeneration(live.GetGeneration())
		delete(updated.Object, "status")
		if status, ok := live.Object["status"]; ok {
			updated.Object["status"] = status
		}
		// A Deployment's generation follows its annotations too.
		annotated := obj.GetKind() == deploymentKind && !maps.Equal(live.GetAnnotations(), updated.GetAnnotations())
		if annotated || !reflect.DeepEqual(live.Object["spec"], updated.Object["spec"]) {
			updated.SetGeneration(live.GetGeneration() + 1)
		}
		return updated
	})
}

// updateStatus replaces the status only.
func (m *objectStore) updateStatus(obj *unstructured.Unstructured, status map[string]any) error {
	return m.update(obj, func(live *unstructured.Unstructured) *unstructured.Unstructured {
		updated := live.DeepCopy()
		updated.Object["status"] = status
		return updated
	})
}

func (m *objectStore) update(obj *unstructured.Unstructured, next func(live *unstructured.Unstructured) *unstructured.Unstructured) error {
	ref := backendtest.RefOf(obj)
	m.mu.Lock()
	live, ok := m.objects[ref]
	if !ok {
		m.mu.Unlock()
		return apierrors.NewNotFound(resourceOf(ref), ref.Name)
	}
	if v := obj.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		m.mu.Unlock()
		return apierrors.NewConflict(resourceOf(ref), ref.Name, fmt.Errorf("version %s is not the newest", v))
	}
	updated := next(live)
	updated.SetResourceVersion(live.GetResourceVersion())
	if reflect.DeepEqual(live.Object, updated.Object) {
		m.mu.Unlock()
		return nil
	}
	m.put(watch.Modified, updated)
	m.mu.Unlock()
	m.changed(updated)
	return nil
}

// remove deletes an object; one that is not there is fine.
func (m *objectStore) remove(ref backendtest.Ref) {
	m.mu.Lock()
	obj, ok := m.objects[ref]
	if ok {
		delete(m.objects, ref)
		m.version++
		obj = obj.DeepCopy() // somebody may still be reading it
		obj.SetResourceVersion(strconv.FormatInt(m.version, 10))
		m.send(watch.Deleted, obj)
	}
	m.mu.Unlock()
	if ok {
		m.changed(obj)
	}
}

// put stores under the lock.
func (m *objectStore) put(event watch.EventType, obj *unstructured.Unstructured) {
	m.version++
	obj.SetResourceVersion(strconv.FormatInt(m.version, 10))
	m.objects[backendtest.RefOf(obj)] = obj
	m.send(event, obj)
}

func (m *objectStore) send(event watch.EventType, obj *unstructured.Unstructured) {
	ref := backendtest.RefOf(obj)
	m.watchers[ref] = slices.DeleteFunc(m.watchers[ref], func(w chan watch.Event) bool {
		select {
		case w <- watch.Event{Type: event, Object: obj.DeepCopy()}:
			return false
		default:
			close(w)
			return true
		}
	})
}

// watch reports the object as it is, and its changes.
func (m *objectStore) watch(ref backendtest.Ref) watch.Interface {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := make(chan watch.Event, watchBuffer)
	if obj, ok := m.objects[ref]; ok {
		events <- watch.Event{Type: watch.Added, Object: obj.DeepCopy()}
	}
	m.watchers[ref] = append(m.watchers[ref], events)
	return &objectWatch{store: m, ref: ref, events: events}
}

type objectWatch struct {
	store  *objectStore
	ref    backendtest.Ref
	events chan watch.Event
}

// ResultChan implements watch.Interface.
func (w *objectWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *objectWatch) Stop() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	all := w.store.watchers[w.ref]
	if i := slices.Index(all, w.events); i >= 0 {
		w.store.watchers[w.ref] = slices.Delete(all, i, i+1)
		close(w.events)
	}
}

// validate refuses what every API server refuses: a selector that does not select the pods.
func validate(obj *unstructured.Unstructured) error {
	selector, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "selector", "matchLabels")
	labels, templated, _ := unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "labels")
	for key, value := range selector {
		if templated && labels[key] != value {
			return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), nil)
		}
	}
	return nil
}

func resourceOf(ref backendtest.Ref) schema.GroupResource {
	return schema.GroupResource{Group: ref.GVK.Group, Resource: ref.GVK.Kind}
}
