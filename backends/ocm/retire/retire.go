// Package retire looks through an OCM hub that is to be switched off: which objects of members would go with it, and how they stay.
package retire

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
)

// page is how many ManifestWorks a request asks for: each may have hundreds of kilobytes.
const page = 200

// Hub is an OCM hub that is to be switched off.
type Hub struct{ client client.Client }

var _ backends.Retirer = (*Hub)(nil)

// New connects to the hub whose API server cfg leads to. It sends no request. The caller needs the right to list ManifestWorks, and for
// Preserve to patch ManifestWorks and ManifestWorkReplicaSets.
func New(cfg *rest.Config) (*Hub, error) {
	known, kinds := runtime.NewScheme(), runtime.NewSchemeBuilder(workv1.Install, workv1alpha1.Install)
	if err := kinds.AddToScheme(known); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: backends.Bounded(httpClient), Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return &Hub{client: c}, nil
}

// Dependents implements backends.Retirer.
func (h *Hub) Dependents(ctx context.Context) ([]backends.Dependent, error) {
	var out []backends.Dependent
	for from := ""; ; {
		var list workv1.ManifestWorkList
		if err := h.client.List(ctx, &list, client.Limit(page), client.Continue(from)); err != nil {
			return nil, backends.Classify("list ManifestWorks", err)
		}
		for i := range list.Items {
			out = append(out, Dependents(&list.Items[i])...)
		}
		if from = list.Continue; from == "" {
			return out, nil
		}
	}
}

// Preserve implements backends.Retirer.
func (h *Hub) Preserve(ctx context.Context, owner backends.Owner) error {
	change := map[string]any{"deleteOption": map[string]any{
		"propagationPolicy": workv1.DeletePropagationPolicyTypeOrphan, "selectivelyOrphans": nil,
	}}
	obj := &unstructured.Unstructured{}
	switch owner.Kind {
	case kindManifestWork:
		obj.SetGroupVersionKind(workv1.SchemeGroupVersion.WithKind(kindManifestWork))
		change = map[string]any{"spec": change}
	case kindReplicaSet:
		obj.SetGroupVersionKind(workv1alpha1.SchemeGroupVersion.WithKind(kindReplicaSet))
		change = map[string]any{"spec": map[string]any{"manifestWorkTemplate": change}}
	default:
		return fmt.Errorf("%s %s/%s: what it has brought to clusters cannot be made to stay", owner.Kind, owner.Namespace, owner.Name)
	}
	obj.SetNamespace(owner.Namespace)
	obj.SetName(owner.Name)
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if err := h.client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", raw)); err != nil {
		return fmt.Errorf("patch %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	}
	return nil
}
