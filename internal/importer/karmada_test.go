package importer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/overridemanager"

	"github.com/fleetworkload/fleetworkload/internal/importer"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// TestOverridesAgreeWithKarmada draws override policies and has Karmada's own code make the manifest of each cluster. What is imported makes the
// same manifests, unless it is told that something cannot be said, or Karmada itself fails on the policies.
func TestOverridesAgreeWithKarmada(t *testing.T) {
	const draws = 2000
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // Karmada logs what it fails on
	exact := 0
	for seed := range uint64(draws) {
		r := rand.New(rand.NewPCG(seed, 7))
		web := drawn(r)
		objects := []*unstructured.Unstructured{web, propagation(web)}
		var policies []*unstructured.Unstructured
		for i := range 1 + r.IntN(3) {
			policies = append(policies, drawPolicy(t, r, i, web))
		}
		result, err := importer.Karmada(request(t), append(objects, policies...))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(result.Unexpressed) > 0 {
			continue
		}
		running, failed := map[string]*unstructured.Unstructured{}, false
		for _, c := range fleet.Clusters {
			running[c.Name] = web.DeepCopy()
			failed = failed || byKarmada(running[c.Name], c.Name, policies) != nil
		}
		if failed {
			continue
		}
		targets, p := targetsOf(t, result.FleetWorkload)
		if p == nil {
			t.Fatalf("seed %d: the operator refuses it, and nobody said so", seed)
		}
		if differ := importer.Compare(running, targets, p.Kind); len(differ) > 0 {
			t.Fatalf("seed %d: imported, the manifests differ from Karmada's:\n%s\npolicies:\n%s\noverrides:\n%s", seed, text(differ), text(contents(policies)),
				text(result.FleetWorkload.Spec.Overrides))
		}
		exact++
	}
	if exact < draws/4 {
		t.Errorf("only %d of %d were compared", exact, draws)
	}
	t.Logf("compared %d of %d", exact, draws)
}

func text(v any) string {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// drawn is a workload of a kind that Karmada knows the containers of, or does not.
func drawn(r *rand.Rand) *unstructured.Unstructured {
	web := workload(3)
	if r.IntN(4) == 0 {
		web.SetAPIVersion("apps.kruise.io/v1alpha1")
		web.SetKind("CloneSet")
	}
	containers := []any{
		map[string]any{"name": "web", "image": pick(r, "nginx:1.27", "r.example.com/team/nginx", "nginx@sha256:"+strings.Repeat("ab", 32), "nginx:1@sha256:"+strings.Repeat("cd", 32)),
			"args": []any{"-a", "-b"}},
		map[string]any{"name": "side", "image": "localhost:5000/side:v1"},
	}
	_ = unstructured.SetNestedSlice(web.Object, containers, "spec", "template", "spec", "containers")
	web.SetAnnotations(map[string]string{"example.com/a": "1"})
	return web
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func propagation(web *unstructured.Unstructured) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceSelectors": []any{
		map[string]any{"apiVersion": web.GetAPIVersion(), "kind": web.GetKind(), "name": "web"},
	}}}}
	obj.SetAPIVersion("policy.karmada.io/v1alpha1")
	obj.SetKind("PropagationPolicy")
	obj.SetNamespace("shop")
	obj.SetName("web")
	return obj
}

// drawPolicy is an override policy of either scope, with one or more rules.
func drawPolicy(t *testing.T, r *rand.Rand, i int, web *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	spec := policyv1alpha1.OverrideSpec{}
	switch r.IntN(4) {
	case 0: // all there is
	case 1:
		spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: web.GetAPIVersion(), Kind: web.GetKind()}}
	default:
		spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: web.GetAPIVersion(), Kind: web.GetKind(), Name: pick(r, "web", "web", "web", "other")}}
	}
	for range 1 + r.IntN(2) {
		rule := policyv1alpha1.RuleWithCluster{Overriders: drawOverriders(r)}
		if r.IntN(3) > 0 {
			rule.TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: pick(r, nil, []string{"member1"}, []string{"member2", "member3"}), ExcludeClusters: pick(r, nil, nil, []string{"member3"})}
		}
		spec.OverrideRules = append(spec.OverrideRules, rule)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": asMap(t, spec)}}
	obj.SetAPIVersion("policy.karmada.io/v1alpha1")
	obj.SetName(fmt.Sprintf("%s-%d", pick(r, "a", "z"), i))
	if obj.SetKind("ClusterOverridePolicy"); r.IntN(2) == 0 {
		obj.SetKind("OverridePolicy")
		obj.SetNamespace(pick(r, "shop", "shop", "shop", "bank"))
	}
	return obj
}

func drawOverriders(r *rand.Rand) (o policyv1alpha1.Overriders) {
	op := func() policyv1alpha1.OverriderOperator {
		return pick(r, policyv1alpha1.OverriderOpReplace, policyv1alpha1.OverriderOpReplace, policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpRemove)
	}
	for range r.IntN(3) {
		component := pick(r, policyv1alpha1.Registry, policyv1alpha1.Repository, policyv1alpha1.Tag)
		image := policyv1alpha1.ImageOverrider{Component: component, Operator: op()}
		image.Value = map[policyv1alpha1.ImageComponent]string{
			policyv1alpha1.Registry: pick(r, "mirror.example.com", "localhost:5000"), policyv1alpha1.Repository: pick(r, "library/x", "y"),
			policyv1alpha1.Tag: pick(r, "v2", "latest", "sha256:"+strings.Repeat("ef", 32)),
		}[component]
		if image.Operator == policyv1alpha1.OverriderOpReplace && r.IntN(6) == 0 {
			image.Value = "" // which takes the part away
		}
		if image.Operator == policyv1alpha1.OverriderOpAdd {
			image.Value = map[policyv1alpha1.ImageComponent]string{policyv1alpha1.Registry: ".local", policyv1alpha1.Repository: "-x", policyv1alpha1.Tag: "-alpine"}[component]
		}
		if r.IntN(2) == 0 {
			image.Predicate = &policyv1alpha1.ImagePredicate{Path: pick(r, "/spec/template/spec/containers/0/image", "/spec/template/spec/containers/1/image")}
		}
		o.ImageOverrider = append(o.ImageOverrider, image)
	}
	for _, list := range []*[]policyv1alpha1.CommandArgsOverrider{&o.CommandOverrider, &o.ArgsOverrider} {
		for range r.IntN(2) {
			*list = append(*list, policyv1alpha1.CommandArgsOverrider{ContainerName: pick(r, "web", "side", "none"),
				Operator: pick(r, policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpRemove), Value: pick(r, []string{"-a"}, []string{"-a", "-b"}, []string{"-c"})})
		}
	}
	for _, list := range []*[]policyv1alpha1.LabelAnnotationOverrider{&o.LabelsOverrider, &o.AnnotationsOverrider} {
		for range r.IntN(3) {
			*list = append(*list, policyv1alpha1.LabelAnnotationOverrider{Operator: op(), Value: map[string]string{pick(r, "app", "example.com/a", "new"): pick(r, "1", "2")}})
		}
	}
	for range r.IntN(2) {
		o.Plaintext = append(o.Plaintext, pick(r,
			policyv1alpha1.PlaintextOverrider{Path: "/spec/minReadySeconds", Operator: "add", Value: apiextensionsv1.JSON{Raw: []byte("5")}},
			policyv1alpha1.PlaintextOverrider{Path: "/spec/template/spec/nodeSelector", Operator: "add", Value: apiextensionsv1.JSON{Raw: []byte(`{"disk":"ssd"}`)}},
			policyv1alpha1.PlaintextOverrider{Path: "/spec/template/spec/containers/0/image", Operator: "replace", Value: apiextensionsv1.JSON{Raw: []byte(`"own:3"`)}},
			policyv1alpha1.PlaintextOverrider{Path: "/spec/template/spec/containers/0/args", Operator: "remove"},
			policyv1alpha1.PlaintextOverrider{Path: "/spec/template/spec/containers/1", Operator: "remove"},
			policyv1alpha1.PlaintextOverrider{Path: "/spec/template/spec/containers/0", Operator: "remove"},
			policyv1alpha1.PlaintextOverrider{Path: "/spec/template/spec/containers/0", Operator: "add", Value: apiextensionsv1.JSON{Raw: []byte(`{"name":"first","image":"first:1"}`)}},
		))
	}
	return o
}

// byKarmada changes a manifest as Karmada does for one cluster. An image whose container an earlier override removes makes it panic.
func byKarmada(manifest *unstructured.Unstructured, cluster string, policies []*unstructured.Unstructured) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("karmada: %v", broken)
		}
	}()
	manager := overridemanager.New(policyReader{policies: policies}, &record.FakeRecorder{})
	_, _, err = manager.ApplyOverridePolicies(manifest, cluster)
	return err
}

// policyReader answers what the override manager asks.
type policyReader struct {
	client.Client
	policies []*unstructured.Unstructured
}

func (c policyReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	known, _ := fleet.Get(key.Name)
	obj.SetName(key.Name)
	obj.SetLabels(known.Labels)
	obj.(*clusterv1alpha1.Cluster).Spec.Provider = known.Attributes["Provider"]
	return nil
}

func (c policyReader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	for _, o := range opts {
		o.ApplyToList(&options)
	}
	kind := strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
	var items []any
	for _, p := range c.policies {
		if p.GetKind() == kind && (options.Namespace == "" || options.Namespace == p.GetNamespace()) {
			items = append(items, p.Object)
		}
	}
	raw, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(raw, list)
}

// TestCompareFindsEverything changes what runs in one place: Compare finds it, and says whether it is of the pods.
func TestCompareFindsEverything(t *testing.T) {
	result, err := importer.Karmada(request(t), []*unstructured.Unstructured{workload(3), propagation(workload(3))})
	if err != nil {
		t.Fatal(err)
	}
	targets, p := targetsOf(t, result.FleetWorkload)
	for path, pods := range map[string]bool{
		"spec.replicas": false, "metadata.labels.app": false, "spec.minReadySeconds": false, "spec.template.spec.priority": true, "spec.template.metadata.labels.app": true,
	} {
		running := map[string]*unstructured.Unstructured{}
		for _, c := range fleet.Clusters {
			running[c.Name] = workload(3)
		}
		if same := importer.Compare(running, targets, p.Kind); len(same) > 0 {
			t.Fatalf("they are the same: %s", text(same))
		}
		keys := strings.Split(path, ".")
		if err := unstructured.SetNestedField(running["member2"].Object, "changed", keys...); err != nil {
			t.Fatal(err)
		}
		got := importer.Compare(running, targets, p.Kind)
		if len(got) != 1 || got[0].Cluster != "member2" || got[0].Pods != pods || len(got[0].Differences) != 1 || got[0].Differences[0].Path != jsondiff.Pointer(keys...) {
			t.Errorf("%s: %s", path, cmp.Diff(nil, got))
		}
	}
}

// Names of clusters that are not there are passed over by Karmada. Where no other is left nobody is chosen, and not everybody.
func TestNobodyIsNotEverybody(t *testing.T) {
	policy := propagation(workload(5))
	for clusters, want := range map[string][]string{"gone": {"gone"}, "gone member2": {"member2"}} {
		names := []any{}
		for _, name := range strings.Fields(clusters) {
			names = append(names, name)
		}
		if err := unstructured.SetNestedField(policy.Object, names, "spec", "placement", "clusterAffinity", "clusterNames"); err != nil {
			t.Fatal(err)
		}
		result, err := importer.Karmada(request(t), []*unstructured.Unstructured{workload(5), policy})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, result.FleetWorkload.Spec.Placement.Clusters.Names); diff != "" || len(result.Unexpressed) != 1 {
			t.Errorf("%s: %v (-want +got):\n%s", clusters, result.Unexpressed, diff)
		}
	}
}

// Karmada gives a cluster the greatest weight that is for it, and a FleetWorkload the first (getStaticWeightInfoList in pkg/scheduler/core).
func TestGreatestWeightCounts(t *testing.T) {
	policy := propagation(workload(5))
	weight := func(n int64, clusters ...any) any {
		return map[string]any{"targetCluster": map[string]any{"clusterNames": clusters}, "weight": n}
	}
	scheduling := map[string]any{"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted", "weightPreference": map[string]any{
		"staticWeightList": []any{weight(1), weight(3, "member2"), weight(2, "member2", "gone"), weight(9, "gone")},
	}}
	if err := unstructured.SetNestedField(policy.Object, scheduling, "spec", "placement", "replicaScheduling"); err != nil {
		t.Fatal(err)
	}
	result, err := importer.Karmada(request(t), []*unstructured.Unstructured{workload(5), policy})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int32{}
	targets, _ := targetsOf(t, result.FleetWorkload)
	for _, target := range targets {
		got[target.Cluster] = *target.Replicas
	}
	if diff := cmp.Diff(map[string]int32{"member1": 1, "member2": 3, "member3": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(result.Unexpressed) != 2 {
		t.Errorf("of two entries with a cluster that is not there: %v", result.Unexpressed)
	}
}
