package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// selectClusters returns the clusters on which a backend would start a workload that it does not carry yet: those that
// match, are ready, and have no taint that keeps new workloads away. Plans with tolerations are refused before.
func selectClusters(fleet backends.Fleet, placement v1alpha1.Placement) ([]string, error) {
	names, err := fleet.Select(placement.Clusters)
	if err != nil {
		return nil, &backends.Error{
			Code: backends.CodeInvalidPlacement, Field: "spec.placement", Message: "the selector cannot be read",
			Remedy: "correct it", Err: err,
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		c, _ := fleet.Get(name)
		return c.Ready != metav1.ConditionTrue || slices.ContainsFunc(c.Taints, repels)
	}), nil
}

// repels tells whether a taint keeps new workloads away; both backends have one effect that only prefers to.
func repels(t backends.Taint) bool {
	return t.Effect != "PreferNoSchedule" && t.Effect != "PreferNoSelect"
}
