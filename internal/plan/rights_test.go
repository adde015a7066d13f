package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// shipping is a plan whose pods refer to a Secret base, with these overrides.
func shipping(t *testing.T, overrides ...v1alpha1.Override) *Plan {
	t.Helper()
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	fw := &v1alpha1.FleetWorkload{}
	fw.Name, fw.Namespace = "web", "shop"
	fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},"template":{
		"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"nginx:1","envFrom":[{"secretRef":{"name":"base"}}]}]}}}}`)
	fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`)}}
	fw.Spec.Overrides = overrides
	p, err := New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func patching(name string, patches ...string) v1alpha1.Override {
	o := v1alpha1.Override{Name: name, Clusters: &v1alpha1.ClusterSelector{Names: []string{name}}}
	for _, text := range patches {
		var patch v1alpha1.PatchOperation
		if err := json.Unmarshal([]byte(text), &patch); err != nil {
			panic(err)
		}
		o.Patches = append(o.Patches, patch)
	}
	return o
}

// What any cluster's pods may refer to is asked for, also where it takes several overrides, one of which fails without the others.
func TestRights(t *testing.T) {
	refer := func(name string) string {
		return `{"op":"add","path":"/spec/template/spec/containers/0/envFrom/-","value":{"secretRef":{"name":"` + name + `"}}}`
	}
	second := `{"op":"replace","path":"/spec/template/spec/containers/0/envFrom/1/secretRef/name","value":"together"}`
	many := make([]v1alpha1.Override, 0, combinedOverrides+1)
	for i := range combinedOverrides + 1 {
		many = append(many, patching(fmt.Sprintf("m%d", i), refer(fmt.Sprintf("s%d", i))))
	}
	wide := make([]string, 0, namedNeeds+1)
	for i := range namedNeeds + 1 {
		wide = append(wide, refer(fmt.Sprintf("s%d", i)))
	}
	for name, test := range map[string]struct {
		overrides []v1alpha1.Override
		want      string
	}{
		"the template's alone":                   {nil, "get secrets base"},
		"one that no cluster is chosen by today": {[]v1alpha1.Override{patching("m1", refer("eu"))}, "get secrets base, get secrets eu"},
		"two that only together refer to it": {[]v1alpha1.Override{patching("m1", refer("eu")), patching("m2", second)},
			"get secrets base, get secrets eu, get secrets together"},
		"too many to combine": {many, "get configmaps, get persistentvolumeclaims, get secrets, get serviceaccounts"},
		"too many names": {[]v1alpha1.Override{patching("m1", wide...)},
			"get configmaps, get persistentvolumeclaims, get secrets, get serviceaccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			p := shipping(t, test.overrides...)
			var got []string
			for _, right := range p.Rights(p.NeedsAnywhere()) {
				if right.Namespace != "shop" {
					t.Errorf("%s is asked for in %q", right, right.Namespace)
				}
				got = append(got, right.String())
			}
			want := append([]string{"create deployments.apps", "create services"}, strings.Split(test.want, ", ")...)
			if !slices.Equal(got, want) {
				t.Errorf("it takes %q, not %q", got, want)
			}
		})
	}
}

// As much is looked at, and named, as the limits say.
func TestRightsAreNamedWhereTheyAreFew(t *testing.T) {
	refer := func(name string, n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(`{"op":"add","path":"/spec/template/spec/containers/0/envFrom/-","value":{"secretRef":{"name":"%s%d"}}}`, name, i))
		}
		return all
	}
	for _, test := range []struct {
		overrides, names int
		named            bool
	}{{combinedOverrides, 1, true}, {combinedOverrides + 1, 1, false}, {1, namedNeeds - 1, true}, {1, namedNeeds, false}} {
		var overrides []v1alpha1.Override
		for i := range test.overrides {
			name := fmt.Sprintf("m%d", i)
			overrides = append(overrides, patching(name, refer(name, test.names)...))
		}
		needs := shipping(t, overrides...).NeedsAnywhere()
		if named := len(needs) == 1+test.overrides*test.names; named != test.named || !named && needs[0].Name != "" {
			t.Errorf("%d overrides with %d names: %d needs, the first of %q", test.overrides, test.names, len(needs), needs[0].Name)
		}
	}
	p := shipping(t, patching("m1", refer("eu", 1)...))
	for size, named := range map[int]bool{combinedBytes / 2: true, combinedBytes/2 + 1: false} {
		if p.size = int64(size); (p.NeedsAnywhere()[0].Name != "") != named {
			t.Errorf("%d bytes: named are %v", size, p.NeedsAnywhere())
		}
	}
}

// Nothing is read of what does not travel.
func TestWhatStaysNeedsNoRight(t *testing.T) {
	p := shipping(t)
	p.fw.Spec.Dependencies = v1alpha1.DependencyPolicyIgnore
	if needs := p.NeedsAnywhere(); len(needs) > 0 {
		t.Errorf("it needs %v", needs)
	}
}

// Kinds without a namespace are asked for in none.
func TestRightsToAKindWithoutANamespace(t *testing.T) {
	p := shipping(t)
	fw := p.fw.DeepCopy()
	fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet"}`)
	fw.Spec.Companions, fw.Spec.Dependencies = nil, ""
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	if p, err = New(fw, kinds); err != nil {
		t.Fatal(err)
	}
	want := Right{Verb: "create", Group: "apps.kruise.io", Resource: "sidecarsets"}
	if got := p.Rights(p.NeedsAnywhere()); len(got) != 1 || got[0] != want {
		t.Errorf("it takes %v, not %v", got, want)
	}
}
