package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// executionPrefix begins the namespaces of Works (names.GenerateExecutionSpaceName in github.com/karmada-io/karmada pkg/util/names).
const executionPrefix = "karmada-es-"

// Karmada makes a FleetWorkload of a resource template, the policy that has claimed it and the override policies that select it. The
// objects may be more than those, and Works among them tell what runs.
func Karmada(r Request, objects []*unstructured.Unstructured) (Result, error) {
	works := of(objects, workv1alpha1.GroupName, "Work")
	workload, err := r.choose(slices.DeleteFunc(slices.Clone(objects), func(obj *unstructured.Unstructured) bool {
		return strings.HasSuffix(obj.GroupVersionKind().Group, "karmada.io")
	}))
	if err != nil {
		return Result{}, err
	}
	d, err := start(r, workload)
	if err != nil {
		return Result{}, err
	}
	policy, err := claimant(workload, objects)
	if err != nil {
		return Result{}, err
	}
	d.result.Running = runningOn(workload, works)
	if err := d.propagation(policy); err != nil {
		return Result{}, err
	}
	overrides, err := selecting(workload, objects)
	if err != nil {
		return Result{}, err
	}
	if err := d.karmadaOverrides(overrides); err != nil {
		return Result{}, err
	}
	d.karmadaSteps(policy, overrides, works)
	return d.finish()
}

// runningOn are the manifests of the workload's Works, by cluster; nil when there are none.
func runningOn(workload *unstructured.Unstructured, works []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	running := map[string]*unstructured.Unstructured{}
	for _, work := range worksOf(workload, works) {
		running[strings.TrimPrefix(work.GetNamespace(), executionPrefix)] = manifestsOf(work)[0]
	}
	if len(running) == 0 {
		return nil
	}
	return running
}

// worksOf are those that carry the workload.
func worksOf(workload *unstructured.Unstructured, works []*unstructured.Unstructured) (found []*unstructured.Unstructured) {
	for _, work := range works {
		manifests := manifestsOf(work)
		if strings.HasPrefix(work.GetNamespace(), executionPrefix) && len(manifests) == 1 && id(manifests[0]) == id(workload) &&
			work.GetDeletionTimestamp() == nil {
			found = append(found, work)
		}
	}
	return found
}

// manifestsOf reads the manifests of a Work or a ManifestWork. What is no object is left out.
func manifestsOf(work *unstructured.Unstructured) (manifests []*unstructured.Unstructured) {
	content, _, _ := unstructured.NestedFieldNoCopy(work.Object, "spec", "workload", "manifests")
	elements, _ := content.([]any)
	for _, element := range elements {
		if m, is := element.(map[string]any); is {
			manifests = append(manifests, &unstructured.Unstructured{Object: m})
		}
	}
	return manifests
}

// propagation takes everything out of a policy that a FleetWorkload says, and tells of the rest.
func (d *draft) propagation(policy *unstructured.Unstructured) error {
	var spec policyv1alpha1.PropagationSpec
	if err := d.read(policy, &spec); err != nil {
		return err
	}
	fw := d.fw
	if spec.PropagateDeps || spec.Association {
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	}
	if spec.Suspension != nil && ptr.Deref(spec.Suspension.Dispatching, false) {
		fw.Spec.Suspend, spec.Suspension.Dispatching = ptr.To(true), nil
	}
	if ptr.Deref(spec.PreserveResourcesOnDeletion, false) {
		fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	}
	if spec.SchedulePriority != nil {
		option, err := encoded(map[string]any{"schedulePriority": spec.SchedulePriority})
		if err != nil {
			return err
		}
		fw.Spec.BackendOptions = &v1alpha1.BackendOptions{Karmada: &v1alpha1.KarmadaOptions{PropagationPolicy: option}}
	}
	if spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
		d.note("%s: conflictResolution is Abort: conflictPolicy is Adopt all the same, since the objects are there. Set it to Fail once the operator has them", title(policy))
	}
	if spec.SchedulerName == "default-scheduler" {
		spec.SchedulerName = ""
	}
	if others := d.others(spec.ResourceSelectors); len(others) > 0 {
		d.note("%s also selects %s: none of that is imported, and it stays as it is", title(policy), brief.List(others))
	}
	spec.PropagateDeps, spec.Association, spec.SchedulePriority = false, false, nil
	spec.ConflictResolution, spec.ResourceSelectors = "", nil
	d.karmadaFailover(&spec)
	d.karmadaPlacement(title(policy), &spec.Placement)
	return d.rest(policy, spec, ofPropagation)
}

// others words the selectors of a policy that choose more than the workload.
func (d *draft) others(selectors []policyv1alpha1.ResourceSelector) (others []string) {
	for _, s := range selectors {
		if s.Name != "" && precision(d.workload, s) == preciseName {
			continue
		}
		what := s.APIVersion + " " + s.Kind
		switch {
		case s.Name != "":
			what += " " + s.Name
		case s.LabelSelector != nil:
			what += " by labels"
		}
		others = append(others, what)
	}
	return others
}

// karmadaFailover makes placement.failover of what Karmada does when it loses a cluster.
func (d *draft) karmadaFailover(spec *policyv1alpha1.PropagationSpec) {
	if spec.Failover == nil || spec.Failover.Cluster == nil {
		return
	}
	cluster := spec.Failover.Cluster
	purge, known := purges[cluster.PurgeMode]
	d.fw.Spec.Placement.Failover = &v1alpha1.Failover{Purge: cmp.Or(purge, v1alpha1.PurgePolicyGraceful)}
	if known {
		cluster.PurgeMode = ""
	}
}

var purges = map[policyv1alpha1.PurgeMode]v1alpha1.PurgePolicy{
	policyv1alpha1.PurgeModeDirectly: v1alpha1.PurgePolicyImmediate, "Immediately": v1alpha1.PurgePolicyImmediate,
	policyv1alpha1.PurgeModeGracefully: v1alpha1.PurgePolicyGraceful, "Graciously": v1alpha1.PurgePolicyGraceful,
	policyv1alpha1.Never: v1alpha1.PurgePolicyNever,
}

// ofPropagation are the fields of a policy that are left.
var ofPropagation = []remark{
	{"spec.priority", "", ""},
	{"spec.preemption", "", ""},
	{"spec.dependentOverrides", "", ""},
	{"spec.schedulerName", "the operator has replicas and clusters in the policy that it writes, for Karmada's own scheduler", "do without the other scheduler, or leave the workload where it is"},
	{"spec.activationPreference", "an edit of a FleetWorkload is carried out at once", "set spec.suspend to true while edits shall wait"},
	{"spec.suspension.dispatchingOnClusters", "spec.suspend is for all clusters", "take these clusters out of spec.placement, or set spec.suspend"},
	{"spec.preserveResourcesOnDeletion", "said in part: deletionPolicy Orphan leaves the objects when the FleetWorkload is deleted, and a cluster that leaves the placement loses its object", "take the FleetWorkload away with deletionPolicy Orphan before you take clusters out"},
	{"spec.failover.application", "the operator replaces clusters that are lost, and not workloads that are unhealthy", "set spec.placement.failover for lost clusters; for unhealthy ones, watch the condition Healthy"},
	{"spec.failover.cluster.statePreservation", "nothing of the lost cluster's status is brought along", "have the application find its state itself"},
	{"spec.placement.workloadAffinity", "workloads are placed without looking at each other", "choose the clusters with spec.placement.clusters"},
	{"spec.placement.clusterAffinity.fieldSelector.matchExpressions", "only In and NotIn of provider, region and zone can be said", "choose the clusters by names or labels"},
	{"spec.placement.clusterAffinities", "the group cannot be said", "choose its clusters by names or labels"},
}

// claimant is the policy that has claimed a template, or would: Karmada's own rules (LookForMatchedPolicy in pkg/detector, compare.go).
func claimant(workload *unstructured.Unstructured, objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	namespaced := of(objects, policyv1alpha1.GroupName, "PropagationPolicy")
	wide := of(objects, policyv1alpha1.GroupName, "ClusterPropagationPolicy")
	for _, policy := range slices.Concat(namespaced, wide) {
		if ours(policy) && policyClaims(policy, workload) {
			return nil, errOurs(policy)
		}
	}
	if name := claimOf(workload); name != "" {
		for _, policy := range slices.Concat(namespaced, wide) {
			if title(policy) == name {
				return policy, nil
			}
		}
		return nil, fmt.Errorf("%s is claimed by %s, which is not among what was read", title(workload), name)
	}
	namespaced = slices.DeleteFunc(slices.Clone(namespaced), func(p *unstructured.Unstructured) bool { return p.GetNamespace() != workload.GetNamespace() })
	if workload.GetNamespace() == "" {
		namespaced = nil
	}
	for _, candidates := range [][]*unstructured.Unstructured{namespaced, wide} {
		if best := bestOf(workload, candidates); best != nil {
			return best, nil
		}
	}
	return nil, fmt.Errorf("%s: %w: no PropagationPolicy or ClusterPropagationPolicy among what was read selects it", title(workload), errNothingRuns)
}

func policyClaims(policy, workload *unstructured.Unstructured) bool {
	return title(policy) == claimOf(workload)
}

// claimOf names the policy that has claimed a template, as title does; empty when none has.
func claimOf(workload *unstructured.Unstructured) string {
	annotations := workload.GetAnnotations()
	if name := annotations[policyv1alpha1.PropagationPolicyNameAnnotation]; name != "" {
		return "PropagationPolicy " + annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation] + "/" + name
	}
	if name := annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]; name != "" {
		return "ClusterPropagationPolicy " + name
	}
	return ""
}

// bestOf is the policy of the highest priority, then the most precise one, then the one of the smallest name.
func bestOf(workload *unstructured.Unstructured, policies []*unstructured.Unstructured) (best *unstructured.Unstructured) {
	var bestSpec policyv1alpha1.PropagationSpec
	for _, policy := range policies {
		var spec policyv1alpha1.PropagationSpec
		peek(policy, &spec)
		if mostPrecise(workload, spec.ResourceSelectors) == preciseNot {
			continue
		}
		better := cmp.Or(cmp.Compare(ptr.Deref(spec.Priority, 0), ptr.Deref(bestSpec.Priority, 0)),
			cmp.Compare(mostPrecise(workload, spec.ResourceSelectors), mostPrecise(workload, bestSpec.ResourceSelectors)))
		if best == nil || better > 0 {
			best, bestSpec = policy, spec
		}
	}
	return best
}

// How precisely a selector chooses an object (ImplicitPriority in pkg/util/selector.go).
const (
	preciseNot = iota
	preciseAll
	preciseLabels
	preciseName
)

func mostPrecise(obj *unstructured.Unstructured, selectors []policyv1alpha1.ResourceSelector) int {
	most := preciseNot
	for _, s := range selectors {
		most = max(most, precision(obj, s))
	}
	return most
}

func precision(obj *unstructured.Unstructured, s policyv1alpha1.ResourceSelector) int {
	switch {
	case s.APIVersion != obj.GetAPIVersion() || s.Kind != obj.GetKind() || s.Namespace != "" && s.Namespace != obj.GetNamespace():
		return preciseNot
	case s.Name == obj.GetName():
		return preciseName
	case s.Name != "":
		return preciseNot
	case s.LabelSelector == nil:
		return preciseAll
	case labelsMatch(s.LabelSelector, obj.GetLabels()):
		return preciseLabels
	default:
		return preciseNot
	}
}

// selecting are the override policies that select a template, in the order in which Karmada applies them: cluster-wide ones first, and of
// each sort the less precise ones first, then by name (getOverridersFromOverridePolicies in pkg/util/overridemanager).
func selecting(workload *unstructured.Unstructured, objects []*unstructured.Unstructured) (found []*unstructured.Unstructured, err error) {
	wide := of(objects, policyv1alpha1.GroupName, "ClusterOverridePolicy")
	namespaced := slices.DeleteFunc(of(objects, policyv1alpha1.GroupName, "OverridePolicy"), func(p *unstructured.Unstructured) bool {
		return p.GetNamespace() != workload.GetNamespace()
	})
	for _, policies := range [][]*unstructured.Unstructured{wide, namespaced} {
		how := map[*unstructured.Unstructured]int{}
		policies = slices.DeleteFunc(policies, func(p *unstructured.Unstructured) bool {
			var spec policyv1alpha1.OverrideSpec
			peek(p, &spec)
			how[p] = mostPrecise(workload, spec.ResourceSelectors)
			if len(spec.ResourceSelectors) == 0 {
				how[p] = preciseAll
			}
			return how[p] == preciseNot
		})
		slices.SortStableFunc(policies, func(a, b *unstructured.Unstructured) int {
			return cmp.Or(cmp.Compare(how[a], how[b]), cmp.Compare(a.GetName(), b.GetName()))
		})
		found = append(found, policies...)
	}
	for _, policy := range found {
		if ours(policy) {
			return nil, errOurs(policy)
		}
	}
	return found, nil
}
