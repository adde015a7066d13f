package ocm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/backends/internal/interned"
	"github.com/fleetworkload/fleetworkload/backends/internal/relation"
	"github.com/fleetworkload/fleetworkload/internal/refused"
)

// Driver carries workloads out through one OCM hub. It reads from caches, and writes only the fields that are its own.
type Driver struct {
	opts   Options
	mapper meta.RESTMapper
	cache  cache.Cache
	// hub reads from the API server and writes to it.
	hub    client.Client
	synced atomic.Bool
	// prerequisiteUsers are the workloads that are about to use the ManifestWork of a prerequisite, and have none yet that would show it: it is not
	// pruned too early, and they are woken up. One that is pruned all the same is made again on the next pass.
	prerequisiteUsers relation.Relation[types.NamespacedName, types.NamespacedName]
	// successors are the workloads whose Placement can only be made once the decisions of a former one of its name are gone.
	// Those no longer lead to their workload by themselves.
	successors relation.Relation[types.NamespacedName, types.NamespacedName]
	// stored are parts of cached ManifestWorks.
	stored interned.Values
	// reports spare reading again what has not changed.
	reports    reports
	translated translated
	// created are the companion works that the cache may not show yet.
	created companions.Created
	// expected are the writes of ManifestWorks that the cache is to show.
	expected expectations.Expectations
	// sizes spare sending what is too large.
	sizes sizes
	// contests bound how often the same manifest is put through against somebody on the member.
	contests contests
	// brought spares asking who has brought definitions of kinds.
	brought broughtDefinitions

	// refused are the lists and watches that the hub does not grant.
	refused refused.Reads

	mu        sync.Mutex
	lastError error
}

var (
	_ backends.Driver    = (*Driver)(nil)
	_ backends.Runner    = (*Driver)(nil)
	_ backends.DryRunner = (*Driver)(nil)
	_ backends.Bringer   = (*Driver)(nil)
	_ backends.Surveyor  = (*Driver)(nil)
)

// New makes a driver for the hub that cfg leads to. It sends nothing; Run fills the caches without which every method
// fails with NotReady.
func New(cfg *rest.Config, opts Options) (*Driver, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for the hub: %w", err)
	}
	return newDriver(cfg, httpClient, opts)
}

func newDriver(cfg *rest.Config, httpClient *http.Client, opts Options) (*Driver, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("scheme of the hub: %w", err)
	}
	d := &Driver{opts: opts.withDefaults()}
	bounded := backends.Bounded(httpClient)
	if d.mapper, err = apiutil.NewDynamicRESTMapper(cfg, bounded); err != nil {
		return nil, fmt.Errorf("discovery of the hub: %w", err)
	}
	cacheOpts := cacheOptions(&d.stored)
	cacheOpts.Scheme, cacheOpts.Mapper, cacheOpts.HTTPClient = scheme, d.mapper, d.refused.Client(httpClient)
	if d.cache, err = cache.New(cfg, cacheOpts); err != nil {
		return nil, fmt.Errorf("cache of the hub: %w", err)
	}
	if d.hub, err = client.New(cfg, client.Options{Scheme: scheme, Mapper: d.mapper, HTTPClient: bounded}); err != nil {
		return nil, fmt.Errorf("client of the hub: %w", err)
	}
	return d, nil
}

// Features implements backends.Driver.
func (d *Driver) Features() backends.Features {
	return backends.Features{
		backends.FeatureHold: true, backends.FeatureModes: true, backends.FeatureClusterScoped: true, backends.FeatureOCMMarks: true,
		backends.FeatureDriftReport: true,
	}
}

// Clusters implements backends.Driver.
func (d *Driver) Clusters(ctx context.Context) (backends.Fleet, error) {
	if err := d.ready(ctx); err != nil {
		return backends.Fleet{}, err
	}
	fleet, err := d.fleet(ctx)
	return backends.Fleet{Clusters: slices.Clone(fleet.Clusters)}, err
}

// fleet translates the hub's clusters, once for each change of them. It must not be changed.
func (d *Driver) fleet(ctx context.Context) (backends.Fleet, error) {
	return d.translated.get(func() (backends.Fleet, error) { return d.translateClusters(ctx) })
}

func (d *Driver) translateClusters(ctx context.Context) (backends.Fleet, error) {
	var clusters clusterv1.ManagedClusterList
	if err := d.cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return backends.Fleet{}, fmt.Errorf("list cached ManagedClusters: %w", err)
	}
	return translateFleet(clusters.Items, d.opts), nil
}

// Observe implements backends.Driver.
func (d *Driver) Observe(ctx context.Context, query backends.Query) (backends.Observation, error) {
	if err := d.ready(ctx); err != nil {
		return backends.Observation{}, err
	}
	var observation backends.Observation
	works, err := d.worksToReport(ctx, query)
	if err != nil {
		return observation, err
	}
	placements, err := d.placementsOf(ctx, query.Key)
	if err != nil {
		return observation, err
	}
	if observation.Found = len(works)+len(placements) > 0; !observation.Found {
		if observation.Earlier = d.refuseEarlier(ctx, query.Key); backends.CodeOf(observation.Earlier) != backends.CodeNameConflict && observation.Earlier != nil {
			return observation, observation.Earlier
		}
	}
	for _, work := range works {
		r, err := d.reports.read(work)
		if err != nil {
			return observation, err
		}
		if r.isUnserved() {
			continue // it is in Selection.Unsupported
		}
		o := r.observe(query.Workload)
		if o.Delivered == nil && o.UID != "" && o.Presence == backends.PresenceActive {
			o.Delivered = d.contests.lost(r)
		}
		if query.LeavesDrift() {
			o = r.asLeft(o, query.Workload)
		}
		observation.Clusters = append(observation.Clusters, o)
	}
	if err := d.observeCompanionWorks(ctx, query, &observation); err != nil {
		return observation, err
	}
	if err := d.observeNamespaces(ctx, query, observation.Clusters); err != nil {
		return observation, err
	}
	slices.SortFunc(observation.Clusters, func(a, b backends.ClusterObservation) int {
		return strings.Compare(a.Cluster, b.Cluster)
	})
	placement, wrong := renderPlacement(query, d.opts)
	if wrong != nil {
		// Apply reports what is wrong; what runs is reported all the same.
		observation.Selection.Message = wrong.Error()
		return observation, nil //nolint:nilerr // it is in the message
	}
	observation.Selection, err = d.selection(ctx, placement, query)
	if backends.CodeOf(err) == backends.CodeKindNotServed {
		// Apply fails with it, or tells what it does about it.
		observation.Selection, err = backends.Selection{Message: err.Error()}, nil
	}
	return observation, err
}

// selection reads the choice of the Placement rendered for a query. It fails with KindNotServed when no chosen cluster
// can run the workload.
func (d *Driver) selection(ctx context.Context, placement *unstructured.Unstructured, query backends.Query) (backends.Selection, error) {
	live, err := d.cached(ctx, placement)
	if err != nil || live == nil {
		return readSelection(nil, nil), err
	}
	var typed clusterv1beta1.Placement
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &typed); err != nil {
		return backends.Selection{}, fmt.Errorf("read Placement %s: %w", typed.Name, err)
	}
	var decisions clusterv1beta1.PlacementDecisionList
	if err := d.cache.List(ctx, &decisions, client.InNamespace(placement.GetNamespace()),
		client.MatchingFields{indexPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return backends.Selection{}, fmt.Errorf("list cached PlacementDecisions: %w", err)
	}
	bound, err := d.boundSets(ctx, placement.GetNamespace())
	if err != nil {
		return backends.Selection{}, err
	}
	selected := checkBindings(readSelection(&typed, decisions.Items), bound, d.opts)
	if !selected.Settled {
		return selected, nil
	}
	fleet, err := d.fleet(ctx)
	if err != nil {
		return backends.Selection{}, err
	}
	if wrong := refuseUnknown(query.Selectors, fleet); wrong != nil {
		// A name mistyped in a change would look like a cluster deselected.
		return backends.Selection{Message: wrong.Error()}, nil //nolint:nilerr // it is in the message
	}
	if selected.Unsupported, err = d.unsupported(ctx, query, selected.Clusters, fleet); err != nil {
		return backends.Selection{Unsupported: selected.Unsupported}, err
	}
	selected.Serves, err = d.serves(ctx, query.Workload, selected.Clusters)
	return selected, err
}

// boundSets lists the cluster sets bound in the namespace, by whomever.
func (d *Driver) boundSets(ctx context.Context, namespace string) ([]string, error) {
	list := listOf(bindingGVK)
	if err := d.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cached ManagedClusterSetBindings: %w", err)
	}
	var bound []string
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() == nil && !boundFalse(&list.Items[i]) {
			bound = append(bound, list.Items[i].GetName())
		}
	}
	return bound, nil
}

// boundFalse is true when the registration controller says that the binding's set does not exist.
func boundFalse(binding *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(binding.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["type"] == "Bound" && c["status"] == string(metav1.ConditionFalse) {
			return true
		}
	}
	return false
}

// ready fails until the caches are filled, and when the call's time is over: caches answer all the same.
func (d *Driver) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := d.refused.Err(); err != nil {
		return err
	}
	if d.synced.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if backends.CodeOf(d.lastError) != "" {
		return d.lastError
	}
	return &backends.Error{
		Code: backends.CodeNotReady, Message: "the hub's objects are being read", Err: d.lastError, Filling: d.lastError == nil,
		Remedy: "wait; if it lasts, check that the hub has OCM's CRDs and lets the operator list and watch them",
	}
}

// reached notes how the hub has last answered a driver that is not ready yet; nil is well.
func (d *Driver) reached(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastError = err
}

// worksOf lists the cached ManifestWorks that deliver the workload. They must not be changed.
func (d *Driver) worksOf(ctx context.Context, key backends.Key) ([]*unstructured.Unstructured, error) {
	return d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexUID: string(key.UID)})
}

// worksToReport are the workload's ManifestWorks, as the query wants them read.
func (d *Driver) worksToReport(ctx context.Context, query backends.Query) ([]*unstructured.Unstructured, error) {
	if query.Counterpart == backends.CounterpartNone {
		return d.worksOf(ctx, query.Key)
	}
	list := listOf(manifestWorkGVK)
	if err := d.hub.List(ctx, list, client.MatchingLabels{v1alpha1.LabelUID: string(query.Key.UID)}); err != nil {
		return nil, explain("list ManifestWorks", err)
	}
	var works []*unstructured.Unstructured
	for i := range list.Items {
		if !companions.IsCompanionWork(&list.Items[i]) {
			works = append(works, &list.Items[i])
		}
	}
	return works, nil
}

// placementsOf lists the workload's cached Placements, former ones too. They must not be changed.
func (d *Driver) placementsOf(ctx context.Context, key backends.Key) ([]*unstructured.Unstructured, error) {
	return d.list(ctx, listOf(placementGVK), client.MatchingFields{indexUID: string(key.UID)})
}

func (d *Driver) list(
	ctx context.Context, list *unstructured.UnstructuredList, opts ...client.ListOption,
) ([]*unstructured.Unstructured, error) {
	if err := checkIndexed(opts); err != nil {
		return nil, fmt.Errorf("list cached %s: %w", list.GetKind(), err)
	}
	if err := d.cache.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list cached %s: %w", list.GetKind(), err)
	}
	items := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		items = append(items, &list.Items[i])
	}
	return items, nil
}

// uncopied reads what is in the cache itself.
var uncopied = &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}

// cached returns the cached object of that name, or nil. It must not be changed.
func (d *Driver) cached(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := unstructuredOf(obj.GroupVersionKind())
	err := d.cache.Get(ctx, client.ObjectKeyFromObject(obj), live, uncopied)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get cached %s: %w", title(obj), err)
	}
	return live, nil
}

// remove deletes the object as it was read; when it has changed since, it waits for the next look.
func (d *Driver) remove(ctx context.Context, obj *unstructured.Unstructured) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	opts := []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &version}}
	if obj.GroupVersionKind() == placementGVK {
		// Its decisions go before it does: once it is gone nobody would know which were its own.
		opts = append(opts, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	d.expected.Forget(expectations.KeyOf(obj))
	err := d.hub.Delete(ctx, obj.DeepCopy(), opts...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return explain("delete "+title(obj), err)
}

// explain classifies an error of the hub. Admission webhooks refuse with the code of a missing right.
func explain(op string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return &backends.Error{
			Code: backends.CodeNotReady, Message: op, Remedy: "wait until the namespace is gone and made again", Err: err,
		}
	case isTooLarge(text):
		return &backends.Error{
			Code: backends.CodeRejected, Field: "spec.template", Message: op,
			Remedy: "make the template smaller: by default, OCM takes manifests of up to " + maxManifest, Err: err,
		}
	case strings.Contains(text, "admission webhook") && strings.Contains(text, "denied the request"):
		return &backends.Error{
			Code: backends.CodeRejected, Message: op, Remedy: "correct the template, or the override that leads to this manifest",
			Err: err,
		}
	}
	if backends.CodeOf(err) != "" {
		return err
	}
	return backends.Classify(op, err)
}

func title(obj *unstructured.Unstructured) string {
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// isConflict is true when a write was refused because the object had changed.
func isConflict(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonConflict
}
