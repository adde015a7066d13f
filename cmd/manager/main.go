// Command manager runs the FleetWorkload operator.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	uberzap "go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/controllers"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
	"github.com/fleetworkload/fleetworkload/internal/lease"
	"github.com/fleetworkload/fleetworkload/internal/lenient"
	"github.com/fleetworkload/fleetworkload/internal/refused"
	"github.com/fleetworkload/fleetworkload/internal/sources"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
	"github.com/fleetworkload/fleetworkload/internal/tokens"
	"github.com/fleetworkload/fleetworkload/internal/tracing"
)

// userAgent names the operator to API servers.
const userAgent = "fleetworkload-manager"

const (
	// startGrace is enough to connect to backends, and to fill caches that are not large.
	startGrace = 20 * time.Second
	// fillGrace is enough to fill the caches of an operator that has more to do than it should.
	fillGrace = 10 * time.Minute
)

// garbagePercent is how much the heap may grow before garbage is collected. Go's default of 100 doubles what caches keep, which is most of it here.
const garbagePercent = 50

type options struct {
	configFile     string
	kubeconfig     string
	namespace      string
	metricsAddress string
	metricsOpen    bool
	healthAddress  string
	pprofAddress   string
	leaderElect    bool
	leaseName      string
	watched        []string
	serves         labels.Selector
	concurrency    int
	webhook        webhookOptions
	log            zap.Options
}

func main() {
	var opts options
	cmd := &cobra.Command{
		Use:           "manager",
		Short:         "Runs the FleetWorkload operator",
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.configFile, "config", "/etc/fleetworkload/config.yaml", "file with the operator's configuration")
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; when empty, the pod's ServiceAccount")
	flags.StringVar(&opts.namespace, "namespace", envOr("POD_NAMESPACE", "fleetworkload-system"), "the operator's namespace, for its lease and kubeconfig Secrets")
	flags.StringVar(&opts.metricsAddress, "metrics-bind-address", ":8443", "address of the metrics endpoint; 0 turns it off")
	flags.BoolVar(&opts.metricsOpen, "metrics-open", false,
		"serve metrics over plain HTTP to everybody; otherwise over TLS, to who may get the path /metrics on the management cluster")
	flags.StringVar(&opts.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&opts.pprofAddress, "pprof-bind-address", "0",
		"address of Go profiles and stacks, for who looks for what the operator does; open to all who reach it, so give a loopback one; 0 turns it off")
	flags.BoolVar(&opts.leaderElect, "leader-elect", true, "let only one of several replicas work")
	flags.StringVar(&opts.leaseName, "leader-election-id", "fleetworkload.fleetworkload.io",
		"name of the lease that replicas share; operators that watch different namespaces from one namespace of their own need different ones")
	flags.StringSliceVar(&opts.watched, "watch-namespaces", nil, "namespaces whose FleetWorkloads are reconciled; when empty, all")
	selector := flags.String("watch-namespace-selector", "",
		"label selector of namespaces whose FleetWorkloads are reconciled, so that several operators share them; when empty, all")
	flags.IntVar(&opts.concurrency, "concurrency", 12, "how many FleetWorkloads are reconciled at once")
	opts.webhook.add(flags)
	level := flags.String("zap-log-level", "info", "least severe level that is logged: debug, info, or error")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		parsed, err := uberzap.ParseAtomicLevel(*level)
		if err != nil {
			return err
		}
		opts.log.Level = parsed
		if opts.serves, err = labels.Parse(*selector); err != nil {
			return fmt.Errorf("--watch-namespace-selector: %w", err)
		}
		return nil
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(checkCommand())
	if err := cmd.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// watchedNamespaces is nil when all are watched.
func (o options) watchedNamespaces() map[string]cache.Config {
	var namespaces map[string]cache.Config
	for _, name := range o.watched {
		if namespaces == nil {
			namespaces = map[string]cache.Config{}
		}
		namespaces[name] = cache.Config{}
	}
	return namespaces
}

// metricsServer asks the management cluster who a request is of, and whether they may get the path (TokenReview, SubjectAccessReview). Its
// certificate is its own, new at each start.
func (o options) metricsServer() metricsserver.Options {
	if o.metricsOpen {
		return metricsserver.Options{BindAddress: o.metricsAddress}
	}
	return metricsserver.Options{
		BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
	}
}

// watches tells whether this operator reconciles the FleetWorkload. The zero name means all that it does.
func (o options) watches(name types.NamespacedName) bool {
	return len(o.watched) == 0 || name.Namespace == "" || slices.Contains(o.watched, name.Namespace)
}

func envOr(name, value string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return value
}

func run(ctx context.Context, opts options) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts.log)))
	limitMemory()
	cfg, err := config.Load(opts.configFile)
	if err != nil {
		return err
	}
	management, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return fmt.Errorf("connect to the management cluster: %w", err)
	}
	management.UserAgent = userAgent
	// API servers have priority and fairness; a limit on our side only makes a thousand FleetWorkloads wait.
	management.QPS = -1
	traces, err := tracing.NewProvider(ctx, tracing.Options{
		Endpoint: cfg.Tracing.Endpoint, SamplingRatePerMillion: cfg.Tracing.Rate(), Version: version(), Log: ctrl.Log.WithName("tracing"),
	})
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	traces.Requests(management)
	management.Wrap(lenient.Transport)
	leader, err := newLease(management, opts)
	if err != nil {
		return err
	}
	mgr, err := newManager(management, opts, leader)
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, cfg, opts, leader, traces); err != nil {
		return err
	}
	ctrl.Log.Info("Starting the operator", "version", version(), "backends", len(cfg.Backends), "namespace", opts.namespace)
	return mgr.Start(ctx)
}

// limitMemory has the operator collect garbage once its heap has grown by half, and near the limit of its container rather than be killed. GOGC and
// GOMEMLIMIT in its environment go before this.
func limitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	// An error is logged.
	_, _ = memlimit.Set(memlimit.WithLogger(slog.New(logr.ToSlogHandler(ctrl.Log.WithName("memory")))))
}

func newManager(management *rest.Config, opts options, leader *lease.Lease) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	grace := 10 * time.Second
	httpClient, err := rest.HTTPClientFor(management)
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}
	var lock resourcelock.Interface
	if leader != nil {
		lock = leader
	}
	deadline := renewDeadline
	rights := refused.Reads{Remedy: refused.OnManagement}
	mgr, err := ctrl.NewManager(management, ctrl.Options{
		Scheme:                              scheme,
		Metrics:                             opts.metricsServer(),
		HealthProbeBindAddress:              opts.healthAddress,
		PprofBindAddress:                    opts.pprofAddress,
		LeaderElection:                      opts.leaderElect,
		LeaderElectionResourceLockInterface: lock,
		// The lock has the lease's name; from here the metric has it, by which alerts know a lease.
		LeaderElectionID: opts.leaseName,
		RenewDeadline:    &deadline,
		// The lease is given back on a graceful stop, so that a successor need not wait for it to run out.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
		MapperProvider: func(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
			return apiutil.NewDynamicRESTMapper(cfg, backends.Bounded(httpClient))
		},
		Client: client.Options{
			HTTPClient: backends.Bounded(httpClient),
			// They are read during migrations only, and watching them would mean to watch everybody's.
			Cache: &client.CacheOptions{DisableFor: []client.Object{&appsv1.ControllerRevision{}}},
		},
		Cache: cache.Options{
			HTTPClient:        rights.Client(httpClient),
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: opts.watchedNamespaces(),
			ByObject: map[client.Object]cache.ByObject{
				&v1alpha1.FleetWorkload{}: {Transform: controllers.Shrink},
				&corev1.Secret{}:          {Namespaces: map[string]cache.Config{opts.namespace: {}}},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("build manager: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("add health check: %w", err)
		}
	}
	rights.Notify(func() {
		if err := rights.Err(); err != nil {
			ctrl.Log.Error(err, "The operator is not ready, since the management cluster does not let it see what it serves")
		}
	})
	// A cache that may not watch shows what it had: who is upgraded to such an operator keeps the one before.
	if err := mgr.AddReadyzCheck("rights", func(*http.Request) error { return rights.Err() }); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	return mgr, nil
}

// tenancyOf is what is configured, with the operator's own namespace among the systems'.
func tenancyOf(cfg config.Configuration, own string) tenancy.Tenancy {
	t := cfg.Tenancy
	t.SystemNamespaces = append(slices.Clone(t.SystemNamespaces), own)
	return t
}

// installationOf is the configured name of this installation, or else the identity of its management cluster.
func installationOf(ctx context.Context, management client.Reader, cfg config.Configuration) (string, error) {
	if cfg.Installation != "" {
		return cfg.Installation, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := management.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("read the namespace %s of the management cluster, whose UID names this installation: %w; set installation in the "+
			"operator's configuration instead", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// backendEvents are what backends tell, and who tells it. What is not of this operator's FleetWorkloads is left out.
func backendEvents(ctx context.Context, opts options) (<-chan event.TypedGenericEvent[controllers.BackendEvent], func(string, types.NamespacedName)) {
	events := make(chan event.TypedGenericEvent[controllers.BackendEvent], 1024)
	return events, func(backend string, name types.NamespacedName) {
		if !opts.watches(name) {
			return
		}
		select {
		case events <- event.TypedGenericEvent[controllers.BackendEvent]{Object: controllers.BackendEvent{Backend: backend, Name: name}}:
		case <-ctx.Done():
		}
	}
}

// setup wires connections, drivers and the reconciler together.
func setup(ctx context.Context, mgr ctrl.Manager, cfg config.Configuration, opts options, leader *lease.Lease, traces *tracing.Provider) error {
	own, err := newMetrics(mgr, cfg)
	if err != nil {
		return err
	}
	measures := own.drivers
	kinds, err := cfg.Registry()
	if err != nil {
		return fmt.Errorf("operator configuration: %w", err)
	}
	events, tell := backendEvents(ctx, opts)
	source := connection.KubeconfigSource{
		Secrets: mgr.GetClient(), Namespace: opts.namespace, InCluster: mgr.GetConfig(), UserAgent: userAgent,
	}
	pool := connection.NewPool(connection.Options{
		Backends:  cfg.Backends,
		Factories: drivers.Factories(kinds),
		Source:    source,
		Notify:    tell,
		Up:        measures.Up,
		Requests:  requests(measures, leader, traces),
		Log:       ctrl.Log.WithName("connection"),
	})
	if err := mgr.Add(pool); err != nil {
		return fmt.Errorf("add connections: %w", err)
	}
	if err := mgr.Add(&tokens.Renewer{
		Client: mgr.GetClient(), Namespace: opts.namespace, Backends: cfg.Backends, Source: source, Request: tokens.Again,
		Expires: measures.TokenExpires, Recorder: mgr.GetEventRecorder("fleetworkload"), Clock: clock.RealClock{}, Log: ctrl.Log.WithName("tokens"),
	}); err != nil {
		return fmt.Errorf("add the renewal of tokens: %w", err)
	}
	dependencies, err := sources.New(mgr.GetConfig(), sources.Options{
		Namespaces: opts.watchedNamespaces(), Notify: func(name types.NamespacedName) { tell("", name) },
	})
	if err != nil {
		return fmt.Errorf("read dependencies: %w", err)
	}
	if err := mgr.Add(dependencies); err != nil {
		return fmt.Errorf("add watches of dependencies: %w", err)
	}
	installation, err := installationOf(ctx, mgr.GetAPIReader(), cfg)
	if err != nil {
		return err
	}
	ctrl.Log.Info("What backends carry out is marked with the installation", "installation", installation)
	reconciler := &controllers.Reconciler{
		Client:            mgr.GetClient(),
		Live:              mgr.GetAPIReader(),
		Installation:      installation,
		Kinds:             kinds,
		Sources:           dependencies,
		LeaveOut:          cfg.Dependencies.LeaveOut,
		Backends:          measures.Instrument(pool),
		Recorder:          mgr.GetEventRecorder("fleetworkload"),
		Changes:           own.changes,
		Drift:             own.drift,
		Unread:            own.unread,
		Tracer:            traces.Tracer(),
		Clock:             clock.RealClock{},
		Aliases:           cfg.ClusterAliases,
		Namespaces:        opts.watched,
		Serves:            opts.serves,
		Tenancy:           tenancyOf(cfg, opts.namespace),
		MigrationLimiter:  controllers.NewMigrationLimiter(cfg.Migrations.Limit()),
		MaxRemovalPercent: cfg.Guards.RemovalPercent(),
		Concurrency:       opts.concurrency,
		StartGrace:        startGrace,
		FillGrace:         fillGrace,
	}
	if err := reconciler.SetupWithManager(ctx, mgr, events); err != nil {
		return fmt.Errorf("set up reconciler: %w", err)
	}
	return opts.webhook.setup(mgr, opts.namespace, kinds, cfg.Dependencies.LeaveOut)
}
