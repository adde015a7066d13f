package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// selectClusters returns the clusters on which a backend would start a workload that it does not carry yet: those that
// match and that nothing keeps new workloads away from. Plans with tolerations are refused before.
func selectClusters(kind config.Type, fleet backends.Fleet, placement v1alpha1.Placement) ([]string, error) {
	names, err := fleet.Select(placement.Clusters)
	if err != nil {
		return nil, &backends.Error{
			Code: backends.CodeInvalidPlacement, Field: "spec.placement", Message: "the selector cannot be read",
			Remedy: "correct it", Err: err,
		}
	}
	open := openOnKarmada
	if kind == config.TypeOCM {
		open = openOnOCM
	}
	return slices.DeleteFunc(names, func(name string) bool {
		c, _ := fleet.Get(name)
		return !open(c)
	}), nil
}

// openOnKarmada tells whether the driver would start a workload there: not on a lost or tainted cluster.
func openOnKarmada(c backends.Cluster) bool {
	return c.Ready == metav1.ConditionTrue && !slices.ContainsFunc(c.Taints, func(t backends.Taint) bool {
		return t.Effect == string(corev1.TaintEffectNoSchedule) || t.Effect == string(corev1.TaintEffectNoExecute)
	})
}

// openOnOCM tells whether the driver would start a workload there: not on a lost or tainted cluster.
func openOnOCM(c backends.Cluster) bool {
	return c.Ready == metav1.ConditionTrue && !slices.ContainsFunc(c.Taints, func(t backends.Taint) bool {
		lost := t.Key == clusterv1.ManagedClusterTaintUnreachable || t.Key == clusterv1.ManagedClusterTaintUnavailable
		return !lost && t.Effect != string(clusterv1.TaintEffectPreferNoSelect)
	})
}
