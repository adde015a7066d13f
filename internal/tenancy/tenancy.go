// Package tenancy says what the FleetWorkloads of a namespace may use: which backends, which kinds, and whether what their pods refer
// to may travel. An administrator writes it into the operator's configuration.
package tenancy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Tenancy is that part of the operator's configuration. The zero value keeps system namespaces and cluster-scoped kinds out, and bounds
// nothing else.
type Tenancy struct {
	// SystemNamespaces are further namespaces that belong to systems, by name or pattern, such as istio-system or gatekeeper-*. These always
	// do: the operator's own, kube-*, karmada-*, open-cluster-management*, kruise-system and kruise-daemon-config. Only a rule that
	// names such a namespace admits its FleetWorkloads.
	SystemNamespaces []string `json:"systemNamespaces,omitempty"`
	// Rules are looked through in order; the first that chooses a namespace holds for it, alone. One that none chooses has the defaults.
	Rules []Rule `json:"rules,omitempty"`
}

// Rule says what the namespaces that it chooses may use.
type Rule struct {
	// Name is what messages call it.
	Name string `json:"name"`
	// Namespaces are names. With a selector too, a namespace must be chosen by both; without either, all are chosen but systems'.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector chooses namespaces by their labels on the management cluster.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Backends are those that may be used, by name. When absent, all; when empty, none.
	Backends []string `json:"backends,omitempty"`
	// Kinds are the namespaced kinds that may be carried, of those that the operator carries at all. When absent, all; when empty, none.
	Kinds []Kind `json:"kinds,omitempty"`
	// ClusterScopedKinds are the kinds without a namespace that may be carried, such as SidecarSet, which reaches the pods of every
	// namespace. When absent, none.
	ClusterScopedKinds []Kind `json:"clusterScopedKinds,omitempty"`
	// ClusterSets are the ManagedClusterSets whose clusters may be chosen, by name. A cluster is in the set that its label LabelClusterSet names, on
	// Karmada as on OCM. When absent, all clusters; when empty, none.
	ClusterSets []string `json:"clusterSets,omitempty"`
	// Dependencies say whether spec.dependencies may be Propagate: Allowed or Refused. When absent: Allowed.
	Dependencies Dependencies `json:"dependencies,omitempty"`
	// ServiceAccountName says whether spec.serviceAccountName must be set: Required. When absent, it may be left out.
	ServiceAccountName Requirement `json:"serviceAccountName,omitempty"`
	// Approval says whether spec.approval must be Manual: Required. When absent, it may be either.
	Approval Requirement `json:"approval,omitempty"`
}

// LabelClusterSet is the label by which a cluster is in a ManagedClusterSet (open-cluster-management.io/api cluster/v1beta2,
// ClusterSetLabel).
const LabelClusterSet = "cluster.open-cluster-management.io/clusterset"

// Requirement says whether FleetWorkloads must have something.
type Requirement string

// Required refuses FleetWorkloads without it.
const Required Requirement = "Required"

// Kind names a kind in all its versions.
type Kind struct {
	// Group is an API group, empty for the core group. In rules * stands for every group.
	Group string `json:"group,omitempty"`
	// Kind is a kind, or * for every kind of the group.
	Kind string `json:"kind"`
}

// Dependencies say whether what pods refer to may travel.
type Dependencies string

const (
	// DependenciesAllowed lets them travel where a FleetWorkload asks for it.
	DependenciesAllowed Dependencies = "Allowed"
	// DependenciesRefused refuses FleetWorkloads that ask for it.
	DependenciesRefused Dependencies = "Refused"
)

// systems are namespaces that belong to systems on every management cluster or member.
var systems = []string{"kube-*", "karmada-*", "open-cluster-management*", "kruise-system", "kruise-daemon-config"}

// Everything lets all namespaces but systems' use everything. It is for tools and tests that have no administrator's configuration.
func Everything() Tenancy {
	return Tenancy{Rules: []Rule{{Name: "everything", ClusterScopedKinds: []Kind{{Group: "*", Kind: "*"}}}}}
}

// Terms are what one namespace may use.
type Terms struct {
	namespace string
	// system is the pattern by which it belongs to a system that no rule admits.
	system string
	rule   *Rule
}

// Of returns what a namespace with these labels may use. The error is about a selector that cannot be read, which Check would have refused.
func (t Tenancy) Of(namespace string, set map[string]string) (Terms, error) {
	terms := Terms{namespace: namespace, system: t.systemOf(namespace)}
	for i := range t.Rules {
		rule := &t.Rules[i]
		chosen, err := rule.chooses(namespace, set, terms.system != "")
		if err != nil {
			return terms, err
		}
		if chosen {
			terms.rule, terms.system = rule, ""
			return terms, nil
		}
	}
	return terms, nil
}

func (t Tenancy) systemOf(namespace string) string {
	for _, pattern := range slices.Concat(systems, t.SystemNamespaces) {
		if matches, _ := path.Match(pattern, namespace); matches {
			return pattern
		}
	}
	return ""
}

func (r *Rule) chooses(namespace string, set map[string]string, system bool) (bool, error) {
	named := slices.Contains(r.Namespaces, namespace)
	if !named && (system || len(r.Namespaces) > 0) {
		return false, nil
	}
	if r.NamespaceSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(r.NamespaceSelector)
	if err != nil {
		return false, fmt.Errorf("tenancy rule %q: namespaceSelector: %w", r.Name, err)
	}
	return selector.Matches(labels.Set(set)), nil
}

// Namespace refuses a namespace that belongs to a system.
func (t Terms) Namespace() error {
	if t.system == "" {
		return nil
	}
	return t.refuse("metadata.namespace", t.namespace, fmt.Sprintf("it belongs to a system (%s)", t.system), "use another namespace")
}

// Backend refuses a backend that the namespace may not use.
func (t Terms) Backend(name string) error {
	if t.rule == nil || t.rule.Backends == nil || slices.Contains(t.rule.Backends, name) {
		return nil
	}
	return t.refuse("spec.backend", name, t.may("backends", strings.Join(t.rule.Backends, ", ")), "use another one")
}

// Kind refuses a kind that the namespace's FleetWorkloads may not carry.
func (t Terms) Kind(kind schema.GroupKind, clusterScoped bool) error {
	var rule Rule
	if t.rule != nil {
		rule = *t.rule
	}
	if clusterScoped {
		if containsKind(rule.ClusterScopedKinds, kind) {
			return nil
		}
		return t.refuse("spec.template.kind", kind.String(), "it has no namespace, so that it reaches beyond "+t.namespace+": "+
			t.may("clusterScopedKinds", texts(rule.ClusterScopedKinds)), "use a kind with a namespace")
	}
	if rule.Kinds == nil || containsKind(rule.Kinds, kind) {
		return nil
	}
	return t.refuse("spec.template.kind", kind.String(), t.may("kinds", texts(rule.Kinds)), "use another one")
}

// Reaches tells whether a cluster with these labels may be chosen.
func (t Terms) Reaches(labels map[string]string) bool {
	return t.rule == nil || t.rule.ClusterSets == nil || slices.Contains(t.rule.ClusterSets, labels[LabelClusterSet])
}

// Clusters refuse clusters that may not be chosen, by name.
func (t Terms) Clusters(outside []string) error {
	return t.refuse("spec.placement", strings.Join(outside, ", "), t.may("clusterSets", strings.Join(t.rule.ClusterSets, ", ")),
		"choose clusters of these sets, such as by the label "+LabelClusterSet)
}

// Dependencies refuse that what pods refer to travels.
func (t Terms) Dependencies() error {
	if t.rule == nil || t.rule.Dependencies != DependenciesRefused {
		return nil
	}
	return t.refuse("spec.dependencies", "Propagate", t.may("dependencies", string(DependenciesRefused)),
		"set it to Ignore and have them on the clusters another way")
}

// ServiceAccount refuses that nobody is asked what may be shipped.
func (t Terms) ServiceAccount(name string) error {
	if t.rule == nil || t.rule.ServiceAccountName != Required || name != "" {
		return nil
	}
	return t.refuse("spec.serviceAccountName", name, t.may("serviceAccountName", string(Required)),
		"name a ServiceAccount of the namespace that may create what is shipped")
}

// Approval refuses that changes are carried out which nobody has approved.
func (t Terms) Approval(manual bool) error {
	if t.rule == nil || t.rule.Approval != Required || manual {
		return nil
	}
	return t.refuse("spec.approval", "Automatic", t.may("approval", string(Required)), "set it to Manual, so that changes wait until somebody has approved them")
}

// may says what a rule, or the default, allows.
func (t Terms) may(what, allowed string) string {
	by := "no tenancy rule chooses this namespace"
	if t.rule != nil {
		by = fmt.Sprintf("tenancy rule %q chooses this namespace", t.rule.Name)
	}
	return fmt.Sprintf("%s, with %s: %s", by, what, cmp.Or(allowed, "none"))
}

func (t Terms) refuse(field, value, why, remedy string) error {
	return fmt.Errorf("%s %q is not allowed in namespace %q: %s; %s, or ask an administrator to allow it under tenancy in the operator's "+
		"configuration. Nothing is changed meanwhile", field, value, t.namespace, why, remedy)
}

func containsKind(kinds []Kind, kind schema.GroupKind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool {
		return (k.Group == kind.Group || k.Group == "*") && (k.Kind == kind.Kind || k.Kind == "*")
	})
}

func texts(kinds []Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, schema.GroupKind{Group: k.Group, Kind: k.Kind}.String())
	}
	return strings.Join(all, ", ")
}

// Check returns what is wrong, each with its field. Backends are the names of those that are configured.
func (t Tenancy) Check(field string, backends []string) (errs []error) {
	for i, pattern := range t.SystemNamespaces {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, fmt.Errorf("%s.systemNamespaces[%d]: %q is no name or pattern", field, i, pattern))
		}
	}
	seen := map[string]bool{}
	for i, rule := range t.Rules {
		at := fmt.Sprintf("%s.rules[%d]", field, i)
		if rule.Name == "" || seen[rule.Name] {
			errs = append(errs, fmt.Errorf("%s.name: %q is empty or there twice", at, rule.Name))
		}
		seen[rule.Name] = true
		errs = append(errs, rule.check(at, backends)...)
	}
	return errs
}

func (r Rule) check(at string, backends []string) (errs []error) {
	if _, err := metav1.LabelSelectorAsSelector(r.NamespaceSelector); err != nil {
		errs = append(errs, fmt.Errorf("%s.namespaceSelector: %w", at, err))
	}
	for i, name := range r.Backends {
		if !slices.Contains(backends, name) {
			errs = append(errs, fmt.Errorf("%s.backends[%d]: %q is none of the backends", at, i, name))
		}
	}
	for field, kinds := range map[string][]Kind{"kinds": r.Kinds, "clusterScopedKinds": r.ClusterScopedKinds} {
		for i, kind := range kinds {
			if kind.Kind == "" {
				errs = append(errs, fmt.Errorf("%s.%s[%d].kind: it is missing; * stands for every kind of the group", at, field, i))
			}
		}
	}
	if !slices.Contains([]Dependencies{"", DependenciesAllowed, DependenciesRefused}, r.Dependencies) {
		errs = append(errs, fmt.Errorf("%s.dependencies: %q is neither %s nor %s", at, r.Dependencies, DependenciesAllowed, DependenciesRefused))
	}
	if r.ServiceAccountName != "" && r.ServiceAccountName != Required {
		errs = append(errs, fmt.Errorf("%s.serviceAccountName: %q is not %s", at, r.ServiceAccountName, Required))
	}
	if r.Approval != "" && r.Approval != Required {
		errs = append(errs, fmt.Errorf("%s.approval: %q is not %s", at, r.Approval, Required))
	}
	return errs
}
