package karmada

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// executionFinalizer keeps a Work until the execution controller has dealt with the member object
// (util.ExecutionControllerFinalizer).
const executionFinalizer = "karmada.io/execution-controller"

// removal is the next step of a deletion: writes, then Works to take Karmada's finalizer from, then what is awaited.
type removal struct {
	decision
	release []work
}

// decideDelete tells the next step towards nothing being left. It is pure.
//
// A Work goes once the execution controller has deleted the member object, or, when it preserves resources, has written
// the Work's manifest once more without Karmada's marks (handleWorkDelete in pkg/controllers/execution). Both wait for a
// lost cluster. The template goes before the policies: while it is there, a policy that is gone changes what is rendered.
func decideDelete(q backends.Query, policy v1alpha1.DeletionPolicy, live world, fleet backends.Fleet) removal {
	orphan := policy == v1alpha1.DeletionPolicyOrphan
	if live.template != nil && live.template.GetDeletionTimestamp() == nil {
		return dropTemplate(q, orphan, live)
	}
	if live.binding != nil || len(live.works) > 0 {
		r := removal{decision: decision{waiting: removalMessage(live.works, fleet)}}
		if orphan {
			r.release = slices.DeleteFunc(slices.Clone(live.works), func(w work) bool { return !w.terminating() || !untouchable(w) })
		}
		if b := live.binding; b != nil && b.DeletionTimestamp == nil && len(b.OwnerReferences) == 0 && live.template == nil {
			// The template was deleted and its dependents were left: the garbage collector will not come.
			kind := scopeOf(q.Workload).binding
			r.writes = append(r.writes, write{object: reference(kind.GroupVersion().String(), kind.Kind, b.Namespace, b.Name), remove: true})
		}
		return r
	}
	if live.template != nil {
		return removal{decision: decision{waiting: "the template to go"}}
	}
	var r removal
	for _, obj := range []*unstructured.Unstructured{live.override, live.policy} {
		if obj == nil {
			continue
		}
		r.waiting = "the policies to go"
		if obj.GetDeletionTimestamp() == nil {
			r.writes = append(r.writes, write{object: obj, remove: true})
		}
	}
	return r
}

// dropTemplate makes sure that every Work knows what is to become of its member object, then deletes the template. In
// one pass of Karmada's binding controller, Works are deleted before they are told to preserve, so one must not be
// written before the other is seen.
func dropTemplate(q backends.Query, orphan bool, live world) removal {
	if live.policy == nil && live.binding == nil && len(live.works) == 0 {
		return removal{decision: decision{
			writes: []write{{object: live.template, remove: true}}, waiting: "the template to go",
		}}
	}
	if live.policy == nil && orphan {
		// Only a policy can tell the Works. It takes the place of the one that was deleted, and dispatches nothing.
		return removal{decision: decision{
			writes:  []write{{object: keeper(q, live.binding)}},
			waiting: "Karmada to preserve the member objects",
		}}
	}
	if live.policy != nil && preserves(live.policy) != orphan {
		return removal{decision: decision{
			writes:  []write{{object: withPreserve(live.policy, q.Key, orphan)}},
			waiting: "Karmada to take up the deletion policy",
		}}
	}
	if reason := undecided(orphan, live); reason != "" {
		return removal{decision: decision{waiting: reason}}
	}
	if orphan {
		var release []work
		for _, w := range live.works {
			if untouchable(w) && slices.Contains(w.Finalizers, executionFinalizer) {
				release = append(release, w)
			}
		}
		if len(release) > 0 {
			return removal{release: release, decision: decision{waiting: "Works to be released that were never dispatched"}}
		}
	}
	return removal{decision: decision{
		writes: []write{{object: live.template, remove: true}}, waiting: "the template to go",
	}}
}

// untouchable tells whether Karmada must not handle the release of the member object. Releasing writes the Work's
// manifest once more: where dispatching is suspended, that would deliver what is held back. And it fails for ever when
// there is no member object of ours (https://github.com/karmada-io/karmada/issues/7463). Without Karmada's finalizer the
// Work goes and the member is left as it is; it keeps Karmada's labels then.
func untouchable(w work) bool {
	applied := w.applied()
	return w.suspended() || !w.reported() && (applied == nil || applied.Status != metav1.ConditionTrue)
}

// undecided says why the Works do not know yet what is to become of the member objects.
func undecided(orphan bool, live world) string {
	if b := live.binding; b != nil && b.DeletionTimestamp == nil {
		if p := b.Spec.PreserveResourcesOnDeletion; (p != nil && *p) != orphan {
			return "Karmada to take up the deletion policy"
		}
	}
	var late []string
	for _, w := range live.works {
		if w.preserved() != orphan && !w.terminating() {
			late = append(late, w.cluster)
		}
	}
	if len(late) > 0 {
		return "Karmada to take up the deletion policy for " + list(late)
	}
	return ""
}

func preserves(policy *unstructured.Unstructured) bool {
	preserve, _, _ := unstructured.NestedBool(policy.Object, "spec", "preserveResourcesOnDeletion")
	return preserve
}

func withPreserve(policy *unstructured.Unstructured, key backends.Key, preserve bool) *unstructured.Unstructured {
	out := newObject(policy.GroupVersionKind(), policy.GetNamespace(), policy.GetName(), key)
	spec, _ := policy.DeepCopy().Object["spec"].(map[string]any)
	spec["preserveResourcesOnDeletion"] = preserve
	out.Object["spec"] = spec
	return out
}

// keeper is a policy that keeps everything as the binding has it.
func keeper(q backends.Query, b *workv1alpha2.ResourceBinding) *unstructured.Unstructured {
	out := newObject(scopeOf(q.Workload).policy, q.Workload.Namespace, policyName(q), q.Key)
	spec := map[string]any{
		"resourceSelectors": resourceSelectors(q.Workload), "priority": int64(policyPriority),
		"preserveResourcesOnDeletion": true, "placement": map[string]any{},
	}
	if b != nil && b.Spec.ConflictResolution != "" {
		spec["conflictResolution"] = string(b.Spec.ConflictResolution)
	}
	out.Object["spec"] = spec
	return gated(withPlacement(out, b))
}

func reference(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}
