package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

const clusterGroup = "cluster.open-cluster-management.io"

// OCM makes a FleetWorkload of the ManifestWorks that carry a workload, or of the ManifestWorkReplicaSet that makes them and its
// Placements. The objects may be more than those.
func OCM(r Request, objects []*unstructured.Unstructured) (Result, error) {
	works := slices.DeleteFunc(of(objects, workv1.GroupName, "ManifestWork"), func(w *unstructured.Unstructured) bool { return w.GetDeletionTimestamp() != nil })
	sets := of(objects, workv1.GroupName, "ManifestWorkReplicaSet")
	var carried []*unstructured.Unstructured
	for _, work := range works {
		carried = append(carried, manifestsOf(work)...)
	}
	for _, set := range sets {
		carried = append(carried, templatesOf(set)...)
	}
	workload, err := r.choose(carried)
	if err != nil {
		return Result{}, err
	}
	works = carrying(workload, works)
	set, err := setOf(workload, works, sets)
	if err != nil {
		return Result{}, err
	}
	members := membersOf(workload, works)
	if len(members) == 0 {
		members = []member{splitOff(workload, templatesOf(set), member{from: title(set)})}
	}
	d, err := startOf(r, members)
	if err != nil {
		return Result{}, err
	}
	if len(works) == 0 {
		d.result.Running = nil
	}
	if err := d.carriers(works, set, objects); err != nil {
		return Result{}, err
	}
	d.ocmSteps(works, set)
	return d.finish()
}

// templatesOf are the manifests of a ManifestWorkReplicaSet.
func templatesOf(set *unstructured.Unstructured) []*unstructured.Unstructured {
	content, _, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "manifestWorkTemplate")
	spec, _ := content.(map[string]any)
	return manifestsOf(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
}

// carrying are the ManifestWorks that carry the workload.
func carrying(workload *unstructured.Unstructured, works []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(works), func(w *unstructured.Unstructured) bool {
		return !slices.ContainsFunc(manifestsOf(w), func(m *unstructured.Unstructured) bool { return id(m) == id(workload) })
	})
}

// setOf is the ManifestWorkReplicaSet that makes the works; nil when there is none.
func setOf(workload *unstructured.Unstructured, works, sets []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	named := map[string]bool{}
	for _, w := range works {
		named[w.GetLabels()[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey]] = true
	}
	switch {
	case len(named) > 1:
		return nil, fmt.Errorf("%s: ManifestWorks of several makers carry it; import those of one of them, with -f", title(workload))
	case len(works) > 0 && named[""]:
		return nil, nil
	}
	for _, set := range sets {
		if len(works) == 0 && slices.ContainsFunc(templatesOf(set), func(m *unstructured.Unstructured) bool { return id(m) == id(workload) }) ||
			named[set.GetNamespace()+"."+set.GetName()] {
			return set, nil
		}
	}
	for name := range named {
		return nil, fmt.Errorf("%s: its ManifestWorks are made by ManifestWorkReplicaSet %s, which is not among what was read", title(workload), name)
	}
	return nil, errNothingRuns
}

// membersOf are what the works carry, of each cluster. Of two in one cluster the first counts; the others are told of by carriers.
func membersOf(workload *unstructured.Unstructured, works []*unstructured.Unstructured) (members []member) {
	for _, w := range works {
		if !slices.ContainsFunc(members, func(m member) bool { return m.cluster == w.GetNamespace() }) {
			members = append(members, splitOff(workload, manifestsOf(w), member{cluster: w.GetNamespace(), from: title(w)}))
		}
	}
	return members
}

// splitOff divides manifests into the workload and the others.
func splitOff(workload *unstructured.Unstructured, manifests []*unstructured.Unstructured, m member) member {
	for _, obj := range manifests {
		if id(obj) == id(workload) {
			m.workload = obj
		} else {
			m.others = append(m.others, obj)
		}
	}
	return m
}

// carriers says what the options of the works, and the placement of the set, come to.
func (d *draft) carriers(works []*unstructured.Unstructured, set *unstructured.Unstructured, objects []*unstructured.Unstructured) error {
	var clusters []string
	for _, w := range works {
		if ours(w) {
			return errOurs(w)
		}
		if slices.Contains(clusters, w.GetNamespace()) {
			d.cannot(Unexpressed{Object: title(w), Field: "spec.workload",
				Reason: "another ManifestWork of the cluster carries the object too", Instead: "delete one of the two, leaving its objects, before the import"})
			continue
		}
		clusters = append(clusters, w.GetNamespace())
	}
	if set != nil {
		return d.replicaSet(set, objects, clusters)
	}
	d.fw.Spec.Placement.Clusters = d.these(clusters)
	for _, w := range works[1:] {
		if fields := differingOptions(works[0], w); len(fields) > 0 {
			d.cannot(Unexpressed{Object: title(w), Field: "spec", Value: brief.List(fields),
				Reason: "these differ, and all clusters get what " + title(works[0]) + " has", Instead: "do without the difference"})
		}
	}
	var spec workv1.ManifestWorkSpec
	if err := d.read(works[0], &spec); err != nil {
		return err
	}
	if err := d.workOptions(title(works[0]), "spec", &spec); err != nil {
		return err
	}
	return d.rest(works[0], spec, ofWork("spec"))
}

// differingOptions are the fields of two ManifestWorks, besides their manifests, that differ.
func differingOptions(a, b *unstructured.Unstructured) (fields []string) {
	one, _ := a.Object["spec"].(map[string]any)
	other, _ := b.Object["spec"].(map[string]any)
	for _, op := range jsondiff.Diff(one, other) {
		if field, _, _ := strings.Cut(op.Path[1:], "/"); field != "workload" {
			fields = unique(append(fields, field))
		}
	}
	return fields
}

// workOptions takes out of a ManifestWork's spec what a FleetWorkload says.
func (d *draft) workOptions(object, at string, spec *workv1.ManifestWorkSpec) error {
	spec.Workload = workv1.ManifestsTemplate{}
	if o := spec.DeleteOption; o != nil {
		d.deleteOption(object, at+".deleteOption", o)
	}
	var kept []workv1.ManifestConfigOption
	var chosen *workv1.ManifestConfigOption
	for i := range spec.ManifestConfigs {
		config := spec.ManifestConfigs[i]
		if chosen == nil && d.identifies(config.ResourceIdentifier) {
			chosen = &config
			continue
		}
		kept = append(kept, config)
	}
	spec.ManifestConfigs = kept
	if chosen == nil {
		return nil
	}
	option := optionOf(chosen)
	if len(option) > 0 {
		raw, err := encoded(map[string]any{"manifestConfigs": []any{option}})
		if err != nil {
			return err
		}
		d.ocmOptions().ManifestWork = raw
	}
	if s := chosen.UpdateStrategy; s != nil && (s.Type == workv1.UpdateStrategyTypeCreateOnly || s.Type == workv1.UpdateStrategyTypeReadOnly) {
		d.cannot(Unexpressed{Object: object, Field: at + ".manifestConfigs.updateStrategy.type", Value: string(s.Type),
			Reason:  "the operator writes the object, and keeps it as the spec has it",
			Instead: "leave the workload where it is, if clusters may change it; fields that others write can be left alone with backendOptions.ocm.manifestWork"})
	}
	return nil
}

func (d *draft) ocmOptions() *v1alpha1.OCMOptions {
	if d.fw.Spec.BackendOptions == nil {
		d.fw.Spec.BackendOptions = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{}}
	}
	return d.fw.Spec.BackendOptions.OCM
}

// identifies tells whether an identifier is the workload's; names may be patterns.
func (d *draft) identifies(r workv1.ResourceIdentifier) bool {
	fits := func(pattern, name string) bool {
		return pattern == name || strings.Contains(pattern, "*") && wild(pattern, name)
	}
	return r.Group == d.workload.GroupVersionKind().Group && r.Resource == d.kind.Resource && fits(r.Name, d.workload.GetName()) && fits(r.Namespace, d.workload.GetNamespace())
}

// wild matches a pattern with stars.
func wild(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// optionOf is what backendOptions say of the workload's entry of manifestConfigs. Well-known feedback is the operator's own.
func optionOf(config *workv1.ManifestConfigOption) map[string]any {
	out := map[string]any{}
	feedback := slices.DeleteFunc(slices.Clone(config.FeedbackRules), func(r workv1.FeedbackRule) bool { return r.Type == workv1.WellKnownStatusType })
	if len(feedback) > 0 {
		out["feedbackRules"] = plain(feedback)
	}
	if len(config.ConditionRules) > 0 {
		out["conditionRules"] = plain(config.ConditionRules)
	}
	if s := config.UpdateStrategy; s != nil && s.ServerSideApply != nil && len(s.ServerSideApply.IgnoreFields) > 0 {
		out["updateStrategy"] = map[string]any{"serverSideApply": map[string]any{"ignoreFields": plain(s.ServerSideApply.IgnoreFields)}}
	}
	return out
}

// deleteOption says what becomes of the object when the carrier is deleted.
func (d *draft) deleteOption(object, at string, o *workv1.DeleteOption) {
	rules := o.SelectivelyOrphan
	o.SelectivelyOrphan = nil
	switch o.PropagationPolicy {
	case workv1.DeletePropagationPolicyTypeOrphan:
		d.fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	case workv1.DeletePropagationPolicyTypeSelectivelyOrphan:
		if rules == nil {
			break
		}
		var others []string
		for _, rule := range rules.OrphaningRules {
			if d.identifies(workv1.ResourceIdentifier(rule)) {
				d.fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
			} else {
				others = append(others, rule.Resource+"/"+rule.Name)
			}
		}
		orphans := d.fw.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan
		if len(others) > 0 || orphans && len(d.fw.Spec.Companions) > 0 {
			d.cannot(Unexpressed{Object: object, Field: at + ".selectivelyOrphans", Value: brief.List(others),
				Reason:  "deletionPolicy is for the workload and all its companions",
				Instead: "see whether deletionPolicy of the FleetWorkload is right for all of them"})
		}
	case workv1.DeletePropagationPolicyTypeForeground:
	default:
		return // it is left, and told
	}
	o.PropagationPolicy = ""
}

// ofWork are the fields of a ManifestWork's spec that are left.
func ofWork(at string) []remark {
	return []remark{
		{at + ".executor", "agents write as themselves what the operator sends, unless a FleetWorkload says otherwise", "name an account with spec.serviceAccountName, and set spec.backendOptions.ocm.executor to have agents write as it too; it is in the namespace of the FleetWorkload"},
		{at + ".deleteOption.ttlSecondsAfterFinished", "a FleetWorkload stays until it is deleted", "delete it once it has done"},
		{at + ".manifestConfigs", "options can be given for the workload alone", "do without for companions; the operator reads their state itself"},
	}
}

var errNoPlacement = errors.New("which clusters it chooses can be said only by those that it has chosen, and there are no ManifestWorks among what was read; give them too")
