package importer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// command is a kubectl command about an object.
func command(verb string, obj *unstructured.Unstructured, args ...string) string {
	words := append([]string{"kubectl", verb, resource(obj), obj.GetName()}, args...)
	if ns := obj.GetNamespace(); ns != "" {
		words = append(words, "-n", ns)
	}
	return strings.Join(words, " ")
}

// resource is how kubectl finds the kind.
func resource(obj *unstructured.Unstructured) string {
	gvk := obj.GroupVersionKind()
	if gvk.Group == "" || gvk.Group == "apps" || strings.HasSuffix(gvk.Group, "karmada.io") || strings.HasSuffix(gvk.Group, "open-cluster-management.io") {
		return strings.ToLower(gvk.Kind)
	}
	return strings.ToLower(gvk.Kind) + "." + gvk.Group
}

// save is a step that keeps what is taken away later.
func save(where string, objects ...*unstructured.Unstructured) Step {
	step := Step{What: "keep what there is " + where + ", for the way back"}
	const most = 6
	if len(objects) > most {
		step.Commands = []string{"kubectl get " + resource(objects[0]) + " -A -o yaml > before.yaml"}
		return step
	}
	commands := make([]string, 0, len(objects))
	for _, obj := range objects {
		commands = append(commands, command("get", obj, "-o", "yaml"))
	}
	step.Commands = []string{"{ " + strings.Join(commands, "; echo ---; ") + "; } > before.yaml"}
	return step
}

// preserve is the patch by which Karmada leaves members as they are when it loses the template.
const preserve = `--type merge -p '{"spec":{"preserveResourcesOnDeletion":true}}'`

// karmadaSteps say how the operator gets the workload. It refuses a template that a policy of somebody else has claimed (refuseRaw in
// backends/karmada), so it has to be released first. The override policies have to go before the operator writes its own template: they
// would change that too, and what they do a second time may not come to the same.
func (d *draft) karmadaSteps(policy *unstructured.Unstructured, overrides, works []*unstructured.Unstructured) {
	policies := append([]*unstructured.Unstructured{policy}, overrides...)
	d.result.TakeOver = []Step{
		save("on Karmada", append([]*unstructured.Unstructured{d.workload}, policies...)...),
		{What: "on Karmada, have members keep their objects, " + d.whichToo(policy), Commands: []string{command("patch", policy, preserve)}},
		{What: "on Karmada, wait until every Work of it, and of what travels with it, has spec.preserveResourcesOnDeletion: true", Commands: d.preserved(works)},
		{What: "on Karmada, delete the template. Its pods run on, and are nobody's for the moment", Commands: []string{command("delete", d.workload)}},
		d.letGo(policies),
		d.apply(),
	}
	if d.fw.Spec.Dependencies == v1alpha1.DependencyPolicyPropagate {
		d.result.TakeOver = append([]Step{{What: fmt.Sprintf("on the management cluster, have in namespace %s the ConfigMaps, Secrets and so on that its pods refer to: "+
			"the operator reads them there, and Karmada has them on its own control plane", d.fw.Namespace)}}, d.result.TakeOver...)
	}
	d.result.WayBack = []Step{
		{What: "before the template is deleted: set spec.preserveResourcesOnDeletion of " + title(policy) + " to what it was. Nothing else has changed"},
		d.orphan(),
		{What: "and give Karmada what it had. Set conflictResolution: Overwrite in the policy first, since the objects are there already",
			Commands: []string{"$EDITOR before.yaml # conflictResolution; and take out uid, resourceVersion and status", "kubectl apply -f before.yaml"}},
	}
}

// apply is the step by which the operator gets the workload.
func (d *draft) apply() Step {
	return Step{What: "on the management cluster, apply the FleetWorkload: the operator asks every cluster what it runs, and takes that over", Commands: []string{
		"kubectl apply -f fleetworkload.yaml", fmt.Sprintf("kubectl fw status %s -n %s --watch", d.fw.Name, d.fw.Namespace),
	}}
}

// orphan is the step that takes a FleetWorkload away and nothing else.
func (d *draft) orphan() Step {
	return Step{What: "later: on the management cluster, take the FleetWorkload away, and leave the objects on the clusters", Commands: []string{
		fmt.Sprintf(`kubectl patch fleetworkload %s -n %s --type merge -p '{"spec":{"deletionPolicy":"Orphan"}}'`, d.fw.Name, d.fw.Namespace),
		fmt.Sprintf("kubectl delete fleetworkload %s -n %s", d.fw.Name, d.fw.Namespace),
	}}
}

// whichToo says what else a policy's setting is about.
func (d *draft) whichToo(policy *unstructured.Unstructured) string {
	var spec policyv1alpha1.PropagationSpec
	peek(policy, &spec)
	if others := d.others(spec.ResourceSelectors); len(others) > 0 {
		return fmt.Sprintf("also those of %s, which the policy selects too: set it back afterwards", brief.List(others))
	}
	return "whatever becomes of the template"
}

// preserved are the commands that wait for the workload's own Works, and show those of what travels with it, which have other labels.
func (d *draft) preserved(works []*unstructured.Unstructured) []string {
	const show = "kubectl get works -A -o custom-columns=CLUSTER:.metadata.namespace,NAME:.metadata.name,PRESERVE:.spec.preserveResourcesOnDeletion"
	selector := bindingOf(worksOf(d.workload, works))
	if selector == "" {
		return []string{show}
	}
	commands := []string{"kubectl wait works -A -l " + selector + " --for=jsonpath='{.spec.preserveResourcesOnDeletion}'=true --timeout=1m"}
	if d.fw.Spec.Dependencies == v1alpha1.DependencyPolicyPropagate {
		commands = append(commands, show)
	}
	return commands
}

// bindingOf selects the Works of the binding that the first labelled one belongs to; it is empty when none is labelled.
func bindingOf(works []*unstructured.Unstructured) string {
	for _, work := range works {
		for _, label := range []string{workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel} {
			if value := work.GetLabels()[label]; value != "" {
				return label + "=" + value
			}
		}
	}
	return ""
}

// letGo is the step by which policies select the workload no more.
func (d *draft) letGo(policies []*unstructured.Unstructured) Step {
	step := Step{What: "on Karmada, have no policy of yours select it any more: the operator writes a template of the same name, and policies of its own"}
	for _, policy := range policies {
		var spec struct {
			ResourceSelectors []policyv1alpha1.ResourceSelector `json:"resourceSelectors"`
		}
		peek(policy, &spec)
		if len(spec.ResourceSelectors) == 0 || len(d.others(spec.ResourceSelectors)) > 0 {
			step.Commands = append(step.Commands, command("edit", policy)+" # its resourceSelectors, since it is for others too")
			continue
		}
		step.Commands = append(step.Commands, command("delete", policy))
	}
	return step
}
