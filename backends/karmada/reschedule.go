package karmada

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// Karmada's scheduler leaves out a cluster whose API enablements lack the kind, as those of one that has just joined do,
// and does not come back to it when it learns them: of clusters it heeds new labels, a new spec and deletion only, and what
// is divided not even for those (updateCluster and doScheduleBinding in pkg/scheduler). A changed placement makes it look
// again. So the placement counts, in a toleration that tolerates nothing, how often it was asked to.

// tolerationAsked is the key of that toleration; its value is the count.
const tolerationAsked = "fleetworkload.io/scheduled-again"

// The scheduler is asked again after askFirst, then after twice as long, and so on, up to askFirst<<askSlowest (11 min).
const (
	askFirst   = 5 * time.Second
	askSlowest = 7
)

// rescheduled returns want, whose policy asks the scheduler as often as the live one did, or once more when that is due, and
// otherwise after what time it will be; 0 when the scheduler has left nothing out that it could take.
func (r *rendered) rescheduled(live currentState, clusters []clusterv1alpha1.Cluster, q backends.Query, now time.Time) (*rendered, time.Duration) {
	asked, leftOut := timesAsked(live.policy), r.leftOut(live.binding, clusters, q)
	if asked == 0 && !leftOut {
		return r, 0
	}
	same := r.withAsked(asked)
	if !ssa.UpToDate(live.policy, heldAs(same.policy, live.policy)) {
		return r, 0 // another policy is to be written anyway
	}
	if b := live.binding; leftOut && samePlacement(b, live.policy) {
		if wait := b.Status.LastScheduledTime.Add(askFirst << min(asked, askSlowest)).Sub(now); wait > 0 {
			return same, wait
		}
		return r.withAsked(asked + 1), 0
	}
	return same, 0
}

// leftOut tells whether the scheduler has come to its end without a cluster that serves the kind and could run it.
func (r *rendered) leftOut(b *workv1alpha2.ResourceBinding, clusters []clusterv1alpha1.Cluster, q backends.Query) bool {
	if b == nil || b.DeletionTimestamp != nil || b.Status.LastScheduledTime == nil || mayBeDivided(b) {
		return false
	}
	given := scheduled(b)
	return slices.ContainsFunc(clusters, func(c clusterv1alpha1.Cluster) bool {
		_, has := given[c.Name]
		_, wanted := slices.BinarySearch(r.clusters, c.Name)
		return !has && wanted && c.DeletionTimestamp == nil && serves(&c, q.Workload.GVK) && !b.Spec.ClusterInGracefulEvictionTasks(c.Name)
	})
}

// withAsked returns a copy whose policy has the count; 0 is none.
func (r *rendered) withAsked(times int) *rendered {
	if times == 0 {
		return r
	}
	out := *r
	out.policy = r.policy.DeepCopy()
	placement := placementOf(out.policy)
	tolerations, _ := placement["clusterTolerations"].([]any)
	placement["clusterTolerations"] = append(tolerations, map[string]any{
		"key": tolerationAsked, "operator": "Equal", "value": strconv.Itoa(times),
	})
	return &out
}

// timesAsked reads the count.
func timesAsked(policy *unstructured.Unstructured) int {
	if policy == nil {
		return 0
	}
	tolerations, _ := placementOf(policy)["clusterTolerations"].([]any)
	for _, item := range tolerations {
		if t, _ := item.(map[string]any); t["key"] == tolerationAsked {
			value, _ := t["value"].(string)
			times, err := strconv.Atoi(value)
			if err != nil {
				return 0
			}
			return max(times, 0)
		}
	}
	return 0
}

// placementOf returns the placement inside the policy.
func placementOf(policy *unstructured.Unstructured) map[string]any {
	spec, _ := policy.Object["spec"].(map[string]any)
	placement, _ := spec["placement"].(map[string]any)
	return placement
}
