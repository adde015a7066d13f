// Package sources reads what the pods of workloads refer to from the management cluster. It watches metadata only, of
// kinds that are asked for, and reads a content when it is new: nothing else of ConfigMaps and Secrets is kept in memory.
package sources

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/refused"
)

// syncPatience is how long a call waits for the first list of a kind.
const syncPatience = 3 * time.Second

// Ref names an object on the management cluster.
type Ref struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// Options of a Reader.
type Options struct {
	// Namespaces are those that are watched; nil means all.
	Namespaces map[string]cache.Config
	// Notify is called with a FleetWorkload when something that it refers to has come, changed or gone.
	Notify func(types.NamespacedName)
}

// Reader reads objects, and knows who refers to them.
type Reader struct {
	metadata cache.Cache
	live     client.Client
	notify   func(types.NamespacedName)
	index    index
	// refused is what the API server does not let metadata list and watch.
	refused refused.Reads

	mu       sync.Mutex
	watched  map[schema.GroupVersionKind]bool
	contents map[Ref]*unstructured.Unstructured
}

// New returns a Reader of the management cluster. It sends nothing; Start must run for it to be of use.
func New(cfg *rest.Config, opts Options) (*Reader, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for dependencies: %w", err)
	}
	live, err := client.New(cfg, client.Options{Scheme: runtime.NewScheme(), HTTPClient: backends.Bounded(httpClient)})
	if err != nil {
		return nil, fmt.Errorf("client for dependencies: %w", err)
	}
	r := &Reader{
		live: live, notify: opts.Notify, refused: refused.Reads{Remedy: refused.OnManagement},
		watched: map[schema.GroupVersionKind]bool{}, contents: map[Ref]*unstructured.Unstructured{},
	}
	r.metadata, err = cache.New(cfg, cache.Options{
		Scheme: runtime.NewScheme(), Mapper: live.RESTMapper(), HTTPClient: r.refused.Client(httpClient),
		DefaultNamespaces: opts.Namespaces, DefaultTransform: strip,
	})
	if err != nil {
		return nil, fmt.Errorf("cache for dependencies: %w", err)
	}
	r.refused.Notify(func() {
		for _, user := range r.index.allUsers() {
			r.notify(user)
		}
	})
	return r, nil
}

// strip keeps what identifies an object and its version. kubectl writes whole Secrets into an annotation.
func strip(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetLabels(nil)
		o.SetAnnotations(nil)
		o.SetManagedFields(nil)
		o.SetOwnerReferences(nil)
		o.SetFinalizers(nil)
	}
	return obj, nil
}

// Start runs the watches until ctx ends.
func (r *Reader) Start(ctx context.Context) error { return r.metadata.Start(ctx) }

// NeedLeaderElection makes the manager start it on the leader only.
func (r *Reader) NeedLeaderElection() bool { return true }

// Get returns an object as it is now, nil when there is none. It must not be changed. The API server is asked only for
// contents that are new.
func (r *Reader) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if err := r.watch(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	if err := r.refusedOf(ref.GroupVersionKind); err != nil {
		return nil, err
	}
	seen := partial(ref.GroupVersionKind)
	err := r.metadata.Get(ctx, ref.NamespacedName, seen)
	if apierrors.IsNotFound(err) {
		r.forget(ref)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s %s: %w", ref.Kind, ref.NamespacedName, err)
	}
	r.mu.Lock()
	known := r.contents[ref]
	r.mu.Unlock()
	if known != nil && known.GetUID() == seen.UID && known.GetResourceVersion() == seen.ResourceVersion {
		return known, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	err = r.live.Get(ctx, ref.NamespacedName, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil // the watch will tell
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.NamespacedName, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contents[ref] = obj
	return obj, nil
}

// Refer records what a FleetWorkload refers to; nothing, when it is gone.
func (r *Reader) Refer(fleetWorkload types.NamespacedName, refs []Ref) {
	for _, unused := range r.index.set(fleetWorkload, refs) {
		r.forget(unused)
	}
}

func (r *Reader) forget(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.contents, ref)
}

func partial(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

// watch watches a kind from the first time that it is asked for.
func (r *Reader) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	r.mu.Lock()
	watched := r.watched[gvk]
	r.mu.Unlock()
	if watched {
		return nil
	}
	informer, err := r.metadata.GetInformer(ctx, partial(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	wait, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if !toolscache.WaitForCacheSync(wait.Done(), informer.HasSynced) {
		return r.whyNot(ctx, gvk)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[gvk] {
		return nil
	}
	if _, err := informer.AddEventHandler(r.handler(gvk)); err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	r.watched[gvk] = true
	return nil
}

// refusedOf is what the API server does not let the cache of a kind list and watch.
func (r *Reader) refusedOf(gvk schema.GroupVersionKind) error {
	if r.refused.Err() == nil {
		return nil
	}
	mapping, err := r.live.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("find out how %s is read: %w", gvk.Kind, err)
	}
	return r.refused.Err(mapping.Resource.GroupResource())
}

// whyNot asks the API server itself: informers do not tell.
func (r *Reader) whyNot(ctx context.Context, gvk schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := r.live.List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	return fmt.Errorf("the list of %s on the management cluster is not read yet", gvk.Kind)
}

func (r *Reader) handler(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
	tell := func(obj any) {
		o, ok := obj.(client.Object)
		if !ok {
			return
		}
		for _, user := range r.index.users(Ref{gvk, client.ObjectKeyFromObject(o)}) {
			r.notify(user)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell,
		UpdateFunc: func(before, after any) {
			a, okA := before.(client.Object)
			b, okB := after.(client.Object)
			if okA && okB && a.GetResourceVersion() != b.GetResourceVersion() {
				tell(after)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			tell(obj)
		},
	}
}
