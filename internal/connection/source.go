package connection

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/config"
)

// DefaultSecretKey is the key of a Secret that holds a kubeconfig, when none is named.
const DefaultSecretKey = "kubeconfig"

// SecretKey is the key that a reference means.
func SecretKey(ref *config.SecretRef) string {
	if ref.Key == "" {
		return DefaultSecretKey
	}
	return ref.Key
}

// Anew is the command that makes the kubeconfig of a backend again, which a Secret has.
func Anew(backend config.Backend) string {
	command := fmt.Sprintf("kubectl fw kubeconfig %s --backend-kubeconfig FILE --secret %s", backend.Name, backend.Connection.SecretRef.Name)
	if key := SecretKey(backend.Connection.SecretRef); key != DefaultSecretKey {
		command += " --key " + key
	}
	return command
}

// probeTimeout bounds one look at a backend's health.
const probeTimeout = 5 * time.Second

// KubeconfigSource reads kubeconfigs from files and Secrets. One from a Secret is data only: without programs, files, a proxy or an
// unverified server. A file is the administrator's own, who may mount what it names.
type KubeconfigSource struct {
	// Secrets reads Secrets, from a cache.
	Secrets client.Reader
	// Namespace of the Secrets.
	Namespace string
	// InCluster is the configuration of the management cluster.
	InCluster *rest.Config
	// UserAgent names the operator to API servers.
	UserAgent string
}

var _ Source = KubeconfigSource{}

// Load implements Source.
func (s KubeconfigSource) Load(ctx context.Context, connection config.Connection) (*rest.Config, [sha256.Size]byte, error) {
	if connection.InCluster != nil {
		return rest.CopyConfig(s.InCluster), [sha256.Size]byte{}, nil
	}
	raw, origin, err := s.read(ctx, connection)
	if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	if connection.SecretRef != nil {
		if err := onlyData(raw); err != nil {
			return nil, [sha256.Size]byte{}, fmt.Errorf("%s %w", origin, err)
		}
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, [sha256.Size]byte{}, fmt.Errorf("%s does not hold a valid kubeconfig: %w", origin, redact(err))
	}
	cfg.UserAgent = s.UserAgent
	// API servers have priority and fairness; a limit on our side would only stretch a change over 1,000 clusters.
	cfg.QPS = -1
	return cfg, sha256.Sum256(raw), nil
}

func (s KubeconfigSource) read(ctx context.Context, connection config.Connection) (raw []byte, origin string, err error) {
	if connection.KubeconfigFile != "" {
		raw, err = os.ReadFile(connection.KubeconfigFile)
		if err != nil {
			return nil, "", fmt.Errorf("read kubeconfig: %w", err)
		}
		return raw, "file " + connection.KubeconfigFile, nil
	}
	ref := connection.SecretRef
	key := SecretKey(ref)
	var secret corev1.Secret
	if err := s.Secrets.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: ref.Name}, &secret); err != nil {
		return nil, "", fmt.Errorf("read kubeconfig from Secret %s/%s: %w", s.Namespace, ref.Name, err)
	}
	raw, ok := secret.Data[key]
	if !ok {
		return nil, "", fmt.Errorf("the Secret %s/%s has no key %q", s.Namespace, ref.Name, key)
	}
	return raw, fmt.Sprintf("Secret %s/%s, key %s,", s.Namespace, ref.Name, key), nil
}

// onlyData refuses a kubeconfig that is more than data. Who may write a Secret must not run programs in the operator's container, have it
// read its files (its own token among them) and send them somewhere, or put themselves between it and the backend.
func onlyData(raw []byte) error {
	cfg, err := clientcmd.Load(raw)
	if err != nil {
		return fmt.Errorf("does not hold a valid kubeconfig: %w", redact(err))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.AuthInfos)) {
		switch user := cfg.AuthInfos[name]; {
		case user.Exec != nil || user.AuthProvider != nil:
			return fmt.Errorf("uses an exec or auth provider plugin in user %q: use a token or a certificate", name)
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return fmt.Errorf("names a file in user %q: use token, client-certificate-data and client-key-data", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Clusters)) {
		server, err := url.Parse(cfg.Clusters[name].Server)
		switch cluster := cfg.Clusters[name]; {
		case cluster.CertificateAuthority != "":
			return fmt.Errorf("names a file in cluster %q: use certificate-authority-data", name)
		case cluster.ProxyURL != "":
			return fmt.Errorf("has a proxy-url in cluster %q: set HTTPS_PROXY for the operator instead", name)
		case cluster.InsecureSkipTLSVerify, err != nil, server.Scheme != "https":
			return fmt.Errorf("does not verify the server of cluster %q: name an https address and its certificate-authority-data", name)
		}
	}
	return nil
}

// redact drops the parser's quotation of its input, which may hold credentials.
func redact(err error) error {
	if clientcmd.IsConfigurationInvalid(err) || clientcmd.IsEmptyConfig(err) {
		return err
	}
	return errors.New("it cannot be parsed")
}

// probe asks the API server whether it is ready.
func probe(ctx context.Context, cfg *rest.Config) error {
	short := rest.CopyConfig(cfg)
	short.Timeout = probeTimeout
	client, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("ask %s whether it is ready: %w", cfg.Host, err)
	}
	return nil
}
