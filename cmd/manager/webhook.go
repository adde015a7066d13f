package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fleetworkload/fleetworkload/internal/admission"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/serving"
)

// webhookOptions are flags.
type webhookOptions struct {
	address       string
	certDir       string
	hosts         []string
	secret        string
	configuration string
}

func (o *webhookOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "webhook-bind-address", "0",
		"address of the admission webhook, which asks whether authors may create what their FleetWorkloads ship; 0 turns it off")
	flags.StringVar(&o.certDir, "webhook-cert-dir", "",
		"folder with tls.crt and tls.key, which somebody else renews and has API servers trust; when empty, the operator makes and renews its own")
	flags.StringSliceVar(&o.hosts, "webhook-hosts", nil, "DNS names under which the API server calls the webhook, for the operator's own certificate")
	flags.StringVar(&o.secret, "webhook-secret", "fleetworkload-webhook", "Secret of the operator's namespace that keeps its own certificate")
	flags.StringVar(&o.configuration, "webhook-configuration", "fleetworkload",
		"ValidatingWebhookConfiguration that is told to trust the operator's own certificate")
}

// off tells whether no webhook is served.
func (o *webhookOptions) off() bool { return o.address == "" || o.address == "0" }

// setup serves the webhook on every replica, whoever leads.
func (o *webhookOptions) setup(mgr ctrl.Manager, namespace string, kinds *interpreter.Registry, leaveOut []string) error {
	if o.off() {
		return nil
	}
	host, text, err := net.SplitHostPort(o.address)
	if err != nil {
		return fmt.Errorf("--webhook-bind-address %q: %w", o.address, err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("--webhook-bind-address %q: %w", o.address, err)
	}
	options := webhook.Options{Host: host, Port: port, CertDir: o.certDir}
	if o.certDir == "" {
		keeper, err := o.keep(mgr, namespace)
		if err != nil {
			return err
		}
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.Certificate })
	}
	validator := &admission.Validator{
		Reviews: mgr.GetClient(), Decoder: ctrladmission.NewDecoder(mgr.GetScheme()), Kinds: kinds, LeaveOut: leaveOut,
	}
	server := webhook.NewServer(options)
	server.Register(admission.Path, &webhook.Admission{Handler: validator})
	if err := mgr.AddReadyzCheck("webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("add readiness check of the webhook: %w", err)
	}
	if err := mgr.Add(served{server}); err != nil {
		return fmt.Errorf("add the webhook: %w", err)
	}
	return nil
}

// keep has a certificate kept, and the API server trust it.
func (o *webhookOptions) keep(mgr ctrl.Manager, namespace string) (*serving.Keeper, error) {
	if len(o.hosts) == 0 {
		return nil, fmt.Errorf("--webhook-hosts is missing: name what the API server calls the webhook by, such as fleetworkload-webhook.%s.svc", namespace)
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster for the webhook's certificate: %w", err)
	}
	keeper := &serving.Keeper{
		Client: direct, Secret: types.NamespacedName{Namespace: namespace, Name: o.secret}, Configuration: o.configuration,
		Hosts: o.hosts, Clock: clock.RealClock{},
	}
	if err := mgr.AddReadyzCheck("webhook-certificate", keeper.Check); err != nil {
		return nil, fmt.Errorf("add readiness check of the webhook's certificate: %w", err)
	}
	if err := mgr.Add(keeper); err != nil {
		return nil, fmt.Errorf("add the keeper of the webhook's certificate: %w", err)
	}
	return keeper, nil
}

// served starts a webhook beside everything else. The manager would start nothing before a webhook of its own answers, which takes a certificate.
type served struct{ server webhook.Server }

// NeedLeaderElection says that each replica serves.
func (served) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s served) Start(ctx context.Context) error {
	if err := s.server.Start(ctx); err != nil {
		return fmt.Errorf("serve the webhook: %w", err)
	}
	return nil
}
