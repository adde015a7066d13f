// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	workWebhook        = "ocm-work-webhook"
	workWebhookAccount = "work-webhook-sa"
)

// workWebhookProgram: OCM's program serves the webhook, its health and its metrics on every interface, the latter two under ports that no flag
// changes.
//
//go:embed workwebhook.go.txt
var workWebhookProgram string

var workWebhookHost = &patch{module: ocmModule, dir: "cmd/work", to: workWebhookProgram}

// workWebhookUnits are OCM's webhook for ManifestWorks on the hub, and its configuration once it answers: that fails closed.
func (f *Fleet) workWebhookUnits() ([]unit, error) {
	p, err := f.ports(workWebhook, workWebhook+"-health", apiServerName(Hub))
	if err != nil {
		return nil, err
	}
	certs, kubeconfig := f.path(workWebhook), f.path(workWebhook+".kubeconfig")
	return []unit{
		{
			name: workWebhook, needs: []string{"hub-manifests"},
			prepare: func(ctx context.Context) error {
				if err := f.copyServingCert(certs); err != nil {
					return err
				}
				group := "system:serviceaccounts"
				err := f.pki.writeCertKubeconfig(kubeconfig, Hub, httpsURL(p[apiServerName(Hub)], ""),
					"system:serviceaccount:"+ocmNamespace+":"+workWebhookAccount, group, group+":"+ocmNamespace)
				if err != nil {
					return err
				}
				return f.ensureWorkWebhook(ctx, "webhook-clusterrole*.yaml", 0)
			},
			command: f.command(workWebhook,
				"--kubeconfig="+kubeconfig, fmt.Sprintf("--port=%d", p[workWebhook]), "--certdir="+certs,
				"--health="+address(p[workWebhook+"-health"])),
			ready: answers(httpURL(p[workWebhook+"-health"], "/readyz")),
		},
		{
			name: workWebhook + "-configuration", needs: []string{workWebhook},
			prepare: func(ctx context.Context) error {
				return f.ensureWorkWebhook(ctx, "webhook-validatingconfiguration.yaml", p[workWebhook])
			},
		},
	}, nil
}

// ensureWorkWebhook creates those of the webhook's manifests that match a pattern, with the webhook's address in place of a Service.
func (f *Fleet) ensureWorkWebhook(ctx context.Context, pattern string, port int) error {
	dir, err := f.builder.moduleDir(ctx, "ocm", ocmModule)
	if err != nil {
		return err
	}
	values := rendered(object{
		"ClusterManagerName": "cluster-manager", "ClusterManagerNamespace": ocmNamespace, "Labels": object{},
		"RegistrationWebhook": object{"Port": port}, "RegistrationAPIServiceCABundle": base64Of(f.pki.pem),
	})
	objects, err := loadObjects(filepath.Join(dir, "manifests/cluster-manager/hub/work", pattern), values)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := callByAddress(o, port); err != nil {
			return err
		}
	}
	c, err := f.client(Hub)
	if err != nil {
		return err
	}
	return c.ensure(ctx, objects...)
}

// callByAddress has webhooks called at a port of the loopback interface.
func callByAddress(config *unstructured.Unstructured, port int) error {
	hooks, ok, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil || !ok {
		return err
	}
	for _, hook := range hooks {
		called := hook.(object)["clientConfig"].(object)
		path, _, err := unstructured.NestedString(called, "service", "path")
		if err != nil {
			return err
		}
		delete(called, "service")
		called["url"] = httpsURL(port, path)
	}
	return unstructured.SetNestedSlice(config.Object, hooks, "webhooks")
}
