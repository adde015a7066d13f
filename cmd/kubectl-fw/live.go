package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

const (
	// liveTimeout is how long to wait until a backend is connected and its caches are filled.
	liveTimeout = 30 * time.Second
	livePoll    = 100 * time.Millisecond
	userAgent   = "kubectl-fw"
)

// ofNoPod selects none, so that little is answered: what the operator may read is all that is asked.
func ofNoPod() labels.Selector {
	return labels.SelectorFromSet(labels.Set{"fleetworkload.io/of-no-pod": "true"})
}

// live reads clusters and choices from the backends of the operator's configuration. It uses the operator's own
// drivers, and calls none of their methods that write.
type live struct {
	ctx context.Context //nolint:containedctx // it lives as long as the command, like the connections
	cfg config.Configuration
	// installation names that of the operator: it is part of what backends know a workload by.
	installation string
	pool         *connection.Pool
	client       client.Client
	source       connection.Source
	stop         context.CancelFunc
	stopped      sync.WaitGroup
}

func openLive(ctx context.Context, flags *genericclioptions.ConfigFlags, path, namespace string) (*live, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	management, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}
	c, err := newClient(flags)
	if err != nil {
		return nil, err
	}
	kinds, err := cfg.Registry()
	if err != nil {
		return nil, err
	}
	l := &live{cfg: cfg, client: c, source: connection.KubeconfigSource{
		Secrets: c, Namespace: namespace, InCluster: management, UserAgent: userAgent,
	}}
	if l.installation, err = installationOf(ctx, c, cfg); err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(ctx)
	l.pool = connection.NewPool(connection.Options{
		Backends:  cfg.Backends,
		Factories: drivers.Factories(kinds),
		Source:    l.source,
		Notify:    func(string, types.NamespacedName) {},
		Up:        func(string, bool) {},
		Interval:  time.Second,
		Log:       logr.Discard(),
	})
	l.stopped.Go(func() { _ = l.pool.Start(l.ctx) })
	return l, nil
}

// installationOf is the configured name of the operator's installation, or else the identity of its management cluster. It is empty for who
// may not read that: then what is recorded of a FleetWorkload counts.
func installationOf(ctx context.Context, management client.Reader, cfg config.Configuration) (string, error) {
	if cfg.Installation != "" {
		return cfg.Installation, nil
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := management.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil && !apierrors.IsForbidden(err) {
		return "", fmt.Errorf("read the namespace %s of the management cluster, whose UID names the installation: %w", metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

// kinds are those of the operator's configuration.
func (l *live) kinds() (*interpreter.Registry, error) { return l.cfg.Registry() }

// close ends the connections.
func (l *live) close() {
	l.stop()
	l.stopped.Wait()
}

// identify gives FleetWorkloads that the management cluster knows their UID and their status.
func (l *live) identify(ctx context.Context, fws []*v1alpha1.FleetWorkload) error {
	for _, fw := range fws {
		known := &v1alpha1.FleetWorkload{}
		err := l.client.Get(ctx, client.ObjectKeyFromObject(fw), known)
		switch {
		case err == nil:
			fw.UID, fw.Status = known.UID, known.Status
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		default:
			return fmt.Errorf("look for FleetWorkload %s/%s on the management cluster: %w", fw.Namespace, fw.Name, err)
		}
	}
	return nil
}

// backend implements source. It waits until the backend is connected.
func (l *live) backend(name string) (backend, error) {
	for _, b := range l.cfg.Backends {
		if b.Name == name {
			return l.connect(b)
		}
	}
	return backend{}, backends.ErrNotConfigured
}

// load reads how the operator reaches a backend.
func (l *live) load(ctx context.Context, connection config.Connection) (*rest.Config, error) {
	cfg, _, err := l.source.Load(ctx, connection)
	return cfg, err
}

func (l *live) connect(b config.Backend) (backend, error) {
	out := backend{name: b.Name, kind: b.Type, ocm: b.OCM, guards: l.cfg.Guards, installation: l.installation, aliases: l.cfg.ClusterAliases, tenancy: l.cfg.Tenancy, namespace: l.namespace,
		dependency: l.dependency, leaveOut: l.cfg.Dependencies.LeaveOut, others: l.others}
	err := l.retry(func() error {
		driver, err := l.pool.Driver(b.Name)
		if err != nil {
			return err
		}
		out.features = driver.Features()
		out.fleet, err = driver.Clusters(l.ctx)
		out.observe = func(query backends.Query) (observed backends.Observation, err error) {
			return observed, l.retry(func() (err error) {
				observed, err = driver.Observe(l.ctx, query)
				return err
			})
		}
		if dryRunner, is := driver.(backends.DryRunner); is {
			out.dryRun = func(desired backends.Desired) ([]string, error) { return dryRunner.DryRun(l.ctx, desired) }
		}
		if bringer, is := driver.(backends.Bringer); is {
			out.brought = func(workload backends.Workload, clusters []string) ([]backends.Dependent, error) {
				return bringer.Brought(l.ctx, workload, clusters)
			}
		}
		if reader, is := driver.(backends.PodReader); is {
			out.restarts = func(ctx context.Context, cluster, namespace string) error {
				_, err := reader.Restarts(ctx, cluster, namespace, ofNoPod())
				return err
			}
		}
		if surveyor, is := driver.(backends.Surveyor); is {
			out.served = func(group string) (map[string]backends.Served, error) { return surveyor.Served(l.ctx, group) }
		}
		return err
	})
	return out, err
}

// namespace reads one's labels. One that is not there yet has none.
func (l *live) namespace(name string) *pass.Namespace {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := l.client.Get(l.ctx, client.ObjectKey{Name: name}, found)
	return &pass.Namespace{Labels: found.Labels, Err: client.IgnoreNotFound(err)}
}

// others lists FleetWorkloads; none where that is not allowed.
func (l *live) others(namespace string) []v1alpha1.FleetWorkload {
	var list v1alpha1.FleetWorkloadList
	if err := l.client.List(l.ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	return list.Items
}

// dependency reads what pods refer to.
func (l *live) dependency(namespace string, need plan.Need) pass.Object {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(need.GroupVersionKind)
	err := l.client.Get(l.ctx, client.ObjectKey{Namespace: namespace, Name: need.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return pass.Object{}
	case err != nil:
		return pass.Object{Err: fmt.Errorf("read %s: %w", need, explain(err)), Forbidden: apierrors.IsForbidden(err)}
	}
	return pass.Object{Found: found}
}

// names implements source.
func (l *live) names() []string { return l.pool.Names() }

// retry tries again what passes by itself.
func (l *live) retry(try func() error) error {
	ctx, cancel := context.WithTimeout(l.ctx, liveTimeout)
	defer cancel()
	for {
		err := try()
		if code := backends.CodeOf(err); code != backends.CodeUnavailable && code != backends.CodeNotReady {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(livePoll):
		}
	}
}
