package randomspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// override draws the override of a template that has that number. containers are the names of the template's.
func (r random) override(number int, template object, ofPods bool, containers []string) v1alpha1.Override {
	o := v1alpha1.Override{Name: fmt.Sprint("o", number), Clusters: r.selector()}
	if len(containers) > 0 {
		r.containerOverrides(&o, containers)
	}
	if ofPods && r.percent(15) {
		o.PodLabels = &v1alpha1.MetadataOverride{Set: map[string]string{"example.com/pod": pick(r, "", "v2")}, Remove: []string{pick(r, metadataKeys...)}}
	}
	if ofPods && r.percent(15) {
		o.PodAnnotations = &v1alpha1.MetadataOverride{Set: map[string]string{pick(r, metadataKeys...): pick(r, words...)}}
	}
	if r.percent(30) {
		o.Labels = &v1alpha1.MetadataOverride{Set: map[string]string{pick(r, metadataKeys...): pick(r, "", "v2")}}
	}
	if r.percent(30) {
		o.Annotations = &v1alpha1.MetadataOverride{Set: map[string]string{"set": pick(r, words...)}, Remove: []string{pick(r, metadataKeys...)}}
	}
	for range r.IntN(4) {
		o.Patches = append(o.Patches, r.patch(template))
	}
	return o
}

func (r random) containerOverrides(o *v1alpha1.Override, containers []string) {
	name := pick(r, containers...)
	for _, add := range []func(){
		func() { o.Images = append(o.Images, r.image(name)) },
		func() {
			o.Commands = append(o.Commands, v1alpha1.CommandOverride{Container: name, Command: []string{pick(r, words...)}})
		},
		func() {
			o.Args = append(o.Args, v1alpha1.ArgsOverride{Container: name, Args: []string{"--a", pick(r, words...)}})
		},
		func() {
			o.Env = append(o.Env, v1alpha1.EnvOverride{
				Container: name, Set: []v1alpha1.EnvVar{r.variable(pick(r, "E0", "NEW"))}, Remove: []string{"E1"},
			})
		},
		func() {
			o.Resources = append(o.Resources, v1alpha1.ResourcesOverride{
				Container: name, Requests: quantities("example.com/gpu", "2"), Limits: quantities("memory", "1Gi"),
			})
		},
	} {
		if r.percent(25) {
			add()
		}
	}
}

func (r random) variable(name string) v1alpha1.EnvVar {
	if r.percent(70) {
		return v1alpha1.EnvVar{Name: name, Value: pick(r, words...)}
	}
	key := &v1alpha1.KeyReference{Name: "settings", Key: "a"}
	return v1alpha1.EnvVar{Name: name, ValueFrom: pick(r, &v1alpha1.EnvVarSource{SecretKeyRef: key}, &v1alpha1.EnvVarSource{ConfigMapKeyRef: key},
		&v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: "metadata.name"}})}
}

func quantities(name corev1.ResourceName, text string) map[corev1.ResourceName]v1alpha1.Quantity {
	return map[corev1.ResourceName]v1alpha1.Quantity{name: {Quantity: resource.MustParse(text)}}
}

func (r random) image(container string) v1alpha1.ImageOverride {
	o := v1alpha1.ImageOverride{Container: container}
	for o.Registry == "" && o.Repository == "" && o.Tag == "" && o.Digest == "" {
		o.Registry, o.Repository = pick(r, "", "mirror.example.com:5000"), pick(r, "", "team/proxy")
		if r.percent(50) {
			o.Tag = pick(r, "", "v2")
		} else {
			o.Digest = pick(r, "", digest)
		}
	}
	return o
}

func (r random) selector() *v1alpha1.ClusterSelector {
	return pick(r, nil, &v1alpha1.ClusterSelector{Names: []string{"m1"}}, &v1alpha1.ClusterSelector{Exclude: []string{"m1", "m3"}},
		&v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}},
		&v1alpha1.ClusterSelector{Attributes: []v1alpha1.AttributeRequirement{
			{Key: v1alpha1.AttributeRegion, Operator: v1alpha1.AttributeOperatorIn, Values: []string{"eu"}}}})
}

// spot is somewhere in a manifest.
type spot struct {
	pointer string
	value   any
	inList  bool
}

// spots are all places below a value.
func spots(value any, pointer string) []spot {
	var found []spot
	switch v := value.(type) {
	case object:
		for _, key := range sorted(v) {
			at := pointer + jsondiff.Pointer(key)
			found = append(found, spot{at, v[key], false})
			found = append(found, spots(v[key], at)...)
		}
	case []any:
		for i := range v {
			at := fmt.Sprint(pointer, "/", i)
			found = append(found, spot{at, v[i], true})
			found = append(found, spots(v[i], at)...)
		}
	}
	return found
}

// patch draws an operation that applies to the template, unless another one has changed the place before.
func (r random) patch(template object) v1alpha1.PatchOperation {
	all := spots(template["spec"], "/spec")
	if metadata, ok := template["metadata"].(object); ok && r.percent(20) {
		for _, name := range []string{"labels", "annotations"} {
			if entries := spots(metadata[name], "/metadata/"+name); len(entries) > 0 {
				s := pick(r, entries...)
				return operation(pick(r, v1alpha1.PatchOpAdd, v1alpha1.PatchOpReplace, v1alpha1.PatchOpRemove), s.pointer, "patched")
			}
		}
	}
	s := pick(r, all...)
	switch v := s.value.(type) {
	case object:
		if r.percent(60) {
			return operation(v1alpha1.PatchOpAdd, s.pointer+jsondiff.Pointer(pick(r, keys...)), r.value(2))
		}
	case []any:
		if r.percent(30) && len(v) > 0 {
			return operation(v1alpha1.PatchOpAdd, s.pointer+pick(r, "/0", "/-"), v[0])
		}
	}
	switch {
	case r.percent(30) && !strings.HasSuffix(s.pointer, "/containers/0"):
		return operation(v1alpha1.PatchOpRemove, s.pointer, nil)
	case s.inList:
		return operation(v1alpha1.PatchOpReplace, s.pointer, s.value)
	default:
		return operation(pick(r, v1alpha1.PatchOpAdd, v1alpha1.PatchOpReplace), s.pointer, r.like(s.value))
	}
}

func operation(op v1alpha1.PatchOp, path string, value any) v1alpha1.PatchOperation {
	p := v1alpha1.PatchOperation{Op: op, Path: path}
	if op != v1alpha1.PatchOpRemove {
		p.Value = &apiextensionsv1.JSON{Raw: encode(value)}
	}
	return p
}

// like is another value of the same type, so that typed kinds can take it.
func (r random) like(value any) any {
	switch v := value.(type) {
	case string:
		return pick(r, "", "patched")
	case bool:
		return !v
	case int64, float64:
		return int64(r.IntN(3))
	case object:
		return object{}
	case []any:
		return []any{}
	default:
		return nil
	}
}
