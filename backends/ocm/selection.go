package ocm

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Reasons of PlacementSatisfied (ocm pkg/placement/controllers/scheduling, newSatisfiedCondition).
const (
	reasonNoBindings      = "NoManagedClusterSetBindings"
	reasonNoIntersection  = "NoIntersection"
	reasonSetsEmpty       = "AllManagedClusterSetsEmpty"
	reasonNotAllScheduled = "NotAllDecisionsScheduled"
)

// readSelection reads a Placement's choice. A Placement that is misconfigured, or that has lost its cluster sets, has
// its decisions emptied, and decisions are written one object after the other, before the status: only a complete and
// undisturbed choice is settled.
//
// Nobody but the driver writes a Placement's spec, and the driver never changes one, so a generation above 1 is
// somebody's doing, for which the decisions prove nothing.
func readSelection(placement *clusterv1beta1.Placement, decisions []clusterv1beta1.PlacementDecision) backends.Selection {
	if placement == nil {
		return backends.Selection{Message: "the Placement is not there yet"}
	}
	unsettled := func(format string, args ...any) backends.Selection {
		return backends.Selection{Message: "Placement " + placement.Name + ": " + fmt.Sprintf(format, args...)}
	}
	conditions := placement.Status.Conditions
	satisfied := meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionSatisfied)
	misconfigured := meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionMisconfigured)
	switch {
	case !placement.DeletionTimestamp.IsZero():
		return unsettled("it is being deleted")
	case placement.Generation > 1:
		return unsettled("somebody has changed it; it is being replaced")
	case satisfied == nil || misconfigured == nil:
		return unsettled("OCM's placement controller has not seen it yet")
	case misconfigured.Status != metav1.ConditionFalse:
		return unsettled("it is misconfigured: %s; correct spec.backendOptions.ocm.placement", misconfigured.Message)
	}
	switch satisfied.Reason {
	case reasonNoBindings, reasonNoIntersection:
		return unsettled("%s; create a ManagedClusterSetBinding in namespace %s, or configure cluster sets for this backend",
			satisfied.Message, placement.Namespace)
	case reasonSetsEmpty:
		return unsettled("%s; add clusters to the set", satisfied.Message)
	case reasonNotAllScheduled:
		if placement.Status.NumberOfSelectedClusters == 0 {
			return unsettled("%s", satisfied.Message)
		}
	}
	clusters := decidedClusters(placement, decisions)
	if len(clusters) != int(placement.Status.NumberOfSelectedClusters) {
		return unsettled("%d of %d decisions are written", len(clusters), placement.Status.NumberOfSelectedClusters)
	}
	selection := backends.Selection{Clusters: clusters, Settled: true}
	if len(clusters) == 0 {
		selection.Message = "no cluster of the hub matches spec.placement"
	}
	return selection
}

// decidedClusters collects the decisions of this very Placement, not those of an earlier one of the name.
func decidedClusters(placement *clusterv1beta1.Placement, decisions []clusterv1beta1.PlacementDecision) []string {
	var clusters []string
	for i := range decisions {
		if !metav1.IsControlledBy(&decisions[i], placement) {
			continue
		}
		for _, decision := range decisions[i].Status.Decisions {
			clusters = append(clusters, decision.ClusterName)
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// checkBindings unsettles a selection while a configured cluster set is not bound: its clusters would look deselected.
func checkBindings(selection backends.Selection, bound []string, opts Options) backends.Selection {
	if !selection.Settled {
		return selection
	}
	for _, set := range slices.Sorted(slices.Values(opts.ClusterSets)) {
		if !slices.Contains(bound, set) {
			return backends.Selection{Message: "ManagedClusterSet " + set + " is not bound in the namespace; " +
				"check that the set exists and that the operator may bind it"}
		}
	}
	return selection
}

// refuseUnknown fails when the placement names clusters that the hub does not know.
func refuseUnknown(selectors []v1alpha1.ClusterSelector, fleet backends.Fleet) error {
	unknown := fleet.Unknown(selectors...)
	if len(unknown) == 0 {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeClusterNotFound, Field: "spec.placement", Value: strings.Join(unknown, ", "),
		Message: "the hub knows no accepted cluster of this name",
		Remedy:  "correct the name, take it out, or register the cluster and accept it",
	}
}
