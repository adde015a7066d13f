package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// newClient connects to the management cluster.
func newClient(flags *genericclioptions.ConfigFlags) (client.WithWatch, error) {
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}
	scheme, kinds := runtime.NewScheme(), runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1alpha1.AddToScheme)
	if err := kinds.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}
	return c, nil
}

// explain words the error of a person who looks at the wrong cluster.
func explain(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this cluster does not serve FleetWorkloads (%w); choose the management cluster with --kubeconfig or --context, or install the CRD there", err)
	}
	return err
}

// namespaceOf returns the namespace that flags and kubeconfig choose, and whether a flag did.
func namespaceOf(flags *genericclioptions.ConfigFlags) (namespace string, explicit bool, err error) {
	if flags.Namespace != nil && *flags.Namespace != "" {
		return *flags.Namespace, true, nil
	}
	namespace, _, err = flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, fmt.Errorf("read kubeconfig: %w", err)
	}
	return namespace, false, nil
}
