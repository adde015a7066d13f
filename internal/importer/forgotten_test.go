package importer_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
)

// leaf is one field of a spec, and how to set it alone.
type leaf struct {
	path string
	set  func(root reflect.Value)
}

// leavesOf are all fields of a type that hold a value.
func leavesOf(t reflect.Type) []leaf {
	self := func(v any) []leaf {
		return []leaf{{"", func(root reflect.Value) { root.Set(reflect.ValueOf(v).Convert(root.Type())) }}}
	}
	switch t {
	case reflect.TypeFor[apiextensionsv1.JSON]():
		return self(apiextensionsv1.JSON{Raw: []byte(`"new"`)})
	case reflect.TypeFor[metav1.Duration]():
		return self(metav1.Duration{Duration: 9e9})
	case reflect.TypeFor[runtime.RawExtension]():
		return nil // manifests
	}
	switch t.Kind() {
	case reflect.Pointer:
		return below(leavesOf(t.Elem()), "", func(root reflect.Value) reflect.Value {
			root.Set(reflect.New(t.Elem()))
			return root.Elem()
		})
	case reflect.Slice:
		return below(leavesOf(t.Elem()), "[]", func(root reflect.Value) reflect.Value {
			root.Set(reflect.MakeSlice(t, 1, 1))
			return root.Index(0)
		})
	case reflect.Struct:
		if t.Name() == "IntOrString" {
			return nil // percentages of rollouts
		}
		var all []leaf
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "" {
				name = "." + name
			}
			all = append(all, below(leavesOf(t.Field(i).Type), name, func(root reflect.Value) reflect.Value { return root.Field(i) })...)
		}
		return all
	case reflect.Map:
		return self(map[string]string{"a": "b"})
	case reflect.String:
		return self("member2")
	case reflect.Bool:
		return self(true)
	default:
		return self(3)
	}
}

func below(leaves []leaf, name string, to func(reflect.Value) reflect.Value) []leaf {
	out := make([]leaf, 0, len(leaves))
	for _, l := range leaves {
		out = append(out, leaf{name + l.path, func(root reflect.Value) { l.set(to(root)) }})
	}
	return out
}

// asMap is a value as an API server has it.
func asMap(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNothingIsForgotten sets every field of the objects that are read, one at a time: either the FleetWorkload is another one then, or it is
// told. What says nothing of a workload is listed here.
func TestNothingIsForgotten(t *testing.T) {
	web := workload(3)
	base := func(spec any, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": asMap(t, spec)}}
		change(obj)
		return obj
	}
	named := func(apiVersion, kind, namespace, name string) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			obj.SetAPIVersion(apiVersion)
			obj.SetKind(kind)
			obj.SetNamespace(namespace)
			obj.SetName(name)
		}
	}
	selectors := []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	policy := func(spec policyv1alpha1.PropagationSpec) *unstructured.Unstructured {
		spec.ResourceSelectors = append(spec.ResourceSelectors, selectors...)
		return base(spec, named("policy.karmada.io/v1alpha1", "PropagationPolicy", "shop", "web"))
	}
	manifests := workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Object: web}}}}
	work := func(spec workv1.ManifestWorkSpec, labels map[string]string) *unstructured.Unstructured {
		spec.Workload = manifests
		obj := base(spec, named("work.open-cluster-management.io/v1", "ManifestWork", "member1", "web"))
		obj.SetLabels(labels)
		return obj
	}
	set := func(spec workv1alpha1.ManifestWorkReplicaSetSpec) *unstructured.Unstructured {
		spec.ManifestWorkTemplate.Workload = manifests
		for i := range spec.PlacementRefs {
			spec.PlacementRefs[i].Name = "web"
		}
		if len(spec.PlacementRefs) == 0 {
			spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: "web"}}
		}
		return base(spec, named("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "shop", "web"))
	}
	placement := func(spec clusterv1beta1.PlacementSpec) *unstructured.Unstructured {
		return base(spec, named("cluster.open-cluster-management.io/v1beta1", "Placement", "shop", "web"))
	}
	made := work(workv1.ManifestWorkSpec{}, map[string]string{workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey: "shop.web"})

	for name, tc := range map[string]struct {
		source string
		spec   any
		// around returns all objects, with the spec in its place.
		around func(spec any) []*unstructured.Unstructured
		silent []string
	}{
		"PropagationPolicy": {
			source: "karmada", spec: policyv1alpha1.PropagationSpec{},
			around: func(spec any) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{web, policy(spec.(policyv1alpha1.PropagationSpec))}
			},
			silent: []string{
				".priority", ".preemption", ".dependentOverrides[]", // of Karmada's own policies alone
				".placement.spreadConstraints[].spreadByLabel", // without a bound
				".conflictResolution",                          // Adopt, since the objects are there
			},
		},
		"OverridePolicy": {
			source: "karmada", spec: policyv1alpha1.OverrideSpec{},
			around: func(spec any) []*unstructured.Unstructured {
				o := spec.(policyv1alpha1.OverrideSpec)
				if len(o.ResourceSelectors) > 0 {
					o.ResourceSelectors = selectors
				}
				return []*unstructured.Unstructured{web, policy(policyv1alpha1.PropagationSpec{}), base(o, named("policy.karmada.io/v1alpha1", "OverridePolicy", "shop", "o"))}
			},
			silent: []string{ // they choose, and change nothing alone
				".resourceSelectors[]", ".targetCluster.labelSelector", ".targetCluster.clusterNames[]", ".targetCluster.exclude[]",
				".overrideRules[].targetCluster.labelSelector", ".overrideRules[].targetCluster.clusterNames[]", ".overrideRules[].targetCluster.exclude[]",
				".overrideRules[].overriders.labelsOverrider[].operator", ".overrideRules[].overriders.annotationsOverrider[].operator",
				".overriders.labelsOverrider[].operator", ".overriders.annotationsOverrider[].operator",
			},
		},
		"ManifestWork": {
			source: "ocm", spec: workv1.ManifestWorkSpec{},
			around: func(spec any) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{work(spec.(workv1.ManifestWorkSpec), nil)}
			},
			silent: []string{".deleteOption.selectivelyOrphans"}, // without the policy that it is for
		},
		"ManifestWorkReplicaSet": {
			source: "ocm", spec: workv1alpha1.ManifestWorkReplicaSetSpec{},
			around: func(spec any) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{made, set(spec.(workv1alpha1.ManifestWorkReplicaSetSpec)), placement(clusterv1beta1.PlacementSpec{})}
			},
			silent: []string{".placementRefs[].name", ".cascadeDeletionPolicy", ".manifestWorkTemplate.deleteOption.selectivelyOrphans"},
		},
		"Placement": {
			source: "ocm", spec: clusterv1beta1.PlacementSpec{},
			around: func(spec any) []*unstructured.Unstructured {
				return []*unstructured.Unstructured{made, set(workv1alpha1.ManifestWorkReplicaSetSpec{}), placement(spec.(clusterv1beta1.PlacementSpec))}
			},
			silent: []string{".prioritizerPolicy.mode"}, // it is about configurations
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := func(spec any) string {
				result, err := importAs(request(t), tc.source, tc.around(spec))
				if err != nil {
					return "error: " + err.Error()
				}
				result.TakeOver, result.WayBack = nil, nil
				return picture(t, result)
			}
			without := outcome(tc.spec)
			if strings.HasPrefix(without, "error") {
				t.Fatal(without)
			}
			leaves := leavesOf(reflect.TypeOf(tc.spec))
			for _, l := range leaves {
				spec := reflect.New(reflect.TypeOf(tc.spec)).Elem()
				l.set(spec)
				silent := slices.ContainsFunc(tc.silent, func(s string) bool { return l.path == s || strings.HasPrefix(l.path, s+".") })
				if got := outcome(spec.Interface()); (got == without) != silent {
					t.Errorf("spec%s: is said: %v, and should be silent: %v", l.path, got != without, silent)
				}
			}
			if len(leaves) < 10 {
				t.Errorf("there are only %d fields", len(leaves))
			}
		})
	}
}

// workload is a Deployment with one container.
func workload(replicas int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
		"spec": {"replicas": %d, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
		"spec": {"containers": [{"name": "member2", "image": "nginx:1.27", "command": ["nginx"]}]}}}}`, replicas)
	if err := utiljson.Unmarshal([]byte(text), &obj.Object); err != nil {
		panic(err)
	}
	return obj
}
