package tenancy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	deployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	sidecarSet = schema.GroupKind{Group: "apps.kruise.io", Kind: "SidecarSet"}
)

func example() Tenancy {
	return Tenancy{
		SystemNamespaces: []string{"istio-*"},
		Rules: []Rule{
			{Name: "agents", Namespaces: []string{"kube-agents"}},
			{
				Name: "platform", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}},
				ClusterScopedKinds: []Kind{{Group: "apps.kruise.io", Kind: "SidecarSet"}},
			},
			{
				Name: "both", Namespaces: []string{"shop"}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
				Backends: []string{}, Dependencies: DependenciesRefused, ServiceAccountName: Required, Approval: Required,
			},
			{Name: "shop", Namespaces: []string{"shop"}, Backends: []string{"ocm"}, Kinds: []Kind{{Group: "apps", Kind: "*"}}},
		},
	}
}

func TestWhatANamespaceMayUse(t *testing.T) {
	platform, prod := map[string]string{"team": "platform"}, map[string]string{"env": "prod"}
	for name, test := range map[string]struct {
		namespace string
		labels    map[string]string
		ask       func(Terms) error
		refused   string
	}{
		"an ordinary namespace":                          {"bank", nil, Terms.Namespace, ""},
		"a system's":                                     {"kube-system", nil, Terms.Namespace, "belongs to a system (kube-*)"},
		"OCM's agent's":                                  {"open-cluster-management-agent", nil, Terms.Namespace, "open-cluster-management*"},
		"one that only begins like a system's":           {"kruise-demo", nil, Terms.Namespace, ""},
		"one that the administrator counts among them":   {"istio-system", nil, Terms.Namespace, "belongs to a system (istio-*)"},
		"labels do not admit a system's":                 {"kube-system", platform, Terms.Namespace, "belongs to a system"},
		"its name does":                                  {"kube-agents", nil, Terms.Namespace, ""},
		"any backend, without a rule":                    {"bank", nil, backend("karmada"), ""},
		"any backend, with a rule that says nothing":     {"ops", platform, backend("karmada"), ""},
		"a backend of the rule":                          {"shop", nil, backend("ocm"), ""},
		"another backend":                                {"shop", nil, backend("karmada"), `spec.backend "karmada" is not allowed in namespace "shop": tenancy rule "shop" chooses this namespace, with backends: ocm; use another one, or ask`},
		"no backend at all":                              {"shop", prod, backend("ocm"), `tenancy rule "both" chooses this namespace, with backends: none`},
		"a kind, without a rule":                         {"bank", nil, kind(deployment, false), ""},
		"a kind of the rule's group":                     {"shop", nil, kind(deployment, false), ""},
		"another kind":                                   {"shop", nil, kind(schema.GroupKind{Group: "batch", Kind: "Job"}, false), `"Job.batch" is not allowed in namespace "shop": tenancy rule "shop" chooses this namespace, with kinds: *.apps`},
		"a cluster-scoped kind, without a rule":          {"bank", nil, kind(sidecarSet, true), "no tenancy rule chooses this namespace, with clusterScopedKinds: none"},
		"a cluster-scoped kind that is only among kinds": {"shop", nil, kind(schema.GroupKind{Group: "apps", Kind: "Thing"}, true), "it has no namespace"},
		"a cluster-scoped kind of the rule":              {"ops", platform, kind(sidecarSet, true), ""},
		"another cluster-scoped kind":                    {"ops", platform, kind(schema.GroupKind{Kind: "Node"}, true), "clusterScopedKinds: SidecarSet.apps.kruise.io"},
		"no account, without a rule":                     {"bank", nil, account(""), ""},
		"no account where one is required":               {"shop", prod, account(""), "with serviceAccountName: Required; name a ServiceAccount"},
		"an account where one is required":               {"shop", prod, account("deployer"), ""},
		"nobody approves, without a rule":                {"bank", nil, approval(false), ""},
		"nobody approves where it is required":           {"shop", prod, approval(false), `spec.approval "Automatic" is not allowed in namespace "shop": tenancy rule "both" chooses this namespace, with approval: Required; set it to Manual`},
		"somebody approves where it is required":         {"shop", prod, approval(true), ""},
		"dependencies, without a rule":                   {"bank", nil, Terms.Dependencies, ""},
		"dependencies, with a rule that says nothing":    {"shop", nil, Terms.Dependencies, ""},
		"dependencies that are refused":                  {"shop", prod, Terms.Dependencies, "set it to Ignore"},
	} {
		terms, err := example().Of(test.namespace, test.labels)
		if err != nil {
			t.Fatal(err)
		}
		err = test.ask(terms)
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v, want %q", name, err, test.refused)
		}
	}
}

func backend(name string) func(Terms) error { return func(t Terms) error { return t.Backend(name) } }

func approval(manual bool) func(Terms) error {
	return func(t Terms) error { return t.Approval(manual) }
}

func account(name string) func(Terms) error {
	return func(t Terms) error { return t.ServiceAccount(name) }
}

func kind(k schema.GroupKind, clusterScoped bool) func(Terms) error {
	return func(t Terms) error { return t.Kind(k, clusterScoped) }
}

func TestClusterSets(t *testing.T) {
	in := func(set string) map[string]string { return map[string]string{LabelClusterSet: set} }
	for name, test := range map[string]struct {
		sets    []string
		labels  map[string]string
		reaches bool
	}{
		"no word of sets":        {nil, in("shop"), true},
		"no word, and no set":    {nil, nil, true},
		"one of them":            {[]string{"bank", "shop"}, in("shop"), true},
		"another":                {[]string{"bank"}, in("shop"), false},
		"a cluster without":      {[]string{"bank"}, nil, false},
		"none, a cluster in one": {[]string{}, in("shop"), false},
	} {
		terms, err := Tenancy{Rules: []Rule{{Name: "r", ClusterSets: test.sets}}}.Of("shop", nil)
		if err != nil || terms.Reaches(test.labels) != test.reaches {
			t.Errorf("%s: %v, %v", name, terms.Reaches(test.labels), err)
		}
	}
	terms, err := Tenancy{Rules: []Rule{{Name: "r", ClusterSets: []string{"bank"}}}}.Of("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `spec.placement "m1, m2" is not allowed in namespace "shop": tenancy rule "r" chooses this namespace, with clusterSets: bank; choose clusters of these sets`
	if got := terms.Clusters([]string{"m1", "m2"}); got == nil || !strings.Contains(got.Error(), want) {
		t.Errorf("got %v, want %s", got, want)
	}
}

// The zero value is what an installation has whose administrator wrote nothing: it must not let system namespaces or cluster-scoped kinds in.
func TestTheDefaultIsSafe(t *testing.T) {
	system, err := Tenancy{}.Of("kube-system", nil)
	if err != nil || system.Namespace() == nil {
		t.Errorf("kube-system may use everything, %v", err)
	}
	other, err := Tenancy{}.Of("shop", nil)
	if err != nil || other.Kind(sidecarSet, true) == nil {
		t.Errorf("every namespace may make SidecarSets, %v", err)
	}
	if err := other.Kind(deployment, false); err != nil {
		t.Error(err)
	}
	if err := everything(t).Kind(sidecarSet, true); err != nil {
		t.Error(err)
	}
}

func everything(t *testing.T) Terms {
	t.Helper()
	terms, err := Everything().Of("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

func TestCheck(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for name, test := range map[string]struct {
		tenancy Tenancy
		fails   string
	}{
		"nothing":                      {Tenancy{}, ""},
		"all of it":                    {example(), ""},
		"a pattern that is none":       {Tenancy{SystemNamespaces: []string{"a", "["}}, `t.systemNamespaces[1]: "[" is no name or pattern`},
		"an empty pattern":             {Tenancy{SystemNamespaces: []string{""}}, "t.systemNamespaces[0]"},
		"a rule without a name":        {Tenancy{Rules: []Rule{{}}}, "t.rules[0].name"},
		"two rules of one name":        {Tenancy{Rules: []Rule{{Name: "a"}, {Name: "a"}}}, `t.rules[1].name: "a"`},
		"a selector that is none":      {Tenancy{Rules: []Rule{{Name: "a", NamespaceSelector: bad}}}, "t.rules[0].namespaceSelector"},
		"a backend that there is not":  {Tenancy{Rules: []Rule{{Name: "a", Backends: []string{"ocm", "omc"}}}}, `t.rules[0].backends[1]: "omc"`},
		"a kind without a kind":        {Tenancy{Rules: []Rule{{Name: "a", Kinds: []Kind{{Group: "apps"}}}}}, "t.rules[0].kinds[0].kind"},
		"a cluster-scoped one too":     {Tenancy{Rules: []Rule{{Name: "a", ClusterScopedKinds: []Kind{{}}}}}, "t.rules[0].clusterScopedKinds[0].kind"},
		"approval of another word":     {Tenancy{Rules: []Rule{{Name: "a", Approval: "Some"}}}, `t.rules[0].approval: "Some"`},
		"accounts of another word":     {Tenancy{Rules: []Rule{{Name: "a", ServiceAccountName: "Some"}}}, `t.rules[0].serviceAccountName: "Some"`},
		"dependencies of another word": {Tenancy{Rules: []Rule{{Name: "a", Dependencies: "Some"}}}, `t.rules[0].dependencies: "Some"`},
	} {
		errs := test.tenancy.Check("t", []string{"karmada", "ocm"})
		if test.fails == "" && len(errs) == 0 || test.fails != "" && len(errs) == 1 && strings.Contains(errs[0].Error(), test.fails) {
			continue
		}
		t.Errorf("%s: %v, want %q", name, errs, test.fails)
	}
	if _, err := (Tenancy{Rules: []Rule{{Name: "a", NamespaceSelector: bad}}}).Of("shop", nil); err == nil {
		t.Error("a selector that cannot be read chooses")
	}
}
