package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// obj is an object by its apiVersion, kind, namespace and name, with / between.
func obj(group, version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(strings.TrimPrefix(group+"/"+version, "/"))
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func kinds(t *testing.T) *interpreter.Registry {
	t.Helper()
	registry, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// What people ask for, in the words of kubectl, is one of the objects, or they are told why not.
func TestChoose(t *testing.T) {
	objects := []*unstructured.Unstructured{
		obj("apps", "v1", "Deployment", "shop", "web"), obj("apps", "v1", "Deployment", "bank", "web"), obj("apps", "v1", "StatefulSet", "shop", "db"),
		obj("apps", "v1beta1", "StatefulSet", "shop", "db"), // the same one in another version
		obj("apps.kruise.io", "v1beta1", "StatefulSet", "shop", "db"), obj("", "v1", "ConfigMap", "shop", "web"),
		obj("example.com", "v1", "Fleet", "", "wide"),
	}
	for name, tc := range map[string]struct {
		kind, namespace, name string
		want                  string
	}{
		"a kind":                        {"deployment", "shop", "", "apps/Deployment/shop/web"},
		"several":                       {"Deployments", "bank", "web", "apps/Deployment/bank/web"},
		"in two namespaces":             {"deployment", "", "web", "deployment/web may be any of Deployment bank/web, Deployment shop/web: say which"},
		"a group":                       {"statefulset.apps", "shop", "", "apps/StatefulSet/shop/db"},
		"another group":                 {"statefulsets.apps.kruise.io", "shop", "db", "apps.kruise.io/StatefulSet/shop/db"},
		"either group":                  {"statefulset", "", "db", "statefulset/db may be any of StatefulSet.apps shop/db, StatefulSet.apps.kruise.io shop/db: say which"},
		"a group that has none":         {"deployment.kruise.io", "shop", "", "deployment.kruise.io/* of namespace shop is not among"},
		"a name":                        {"", "bank", "web", "apps/Deployment/bank/web"},
		"a name that nothing has":       {"", "", "api", "workload/api is not among"},
		"a kind that nothing has":       {"daemonset", "", "", "daemonset/* is not among"},
		"a namespace that has none":     {"", "blog", "", "a workload is not among"},
		"anything":                      {"", "", "", "a workload may be any of Deployment bank/web, Deployment shop/web, StatefulSet.apps shop/db, StatefulSet.apps.kruise.io shop/db: say"},
		"what is no workload by itself": {"configmap", "", "", "/ConfigMap/shop/web"},
		"what has no namespace":         {"fleet", "shop", "wide", "example.com/Fleet//wide"},
		"its plural, with its group":    {"fleets.example.com", "", "", "example.com/Fleet//wide"},
	} {
		chosen, err := Request{Kind: tc.kind, Namespace: tc.namespace, Name: tc.name, Kinds: kinds(t)}.choose(objects)
		got := fmt.Sprint(err)
		if err == nil {
			got = id(chosen)
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Many are shortened, for a person; what just fits is written out.
func TestManyAreShortened(t *testing.T) {
	names := strings.Fields("a b c d e f g h i j k l m n")
	for n, want := range map[int]string{12: "l", 13: "# and 1 more alike", 14: "# and 2 more alike"} {
		if got := shortened(names[:n]); len(got) != min(n, 13) || got[len(got)-1] != want {
			t.Errorf("%d commands: %q, want them to end with %q", n, got, want)
		}
	}
	for n, want := range map[int]int{119: 119, 120: 120, 121: 123} {
		if got := []rune(cut(strings.Repeat("ü", n))); len(got) != want {
			t.Errorf("of %d letters %d are left, want %d", n, len(got), want)
		}
	}
	for n, want := range map[int]int{6: 6, 7: 1} {
		var objects []*unstructured.Unstructured
		for range n {
			objects = append(objects, obj("", "v1", "ConfigMap", "shop", "web"))
		}
		if got := strings.Count(save("here", objects...).Commands[0], "kubectl get"); got != want {
			t.Errorf("%d objects are saved by %d commands, want %d", n, got, want)
		}
	}
}

// The name of a list entry is made of any other, and is free.
func TestNameFor(t *testing.T) {
	for name, tc := range map[string]struct {
		from  string
		limit int
		taken []string
		want  string
	}{
		"as it is":                 {"az09", 63, nil, "az09"},
		"of a person's words":      {"First choice!", 63, nil, "first-choice"},
		"of nothing":               {"...", 63, nil, "imported"},
		"the second one":           {"web", 63, []string{"web"}, "web-2"},
		"the fourth one":           {"web", 63, []string{"web", "web-2", "web-3"}, "web-4"},
		"too long":                 {"abcdefgh", 6, nil, "abcdef"},
		"too long, to a separator": {"abcde-fgh", 6, nil, "abcde"},
		"too long, the second one": {"abcdefgh", 6, []string{"abcdef"}, "abcd-2"},
	} {
		taken := map[string]bool{}
		for _, other := range tc.taken {
			taken[other] = true
		}
		if got := nameFor(tc.from, tc.limit, func(n string) bool { return taken[n] }); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestIsEmpty(t *testing.T) {
	for _, said := range []any{true, "a", int64(-1), 0.5, []any{nil}, map[string]any{"a": map[string]any{"b": 1.5}}, struct{}{}} {
		if jsondiff.IsZero(said) {
			t.Errorf("%#v says nothing", said)
		}
	}
	for _, none := range []any{nil, false, "", int64(0), 0.0, []any{}, map[string]any{"a": map[string]any{"b": nil}, "c": []any{}}} {
		if !jsondiff.IsZero(none) {
			t.Errorf("%#v says something", none)
		}
	}
}

func TestLookup(t *testing.T) {
	root := map[string]any{"list": []any{"first", map[string]any{"a/b~c": "escaped"}}, "text": "a"}
	for pointer, want := range map[string]any{
		"/text": "a", "/list/0": "first", "/list/1/a~1b~0c": "escaped", "/list/2": nil, "/list/-1": nil, "/list/-": nil, "/text/deeper": nil, "/none/0": nil,
	} {
		if got := lookup(root, pointer); got != want {
			t.Errorf("%s: %v, want %v", pointer, got, want)
		}
	}
}

// drafted is a draft with two overrides of all there is, and two companions.
func drafted() *draft {
	d := &draft{workload: obj("apps", "v1", "Deployment", "shop", "web"), fw: &v1alpha1.FleetWorkload{}, companions: []string{"Service shop/web", "Role shop/web"}}
	d.fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"kind":"Service"}`)}, {Raw: []byte(`{"kind":"Role"}`)}}
	for _, name := range []string{"first", "second"} {
		d.override(v1alpha1.Override{
			Name:     name,
			Patches:  []v1alpha1.PatchOperation{{Op: "remove", Path: "/spec/a"}, {Op: "add", Path: "/spec/b", Value: &apiextensionsv1.JSON{Raw: []byte("1")}}},
			Images:   []v1alpha1.ImageOverride{{Container: "web", Tag: "1"}, {Container: "side", Tag: "2"}},
			Commands: []v1alpha1.CommandOverride{{Container: "web", Command: []string{"a"}}, {Container: "side", Command: []string{"b"}}},
			Args:     []v1alpha1.ArgsOverride{{Container: "web", Args: []string{"a"}}, {Container: "side", Args: []string{"b"}}},
			Labels:   &v1alpha1.MetadataOverride{Set: map[string]string{"a": "1", "b": "2"}, Remove: []string{"c", "d"}},
			Annotations: &v1alpha1.MetadataOverride{
				Set: map[string]string{"a": "1"}, Remove: []string{"c"},
			},
		}, origin{object: "OverridePolicy shop/" + name, field: "spec.overriders", patches: []string{"spec.overriders.plaintext[0]", "spec.overriders.plaintext[1]"}})
	}
	return d
}

// left is what is left of a draft, in one line.
func left(d *draft) string {
	var parts []string
	for i, o := range d.fw.Spec.Overrides {
		words := []string{o.Name, d.origins[i].object}
		for j, p := range o.Patches {
			words = append(words, p.Path+"@"+d.origins[i].patches[j])
		}
		for _, image := range o.Images {
			words = append(words, "image:"+image.Container)
		}
		for _, c := range o.Commands {
			words = append(words, "command:"+c.Container)
		}
		for _, a := range o.Args {
			words = append(words, "args:"+a.Container)
		}
		parts = append(parts, strings.Join(append(words, shorten(o.Labels), shorten(o.Annotations)), " "))
	}
	for i, c := range d.fw.Spec.Companions {
		parts = append(parts, d.companions[i]+string(c.Raw))
	}
	return strings.Join(parts, "\n")
}

// What the operator refuses is taken out, alone, and told where it came from.
func TestTakeOut(t *testing.T) {
	for field, tc := range map[string]struct {
		// without is what is taken out of the second override, or else the whole draft's text.
		without string
		// want is what is told: the object, the field and the value.
		want string
	}{
		"spec.overrides[1].patches[0]":            {" /spec/a@spec.overriders.plaintext[0]", "OverridePolicy shop/second|spec.overriders.plaintext[0]|remove /spec/a"},
		"spec.overrides[1].patches[1].value":      {" /spec/b@spec.overriders.plaintext[1]", "OverridePolicy shop/second|spec.overriders.plaintext[1]|add /spec/b 1"},
		"spec.overrides[1].images[1]":             {" image:side", `OverridePolicy shop/second|spec.overriders.images|{"container":"side","tag":"2"}`},
		"spec.overrides[1].images[0].container":   {" image:web", `OverridePolicy shop/second|spec.overriders.images|{"container":"web","tag":"1"}`},
		"spec.overrides[1].commands[0]":           {" command:web", `OverridePolicy shop/second|spec.overriders.commands|{"container":"web","command":["a"]}`},
		"spec.overrides[1].commands[1].container": {" command:side", `OverridePolicy shop/second|spec.overriders.commands|{"container":"side","command":["b"]}`},
		"spec.overrides[1].args[0]":               {" args:web", `OverridePolicy shop/second|spec.overriders.args|{"container":"web","args":["a"]}`},
		"spec.overrides[1].args[1]":               {" args:side", `OverridePolicy shop/second|spec.overriders.args|{"container":"side","args":["b"]}`},
		"spec.overrides[1].labels.set[b]":         {`,"b":"2"`, "OverridePolicy shop/second|spec.overriders.labels|b: 2"},
		"spec.overrides[1].labels.remove[1]":      {`,"d"`, "OverridePolicy shop/second|spec.overriders.labels|d"},
		"spec.overrides[1].labels.remove[0]":      {`"c",`, "OverridePolicy shop/second|spec.overriders.labels|c"},
		"spec.overrides[1].annotations.remove[1]": {`{"set":{"a":"1"},"remove":["c"]}`, `OverridePolicy shop/second|spec.overriders.annotations|{"set":{"a":"1"},"remove":["c"]}`},
		"spec.overrides[1].labels":                {`{"set":{"a":"1","b":"2"},"remove":["c","d"]}`, `OverridePolicy shop/second|spec.overriders.labels|{"set":{"a":"1","b":"2"},"remove":["c","d"]}`},
		"spec.overrides[1].annotations.set[none]": {`{"set":{"a":"1"},"remove":["c"]}`, `OverridePolicy shop/second|spec.overriders.annotations|{"set":{"a":"1"},"remove":["c"]}`},
		"spec.companions[1]":                      {"\nRole shop/web{\"kind\":\"Role\"}", "Role shop/web|the whole object|"},
		"spec.companions[1].metadata.name":        {"\nRole shop/web{\"kind\":\"Role\"}", "Role shop/web|metadata.name|"},
		"spec.overrides[1].clusters":              {"second", "OverridePolicy shop/second|spec.overriders.clusters|"},
		"spec.overrides[1].patches[2]":            {"second", "OverridePolicy shop/second|spec.overriders.patches|"},
		"spec.overrides[1].images[2]":             {"second", "OverridePolicy shop/second|spec.overriders.images|"},
		"spec.overrides[1].commands[2]":           {"second", "OverridePolicy shop/second|spec.overriders.commands|"},
		"spec.overrides[1].args[2]":               {"second", "OverridePolicy shop/second|spec.overriders.args|"},
		"spec.overrides[2].patches[0]":            {"", "|spec.overrides[2].patches[0]|"},
		"spec.companions[2]":                      {"", "|spec.companions[2]|"},
		"spec.template":                           {"", "|spec.template|"},
	} {
		d := drafted()
		before := left(d)
		u := Unexpressed{Field: field}
		removed := d.takeOut(&u)
		if got := u.Object + "|" + u.Field + "|" + u.Value; got != tc.want {
			t.Errorf("%s: told %s, want %s", field, got, tc.want)
		}
		if removed != (tc.without != "") {
			t.Errorf("%s: removed: %v", field, removed)
		}
		want := before
		if lines := strings.Split(before, "\n"); tc.without == "second" {
			want = strings.Join([]string{lines[0], lines[2], lines[3]}, "\n")
		} else if tc.without != "" {
			at := strings.LastIndex(before, tc.without)
			put := ""
			if strings.HasPrefix(tc.without, "{") {
				put = "null"
			}
			want = before[:at] + put + before[at+len(tc.without):]
		}
		if diff := cmp.Diff(want, left(d)); diff != "" {
			t.Errorf("%s: is left (-want +got):\n%s", field, diff)
		}
	}
}

// What is within the API's bounds stays whole; one more is left out and told.
func TestBounds(t *testing.T) {
	for _, n := range []int{0, 1} {
		d := drafted()
		names := make([]string, mostNames+n)
		for i := range names {
			names[i] = fmt.Sprintf("c%04d", i)
		}
		for len(d.fw.Spec.Overrides) < mostOverrides+n {
			d.override(v1alpha1.Override{}, origin{})
		}
		for len(d.fw.Spec.Companions) < mostCompanions+n {
			d.fw.Spec.Companions, d.companions = append(d.fw.Spec.Companions, runtime.RawExtension{}), append(d.companions, "")
		}
		o := &d.fw.Spec.Overrides[0]
		o.Patches, o.Images = make([]v1alpha1.PatchOperation, mostPatches+n), make([]v1alpha1.ImageOverride, mostOfOverride+n)
		o.Commands, o.Args = make([]v1alpha1.CommandOverride, mostOfOverride+n), make([]v1alpha1.ArgsOverride, mostOfOverride+n)
		o.Clusters = &v1alpha1.ClusterSelector{Names: names, Exclude: names}
		d.fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: names}
		d.fw.Spec.Placement.Division = &v1alpha1.Division{Weights: make([]v1alpha1.ClusterWeight, mostWeights+n)}
		d.fw.Spec.Placement.Division.Weights[0].Clusters = &v1alpha1.ClusterSelector{Names: names}
		d.bound()
		var told []string
		for _, u := range d.result.Unexpressed {
			told = append(told, u.Field+" "+u.Value)
		}
		var want []string
		if n == 1 {
			want = []string{
				"spec.overrides 65 entries", "spec.companions 33 entries", "spec.overrides[0].patches 65 entries", "spec.overrides[0].images 33 entries",
				"spec.overrides[0].commands 33 entries", "spec.overrides[0].args 33 entries", "spec.overrides[0].clusters.names 1001 entries",
				"spec.overrides[0].clusters.exclude 1001 entries", "spec.placement.division.weights 101 entries",
				"spec.placement.division.weights[0].clusters.names 1001 entries", "spec.placement.clusters.names 1001 entries",
			}
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%d too many (-want +got):\n%s", n, diff)
		}
		if len(d.fw.Spec.Overrides) != 64 || len(d.origins) != 64 || len(d.fw.Spec.Companions) != 32 || len(d.companions) != 32 || len(o.Clusters.Names) != 1000 {
			t.Errorf("%d too many: %d overrides of %d origins, %d companions of %d, %d names", n, len(d.fw.Spec.Overrides), len(d.origins),
				len(d.fw.Spec.Companions), len(d.companions), len(o.Clusters.Names))
		}
	}
}

// TestTolerationsMeanTheSame: whichever backend has them, what it puts on lost clusters is left out, and what is too much is told of the
// FleetWorkload's field.
func TestTolerationsMeanTheSame(t *testing.T) {
	seconds := int64(1) << 40
	var karmada []corev1.Toleration
	var ocm []clusterv1beta1.Toleration
	for n := range 33 {
		karmada = append(karmada, corev1.Toleration{Key: fmt.Sprint("key", n), Operator: corev1.TolerationOpExists})
		ocm = append(ocm, clusterv1beta1.Toleration{Key: fmt.Sprint("key", n), Operator: clusterv1beta1.TolerationOpExists})
	}
	karmada[0].TolerationSeconds, ocm[0].TolerationSeconds = &seconds, &seconds
	karmada, ocm = append(karmada, corev1.Toleration{Key: lostTaints[0]}), append(ocm, clusterv1beta1.Toleration{Key: ocmLostTaints[0]})
	for name, read := range map[string]func(*draft){
		"Karmada":                 func(d *draft) { d.karmadaPlacement("of it", &policyv1alpha1.Placement{ClusterTolerations: karmada}) },
		"Open Cluster Management": func(d *draft) { d.ocmTolerations("of it", ocm) },
	} {
		d := &draft{workload: obj("apps", "v1", "Deployment", "shop", "web"), fw: &v1alpha1.FleetWorkload{}}
		d.fw.Spec.Placement.Failover = &v1alpha1.Failover{}
		read(d)
		got := d.fw.Spec.Placement.Tolerations
		if len(got) != 32 || got[31].Key != "key31" || got[0].TolerationSeconds == nil || *got[0].TolerationSeconds != 31536000 {
			t.Errorf("%s: %+v", name, got)
		}
		if len(d.result.Unexpressed) != 1 || d.result.Unexpressed[0].Field != "spec.placement.tolerations" || len(d.result.Notes) != 1 {
			t.Errorf("%s: %+v, notes %q", name, d.result.Unexpressed, d.result.Notes)
		}
	}
}
