package controllers

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// guard holds a removal of a large share of the running replicas that no change of the spec asked for (law 2). A
// person confirms it with an annotation that carries the removal's token.
func (r *Reconciler) guard(_ context.Context, s *scope) error {
	current, err := s.plan.PlacementHash()
	if err != nil {
		return err
	}
	leaving, lost, total := s.leaving()
	if len(leaving) == 0 {
		s.record.placementHash = current
		return nil
	}
	asked := s.fw.Status.PlacementHash != current
	if asked || total == 0 || lost*100 <= total*int64(r.MaxRemovalPercent) {
		return nil
	}
	token, err := plan.Hash(current, names(s.targets))
	if err != nil {
		return err
	}
	if s.fw.Annotations[v1alpha1.AnnotationConfirmRemoval] == token {
		return nil
	}
	return stall(v1alpha1.ReasonRemovalHeld,
		"the placement no longer chooses %s, which run %d of %d replicas, although spec.placement has not changed; nothing was removed. "+
			"Correct the clusters' labels or availability on backend %q, or confirm with: kubectl annotate fleetworkload %s -n %s %s=%s --overwrite",
		strings.Join(leaving, ", "), lost, total, s.backend, s.fw.Name, s.fw.Namespace, v1alpha1.AnnotationConfirmRemoval, token)
}

// leaving are the clusters that have the workload and are no target any more, with the replicas they run, and the
// replicas of all.
func (s *scope) leaving() (names []string, lost, total int64) {
	kept := map[string]bool{}
	for _, t := range s.targets {
		kept[t.Cluster] = true
	}
	for _, o := range s.observed.Clusters {
		if o.Removing || o.Sight != nil {
			continue
		}
		n := running(o.Status, o.Desired)
		total += n
		// What is given up was asked for by spec.placement.failover, and others take its place.
		if kept[o.Cluster] || slices.Contains(s.choice.GivenUp, o.Cluster) {
			continue
		}
		names = append(names, o.Cluster)
		lost += n
	}
	return names, lost, total
}

// running is how many replicas a cluster runs. Without a report, what was asked of it counts; kinds without replicas
// count as one.
func running(status map[string]any, desired *int32) int64 {
	if n, ok := status["replicas"].(int64); ok && n > 0 {
		return n
	}
	if desired != nil {
		return int64(*desired)
	}
	return 1
}
