package importer

import (
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/imageparser"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// images are what image overriders do.
func (r *ruleDraft) images(all []policyv1alpha1.ImageOverrider) {
	for i, overrider := range all {
		at := fmt.Sprintf("%s.imageOverrider[%d]", r.at, i)
		pointers := r.imagePointers(overrider)
		if len(pointers) == 0 {
			r.noEffect(at, "it has no predicate, and Karmada does not know the containers of a "+r.workload.GetKind())
		}
		for _, pointer := range pointers {
			r.image(at, pointer, overrider)
		}
		if overrider.Predicate == nil && len(pointers) > 0 {
			r.note("%s: %s is for every container: it is said of each one by name, and one that is added later needs an entry of its own", r.object, at)
		}
	}
}

// imagePointers lead to the images that an overrider is about.
func (r *ruleDraft) imagePointers(o policyv1alpha1.ImageOverrider) (pointers []string) {
	if o.Predicate != nil {
		return []string{o.Predicate.Path}
	}
	containers := r.containersPointer()
	if containers == "" {
		return nil
	}
	elements, _ := lookup(r.manifest, containers).([]any)
	for i := range elements {
		pointers = append(pointers, fmt.Sprintf("%s/%d/image", containers, i))
	}
	return pointers
}

// image does to one image what an overrider does (overrideImage in imageoverride.go).
func (r *ruleDraft) image(at, pointer string, o policyv1alpha1.ImageOverrider) {
	present, _ := lookup(r.manifest, pointer).(string)
	parsed, err := imageparser.Parse(present)
	if err != nil || !strings.HasPrefix(pointer, "/") {
		r.cannot(Unexpressed{Object: r.object, Field: at, Value: pointer,
			Reason: "Karmada fails on it: there is no image that it can read", Instead: "take it out of the policy, or correct its path"})
		return
	}
	asked := pointer + "#" + string(o.Component)
	replaces := o.Operator == policyv1alpha1.OverriderOpReplace && o.Value != ""
	removes := o.Operator == policyv1alpha1.OverriderOpRemove || o.Operator == policyv1alpha1.OverriderOpReplace && o.Value == ""
	container := r.containerOf(pointer)
	// A part is enough where the rest may be whatever it is; otherwise the whole image has to be known.
	whole := removes || container == "" || strings.Contains(present, "@") && parsed.Tag() != ""
	if whole {
		asked = pointer
	}
	if (!replaces || whole) && r.before.concern(asked) || r.before.reshape(pointer) {
		r.cannot(depends(r.object, at, o.Value))
		return
	}
	changeImage(parsed, o)
	r.setImage(pointer, parsed.String())
	r.changed.add(asked)
	if whole || r.patched(pointer) {
		r.override.Images = slices.DeleteFunc(r.override.Images, func(i v1alpha1.ImageOverride) bool { return i.Container == container })
		r.unpatch(pointer)
		r.patch(at, jsondiff.OpReplace, pointer, parsed.String())
		return
	}
	r.part(container, o.Component, parsed)
}

// changeImage is what an overrider makes of an image.
func changeImage(image *imageparser.Components, o policyv1alpha1.ImageOverrider) {
	parts := map[policyv1alpha1.ImageComponent]struct {
		get    func() string
		set    func(string)
		remove func()
	}{
		policyv1alpha1.Registry:   {image.Hostname, image.SetHostname, image.RemoveHostname},
		policyv1alpha1.Repository: {image.Repository, image.SetRepository, image.RemoveRepository},
		policyv1alpha1.Tag:        {image.TagOrDigest, image.SetTagOrDigest, image.RemoveTagOrDigest},
	}
	part, known := parts[o.Component]
	switch {
	case !known:
	case o.Operator == policyv1alpha1.OverriderOpAdd:
		part.set(part.get() + o.Value)
	case o.Operator == policyv1alpha1.OverriderOpReplace:
		part.set(o.Value)
	case o.Operator == policyv1alpha1.OverriderOpRemove:
		part.remove()
	}
}

// part says one part of a container's image in the override.
func (r *ruleDraft) part(container string, component policyv1alpha1.ImageComponent, image *imageparser.Components) {
	i := slices.IndexFunc(r.override.Images, func(i v1alpha1.ImageOverride) bool { return i.Container == container })
	if i < 0 {
		r.override.Images = append(r.override.Images, v1alpha1.ImageOverride{Container: container})
		i = len(r.override.Images) - 1
	}
	entry := &r.override.Images[i]
	switch component {
	case policyv1alpha1.Registry:
		entry.Registry = image.Hostname()
	case policyv1alpha1.Repository:
		entry.Repository = image.Repository()
	case policyv1alpha1.Tag:
		entry.Tag, entry.Digest = image.Tag(), image.Digest()
	}
	if *entry == (v1alpha1.ImageOverride{Container: container}) {
		r.override.Images = slices.Delete(r.override.Images, i, i+1)
	}
}

func (r *ruleDraft) patched(pointer string) bool {
	return slices.ContainsFunc(r.override.Patches, func(p v1alpha1.PatchOperation) bool { return p.Path == pointer })
}

// containerOf names the container of the pod template whose image a pointer leads to; empty when it is no such place.
func (r *ruleDraft) containerOf(pointer string) string {
	template := r.kind.PodTemplatePath(r.workload)
	if template == nil {
		return ""
	}
	for _, list := range []string{"containers", "initContainers"} {
		prefix := jsondiff.Pointer(template...) + "/spec/" + list + "/"
		index, isImage := strings.CutSuffix(strings.TrimPrefix(pointer, prefix), "/image")
		if !strings.HasPrefix(pointer, prefix) || !isImage || strings.Contains(index, "/") {
			continue
		}
		container, _ := lookup(r.manifest, prefix+index).(map[string]any)
		name, _ := container["name"].(string)
		return name
	}
	return ""
}

// setImage writes an image into the manifest of the rule.
func (r *ruleDraft) setImage(pointer, image string) {
	if parent, is := lookup(r.manifest, above(pointer)).(map[string]any); is {
		parent[unescape.Replace(pointer[len(above(pointer))+1:])] = image
	}
}
