package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// member is what one cluster runs.
type member struct {
	cluster string
	// from names where it was read.
	from     string
	workload *unstructured.Unstructured
	// others came with it.
	others []*unstructured.Unstructured
}

// startOf begins a FleetWorkload of what clusters run: the manifest that most of them have becomes the template, and how the others differ
// becomes overrides, and weights where replicas differ.
func startOf(r Request, members []member) (*draft, error) {
	for _, m := range members {
		if ours(m.workload) {
			return nil, errOurs(m.workload)
		}
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.cluster, b.cluster) })
	kind := r.Kinds.For(members[0].workload.GroupVersionKind())
	groups, err := alike(kind, members)
	if err != nil {
		return nil, err
	}
	base := groups[0]
	d, err := start(r, base[0].workload)
	if err != nil {
		return nil, err
	}
	for _, group := range groups[1:] {
		d.differing(base[0], group)
	}
	if err := d.replicasOf(members); err != nil {
		return nil, err
	}
	d.result.Running = map[string]*unstructured.Unstructured{}
	for _, m := range members {
		d.result.Running[m.cluster] = m.workload
	}
	return d, d.companionsOf(members)
}

// alike groups clusters whose manifests differ by nothing but replicas, the largest group first.
func alike(kind *interpreter.Kind, members []member) ([][]member, error) {
	groups := map[string][]member{}
	for _, m := range members {
		raw, err := json.Marshal(withoutReplicas(kind, m.workload))
		if err != nil {
			return nil, fmt.Errorf("encode %s of cluster %s: %w", title(m.workload), m.cluster, err)
		}
		groups[string(raw)] = append(groups[string(raw)], m)
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b []member) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a[0].cluster, b[0].cluster))
	}), nil
}

// withoutReplicas is a manifest without replicas and what is not its author's.
func withoutReplicas(kind *interpreter.Kind, obj *unstructured.Unstructured) map[string]any {
	out := clean(obj)
	if path := kind.ReplicasPath(); len(path) > 0 {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	return out.Object
}

// differing makes an override of how the clusters of a group differ from the template's.
func (d *draft) differing(base member, group []member) {
	names := make([]string, 0, len(group))
	for _, m := range group {
		names = append(names, m.cluster)
	}
	name := names[0]
	if len(names) > 1 {
		name = fmt.Sprintf("%s-and-%d-more", name, len(names)-1)
	}
	o := v1alpha1.Override{Name: d.overrideName(name), Clusters: &v1alpha1.ClusterSelector{Names: names}}
	from, to := withoutReplicas(d.kind, base.workload), withoutReplicas(d.kind, group[0].workload)
	o.Labels, o.Annotations = entriesOf(from, to, "labels"), entriesOf(from, to, "annotations")
	at := origin{object: fmt.Sprintf("%s of %s", title(group[0].workload), group[0].from), field: "the differences from " + base.from}
	for _, op := range jsondiff.Diff(from, to) {
		if d.imageOf(&o, from, op) {
			continue
		}
		patch := v1alpha1.PatchOperation{Op: v1alpha1.PatchOp(op.Op), Path: op.Path}
		if op.Op != jsondiff.OpRemove {
			raw, err := json.Marshal(op.Value)
			if err != nil {
				continue // it was decoded from JSON
			}
			patch.Value = &apiextensionsv1.JSON{Raw: raw}
		}
		o.Patches, at.patches = append(o.Patches, patch), append(at.patches, op.Path)
	}
	d.override(o, at)
}

// entriesOf says how labels or annotations differ, and takes the difference out of both.
func entriesOf(from, to map[string]any, key string) *v1alpha1.MetadataOverride {
	was, _, unread := unstructured.NestedStringMap(from, "metadata", key)
	is, _, err := unstructured.NestedStringMap(to, "metadata", key)
	if unread != nil || err != nil {
		return nil // it stays a patch, for the operator to refuse
	}
	unstructured.RemoveNestedField(from, "metadata", key)
	unstructured.RemoveNestedField(to, "metadata", key)
	out := v1alpha1.MetadataOverride{Set: map[string]string{}}
	for name, value := range is {
		if before, had := was[name]; !had || before != value {
			out.Set[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, has := is[name]; !has {
			out.Remove = append(out.Remove, name)
		}
	}
	return busy(&out)
}

// imageOf says another image of a container by its name, and tells whether it could: with the parts of the new one that differ, the old one
// has to become just that.
func (d *draft) imageOf(o *v1alpha1.Override, from map[string]any, op jsondiff.Op) bool {
	template := d.kind.PodTemplatePath(d.workload)
	if template == nil || op.Op != jsondiff.OpReplace {
		return false
	}
	above, isImage := strings.CutSuffix(op.Path, "/image")
	list := strings.TrimRight(above, "0123456789")
	spec := jsondiff.Pointer(template...) + "/spec/"
	if !isImage || list != spec+"containers/" && list != spec+"initContainers/" {
		return false
	}
	container, _ := lookup(from, above).(map[string]any)
	name, _ := container["name"].(string)
	present, _ := container["image"].(string)
	wanted, _ := op.Value.(string)
	was, is := partsOf(present), partsOf(wanted)
	if name == "" || was == nil || is == nil {
		return false
	}
	entry := v1alpha1.ImageOverride{Container: name}
	for i, field := range []*string{&entry.Registry, &entry.Repository, &entry.Tag, &entry.Digest} {
		if is[i] != was[i] {
			*field = is[i]
		}
	}
	if !slices.Equal(overridden(was, entry), is) {
		return false
	}
	o.Images = append(o.Images, entry)
	return true
}

// overridden are the parts of an image after an override (internal/override): a tag takes a digest off, and the other way round.
func overridden(parts []string, o v1alpha1.ImageOverride) []string {
	out := []string{cmp.Or(o.Registry, parts[0]), cmp.Or(o.Repository, parts[1]), parts[2], parts[3]}
	if o.Tag != "" {
		out[2], out[3] = o.Tag, ""
	}
	if o.Digest != "" {
		out[2], out[3] = "", o.Digest
	}
	return out
}

// partsOf are registry, repository, tag and digest of an image, cut as internal/override cuts it; nil when it is none.
func partsOf(image string) []string {
	ref, err := reference.Parse(image)
	if err != nil {
		return nil
	}
	named, is := ref.(reference.Named)
	if !is {
		return nil
	}
	parts := []string{"", named.Name(), "", ""}
	if first, rest, more := strings.Cut(named.Name(), "/"); more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		parts[0], parts[1] = first, rest
	}
	if tagged, is := ref.(reference.Tagged); is {
		parts[2] = tagged.Tag()
	}
	if digested, is := ref.(reference.Digested); is {
		parts[3] = digested.Digest().String()
	}
	return parts
}

// replicasOf says how many replicas each cluster has.
func (d *draft) replicasOf(members []member) error {
	if len(d.kind.ReplicasPath()) == 0 {
		return nil
	}
	replicas := map[string]int32{}
	for _, m := range members {
		n, given, err := interpreter.Replicas(d.kind, m.workload)
		if err == nil && !given {
			n, err = interpreter.DefaultReplicas(d.kind, m.workload)
		}
		if err != nil {
			return fmt.Errorf("%s of %s: %w", title(m.workload), m.from, err)
		}
		replicas[m.cluster] = n
	}
	d.divide(title(d.workload), replicas)
	return nil
}

// companionsOf are the objects that came with the workload. There is one of each for all clusters.
func (d *draft) companionsOf(members []member) error {
	var order []string
	found := map[string]map[string]*unstructured.Unstructured{}
	sources := map[string]string{}
	for _, m := range members {
		for _, obj := range m.others {
			if found[id(obj)] == nil {
				order, found[id(obj)], sources[id(obj)] = append(order, id(obj)), map[string]*unstructured.Unstructured{}, m.from
			}
			found[id(obj)][m.cluster] = obj
		}
	}
	for _, key := range order {
		copies := found[key]
		clusters := slices.Sorted(maps.Keys(copies))
		first := copies[clusters[0]]
		from := fmt.Sprintf("%s of %s", title(first), sources[key])
		if d.isOwnNamespace(first) {
			d.note("%s is left out: the operator makes the namespace where it is missing, and never removes it", from)
			continue
		}
		d.unlike(from, copies, clusters, len(members))
		if isSecret(first) {
			d.note("%s becomes part of the FleetWorkload, content and all: with dependencies: Propagate it can stay a Secret on the management cluster", from)
		}
		if err := d.companion(first, from); err != nil {
			return err
		}
	}
	return nil
}

func isSecret(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Secret"
}

func (d *draft) isOwnNamespace(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Namespace" && obj.GetName() == d.fw.Namespace
}

// unlike tells of a companion that is not the same on all clusters.
func (d *draft) unlike(from string, copies map[string]*unstructured.Unstructured, clusters []string, all int) {
	if len(clusters) < all {
		d.cannot(Unexpressed{Object: from, Field: "the whole object", Value: "on " + brief.List(clusters) + " alone",
			Reason:  "a companion goes to every cluster of the workload",
			Instead: "let it, or take it out of spec.companions and keep it as it is carried now"})
	}
	for _, cluster := range clusters[1:] {
		for _, op := range jsondiff.Diff(clean(copies[clusters[0]]).Object, clean(copies[cluster]).Object) {
			value := shorten(op.Value) + " on " + cluster
			if isSecret(copies[cluster]) {
				value = "on " + cluster
			}
			d.cannot(Unexpressed{Object: from, Field: op.Path, Value: value, Reason: "overrides do not apply to companions",
				Instead: "give it the same content everywhere, or take it out of spec.companions and keep it as it is carried now"})
		}
	}
}
