package karmada

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/names"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/karmada/retire"
)

const kindDefinition = "CustomResourceDefinition"

// Brought finds the Works by which Karmada has brought the definition of the workload's kind to clusters, of whatever policy. Karmada names
// them by the object (names.GenerateWorkName).
func (d *Driver) Brought(ctx context.Context, workload backends.Workload, clusters []string) (brought []backends.Dependent, err error) {
	if err := d.watches.ready(); err != nil {
		return nil, err
	}
	definition := workload.Resource + "." + workload.GVK.Group
	for _, cluster := range clusters {
		at := types.NamespacedName{Namespace: executionPrefix + cluster, Name: names.GenerateWorkName(kindDefinition, definition, "")}
		var work workv1alpha1.Work
		if err := d.cache.Get(ctx, at, &work); apierrors.IsNotFound(err) {
			continue
		} else if err == nil { // the cache lacks the manifests of what is not ours
			err = d.client.Get(ctx, at, &work)
			if apierrors.IsNotFound(err) {
				continue
			}
		}
		if err != nil {
			return nil, backends.Classify(fmt.Sprintf("get work %s", at), err)
		}
		brought = append(brought, backends.Going(retire.Dependents(&work), kindDefinition, definition)...)
	}
	return brought, nil
}
