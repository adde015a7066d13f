// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const (
	karmadaNamespace = "karmada-system"
	// karmadaClusterNamespace holds the credentials of members.
	karmadaClusterNamespace = "karmada-cluster"
	clusterAPI              = "cluster.karmada.io/v1alpha1"
)

// karmadaUnits is the Karmada control plane.
func (f *Fleet) karmadaUnits() ([]unit, error) {
	units, err := collect(nil,
		func() (unit, error) {
			return f.apiServerUnit(apiServer{
				cluster: Karmada,
				// No pod ever runs here, and templates must not be changed.
				withoutAdmission: []string{"StorageObjectInUseProtection", "ServiceAccount"},
			})
		},
		// The garbage collector must know the clusters' API from the beginning: a failing group stops its first sync.
		func() (unit, error) {
			return f.controllerManagerUnit(controllerManager{
				cluster: Karmada, controllers: controlPlaneControllers, needs: []string{"karmada-clusters-api"},
			})
		})
	if err != nil {
		return nil, err
	}
	p, err := f.ports("etcd", "karmada-aggregated-apiserver", "karmada-webhook",
		"karmada-controller-manager", "karmada-scheduler")
	if err != nil {
		return nil, err
	}
	kubeconfig := f.Kubeconfig(Karmada)
	webhookCerts := f.path("karmada-webhook")
	return append(units,
		unit{name: "karmada-manifests", needs: []string{apiServerName(Karmada)}, prepare: f.prepareKarmada},
		unit{
			name: "karmada-aggregated-apiserver", needs: []string{apiServerName(Karmada)},
			command: f.command("karmada-aggregated-apiserver",
				"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
				"--etcd-servers="+httpURL(p["etcd"], ""), "--etcd-prefix=/karmada-aggregated",
				"--tls-cert-file="+f.pki.file("serving.crt"), "--tls-private-key-file="+f.pki.file("serving.key"),
				"--bind-address="+loopback, fmt.Sprintf("--secure-port=%d", p["karmada-aggregated-apiserver"])),
			ready: answers(httpsURL(p["karmada-aggregated-apiserver"], "/readyz")),
		},
		unit{
			name: "karmada-clusters-api", needs: []string{"karmada-aggregated-apiserver", "karmada-manifests"},
			prepare: func(ctx context.Context) error {
				return f.registerClustersAPI(ctx, p["karmada-aggregated-apiserver"])
			},
			ready: f.clustersAPIReady,
		},
		unit{
			name: "karmada-webhook", needs: []string{"karmada-clusters-api"},
			prepare: func(context.Context) error { return f.copyServingCert(webhookCerts) },
			command: f.command("karmada-webhook",
				"--kubeconfig="+kubeconfig, "--bind-address="+loopback, fmt.Sprintf("--secure-port=%d", p["karmada-webhook"]),
				"--cert-dir="+webhookCerts, "--metrics-bind-address=0", "--health-probe-bind-address=0"),
			// It answers beside the webhooks; its health address has no checks.
			ready: answers(httpsURL(p["karmada-webhook"], "/readyz/")),
		},
		unit{
			// Not before the webhook answers: its configurations fail closed. And before the controllers run: objects
			// made without it lack the permanent ids.
			name: "karmada-webhook-configurations", needs: []string{"karmada-webhook"},
			prepare: func(ctx context.Context) error { return f.configureKarmadaWebhook(ctx, p["karmada-webhook"]) },
		},
		unit{
			name: "karmada-controller-manager", needs: []string{"karmada-webhook-configurations"},
			command: f.command("karmada-controller-manager",
				"--kubeconfig="+kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
				"--health-probe-bind-address="+address(p["karmada-controller-manager"]),
				"--kube-api-qps=200", "--kube-api-burst=400", "--cluster-api-qps=200", "--cluster-api-burst=400",
				// A paused member shall be seen as such within seconds.
				"--cluster-status-update-frequency=5s", "--cluster-failure-threshold=10s", "--cluster-success-threshold=5s",
				// As the management cluster's.
				"--horizontal-pod-autoscaler-sync-period=2s"),
			ready: answers(httpURL(p["karmada-controller-manager"], "/healthz")),
		},
		unit{
			name: "karmada-scheduler", needs: []string{"karmada-webhook-configurations"},
			command: f.command("karmada-scheduler",
				"--kubeconfig="+kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
				"--health-probe-bind-address="+address(p["karmada-scheduler"]),
				"--kube-api-qps=200", "--kube-api-burst=400", "--enable-scheduler-estimator=false"),
			ready: answers(httpURL(p["karmada-scheduler"], "/healthz")),
		}), nil
}

// prepareKarmada installs Karmada's CRDs and, so that templates can be stored, OpenKruise's and Argo's.
func (f *Fleet) prepareKarmada(ctx context.Context) error {
	dir, err := f.builder.moduleDir(ctx, "shared", karmadaModule)
	if err != nil {
		return err
	}
	crds, err := loadObjects(filepath.Join(dir, "charts/karmada/_crds/bases/*/*.yaml"), nil)
	if err != nil {
		return err
	}
	// Without the conversion webhook of the installed ones: nothing of OpenKruise runs here.
	kruise, err := f.kruiseCRDs(ctx)
	if err != nil {
		return err
	}
	argo, err := f.argoCRDs(ctx)
	if err != nil {
		return err
	}
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	if err := c.ensureMaps(ctx, namespaceObject(karmadaNamespace), namespaceObject(karmadaClusterNamespace)); err != nil {
		return err
	}
	return c.ensureCRDs(ctx, slices.Concat(crds, kruise, argo))
}

// registerClustersAPI lets the Karmada API server serve the Cluster kind from the aggregated one. The manifest of
// Karmada addresses it by a name inside a cluster; here an ExternalName leads to localhost.
func (f *Fleet) registerClustersAPI(ctx context.Context, port int) error {
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	const name = "karmada-aggregated-apiserver"
	return c.ensureMaps(ctx,
		object{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name, "namespace": karmadaNamespace},
			"spec": object{"type": "ExternalName", "externalName": "localhost"},
		},
		object{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": object{"name": "v1alpha1.cluster.karmada.io"},
			"spec": object{
				"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(10),
				"caBundle": base64Of(f.pki.pem),
				"service":  object{"name": name, "namespace": karmadaNamespace, "port": int64(port)},
			},
		})
}

func (f *Fleet) clustersAPIReady(ctx context.Context) error {
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	service, err := c.get(ctx, "apiregistration.k8s.io/v1", "APIService", "", "v1alpha1.cluster.karmada.io")
	if err != nil {
		return err
	}
	return conditionTrue(service, "Available")
}

// copyServingCert puts the serving certificate under the names that controller-runtime looks for.
func (f *Fleet) copyServingCert(dir string) error {
	for from, to := range map[string]string{"serving.crt": "tls.crt", "serving.key": "tls.key"} {
		data, err := os.ReadFile(f.pki.file(from))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, to), data); err != nil {
			return err
		}
	}
	return nil
}

// configureKarmadaWebhook creates the webhook configurations with the addresses rewritten to the webhook's port.
func (f *Fleet) configureKarmadaWebhook(ctx context.Context, port int) error {
	dir, err := f.builder.moduleDir(ctx, "shared", karmadaModule)
	if err != nil {
		return err
	}
	configurations, err := loadObjects(filepath.Join(dir, "artifacts/deploy/webhook-configuration.yaml"), func(text []byte) ([]byte, error) {
		text = bytes.ReplaceAll(text, []byte("https://karmada-webhook.karmada-system.svc:443"), []byte(httpsURL(port, "")))
		return bytes.ReplaceAll(text, []byte("{{caBundle}}"), []byte(base64Of(f.pki.pem))), nil
	})
	if err != nil {
		return err
	}
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	return c.ensure(ctx, configurations...)
}
