package karmada

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/relation"
	"github.com/fleetworkload/fleetworkload/internal/refused"
)

// workByBinding is the index of Works by the namespace/name of their ResourceBinding.
const workByBinding = "binding"

const (
	// startRetry is how soon a watch that could not be set up is tried again.
	startRetry = 3 * time.Second
	// syncPatience is how long a call waits for the first list of a kind that is new to the driver.
	syncPatience = 3 * time.Second
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(corev1.AddToScheme, clusterv1alpha1.Install, workv1alpha1.Install, workv1alpha2.Install)
	return scheme, kinds.AddToScheme(scheme)
}

// newCache holds policies and templates with our label, all bindings, Works and clusters. Neither bindings nor Works
// carry a label of ours, so what is foreign of them is stripped to almost nothing.
func newCache(cfg *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper) (cache.Cache, error) {
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	shared := true
	customizations := &unstructured.Unstructured{}
	customizations.SetGroupVersionKind(customizationGVK)
	c, err := cache.New(cfg, cache.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: mapper,
		DefaultLabelSelector: ours, DefaultTransform: stripObject,
		ByObject: map[client.Object]cache.ByObject{
			customizations:                         {Label: labels.Everything()},
			&workv1alpha2.ResourceBinding{}:        {Label: labels.Everything(), Transform: stripBinding, UnsafeDisableDeepCopy: &shared},
			&workv1alpha2.ClusterResourceBinding{}: {Label: labels.Everything(), Transform: stripBinding, UnsafeDisableDeepCopy: &shared},
			&workv1alpha1.Work{}:                   {Label: labels.Everything(), Transform: stripWork, UnsafeDisableDeepCopy: &shared},
			&clusterv1alpha1.Cluster{}:             {Label: labels.Everything(), Transform: stripCluster, UnsafeDisableDeepCopy: &shared},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("build cache: %w", err)
	}
	return c, nil
}

// stripObject keeps of the managed fields only ours, which tell what we set before, and drops the status.
func stripObject(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	delete(u.Object, "status")
	caches.KeepOwnFields(u)
	return u, nil
}

// stripBinding drops the aggregated status, which is read from the Works.
func stripBinding(obj any) (any, error) {
	switch b := obj.(type) {
	case *workv1alpha2.ResourceBinding:
		b.ManagedFields, b.Status.AggregatedStatus = nil, nil
	case *workv1alpha2.ClusterResourceBinding:
		b.ManagedFields, b.Status.AggregatedStatus = nil, nil
	}
	return obj, nil
}

// stripWork drops what is in the Works of others.
func stripWork(obj any) (any, error) {
	w, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return obj, nil
	}
	w.ManagedFields = nil
	boundReport(w)
	for _, m := range w.Spec.Workload.Manifests {
		if bytes.Contains(m.Raw, []byte(`"`+v1alpha1.LabelManagedBy+`"`)) {
			return w, nil
		}
	}
	w.Spec.Workload.Manifests, w.Status.ManifestStatuses = nil, nil
	return w, nil
}

func stripCluster(obj any) (any, error) {
	if c, ok := obj.(*clusterv1alpha1.Cluster); ok {
		c.ManagedFields = nil
		c.Spec.ResourceModels = nil
		c.Status.NodeSummary = nil
		if r := c.Status.ResourceSummary; r != nil {
			r.AllocatableModelings = nil
		}
	}
	return obj, nil
}

// watches are the informers and what their events mean.
type watches struct {
	// refused are the lists and watches that the control plane does not grant.
	refused refused.Reads

	mu     sync.Mutex
	synced []toolscache.InformerSynced
	// base is true when the informers of Karmada's own kinds are set up.
	base  bool
	kinds map[schema.GroupVersionKind]bool
	// owners maps bindings to FleetWorkloads. It is filled by every call that reads a workload, so that after the first
	// pass over all FleetWorkloads it knows all.
	owners relation.Relation[types.NamespacedName, types.NamespacedName]
	notify func(types.NamespacedName)
}

// baseResources are watched from the start: nothing can be said of any workload without one of them. Customizations are not watched where the
// operator installs no interpreters.
var baseResources = []schema.GroupResource{
	{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}, {Group: workv1alpha2.GroupName, Resource: "clusterresourcebindings"},
	{Group: workv1alpha1.GroupName, Resource: "works"}, {Group: clusterv1alpha1.GroupName, Resource: "clusters"},
	{Group: policyv1alpha1.GroupName, Resource: "propagationpolicies"}, {Group: policyv1alpha1.GroupName, Resource: "clusterpropagationpolicies"},
	{Group: policyv1alpha1.GroupName, Resource: "overridepolicies"}, {Group: policyv1alpha1.GroupName, Resource: "clusteroverridepolicies"},
	{Group: configv1alpha1.GroupName, Resource: "resourceinterpretercustomizations"},
}

func (w *watches) ready() error {
	if err := w.refused.Err(baseResources...); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.base {
		return &backends.Error{
			Code: backends.CodeNotReady, Message: "the watches on the Karmada control plane are not set up yet",
			Remedy: "wait; if it lasts, check that the control plane has Karmada's CRDs and the cluster API",
		}
	}
	for _, synced := range w.synced {
		if !synced() {
			return &backends.Error{
				Code: backends.CodeNotReady, Message: "the cache of the Karmada control plane is not filled yet", Filling: true,
				Remedy: "wait; if it lasts, check the rights of the operator's user there",
			}
		}
	}
	return nil
}

func bindingOf(w backends.Workload) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: bindingName(w)}
}

func (w *watches) remember(q backends.Query) {
	w.owners.Add(bindingOf(q.Workload), q.Key.NamespacedName)
}

func (w *watches) forget(q backends.Query) {
	w.owners.Remove(bindingOf(q.Workload), q.Key.NamespacedName)
}

// tell notifies of all FleetWorkloads that look at a binding: whose it is can be another question, such as between one and its copy of
// the same template.
func (w *watches) tell(binding types.NamespacedName) {
	for _, reader := range w.owners.Of(binding) {
		w.tellName(reader)
	}
}

func (w *watches) tellOwner(obj client.Object) {
	if owner, named := caches.Owner(obj); named {
		w.tellName(owner)
	}
}

func (w *watches) tellFleet() { w.tellName(types.NamespacedName{}) }

func (w *watches) tellName(name types.NamespacedName) {
	w.mu.Lock()
	notify := w.notify
	w.mu.Unlock()
	if notify != nil {
		notify(name)
	}
}

// Run watches the control plane until ctx ends.
func (d *Driver) Run(ctx context.Context, notify func(types.NamespacedName)) error {
	d.watches.mu.Lock()
	d.watches.notify = notify
	d.watches.mu.Unlock()
	d.watches.refused.Notify(func() { notify(types.NamespacedName{}) })
	go d.kinds.refresh(ctx)
	go d.setUp(ctx)
	go func() {
		if err := d.failures.run(ctx, d.watches.tellOfFailure); err != nil {
			d.log.Error(err, "cannot read Karmada's Events")
		}
	}()
	if err := d.cache.Start(ctx); err != nil {
		return fmt.Errorf("run the cache of Karmada: %w", err)
	}
	return nil
}

// setUp starts the watches on Karmada's own kinds. A control plane that is not there yet, or not whole, is tried again.
func (d *Driver) setUp(ctx context.Context) {
	indexed := false
	err := wait.PollUntilContextCancel(ctx, startRetry, true, func(ctx context.Context) (bool, error) {
		err := d.watchBase(ctx, &indexed)
		if err != nil {
			d.log.Info("cannot watch the Karmada control plane yet", "cause", err.Error())
		}
		return err == nil, nil
	})
	if err != nil || !d.cache.WaitForCacheSync(ctx) {
		return
	}
	d.watches.mu.Lock()
	synced := d.watches.synced
	d.watches.mu.Unlock()
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) { // handlers are later than caches, and ready asks them
		d.watches.tellFleet()
	}
}

// watched is a kind of object that is watched from the start.
type watched struct {
	object  client.Object
	handler toolscache.ResourceEventHandler
}

func (d *Driver) watchBase(ctx context.Context, indexed *bool) error {
	if !*indexed {
		for name, index := range map[string]client.IndexerFunc{workByBinding: indexWork, companionWorkByUser: indexCompanionWork} {
			if err := d.cache.IndexField(ctx, &workv1alpha1.Work{}, name, index); err != nil {
				return err
			}
		}
		*indexed = true
	}
	objects := []watched{
		{&workv1alpha2.ResourceBinding{}, d.watches.onBinding()},
		{&workv1alpha2.ClusterResourceBinding{}, d.watches.onClusterBinding()},
		{&workv1alpha1.Work{}, d.watches.onWork()},
		{&workv1alpha1.Work{}, d.watches.onCompanionWork()},
		{&clusterv1alpha1.Cluster{}, d.watches.onCluster()},
	}
	for _, s := range scopes() {
		for _, gvk := range []schema.GroupVersionKind{s.policy, s.override} {
			policy := &unstructured.Unstructured{}
			policy.SetGroupVersionKind(gvk)
			objects = append(objects, watched{policy, d.watches.onObject()})
		}
	}
	if d.installer.interpreter != nil {
		customizations := &unstructured.Unstructured{}
		customizations.SetGroupVersionKind(customizationGVK)
		objects = append(objects, watched{customizations, d.onCustomization()})
	}
	// All informers first: a handler that is added twice is called twice.
	informers := make([]cache.Informer, len(objects))
	for i, o := range objects {
		informer, err := d.cache.GetInformer(ctx, o.object, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		informers[i] = informer
	}
	var synced []toolscache.InformerSynced
	for i, o := range objects {
		registration, err := informers[i].AddEventHandler(o.handler)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
	}
	d.watches.mu.Lock()
	defer d.watches.mu.Unlock()
	d.watches.synced, d.watches.base = synced, true
	return nil
}

func indexWork(obj client.Object) []string {
	binding := bindingOfWork(obj)
	if binding.Name == "" {
		return nil
	}
	return []string{binding.String()}
}

// bindingOfWork is the binding that a Work was rendered for. Without a namespace it is a ClusterResourceBinding.
func bindingOfWork(obj client.Object) types.NamespacedName {
	annotations := obj.GetAnnotations()
	if name := annotations[workv1alpha2.ClusterResourceBindingAnnotationKey]; name != "" {
		return types.NamespacedName{Name: name}
	}
	return types.NamespacedName{
		Namespace: annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey],
		Name:      annotations[workv1alpha2.ResourceBindingNameAnnotationKey],
	}
}

// watchKind watches the templates of a kind from the first time it is used.
func (d *Driver) watchKind(ctx context.Context, w backends.Workload) error {
	d.watches.mu.Lock()
	watched := d.watches.kinds[w.GVK]
	d.watches.mu.Unlock()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(w.GVK)
	if watched {
		return d.watches.refused.Err(schema.GroupResource{Group: w.GVK.Group, Resource: w.Resource})
	}
	informer, err := d.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return backends.NotServed(w.GVK, "the Karmada control plane does not serve this kind", "install its CRD on the Karmada API server")
	}
	if err != nil {
		return backends.Classify("watch "+w.GVK.String(), err)
	}
	wait, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if !toolscache.WaitForCacheSync(wait.Done(), informer.HasSynced) {
		// Informers do not tell why; a request of our own does.
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(w.GVK.GroupVersion().WithKind(w.GVK.Kind + "List"))
		if err := d.client.List(ctx, list, client.Limit(1)); err != nil {
			return backends.Classify("list "+w.GVK.String(), err)
		}
		return &backends.Error{
			Code: backends.CodeNotReady, Message: fmt.Sprintf("the cache of %s is not filled yet", w.GVK),
			Remedy: "wait; if it lasts, grant the operator's user watch on this kind on the Karmada control plane",
		}
	}
	d.watches.mu.Lock()
	defer d.watches.mu.Unlock()
	if d.watches.kinds[w.GVK] {
		return nil
	}
	if _, err := informer.AddEventHandler(d.watches.onObject()); err != nil {
		return fmt.Errorf("watch %s: %w", w.GVK, err)
	}
	if d.watches.kinds == nil {
		d.watches.kinds = map[schema.GroupVersionKind]bool{}
	}
	d.watches.kinds[w.GVK] = true
	return nil
}

// onObject is for templates and policies: all but their status matters.
func (w *watches) onObject() toolscache.ResourceEventHandler {
	return handler(func(a, b *unstructured.Unstructured) bool {
		return a.GetGeneration() == b.GetGeneration() && a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp()) &&
			equality.Semantic.DeepEqual(a.GetLabels(), b.GetLabels()) &&
			equality.Semantic.DeepEqual(a.GetAnnotations(), b.GetAnnotations())
	}, func(obj *unstructured.Unstructured) { w.tellOwner(obj) })
}

// onBinding: what the scheduler is to do and its result matter, the aggregated status and the template's resourceVersion do not.
func (w *watches) onBinding() toolscache.ResourceEventHandler {
	return handler(sameBinding, func(b *workv1alpha2.ResourceBinding) { w.tell(client.ObjectKeyFromObject(b)) })
}

func (w *watches) onClusterBinding() toolscache.ResourceEventHandler {
	return handler(func(a, b *workv1alpha2.ClusterResourceBinding) bool { return sameBinding(asBinding(a), asBinding(b)) },
		func(b *workv1alpha2.ClusterResourceBinding) { w.tell(client.ObjectKeyFromObject(b)) })
}

func sameBinding(a, b *workv1alpha2.ResourceBinding) bool {
	equal, asked := equality.Semantic.DeepEqual, func(b *workv1alpha2.ResourceBinding) workv1alpha2.ResourceBindingSpec {
		spec := b.Spec
		spec.Resource.ResourceVersion = ""
		return spec
	}
	return mayBeDivided(a) == mayBeDivided(b) && a.DeletionTimestamp.Equal(b.DeletionTimestamp) && (a.Generation == b.Generation || equal(asked(a), asked(b))) &&
		(a.Status.LastScheduledTime == nil) == (b.Status.LastScheduledTime == nil) && equal(a.Status.Conditions, b.Status.Conditions)
}

// asBinding lets the two kinds of bindings be read alike: they differ in nothing but their kind.
func asBinding(b *workv1alpha2.ClusterResourceBinding) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{ObjectMeta: b.ObjectMeta, Spec: b.Spec, Status: b.Status}
}

func (w *watches) onWork() toolscache.ResourceEventHandler {
	tell := func(obj *workv1alpha1.Work) { w.tell(bindingOfWork(obj)) }
	return caches.Handler(tell, func(_, now *workv1alpha1.Work) { tell(now) }, tell)
}

func (w *watches) onCluster() toolscache.ResourceEventHandler {
	return handler(sameForUs, func(*clusterv1alpha1.Cluster) { w.tellFleet() })
}

// onCustomization: any change may make room for ours, or take it.
func (d *Driver) onCustomization() toolscache.ResourceEventHandler {
	tell := func(*unstructured.Unstructured) {
		d.installer.changed()
		d.watches.tellFleet()
	}
	return caches.Handler(tell, func(_, now *unstructured.Unstructured) { tell(now) }, tell)
}

// handler calls tell for objects that come and go, and for changes that are not the same.
func handler[T client.Object](same func(a, b T) bool, tell func(T)) toolscache.ResourceEventHandler {
	return caches.Handler(tell, func(before, now T) {
		if !same(before, now) {
			tell(now)
		}
	}, tell)
}
