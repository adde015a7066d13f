package plan

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// sized is a Deployment of so many bytes, with a list of many elements, a map of many keys, and much environment.
func sized(bytes int) string {
	var list, keys, env strings.Builder
	for i := 0; list.Len() < bytes/3; i++ {
		list.WriteString(",0")
		if keys.Len() < bytes/3 {
			fmt.Fprintf(&keys, `,"k%d":0`, i)
		}
		if env.Len() < bytes/3 {
			fmt.Fprintf(&env, `,{"name":"e%d"}`, i)
		}
	}
	return `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"list":[0` + list.String() + `],"map":{"k":0` + keys.String() +
		`},"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1","env":[{"name":"e"}` +
		env.String() + `]}]}}}}`
}

// small is a Deployment with so many objects of one field.
func small(objects int) string {
	return strings.Replace(deployment, `"spec":{`, `"spec":{"list":[0`+strings.Repeat(`,{"a":0}`, objects)+`],`, 1)
}

// TestObjectsAreCounted: those in JSON, and not what looks like one in a text.
func TestObjectsAreCounted(t *testing.T) {
	for text, want := range map[string]int{`{}`: 1, `[{"a":{}},{}]`: 3, `{"{":"}{{","b":"\\"}`: 1, `{"a":"\"{","b":{}}`: 2, `{"a\\":{"b":"{\\\""}}`: 2, ``: 0} {
		if got := objectsIn([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// fleetOf is a fleet of so many clusters; cluster i has the label bit<j> when j is a bit of i.
func fleetOf(n int) (backends.Fleet, []string) {
	var fleet backends.Fleet
	var names []string
	for i := range n {
		c := backends.Cluster{Name: fmt.Sprintf("m%04d", i), Labels: map[string]string{}}
		for j := range 10 {
			c.Labels[fmt.Sprint("bit", j)] = fmt.Sprint(i >> j & 1)
		}
		fleet.Clusters, names = append(fleet.Clusters, c), append(names, c.Name)
	}
	return fleet, names
}

func bit(j int, o v1alpha1.Override) v1alpha1.Override {
	o.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint("bit", j): "1"}}}
	return o
}

func patched(n int, op v1alpha1.PatchOp, path, value string) v1alpha1.Override {
	var o v1alpha1.Override
	for range n {
		p := v1alpha1.PatchOperation{Op: op, Path: path}
		if value != "" {
			p.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
		}
		o.Patches = append(o.Patches, p)
	}
	return o
}

func repeated(n int, o v1alpha1.Override) []v1alpha1.Override {
	list := make([]v1alpha1.Override, n)
	for i := range list {
		list[i] = bit(i%10, o)
	}
	return list
}

// worst are specs that the schema admits, and what of them is refused; empty when they are carried out.
func worst() map[string]struct {
	fw      *v1alpha1.FleetWorkload
	refused string
} {
	type spec struct {
		fw      *v1alpha1.FleetWorkload
		refused string
	}
	overridden := func(size int, overrides ...v1alpha1.Override) *v1alpha1.FleetWorkload {
		return workload(sized(size), func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides = overrides })
	}
	env := v1alpha1.Override{}
	for range 32 {
		e := v1alpha1.EnvOverride{Container: "web"}
		for j := range 128 {
			e.Set = append(e.Set, v1alpha1.EnvVar{Name: fmt.Sprint("n", j)})
			e.Remove = append(e.Remove, fmt.Sprint("r", j))
		}
		env.Env = append(env.Env, e)
	}
	values := make([]string, placement.MaxRequirements)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	requirement := []metav1.LabelSelectorRequirement{{Key: "bit0", Operator: metav1.LabelSelectorOpIn, Values: values}}
	failing := patched(64, v1alpha1.PatchOpReplace, "/spec/missing", `1`)
	divide := func(size int) *v1alpha1.FleetWorkload {
		return workload(sized(size), func(fw *v1alpha1.FleetWorkload) {
			var weights []v1alpha1.ClusterWeight
			for i := range 100 {
				weights = append(weights, weight(int32(1+i), fmt.Sprintf("m%04d", i)))
			}
			divided(1_000_000, weights...)(fw)
		})
	}
	return map[string]struct {
		fw      *v1alpha1.FleetWorkload
		refused string
	}{
		"the largest template":         spec{fw: overridden(maxTemplate - 1000)},
		"a template that is too large": spec{overridden(maxTemplate + 1000), "spec.template"},
		"companions that are too large": spec{workload(deployment, func(fw *v1alpha1.FleetWorkload) {
			for i := range 3 {
				fw.Spec.Companions = append(fw.Spec.Companions, k8sruntime.RawExtension{Raw: fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 400<<10))})
			}
		}), "spec.companions"},
		"companions that are too large for 1000 clusters": spec{workload(deployment, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Companions = []k8sruntime.RawExtension{{Raw: fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":%q}}`, strings.Repeat("x", 100<<10))}}
		}), "spec.companions"},
		"1000 manifests of 512 objects in 4 KiB": spec{workload(small(512), func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Overrides = repeated(10, patched(1, v1alpha1.PatchOpAdd, "/spec/x", `1`))
		}), "spec.overrides"},
		"a template of 60,000 objects": spec{workload(small(60_000), nil), "spec.template"},
		"companions of 60,000 objects": spec{workload(deployment, carrying(small(60_000))), "spec.companions"},
		"17 companions on 1000 clusters": spec{workload(deployment, func(fw *v1alpha1.FleetWorkload) {
			for i := range 17 {
				fw.Spec.Companions = append(fw.Spec.Companions, k8sruntime.RawExtension{Raw: fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"}}`, i)})
			}
		}), "spec.companions"},
		"four overrides of 64 patches that fail, on 869 KiB": spec{overridden(869<<10, repeated(4, failing)...), "spec.overrides[0].patches[0].path"},
		"64 overrides of 64 patches that fail here and there, on 100 KiB": spec{overridden(100<<10, append([]v1alpha1.Override{
			bit(0, patched(1, v1alpha1.PatchOpAdd, "/spec/missing", `1`))}, repeated(63, failing)...)...), "spec.overrides[2].patches[0].path"},
		"64 overrides of 64 patches of a list, on 32 KiB":  spec{overridden(32<<10, repeated(64, patched(64, v1alpha1.PatchOpAdd, "/spec/list/0", `0`))...), "spec.overrides"},
		"64 overrides of 64 patches of a list, on 900 KiB": spec{overridden(900<<10, repeated(64, patched(64, v1alpha1.PatchOpAdd, "/spec/list/0", `0`))...), "spec.overrides"},
		"two overrides of 4 patches of a list, on 900 KiB": spec{fw: overridden(900<<10, repeated(2, patched(4, v1alpha1.PatchOpAdd, "/spec/list/0", `0`))...)},
		"64 overrides of metadata by patches, on 4 KiB":    spec{fw: overridden(3<<10, repeated(10, patched(64, v1alpha1.PatchOpAdd, "/metadata/labels/x", `"y"`))...), refused: "spec.overrides"},
		"64 overrides of all variables, on 20 KiB":         spec{overridden(20<<10, repeated(64, env)...), "spec.overrides"},
		"one override of all variables, on 400 KiB":        spec{overridden(400<<10, env), "spec.overrides"},
		"one override of all variables, on 4 KiB":          spec{fw: overridden(4<<10, env)},
		"300 manifests of 348 KiB":                         spec{overridden(348<<10, repeated(10, patched(1, v1alpha1.PatchOpAdd, "/spec/x", `1`))...), "spec.overrides"},
		"1000 manifests of 4 KiB":                          spec{fw: overridden(4<<10, repeated(10, patched(1, v1alpha1.PatchOpAdd, "/spec/x", `1`))...)},
		"patches of 100 KiB for 1000 sets of overrides":    spec{overridden(1<<10, repeated(10, patched(1, v1alpha1.PatchOpAdd, "/spec/x", `"`+strings.Repeat("x", 100<<10)+`"`))...), "spec.overrides"},
		"100 shares of 900 KiB":                            spec{divide(900 << 10), "spec.template"},
		"100 shares of 300 KiB":                            spec{fw: divide(300 << 10)},
		"a selector of as many values as may be":           spec{fw: selecting(requirement, 0)},
		"a selector of too many values":                    spec{selecting(requirement, 1), "spec.placement"},
		"overrides with selectors of too many values":      spec{selecting(nil, 0, requirement...), "spec.overrides"},
	}
}

func selecting(of []metav1.LabelSelectorRequirement, more int, overrides ...metav1.LabelSelectorRequirement) *v1alpha1.FleetWorkload {
	return workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		if len(of) > 0 {
			of = []metav1.LabelSelectorRequirement{{Key: of[0].Key, Operator: of[0].Operator, Values: of[0].Values[:len(of[0].Values)-1+more]}}
		}
		fw.Spec.Placement.Clusters.Selector = &metav1.LabelSelector{MatchExpressions: of}
		for _, o := range overrides {
			fw.Spec.Overrides = append(fw.Spec.Overrides, v1alpha1.Override{
				Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{o}}}})
		}
	})
}

// planned makes the manifests of 1,000 clusters.
func planned(fw *v1alpha1.FleetWorkload, fleet backends.Fleet, names []string) ([]backends.Target, error) {
	p, err := New(fw, kinds)
	if err != nil {
		return nil, err
	}
	return p.Targets(fleet, names, nil)
}

// TestBudgets: what costs too much is refused by field, value, limit and remedy, and what does not is carried out.
func TestBudgets(t *testing.T) {
	fleet, names := fleetOf(1000)
	for name, test := range worst() {
		t.Run(name, func(t *testing.T) {
			targets, err := planned(test.fw, fleet, names)
			var refusal *backends.Error
			switch {
			case test.refused == "" && (err != nil || len(targets) == 0):
				t.Errorf("%d targets, %v", len(targets), err)
			case test.refused == "":
			case !errors.As(err, &refusal):
				t.Errorf("%d targets, %v", len(targets), err)
			case refusal.Field != test.refused || refusal.Value == "" || refusal.Remedy == "":
				t.Errorf("got %v", err)
			case !strings.HasPrefix(test.refused, "spec.overrides[") && !strings.Contains(refusal.Message, "the limit is"):
				t.Errorf("no limit in %v", err)
			}
		})
	}
}

// TestBudgetsBoundMemory: what is carried out, and what is left of what is refused, stays below 64 MiB.
func TestBudgetsBoundMemory(t *testing.T) {
	const most = 64 << 20
	fleet, names := fleetOf(1000)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, test := range worst() {
		before := live()
		p, err := New(test.fw, kinds)
		if err == nil {
			_, _ = p.Targets(fleet, names, nil)
		}
		if after := live(); after > before+most {
			t.Errorf("%s: %d MiB", name, (after-before)>>20)
		}
		runtime.KeepAlive(p)
	}
}

// TestBudgetsAllowAsMuchAsTheySay: what is as large as a limit is carried out, and what is one more is refused.
func TestBudgetsAllowAsMuchAsTheySay(t *testing.T) {
	companion := func(bytes int) *v1alpha1.FleetWorkload {
		const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":""}}`
		raw := strings.Replace(object, `""`, `"`+strings.Repeat("x", bytes-len(object))+`"`, 1)
		return workload(deployment, carrying(raw))
	}
	template := func(bytes int) *v1alpha1.FleetWorkload {
		return workload(deployment+strings.Repeat(" ", bytes-len(deployment)), nil)
	}
	values := make([]string, placement.MaxRequirements)
	selectors := func(n int) *v1alpha1.FleetWorkload {
		return selecting(nil, 0, metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values[:n-1]})
	}
	p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides = []v1alpha1.Override{{}} }), kinds)
	if err != nil {
		t.Fatal(err)
	}
	size := p.size
	for name, refused := range map[string]func(more int) error{
		"a template":             func(more int) error { return checkSizes(template(maxTemplate + more)) },
		"companions":             func(more int) error { return checkSizes(companion(maxTemplate + more)) },
		"selectors of overrides": func(more int) error { return checkSizes(selectors(placement.MaxRequirements + more)) },
		"companions of clusters": func(more int) error {
			carrying := &Plan{fw: companion(64 << 10)}
			return carrying.checkCarried(1024 + more)
		},
		"objects": func(more int) error {
			return checkSizes(workload(small(maxObjects-objectsIn([]byte(deployment))+more), nil))
		},
		"objects of companions": func(more int) error {
			return checkSizes(workload(deployment, carrying(small(maxObjects-objectsIn([]byte(deployment))-1+more), `{}`)))
		},
		"dependencies": func(more int) error {
			large := &unstructured.Unstructured{Object: map[string]any{"a": strings.Repeat("x", maxCarried>>10-9)}}
			all := []backends.Companion{{Object: large}, {Object: &unstructured.Unstructured{}, Clusters: []string{"m1"}}}
			return CheckDependencies(all[:1+more], 1<<10)
		},
		"objects that travel along": func(more int) error {
			return CheckCompanionObjects("spec.dependencies", maxCompanionObjects/10+more, 10)
		},
		"trying overrides": func(more int) error {
			p.size = maxOverriding - p.overrides.Cost(0, "") + int64(more)
			defer func() { p.size = size }()
			return p.checkOverriding()
		},
		"sets of overrides": func(more int) error {
			return (&manifests{variants: maxVariants - p.overrides.Cost(size, "1") + int64(more)}).spendOverridden(p, "1")
		},
		"objects of sets of overrides": func(more int) error {
			return (&manifests{objects: maxMade - p.objects + more}).spendOverridden(p, "1")
		},
		"manifests": func(more int) error {
			return (&manifests{size: maxManifests - p.overrides.Size(size, "1") + int64(more)}).spend(p, variation{overrides: "1"})
		},
	} {
		if enough, tooMuch := refused(0), refused(1); enough != nil || tooMuch == nil {
			t.Errorf("%s: %v, and with one more: %v", name, enough, tooMuch)
		}
	}
}

// TestObjectsThatTravelAlongAreCountedOnAllClusters: a person sees what to have fewer of.
func TestObjectsThatTravelAlongAreCountedOnAllClusters(t *testing.T) {
	err := CheckCompanionObjects("spec.companions", 17, 1000)
	if err == nil || !strings.Contains(err.Error(), "on 1000 clusters they are 17000 together, and the limit is 16000") {
		t.Errorf("got %v", err)
	}
}

// TestWhatFailsFailsAgain: of a manifest that cannot be made nothing is kept for the next cluster, or the next pass.
func TestWhatFailsFailsAgain(t *testing.T) {
	fw := workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		missing := patched(1, v1alpha1.PatchOpReplace, "/spec/missing/x", `1`)
		fw.Spec.Overrides = []v1alpha1.Override{bit(0, patched(1, v1alpha1.PatchOpAdd, "/spec/missing", `{"x":0}`)), bit(1, missing)}
	})
	p, err := New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	fleet, _ := fleetOf(4)
	for range 2 {
		if targets, err := p.Targets(fleet, []string{"m0002"}, nil); backends.CodeOf(err) != backends.CodeInvalidOverride {
			t.Errorf("%v, %v", targets, err)
		}
	}
	if targets, err := p.Targets(fleet, []string{"m0003"}, nil); err != nil || len(targets) != 1 {
		t.Errorf("%v, %v", targets, err)
	}
}

// TestManifestsAreShared: clusters with the same overrides and replicas have one manifest, and none that is changed for another.
func TestManifestsAreShared(t *testing.T) {
	fleet, names := fleetOf(64)
	fw := workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		divided(200, weight(2, "m0000", "m0001"), weight(1))(fw)
		fw.Spec.Overrides = []v1alpha1.Override{bit(0, patched(1, v1alpha1.PatchOpAdd, "/spec/x", `1`)), bit(1, patched(1, v1alpha1.PatchOpAdd, "/spec/y", `2`))}
	})
	targets, err := planned(fw, fleet, names)
	if err != nil {
		t.Fatal(err)
	}
	made := map[any]bool{}
	for i, target := range targets {
		made[target.Manifest] = true
		spec := target.Manifest.Object["spec"].(map[string]any)
		for key, want := range map[string]any{"x": nil, "y": nil, "replicas": int64(*target.Replicas)} {
			switch {
			case key == "x" && i&1 == 1:
				want = int64(1)
			case key == "y" && i>>1&1 == 1:
				want = int64(2)
			}
			if got := spec[key]; got != want {
				t.Errorf("%s: %s is %v, want %v", target.Cluster, key, got, want)
			}
		}
	}
	if len(made) > 4*3 {
		t.Errorf("%d manifests were made", len(made))
	}
}

// BenchmarkWorst compares what the costliest specs take, refused or carried out, in one run.
func BenchmarkWorst(b *testing.B) {
	fleet, names := fleetOf(1000)
	for name, test := range worst() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = planned(test.fw, fleet, names)
			}
		})
	}
}

// TestDependenciesAreBounded by what they are in bytes on all clusters that need them, whatever their number.
func TestDependenciesAreBounded(t *testing.T) {
	settings := func(size int, clusters ...string) backends.Companion {
		return backends.Companion{Clusters: clusters, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": map[string]any{"key": strings.Repeat("x", size)},
		}}}
	}
	few := []string{"m1", "m2"}
	for name, test := range map[string]struct {
		dependencies []backends.Companion
		all          int
		refused      bool
	}{
		"none":                       {nil, 1000, false},
		"small ones":                 {[]backends.Companion{settings(4 << 10), settings(4 << 10)}, 1000, false},
		"a large one":                {[]backends.Companion{settings(1 << 20)}, 60, false},
		"a large one, too often":     {[]backends.Companion{settings(1 << 20)}, 64, true},
		"a large one, where needed":  {[]backends.Companion{settings(1<<20, few...)}, 1000, false},
		"several together":           {[]backends.Companion{settings(40 << 10), settings(40 << 10)}, 1000, true},
		"a large one that is nobody": {[]backends.Companion{settings(1<<20, []string{}...)}, 10, false},
	} {
		err := CheckDependencies(test.dependencies, test.all)
		if (err != nil) != test.refused {
			t.Errorf("%s: %v", name, err)
		}
		var why *backends.Error
		if err != nil && (!errors.As(err, &why) || why.Field != "spec.dependencies" || why.Remedy == "" || why.Value == "" ||
			!strings.Contains(why.Message, "the limit is 65536 KiB")) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	for _, c := range []backends.Companion{settings(0), settings(100)} {
		raw, err := c.Object.MarshalJSON()
		if size := jsonSize(c.Object.Object); err != nil || size < int64(len(raw))-16 || size > int64(len(raw))+64 {
			t.Errorf("%d bytes for %s", size, raw)
		}
	}
}
