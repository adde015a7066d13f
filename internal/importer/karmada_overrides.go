package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// Karmada's overriders say what is to be done to a manifest ("append this to the tag"), and overrides of a FleetWorkload what is to come of
// it. So what depends on the present value is worked out on the template, as Karmada would (pkg/util/overridemanager), and told where an
// earlier rule may have changed that value.

// edits are what earlier rules may have changed, as JSON pointers; of images a part may follow behind a #.
type edits map[string]bool

func (e edits) add(pointer string) { e[pointer] = true }

// concern tells whether a value may not be the template's any more.
func (e edits) concern(pointer string) bool {
	asked, part, _ := strings.Cut(pointer, "#")
	for at := range e {
		changed, ofPart, _ := strings.Cut(at, "#")
		switch {
		case changed == asked && (part == "" || ofPart == "" || part == ofPart), isBelow(changed, asked), isBelow(asked, changed):
			return true
		}
	}
	return false
}

// reshape tells whether the list of a container, which a pointer to one of its fields leads through, may be another one: its containers may
// have other places, or be gone.
func (e edits) reshape(pointer string) bool {
	container := above(pointer)
	list := above(container)
	for at := range e {
		changed, _, _ := strings.Cut(at, "#")
		if changed == list || isBelow(list, changed) || above(changed) == list {
			return true
		}
	}
	return false
}

// above is the pointer to what has the place of another one.
func above(pointer string) string { return pointer[:max(0, strings.LastIndex(pointer, "/"))] }

// isBelow tells whether a pointer leads to a place below another one.
func isBelow(pointer, above string) bool { return strings.HasPrefix(pointer, above+"/") }

// ruleDraft is one rule of an override policy in the making.
type ruleDraft struct {
	*draft
	// object is the policy, at the path of the overriders.
	object, at string
	override   v1alpha1.Override
	patchedAt  []string
	before     edits
	changed    edits
	// manifest is the template as this rule has changed it so far.
	manifest map[string]any
}

// karmadaOverrides makes an override of each rule.
func (d *draft) karmadaOverrides(policies []*unstructured.Unstructured) error {
	before := edits{}
	var replicas []Unexpressed
	for _, policy := range policies {
		var spec policyv1alpha1.OverrideSpec
		if err := d.read(policy, &spec); err != nil {
			return err
		}
		rules, at := spec.OverrideRules, "spec.overrideRules[%d]"
		former := formerRule(spec)
		if len(rules) == 0 {
			rules, at = []policyv1alpha1.RuleWithCluster{former}, "spec%.0d"
		} else if !jsondiff.IsZero(plain(former)) {
			d.note("%s: targetCluster and overriders have no effect on Karmada beside overrideRules, and are left out", title(policy))
		}
		for i := range rules {
			r := &ruleDraft{draft: d, object: title(policy), at: fmt.Sprintf(at, i) + ".overriders", before: before, changed: edits{}}
			name := policy.GetName()
			if len(rules) > 1 {
				name = fmt.Sprintf("%s-%d", name, i+1)
			}
			replicas = append(replicas, r.make(name, fmt.Sprintf(at, i), &rules[i])...)
			maps.Copy(before, r.changed)
		}
	}
	d.karmadaReplicas(replicas)
	return nil
}

// formerRule is the rule of the fields that were there before overrideRules.
func formerRule(spec policyv1alpha1.OverrideSpec) policyv1alpha1.RuleWithCluster {
	//nolint:staticcheck // they are deprecated, and Karmada goes by them all the same
	return policyv1alpha1.RuleWithCluster{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}
}

// make adds the override. It returns the overriders that set replicas.
func (r *ruleDraft) make(name, at string, rule *policyv1alpha1.RuleWithCluster) (replicas []Unexpressed) {
	if rule.TargetCluster != nil {
		selector, unknown := r.selector(rule.TargetCluster)
		none := nobody(selector, unknown)
		r.unknownNames(r.object, at+".targetCluster.clusterNames", unknown, none)
		if none || r.leftOver(r.object, at+".targetCluster", rule.TargetCluster) {
			return nil
		}
		if !jsondiff.IsZero(plain(selector)) {
			r.override.Clusters = selector
		}
	}
	r.override.Name = r.overrideName(name)
	r.manifest = r.workload.DeepCopy().Object
	o := rule.Overriders
	r.images(o.ImageOverrider)
	r.commands("command", o.CommandOverrider)
	r.commands("args", o.ArgsOverrider)
	r.override.Labels = r.metadata("labels", o.LabelsOverrider)
	r.override.Annotations = r.metadata("annotations", o.AnnotationsOverrider)
	for i, f := range o.FieldOverrider {
		r.cannot(Unexpressed{Object: r.object, Field: fmt.Sprintf("%s.fieldOverrider[%d]", r.at, i), Value: f.FieldPath,
			Reason: "JSON and YAML within a string are not edited", Instead: "write the whole string, with op replace in spec.overrides[].patches"})
		r.changed.add(f.FieldPath)
	}
	replicas = r.plaintext(o.Plaintext)
	r.draft.override(r.override, origin{object: r.object, field: r.at, patches: r.patchedAt})
	return replicas
}

func (r *ruleDraft) patch(at, op, pointer string, value any) {
	p := v1alpha1.PatchOperation{Op: v1alpha1.PatchOp(op), Path: pointer}
	if op != jsondiff.OpRemove {
		raw, err := json.Marshal(value)
		if err != nil {
			return
		}
		p.Value = &apiextensionsv1.JSON{Raw: raw}
	}
	r.override.Patches = append(r.override.Patches, p)
	r.patchedAt = append(r.patchedAt, at)
}

// unpatch takes back what the override does to a place.
func (r *ruleDraft) unpatch(pointer string) {
	for i := len(r.override.Patches) - 1; i >= 0; i-- {
		if r.override.Patches[i].Path == pointer {
			r.override.Patches, r.patchedAt = slices.Delete(r.override.Patches, i, i+1), slices.Delete(r.patchedAt, i, i+1)
		}
	}
}

// containersPointer leads to the containers that overriders without a path are about, by the name of the kind alone; it is empty for kinds
// of which Karmada knows none (buildPatchesWithEmptyPredicate in imageoverride.go).
func (r *ruleDraft) containersPointer() string {
	switch r.workload.GetKind() {
	case "Pod":
		return "/spec/containers"
	case "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job":
		return "/spec/template/spec/containers"
	default:
		return ""
	}
}

// noEffect notes of an overrider that changes nothing on Karmada either.
func (r *ruleDraft) noEffect(at, why string) {
	r.note("%s: %s has no effect on Karmada, since %s; it is left out", r.object, at, why)
}

// plaintext are JSON patches. One of the number of replicas is returned.
func (r *ruleDraft) plaintext(all []policyv1alpha1.PlaintextOverrider) (replicas []Unexpressed) {
	for i, p := range all {
		at := fmt.Sprintf("%s.plaintext[%d]", r.at, i)
		if path := r.kind.ReplicasPath(); len(path) > 0 && p.Path == jsondiff.Pointer(path...) {
			replicas = append(replicas, Unexpressed{Object: r.object, Field: at, Value: p.Path + " " + string(p.Value.Raw),
				Reason:  "replicas are not taken from patches, and what runs was not among the objects, from which weights could be made",
				Instead: "give the Works too, or give clusters their numbers with spec.overrides[].replicas"})
			continue
		}
		r.changed.add(p.Path)
		switch p.Operator {
		case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace, policyv1alpha1.OverriderOpRemove:
			r.patch(at, string(p.Operator), p.Path, json.RawMessage(cmp.Or(string(p.Value.Raw), "null")))
		default:
			r.cannot(Unexpressed{Object: r.object, Field: at + ".operator", Value: string(p.Operator),
				Reason: "only add, remove and replace can be said", Instead: "use one of these"})
		}
	}
	return replicas
}

// karmadaReplicas says what overriders make of replicas by what runs; without that it tells of them.
func (d *draft) karmadaReplicas(overriders []Unexpressed) {
	if len(overriders) == 0 {
		return
	}
	replicas := map[string]int32{}
	for cluster, manifest := range d.result.Running {
		if n, given, err := interpreter.Replicas(d.kind, manifest); err == nil && given {
			replicas[cluster] = n
		}
	}
	if len(replicas) == 0 || len(replicas) < len(d.result.Running) {
		for _, u := range overriders {
			d.cannot(u)
		}
		return
	}
	for _, u := range overriders {
		d.note("%s: %s sets replicas of clusters: each gets the number that it has", u.Object, u.Field)
	}
	d.divide(title(d.workload), replicas)
}

// metadata is what overriders make of labels or annotations.
func (r *ruleDraft) metadata(key string, all []policyv1alpha1.LabelAnnotationOverrider) *v1alpha1.MetadataOverride {
	entries, _, _ := unstructured.NestedStringMap(r.manifest, "metadata", key)
	entries = maps.Clone(entries)
	if entries == nil {
		entries = map[string]string{}
	}
	out := v1alpha1.MetadataOverride{Set: map[string]string{}}
	for i, overrider := range all {
		for _, name := range slices.Sorted(maps.Keys(overrider.Value)) {
			at := fmt.Sprintf("%s.%sOverrider[%d].value[%s]", r.at, key, i, name)
			pointer := jsondiff.Pointer("metadata", key, name)
			_, exists := entries[name]
			switch {
			case overrider.Operator == policyv1alpha1.OverriderOpRemove:
				delete(entries, name)
				delete(out.Set, name)
				out.Remove = unique(append(out.Remove, name))
			case overrider.Operator == policyv1alpha1.OverriderOpReplace && r.before.concern(pointer):
				r.cannot(Unexpressed{Object: r.object, Field: at, Value: overrider.Value[name],
					Reason:  "Karmada sets it only where no other override has removed it, or one has added it",
					Instead: "set it in an override of the clusters that are to have it"})
			case overrider.Operator == policyv1alpha1.OverriderOpReplace && !exists:
				r.noEffect(at, "the key is not there")
			default:
				entries[name], out.Set[name] = overrider.Value[name], overrider.Value[name]
				out.Remove = slices.DeleteFunc(out.Remove, func(removed string) bool { return removed == name })
			}
			r.changed.add(pointer)
		}
	}
	if len(out.Set)+len(out.Remove) == 0 {
		return nil
	}
	return &out
}

// commands are what overriders make of the commands or arguments of containers.
func (r *ruleDraft) commands(key string, all []policyv1alpha1.CommandArgsOverrider) {
	for i, c := range all {
		at := fmt.Sprintf("%s.%sOverrider[%d]", r.at, key, i)
		containers := r.containersPointer()
		if containers == "" {
			r.noEffect(at, "Karmada does not know the containers of a "+r.workload.GetKind())
			continue
		}
		elements, _ := lookup(r.manifest, containers).([]any)
		index := slices.IndexFunc(elements, func(e any) bool {
			container, _ := e.(map[string]any)
			return container != nil && container["name"] == c.ContainerName
		})
		if index < 0 {
			r.noEffect(at, "there is no container "+c.ContainerName)
			continue
		}
		pointer := fmt.Sprintf("%s/%d/%s", containers, index, key)
		if r.before.concern(pointer) || r.before.reshape(pointer) {
			r.cannot(depends(r.object, at, c.Value))
			continue
		}
		container := elements[index].(map[string]any) // it was found by its name
		before, given := container[key]
		words := commandOf(wordsOf(before), c)
		container[key] = anys(words)
		r.changed.add(pointer)
		r.unpatch(pointer)
		if r.setCommand(key, c.ContainerName, words); len(words) > 0 {
			continue
		}
		op := jsondiff.OpReplace
		if !given {
			op = jsondiff.OpAdd
		}
		r.patch(at, op, pointer, []any{})
	}
}

// depends tells of an overrider whose outcome is not the same on all of its clusters.
func depends(object, at string, value any) Unexpressed {
	return Unexpressed{Object: object, Field: at, Value: shorten(value), Reason: "its outcome depends on what other overrides make of the same value",
		Instead: "write the outcome in an override of each of the clusters"}
}

// commandOf is what one overrider makes of a command.
func commandOf(words []string, c policyv1alpha1.CommandArgsOverrider) []string {
	switch c.Operator {
	case policyv1alpha1.OverriderOpAdd:
		return slices.Concat(words, c.Value)
	case policyv1alpha1.OverriderOpRemove:
		return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(c.Value, w) })
	default:
		return words
	}
}

// setCommand writes the whole command or arguments of a container into the override, in place of what it said of them before.
func (r *ruleDraft) setCommand(key, container string, words []string) {
	o := &r.override
	if key == "command" {
		o.Commands = slices.DeleteFunc(o.Commands, func(c v1alpha1.CommandOverride) bool { return c.Container == container })
		if len(words) > 0 {
			o.Commands = append(o.Commands, v1alpha1.CommandOverride{Container: container, Command: words})
		}
		return
	}
	o.Args = slices.DeleteFunc(o.Args, func(c v1alpha1.ArgsOverride) bool { return c.Container == container })
	if len(words) > 0 {
		o.Args = append(o.Args, v1alpha1.ArgsOverride{Container: container, Args: words})
	}
}

func wordsOf(value any) (out []string) {
	elements, _ := value.([]any)
	for _, e := range elements {
		out = append(out, fmt.Sprintf("%s", e))
	}
	return out
}

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// lookup returns the value at a JSON pointer; nil when there is none.
func lookup(root any, pointer string) any {
	value := root
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		token = unescape.Replace(token)
		switch parent := value.(type) {
		case map[string]any:
			value = parent[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}
