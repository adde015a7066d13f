package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/installcheck"
)

// checkOptions are flags.
type checkOptions struct {
	readyURL   string
	webhook    bool
	kubeconfig string
	namespace  string
	timeout    time.Duration
}

// checkCommand is what `helm test` runs: in the operator's own image, so that no other one is needed.
func checkCommand() *cobra.Command {
	var opts checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tells whether an operator that was installed does its work",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return check(cmd.Context(), opts, cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.readyURL, "ready-url", "", "address of /readyz of the operator; not asked when empty")
	flags.BoolVar(&opts.webhook, "webhook", false,
		"see whether the API server asks the operator about authors: as one who may create FleetWorkloads in the namespace and nothing else; nothing is stored")
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; when empty, the pod's ServiceAccount")
	flags.StringVar(&opts.namespace, "namespace", envOr("POD_NAMESPACE", "fleetworkload-system"), "namespace of the FleetWorkload that the API server is asked about")
	flags.DurationVar(&opts.timeout, "timeout", time.Minute, "how long to wait for each answer")
	return cmd
}

func check(ctx context.Context, opts checkOptions, out io.Writer) error {
	if opts.readyURL == "" && !opts.webhook {
		return errors.New("nothing to check: give --ready-url or --webhook")
	}
	ctrl.SetLogger(zap.New())
	if opts.readyURL != "" {
		// Each time another connection, which may lead to another replica.
		replicas := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		if err := within(ctx, opts.timeout, func(ctx context.Context) error {
			return installcheck.Ready(ctx, replicas, opts.readyURL)
		}); err != nil {
			return err
		}
		fmt.Fprintln(out, "The operator is ready.")
	}
	if !opts.webhook {
		return nil
	}
	if err := within(ctx, opts.timeout, func(ctx context.Context) error { return authors(ctx, opts) }); err != nil {
		return err
	}
	fmt.Fprintln(out, "The API server asks the operator what authors may ship.")
	return nil
}

// authors asks the management cluster's API server.
func authors(ctx context.Context, opts checkOptions) error {
	management, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return fmt.Errorf("connect to the management cluster: %w", err)
	}
	management.UserAgent, management.QPS = userAgent, -1
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	api, err := client.New(management, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the management cluster: %w", err)
	}
	return installcheck.Authors(ctx, api, opts.namespace)
}

func within(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx)
}
