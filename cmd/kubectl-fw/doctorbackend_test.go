package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/config/rbac"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// backendServer answers as the API server of a backend, as far as doctor asks it.
type backendServer struct {
	serves []schema.GroupVersionKind
	grants []rbacv1.PolicyRule
	// elsewhere are rights that its rules do not have, and it grants all the same: to one object where its name is behind it.
	elsewhere []string
	bindings  []map[string]any
	mu        sync.Mutex
	// asked are the requests, those that look at one right by the user.
	asked []string
}

func (b *backendServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what := r.Method + " " + r.URL.Path
	b.asked = append(b.asked, what)
	answer := func(object any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(object); err != nil {
			panic(err)
		}
	}
	const reviews = "POST /apis/authorization.k8s.io/v1/"
	switch what {
	case "GET /version":
	case "GET /api":
		answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}})
	case "GET /apis":
		answer(b.groups())
	case reviews + "selfsubjectrulesreviews":
		review := authorizationv1.SelfSubjectRulesReview{}
		for _, rule := range b.grants {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources})
		}
		answer(review)
	case reviews + "selfsubjectaccessreviews":
		review := authorizationv1.SelfSubjectAccessReview{}
		received(r, &review)
		review.Status.Allowed = b.allows(review.Spec.ResourceAttributes)
		answer(review)
	case reviews + "subjectaccessreviews":
		review := authorizationv1.SubjectAccessReview{}
		received(r, &review)
		b.asked = append(b.asked, review.Spec.User)
		review.Status.Allowed = b.allows(review.Spec.ResourceAttributes)
		answer(review)
	case "GET /apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings":
		answer(map[string]any{"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBindingList", "items": b.bindings})
	default:
		if group, is := strings.CutPrefix(what, "GET /apis/"); is {
			answer(b.kinds(group))
			return
		}
		http.NotFound(w, r)
	}
}

// received reads what a client has sent.
func received(r *http.Request, into runtime.Object) {
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = clientgoscheme.Codecs.UniversalDeserializer().Decode(raw, nil, into)
	}
	if err != nil {
		panic(err)
	}
}

func (b *backendServer) allows(a *authorizationv1.ResourceAttributes) bool {
	name := a.Resource
	if a.Subresource != "" {
		name += "/" + a.Subresource
	}
	if a.Name != "" {
		return slices.Contains(b.elsewhere, fmt.Sprintf("%s %s %s/%s", a.Verb, name, a.Namespace, a.Name))
	}
	return slices.Contains(rightsOf(b.grants), right{a.Group, name, a.Verb}) || slices.Contains(b.elsewhere, a.Verb+" "+name)
}

func (b *backendServer) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
	for _, kind := range b.serves {
		i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == kind.Group })
		if i < 0 {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: kind.Group})
			i = len(list.Groups) - 1
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: kind.GroupVersion().String(), Version: kind.Version}
		if g := &list.Groups[i]; !slices.Contains(g.Versions, version) {
			g.Versions, g.PreferredVersion = append(g.Versions, version), version
		}
	}
	return list
}

func (b *backendServer) kinds(groupVersion string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: groupVersion}
	for _, kind := range b.serves {
		if kind.GroupVersion().String() == groupVersion {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind.Kind) + "s", Kind: kind.Kind})
		}
	}
	return list
}

// backendSource is a live backend without a connection.
type backendSource struct {
	one    backend
	failed error
}

func (s backendSource) backend(string) (backend, error)       { return s.one, s.failed }
func (s backendSource) names() []string                       { return []string{s.one.name} }
func (s backendSource) kinds() (*interpreter.Registry, error) { return interpreter.New() }

func rulesOf(t *testing.T, folder string, but ...string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	all, err := rbac.Rules(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rightsOf(all) {
		if !slices.Contains(but, r.verb+" "+r.resource) {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}})
		}
	}
	return rules
}

func binding(namespace, set, bound string) map[string]any {
	return map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
		"metadata": map[string]any{"namespace": namespace, "name": set}, "spec": map[string]any{"clusterSet": set},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Bound", "status": bound, "reason": "x", "message": "there is no such set", "lastTransitionTime": nil}}},
	}
}

func servedAs(whole bool, resources ...string) backends.Served {
	s := backends.Served{Whole: whole}
	for _, r := range resources {
		version, resource, _ := strings.Cut(r, " ")
		s.Resources = append(s.Resources, schema.GroupVersionResource{Group: kruiseGroup, Version: version, Resource: resource})
	}
	return s
}

func TestDoctorOnABackend(t *testing.T) {
	karmada, hub := config.Backend{Name: "karmada", Type: config.TypeKarmada}, config.Backend{Name: "ocm", Type: config.TypeOCM, OCM: &config.OCM{ShipDefinitions: true}}
	binds, here := config.Backend{Name: "ocm", Type: config.TypeOCM, OCM: &config.OCM{ClusterSets: []string{"global"}}}, hub
	here.Connection.InCluster = &struct{}{}
	// What OpenKruise 1.8 has, of kinds that can be carried, and one that cannot.
	whole := servedAs(true, "v1alpha1 advancedcronjobs", "v1alpha1 broadcastjobs", "v1alpha1 clonesets", "v1alpha1 daemonsets", "v1alpha1 imagepulljobs", "v1alpha1 sidecarsets",
		"v1alpha1 statefulsets", "v1alpha1 uniteddeployments", "v1beta1 statefulsets")
	for name, test := range map[string]struct {
		config.Backend
		server *backendServer
		served map[string]backends.Served
		failed error
	}{
		"karmada-well": {karmada, &backendServer{serves: drivers.Needs(karmada), grants: rulesOf(t, "karmada")}, map[string]backends.Served{"member1": whole, "member2": whole, "member3": whole}, nil},
		"karmada-ill": {karmada, &backendServer{serves: drivers.Needs(karmada)[3:], elsewhere: []string{"list clusters"},
			grants: rulesOf(t, "karmada", "list clusters", "watch clusters", "create works", "delete works", "patch clonesets", "list events", "watch events")},
			map[string]backends.Served{"member1": whole, "member2": servedAs(true, "v1alpha1 clonesets"), "member3": servedAs(true)}, nil},
		"ocm-well": {hub, &backendServer{serves: drivers.Needs(hub), grants: rulesOf(t, "ocm"), bindings: []map[string]any{binding("shop", "global", "True")}},
			map[string]backends.Served{"member1": servedAs(false, "v1alpha1 clonesets")}, nil},
		"ocm-ill": {hub, &backendServer{serves: drivers.Needs(hub)[:2], grants: rulesOf(t, "ocm", "delete manifestworks", "execute-as manifestworks", "get customresourcedefinitions"),
			bindings: []map[string]any{binding("shop", "gone", "False"), binding("other", "global", "True")}}, nil, nil},
		"ocm-binds":      {binds, &backendServer{serves: drivers.Needs(hub), grants: rulesOf(t, "ocm", "get customresourcedefinitions", "create managedclustersets/bind")}, nil, nil},
		"ocm-in-cluster": {here, &backendServer{serves: drivers.Needs(hub), grants: rulesOf(t, "ocm", "get placements"), bindings: []map[string]any{binding("shop", "global", "True")}}, nil, nil},
		"ocm-not-ready": {hub, &backendServer{serves: drivers.Needs(hub)[1:], grants: rulesOf(t, "ocm", "list managedclusters")}, nil,
			&backends.Error{Code: backends.CodeNotReady, Message: "the hub's objects are being read", Remedy: "wait; if it lasts, check that the hub has OCM's CRDs"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.server)
			defer server.Close()
			var fleet backends.Fleet
			for _, name := range []string{"member1", "member2", "member3"} {
				fleet.Clusters = append(fleet.Clusters, backends.Cluster{Name: name, Identity: name, Ready: metav1.ConditionTrue})
			}
			live := backend{name: test.Name, fleet: fleet, served: func(string) (map[string]backends.Served, error) { return test.served, nil }}
			fw := glanced("shop", "web", func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = test.Name })
			d := backendDoctor{Backend: test.Backend, from: backendSource{live, test.failed}, account: "ops/operator", workloads: []v1alpha1.FleetWorkload{*fw.(*v1alpha1.FleetWorkload)}, now: func() time.Time { return noon },
				load: func(context.Context, config.Connection) (*rest.Config, error) {
					return &rest.Config{Host: server.URL}, nil
				}}
			sections := []section{{"backend " + test.Name, d.look(t.Context())}}
			remedied(t, sections)
			var out bytes.Buffer
			err := report(&out, "", sections)
			if strings.Contains(out.String(), "  problem ") != (err != nil) {
				t.Errorf("the error is %v", err)
			}
			compareGolden(t, "doctor/"+name+".golden", out.String())
			if user := "system:serviceaccount:ops:operator"; slices.Contains(test.server.asked, user) != (test.Connection.InCluster != nil) {
				t.Errorf("asked what %s may do: %q", user, test.server.asked)
			}
			if most := 15; test.Connection.InCluster == nil && len(test.server.asked) > most {
				t.Errorf("%d requests, more than %d: %q", len(test.server.asked), most, test.server.asked)
			}
			if slices.ContainsFunc(test.server.asked, func(what string) bool {
				return strings.HasPrefix(what, "P") && !strings.HasPrefix(what, "POST /apis/authorization.k8s.io/") || strings.HasPrefix(what, "DELETE")
			}) {
				t.Errorf("something was written: %q", test.server.asked)
			}
		})
	}
}

// TestPagesShowWhatDoctorSaysOfBackends: what is said of well ones, of three members with OpenKruise 1.8.
func TestPagesShowWhatDoctorSaysOfBackends(t *testing.T) {
	for golden, shown := range map[string]int{"karmada-well": 5, "ocm-well": 4} {
		lines := strings.SplitAfter(testdata(t, "doctor/"+golden+".golden"), "\n")[1:]
		for _, page := range []string{"first-hour.md", "kubectl-fw.md"} {
			if want := strings.Join(lines[:shown], ""); !strings.Contains(testdata(t, "../../../docs/"+page), want) {
				t.Errorf("docs/%s does not show\n%s", page, want)
			}
		}
	}
}

func TestDoctorOnBackends(t *testing.T) {
	inv, err := loadInventory("testdata/migrate/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	unavailable := func(context.Context, config.Connection) (*rest.Config, error) {
		return nil, errors.New("the Secret ops/a has no key \"kubeconfig\"")
	}
	forbidden := func(context.Context, config.Connection) (*rest.Config, error) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil)
	}
	var sections []section
	for _, test := range []struct {
		name string
		load func(context.Context, config.Connection) (*rest.Config, error)
	}{{"karmada", unavailable}, {"small", unavailable}, {"argo", unavailable}, {"karmada", forbidden}} {
		d := backendDoctor{Backend: config.Backend{Name: test.name}, from: inv, load: test.load, now: func() time.Time { return noon }}
		sections = append(sections, section{"backend " + test.name, d.look(t.Context())})
	}
	found := lookAtClusters(backends.Fleet{Clusters: []backends.Cluster{{Name: "member1", Identity: "1", Leaving: true}, {Name: "member2", Ready: metav1.ConditionTrue}}}, noon)
	sections = append(sections, section{"backend with some", found}, section{"backend without any", lookAtClusters(backends.Fleet{}, noon)},
		section{"backend that tells its remedy", []finding{unusable(&backends.Error{Code: backends.CodeUnavailable, Message: "it is gone", Remedy: "bring it back"})}},
		section{"backend that does not", []finding{unusable(errors.New("it is gone"))}})
	remedied(t, sections)
	var out bytes.Buffer
	if err := report(&out, "", sections); err == nil || err.Error() != "7 problems found" {
		t.Errorf("the error is %v", err)
	}
	compareGolden(t, "doctor/backends.golden", out.String())
}

// TestLesserRightsAreShipped: each is one of the roles, so that a role that changes is noticed here.
func TestLesserRightsAreShipped(t *testing.T) {
	for _, l := range lesserRights() {
		rules, err := rbac.Rules(strings.ToLower(string(l.backend)))
		if err != nil {
			t.Fatal(err)
		}
		shipped := rightsOf(rules)
		for _, resource := range append([]string{""}, l.resources...) {
			for _, verb := range append([]string{""}, l.verbs...) {
				if !slices.ContainsFunc(shipped, func(r right) bool {
					return l.has(l.backend, r) && (resource == "" || r.resource == resource) && (verb == "" || r.verb == verb)
				}) {
					t.Errorf("no role grants %q on %q of %q", verb, resource, l.group)
				}
			}
		}
	}
}

func TestRulesThatCoverARight(t *testing.T) {
	rule := func(group, resource, verb string, names ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	r := right{"apps", "deployments", "get"}
	for name, test := range map[string]struct {
		rule authorizationv1.ResourceRule
		want bool
	}{
		"the same": {rule("apps", "deployments", "get"), true}, "all": {rule("*", "*", "*"), true}, "one name": {rule("apps", "deployments", "get", "web"), false},
		"another verb": {rule("apps", "deployments", "list"), false}, "another group": {rule("batch", "deployments", "get"), false},
		"another resource": {rule("apps", "daemonsets", "get"), false},
	} {
		if got := covers([]authorizationv1.ResourceRule{test.rule}, r); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
