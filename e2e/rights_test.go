//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// grantedRight is one that the operator needs on one of its servers, in its own namespace or beyond it.
type grantedRight struct {
	Server, Group, Resource, Verb string
	Own                           bool
}

func (r grantedRight) String() string {
	where := ""
	if r.Own {
		where = " in its own namespace"
	}
	return r.Verb + " " + r.Server + " " + strings.TrimSuffix(r.Resource+"."+r.Group, ".") + where
}

// used are the rights that the operators of scenarios have used.
type used struct {
	mu  sync.Mutex
	all map[grantedRight]bool
}

var rights = &used{all: map[grantedRight]bool{}}

// of notes what a server has granted.
func (u *used) of(server string) func(method string, at *url.URL, status int) {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return func(method string, at *url.URL, status int) {
		info, err := resolver.NewRequestInfo(&http.Request{Method: method, URL: at})
		refused := status == http.StatusUnauthorized || status == http.StatusForbidden || status >= http.StatusInternalServerError
		if err != nil || !info.IsResourceRequest || refused {
			return // what is not found was looked for by right
		}
		r := grantedRight{Server: server, Group: info.APIGroup, Resource: info.Resource, Verb: info.Verb, Own: info.Namespace == operatorNamespace}
		if info.Subresource != "" {
			r.Resource += "/" + info.Subresource
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.all[r] = true
		if info.Verb == "patch" && status == http.StatusCreated {
			r.Verb = "create" // server-side apply of what was not there takes both
			u.all[r] = true
		}
	}
}

// save leaves what this process has seen for the one that checks.
func (u *used) save(dir string) {
	GinkgoHelper()
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []grantedRight
	for r := range u.all {
		all = append(all, r)
	}
	raw, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, fmt.Sprintf("rights-%d.json", GinkgoParallelProcess())), raw, 0o600)).To(Succeed())
}

// unusedHere are rights that no scenario's operator uses, with why they are granted all the same.
var unusedHere = map[string]string{
	"create ocm managedclustersets/bind.cluster.open-cluster-management.io": "OCM's webhook asks it of a ManagedClusterSetBinding",
	"execute-as ocm manifestworks.work.open-cluster-management.io":          "OCM's webhook asks it of a ManifestWork with an executor",
	"update management fleetworkloads/finalizers.apps.fleetworkload.io":     "the admission plugin OwnerReferencesPermissionEnforcement asks it of ControllerRevisions",
	"patch management events.events.k8s.io":                                 "an Event that is repeated after minutes is counted in the one there is",
	"get management namespaces":                                             "kube-system's UID names the installation where the configuration does not",
	"create ocm namespaces":                                                 "on a hub that is not the management cluster, namespaces are made",
	"get ocm customresourcedefinitions.apiextensions.k8s.io":                "with shipDefinitions, in the driver's suite",
	"delete karmada resourceinterpretercustomizations.config.karmada.io":    "when somebody else's customizations do all that the operator's did",
}

// kindsOnKarmada are the groups of the workload kinds that the operator delivers. It treats all of them alike.
var kindsOnKarmada = []string{"apps", "batch", "apps.kruise.io", "argoproj.io"}

// alike is a right that stands for others which the same code needs: a workload kind of Karmada for all.
func (r grantedRight) alike() grantedRight {
	if r.Server == "karmada" && slices.Contains(kindsOnKarmada, r.Group) {
		r.Group, r.Resource = "", "workload kinds"
	}
	return r
}

// granted are the rights that config/ gives the operator.
func granted() (all []grantedRight) {
	GinkgoHelper()
	for server, folders := range map[string][]string{
		"management": {"rbac/management", "webhook"}, "ocm": {"rbac/ocm"}, "karmada": {"rbac/karmada"},
	} {
		for _, folder := range folders {
			for _, file := range []string{"cluster_role.yaml", "role.yaml"} {
				raw, err := os.ReadFile(filepath.Join(world.config, folder, file))
				if os.IsNotExist(err) {
					continue
				}
				Expect(err).NotTo(HaveOccurred())
				var role rbacv1.Role
				Expect(yaml.Unmarshal(raw, &role)).To(Succeed())
				for _, rule := range role.Rules {
					for _, group := range rule.APIGroups {
						for _, resource := range rule.Resources {
							for _, verb := range rule.Verbs {
								all = append(all, grantedRight{server, group, resource, verb, role.Kind == "Role"})
							}
						}
					}
				}
			}
		}
	}
	return all
}

// checkAll wants every right of the roles to be used by the scenarios, of all processes, or to have its reason: one that nobody would miss is not given.
func (u *used) checkAll(dir string) {
	GinkgoHelper()
	saved, err := filepath.Glob(filepath.Join(dir, "rights-*.json"))
	Expect(err).NotTo(HaveOccurred())
	seen := map[grantedRight]bool{}
	for _, file := range saved {
		raw, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		var all []grantedRight
		Expect(json.Unmarshal(raw, &all)).To(Succeed())
		for _, r := range all {
			needs(seen, r)
			r.Own = false // a ClusterRole is good for the operator's own namespace, too
			needs(seen, r)
		}
	}
	var unused []string
	for _, r := range granted() {
		if !seen[r.alike()] && unusedHere[r.String()] == "" {
			unused = append(unused, r.String())
		}
	}
	Expect(unused).To(BeEmpty(), "what the operator may do and no scenario does")
}

// needs notes what a request takes. Whoever watches must also be able to list, where an API server does not stream lists.
func needs(seen map[grantedRight]bool, r grantedRight) {
	r = r.alike()
	seen[r] = true
	if r.Verb == "watch" {
		r.Verb = "list"
		seen[r] = true
	}
}
