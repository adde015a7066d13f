package karmada

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// executionFinalizer keeps a Work until the execution controller has dealt with the member object
// (util.ExecutionControllerFinalizer).
const executionFinalizer = "karmada.io/execution-controller"

// decideDelete tells the next step towards nothing being left. It is pure.
//
// A Work goes once the execution controller has deleted the member object, or, when it preserves resources, has written
// the Work's manifest once more without Karmada's marks (handleWorkDelete in pkg/controllers/execution). Both wait for a
// lost cluster. The template goes before the policies: while it is there, a policy that is gone changes what is rendered.
func decideDelete(q backends.Query, policy v1alpha1.DeletionPolicy, live currentState, fleet backends.Fleet, now time.Time) decision {
	d := newDeletion(q, policy, live)
	if live.template != nil && live.template.GetDeletionTimestamp() == nil {
		return d.dropTemplate(fleet, now)
	}
	if live.binding != nil || len(live.works) > 0 {
		step := decision{waiting: removalMessage(live.works, fleet)}
		for _, w := range live.works {
			if w.terminating() && d.withoutKarmada(w) {
				step.release = append(step.release, w)
			}
		}
		if live.binding == nil && live.template == nil {
			d.leftBehind(&step)
		}
		if b := live.binding; b != nil && b.DeletionTimestamp == nil && len(b.OwnerReferences) == 0 && live.template == nil {
			// The template was deleted and its dependents were left: the garbage collector will not come.
			kind := scopeOf(q.Workload).binding
			step.writes = append(step.writes, write{object: reference(kind.GroupVersion().String(), kind.Kind, b.Namespace, b.Name), remove: true})
		}
		return step
	}
	if live.template != nil {
		return decision{waiting: "the template to go"}
	}
	var step decision
	for _, obj := range []*unstructured.Unstructured{live.override, live.policy} {
		if obj == nil {
			continue
		}
		step.waiting = "the policies to go"
		if obj.GetDeletionTimestamp() == nil {
			step.writes = append(step.writes, write{object: obj, remove: true})
		}
	}
	return step
}

// leftBehind adds to the step what becomes of Works that nobody else deletes. A binding that goes takes the Works with it that
// Karmada's cache shows: one that was made the moment before stays for ever (DeleteWorks in pkg/util/helper), as do all of a binding
// whose finalizer somebody has taken off.
func (d deletion) leftBehind(step *decision) {
	step.tell = d.untold()
	for _, w := range d.live.works {
		switch {
		case w.terminating() || slices.ContainsFunc(step.tell, func(t telling) bool { return t.work == w }):
		case d.withoutKarmada(w) && slices.Contains(w.Finalizers, executionFinalizer):
			step.release = append(step.release, w)
		default:
			step.discard = append(step.discard, w)
		}
	}
}

// untold are the Works that do not say yet what is to become of the member object, or with which Karmada could not release it twice
// (see insist). Where there is no binding nobody tells them but us.
func (d deletion) untold() (all []telling) {
	for _, w := range d.live.works {
		if d.withoutKarmada(w) {
			continue
		}
		leaves := d.leaves(w)
		insists := leaves && isApplied(w) && !adopts(w.Work)
		if w.terminating() {
			leaves, insists = w.preserved(), insists && w.preserved() // the one is decided, the other may be what it hangs in
		}
		if w.preserved() != leaves || insists {
			all = append(all, telling{work: w, preserve: leaves, insists: insists})
		}
	}
	return all
}

// withoutKarmada tells whether the Work goes without Karmada doing anything on the member.
func (d deletion) withoutKarmada(w work) bool {
	return slices.Contains(d.spared, w.cluster) || d.untouchable(w)
}

// deletion is what the steps of a deletion share.
type deletion struct {
	query backends.Query
	live  currentState
	// orphan means that member objects are released: by the policy, or because all clusters are observed.
	orphan bool
	// observed are the clusters whose member objects are neither deleted nor changed, whatever the policy: they are another backend's,
	// or another Karmada's. With Orphan, and when
	// they have no other owner who does it, Karmada releases those of which it can take its marks off without any other change.
	// All other observed clusters are spared: with Delete, the member object's owner may have deleted it by now, and Karmada
	// cannot release what is gone (https://github.com/karmada-io/karmada/issues/7463).
	observed, spared []string
}

func newDeletion(q backends.Query, policy v1alpha1.DeletionPolicy, live currentState) deletion {
	d := deletion{query: q, live: live, observed: live.anothers()}
	if !q.Alone() {
		d.observed = union(live.leftAlone(), live.observed())
	}
	owned := slices.ContainsFunc(live.clusters(), func(cluster string) bool { return !slices.Contains(d.observed, cluster) })
	d.orphan = policy == v1alpha1.DeletionPolicyOrphan || len(d.observed) > 0 && !owned
	marked := map[string]bool{}
	for _, w := range live.works {
		marked[w.cluster] = policy == v1alpha1.DeletionPolicyOrphan && q.Counterpart != backends.CounterpartHeir && slices.Contains(d.observed, w.cluster) && w.runsAsHeld(q)
	}
	for _, cluster := range d.observed {
		if !marked[cluster] {
			d.spared = append(d.spared, cluster)
		}
	}
	return d
}

// dropTemplate makes sure that every Work knows what is to become of its member object, then deletes the template. In
// one pass of Karmada's binding controller, Works are deleted before they are told to preserve, so one must not be
// written before the other is seen.
func (d deletion) dropTemplate(fleet backends.Fleet, now time.Time) decision {
	live, drop := d.live, decision{writes: []write{{object: d.live.template, remove: true}}, waiting: "the template to go"}
	if live.policy == nil && live.binding == nil && len(live.works) == 0 {
		return drop
	}
	if late := live.clustersOf(live.beingTried); len(late) > 0 && live.binding != nil {
		return decision{waiting: awaitedOf("Karmada to dispatch the change before this one to ", late)}
	}
	if step, needed := spare(d.query, live, d.spared); needed {
		return step
	}
	if step, needed := d.unspare(); needed {
		return step
	}
	insist, insists := d.insist()
	if live.policy == nil && (d.orphan || len(d.observed) > 0) {
		// Only a policy can tell the Works. It takes the place of the one that was deleted, and dispatches nothing.
		return decision{
			writes:  []write{{object: keeper(d.query, live.binding, d.observed, d.orphan)}},
			waiting: "Karmada to take up what becomes of the member objects",
		}
	}
	if live.policy != nil && preserves(live.policy) != d.orphan {
		return decision{
			writes:  append(insist.writes, write{object: withPreserve(live.policy, d.query.Key, d.orphan)}),
			waiting: "Karmada to take up the deletion policy",
		}
	}
	if insists {
		return insist
	}
	if tell := d.untold(); live.binding == nil && len(tell) > 0 {
		return decision{tell: tell, waiting: "the Works to show what becomes of the member objects"}
	}
	if reason := undecided(d.orphan, live); live.binding != nil && reason != "" {
		return decision{waiting: reason}
	}
	var release []work
	for _, w := range live.works {
		if d.untouchable(w) && slices.Contains(w.Finalizers, executionFinalizer) {
			release = append(release, w)
		}
	}
	if len(release) > 0 {
		return decision{release: release, waiting: "Works to be released that were never dispatched"}
	}
	if unseen, requeueAfter := live.unseen(fleet, now, d.leaves); len(unseen) > 0 {
		return decision{waiting: unseenMessage(unseen, fleet), requeueAfter: requeueAfter}
	}
	return drop
}

// unspare is the next step of taking back that a cluster is spared: Karmada has applied its Work after all, or it was the other backend's
// until that had nothing left. By a manifest that it cannot carry out Karmada deletes nothing.
func (d deletion) unspare() (step decision, needed bool) {
	live := d.live
	if live.template == nil || live.binding == nil || live.binding.DeletionTimestamp != nil {
		return decision{}, false
	}
	bySomeRule := sparedBy(live.override)
	open := live.clustersOf(func(w work) bool {
		return !w.terminating() && !slices.Contains(d.observed, w.cluster) && (w.spared() || slices.Contains(bySomeRule, w.cluster))
	})
	if len(open) == 0 {
		return decision{}, false
	}
	step.waiting = "Karmada to take up again what is on " + list(open)
	if want := withSpared(live.override, d.query.Key, d.spared); live.override != nil && !ssa.UpToDate(live.override, want) {
		step.writes = []write{{object: want}}
	}
	return step, true
}

// leaves tells whether the Work's member object stays.
func (d deletion) leaves(w work) bool { return d.orphan || slices.Contains(d.spared, w.cluster) }

// insist makes sure that Karmada can release a member object twice. It takes its marks off the object and then its
// finalizer off the Work. When the Work has just got a report, the second fails, and Karmada begins anew: the object has no
// label of Karmada's by then, so that it refuses for ever to touch it, unless the manifest says to overwrite what is found
// (handleWorkDelete in pkg/controllers/execution, allowUpdate in pkg/util/objectwatcher).
func (d deletion) insist() (step decision, needed bool) {
	if !d.orphan || d.live.binding == nil || d.live.binding.DeletionTimestamp != nil {
		return decision{}, false
	}
	var clusters, open []string
	for _, w := range d.live.works {
		if w.terminating() || slices.Contains(d.spared, w.cluster) || !isApplied(w) || d.untouchable(w) {
			continue // Karmada is to write nothing there
		}
		clusters = append(clusters, w.cluster)
		if !adopts(w.Work) {
			open = append(open, w.cluster)
		}
	}
	if len(open) == 0 {
		return decision{}, false
	}
	step.waiting = "Karmada to take up the deletion policy for " + list(open)
	want := withRule(overrideOf(d.query, d.live), d.query.Key, clusters, resolve(overwrite))
	if !ssa.UpToDate(d.live.override, want) {
		step.writes = []write{{object: want}}
	}
	return step, true
}

// isApplied tells whether the member object is Karmada's, as it reports: what is somebody else's is never applied.
func isApplied(w work) bool {
	applied := w.applied()
	return applied != nil && applied.Status == metav1.ConditionTrue
}

// untouchable tells whether Karmada must not handle the release of the Work's member object. Where that runs what is held
// nothing would be delivered, and Karmada takes its marks away.
func (d deletion) untouchable(w work) bool {
	return d.orphan && !slices.Contains(d.observed, w.cluster) && untouchable(w) && !w.runsAsHeld(d.query)
}

// untouchable tells whether Karmada must not handle the release of the member object. Releasing writes the Work's
// manifest once more: where dispatching is suspended, that would deliver what is held back. And it fails for ever when
// there is no member object of ours (https://github.com/karmada-io/karmada/issues/7463). Without Karmada's finalizer the
// Work goes and the member is left as it is; it keeps Karmada's labels then.
func untouchable(w work) bool {
	return w.suspended() || conflicts(w) || !w.reported() && !isApplied(w)
}

// undecided says why the Works do not know yet what is to become of the member objects.
func undecided(orphan bool, live currentState) string {
	if b := live.binding; b != nil && b.DeletionTimestamp == nil {
		if p := b.Spec.PreserveResourcesOnDeletion; (p != nil && *p) != orphan {
			return "Karmada to take up the deletion policy"
		}
	}
	late := live.clustersOf(func(w work) bool { return w.preserved() != orphan && !w.terminating() })
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
	out := restated(policy, key)
	if spec, isMap := out.Object["spec"].(map[string]any); isMap {
		spec["preserveResourcesOnDeletion"] = preserve
	}
	return out
}

// keeper is a policy that keeps everything as the binding has it.
func keeper(q backends.Query, b *workv1alpha2.ResourceBinding, observed []string, preserve bool) *unstructured.Unstructured {
	out := newObject(scopeOf(q.Workload).policy, q.Workload.Namespace, policyName(q), q.Key)
	spec := map[string]any{
		"resourceSelectors": resourceSelectors(q.Workload), "priority": int64(policyPriority),
		"preserveResourcesOnDeletion": preserve, "placement": map[string]any{},
	}
	if b != nil && b.Spec.ConflictResolution != "" {
		spec["conflictResolution"] = string(b.Spec.ConflictResolution)
	}
	out.Object["spec"] = spec
	setObserved(out, observed)
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
