package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// Need is something that pods refer to, and that is read from the FleetWorkload's namespace.
type Need struct {
	schema.GroupVersionKind
	Name string
	// Optional is true when pods start without it.
	Optional bool
	// Clusters are the targets that refer to it, sorted; nil means all.
	Clusters []string
}

// String names it for a person.
func (n Need) String() string { return n.Kind + " " + n.Name }

// Resource is the plural of its kind.
func (n Need) Resource() string {
	for _, k := range companionKinds() {
		if k.GroupKind == n.GroupKind() {
			return k.resource
		}
	}
	return ""
}

// Propagates tells whether dependencies travel along.
func (p *Plan) Propagates() bool { return p.fw.Spec.Dependencies == v1alpha1.DependencyPolicyPropagate }

// Needs are what the pods of the targets refer to, sorted, but for what every namespace has and what travels along
// as a companion. Overrides may change references, so each target's manifest counts.
func (p *Plan) Needs(targets []backends.Target) ([]Need, error) {
	if !p.overridesRefer() {
		found, err := p.needsOf(p.Template)
		return found, err
	}
	uses := map[schema.GroupVersionKind]map[string]*Need{}
	for _, t := range targets {
		found, err := p.needsOf(t.Manifest)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if uses[r.GroupVersionKind] == nil {
				uses[r.GroupVersionKind] = map[string]*Need{}
			}
			u := uses[r.GroupVersionKind][r.Name]
			if u == nil {
				u = &Need{GroupVersionKind: r.GroupVersionKind, Name: r.Name, Optional: true}
				uses[r.GroupVersionKind][r.Name] = u
			}
			u.Clusters, u.Optional = append(u.Clusters, t.Cluster), u.Optional && r.Optional
		}
	}
	var list []Need
	for _, byName := range uses {
		for _, r := range byName {
			if len(r.Clusters) == len(targets) {
				r.Clusters = nil
			}
			slices.Sort(r.Clusters)
			list = append(list, *r)
		}
	}
	sortNeeds(list)
	return list, nil
}

func sortNeeds(list []Need) {
	slices.SortFunc(list, func(a, b Need) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
}

// overridesRefer tells whether clusters may refer to different objects.
func (p *Plan) overridesRefer() bool {
	return slices.ContainsFunc(p.fw.Spec.Overrides, func(o v1alpha1.Override) bool { return len(o.Env) > 0 || len(o.Patches) > 0 })
}

// selfMade are objects that clusters make for themselves in every namespace: Kubernetes, OpenShift and Istio. Those of another cluster
// would break them: whoever trusts a cluster's CA, or pulls images with its default account.
var selfMade = map[schema.GroupKind][]string{
	{Kind: "ConfigMap"}:      {"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"},
	{Kind: "ServiceAccount"}: {"default"},
}

// isSelfMade tells whether every cluster has such an object of its own.
func isSelfMade(kind schema.GroupKind, name string) bool {
	return slices.Contains(selfMade[kind], name)
}

// needsOf are one manifest's.
func (p *Plan) needsOf(manifest *unstructured.Unstructured) ([]Need, error) {
	found, err := interpreter.Dependencies(p.Kind, manifest)
	if err != nil {
		return nil, &backends.Error{
			Code: backends.CodeInvalidTemplate, Field: "spec.template", Message: err.Error(), Remedy: "correct the pod template",
		}
	}
	list := make([]Need, 0, len(found))
	for _, d := range found {
		own := slices.ContainsFunc(p.Companions, func(c backends.Companion) bool {
			return c.Object.GroupVersionKind().GroupKind() == d.GroupKind() && c.Object.GetName() == d.Name
		})
		if own || isSelfMade(d.GroupKind(), d.Name) {
			continue
		}
		if d.Namespace != p.fw.Namespace {
			return nil, &backends.Error{
				Code: backends.CodeUnsupported, Field: "spec.dependencies", Value: string(p.fw.Spec.Dependencies),
				Message: fmt.Sprintf("%s %s is not in the FleetWorkload's namespace: the %s's pods run in %s", d.Kind, d.Name,
					p.Template.GetKind(), cmp.Or(d.Namespace, "namespaces that it does not name")),
				Remedy: "set it to Ignore, and create what the pods refer to on the clusters yourself",
			}
		}
		list = append(list, Need{GroupVersionKind: d.GroupVersionKind, Name: d.Name, Optional: d.Optional})
	}
	return list, nil
}

// Companion makes a companion of the object that was found for a need. It is nil for what must not leave its cluster,
// with a note that says so.
func (n Need) Companion(source *unstructured.Unstructured) (companion *backends.Companion, note string) {
	if secretType, _, _ := unstructured.NestedString(source.Object, "type"); n.Kind == "Secret" && secretType == tokenType {
		return nil, fmt.Sprintf("note: %s holds a ServiceAccount's token, which means nothing to other clusters and is not sent: "+
			"create it on the clusters", n)
	}
	clean, _ := Bare(source)
	setMarks(clean, backends.SharedUID)
	return &backends.Companion{Object: clean, Resource: n.Resource(), Shared: true, Clusters: n.Clusters}, ""
}
