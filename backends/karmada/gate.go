package karmada

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// The gate makes one change reach a member once (R8), although it takes several objects on Karmada: while dispatching is
// suspended Karmada goes on rendering Works and leaves the members alone, so all objects are written, the outcome is read
// from the Works, and only then is the suspension lifted. Every position is read from what is there:
//
//	1 the policy suspends all dispatching, nothing else of it changes
//	2 the binding and every Work are seen suspended
//	3 override, template and placement are written
//	4 the binding and the Works of all targets are as wanted, and no others are left
//	5 the policy is final: the suspension is lifted, but for held clusters and observed ones
//
// A Work that is on its way out is not waited for: it is deleted from the member whatever the suspension says, and with
// its cluster lost it would keep all others waiting. What is one object does without: a template that changes alone, see ofTemplateAlone, and
// a new one that is the same for all clusters, see createsAtOnce.

// write is one write of a decision.
type write struct {
	// object is applied, or deleted when remove is set.
	object *unstructured.Unstructured
	remove bool
}

// telling is what a Work is to say of the member object: whether it stays when the Work goes, and, when it insists, that Karmada may
// write it though it lacks Karmada's label.
type telling struct {
	work              work
	preserve, insists bool
}

// told is the Work with that.
func (t telling) told() *workv1alpha1.Work {
	after := t.work.DeepCopy()
	after.Spec.PreserveResourcesOnDeletion = &t.preserve
	if t.insists {
		insist(after, t.work.readManifest())
	}
	return after
}

// soon is when the cache is expected to show what was just written, where nothing else keeps the next step waiting.
const soon = 50 * time.Millisecond

// decision is the next step towards what is wanted: writes, in order, then Works to take Karmada's finalizer from, then
// what is awaited. It is done when there is nothing to wait for.
type decision struct {
	writes  []write
	release []work
	// tell are Works without a binding that do not say yet what is to become of the member object; discard are those that do, and are
	// to be deleted as they were seen.
	tell    []telling
	discard []work
	waiting string
	// again is after what time the next step may be another one although nothing has happened; 0 when it is not.
	requeueAfter time.Duration
}

// decide tells the next step. It is pure; what it is given is not changed.
func decide(desired backends.Desired, want *rendered, live currentState) decision {
	s := state{desired: desired, live: live}
	observed := union(live.observed(), live.leftAlone())
	for _, cluster := range observed {
		if !slices.Contains(want.clusters, cluster) && live.has(cluster) {
			s.spared = append(s.spared, cluster)
		}
	}
	if step, needed := spare(desired.Query, live, s.spared); needed {
		return step
	}
	s.want = want.sparing(desired.Key, s.spared)
	step := s.next()
	for _, w := range live.works {
		// Its cluster may be a target again: Karmada makes no other Work while this one is there.
		if w.terminating() && (slices.Contains(observed, w.cluster) || w.spared()) {
			step.release = append(step.release, w)
		}
	}
	if step.waiting == "" && len(step.writes) == 0 && len(s.spared) > 0 {
		step.waiting = "Karmada to leave " + list(s.spared)
	}
	return step
}

// next is the next step, but for clusters that are spared.
func (s state) next() decision {
	want, live := s.want, s.live
	s.templateStale = !ssa.UpToDate(live.template, want.template)
	// An override that is no longer needed is first made one that changes nothing: only then the Works tell when the
	// earlier ones are gone.
	s.overrideStale = (want.needsOverride || live.override != nil) && !ssa.UpToDate(live.override, want.override)
	final := ssa.UpToDate(live.policy, want.policy)
	if !s.templateStale && s.overrideStale && final && s.takenOver() {
		return decision{writes: []write{{object: want.override}}, waiting: "Karmada to take up what it has taken over"}
	}
	if !s.templateStale && !s.overrideStale {
		overwritten := s.overwritten()
		switch {
		case final && len(overwritten) > 0:
			return decision{waiting: "Karmada to take up that it has taken over what is on " + list(overwritten)}
		case final && live.override != nil && !want.needsOverride:
			return decision{writes: []write{{object: live.override, remove: true}}}
		case final && s.uncreated():
			if reason := unfinished(s.desired, s.want, s.live); reason != "" {
				return decision{waiting: reason}
			}
			return decision{waiting: "Karmada to render the manifests"}
		case final && missed(live):
			return decision{waiting: "Karmada to take up the end of the change"}
		case final && len(s.unrendered()) > 0:
			return decision{waiting: "Karmada to render the manifest of " + list(s.unrendered())}
		case final:
			return decision{waiting: awaitedOf("Karmada to dispatch the change to ", s.notDispatched(s.want.clusters))}
		}
		if ssa.UpToDate(live.policy, heldAs(want.policy, live.policy)) {
			return s.lift()
		}
	}
	if live.binding == nil && len(live.works) == 0 {
		return s.create()
	}
	if s.ofTemplateAlone() {
		return decision{writes: []write{{object: want.template}}, waiting: "Karmada to take up the change"}
	}
	return s.change()
}

// state is what the steps of a decision share.
type state struct {
	desired backends.Desired
	want    *rendered
	live    currentState
	// spared are the clusters that are left as they are: observed ones that are no targets any more.
	spared []string

	templateStale, overrideStale bool
}

// lift is position 4 and 5, and everything that is about the suspension alone.
func (s state) lift() decision {
	now, next := policySuspension(s.live.policy), policySuspension(s.want.policy)
	// A cluster that is left gets what is rendered for it too, as long as it is there.
	released := slices.ContainsFunc(slices.Concat(s.want.clusters, s.live.clusters()), func(cluster string) bool {
		return suspendsOn(now, cluster) && !suspendsOn(next, cluster)
	})
	if !takenUp(s.live) {
		return decision{waiting: "Karmada to take up the change before this one"}
	}
	if late := s.undispatched(); late != "" {
		return decision{waiting: late}
	}
	if len(s.spared) > 0 {
		return decision{waiting: "Karmada to leave " + list(s.spared)}
	}
	if released {
		if reason := unfinished(s.desired, s.want, s.live); reason != "" {
			return decision{waiting: reason}
		}
	}
	return decision{writes: []write{{object: s.want.policy}}}
}

// create writes a workload that Karmada has nothing of yet. Its policy suspends dispatching from the start, so the first
// manifests are checked before a member sees them, but where there is nothing to check.
func (s state) create() decision {
	var d decision
	if s.overrideStale {
		d.writes = append(d.writes, write{object: s.want.override})
	}
	policy := gated(s.want.policy)
	if s.want.createsAtOnce(s.desired, s.live) && len(s.spared) == 0 {
		policy = s.want.policy
	}
	if !ssa.UpToDate(s.live.policy, policy) {
		// The template comes only once this has been seen: Karmada must not find it before the policy, or another policy
		// may claim it.
		d.writes = append(d.writes, write{object: policy})
		d.waiting, d.requeueAfter = "the PropagationPolicy to be seen", soon
		return d
	}
	if s.templateStale {
		d.writes = append(d.writes, write{object: s.want.template})
	}
	d.waiting = "Karmada to bind the template"
	return d
}

// change is position 1 to 3.
func (s state) change() decision {
	if !suspendsAll(policySuspension(s.live.policy)) {
		return s.suspend()
	}
	if reason := notSuspended(s.live); reason != "" {
		return decision{waiting: reason}
	}
	if step, needed := s.preserveFirst(); needed {
		return step
	}
	var d decision
	if s.overrideStale {
		d.writes = append(d.writes, write{object: s.want.override})
	}
	closed := gated(s.want.policy)
	policyStale := !ssa.UpToDate(s.live.policy, closed)
	policyFirst, templateFirst := s.order()
	if policyStale && policyFirst {
		d.writes = append(d.writes, write{object: closed})
	}
	if s.templateStale && templateFirst {
		d.writes = append(d.writes, write{object: s.want.template})
	}
	switch {
	case len(d.writes) > 0:
		d.waiting = "Karmada to take up the change"
	default:
		d.waiting = "Karmada to take up the number of replicas and the placement"
	}
	return d
}

// suspend is position 1. It waits until the end of the change before has reached all Works: a Work that is still
// suspended from that one would be taken for suspended by this one.
func (s state) suspend() decision {
	if s.live.policy == nil {
		// Somebody deleted it. What runs was placed as the binding says, and stays so until the gate is closed.
		return decision{
			writes:  []write{{object: gated(withPlacement(s.want.policy, s.live.binding))}},
			waiting: "Karmada to suspend dispatching",
		}
	}
	if !takenUp(s.live) {
		return decision{waiting: "Karmada to take up the change before this one"}
	}
	now := policySuspension(s.live.policy)
	var late []string
	for _, w := range s.live.works {
		if w.suspended() && !w.terminating() && !suspendsOn(now, w.cluster) {
			late = append(late, w.cluster)
		}
	}
	if len(late) > 0 {
		return decision{waiting: "Karmada to dispatch the change before this one to " + list(late)}
	}
	if late := s.undispatched(); late != "" {
		return decision{waiting: late}
	}
	closed := gated(s.want.policy)
	if !ssa.UpToDate(s.live.policy, heldAs(s.want.policy, s.live.policy)) {
		closed = s.suspendOnly()
	}
	return decision{writes: []write{{object: closed}}, waiting: "Karmada to suspend dispatching"}
}

// takenUp tells whether the binding has the suspension of the policy. Where all clusters are held, Works do not tell that
// the gate was open for a moment. Karmada's detector compares with its cache: of two changes that undo each other, the
// second may be lost (CreateOrUpdate of the binding in pkg/detector), and nothing brings it back.
func takenUp(live currentState) bool {
	if live.policy == nil || live.binding == nil {
		return true
	}
	want, have := policySuspension(live.policy), policyv1alpha1.Suspension{}
	if s := live.binding.Spec.Suspension; s != nil {
		have = s.Suspension
	}
	names := func(s policyv1alpha1.Suspension) []string {
		if s.DispatchingOnClusters == nil {
			return nil
		}
		return s.DispatchingOnClusters.ClusterNames
	}
	return suspendsAll(want) == suspendsAll(have) && slices.Equal(names(want), names(have))
}

// suspendOnly returns the policy as it is, with all dispatching suspended. Only which clusters are observed is new:
// from now on one that is not observed is not released, and the object on one that is observed is not deleted.
func (s state) suspendOnly() *unstructured.Unstructured {
	out := gated(restated(s.live.policy, s.desired.Key))
	markAs(out, s.want.policy)
	return out
}

// undispatched says why clusters that are to be observed cannot be suspended yet: of a Work that the execution controller
// has not taken up since it was dispatched, the Dispatching condition says no as well, and it may still write.
func (s state) undispatched() string {
	return awaitedOf("Karmada to dispatch the change before this one to ", s.notDispatched(s.want.observed))
}

// notDispatched are those of the clusters whose Works are to be dispatched and were not since they were last suspended.
func (s state) notDispatched(clusters []string) (all []string) {
	now := policySuspension(s.live.policy)
	for _, cluster := range clusters {
		if w, found := s.live.work(cluster); found && !w.terminating() && !suspendsOn(now, cluster) && (w.suspended() || !w.dispatched()) {
			all = append(all, cluster)
		}
	}
	return all
}

// awaitedOf says what is awaited of clusters; nothing when there are none.
func awaitedOf(what string, clusters []string) string {
	if len(clusters) == 0 {
		return ""
	}
	return what + list(clusters)
}

// preserveFirst makes sure that Works know what is to become of their member objects before their clusters are left:
// Karmada deletes the Works first and tells them then (syncBinding in pkg/controllers/binding).
func (s state) preserveFirst() (step decision, needed bool) {
	leaves := slices.ContainsFunc(s.live.clusters(), func(cluster string) bool {
		return !slices.Contains(s.want.clusters, cluster) && !slices.Contains(s.spared, cluster)
	})
	if !leaves {
		return decision{}, false
	}
	preserve := preserves(s.want.policy)
	if preserves(s.live.policy) != preserve {
		step.writes = []write{{object: withPreserve(s.suspendOnly(), s.desired.Key, preserve)}}
		step.waiting = "Karmada to take up what becomes of clusters that are left"
		return step, true
	}
	step.waiting = undecided(preserve, s.live)
	return step, step.waiting != ""
}

// order tells which of placement and template may be written now. Karmada sees them one after the other, and with the
// wrong one first a small cluster's share may be rounded to nothing for a moment, which deletes its object. Webster's
// method never takes from a cluster when the total grows. So the template goes first when the total grows, the placement
// when it shrinks, and the second is written once the binding has the first.
func (s state) order() (policyFirst, templateFirst bool) {
	if s.want.total == nil || s.live.binding == nil {
		return true, true
	}
	total := *s.want.total
	bound := int64(s.live.binding.Spec.Replicas)
	asked := bound
	if s.live.template != nil {
		if n, found, err := unstructured.NestedInt64(s.live.template.Object, s.desired.Workload.ReplicasPath...); err == nil && found {
			asked = n
		}
	}
	policyFirst = bound >= total && asked >= total
	templateFirst = total >= bound && total >= asked || samePlacement(s.live.binding, s.want.policy)
	return policyFirst, templateFirst
}

// notSuspended says why a manifest written now might reach a member; it is empty when none can.
func notSuspended(live currentState) string {
	if live.binding == nil {
		return "Karmada to remove what is left of the binding before"
	}
	if live.binding.DeletionTimestamp != nil {
		return "Karmada to remove the binding before"
	}
	if s := live.binding.Spec.Suspension; s == nil || !suspendsAll(s.Suspension) {
		return "Karmada to suspend dispatching"
	}
	var open []string
	for _, w := range live.works {
		if !w.suspended() && !w.terminating() {
			open = append(open, w.cluster)
		}
	}
	if len(open) > 0 {
		return "Karmada to suspend dispatching to " + list(open)
	}
	return ""
}

// unfinished says what is missing for the Works to be the wanted ones; it is empty when nothing is.
func unfinished(desired backends.Desired, want *rendered, live currentState) string {
	b := live.binding
	switch {
	case b == nil || live.template == nil:
		return "Karmada to bind the template"
	case b.DeletionTimestamp != nil || b.Spec.Resource.UID != live.template.GetUID():
		return "Karmada to replace the binding of an earlier object of that name"
	case want.total != nil && b.Spec.Replicas == 0:
		return fmt.Sprintf("Karmada to take up the replicas; if it lasts, it has no interpreter for %s: add a "+
			"ResourceInterpreterCustomization with replicaResource and replicaRevision", desired.Workload.GVK.Kind)
	case want.total != nil && int64(b.Spec.Replicas) != *want.total:
		return "Karmada to take up the replicas"
	case !samePlacement(b, live.policy):
		return "Karmada to take up the placement"
	case mayBeDivided(b):
		return "Karmada to schedule it" + schedulerMessage(b)
	}
	if got := scheduled(b); !maps.Equal(got, wantedReplicas(want, got)) {
		return fmt.Sprintf("Karmada to schedule it on %s; now it is on %s%s",
			list(want.clusters), list(slices.Sorted(maps.Keys(got))), schedulerMessage(b))
	}
	for _, w := range live.works {
		if !w.terminating() && !slices.Contains(want.clusters, w.cluster) && !neededElsewhere(b, w.cluster) {
			return "Karmada to leave " + w.cluster
		}
	}
	for _, t := range desired.Targets {
		w, found := live.work(t.Cluster)
		if !found {
			return "Karmada to render the manifest of " + t.Cluster
		}
		if reason := notFinal(desired, want, live, t, w); reason != "" {
			return fmt.Sprintf("Karmada to render the manifest of %s: %s", t.Cluster, reason)
		}
	}
	return ""
}

// notFinal says why the Work's manifest is not the target's. Of what was taken out of the template the revision tells,
// of what was taken out of the overrides the record of those applied; that all is there, replicas too, is checked on the
// manifest itself. The template's generation would be too much: Karmada claims a template by annotations, which are a
// generation of a Deployment, binds that one, and may still render the one before from its cache (ApplyPolicy in
// pkg/detector, syncBinding in pkg/controllers/binding). Nothing but the end of the suspension has it render again.
func notFinal(desired backends.Desired, want *rendered, live currentState, t backends.Target, w work) string {
	manifest := w.manifest()
	if manifest == nil {
		return "it cannot be read"
	}
	annotations := manifest.GetAnnotations()
	if annotations[v1alpha1.AnnotationRevision] != desired.Revision {
		return "it has another revision"
	}
	overwrites := annotations[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite
	if overwrites != slices.Contains(want.overwriting, t.Cluster) {
		return "its conflict resolution is another"
	}
	rules := rulesFor(want, t.Cluster)
	record := w.Annotations[scopeOf(desired.Workload).appliedOverrides]
	if live.override != nil && !sameOverrides(record, policyName(desired.Query), rules) {
		return "its overrides are not applied"
	}
	if !ssa.Contains(manifest.Object, withoutLost(t.Manifest.Object, manifest.Object)) {
		return "a field differs; another override policy may select this workload"
	}
	return ""
}

// rulesFor returns the overriders of the cluster.
func rulesFor(want *rendered, cluster string) (overriders []policyv1alpha1.Overriders) {
	for _, r := range want.rules {
		if r.TargetCluster == nil || slices.Contains(r.TargetCluster.ClusterNames, cluster) {
			overriders = append(overriders, r.Overriders)
		}
	}
	return overriders
}

// sameOverrides compares the record on a Work with the rules of our policy for its cluster.
func sameOverrides(record, policy string, rules []policyv1alpha1.Overriders) bool {
	var shadows []struct {
		PolicyName string                    `json:"policyName"`
		Overriders policyv1alpha1.Overriders `json:"overriders"`
	}
	if record != "" {
		if err := utiljson.Unmarshal([]byte(record), &shadows); err != nil {
			return false
		}
	}
	var got []policyv1alpha1.Overriders
	for _, s := range shadows {
		if s.PolicyName == policy {
			got = append(got, s.Overriders)
		}
	}
	if len(got) != len(rules) {
		return false
	}
	return equality.Semantic.DeepEqual(plain(got), plain(rules))
}

// plain returns the value as decoded JSON, so that the notation of raw values does not matter.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		return nil
	}
	return out
}

// withoutLost returns want without zero values that have lacks: the API server drops them from built-in kinds, and
// Karmada's Lua those of null.
func withoutLost(want, have map[string]any) map[string]any {
	out := make(map[string]any, len(want))
	for key, value := range want {
		other, found := have[key]
		if !found && jsondiff.IsZero(value) {
			continue
		}
		out[key] = withoutLostIn(value, other)
	}
	return out
}

func withoutLostIn(want, have any) any {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			return withoutLost(w, h)
		}
	case []any:
		if h, ok := have.([]any); ok && len(h) == len(w) {
			out := make([]any, len(w))
			for i := range w {
				out[i] = withoutLostIn(w[i], h[i])
			}
			return out
		}
	}
	return want
}

func samePlacement(b *workv1alpha2.ResourceBinding, policy *unstructured.Unstructured) bool {
	placement, err := policyPlacement(policy)
	return err == nil && b.Spec.Placement != nil && equality.Semantic.DeepEqual(*b.Spec.Placement, placement)
}

func scheduled(b *workv1alpha2.ResourceBinding) map[string]int32 {
	out := map[string]int32{}
	for _, c := range b.Spec.Clusters {
		out[c.Name] = c.Replicas
	}
	return out
}

// wantedReplicas is what the scheduler must have given; for kinds without replicas its numbers do not matter.
func wantedReplicas(want *rendered, got map[string]int32) map[string]int32 {
	if want.replicas != nil {
		return want.replicas
	}
	out := map[string]int32{}
	for _, cluster := range want.clusters {
		out[cluster] = got[cluster]
	}
	return out
}

// neededElsewhere tells whether Karmada keeps the Work for another reason than our placement: the binding is a
// dependency of another one there, or the cluster is being evicted.
func neededElsewhere(b *workv1alpha2.ResourceBinding, cluster string) bool {
	for _, snapshot := range b.Spec.RequiredBy {
		for _, c := range snapshot.Clusters {
			if c.Name == cluster {
				return true
			}
		}
	}
	return slices.ContainsFunc(b.Spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool {
		return t.FromCluster == cluster
	})
}

func schedulerMessage(b *workv1alpha2.ResourceBinding) string {
	c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
	if c == nil || c.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
}

// gated returns the policy with all dispatching suspended.
func gated(policy *unstructured.Unstructured) *unstructured.Unstructured {
	dispatching := true
	return withSuspension(policy, policyv1alpha1.Suspension{Dispatching: &dispatching})
}

func withSuspension(policy *unstructured.Unstructured, s policyv1alpha1.Suspension) *unstructured.Unstructured {
	out := policy.DeepCopy()
	spec, _ := out.Object["spec"].(map[string]any)
	suspension := map[string]any{}
	if s.Dispatching != nil {
		suspension["dispatching"] = *s.Dispatching
	}
	if s.DispatchingOnClusters != nil {
		suspension["dispatchingOnClusters"] = map[string]any{"clusterNames": toAny(s.DispatchingOnClusters.ClusterNames)}
	}
	delete(spec, "suspension")
	if len(suspension) > 0 {
		spec["suspension"] = suspension
	}
	return out
}

// heldAs returns the policy with what the live one has of holds: its suspension, its observed clusters, and what these need.
func heldAs(policy, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := withSuspension(policy, policySuspension(live))
	markAs(out, live)
	if spec, isMap := out.Object["spec"].(map[string]any); isMap {
		delete(spec, "preserveResourcesOnDeletion")
		if live == nil {
			return out
		}
		if preserve, found, err := unstructured.NestedBool(live.Object, "spec", "preserveResourcesOnDeletion"); found && err == nil {
			spec["preserveResourcesOnDeletion"] = preserve
		}
	}
	return out
}

// withPlacement returns the policy with the placement that the binding has now.
func withPlacement(policy *unstructured.Unstructured, b *workv1alpha2.ResourceBinding) *unstructured.Unstructured {
	out := policy.DeepCopy()
	if b == nil || b.Spec.Placement == nil {
		return out
	}
	if placement, ok := plain(b.Spec.Placement).(map[string]any); ok {
		if spec, isMap := out.Object["spec"].(map[string]any); isMap {
			spec["placement"] = placement
		}
	}
	return out
}

// list names at most five clusters, so that messages stay readable with a thousand of them.
func list(clusters []string) string { return cmp.Or(brief.List(clusters), "no cluster") }
