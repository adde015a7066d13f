package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/internal/connection"
	"github.com/fleetworkload/fleetworkload/internal/tokens"
)

const kubeconfigLong = `Make the kubeconfig by which the operator reaches a backend, with a token of its account there that does not last, and write it
into a Secret of the management cluster. The operator renews the token, and takes a new one over without a restart.

The backend must have the operator's account: kubectl apply -k config/backends/karmada or config/backends/ocm. The rights that you need: to create
serviceaccounts/token of it there, and to write Secrets of the operator's namespace here.

Run it again whenever you like: the Secret gets a new token, and the address and the certificate authority that --backend-kubeconfig has by now.`

const kubeconfigExample = `  # For a backend that the operator's configuration names karmada: the Secret karmada-kubeconfig
  kubectl-fw kubeconfig karmada --backend-kubeconfig karmada-admin.kubeconfig

  # With the address by which pods of the management cluster reach it
  kubectl-fw kubeconfig karmada --backend-kubeconfig karmada-admin.kubeconfig --server https://karmada-apiserver.karmada-system.svc:5443

  # Look at the Secret, and write nothing
  kubectl-fw kubeconfig karmada --backend-kubeconfig karmada-admin.kubeconfig -o yaml`

type kubeconfigOptions struct {
	admin, context, server    string
	account, namespace        string
	secret, key               string
	operatorNamespace, output string
	life                      time.Duration
	renew                     bool
}

func newKubeconfigCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts kubeconfigOptions
	cmd := &cobra.Command{
		Use:               "kubeconfig BACKEND --backend-kubeconfig FILE",
		Short:             "Make the operator's kubeconfig for a backend, with a token that it renews",
		Long:              kubeconfigLong,
		Example:           kubeconfigExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeBackend(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.secret == "" {
				opts.secret = args[0] + "-kubeconfig"
			}
			return opts.run(cmd.Context(), flags, streams)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.admin, "backend-kubeconfig", "", "kubeconfig of an administrator of the backend")
	f.StringVar(&opts.context, "backend-context", "", "context of it; its current one when empty")
	f.StringVar(&opts.server, "server", "", "address by which the operator reaches the backend; that of --backend-kubeconfig when empty")
	f.StringVar(&opts.account, "service-account", "fleetworkload", "the operator's ServiceAccount on the backend")
	f.StringVar(&opts.namespace, "service-account-namespace", "fleetworkload-system", "its namespace")
	f.DurationVar(&opts.life, "duration", 24*time.Hour, "how long a token lasts, from 10m; the backend may make it shorter")
	f.BoolVar(&opts.renew, "renew", true, "have the operator renew the token; without, make another one in time")
	f.StringVar(&opts.secret, "secret", "", "name of the Secret; BACKEND-kubeconfig when empty")
	f.StringVar(&opts.key, "key", connection.DefaultSecretKey, "key in the Secret")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system", "namespace of the Secret, on the management cluster")
	f.StringVarP(&opts.output, "output", "o", "", "yaml prints the Secret and writes nothing")
	_ = cmd.MarkFlagRequired("backend-kubeconfig") // the flag exists
	completeFlag(cmd, "backend-context", completeContextsOf(flags, "backend-kubeconfig"))
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	completeOutput(cmd, "yaml")
	return cmd
}

func (o kubeconfigOptions) run(ctx context.Context, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) error {
	if o.output != "" && o.output != "yaml" {
		return fmt.Errorf("-o %s: only yaml can be printed", o.output)
	}
	if o.life < 10*time.Minute {
		return fmt.Errorf("--duration %s: a token lasts ten minutes or longer", o.life)
	}
	backend, err := o.backend()
	if err != nil {
		return err
	}
	token, err := tokens.Request(ctx, backend, types.NamespacedName{Namespace: o.namespace, Name: o.account}, o.life)
	if err != nil {
		return err
	}
	if o.renew {
		if err := warn(ctx, backend, token, streams); err != nil {
			return err
		}
	}
	if o.server != "" {
		backend.Host = o.server
	}
	secret, err := o.secretWith(backend, token)
	if err != nil {
		return err
	}
	if o.output != "" {
		raw, err := yaml.Marshal(secret.Object)
		if err != nil {
			return fmt.Errorf("print the Secret: %w", err)
		}
		_, err = streams.Out.Write(raw)
		return err
	}
	management, err := newClient(flags)
	if err != nil {
		return err
	}
	if err := management.Apply(ctx, client.ApplyConfigurationFromUnstructured(secret), client.FieldOwner(userAgent), client.ForceOwnership); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", o.operatorNamespace, o.secret, err)
	}
	_, err = fmt.Fprintln(streams.Out, o.told(token))
	return err
}

// warn says now what would end the connection when the token does.
func warn(ctx context.Context, backend *rest.Config, token tokens.Token, streams genericiooptions.IOStreams) error {
	renews, err := tokens.Renews(ctx, backend, token)
	if err != nil || renews {
		return err
	}
	_, err = fmt.Fprintf(streams.ErrOut, "warning: ServiceAccount %s may not ask for tokens of itself on the backend, so that the operator cannot renew this one: "+
		"apply config/backends/karmada or config/backends/ocm there, or make another one by %s\n", token.Account, token.Expires.UTC().Format(time.RFC3339))
	return err
}

// backend is reached as its administrator.
func (o kubeconfigOptions) backend() (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.admin},
		&clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--backend-kubeconfig %s: %w", o.admin, err)
	}
	cfg.UserAgent = userAgent
	return cfg, nil
}

func (o kubeconfigOptions) secretWith(backend *rest.Config, token tokens.Token) (*unstructured.Unstructured, error) {
	raw, err := tokens.Kubeconfig(backend, token)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.operatorNamespace, Name: o.secret},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{o.key: raw},
	}
	if o.renew {
		secret.Annotations = map[string]string{tokens.AnnotationRenewAfter: tokens.RenewAfter(token.Life()).String()}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return nil, fmt.Errorf("encode the Secret: %w", err)
	}
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: object}, nil
}

func (o kubeconfigOptions) told(token tokens.Token) string {
	then := "make another one by then"
	if o.renew {
		then = "the operator renews it"
	}
	return fmt.Sprintf("Secret %s/%s has a token of ServiceAccount %s that holds until %s; %s.", o.operatorNamespace, o.secret, token.Account,
		token.Expires.UTC().Format(time.RFC3339), then)
}
