package ocm

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/interned"
)

const (
	retryStart    = 5 * time.Second
	debounceFleet = 500 * time.Millisecond
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(clusterv1.Install, clusterv1beta1.Install, metav1.AddMetaToScheme)
	return scheme, kinds.AddToScheme(scheme)
}

func cachedTypes() map[schema.GroupVersionKind]client.Object {
	return map[schema.GroupVersionKind]client.Object{
		manifestWorkGVK: unstructuredOf(manifestWorkGVK),
		placementGVK:    unstructuredOf(placementGVK),
		bindingGVK:      unstructuredOf(bindingGVK),
		decisionGVK:     &clusterv1beta1.PlacementDecision{},
		clusterGVK:      &clusterv1.ManagedCluster{},
	}
}

func unstructuredOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

func listOf(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// cacheOptions keep only what is ours, but for bindings, which may be somebody else's, and for clusters.
func cacheOptions(works *interned.Values) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	// A requirement of existence is always valid.
	ofPlacements, _ := labels.NewRequirement(clusterv1beta1.PlacementLabel, selection.Exists, nil)
	return cache.Options{
		NewInformer:      newLeanInformer,
		DefaultTransform: stripManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			unstructuredOf(manifestWorkGVK):     {Label: ours, Transform: func(obj any) (any, error) { return packManifestWork(works, obj) }},
			unstructuredOf(placementGVK):        {Label: ours},
			&clusterv1beta1.PlacementDecision{}: {Label: labels.NewSelector().Add(*ofPlacements), Transform: stripDecision},
			&clusterv1.ManagedCluster{}:         {Transform: stripCluster},
		},
	}
}

// sweepStored is how often the parts of ManifestWorks are forgotten that none has any more.
const sweepStored = 10 * time.Minute

// keepStored forgets from time to time what no ManifestWork has any more, until ctx ends.
func (d *Driver) keepStored(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		works, err := d.list(ctx, listOf(manifestWorkGVK))
		if err != nil {
			return // the next time
		}
		d.stored.Keep(func(used func(any)) {
			for _, work := range works {
				for _, p := range partsOf(work) {
					used(p.in[p.key])
				}
				status, _ := sharedStatus(work)
				used(status)
			}
		})
		d.reports.sweep(works)
	}, sweepStored)
}

func stripManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		caches.KeepOwnFields(o)
	}
	return obj, nil
}

// stripDecision keeps nothing of other people's decisions.
func stripDecision(obj any) (any, error) {
	if d, ok := obj.(*clusterv1beta1.PlacementDecision); ok {
		d.SetManagedFields(nil)
		if !strings.HasPrefix(d.Labels[clusterv1beta1.PlacementLabel], "fw-") {
			d.Status.Decisions = nil
		}
	}
	return obj, nil
}

func stripCluster(obj any) (any, error) {
	if c, ok := obj.(*clusterv1.ManagedCluster); ok {
		c.SetManagedFields(nil)
		c.Annotations = nil
		c.Spec.ManagedClusterClientConfigs = nil
		c.Status.Capacity = nil
	}
	return obj, nil
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// identity names the member object of a manifest; its version is not part of it.
func identity(manifest map[string]any) string {
	u := unstructured.Unstructured{Object: manifest}
	if manifest == nil || u.GetName() == "" {
		return ""
	}
	gvk := u.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName()}, "/")
}

// neededBy names the prerequisites that a workload's ManifestWork stands on.
func neededBy(work *unstructured.Unstructured) []string {
	group, resource, namespace := carriedKind(work)
	if resource == "" {
		return nil
	}
	return prerequisiteNames(namespace, group, resource)
}

// carriedKind is what a ManifestWork says of the object that it carries; empty when it says nothing.
func carriedKind(work *unstructured.Unstructured) (group, resource, namespace string) {
	configs, _, _ := unstructured.NestedFieldNoCopy(work.Object, "spec", "manifestConfigs")
	list, _ := configs.([]any)
	if len(list) == 0 {
		return "", "", ""
	}
	config, _ := list[0].(map[string]any)
	id, _, _ := unstructured.NestedStringMap(config, "resourceIdentifier")
	return id["group"], id["resource"], id["namespace"]
}

// Run fills the caches and keeps them until ctx ends. While the hub cannot be reached, or lacks OCM's CRDs, it goes on
// trying.
func (d *Driver) Run(ctx context.Context, notify func(types.NamespacedName)) error {
	err := wait.PollUntilContextCancel(ctx, retryStart, true, func(context.Context) (bool, error) {
		err := d.checkKinds()
		d.reached(err)
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // it is the end of the run
	}
	d.refused.Notify(func() { notify(types.NamespacedName{}) })
	fleetChanged := make(chan struct{}, 1)
	if err := d.watch(ctx, notify, fleetChanged); err != nil {
		return fmt.Errorf("watch hub: %w", err)
	}
	go debounce(ctx, fleetChanged, func() { notify(types.NamespacedName{}) })
	stopped := make(chan error, 1)
	go func() { stopped <- d.cache.Start(ctx) }()
	if d.cache.WaitForCacheSync(ctx) {
		d.synced.Store(true)
		go d.keepStored(ctx)
		notify(types.NamespacedName{})
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("run hub caches: %w", err)
	}
	return nil
}

func (d *Driver) checkKinds() error {
	for gvk := range cachedTypes() {
		if _, err := d.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			return backends.Classify("find "+gvk.Kind+" on the hub", err)
		}
	}
	return nil
}

func (d *Driver) watch(ctx context.Context, notify func(types.NamespacedName), fleetChanged chan<- struct{}) error {
	for name, index := range indexes() {
		if err := d.cache.IndexField(ctx, unstructuredOf(manifestWorkGVK), name, index); err != nil {
			return err
		}
	}
	for _, name := range []string{indexUID, indexOwner} {
		if err := d.cache.IndexField(ctx, unstructuredOf(placementGVK), name, indexes()[name]); err != nil {
			return err
		}
	}
	err := d.cache.IndexField(ctx, &clusterv1beta1.PlacementDecision{}, indexPlacement, func(obj client.Object) []string {
		return nonEmpty(obj.GetLabels()[clusterv1beta1.PlacementLabel])
	})
	if err != nil {
		return err
	}
	kick := func() {
		select {
		case fleetChanged <- struct{}{}:
		default:
		}
	}
	come := func(obj client.Object) { d.changed(ctx, nil, obj, notify, kick) }
	change := func(before, now client.Object) { d.changed(ctx, before, now, notify, kick) }
	gone := func(obj client.Object) {
		d.reports.forget(obj.GetUID())
		d.contests.forget(obj.GetUID())
		come(obj)
	}
	for gvk, obj := range cachedTypes() {
		informer, err := d.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(caches.Handler(come, change, gone)); err != nil {
			return fmt.Errorf("%s: %w", gvk.Kind, err)
		}
		if shared, is := informer.(toolscache.SharedInformer); is && gvk == manifestWorkGVK {
			d.expected.Watch(shared.LastSyncResourceVersion)
		}
	}
	return nil
}

// changed tells whose object has changed.
func (d *Driver) changed(ctx context.Context, old, obj any, notify func(types.NamespacedName), fleetChanged func()) {
	switch o := obj.(type) {
	case *clusterv1.ManagedCluster:
		d.translated.forget()
		if before, ok := old.(*clusterv1.ManagedCluster); ok && sameCluster(before, o, d.opts) {
			return
		}
		fleetChanged()
	case *clusterv1beta1.PlacementDecision:
		placement := unstructuredOf(placementGVK)
		key := types.NamespacedName{Namespace: o.Namespace, Name: o.Labels[clusterv1beta1.PlacementLabel]}
		if !strings.HasPrefix(key.Name, "fw-") || !d.synced.Load() {
			return
		}
		if err := d.cache.Get(ctx, key, placement); err == nil {
			notifyOwner(placement, notify)
		}
		for _, workload := range d.successors.Of(key) {
			notify(workload)
		}
	case *unstructured.Unstructured:
		switch {
		case companions.IsCompanionWork(o):
			notifyUsers(old, o, notify)
		case o.GetLabels()[labelPrerequisite] != "":
			for _, key := range d.prerequisiteUsers.Of(client.ObjectKeyFromObject(o)) {
				notify(key)
			}
		case o.GetKind() == bindingGVK.Kind:
			if o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator || slices.Contains(d.opts.ClusterSets, o.GetName()) {
				fleetChanged()
			}
		default:
			notifyOwner(o, notify)
		}
	}
}

func notifyUsers(old any, companionWork *unstructured.Unstructured, notify func(types.NamespacedName)) {
	before, changed := old.(*unstructured.Unstructured)
	if !changed {
		before = companionWork
	}
	same := changed && reflect.DeepEqual(before.Object["status"], companionWork.Object["status"])
	for _, key := range companions.Changed(before, companionWork, same) {
		notify(key)
	}
}

func notifyOwner(obj client.Object, notify func(types.NamespacedName)) {
	if owner, named := caches.Owner(obj); named {
		notify(owner)
	}
}

// sameCluster leaves out what changes with every heartbeat.
func sameCluster(a, b *clusterv1.ManagedCluster, opts Options) bool {
	return a.Spec.HubAcceptsClient == b.Spec.HubAcceptsClient && translateCluster(a, opts).Same(translateCluster(b, opts))
}

// debounce calls f once for a burst of kicks.
func debounce(ctx context.Context, kicks <-chan struct{}, f func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-kicks:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(debounceFleet):
		}
		select {
		case <-kicks:
		default:
		}
		f()
	}
}
