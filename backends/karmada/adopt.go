package karmada

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// What Karmada has taken over bears its label, and by that it goes on writing it (allowUpdate in pkg/util/objectwatcher). So it is told
// to overwrite each cluster only until it has: a Karmada that comes back from a backup, after a hand-over, then has nothing that tells
// it to overwrite what is another backend's by now. The policy always says Abort; a rule of the override policy says otherwise for the
// clusters that are to be taken over. Which these are follows from the Works alone.

// overwrites tells whether Karmada is to take over what it finds on a cluster. In a hand-over that is until the cluster is simply owned:
// what Applied says may be of the time before the other backend had it.
func overwrites(desired backends.Desired, t backends.Target, live currentState) bool {
	switch {
	case t.Mode == probeClosely || t.Mode == backends.ModeAdopt:
		return true
	case desired.ConflictPolicy != v1alpha1.ConflictPolicyAdopt || !t.Mode.Owns():
		return false
	}
	w, found := live.work(t.Cluster)
	return !found || w.toTakeOver()
}

// toTakeOver tells whether the Work may have something to take over yet: nothing was tried, or what was found is somebody else's. Any other
// failure leaves it as it is. It says nothing of what is there, or, with a probe's answer, that nothing is.
func (w work) toTakeOver() bool {
	applied := w.applied()
	switch {
	case applied == nil || conflicts(w):
		return true
	case applied.Status == metav1.ConditionTrue:
		return false
	default:
		return adopts(w.Work)
	}
}

// takesOver tells whether a companion work, of which live is what is there, is to take over what it finds. When it was given up and is dispatched
// again, what Applied says is of the time before.
func takesOver(live *workv1alpha1.Work, mode backends.Mode) bool {
	if live == nil {
		return true
	}
	w := newWork(live)
	undelivered := w.suspended() || !w.dispatched()
	return w.toTakeOver() || undelivered && (mode == backends.ModeAdopt || adopts(live))
}

// takenOver tells whether the override policy differs in nothing but this: clusters are to be overwritten there that have been taken over.
// Then the gate stays open. No manifest changes but by the annotation, on those clusters alone, and the others may be about to be
// taken over.
func (s state) takenOver() bool {
	told := overwrittenBy(s.live.override)
	for _, cluster := range s.want.overwriting {
		if !slices.Contains(told, cluster) {
			return false
		}
	}
	return len(told) > 0 && ssa.UpToDate(s.live.override, withRule(s.want.override, s.desired.Key, told, resolve(overwrite)))
}

// overwrittenBy are the clusters that an override policy has Karmada overwrite.
func overwrittenBy(override *unstructured.Unstructured) []string {
	if override == nil {
		return nil
	}
	rules, _, _ := unstructured.NestedSlice(override.Object, "spec", "overrideRules")
	i := slices.IndexFunc(rules, func(r any) bool { return carriesOut(r, resolve(overwrite)) })
	if i < 0 {
		return nil
	}
	clusters, _, _ := unstructured.NestedStringSlice(rules[i].(map[string]any), "targetCluster", "clusterNames")
	return clusters
}

// overwritten are the clusters whose Works still say overwrite, and are not to. It reads no manifest: Karmada has it on the Work too.
func (s state) overwritten() (all []string) {
	if s.live.binding == nil {
		return nil
	}
	given := scheduled(s.live.binding)
	for _, w := range s.live.works {
		_, renders := given[w.cluster]
		if renders && !w.terminating() && !slices.Contains(s.want.overwriting, w.cluster) &&
			w.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite {
			all = append(all, w.cluster)
		}
	}
	return all
}

// resolve is the operation by which a manifest gets a conflict resolution of its own: that counts, and not the policy's
// (mergeConflictResolution in pkg/controllers/binding).
func resolve(resolution string) jsondiff.Op {
	return jsondiff.Op{
		Op: jsondiff.OpAdd, Value: resolution,
		Path: jsondiff.Pointer("metadata", "annotations", workv1alpha2.ResourceConflictResolutionAnnotation),
	}
}

// refuseRaw says how a workload that somebody has put on Karmada is taken over: released first, so that it runs on unmanaged,
// and probed then. Taking the template itself over is not safe: a policy that has claimed one keeps it, whatever the
// priority of ours, unless Karmada has the feature gate for preemption, of which its API does not tell (propagateResource in
// pkg/detector); and to take the claim away is to write what is another's.
func (d *Driver) refuseRaw(ctx context.Context, q backends.Query, want *unstructured.Unstructured, conflict error) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(want.GroupVersionKind())
	err := d.client.Get(ctx, client.ObjectKeyFromObject(want), found)
	if err != nil || found.Annotations[v1alpha1.AnnotationOwner] != "" || backends.CodeOf(conflict) != backends.CodeNameConflict {
		return conflict
	}
	object := want.GetKind() + " " + client.ObjectKeyFromObject(want).String()
	claim := claimOf(q, found)
	if claim == "" {
		return &backends.Error{
			Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
			Message: object + " on the Karmada control plane is not the operator's, and no policy carries it; nothing was taken over",
			Remedy:  "delete it there. The rest goes by itself",
		}
	}
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "conflictPolicy", Value: string(v1alpha1.ConflictPolicyAdopt),
		Message: fmt.Sprintf("%s on the Karmada control plane is not the operator's, and %s carries it; nothing was taken over", object, claim),
		Remedy: fmt.Sprintf("release it, so that its pods run on: (1) set spec.preserveResourcesOnDeletion: true on %s, (2) wait until "+
			"spec.preserveResourcesOnDeletion is true on its Work of every cluster, (3) delete the %s on the Karmada control plane. "+
			"The rest goes by itself", claim, want.GetKind()),
	}
}
