package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/override"
)

// Right is what somebody may do on the management cluster, in the words of RBAC.
type Right struct {
	Verb, Group, Resource string
	// Namespace is empty for kinds without one.
	Namespace string
	// Name is empty for all objects.
	Name string
}

// String words it as RBAC does, but for the namespace.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}

// Rights are what it takes to ship this, sorted, each once: to create the workload and its companions, and to get what is read for it.
func (p *Plan) Rights(needs []Need) []Right {
	namespace := p.fw.Namespace
	workload := Right{Verb: "create", Group: p.Kind.Group, Resource: p.Kind.Resource, Namespace: namespace}
	if p.Kind.ClusterScoped {
		workload.Namespace = ""
	}
	all := []Right{workload}
	for _, c := range p.Companions {
		all = append(all, Right{Verb: "create", Group: c.Object.GroupVersionKind().Group, Resource: c.Resource, Namespace: namespace})
	}
	for _, n := range needs {
		all = append(all, Right{Verb: "get", Group: n.Group, Resource: n.Resource(), Namespace: namespace, Name: n.Name})
	}
	slices.SortFunc(all, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// What is looked at to say what pods may refer to: all combinations of so many overrides, as long as all manifests together have no more than
// so many bytes, and no more than so many objects.
const (
	combinedOverrides = 6
	combinedBytes     = 16 << 20
	namedNeeds        = 100
)

// NeedsAnywhere are what pods may refer to on any cluster, now or later: each cluster has its own part of the overrides, in their order.
// Where that is too much to look at, there is one need without a name for every kind that pods can refer to: any object of it. A combination
// that cannot be applied is left out, as nothing is shipped of it.
func (p *Plan) NeedsAnywhere() []Need {
	if !p.Propagates() {
		return nil
	}
	overrides := p.fw.Spec.Overrides
	if !p.overridesRefer() {
		overrides = nil
	}
	if len(overrides) > combinedOverrides || p.size<<len(overrides) > combinedBytes {
		return anyNeeds()
	}
	var all []Need
	for chosen := range 1 << len(overrides) {
		for _, n := range p.needsWith(overrides, chosen) {
			n.Clusters, n.Optional = nil, false
			if !slices.ContainsFunc(all, func(known Need) bool { return known.GroupKind() == n.GroupKind() && known.Name == n.Name }) {
				all = append(all, n)
			}
		}
		if len(all) > namedNeeds {
			return anyNeeds()
		}
	}
	sortNeeds(all)
	return all
}

// needsWith are what pods refer to with those overrides whose bit is set.
func (p *Plan) needsWith(overrides []v1alpha1.Override, chosen int) []Need {
	var some []v1alpha1.Override
	for i, o := range overrides {
		if chosen&(1<<i) != 0 {
			o.Clusters = nil
			some = append(some, o)
		}
	}
	set, err := override.Compile(some, p.paths())
	if err != nil {
		return nil
	}
	manifest, err := set.Target(p.Template, backends.Cluster{})
	if err != nil {
		return nil
	}
	needs, err := p.needsOf(manifest)
	if err != nil {
		return nil
	}
	return needs
}

// anyNeeds stand for every object of the kinds that pods can refer to.
func anyNeeds() []Need {
	var all []Need
	for _, kind := range []string{"ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"} {
		all = append(all, Need{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}})
	}
	return all
}
