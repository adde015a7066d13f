package importer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// The API's bounds on lists (api/v1alpha1): what is beyond one is told, and left out.
const (
	mostOverrides  = 64
	mostOfOverride = 32
	mostPatches    = 64
	mostCompanions = 32
	mostWeights    = 100
	mostNames      = 1000
)

// bound keeps lists within what the API takes.
func (d *draft) bound() {
	spec := &d.fw.Spec
	spec.Overrides = within(d, spec.Overrides, mostOverrides, "spec.overrides")
	d.origins = d.origins[:len(spec.Overrides)]
	spec.Companions = within(d, spec.Companions, mostCompanions, "spec.companions")
	d.companions = d.companions[:len(spec.Companions)]
	for i := range spec.Overrides {
		o, at := &spec.Overrides[i], fmt.Sprintf("spec.overrides[%d]", i)
		o.Patches = within(d, o.Patches, mostPatches, at+".patches")
		o.Images = within(d, o.Images, mostOfOverride, at+".images")
		o.Commands = within(d, o.Commands, mostOfOverride, at+".commands")
		o.Args = within(d, o.Args, mostOfOverride, at+".args")
		d.boundNames(o.Clusters, at+".clusters")
	}
	if division := spec.Placement.Division; division != nil {
		division.Weights = within(d, division.Weights, mostWeights, "spec.placement.division.weights")
		for i, w := range division.Weights {
			d.boundNames(w.Clusters, fmt.Sprintf("spec.placement.division.weights[%d].clusters", i))
		}
	}
	d.boundNames(spec.Placement.Clusters, "spec.placement.clusters")
}

func (d *draft) boundNames(s *v1alpha1.ClusterSelector, field string) {
	if s != nil {
		s.Names, s.Exclude = within(d, s.Names, mostNames, field+".names"), within(d, s.Exclude, mostNames, field+".exclude")
	}
}

func within[T any](d *draft, list []T, most int, field string) []T {
	if len(list) <= most {
		return list
	}
	d.cannot(Unexpressed{
		Object: title(d.workload), Field: field, Value: fmt.Sprintf("%d entries", len(list)),
		Reason:  fmt.Sprintf("a FleetWorkload has at most %d there, and the rest was left out", most),
		Instead: "choose clusters by labels, or make several FleetWorkloads of it",
	})
	return list[:most:most]
}

// mostRefusals bounds how often the operator's code is asked: each time one thing is taken out.
const mostRefusals = 512

// settle takes out, one by one, what the operator would refuse, and tells of it in the operator's words. It returns the operator's notes.
func (d *draft) settle() (notes []string, err error) {
	for range mostRefusals {
		d.dropIdle()
		p, err := plan.New(d.fw, d.Kinds)
		if err == nil {
			return p.Notes, nil
		}
		var refusal *backends.Error
		if !errors.As(err, &refusal) {
			return nil, fmt.Errorf("%s: %w", title(d.workload), err)
		}
		u := Unexpressed{Object: title(d.workload), Field: refusal.Field, Value: cut(refusal.Value), Reason: refusal.Message, Instead: refusal.Remedy}
		if refusal.Err != nil {
			u.Reason += ": " + refusal.Err.Error()
		}
		removed := d.takeOut(&u)
		d.cannot(u)
		if !removed {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("%s: the operator refuses more than %d things of it; import it by hand", title(d.workload), mostRefusals)
}

var inOverride = regexp.MustCompile(`^spec\.overrides\[(\d+)\](?:\.(\w+))?(?:\.(set|remove))?(?:\[([^\]]+)\])?`)

var inCompanion = regexp.MustCompile(`^spec\.companions\[(\d+)\]`)

// takeOut removes what a refusal is about from the spec, and says where it came from. It is false when nothing can be removed.
func (d *draft) takeOut(u *Unexpressed) bool {
	spec := &d.fw.Spec
	if m := inCompanion.FindStringSubmatch(u.Field); m != nil {
		i, err := strconv.Atoi(m[1])
		if err != nil || i >= len(spec.Companions) {
			return false
		}
		u.Object, u.Field = d.companions[i], u.Field[len(m[0]):]
		if u.Field == "" {
			u.Field = "the whole object"
		} else {
			u.Field = u.Field[1:]
		}
		spec.Companions, d.companions = slices.Delete(spec.Companions, i, i+1), slices.Delete(d.companions, i, i+1)
		return true
	}
	m := inOverride.FindStringSubmatch(u.Field)
	if m == nil {
		return false
	}
	i, err := strconv.Atoi(m[1])
	if err != nil || i >= len(spec.Overrides) {
		return false
	}
	o, from := &spec.Overrides[i], &d.origins[i]
	u.Object, u.Field = from.object, from.field
	if m[2] != "" {
		u.Field += "." + m[2]
	}
	j, err := strconv.Atoi(m[4])
	entry := err == nil && j >= 0
	switch {
	case m[2] == "patches" && entry && j < len(o.Patches):
		u.Field, u.Value = from.patches[j], cut(string(o.Patches[j].Op)+" "+o.Patches[j].Path+valueOf(o.Patches[j]))
		o.Patches, from.patches = slices.Delete(o.Patches, j, j+1), slices.Delete(from.patches, j, j+1)
	case m[2] == "images" && entry && j < len(o.Images):
		u.Value = shorten(o.Images[j])
		o.Images = slices.Delete(o.Images, j, j+1)
	case m[2] == "commands" && entry && j < len(o.Commands):
		u.Value = shorten(o.Commands[j])
		o.Commands = slices.Delete(o.Commands, j, j+1)
	case m[2] == "args" && entry && j < len(o.Args):
		u.Value = shorten(o.Args[j])
		o.Args = slices.Delete(o.Args, j, j+1)
	case m[2] == "labels" && o.Labels != nil:
		dropKey(u, &o.Labels, m[3], m[4])
	case m[2] == "annotations" && o.Annotations != nil:
		dropKey(u, &o.Annotations, m[3], m[4])
	default:
		spec.Overrides, d.origins = slices.Delete(spec.Overrides, i, i+1), slices.Delete(d.origins, i, i+1)
	}
	return true
}

// dropKey removes one key, or all of them when the refusal is not about one.
func dropKey(u *Unexpressed, m **v1alpha1.MetadataOverride, list, key string) {
	value, set := (*m).Set[key]
	j, err := strconv.Atoi(key)
	switch {
	case list == "set" && set:
		u.Value = cut(key + ": " + value)
		delete((*m).Set, key)
	case list == "remove" && err == nil && j >= 0 && j < len((*m).Remove):
		u.Value = cut((*m).Remove[j])
		(*m).Remove = slices.Delete((*m).Remove, j, j+1)
	default:
		u.Value = shorten(*m)
		*m = nil
	}
}

func valueOf(p v1alpha1.PatchOperation) string {
	if p.Value == nil {
		return ""
	}
	return " " + string(p.Value.Raw)
}

// dropIdle leaves out overrides that change nothing.
func (d *draft) dropIdle() {
	spec := &d.fw.Spec
	for i := len(spec.Overrides) - 1; i >= 0; i-- {
		o := &spec.Overrides[i]
		o.Labels, o.Annotations = busy(o.Labels), busy(o.Annotations)
		if len(o.Images)+len(o.Commands)+len(o.Args)+len(o.Patches) > 0 || o.Labels != nil || o.Annotations != nil {
			continue
		}
		spec.Overrides, d.origins = slices.Delete(spec.Overrides, i, i+1), slices.Delete(d.origins, i, i+1)
	}
	if len(spec.Overrides) == 0 {
		spec.Overrides = nil
	}
	if len(spec.Companions) == 0 {
		spec.Companions = nil
	}
}

func busy(m *v1alpha1.MetadataOverride) *v1alpha1.MetadataOverride {
	if m == nil || len(m.Set)+len(m.Remove) == 0 {
		return nil
	}
	return m
}
