package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`

func ptr[T any](v T) *T { return &v }

var kinds = func() *interpreter.Registry {
	kinds, err := interpreter.New()
	if err != nil {
		panic(err)
	}
	return kinds
}()

func workload(template string, change func(*v1alpha1.FleetWorkload)) *v1alpha1.FleetWorkload {
	fw := &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: "b", Template: runtime.RawExtension{Raw: []byte(template)},
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
		},
	}
	if change != nil {
		change(fw)
	}
	return fw
}

var fleet = backends.Fleet{Clusters: []backends.Cluster{
	{Name: "m1", Labels: map[string]string{"tier": "a"}}, {Name: "m2", Labels: map[string]string{"tier": "b"}},
	{Name: "m3", Labels: map[string]string{"tier": "b"}},
}}

func divided(total int32, weights ...v1alpha1.ClusterWeight) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Replicas = &total
		fw.Spec.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: weights}
	}
}

func weight(n int32, names ...string) v1alpha1.ClusterWeight {
	return v1alpha1.ClusterWeight{Clusters: &v1alpha1.ClusterSelector{Names: names}, Weight: &n}
}

func TestTargetsDivide(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		want   map[string]int32
	}{
		"two to one to one":                  {divided(8, weight(2, "m1"), weight(1)), map[string]int32{"m1": 4, "m2": 2, "m3": 2}},
		"duplicated by default":              {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(2)) }, map[string]int32{"m1": 2, "m2": 2, "m3": 2}},
		"one when nobody says how many":      {nil, map[string]int32{"m1": 1, "m2": 1, "m3": 1}},
		"clusters that get nothing are left": {divided(2, weight(1, "m1"), weight(1, "m2")), map[string]int32{"m1": 1, "m2": 1}},
		"a total of zero keeps every object": {divided(0), map[string]int32{"m1": 0, "m2": 0, "m3": 0}},
		"duplicated zero keeps every object": {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(0)) }, map[string]int32{"m1": 0, "m2": 0, "m3": 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New(workload(deployment, test.change), kinds)
			if err != nil {
				t.Fatal(err)
			}
			targets, err := p.Targets(fleet, []string{"m3", "m1", "m2"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int32{}
			for _, target := range targets {
				got[target.Cluster] = *target.Replicas
				n, _, _ := unstructuredInt(target.Manifest.Object, "spec", "replicas")
				if int32(n) != *target.Replicas {
					t.Errorf("manifest of %s has %d replicas, not %d", target.Cluster, n, *target.Replicas)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func unstructuredInt(obj map[string]any, path ...string) (int64, bool, error) {
	for _, key := range path[:len(path)-1] {
		obj, _ = obj[key].(map[string]any)
	}
	n, ok := obj[path[len(path)-1]].(int64)
	return n, ok, nil
}

func TestRevisionIgnoresReplicasAndNothingElse(t *testing.T) {
	of := func(template string, change func(*v1alpha1.FleetWorkload)) string {
		t.Helper()
		p, err := New(workload(template, change), kinds)
		if err != nil {
			t.Fatal(err)
		}
		return p.Revision
	}
	base := of(deployment, nil)
	if got := of(deployment, divided(40)); got != base {
		t.Error("replicas and division changed the revision")
	}
	if got := of(strings.Replace(deployment, `"spec":{`, `"spec":{"replicas":9,`, 1), nil); got != base {
		t.Error("replicas of the template changed the revision")
	}
	if got := of(strings.Replace(deployment, `"kind"`, ` "status":{"replicas":3}, "kind"`, 1), nil); got != base {
		t.Error("a pasted status changed the revision")
	}
	if got := of(strings.Replace(deployment, "nginx:1", "nginx:2", 1), nil); got == base {
		t.Error("another image left the revision")
	}
	if got := of(deployment, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Overrides = []v1alpha1.Override{{Labels: &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}}}}
	}); got == base {
		t.Error("an override left the revision")
	}
	named := func(names ...string) string {
		return of(deployment, func(fw *v1alpha1.FleetWorkload) {
			for i, name := range names {
				fw.Spec.Overrides = append(fw.Spec.Overrides,
					v1alpha1.Override{Name: name, Labels: &v1alpha1.MetadataOverride{Set: map[string]string{"a": fmt.Sprint(i)}}})
			}
		})
	}
	if named("eu", "us") != named("us", "eu") || named("eu", "us") != named("", "") {
		t.Error("names of overrides changed the revision")
	}
}

func TestTemplateIsMarkedAndStripped(t *testing.T) {
	pasted := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"other","uid":"x","resourceVersion":"7",` +
		`"ownerReferences":[{"kind":"X"}],"finalizers":["f"],"labels":{"team":"shop"}},"status":{"replicas":1}}`
	p, err := New(workload(pasted, nil), kinds)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "other", "namespace": "shop",
		"labels":      map[string]any{"team": "shop", v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: "u1"},
		"annotations": map[string]any{v1alpha1.AnnotationOwner: "shop/web", v1alpha1.AnnotationRevision: p.Revision},
	}
	if diff := cmp.Diff(want, p.Template.Object["metadata"]); diff != "" {
		t.Error(diff)
	}
	if _, found := p.Template.Object["status"]; found {
		t.Error("the status is still there")
	}
}

func TestRefusals(t *testing.T) {
	with := func(change func(*v1alpha1.FleetWorkloadSpec)) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) { change(&fw.Spec) }
	}
	tests := map[string]struct {
		template string
		change   func(*v1alpha1.FleetWorkload)
		code     backends.Code
		message  string
	}{
		"no kind":       {`{"apiVersion":"apps/v1"}`, nil, backends.CodeInvalidTemplate, "spec.template.kind: required"},
		"no apiVersion": {`{"kind":"Deployment"}`, nil, backends.CodeInvalidTemplate, "spec.template.apiVersion: required"},
		"not an object": {`null`, nil, backends.CodeInvalidTemplate, "spec.template: it is not an object"},
		"another namespace": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"kube-system"}}`, nil,
			backends.CodeInvalidTemplate, `spec.template.metadata.namespace "kube-system": a FleetWorkload ships only into its own namespace`,
		},
		"a bad name": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"Web_1"}}`, nil,
			backends.CodeInvalidTemplate, `spec.template.metadata.name "Web_1"`,
		},
		"an amount that takes for ever to read": {
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"a","value":"1e9999"}],` +
				`"resources":{"limits":{"cpu":"1e-999999999"}}}]}}}}`, nil,
			backends.CodeInvalidTemplate, `spec.template "1e-999999999": spec.template.spec.containers[0].resources.limits.cpu has more digits`,
		},
		"a kind that nobody described": {
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding"}`, nil, backends.CodeUnsupported, "let an administrator describe it",
		},
		"replicas of a kind without": {
			`{"apiVersion":"batch/v1","kind":"Job"}`, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) },
			backends.CodeInvalidTemplate, `spec.replicas "3": a Job has no replicas that could be set`,
		},
		"a division of a kind without replicas": {
			`{"apiVersion":"batch/v1","kind":"Job"}`, func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided}
			}, backends.CodeInvalidPlacement, "spec.placement.division.type \"Divided\": a Job has no replicas to divide",
		},
		"replicas that are no number": {
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":"3"}}`, nil, backends.CodeInvalidTemplate, "spec.template.spec.replicas",
		},
		"a patch on a missing path": {deployment, with(func(s *v1alpha1.FleetWorkloadSpec) {
			s.Overrides = []v1alpha1.Override{{Patches: []v1alpha1.PatchOperation{{Op: v1alpha1.PatchOpRemove, Path: "/spec/nothing"}}}}
		}), backends.CodeInvalidOverride, `spec.overrides[0].patches[0].path "/spec/nothing"`},
		"a partition of a kind without": {deployment, with(func(s *v1alpha1.FleetWorkloadSpec) {
			s.Overrides = []v1alpha1.Override{{Partition: ptr(intstr.FromString("50%"))}}
		}), backends.CodeInvalidOverride, `spec.overrides[0].partition "50%": a Deployment has no partition`},
		"a percentage of a kind that counts pods": {
			`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"DaemonSet"}`, with(func(s *v1alpha1.FleetWorkloadSpec) {
				s.Overrides = []v1alpha1.Override{{Partition: ptr(intstr.FromInt32(1))}, {Partition: ptr(intstr.FromString("50%"))}}
			}), backends.CodeInvalidOverride, `spec.overrides[1].partition "50%": apps.kruise.io/v1alpha1 DaemonSet takes a number of pods`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(workload(test.template, test.change), kinds)
			if backends.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %s %v, want %s %s", backends.CodeOf(err), err, test.code, test.message)
			}
		})
	}
}

func TestNamesMustBeKnown(t *testing.T) {
	ghost := &v1alpha1.ClusterSelector{Names: []string{"m1", "ghost"}}
	for name, test := range map[string]struct {
		spec v1alpha1.FleetWorkloadSpec
		want string
	}{
		"placement": {v1alpha1.FleetWorkloadSpec{Placement: v1alpha1.Placement{Clusters: ghost}}, `spec.placement.clusters.names[1] "ghost": the backend knows no such cluster; it knows: m1, m2, m3`},
		"weights": {v1alpha1.FleetWorkloadSpec{Placement: v1alpha1.Placement{Division: &v1alpha1.Division{Weights: []v1alpha1.ClusterWeight{{Clusters: ghost}}}}},
			`spec.placement.division.weights[0].clusters.names[1] "ghost"`},
		"overrides": {v1alpha1.FleetWorkloadSpec{Overrides: []v1alpha1.Override{{}, {Clusters: ghost}}}, `spec.overrides[1].clusters.names[1] "ghost"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckNames(test.spec, fleet)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if err := CheckNames(v1alpha1.FleetWorkloadSpec{Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}, Exclude: []string{"gone"}}}}, fleet); err != nil {
		t.Errorf("a known name, and an excluded one that is gone, gave %v", err)
	}
}

func TestInputIsNotChanged(t *testing.T) {
	fw := workload(deployment, divided(5, weight(1)))
	before := fw.DeepCopy()
	p, err := New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	template := p.Template.DeepCopy()
	if _, err := p.Targets(fleet, []string{"m1", "m2"}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, fw) + cmp.Diff(template, p.Template); diff != "" {
		t.Error(diff)
	}
}

func TestAllowedKindsAreCarried(t *testing.T) {
	gadget := workload(`{"apiVersion":"example.io/v2","kind":"Gadget"}`, nil)
	for _, allowed := range []schema.GroupKind{{Group: "example.io", Kind: "Gadget"}, {Group: "example.io", Kind: interpreter.AnyKind}} {
		p, err := New(gadget, kinds.Allowing(allowed))
		if err != nil {
			t.Fatal(err)
		}
		if p.Query.Workload.Resource != "gadgets" || p.Kind.Known() {
			t.Errorf("got %+v", p.Query.Workload)
		}
	}
	if _, err := New(gadget, kinds); err == nil {
		t.Error("a kind that nobody allowed is carried")
	}
}

func TestDescribedKindsAreCarried(t *testing.T) {
	described, err := interpreter.New(interpreter.Description{Group: "example.io", Version: "v1", Kind: "Gadget", Resource: "gadgets",
		Health: interpreter.Health{Healthy: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(workload(`{"apiVersion":"example.io/v1","kind":"Gadget","spec":{"size":3}}`, nil), described)
	if err != nil {
		t.Fatal(err)
	}
	if w := p.Query.Workload; w.Resource != "gadgets" || w.Namespace != "shop" || p.Replicas != nil {
		t.Errorf("got %+v", w)
	}
}

func TestPartitions(t *testing.T) {
	for template, want := range map[string]any{
		`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}`:   "50%",
		`{"apiVersion":"apps/v1","kind":"StatefulSet"}`:                int64(2),
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"StatefulSet"}`: int64(2),
		`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet"}`: "50%",
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"DaemonSet"}`:   "50%",
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet"}`:  "50%",
	} {
		p, err := New(workload(template, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Overrides = []v1alpha1.Override{{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Partition: ptr(intstr.FromString("50%"))}}
		}), kinds)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if len(p.Kind.ReplicasPath()) > 0 {
			p.Replicas = ptr(int32(4))
		}
		targets, err := p.Targets(fleet, []string{"m1", "m2"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		path := strings.Split(p.Kind.Partition.Path, ".")
		for i, want := range []any{want, nil} {
			if got, _, _ := unstructured.NestedFieldNoCopy(targets[i].Manifest.Object, path...); got != want {
				t.Errorf("%s on %s: %v, want %v", template, targets[i].Cluster, got, want)
			}
		}
	}
}

// TestSharesAreRefusedByField: a UnitedDeployment whose subsets do not take a cluster's replicas says whose fault it is.
func TestSharesAreRefusedByField(t *testing.T) {
	const united = `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"UnitedDeployment","spec":{"topology":{"subsets":[` +
		`{"name":"a","replicas":%s}]},"template":{"deploymentTemplate":{"spec":{"template":{"spec":{"containers":[]}}}}}}}`
	for field, c := range map[string]struct {
		replicas string
		change   func(*v1alpha1.FleetWorkload)
	}{
		"spec.template": {"4", divided(4)},
		"spec.overrides": {`"50%"`, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Replicas = ptr(int32(4))
			fw.Spec.Overrides = []v1alpha1.Override{{Patches: []v1alpha1.PatchOperation{
				{Op: v1alpha1.PatchOpRemove, Path: "/spec/topology/subsets/0/name"}}}}
		}},
	} {
		p, err := New(workload(strings.Replace(united, "%s", c.replicas, 1), c.change), kinds)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Targets(fleet, []string{"m1", "m2"}, nil)
		var refusal *backends.Error
		if !errors.As(err, &refusal) || refusal.Field != field || refusal.Remedy == "" {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// TestWhatMakesAnotherRevision (law 4): whatever makes another manifest on some cluster, replicas left out; reports on an older one do not count.
func TestWhatMakesAnotherRevision(t *testing.T) {
	tagged := func(name, tag string, clusters ...string) v1alpha1.Override {
		return v1alpha1.Override{
			Name: name, Clusters: &v1alpha1.ClusterSelector{Names: clusters}, Images: []v1alpha1.ImageOverride{{Container: "web", Tag: tag}},
		}
	}
	revision := func(template string, overrides ...v1alpha1.Override) string {
		p, err := New(workload(template, with(nil, overrides...)), kinds)
		if err != nil {
			t.Fatal(err)
		}
		return p.Revision
	}
	two := tagged("eu", "2", "m1")
	numberedToo := two
	numberedToo.Replicas = new(int32)
	for name, test := range map[string]struct {
		before, after string
		same          bool
	}{
		"another image":                {revision(deployment), revision(strings.Replace(deployment, "nginx:1", "nginx:2", 1)), false},
		"an override":                  {revision(deployment), revision(deployment, two), false},
		"another value in it":          {revision(deployment, two), revision(deployment, tagged("eu", "3", "m1")), false},
		"other clusters":               {revision(deployment, two), revision(deployment, tagged("eu", "2", "m2")), false},
		"another name of the override": {revision(deployment, two), revision(deployment, tagged("us", "2", "m1")), true},
		"a number in it":               {revision(deployment, two), revision(deployment, numberedToo), true},
		"an override of a number":      {revision(deployment), revision(deployment, numbered(3, "m1")), true},
		"such a one beside another":    {revision(deployment, two), revision(deployment, two, numbered(3, "m1")), true},
	} {
		if same := test.before == test.after; same != test.same {
			t.Errorf("%s: %s becomes %s", name, test.before, test.after)
		}
	}
}
