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
	return r.Verb + " " + r.resource() + where
}

// resource is what the right is about, with the server that has it.
func (r grantedRight) resource() string {
	return r.Server + " " + strings.TrimSuffix(r.Resource+"."+r.Group, ".")
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
		if err != nil || !info.IsResourceRequest || status >= http.StatusBadRequest {
			return
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

// unusedHere are resources that no scenario's operator uses, as SERVER RESOURCE.GROUP, with why they are granted all the same.
var unusedHere = map[string]string{
	"ocm managedclustersets/bind.cluster.open-cluster-management.io": "OCM's webhook asks it of a ManagedClusterSetBinding",
	"management fleetworkloads/finalizers.apps.fleetworkload.io":     "the admission plugin OwnerReferencesPermissionEnforcement asks it of ControllerRevisions",
	"ocm namespaces": "on a hub that is not the management cluster, namespaces are made",
	"ocm customresourcedefinitions.apiextensions.k8s.io": "with shipDefinitions, in the driver's suite",
	"karmada advancedcronjobs.apps.kruise.io":            "it is treated as CronJobs are, which a scenario carries",
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

// checkAll wants every resource of the roles to be used by the scenarios, of all processes: one that nobody would miss is not given. Verbs that are
// not used are told: some are for clients without streaming lists, or for what a sample of a sweep leaves out.
func (u *used) checkAll(dir string) {
	GinkgoHelper()
	saved, err := filepath.Glob(filepath.Join(dir, "rights-*.json"))
	Expect(err).NotTo(HaveOccurred())
	seen, touched := map[grantedRight]bool{}, map[string]bool{}
	for _, file := range saved {
		raw, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		var all []grantedRight
		Expect(json.Unmarshal(raw, &all)).To(Succeed())
		for _, r := range all {
			touched[r.resource()], seen[r] = true, true
			r.Own = false // a ClusterRole is good for the operator's own namespace, too
			seen[r] = true
		}
	}
	var verbs, resources []string
	for _, r := range granted() {
		if !seen[r] {
			verbs = append(verbs, r.String())
		}
		if !touched[r.resource()] && unusedHere[r.resource()] == "" {
			resources = append(resources, r.resource())
		}
	}
	slices.Sort(verbs)
	fmt.Fprintf(os.Stdout, "rights that no scenario used: %s\n", strings.Join(verbs, "; "))
	Expect(resources).To(BeEmpty(), "what the operator may use and no scenario does")
}
