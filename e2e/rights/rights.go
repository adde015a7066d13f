// Package rights knows the rights that config/ gives the operator, and its roles without one of them.
package rights

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Right is one that the operator has on one of its servers: management, ocm or karmada.
type Right struct {
	Server, Group, Resource, Verb string
	// Own is true for one in the operator's own namespace only.
	Own bool
}

// String names it for a person, and tells it from all others.
func (r Right) String() string {
	where := ""
	if r.Own {
		where = " in its own namespace"
	}
	return r.Verb + " " + r.Server + " " + strings.TrimSuffix(r.Resource+"."+r.Group, ".") + where
}

// kindsOnKarmada are the groups of the workload kinds that the operator delivers. It treats all of them alike.
var kindsOnKarmada = []string{"apps", "batch", "apps.kruise.io", "argoproj.io"}

// Alike is a right that stands for others which the same code needs: a workload kind of Karmada for all.
func (r Right) Alike() Right {
	if r.Server == "karmada" && slices.Contains(kindsOnKarmada, r.Group) {
		r.Group, r.Resource = "", "workload kinds"
	}
	return r
}

// Unused are rights that no scenario's operator uses, with why they are granted all the same.
var Unused = map[string]string{
	"create ocm managedclustersets/bind.cluster.open-cluster-management.io": "OCM's webhook asks it of a ManagedClusterSetBinding",
	"execute-as ocm manifestworks.work.open-cluster-management.io":          "OCM's webhook asks it of a ManifestWork with an executor",
	"update management fleetworkloads/finalizers.apps.fleetworkload.io":     "the admission plugin OwnerReferencesPermissionEnforcement asks it of ControllerRevisions",
	"patch management events.events.k8s.io":                                 "an Event that is repeated after minutes is counted in the one there is",
	"get management namespaces":                                             "kube-system's UID names the installation where the configuration does not",
	"create ocm namespaces":                                                 "on a hub that is not the management cluster, namespaces are made",
	"get ocm customresourcedefinitions.apiextensions.k8s.io":                "with shipDefinitions, in the driver's suite",
	"delete karmada resourceinterpretercustomizations.config.karmada.io":    "when somebody else's customizations do all that the operator's did",
}

// Missed are the scenarios that look at what comes of a right which many use and few would miss.
var Missed = map[string]string{
	"create management secrets in its own namespace": "and whoever may edit may always scale, suspend and delete",
	"update management secrets in its own namespace": "and whoever may edit may always scale, suspend and delete",
	"list management controllerrevisions.apps":       "What was shipped: ",
	"create management events.events.k8s.io":         "A hand-over with companions from ocm takes them along, there and back",
	"delete management controllerrevisions.apps":     "A hand-over with companions from ocm takes them along, there and back",
	"list karmada events":                            "Karmada without its webhook keeps what runs, says so, and goes on when it is back",
	"watch karmada events":                           "Karmada without its webhook keeps what runs, says so, and goes on when it is back",
}

// Role is one of the operator's, as config/ has it.
type Role struct {
	Server string
	object *unstructured.Unstructured
	role   rbacv1.Role
}

// Roles reads those of the folder config/.
func Roles(config string) ([]Role, error) {
	var all []Role
	for _, at := range []struct{ server, folder string }{
		{"management", "rbac/management"}, {"management", "webhook"}, {"ocm", "rbac/ocm"}, {"karmada", "rbac/karmada"},
	} {
		for _, file := range []string{"cluster_role.yaml", "role.yaml"} {
			raw, err := os.ReadFile(filepath.Join(config, at.folder, file))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read a role: %w", err)
			}
			r := Role{Server: at.server, object: &unstructured.Unstructured{}}
			if err := yaml.Unmarshal(raw, &r.object.Object); err != nil {
				return nil, fmt.Errorf("read %s/%s: %w", at.folder, file, err)
			}
			if err := yaml.Unmarshal(raw, &r.role); err != nil {
				return nil, fmt.Errorf("read %s/%s: %w", at.folder, file, err)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// Rights are those that the role gives, in order.
func (r Role) Rights() (all []Right) {
	for _, rule := range r.role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, r.right(group, resource, verb))
				}
			}
		}
	}
	return all
}

func (r Role) right(group, resource, verb string) Right {
	return Right{r.Server, group, resource, verb, r.role.Kind == "Role"}
}

// Manifest is the role as YAML.
func (r Role) Manifest() ([]byte, error) {
	raw, err := yaml.Marshal(r.object.Object)
	if err != nil {
		return nil, fmt.Errorf("write role %s: %w", r.role.Name, err)
	}
	return raw, nil
}

// Without is the role with all its rights but one.
func (r Role) Without(right Right) (Role, error) {
	var rules []any
	for _, rule := range r.role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				one := rule.DeepCopy()
				one.APIGroups, one.Resources = []string{group}, []string{resource}
				one.Verbs = slices.DeleteFunc(one.Verbs, func(verb string) bool { return r.right(group, resource, verb) == right })
				if len(one.Verbs) == 0 {
					continue
				}
				raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
				if err != nil {
					return r, fmt.Errorf("write a rule of role %s: %w", r.role.Name, err)
				}
				rules = append(rules, raw)
			}
		}
	}
	r.object = r.object.DeepCopy()
	r.object.Object["rules"] = rules
	return r, nil
}

// Use is what a scenario needed: an ordered container, or a spec that stands alone.
type Use struct {
	// Scenario is its whole text; empty for what the suite itself needs.
	Scenario string
	Seconds  float64
	Rights   []Right
}

// Takes tells which rights a request needs, as Alike has them. Whoever watches must also be able to list, where an API server does not stream
// lists; a ClusterRole is good for the operator's own namespace, too.
func Takes(r Right, needs func(Right)) {
	for _, own := range []bool{r.Own, false} {
		r.Own = own
		needs(r.Alike())
		if r.Verb == "watch" {
			list := r.Alike()
			list.Verb = "list"
			needs(list)
		}
	}
}
