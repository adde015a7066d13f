// Package importer makes FleetWorkloads of what runs already: on Karmada by policies, on Open Cluster Management by ManifestWorks, or
// as plain objects of member clusters. Nothing is dropped in silence: what a FleetWorkload cannot say is in Result.Unexpressed. It is
// pure; whoever calls it reads the objects, and has the operator's own code tell what would change (see Compare).
package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// Request says what to import.
type Request struct {
	// Kind is what people type, such as deployment, clonesets or statefulsets.apps.kruise.io; with Name and Namespace it chooses one of the
	// objects. What is empty does not choose.
	Kind, Name, Namespace string
	// Home is the FleetWorkload's namespace, for workloads that have none.
	Home string
	// Backend becomes spec.backend.
	Backend string
	// Kinds knows the workload kinds.
	Kinds *interpreter.Registry
	// Fleet are the backend's clusters.
	Fleet backends.Fleet
}

// Result is what came of it.
type Result struct {
	FleetWorkload *v1alpha1.FleetWorkload
	// Unexpressed is what the FleetWorkload does not say.
	Unexpressed []Unexpressed
	// Notes are what a person should know besides.
	Notes []string
	// Running is what clusters run, by their names; nil when that was not among the objects.
	Running map[string]*unstructured.Unstructured
	// TakeOver are the steps by which the operator gets the workload, WayBack those to what was before.
	TakeOver, WayBack []Step
}

// Step is one thing for a person to do.
type Step struct {
	What string `json:"what"`
	// Commands do it; empty when it takes none.
	Commands []string `json:"commands,omitempty"`
}

// Unexpressed is something that the FleetWorkload does not say.
type Unexpressed struct {
	// Object has the field, such as PropagationPolicy shop/web.
	Object string `json:"object"`
	Field  string `json:"field"`
	// Value is shortened.
	Value string `json:"value,omitempty"`
	// Reason says why not, Instead what to do about it.
	Reason  string `json:"reason"`
	Instead string `json:"instead"`
}

// String is one line.
func (u Unexpressed) String() string {
	value := ""
	if u.Value != "" {
		value = " " + u.Value
	}
	return fmt.Sprintf("%s: %s%s: %s; %s", u.Object, u.Field, value, u.Reason, u.Instead)
}

// draft is a FleetWorkload in the making.
type draft struct {
	Request
	fw       *v1alpha1.FleetWorkload
	workload *unstructured.Unstructured
	kind     *interpreter.Kind
	// origins are where spec.overrides come from, companions where spec.companions do.
	origins    []origin
	companions []string
	result     Result
}

// origin is where an override comes from.
type origin struct {
	object, field string
	// patches are the fields that its patches come from.
	patches []string
}

func (d *draft) cannot(u Unexpressed) { d.result.Unexpressed = append(d.result.Unexpressed, u) }

func (d *draft) note(format string, args ...any) {
	d.result.Notes = append(d.result.Notes, fmt.Sprintf(format, args...))
}

// override adds one to the spec.
func (d *draft) override(o v1alpha1.Override, from origin) {
	d.fw.Spec.Overrides = append(d.fw.Spec.Overrides, o)
	d.origins = append(d.origins, from)
}

// title names an object for a person.
func title(obj *unstructured.Unstructured) string {
	name := obj.GetName()
	if ns := obj.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return obj.GetKind() + " " + name
}

// id tells objects apart. It leaves the version out: one object is served in several.
func id(obj *unstructured.Unstructured) string {
	gvk := obj.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Kind, obj.GetNamespace(), obj.GetName()}, "/")
}

// of returns the objects of a kind, whatever their version, sorted by namespace and name.
func of(objects []*unstructured.Unstructured, group, kind string) (found []*unstructured.Unstructured) {
	for _, obj := range objects {
		if gvk := obj.GroupVersionKind(); gvk.Group == group && gvk.Kind == kind {
			found = append(found, obj)
		}
	}
	slices.SortStableFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found
}

// asks tells whether the request may mean the object.
func (r Request) asks(obj *unstructured.Unstructured) bool {
	if r.Name != "" && obj.GetName() != r.Name || r.Namespace != "" && obj.GetNamespace() != "" && obj.GetNamespace() != r.Namespace {
		return false
	}
	if r.Kind == "" {
		return r.Kinds.Carried(obj.GroupVersionKind())
	}
	typed, group, grouped := strings.Cut(strings.ToLower(r.Kind), ".")
	gvk := obj.GroupVersionKind()
	if grouped && group != gvk.Group {
		return false
	}
	return typed == strings.ToLower(gvk.Kind) || typed == r.Kinds.For(gvk).Resource
}

// choose returns the one workload among the objects that is asked for.
func (r Request) choose(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	seen := map[string]bool{}
	var found []*unstructured.Unstructured
	for _, obj := range objects {
		if r.asks(obj) && !seen[id(obj)] {
			seen[id(obj)], found = true, append(found, obj)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s is not among what was read; name another, or give its file too", r.asked())
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s may be any of %s: say which with KIND/NAME, KIND.GROUP/NAME and -n", r.asked(), strings.Join(apart(found), ", "))
}

// apart names objects, those of the same title by their groups too.
func apart(objects []*unstructured.Unstructured) (names []string) {
	times := map[string]int{}
	for _, obj := range objects {
		times[title(obj)]++
	}
	for _, obj := range objects {
		name := title(obj)
		if group := obj.GroupVersionKind().Group; times[name] > 1 && group != "" {
			name = obj.GetKind() + "." + group + strings.TrimPrefix(name, obj.GetKind())
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// asked words what was asked for.
func (r Request) asked() string {
	if r.Kind == "" && r.Name == "" {
		return "a workload"
	}
	name := cmp.Or(r.Kind, "workload") + "/" + cmp.Or(r.Name, "*")
	if r.Namespace != "" {
		name += " of namespace " + r.Namespace
	}
	return name
}

// shorten writes a value as JSON, for a message.
func shorten(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return cut(strings.Trim(string(raw), `"`))
}

func cut(s string) string {
	const limit = 120
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit]) + "..."
}

// nameFor makes a name for a list entry out of whatever a name is made of, unlike those that are taken.
func nameFor(from string, limit int, taken func(string) bool) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(from))
	clean = cmp.Or(strings.Trim(clean, "-"), "imported")
	name := fit(clean, "", limit)
	for n := 2; taken(name); n++ {
		name = fit(clean, fmt.Sprintf("-%d", n), limit)
	}
	return name
}

func fit(name, suffix string, limit int) string {
	return strings.TrimRight(name[:min(len(name), limit-len(suffix))], "-") + suffix
}

// overrideName is free among those of the spec.
func (d *draft) overrideName(from string) string {
	return nameFor(from, 63, func(name string) bool {
		return slices.ContainsFunc(d.fw.Spec.Overrides, func(o v1alpha1.Override) bool { return o.Name == name })
	})
}
