package main

import (
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// later are the steps that follow by themselves after what a plan shows, or that wait for something.
func later(clusters []planCluster, companions []v1alpha1.PlannedCompanion) []string {
	does := func(action v1alpha1.PlannedAction) bool {
		return slices.ContainsFunc(clusters, func(c planCluster) bool { return c.Action == clusterAction(action) })
	}
	because := func(reason v1alpha1.CompanionReason) bool {
		return slices.ContainsFunc(companions, func(c v1alpha1.PlannedCompanion) bool { return c.Reason == reason })
	}
	steps := []string{}
	for _, step := range []struct {
		follows bool
		what    string
	}{
		{does(v1alpha1.PlannedMove), "the hand-over goes from phase to phase and from wave to wave, as spec.migration has them"},
		{does(v1alpha1.PlannedCreateOrAdopt), "each cluster is asked what it runs before anything is taken over, and replicas are divided by the answers"},
		{does(v1alpha1.PlannedUpdate), "each cluster replaces pods as the workload's own update strategy has it"},
		{because(v1alpha1.CompanionNotListed), "companions that are no longer needed go once the newest revision is healthy on every cluster"},
		{because(v1alpha1.CompanionWorkloadRemoved), "companions go from a cluster once the workload has gone from it"},
		{because(v1alpha1.CompanionMissing), "what waits for a missing companion follows once that is on the management cluster"},
		{because(v1alpha1.CompanionClusterPaused), "paused clusters follow once they are no longer paused"},
	} {
		if step.follows {
			steps = append(steps, step.what)
		}
	}
	return steps
}
