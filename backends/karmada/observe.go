package karmada

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// An observed cluster (R14) is one to which dispatching is suspended, as with a hold, and whose Work preserves the member
// object. An annotation of the policy says which these are, since holds are suspended too and Delete is given no targets.
//
// That does for as long as the cluster is observed, and not for the end. Karmada writes what a Work holds to the member once
// more when a Work that preserves goes away (cleanupPolicyClaimMetadata in pkg/controllers/execution), suspended or not; and
// without preserving it deletes what has its label, which may be there from an earlier time. So before the Work of an observed
// cluster goes, it is spared: an override makes its manifest one of a kind that there is not. Karmada can then find no member
// object, to write or to delete, and fails until we take its finalizer away. The finalizer alone would not do: Karmada puts it
// back whenever it renders.
const (
	// annotationObserved lists, on the policy, the clusters that are observed.
	annotationObserved = "fleetworkload.io/observed"
	// sparedVersion is the apiVersion of manifests that Karmada must not carry out. Nobody serves it.
	sparedVersion = "spared.fleetworkload.io/v1"
	versionPath   = "/apiVersion"
)

// setObserved records on a policy which clusters are observed.
func setObserved(policy *unstructured.Unstructured, clusters []string) {
	setClusters(policy, annotationObserved, clusters)
}

// observedOf reads what setObserved has written.
func observedOf(policy *unstructured.Unstructured) []string {
	return clustersIn(policy, annotationObserved)
}

func setClusters(policy *unstructured.Unstructured, annotation string, clusters []string) {
	annotations := policy.GetAnnotations()
	delete(annotations, annotation)
	if len(clusters) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotation] = strings.Join(clusters, ",")
	}
	policy.SetAnnotations(annotations)
}

func clustersIn(policy *unstructured.Unstructured, annotation string) []string {
	if policy == nil || policy.GetAnnotations()[annotation] == "" {
		return nil
	}
	return strings.Split(policy.GetAnnotations()[annotation], ",")
}

// markAs takes over which clusters are observed, and which are probed.
func markAs(policy, other *unstructured.Unstructured) {
	setObserved(policy, observedOf(other))
	setProbed(policy, probedOf(other))
}

// observed are the clusters that are observed or probed, sorted: nothing of ours runs there that may be removed. When
// somebody has deleted the policy, every cluster whose Work is suspended and preserves is taken for one.
func (l currentState) observed() []string {
	if l.policy != nil {
		return union(observedOf(l.policy), probedOf(l.policy))
	}
	var clusters []string
	for _, w := range l.works {
		if w.suspended() && w.preserved() || w.spared() || w.probes() {
			clusters = append(clusters, w.cluster)
		}
	}
	return slices.Compact(clusters)
}

// union are the names of both lists, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// spared tells whether the Work's manifest is one that Karmada cannot carry out.
func (w work) spared() bool {
	manifest := w.manifestWith(sparedVersion)
	return manifest != nil && manifest.GetAPIVersion() == sparedVersion
}

// released tells whether Karmada has confirmed, of this Work, that it neither writes the member object nor would remove it.
func (w work) released() bool { return !w.terminating() && w.confirmsSuspension() }

// wasReleased tells whether a Work that goes was released before: it is spared, which is done to Works of observed clusters alone.
func (w work) wasReleased() bool { return w.spared() && w.confirmsSuspension() }

func (w work) confirmsSuspension() bool {
	return w.suspended() && w.preserved() && meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.WorkDispatching)
}

// released tells whether Karmada has confirmed it all the way down to the Work.
func (r reader) released(w work) bool { return r.suspends(w.cluster) && w.released() }

// suspends tells whether Karmada's binding takes the cluster for an observed one too.
func (r reader) suspends(cluster string) bool {
	b := r.live.binding
	if b == nil || b.Spec.Suspension == nil || b.Spec.PreserveResourcesOnDeletion == nil || !slices.Contains(r.observed, cluster) {
		return false
	}
	return suspendsOn(r.suspension, cluster) && suspendsOn(b.Spec.Suspension.Suspension, cluster) && *b.Spec.PreserveResourcesOnDeletion
}

// sparing returns what is rendered with the clusters spared.
func (r *rendered) sparing(key backends.Key, clusters []string) *rendered {
	if len(clusters) == 0 {
		return r
	}
	out := *r
	out.policy = restated(r.policy, key)
	setObserved(out.policy, slices.Sorted(slices.Values(slices.Concat(r.observed, clusters))))
	out.override, out.needsOverride = withSpared(r.override, key, clusters), true
	return &out
}

// restated returns the policy's spec as an object to apply.
func restated(policy *unstructured.Unstructured, key backends.Key) *unstructured.Unstructured {
	out := newObject(policy.GroupVersionKind(), policy.GetNamespace(), policy.GetName(), key)
	out.Object["spec"] = policy.DeepCopy().Object["spec"]
	markAs(out, policy)
	return out
}

// sparedBy are the clusters that the override policy spares.
func sparedBy(override *unstructured.Unstructured) (clusters []string) {
	if override == nil {
		return nil
	}
	rules, _, _ := unstructured.NestedSlice(override.Object, "spec", "overrideRules")
	for _, r := range rules {
		if rule, _ := r.(map[string]any); carriesOut(r, sparing()) {
			names, _, _ := unstructured.NestedStringSlice(rule, "targetCluster", "clusterNames")
			clusters = append(clusters, names...)
		}
	}
	return clusters
}

// sparing is what makes a manifest one that Karmada cannot carry out.
func sparing() jsondiff.Op {
	return jsondiff.Op{Op: jsondiff.OpReplace, Path: versionPath, Value: sparedVersion}
}

// withSpared returns the override policy with those clusters spared, and no others.
func withSpared(override *unstructured.Unstructured, key backends.Key, clusters []string) *unstructured.Unstructured {
	return withRule(override, key, clusters, sparing())
}

// withRule returns the override policy with that operation, as the last, for those clusters and no others.
func withRule(override *unstructured.Unstructured, key backends.Key, clusters []string, op jsondiff.Op) *unstructured.Unstructured {
	out := restated(override, key)
	rules, _, _ := unstructured.NestedSlice(out.Object, "spec", "overrideRules")
	rules = slices.DeleteFunc(rules, func(r any) bool { return carriesOut(r, op) })
	if len(clusters) > 0 { // a rule that names none is for all
		rules = append(rules, rule(clusters, op))
	}
	out.Object["spec"].(map[string]any)["overrideRules"] = rules
	return out
}

// carriesOut tells whether an override rule has the operation.
func carriesOut(r any, op jsondiff.Op) bool {
	rule, _ := r.(map[string]any)
	operations, _, _ := unstructured.NestedSlice(rule, "overriders", "plaintext")
	return slices.ContainsFunc(operations, func(each any) bool {
		o, _ := each.(map[string]any)
		return o["path"] == op.Path && o["value"] == op.Value
	})
}

// spare is the next step of sparing clusters. It waits for their Works, which Karmada renders anew; other clusters'
// manifests stay as they are. It is not needed where Karmada has nothing to render from: then there will be no Work.
func spare(q backends.Query, live currentState, clusters []string) (step decision, needed bool) {
	if len(clusters) == 0 || live.template == nil || live.binding == nil || live.binding.DeletionTimestamp != nil {
		return decision{}, false
	}
	var open []string
	for _, w := range live.works {
		if slices.Contains(clusters, w.cluster) && !w.terminating() && !w.spared() {
			open = append(open, w.cluster)
		}
	}
	if len(open) == 0 {
		return decision{}, false
	}
	step.waiting = "Karmada to let go of " + list(open)
	if want := withSpared(overrideOf(q, live), q.Key, clusters); !ssa.UpToDate(live.override, want) {
		step.writes = []write{{object: want}}
	}
	return step, true
}

// overrideOf is the override policy that is there, or else one without rules.
func overrideOf(q backends.Query, live currentState) *unstructured.Unstructured {
	if live.override != nil {
		return live.override
	}
	override := newObject(scopeOf(q.Workload).override, q.Workload.Namespace, policyName(q), q.Key)
	override.Object["spec"] = map[string]any{"resourceSelectors": resourceSelectors(q.Workload)}
	return override
}

// holdUnsaid returns desired with the clusters of which nothing was said left as they are (R16), and with those that are to be left but must stay
// for now, by their names: preserving is one field of the policy for all clusters, so that one which is owned, and left while another is
// only observed, would be released and not deleted; and what is unseen would stay. A cluster that Karmada does not know any more is
// Karmada's to leave.
func holdUnsaid(
	desired backends.Desired, removed map[string]bool, live currentState, fleet backends.Fleet, unseen []string,
) (held backends.Desired, stay map[string]string) {
	observing := slices.ContainsFunc(desired.Targets, func(t backends.Target) bool { return t.Mode == backends.ModeObserve })
	listed, stay := map[string]bool{}, map[string]string{}
	for _, t := range desired.Targets {
		listed[t.Cluster] = true
	}
	targets := slices.Clone(desired.Targets)
	observed := live.observed()
	for _, cluster := range live.clusters() {
		_, known := fleet.Get(cluster)
		if listed[cluster] || !known || live.binding != nil && neededElsewhere(live.binding, cluster) {
			continue
		}
		mode := backends.ModeHold
		switch {
		case slices.Contains(probedOf(live.policy), cluster):
			mode = backends.ModeProbe
		case slices.Contains(observed, cluster):
			mode = backends.ModeObserve
		}
		if removed[cluster] {
			switch {
			case mode != backends.ModeHold:
				continue
			case observing:
				stay[cluster] = "to be left once no cluster is being handed over"
			case slices.Contains(unseen, cluster):
				stay[cluster] = "to be left once Karmada has seen what it has made there"
			default:
				continue
			}
		}
		targets = append(targets, heldTarget(desired, live, cluster, mode))
	}
	slices.SortFunc(targets, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	desired.Targets = targets
	return desired, stay
}

// heldTarget has the replicas that the cluster has. What else it has does not matter: nothing of it is dispatched.
func heldTarget(desired backends.Desired, live currentState, cluster string, mode backends.Mode) backends.Target {
	t := backends.Target{Cluster: cluster, Manifest: desired.Template, Mode: mode}
	path := desired.Workload.ReplicasPath
	if len(path) == 0 || desired.Targets[0].Replicas == nil {
		return t
	}
	var replicas int32
	if live.binding != nil {
		replicas = scheduled(live.binding)[cluster]
	}
	if w, found := live.work(cluster); found {
		if n := replicasOf(w.manifest(), path); n != nil {
			replicas = *n
		}
	}
	t.Replicas, t.Manifest = &replicas, desired.Template.DeepCopy()
	// The template has this field, since it is rendered.
	_ = unstructured.SetNestedField(t.Manifest.Object, int64(replicas), path...)
	return t
}

// clusters are those that the workload is, or is about to be, on, sorted.
func (l currentState) clusters() []string {
	var all []string
	for _, w := range l.works {
		if !w.terminating() {
			all = append(all, w.cluster)
		}
	}
	if l.binding != nil {
		for _, c := range l.binding.Spec.Clusters {
			all = append(all, c.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// runsAsHeld tells whether the member runs what the Work holds, by its report: then Karmada changes no more than its marks
// when it releases the member object. Replicas are no part of the revision.
func (w work) runsAsHeld(q backends.Query) bool {
	manifest, status, applied := w.manifest(), statusOf(w), w.applied()
	if manifest == nil || w.spared() || status == nil || applied == nil || applied.Status != metav1.ConditionTrue {
		return false
	}
	if revision := manifest.GetAnnotations()[v1alpha1.AnnotationRevision]; revision == "" || !reflects(status, revision) {
		return false
	}
	if replicas := replicasOf(manifest, q.Workload.ReplicasPath); replicas != nil {
		n, _ := status["replicas"].(int64) // left out when it is zero
		return n == int64(*replicas)
	}
	return true
}
