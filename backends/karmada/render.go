package karmada

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// policyPriority makes our policy win over others that select the template by name too: a policy that is claimed once
// keeps the template (pkg/detector/compare.go), and a foreign one would dispatch it past the gate.
const policyPriority = 1_000_000

// Render returns the objects that carry desired out, in the order in which they are written: the Works of companions, the
// OverridePolicy when any cluster differs, the PropagationPolicy, the template. It returns none while there are no targets. They are as
// they are written where there is nothing yet.
func Render(desired backends.Desired) ([]*unstructured.Unstructured, error) {
	desired.Targets = desired.Wanted()
	r, err := render(desired, currentState{})
	if err != nil || r == nil {
		return nil, err
	}
	objects, err := renderCompanionWorks(desired)
	if err != nil {
		return nil, err
	}
	if r.needsOverride {
		objects = append(objects, r.override)
	}
	return append(objects, r.policy, r.template), nil
}

// rendered are the objects of one workload, in the state that is to be reached.
type rendered struct {
	template *unstructured.Unstructured
	policy   *unstructured.Unstructured
	// override is always rendered; needsOverride tells whether it changes anything.
	override      *unstructured.Unstructured
	needsOverride bool
	// rules are those of override.
	rules []policyv1alpha1.RuleWithCluster
	// clusters are the names in the policy, sorted.
	clusters []string
	// replicas that Karmada's scheduler gives each cluster; nil for kinds without.
	replicas map[string]int32
	// total is what the template asks for; nil for kinds without replicas. divided tells whether the scheduler divides it.
	total   *int64
	divided bool
	// held are the clusters to which nothing is dispatched, observed those of them that are observed, sorted.
	held, observed []string
	// probed are the clusters that are only asked what they run, sorted.
	probed []string
	// overwriting are the clusters where Karmada is to take over what it finds, sorted.
	overwriting []string
}

// layout is how replicas are expressed.
type layout struct {
	// divided means static weights equal to each cluster's replicas, which Karmada's Webster method turns into exactly
	// those numbers, without ties (division_test.go).
	divided bool
	// zeroed are clusters that shall run none. Karmada is asked for one there, and an override makes it zero: a cluster
	// that its scheduler gives nothing, it deletes the object from (removeZeroReplicasCluster in
	// pkg/scheduler/core/common.go).
	zeroed   []string
	total    *int64
	clusters []string
	replicas map[string]int32
}

// render needs the live world for what is taken over already, and for nothing else.
func render(desired backends.Desired, live currentState) (*rendered, error) {
	if err := checkDrift(desired.Query); err != nil {
		return nil, err
	}
	if err := checkNames(desired.Workload); err != nil {
		return nil, err
	}
	if len(desired.Targets) == 0 {
		return nil, nil
	}
	if err := checkNumbers(desired); err != nil {
		return nil, err
	}
	l := layOut(desired)
	template, err := renderTemplate(desired, l)
	if err != nil {
		return nil, err
	}
	r := &rendered{template: template, clusters: l.clusters, replicas: l.replicas, total: l.total, divided: l.divided}
	for _, t := range desired.Targets {
		observes := t.Mode == backends.ModeObserve
		if observes {
			r.observed = append(r.observed, t.Cluster)
		}
		if probes(t) {
			r.probed = append(r.probed, t.Cluster)
		}
		if observes || t.Mode == backends.ModeHold {
			r.held = append(r.held, t.Cluster)
		}
		if overwrites(desired, t, live) {
			r.overwriting = append(r.overwriting, t.Cluster)
		}
	}
	if err := r.renderPolicy(desired, l); err != nil {
		return nil, err
	}
	if err := r.renderOverride(desired, l); err != nil {
		return nil, err
	}
	return r, nil
}

func layOut(desired backends.Desired) layout {
	l := layout{divided: desired.Division == v1alpha1.DivisionTypeDivided}
	var total int64
	counted := len(desired.Workload.ReplicasPath) > 0
	for _, t := range desired.Targets {
		counted = counted && t.Replicas != nil
	}
	if !counted {
		for _, t := range desired.Targets {
			l.clusters = append(l.clusters, t.Cluster)
		}
		slices.Sort(l.clusters)
		l.divided = false
		return l
	}
	first := *desired.Targets[0].Replicas
	l.replicas = map[string]int32{}
	for _, t := range desired.Targets {
		// Unequal numbers cannot be duplicated; they are what counts.
		l.divided = l.divided || *t.Replicas != first
		if *t.Replicas == 0 {
			l.zeroed = append(l.zeroed, t.Cluster)
		}
		l.replicas[t.Cluster] = max(*t.Replicas, 1)
		total += int64(l.replicas[t.Cluster])
		l.clusters = append(l.clusters, t.Cluster)
	}
	slices.Sort(l.clusters)
	slices.Sort(l.zeroed)
	if !l.divided {
		total = int64(max(first, 1))
	}
	l.total = &total
	return l
}

func renderTemplate(desired backends.Desired, l layout) (*unstructured.Unstructured, error) {
	template := desired.Template.DeepCopy()
	unstructured.RemoveNestedField(template.Object, "status")
	unstructured.RemoveNestedField(template.Object, "metadata", "creationTimestamp")
	if l.total == nil {
		return template, nil
	}
	if err := unstructured.SetNestedField(template.Object, *l.total, desired.Workload.ReplicasPath...); err != nil {
		return nil, &backends.Error{
			Code: backends.CodeInvalidTemplate, Field: "spec.template",
			Message: fmt.Sprintf("replicas cannot be set at %s", jsondiff.Pointer(desired.Workload.ReplicasPath...)),
			Remedy:  "make the fields on that path objects", Err: err,
		}
	}
	return template, nil
}

func (r *rendered) renderPolicy(desired backends.Desired, l layout) error {
	scheduling := map[string]any{"replicaSchedulingType": string(policyv1alpha1.ReplicaSchedulingTypeDuplicated)}
	if l.divided {
		weights := make([]any, 0, len(l.clusters))
		for _, cluster := range l.clusters {
			weights = append(weights, map[string]any{
				"targetCluster": map[string]any{"clusterNames": []any{cluster}},
				"weight":        int64(l.replicas[cluster]),
			})
		}
		scheduling = map[string]any{
			"replicaSchedulingType":     string(policyv1alpha1.ReplicaSchedulingTypeDivided),
			"replicaDivisionPreference": string(policyv1alpha1.ReplicaDivisionPreferenceWeighted),
			"weightPreference":          map[string]any{"staticWeightList": weights},
		}
	}
	spec := map[string]any{
		"resourceSelectors": resourceSelectors(desired.Workload),
		"placement": map[string]any{
			"clusterAffinity":   map[string]any{"clusterNames": toAny(l.clusters)},
			"replicaScheduling": scheduling,
			// The clusters were chosen with their taints in mind (see select). Karmada shall neither refuse them later,
			// which would leave it without any cluster and delete everything, nor evict what runs there.
			"clusterTolerations": []any{map[string]any{"operator": "Exists"}},
		},
		"priority":           int64(policyPriority),
		"conflictResolution": string(policyv1alpha1.ConflictAbort), // see overwrites
	}
	spec, err := mergePolicyOptions(spec, desired.Options)
	if err != nil {
		return err
	}
	if len(r.held) > 0 {
		spec["suspension"] = map[string]any{"dispatchingOnClusters": map[string]any{"clusterNames": toAny(r.held)}}
	}
	if len(r.observed) > 0 {
		spec["preserveResourcesOnDeletion"] = true
	}
	r.policy = newObject(scopeOf(desired.Workload).policy, desired.Workload.Namespace, policyName(desired.Query), desired.Key)
	r.policy.Object["spec"] = spec
	setObserved(r.policy, r.observed)
	setProbed(r.policy, r.probed)
	return nil
}

func (r *rendered) renderOverride(desired backends.Desired, l layout) error {
	rules, err := targetRules(desired)
	if err != nil {
		return err
	}
	if err := checkRecord(rules); err != nil {
		return err
	}
	if len(r.probed) > 0 {
		rules = append(rules, probeRule(r.probed))
	}
	if len(l.zeroed) > 0 {
		// After all others, so that nothing makes pods again. Overrides come after Karmada's own replicas (ensureWork in
		// pkg/controllers/binding/common.go).
		rules = append(rules, rule(l.zeroed, jsondiff.Op{
			Op: jsondiff.OpReplace, Path: jsondiff.Pointer(desired.Workload.ReplicasPath...), Value: int64(0),
		}))
	}
	if len(r.overwriting) > 0 {
		rules = append(rules, rule(r.overwriting, resolve(overwrite))) // where withRule has it
	}
	r.needsOverride = len(rules) > 0
	rules = append([]any{revisionRule(desired.Revision)}, rules...)
	spec := map[string]any{"resourceSelectors": resourceSelectors(desired.Workload), "overrideRules": rules}
	r.override = newObject(scopeOf(desired.Workload).override, desired.Workload.Namespace, policyName(desired.Query), desired.Key)
	r.override.Object["spec"] = spec
	if r.rules, err = typedRules(rules); err != nil {
		return fmt.Errorf("read rendered override rules: %w", err)
	}
	return checkPolicySize(rules)
}

// revisionRule sets on every cluster the revision that the template has already. It is there for the record that Karmada
// keeps on each Work of the overrides it was rendered with: that record is never taken away, so of a cluster without any
// override it would still tell of earlier ones (CreateOrUpdateWork in pkg/controllers/ctrlutil/work.go).
func revisionRule(revision string) map[string]any {
	r := rule(nil, jsondiff.Op{
		Op: jsondiff.OpAdd, Path: jsondiff.Pointer("metadata", "annotations", v1alpha1.AnnotationRevision), Value: revision,
	})
	delete(r, "targetCluster")
	return r
}

// targetRules turns the difference between the template and each target manifest into override rules, one for each set
// of clusters that differ in the same way.
func targetRules(desired backends.Desired) ([]any, error) {
	type group struct {
		clusters []string
		ops      []jsondiff.Op
	}
	groups := map[string]*group{}
	var order []string
	base := comparable(desired.Template, desired.Workload.ReplicasPath)
	of := map[*unstructured.Unstructured]*group{} // many clusters share a manifest
	for _, t := range desired.Targets {
		g, known := of[t.Manifest]
		if !known {
			target := comparable(t.Manifest, desired.Workload.ReplicasPath)
			ops := robust(base, target, desired.Workload.ReplicasPath, jsondiff.Diff(base, target))
			encoded, err := json.Marshal(ops)
			if err != nil {
				return nil, fmt.Errorf("encode the overrides of cluster %s: %w", t.Cluster, err)
			}
			if g = groups[string(encoded)]; g == nil {
				g = &group{ops: ops}
				groups[string(encoded)] = g
				order = append(order, string(encoded))
			}
			of[t.Manifest] = g
		}
		g.clusters = append(g.clusters, t.Cluster)
	}
	rules := make([]any, 0, len(order))
	for _, key := range order {
		if g := groups[key]; len(g.ops) > 0 {
			rules = append(rules, rule(g.clusters, g.ops...))
		}
	}
	return rules, nil
}

// comparable is the part of a manifest that overrides may change: replicas are Karmada's own business. It shares what is below.
func comparable(obj *unstructured.Unstructured, replicasPath []string) map[string]any {
	out := maps.Clone(obj.Object)
	delete(out, "status")
	leaveOut(out, "metadata", "creationTimestamp")
	if len(replicasPath) > 0 {
		leaveOut(out, replicasPath...)
	}
	return out
}

// leaveOut removes a field. The objects on the way to it are made anew, but for the first.
func leaveOut(object map[string]any, path ...string) {
	for ; len(path) > 1; path = path[1:] {
		below, is := object[path[0]].(map[string]any)
		if !is {
			return
		}
		below = maps.Clone(below)
		object[path[0]], object = below, below
	}
	delete(object, path[0])
}

func rule(clusters []string, ops ...jsondiff.Op) map[string]any {
	plaintext := make([]any, 0, len(ops))
	for _, op := range ops {
		entry := map[string]any{"path": op.Path, "operator": op.Op}
		if op.Op != jsondiff.OpRemove {
			entry["value"] = op.Value
		}
		plaintext = append(plaintext, entry)
	}
	return map[string]any{
		"targetCluster": map[string]any{"clusterNames": toAny(clusters)},
		"overriders":    map[string]any{"plaintext": plaintext},
	}
}

func typedRules(rules []any) ([]policyv1alpha1.RuleWithCluster, error) {
	raw, err := json.Marshal(rules)
	if err != nil {
		return nil, err
	}
	var typed []policyv1alpha1.RuleWithCluster
	if err := utiljson.Unmarshal(raw, &typed); err != nil {
		return nil, err
	}
	return typed, nil
}

func resourceSelectors(w backends.Workload) []any {
	selector := map[string]any{"apiVersion": w.GVK.GroupVersion().String(), "kind": w.GVK.Kind, "name": w.Name}
	if w.Namespace != "" {
		selector["namespace"] = w.Namespace
	}
	return []any{selector}
}

func toAny(names []string) []any {
	out := make([]any, 0, len(names))
	for _, name := range names {
		out = append(out, name)
	}
	return out
}
