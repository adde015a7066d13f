package randomspec

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Bounds are specs at and beyond the bounds of the API, by what is extreme about them. A driver carries each of them out,
// or refuses it in words for its author; what it renders, its backend does not refuse.
func Bounds() map[string]Case {
	long := strings.Repeat("n", 63)
	longest := strings.Repeat(long+".", 3) + long[:61]
	cases := map[string]Case{}
	add := func(what string, k int, change func(*Case)) {
		for _, division := range []v1alpha1.DivisionType{v1alpha1.DivisionTypeDuplicated, v1alpha1.DivisionTypeDivided} {
			if !kinds[k].replicated && division == v1alpha1.DivisionTypeDivided {
				continue
			}
			c := plain(k, division)
			change(&c)
			for i := range c.Workload.Spec.Overrides {
				c.Workload.Spec.Overrides[i].Name = fmt.Sprint("o", i)
			}
			cases[what+", "+string(division)] = c
		}
	}
	for k := range kinds {
		add("longest names of a "+kinds[k].apiVersion+" "+kinds[k].kind, k, func(c *Case) { c.Workload.Name, c.Workload.Namespace = longest, long })
	}
	add("a name that ends in a dot where it is cut", 0, func(c *Case) { c.Workload.Name = strings.Repeat("a", 49) + "." + long })
	add("64 overrides", 0, func(c *Case) { c.Workload.Spec.Overrides = overrides(64, 8) })
	add("1,000 clusters by name", 0, func(c *Case) { thousand(c) })
	add("16 attributes of 100 values", 0, attributes)
	add("1,000 clusters of which no two are alike", 0, func(c *Case) {
		thousand(c)
		c.Workload.Spec.Overrides = bitwise(c.Fleet)
	})
	add("1,000 clusters of which no two are alike, in many places", 0, func(c *Case) {
		thousand(c)
		for _, o := range bitwise(c.Fleet) {
			c.Workload.Spec.Overrides = append(c.Workload.Spec.Overrides, o, v1alpha1.Override{Clusters: o.Clusters, Patches: many(64)})
		}
	})
	add("an environment of 600 KiB", 0, func(c *Case) { c.Workload.Spec.Overrides = environment(20) })
	add("an environment of 300 KiB", 0, func(c *Case) { c.Workload.Spec.Overrides = environment(10) })
	for what, metadata := range map[string]object{
		"a label that is too long":   {"labels": object{"a": long + "x"}},
		"a label that is none":       {"labels": object{"no label": "-"}},
		"annotations of 300 KiB":     {"annotations": object{"a": strings.Repeat("x", 300<<10)}},
		"labels that are no strings": {"labels": object{"a": int64(5)}},
		"an annotation without name": {"annotations": object{"": "x"}},
	} {
		add(what, 0, func(c *Case) {
			template := c.object()
			template.Object["metadata"] = metadata
			c.Workload.Spec.Template.Raw = encode(template.Object)
		})
		add(what+" by a patch", 0, func(c *Case) {
			for name, entries := range metadata {
				c.Workload.Spec.Overrides = []v1alpha1.Override{
					{Annotations: &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}}, Labels: &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}}},
					{Patches: []v1alpha1.PatchOperation{operation(v1alpha1.PatchOpAdd, "/metadata/"+name, marked(c, name, entries.(object)))}}}
			}
		})
	}
	add("annotations of 300 KiB by overrides", 0, func(c *Case) {
		for i := range 3 {
			c.Workload.Spec.Overrides = append(c.Workload.Spec.Overrides, v1alpha1.Override{
				Annotations: &v1alpha1.MetadataOverride{Set: map[string]string{fmt.Sprint("a", i): strings.Repeat("x", 100<<10)}}})
		}
	})
	return cases
}

// plain is a workload of three clusters.
func plain(k int, division v1alpha1.DivisionType) Case {
	r := random{rand.New(rand.NewPCG(uint64(k), 3))}
	c := r.next(kinds[k], uint64(k))
	c.Workload.Spec.Overrides, c.Workload.Spec.Replicas, c.Workload.Spec.Suspend = nil, nil, nil
	c.Workload.Spec.Placement = v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}, Division: &v1alpha1.Division{Type: division}}
	if kinds[k].replicated {
		n := int32(1_000_000)
		c.Workload.Spec.Replicas = &n
	}
	c.Fleet = backends.Fleet{Clusters: []backends.Cluster{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}}
	return c
}

// marked are labels or annotations with the operator's own, which a patch must not change.
func marked(c *Case, name string, entries object) object {
	d, err := c.Desired()
	if err != nil {
		panic(err)
	}
	all := object{}
	for key, value := range map[string]map[string]string{"labels": d.Template.GetLabels(), "annotations": d.Template.GetAnnotations()}[name] {
		all[key] = value
	}
	for key, value := range entries {
		all[key] = value
	}
	return all
}

// thousand gives the workload as many clusters as the API lets it name, with names as long as they may be.
func thousand(c *Case) {
	c.Fleet = backends.Fleet{}
	for i := range 1000 {
		name := fmt.Sprintf("m%04d-%s", i, strings.Repeat("c", 57))
		c.Fleet.Clusters = append(c.Fleet.Clusters, backends.Cluster{Name: name})
		c.Workload.Spec.Placement.Clusters.Names = append(c.Workload.Spec.Placement.Clusters.Names, name)
		c.Workload.Spec.Placement.Clusters.Exclude = append(c.Workload.Spec.Placement.Clusters.Exclude, "x"+name[1:])
	}
}

// attributes chooses by as many attributes and values as the API takes. All clusters lack them.
func attributes(c *Case) {
	for i := range 16 {
		required := v1alpha1.AttributeRequirement{Operator: v1alpha1.AttributeOperatorNotIn,
			Key: []v1alpha1.Attribute{v1alpha1.AttributeProvider, v1alpha1.AttributeRegion, v1alpha1.AttributeZone}[i%3]}
		for j := range 100 {
			required.Values = append(required.Values, fmt.Sprintf("%03d%s", j, strings.Repeat(`"`, 250)))
		}
		c.Workload.Spec.Placement.Clusters.Attributes = append(c.Workload.Spec.Placement.Clusters.Attributes, required)
	}
}

func overrides(n, patches int) []v1alpha1.Override {
	list := make([]v1alpha1.Override, n)
	for i := range list {
		list[i] = v1alpha1.Override{
			Clusters: &v1alpha1.ClusterSelector{Names: []string{fmt.Sprint("m", 1+i%3)}}, Patches: many(patches),
			Labels: &v1alpha1.MetadataOverride{Set: map[string]string{fmt.Sprint("l", i): "x"}},
		}
	}
	return list
}

func many(patches int) []v1alpha1.PatchOperation {
	list := make([]v1alpha1.PatchOperation, patches)
	for i := range list {
		list[i] = operation(v1alpha1.PatchOpAdd, fmt.Sprintf("/spec/template/spec/%s%03d", strings.Repeat("k", 40), i), strings.Repeat("v", 40))
	}
	return list
}

// bitwise are overrides of which each cluster gets those of the bits of its place in the fleet.
func bitwise(fleet backends.Fleet) []v1alpha1.Override {
	var list []v1alpha1.Override
	for bit := range 10 {
		o := v1alpha1.Override{Clusters: &v1alpha1.ClusterSelector{}, Labels: &v1alpha1.MetadataOverride{Set: map[string]string{fmt.Sprint("bit", bit): "set"}}}
		for i, cluster := range fleet.Clusters {
			if i>>bit&1 == 1 {
				o.Clusters.Names = append(o.Clusters.Names, cluster.Name)
			}
		}
		list = append(list, o)
	}
	return list
}

// environment is that of every container, of variables as long as they may be.
func environment(variables int) []v1alpha1.Override {
	env := v1alpha1.EnvOverride{Container: "c0"}
	for i := range variables {
		env.Set = append(env.Set, v1alpha1.EnvVar{Name: fmt.Sprint("LONG", i), Value: strings.Repeat("x", 32<<10-100)})
	}
	return []v1alpha1.Override{{Env: []v1alpha1.EnvOverride{env}}}
}
