package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

const retireLong = `Say whether a backend may be switched off: Karmada uninstalled or its clusters unjoined, an OCM hub taken down or its
clusters detached.

It lists the FleetWorkloads that depend on the backend, and every object on its clusters that would go with it, by whomever it was brought
there. It changes nothing.

--preserve has the objects of others stay on the clusters: policies of Karmada and ManifestWorks of OCM are told to leave what they have
brought, and namespaces that Karmada has made are taken out of its hands. From then on nobody removes them, also when their owner is
deleted. FleetWorkloads are not touched: migrate them, or delete them. With --dry-run it only says what it would write.

The exit code is 0 when the backend may be switched off, and 1 when not.`

const retireExample = `  # What stands against switching Karmada off?
  kubectl-fw backend retire karmada --config operator.yaml --backend-kubeconfig karmada-admin.kubeconfig

  # Let what others have brought to clusters through it stay there
  kubectl-fw backend retire karmada --config operator.yaml --backend-kubeconfig karmada-admin.kubeconfig --preserve

  # What stands against it, for scripts
  kubectl-fw backend retire karmada --config operator.yaml --backend-kubeconfig karmada-admin.kubeconfig -o json`

const (
	// preserveTimeout is how long a backend may take to hand on to its clusters what is to be preserved.
	preserveTimeout = time.Minute
	preservePoll    = 2 * time.Second
	// fleetWorkloadPage is how many FleetWorkloads a request asks for.
	fleetWorkloadPage = 500
)

func newBackendCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backend",
		Short: "Look after a whole backend",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newRetireCommand(flags, streams))
	return cmd
}

type retireOptions struct {
	config, operatorNamespace, kubeconfig string
	preserve, dryRun                      bool
	output                                *output
}

func newRetireCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	opts := retireOptions{output: newOutput(true)}
	cmd := &cobra.Command{
		Use:               "retire BACKEND --config FILE",
		Short:             "Say whether a backend may be switched off, and what would go with it",
		Long:              retireLong,
		Example:           retireExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeBackend(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.output.check(); err != nil {
				return err
			}
			r, err := opts.connect(cmd.Context(), flags, args[0])
			if err != nil {
				return err
			}
			return r.run(cmd.Context(), streams, opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, which names the backend")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system",
		"where Secrets that the configuration names are, on the management cluster")
	f.StringVar(&opts.kubeconfig, "backend-kubeconfig", "",
		"kubeconfig of an administrator of the backend; the operator's own, which the configuration names, may not see everything")
	f.BoolVar(&opts.preserve, "preserve", false, "have what others have brought to clusters stay there")
	f.BoolVar(&opts.dryRun, "dry-run", false, "with --preserve: say what would be written, and write nothing")
	opts.output.addFlags(cmd, "wide is not cut at the edge of a terminal; json, yaml and the others print fields; name prints the FleetWorkloads that depend on the backend")
	_ = cmd.MarkFlagRequired("config") // the flag exists
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	return cmd
}

// retirement is what it takes to look through a backend.
type retirement struct {
	name       string
	kind       config.Type
	management client.Reader
	backend    backends.Retirer
	// timeout is how long to wait until the backend has taken something up.
	timeout, poll time.Duration
}

func (o retireOptions) connect(ctx context.Context, flags *genericclioptions.ConfigFlags, name string) (*retirement, error) {
	cfg, err := config.Load(o.config)
	if err != nil {
		return nil, err
	}
	management, err := newClient(flags)
	if err != nil {
		return nil, err
	}
	for _, b := range cfg.Backends {
		if b.Name != name {
			continue
		}
		access, err := o.access(ctx, flags, management, b.Connection)
		if err != nil {
			return nil, fmt.Errorf("connect to backend %s: %w", name, err)
		}
		backend, err := drivers.Retirer(access, b.Type)
		return &retirement{name: name, kind: b.Type, management: management, backend: backend, timeout: preserveTimeout, poll: preservePoll}, err
	}
	return nil, fmt.Errorf("%s names no backend %q", o.config, name)
}

// access is how to reach the backend: as its administrator, or else as the operator.
func (o retireOptions) access(ctx context.Context, flags *genericclioptions.ConfigFlags, management client.Reader, c config.Connection) (*rest.Config, error) {
	if o.kubeconfig != "" {
		cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return nil, err
		}
		cfg.UserAgent, cfg.QPS = userAgent, -1
		return cfg, nil
	}
	inCluster, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}
	cfg, _, err := connection.KubeconfigSource{
		Secrets: management, Namespace: o.operatorNamespace, InCluster: inCluster, UserAgent: userAgent,
	}.Load(ctx, c)
	return cfg, err
}

// look reads the management cluster and the backend.
func (r *retirement) look(ctx context.Context) (standing, error) {
	s := standing{backend: r.name, kind: r.kind, at: map[fleetWorkload]string{}}
	for from := ""; ; {
		var list v1alpha1.FleetWorkloadList
		if err := r.management.List(ctx, &list, client.Limit(fleetWorkloadPage), client.Continue(from)); err != nil {
			return s, fmt.Errorf("list FleetWorkloads: %w", explain(err))
		}
		for i := range list.Items {
			s.add(&list.Items[i])
		}
		if from = list.Continue; from == "" {
			break
		}
	}
	dependents, err := r.backend.Dependents(ctx)
	if err != nil {
		return s, fmt.Errorf("look through backend %s: %w", r.name, err)
	}
	s.dependents = dependents
	return s, nil
}
