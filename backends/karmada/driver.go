package karmada

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
)

// Options set a driver up.
type Options struct {
	// Log receives what happens in the background. The zero value discards it.
	Log logr.Logger
	// Interpreter gives the interpreters that are kept on the control plane for a kind that is used, as a
	// ResourceInterpreterCustomization. When nil, customizations are neither written nor read.
	Interpreter func(schema.GroupVersionKind) (Interpreter, error)
	// PodEvidence has Restarts look at pods, which takes rights that nothing else does.
	PodEvidence bool
}

// Driver carries workloads out through one Karmada control plane.
type Driver struct {
	client client.Client
	cache  cache.Cache
	kinds  kinds
	log    logr.Logger

	watches   watches
	failures  failures
	expected  expectations.Expectations
	installer *customizationInstaller
	pods      *podReader // nil when it is not to look at pods
	// created are the companion works that the cache may not show yet.
	created companions.Created
}

var (
	_ backends.Driver    = (*Driver)(nil)
	_ backends.Runner    = (*Driver)(nil)
	_ backends.DryRunner = (*Driver)(nil)
	_ backends.Bringer   = (*Driver)(nil)
	_ backends.Surveyor  = (*Driver)(nil)
	_ backends.PodReader = (*Driver)(nil)
)

// New returns a driver for the Karmada control plane whose API server cfg leads to. It sends no request; Run must be
// called before it is of use.
func New(cfg *rest.Config, opts Options) (*Driver, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 {
		// Karmada's API server has priority and fairness; a limit on our side would only delay gates.
		cfg.QPS = -1
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	d := &Driver{log: opts.Log, installer: newCustomizationInstaller(opts.Interpreter)}
	bounded := backends.Bounded(httpClient)
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, bounded)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	direct, err := client.New(cfg, client.Options{HTTPClient: bounded, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	cached, err := newCache(cfg, d.watches.refused.Client(httpClient), scheme, mapper)
	if err != nil {
		return nil, err
	}
	if d.failures.cache, err = newFailures(cfg, d.watches.refused.Client(httpClient), scheme, mapper); err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, bounded)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	d.client, d.cache, d.kinds.discovery = direct, cached, disco
	if opts.PodEvidence {
		if d.pods, err = newPodReader(cfg, bounded); err != nil {
			return nil, err
		}
	}
	if d.log.GetSink() == nil {
		d.log = logr.Discard()
	}
	return d, nil
}

// Features tells what the driver can do.
func (d *Driver) Features() backends.Features {
	return backends.Features{
		backends.FeatureHold: true, backends.FeatureModes: true, backends.FeatureClusterScoped: true,
		backends.FeatureKarmadaMarks: true,
	}
}

// Clusters returns Karmada's clusters.
func (d *Driver) Clusters(ctx context.Context) (backends.Fleet, error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Fleet{}, err
	}
	return toFleet(clusters), nil
}

// Observe tells what Karmada reports.
func (d *Driver) Observe(ctx context.Context, query backends.Query) (backends.Observation, error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Observation{}, err
	}
	plan, err := d.installer.prepare(ctx, d.cache, query.Workload.GVK)
	if err != nil {
		return backends.Observation{}, err
	}
	live, err := d.load(ctx, d.readerFor(query), query)
	if err != nil && backends.CodeOf(err) != backends.CodeKindNotServed {
		return backends.Observation{}, err
	}
	earlier := live.earlier(query)
	live = live.own(query)
	live.retains = plan.retains
	o := translate(query, live, toFleet(clusters))
	o.Earlier = earlier
	o.Notes = slices.Clone(plan.notes)
	if err := d.observeCompanionWorks(ctx, query, &o); err != nil {
		return backends.Observation{}, err
	}
	selection, choice := choose(query, clusters, live)
	if err = errors.Join(err, choice); err != nil {
		// What runs is reported all the same; Apply says what is wrong with the spec.
		selection = backends.Selection{Message: err.Error()}
	}
	o.Selection = selection
	return o, nil
}

// Delete takes the next step towards having nothing of the workload on Karmada.
func (d *Driver) Delete(ctx context.Context, query backends.Query, policy v1alpha1.DeletionPolicy) (backends.Progress, error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	live, err := d.load(ctx, d.cache, query)
	if err != nil && backends.CodeOf(err) != backends.CodeKindNotServed {
		return backends.Progress{}, err
	}
	live = live.own(query)
	if behind, err := d.behind(ctx, query, live); err != nil || behind != "" {
		return backends.Progress{Waiting: behind, RequeueAfter: expectations.Patience}, err
	}
	if unseen, err := d.showAgain(ctx, query, live); err != nil || unseen != "" {
		return backends.Progress{Waiting: unseen}, err
	}
	step := decideDelete(query, policy, live, toFleet(clusters), time.Now())
	for _, w := range step.writes {
		if w.remove || w.object.GetKind() == kindOf(live.policy) || w.object.GetKind() == kindOf(live.override) {
			continue
		}
		if err := d.checkFree(ctx, query, w.object); err != nil {
			return backends.Progress{}, err
		}
	}
	if err := d.carryOut(ctx, step); err != nil {
		return backends.Progress{}, err
	}
	requeueAfter := step.requeueAfter
	if len(step.writes) == 0 && step.waiting != "" {
		wait, err := d.retell(ctx, live)
		if err != nil {
			return backends.Progress{}, err
		}
		requeueAfter = backends.Sooner(requeueAfter, wait)
	}
	waiting := step.waiting
	if waiting == "" {
		if waiting, requeueAfter, err = d.deleteCompanionWorks(ctx, query, policy, toFleet(clusters)); err != nil {
			return backends.Progress{}, err
		}
	}
	if waiting == "" {
		d.watches.forget(query)
	}
	return backends.Progress{Done: waiting == "", Waiting: waiting, RequeueAfter: requeueAfter}, nil
}

// clusters returns Karmada's clusters as cached; they must not be changed.
func (d *Driver) clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	if err := ctx.Err(); err != nil { // caches do not look
		return nil, fmt.Errorf("list Karmada's clusters: %w", err)
	}
	if err := d.watches.ready(); err != nil {
		return nil, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := d.cache.List(ctx, &clusters); err != nil {
		return nil, backends.Classify("list Karmada's clusters", err)
	}
	return clusters.Items, nil
}

func kindOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return obj.GetKind()
}
