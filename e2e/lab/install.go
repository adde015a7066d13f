// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kruiseCRDs are OpenKruise's CRDs without conversion webhooks.
func (f *Fleet) kruiseCRDs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	dir, err := f.builder.moduleDir(ctx, "kruise", kruiseModule)
	if err != nil {
		return nil, err
	}
	return loadObjects(filepath.Join(dir, "config/crd/bases/*.yaml"), nil)
}

// argoCRDs are those of Argo Workflows in their short form: the full ones are too large for some clients. There are none in a
// fleet without it.
func (f *Fleet) argoCRDs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if f.state.WithoutWorkflows {
		return nil, nil
	}
	dir, err := f.builder.moduleDir(ctx, "argo", argoModule)
	if err != nil {
		return nil, err
	}
	return loadObjects(filepath.Join(dir, "manifests/base/crds/minimal/argoproj.io_*.yaml"), nil)
}

// installArgo creates what Argo's controller wants to find. Its metrics would be served on every interface.
func (f *Fleet) installArgo(ctx context.Context, c *client) error {
	crds, err := f.argoCRDs(ctx)
	if err != nil {
		return err
	}
	if err := c.ensureCRDs(ctx, crds); err != nil {
		return err
	}
	const off = "enabled: false\n"
	return c.ensureMaps(ctx, object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "workflow-controller-configmap", "namespace": argoNamespace},
		"data": object{"metricsConfig": off, "telemetryConfig": off},
	})
}

// installKruise creates OpenKruise's CRDs and webhook configurations. The manager wants to find all of them and puts
// its own address and certificate in.
func (f *Fleet) installKruise(ctx context.Context, c *client) error {
	crds, err := f.kruiseCRDs(ctx)
	if err != nil {
		return err
	}
	dir, err := f.builder.moduleDir(ctx, "kruise", kruiseModule)
	if err != nil {
		return err
	}
	patches, err := loadObjects(filepath.Join(dir, "config/crd/patches/webhook_in_statefulsets.yaml"), nil)
	if err != nil {
		return err
	}
	for _, patch := range patches {
		for _, crd := range crds {
			if crd.GetName() == patch.GetName() {
				conversion, _, _ := unstructured.NestedMap(patch.Object, "spec", "conversion")
				if err := unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"); err != nil {
					return err
				}
			}
		}
	}
	if err := c.ensureCRDs(ctx, crds); err != nil {
		return err
	}
	webhooks, err := loadObjects(filepath.Join(dir, "config/webhook/manifests.yaml"), nil)
	if err != nil {
		return err
	}
	selectors, err := loadObjects(filepath.Join(dir, "config/webhook/patch_manifests.yaml"), nil)
	if err != nil {
		return err
	}
	for i := range webhooks {
		if err := mergeWebhooks(webhooks[i], selectors); err != nil {
			return err
		}
		webhooks[i].SetName("kruise-" + webhooks[i].GetName())
	}
	return c.ensure(ctx, webhooks...)
}

// mergeWebhooks adds the selectors that OpenKruise's kustomization adds: without them every deletion of a Namespace,
// Deployment or CRD would call the manager.
func mergeWebhooks(config *unstructured.Unstructured, patches []*unstructured.Unstructured) error {
	hooks, _, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, patch := range patches {
		if patch.GetKind() != config.GetKind() {
			continue
		}
		changes, _, _ := unstructured.NestedSlice(patch.Object, "webhooks")
		for _, change := range changes {
			for _, hook := range hooks {
				if hook.(object)["name"] == change.(object)["name"] {
					maps.Copy(hook.(object), change.(object))
				}
			}
		}
	}
	return unstructured.SetNestedSlice(config.Object, hooks, "webhooks")
}

// installKlusterlet creates what the klusterlet's operator would for the work agent: the agent may do what its own
// roles and those labelled aggregate-to-work allow, and nothing else.
func (f *Fleet) installKlusterlet(ctx context.Context, c *client) error {
	dir, err := f.builder.moduleDir(ctx, "ocm", ocmModule)
	if err != nil {
		return err
	}
	crds, err := loadObjects(filepath.Join(dir, "manifests/klusterlet/managed/*.crd.yaml"), nil)
	if err != nil {
		return err
	}
	if err := c.ensureCRDs(ctx, crds); err != nil {
		return err
	}
	const klusterlet = "klusterlet"
	values := rendered(object{
		"KlusterletName": klusterlet, "KlusterletNamespace": agentNamespace, "AgentNamespace": agentNamespace,
		"WorkServiceAccount": workAgent, "Labels": object{}, "ManagedClusterRoleArn": "",
		"RegistrationDriver": object{"AuthType": ""},
	})
	for _, pattern := range []string{
		"managed/klusterlet-work-*.yaml", "management/klusterlet-work-role*.yaml", "management/klusterlet-role-extension-apiserver.yaml",
	} {
		objects, err := loadObjects(filepath.Join(dir, "manifests/klusterlet", pattern), values)
		if err != nil {
			return err
		}
		if err := c.ensure(ctx, objects...); err != nil {
			return err
		}
	}
	// The one role that the operator makes in code.
	return c.ensureMaps(ctx, object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": object{"name": "open-cluster-management:" + klusterlet + "-work:aggregate"},
		"aggregationRule": object{"clusterRoleSelectors": []any{
			object{"matchLabels": object{"open-cluster-management.io/aggregate-to-work": "true"}},
		}},
		"rules": []any{},
	})
}

// letKarmadaIn gives Karmada's users in a member their rights: to its controllers, or to its agent in the member.
func (f *Fleet) letKarmadaIn(ctx context.Context, c *client, m Member) error {
	if m.Pull {
		return f.installKarmadaAgent(ctx, c)
	}
	return c.ensureMaps(ctx, karmadaAccess(m)...)
}

// karmadaAccess gives Karmada's users what karmadactl join gives them.
func karmadaAccess(m Member) []object {
	account := "karmada-" + m.KarmadaName
	const group = "rbac.authorization.k8s.io"
	return []object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": karmadaClusterNamespace}},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "karmada-impersonator", "namespace": karmadaClusterNamespace}},
		{
			"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": object{"name": "karmada-controller-manager:" + account},
			"rules": []any{
				object{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}},
				object{"nonResourceURLs": []any{"*"}, "verbs": []any{"get"}},
			},
		},
		{
			"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": "karmada-controller-manager:" + account},
			"roleRef":  object{"apiGroup": group, "kind": "ClusterRole", "name": "karmada-controller-manager:" + account},
			"subjects": []any{object{"kind": "ServiceAccount", "name": account, "namespace": karmadaClusterNamespace}},
		},
	}
}

// kruiseDefaults asks for a CloneSet without creating it: only with OpenKruise's webhook it comes back with defaults.
func (f *Fleet) kruiseDefaults(ctx context.Context, m Member) error {
	c, err := f.client(m.Name)
	if err != nil {
		return err
	}
	const api, kind = "apps.kruise.io/v1alpha1", "CloneSet"
	labels := object{"app": "probe"}
	probe := &unstructured.Unstructured{Object: object{
		"apiVersion": api, "kind": kind, "metadata": object{"name": "webhook-probe", "namespace": "default"},
		"spec": object{
			"selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{object{"name": "main", "image": "probe"}}}},
		},
	}}
	got, err := c.resource(schema.FromAPIVersionAndKind(api, kind), "default").
		Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if _, ok, _ := unstructured.NestedInt64(got.Object, "spec", "revisionHistoryLimit"); !ok {
		return fmt.Errorf("OpenKruise's webhook does not default CloneSets yet")
	}
	return nil
}
