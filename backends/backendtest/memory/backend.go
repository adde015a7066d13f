// Package memory is a scriptable backend in memory, held to the conformance suite, for tests that need a driver and no control plane.
package memory

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// Options configure a Backend.
type Options struct {
	// Clusters are the fleet to begin with. Ready is True unless it says otherwise.
	Clusters []backends.Cluster
	// Features that the drivers declare. Nil means all.
	Features backends.Features
	// Groups are the API groups served. Nil means apps, batch, apps.kruise.io and argoproj.io.
	Groups []string
	// Auto makes every write take effect at once, on members and in reports. Without it nothing moves until Step.
	Auto bool
	// LateSync makes drivers answer NotReady until they run.
	LateSync bool
	// Members is another backend whose member clusters this one has too, for hand-overs. Each backend steps for itself.
	Members *Backend
}

// Operation is a method of a driver.
type Operation string

// The operations that FailNext can make fail.
const (
	OpClusters Operation = "Clusters"
	OpObserve  Operation = "Observe"
	OpApply    Operation = "Apply"
	OpDelete   Operation = "Delete"
)

// Backend is a backend in memory, with its member clusters. It chooses clusters, carries manifests out, reports
// back and can be scripted. Deployments and CloneSets become ready on the members by themselves. All methods may be
// called concurrently.
type Backend struct {
	options Options
	// id tells the backend's member objects from those of others.
	id string
	// members may be shared with other backends.
	members *memberSet
	// backend holds placements and orders.
	backend *objectStore

	// stepping is held by Step, so that steps follow one another.
	stepping sync.Mutex

	mu        sync.Mutex
	clusters  []backends.Cluster
	failures  map[Operation][]error
	listeners map[*listener]bool
	writes    int64
}

// New returns a backend without workloads.
func New(options Options) *Backend {
	if options.Features == nil {
		options.Features = backends.Features{
			backends.FeatureHold: true, backends.FeatureModes: true, backends.FeatureClusterScoped: true,
		}
	}
	if options.Groups == nil {
		options.Groups = []string{"apps", "batch", "apps.kruise.io", "argoproj.io"}
	}
	b := &Backend{
		options: options, id: string(uuid.NewUUID()),
		members:  &memberSet{stores: map[string]*objectStore{}, readyCap: map[string]int64{}},
		failures: map[Operation][]error{}, listeners: map[*listener]bool{},
	}
	if options.Members != nil {
		b.members = options.Members.members
	}
	b.backend = newObjectStore(b.backendChanged)
	for _, c := range options.Clusters {
		b.SetCluster(c)
	}
	return b
}

// Driver returns a new driver connected to the backend.
func (b *Backend) Driver() *Driver {
	return b.GatedDriver(func(backendtest.RequestKind, string) error { return nil })
}

// GatedDriver returns a new driver that asks the gate before each write.
func (b *Backend) GatedDriver(gate backendtest.Gate) *Driver {
	return &Driver{backend: b, gate: gate}
}

// Writes counts the writes of all drivers so far.
func (b *Backend) Writes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

// FailNext makes the next call of that operation, by any driver, fail with err. Several calls queue up.
func (b *Backend) FailNext(op Operation, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures[op] = append(b.failures[op], err)
}

// SetCluster adds a cluster, or changes labels, taints, readiness and the like of one that is there. A cluster that is
// not Ready neither gets nor reports anything; what it runs goes on.
func (b *Backend) SetCluster(c backends.Cluster) {
	c.Ready = cmp.Or(c.Ready, metav1.ConditionTrue)
	c.Labels, c.Attributes, c.Taints = maps.Clone(c.Labels), maps.Clone(c.Attributes), slices.Clone(c.Taints)
	b.mu.Lock()
	b.clusters = slices.DeleteFunc(b.clusters, func(old backends.Cluster) bool { return old.Name == c.Name })
	b.clusters = append(b.clusters, c)
	slices.SortFunc(b.clusters, func(x, y backends.Cluster) int { return cmp.Compare(x.Name, y.Name) })
	b.mu.Unlock()
	b.members.store(c.Name)
	b.fleetChanged()
}

// RemoveCluster makes the backend forget a cluster. Its member objects stay.
func (b *Backend) RemoveCluster(name string) {
	b.mu.Lock()
	b.clusters = slices.DeleteFunc(b.clusters, func(c backends.Cluster) bool { return c.Name == name })
	b.mu.Unlock()
	b.fleetChanged()
}

// LimitReady lets no workload on the cluster have more ready replicas than that, until it is called with -1.
func (b *Backend) LimitReady(cluster string, replicas int64) {
	b.members.limit(cluster, replicas)
	b.settleIfAuto()
}

// Member gives access to the objects of a member cluster.
func (b *Backend) Member(cluster string) backendtest.Store {
	return outsider{objects: b.members.store(cluster), changed: b.settleIfAuto}
}

// Objects gives access to the backend's own objects.
func (b *Backend) Objects() backendtest.Store {
	return outsider{objects: b.backend, changed: b.settleIfAuto}
}

// Owned lists the backend's objects of a workload.
func (b *Backend) Owned(_ context.Context, query backends.Query) ([]*unstructured.Unstructured, error) {
	return slices.DeleteFunc(b.backend.list(""), func(obj *unstructured.Unstructured) bool {
		return !ours(obj, query.Key)
	}), nil
}

// memberSet is the member clusters.
type memberSet struct {
	mu       sync.Mutex
	stores   map[string]*objectStore
	readyCap map[string]int64
}

// store returns the cluster's objects.
func (m *memberSet) store(cluster string) *objectStore {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stores[cluster] == nil {
		m.stores[cluster] = newObjectStore(func(*unstructured.Unstructured) {})
	}
	return m.stores[cluster]
}

func (m *memberSet) limit(cluster string, replicas int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if replicas < 0 {
		delete(m.readyCap, cluster)
	} else {
		m.readyCap[cluster] = replicas
	}
}

// simulate lets what runs on the members get on.
func (m *memberSet) simulate() (changed bool) {
	m.mu.Lock()
	stores, limits := maps.Clone(m.stores), maps.Clone(m.readyCap)
	m.mu.Unlock()
	for name, store := range stores {
		limit, limited := limits[name]
		for _, obj := range store.list("") {
			status := simulate(obj, limit, limited)
			if !reflect.DeepEqual(obj.Object["status"], status) {
				changed = settled(store.updateStatus(obj, status)) || changed
			}
		}
	}
	return changed
}

// outsider is a objectStore as somebody else uses it. In auto mode a change takes effect at once.
type outsider struct {
	objects *objectStore
	changed func()
}

func (s outsider) Get(_ context.Context, ref backendtest.Ref) (*unstructured.Unstructured, error) {
	if obj := s.objects.get(ref); obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(resourceOf(ref), ref.Name)
}

func (s outsider) Create(_ context.Context, obj *unstructured.Unstructured) error {
	defer s.changed()
	return s.objects.create(obj)
}

func (s outsider) Update(_ context.Context, obj *unstructured.Unstructured) error {
	defer s.changed()
	return s.objects.replace(obj)
}

func (s outsider) Watch(_ context.Context, ref backendtest.Ref) (watch.Interface, error) {
	return s.objects.watch(ref), nil
}

func (b *Backend) fleet() []backends.Cluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	clusters := slices.Clone(b.clusters)
	for i := range clusters {
		c := &clusters[i]
		c.Labels, c.Attributes, c.Taints = maps.Clone(c.Labels), maps.Clone(c.Attributes), slices.Clone(c.Taints)
	}
	return clusters
}

// failure takes the next scripted error of an operation.
func (b *Backend) failure(op Operation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.failures[op]
	if len(queue) == 0 {
		return nil
	}
	b.failures[op] = queue[1:]
	return queue[0]
}

// wrote counts a driver's write.
func (b *Backend) wrote() {
	b.mu.Lock()
	b.writes++
	b.mu.Unlock()
	b.settleIfAuto()
}

func (b *Backend) settleIfAuto() {
	if b.options.Auto {
		b.Settle()
	}
}

// listener collects what a running driver is to be notified of.
type listener struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]bool
	wake    chan struct{}
}

func (b *Backend) listen() *listener {
	l := &listener{pending: map[types.NamespacedName]bool{}, wake: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[l] = true
	return l
}

func (b *Backend) unlisten(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, l)
}

func (b *Backend) announce(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners {
		l.mu.Lock()
		l.pending[name] = true
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default: // it will wake up anyway
		}
	}
}

// Listen returns what takes the FleetWorkloads that a running driver is to be notified of, from now on; the zero name is for all of them.
func (b *Backend) Listen() (take func() []types.NamespacedName) { return b.listen().take }

// take returns what is pending and forgets it.
func (l *listener) take() []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Collect(maps.Keys(l.pending))
	clear(l.pending)
	return names
}

func (b *Backend) backendChanged(obj *unstructured.Unstructured) {
	if obj.GetLabels()[v1alpha1.LabelUID] == "" {
		return
	}
	if companions.IsCompanionWork(obj) {
		for _, user := range companions.ReadUsers(obj.GetAnnotations()) {
			b.announce(user)
		}
		return
	}
	name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if obj.GetKind() == orderKind.Kind {
		name.Name = ownerName(obj)
	}
	b.announce(name)
}

func (b *Backend) fleetChanged() {
	b.announce(types.NamespacedName{})
	b.settleIfAuto()
}

// Remove deletes a member object behind every backend's back.
func (b *Backend) Remove(cluster string, ref backendtest.Ref) { b.members.store(cluster).remove(ref) }
