package controllers

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// backendIndex finds FleetWorkloads by the backends they have to do with.
const backendIndex = "backend"

func indexBackends(obj client.Object) []string {
	fw, ok := obj.(*v1alpha1.FleetWorkload)
	if !ok {
		return nil
	}
	if fw.Status.Backend == "" || fw.Status.Backend == fw.Spec.Backend {
		return []string{fw.Spec.Backend}
	}
	return []string{fw.Spec.Backend, fw.Status.Backend}
}

// workloadIndex finds FleetWorkloads by the object that they carry.
const workloadIndex = "workload"

func indexWorkload(obj client.Object) []string {
	fw, ok := obj.(*v1alpha1.FleetWorkload)
	if !ok || fw.Status.Workload == nil {
		return nil
	}
	return []string{workloadKey(*fw.Status.Workload)}
}

// workloadKey leaves the version out: one object is served in several.
func workloadKey(ref v1alpha1.WorkloadReference) string {
	group, _, grouped := strings.Cut(ref.APIVersion, "/")
	if !grouped {
		group = ""
	}
	return group + "/" + ref.Kind + "/" + ref.Name
}

// requestsFor turns an event of a backend into FleetWorkloads to look at.
func (r *Reconciler) requestsFor(ctx context.Context, e BackendEvent) []reconcile.Request {
	if e.Name != (types.NamespacedName{}) {
		return []reconcile.Request{{NamespacedName: e.Name}}
	}
	var list v1alpha1.FleetWorkloadList
	if err := r.List(ctx, &list, client.MatchingFields{backendIndex: e.Backend}); err != nil {
		log.FromContext(ctx).Error(err, "List FleetWorkloads of a backend", "backend", e.Backend)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
