package interpreter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Registry finds what is known about a kind: built in, described in the configuration, or nothing. It is immutable and
// safe for concurrent use.
type Registry struct {
	kinds map[schema.GroupVersionKind]*Kind
	// groups are the kinds of which some version is known.
	groups map[schema.GroupKind]bool
	// allowed are kinds that may be carried without being known.
	allowed map[schema.GroupKind]bool
}

// definitions are the kinds that are built in, with every version that OpenKruise 1.8 serves, and 1.9's twins.
func definitions() []Definition {
	const progressive = "metadata.annotations['daemonset.kruise.io/progressive-create-pod']"
	return []Definition{
		deployment(), statefulSet(), daemonSet(), job(), cronJob(), workflow(),
		cloneSet(), unitedDeployment(),
		advancedStatefulSet("v1beta1"), advancedStatefulSet("v1alpha1"),
		advancedDaemonSet("v1alpha1", "daemonSetHash", progressive, TypeString),
		advancedDaemonSet("v1beta1", "updateRevision", "spec.scaleStrategy.partitionedScaling", TypeBool),
		sidecarSet("v1alpha1"), sidecarSet("v1beta1"),
		broadcastJob("v1alpha1"), broadcastJob("v1beta1"),
		advancedCronJob("v1alpha1"), advancedCronJob("v1beta1"),
	}
}

var builtin = sync.OnceValues(func() (*Registry, error) {
	r := &Registry{kinds: map[schema.GroupVersionKind]*Kind{}, groups: map[schema.GroupKind]bool{}}
	for _, d := range definitions() {
		k, err := compile(d)
		if err != nil {
			return nil, fmt.Errorf("built-in kind: %w", err)
		}
		r.add(k)
	}
	return r, nil
})

func (r *Registry) add(k *Kind) {
	r.kinds[k.GVK()] = k
	r.groups[k.GVK().GroupKind()] = true
}

// New returns the built-in kinds and those that descriptions add. Errors name the description and its field, such as
// kinds[2].health.degraded.
func New(descriptions ...Description) (*Registry, error) {
	base, err := builtin()
	if err != nil || len(descriptions) == 0 {
		return base, err
	}
	r := &Registry{kinds: maps.Clone(base.kinds), groups: maps.Clone(base.groups)}
	var errs []error
	described := map[schema.GroupVersionKind]bool{}
	for i, d := range descriptions {
		at := fmt.Sprintf("kinds[%d]", i)
		k, problems := d.compile(at)
		gvk := schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}
		if _, known := base.kinds[gvk]; known {
			problems = append(problems, fmt.Errorf("%s: %s is built in, and cannot be described", at, gvk))
		}
		if described[gvk] {
			problems = append(problems, fmt.Errorf("%s: %s is described twice", at, gvk))
		}
		described[gvk] = true
		if errs = append(errs, problems...); len(problems) == 0 {
			r.add(k)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// AnyKind stands for every kind of a group.
const AnyKind = "*"

// Allowing returns the registry with more kinds that FleetWorkloads may carry, although nobody described them.
func (r *Registry) Allowing(kinds ...schema.GroupKind) *Registry {
	out := *r
	out.allowed = maps.Clone(r.allowed)
	if out.allowed == nil {
		out.allowed = map[schema.GroupKind]bool{}
	}
	for _, kind := range kinds {
		out.allowed[kind] = true
	}
	return &out
}

// Carried tells whether FleetWorkloads may carry the kind: one that is built in, or that an administrator has described
// or allowed. Anything else may not, so that nobody ships, say, a RoleBinding (law 7).
func (r *Registry) Carried(gvk schema.GroupVersionKind) bool {
	_, known := r.kinds[gvk]
	return known || r.Allowed(gvk.GroupKind())
}

// Allowed tells whether an administrator has allowed the kind.
func (r *Registry) Allowed(kind schema.GroupKind) bool {
	return r.allowed[kind] || r.allowed[schema.GroupKind{Group: kind.Group, Kind: AnyKind}]
}

// For returns what is known about a kind. It is never nil: a kind that nobody described is carried all the same, with
// the health that kstatus derives. A version that is not known of a kind that is gets no health at all, because its
// fields may mean something else.
func (r *Registry) For(gvk schema.GroupVersionKind) *Kind {
	if k, known := r.kinds[gvk]; known {
		return k
	}
	mode := genericKstatus
	if r.groups[gvk.GroupKind()] {
		mode = genericVersion
	}
	return genericKind(gvk, mode)
}

// Kinds lists the known kinds, sorted.
func (r *Registry) Kinds() []*Kind {
	list := slices.Collect(maps.Values(r.kinds))
	slices.SortFunc(list, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Definition.Kind, b.Definition.Kind), cmp.Compare(a.Version, b.Version))
	})
	return list
}

// genericKind is a kind that nobody described. Its plural is a guess, and it is taken for namespaced; where that is
// wrong, a description says better.
func genericKind(gvk schema.GroupVersionKind, mode genericMode) *Kind {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	g := genericOf(gvk.GroupKind())
	d := Definition{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: plural.Resource, Status: g.status,
		StatusOptional: true, // kstatus says what is missing
		Rules:          append(g.rules, Rule{Health: v1alpha1.HealthUnknown, Reason: ReasonKstatus}),
	}
	k, err := compile(d)
	if err != nil {
		// what genericOf gives compiles, whatever the kind's name: TestGenericCompiles.
		panic(strings.Join([]string{"interpreter", err.Error()}, ": "))
	}
	k.generic, k.extras, k.evidence, k.knownToKstatus = mode, g.extras, g.evidence, g.known
	return k
}
