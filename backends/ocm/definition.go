package ocm

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

var definitionGVK = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// shipDefinitions sends the kind's CRD to the clusters that lack it, when that is configured, and says what is awaited.
func (d *Driver) shipDefinitions(ctx context.Context, query backends.Query, unsupported map[string]string) (waiting []string, err error) {
	if !d.opts.ShipDefinitions {
		return nil, nil
	}
	for _, cluster := range slices.Sorted(maps.Keys(unsupported)) {
		step, err := d.shipDefinition(ctx, query, cluster)
		if err != nil {
			return waiting, err
		}
		waiting = append(waiting, cluster+": "+step)
	}
	return waiting, nil
}

// shipDefinition sends the CRD as the hub has it. It is created on the cluster once, and never changed or removed by the
// operator: everything of the kind goes with its CRD.
func (d *Driver) shipDefinition(ctx context.Context, query backends.Query, cluster string) (waiting string, err error) {
	name := query.Workload.Resource + "." + query.Workload.GVK.Group
	at := newObject(manifestWorkGVK, cluster, definitionWorkName(query.Workload.GVK.Group, query.Workload.Resource))
	d.prerequisiteUsers.Add(client.ObjectKeyFromObject(at), query.Key.NamespacedName)
	live, err := d.cached(ctx, at)
	if err != nil {
		return "", err
	}
	if live != nil {
		return d.awaitPrerequisite(live, live), nil
	}
	definition := unstructuredOf(definitionGVK)
	err = d.hub.Get(ctx, client.ObjectKey{Name: name}, definition)
	if apierrors.IsNotFound(err) {
		return "the hub has no CRD " + name + " to ship: create it there", nil
	}
	if err != nil {
		return "", explain("get CRD "+name, err)
	}
	work := renderDefinitionWork(cluster, query.Workload, definition)
	_, err = ssa.Send(ctx, d.hub, work)
	return "the agent to create " + prerequisiteTitle(work), explain("apply "+title(work), err)
}

// renderDefinitionWork creates a CRD, and leaves it when it goes.
func renderDefinitionWork(cluster string, workload backends.Workload, definition *unstructured.Unstructured) *unstructured.Unstructured {
	manifest := map[string]any{
		"apiVersion": definition.GetAPIVersion(), "kind": definition.GetKind(),
		"metadata": map[string]any{"name": definition.GetName()},
		"spec":     definition.Object["spec"],
	}
	return renderPrerequisite(cluster, definitionWorkName(workload.GVK.Group, workload.Resource), prerequisiteDefinition, manifest,
		map[string]any{
			"group": definitionGVK.Group, "resource": "customresourcedefinitions", "namespace": "", "name": definition.GetName(),
		},
		map[string]any{"type": string(workv1.UpdateStrategyTypeCreateOnly)}, workv1.DeletePropagationPolicyTypeOrphan)
}
