package karmada

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// A new template alone needs no gate (R8): it is one object, so each Work goes from the old manifest, or none, to the new one in one write. The gate
// would have Karmada write each Work three times. It stays shut wherever something else takes part: another object of ours that
// changes, replicas or clusters that the scheduler gives anew, a cluster that is held, observed, asked or left, an override of somebody else's.
// And a report must prove by itself that it is of the new manifest, without the conditions that the gate leaves behind (R9).

// createsAtOnce tells whether a workload that Karmada has nothing of needs no gate either. All clusters get the same manifest, with the same
// number of replicas, whichever of them the scheduler takes: what Karmada renders is the template. Nothing is there that could be harmed:
// Karmada leaves alone what it finds on a member.
func (r *rendered) createsAtOnce(desired backends.Desired, live currentState) bool {
	return live.isNew() && live.plain && !live.companionsMove && !r.divided && !r.needsOverride && live.override == nil && !suspends(policySuspension(r.policy)) &&
		len(r.held)+len(r.probed)+len(r.overwriting) == 0 && (desired.Options == nil || desired.Options.Karmada == nil)
}

// uncreated tells whether Karmada has not made of the template what is to be dispatched.
func (s state) uncreated() bool {
	b := s.live.binding
	return b == nil || s.want.total != nil && int64(b.Spec.Replicas) != *s.want.total ||
		slices.ContainsFunc(s.want.clusters, func(cluster string) bool {
			return !slices.ContainsFunc(s.live.works, func(w work) bool { return w.cluster == cluster })
		})
}

// ofTemplateAlone tells whether nothing but the template is to be written, and no part of what is there is on its way.
func (s state) ofTemplateAlone() bool {
	want, live := s.want, s.live
	switch {
	case live.companionsMove: // the way through the gate is longer than theirs
		return false
	case !s.templateStale || want.needsOverride || live.override != nil || !ssa.UpToDate(live.policy, want.policy):
		return false
	case live.template == nil || live.binding == nil || live.binding.DeletionTimestamp != nil ||
		live.binding.Spec.Resource.UID != live.template.GetUID():
		return false
	case len(s.spared)+len(want.held)+len(want.probed)+len(want.overwriting) > 0 || suspends(policySuspension(live.policy)) || missed(live):
		return false
	}
	return s.sameReplicas() && s.sameClusters()
}

// sameReplicas tells whether the new template has the number of replicas that the scheduler has divided.
func (s state) sameReplicas() bool {
	b, path := s.live.binding, s.desired.Workload.ReplicasPath
	if s.want.total == nil {
		return true
	}
	asked, found, err := unstructured.NestedInt64(s.live.template.Object, path...)
	return err == nil && found && asked == *s.want.total && int64(b.Spec.Replicas) == asked
}

// sameClusters tells whether the scheduler and the Works have come to their end, with one Work for each cluster.
func (s state) sameClusters() bool {
	b := s.live.binding
	got := scheduled(b)
	if mayBeDivided(b) || !maps.Equal(got, wantedReplicas(s.want, got)) ||
		len(s.live.works) != len(s.want.clusters) {
		return false
	}
	return !slices.ContainsFunc(s.want.clusters, func(cluster string) bool {
		w, found := s.live.work(cluster)
		return !found || !w.settled(s.live.policy)
	})
}

// settled tells whether a Work is dispatched, as the policy says and by our overrides alone, and reports which revision the member has.
func (w work) settled(policy *unstructured.Unstructured) bool {
	if w.suspended() || !w.dispatched() || w.preserved() != preserves(policy) || adopts(w.Work) {
		return false
	}
	for _, kinds := range scopes() {
		if !overriddenBy(w.Annotations[kinds.appliedOverrides], policy.GetName()) {
			return false
		}
	}
	_, brought := statusOf(w)[lua.FieldRevision].(string)
	return brought
}

// overriddenBy tells whether the record of applied overrides, of either scope, names no policy but this one.
func overriddenBy(record, policy string) bool {
	if record == "" {
		return true
	}
	var shadows []struct {
		PolicyName string `json:"policyName"`
	}
	if err := utiljson.Unmarshal([]byte(record), &shadows); err != nil {
		return false
	}
	for _, s := range shadows {
		if s.PolicyName != policy {
			return false
		}
	}
	return true
}

// suspends tells whether anything is suspended.
func suspends(s policyv1alpha1.Suspension) bool {
	return suspendsAll(s) || s.DispatchingOnClusters != nil && len(s.DispatchingOnClusters.ClusterNames) > 0
}

// unrendered are the targets whose Works are to be dispatched and do not have the revision yet. After the gate there are none.
func (s state) unrendered() (clusters []string) {
	revision := []byte(`"` + s.desired.Revision + `"`)
	for _, cluster := range s.want.clusters {
		w, found := s.live.work(cluster)
		if found && !slices.Contains(s.want.held, cluster) && !w.contains(revision) {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// isPlain tells whether Karmada renders a new workload as it is written, see world. What may not be read, or cannot be now, is taken for the
// opposite: the gate finds it out.
func (d *Driver) isPlain(ctx context.Context, q backends.Query) bool {
	plan, err := d.installer.prepare(ctx, d.cache, q.Workload.GVK)
	if err != nil || !plan.alone {
		return false
	}
	return !d.mayOverride(ctx, q.Workload, policyv1alpha1.ResourceKindClusterOverridePolicy, "") &&
		(q.Workload.Namespace == "" || !d.mayOverride(ctx, q.Workload, policyv1alpha1.ResourceKindOverridePolicy, q.Workload.Namespace))
}

// mayOverride tells whether an override policy of that kind, not the operator's, may select the workload.
func (d *Driver) mayOverride(ctx context.Context, w backends.Workload, kind, namespace string) bool {
	others := &unstructured.UnstructuredList{}
	others.SetGroupVersionKind(policyv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
	err := d.client.List(ctx, others, ofOthers(), client.InNamespace(namespace))
	return err != nil || slices.ContainsFunc(others.Items, func(o unstructured.Unstructured) bool { return maySelect(o, w) })
}

// ofOthers selects what the operator does not manage: its own overrides are each of one workload.
func ofOthers() client.ListOption {
	foreign, err := labels.NewRequirement(v1alpha1.LabelManagedBy, selection.NotEquals, []string{v1alpha1.ManagedByOperator})
	if err != nil {
		panic(err) // both are constants
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*foreign)}
}

// maySelect tells whether an override policy may be for the workload, as far as kinds and names tell: labels are not looked at.
func maySelect(policy unstructured.Unstructured, w backends.Workload) bool {
	var spec policyv1alpha1.OverrideSpec
	raw, _, err := unstructured.NestedMap(policy.Object, "spec")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec) != nil {
		return true
	}
	return len(spec.ResourceSelectors) == 0 || slices.ContainsFunc(spec.ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool {
		return s.APIVersion == w.GVK.GroupVersion().String() && s.Kind == w.GVK.Kind && (s.Name == "" || s.Name == w.Name)
	})
}
