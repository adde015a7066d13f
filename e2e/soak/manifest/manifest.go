// SPDX-License-Identifier: Apache-2.0

// Package manifest writes the specs of a soak as FleetWorkloads, and reads from member objects what matters to pods. It is
// pure.
package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

const (
	// Settings is the ConfigMap that the pods of every namespace refer to. It is optional, so that nothing waits for it.
	Settings = "settings"

	container  = "main"
	repository = "registry.example.com/soak/app:"
	variable   = "LOG"
	appLabel   = "app"
)

type object = map[string]any

// GVKs are the kinds of workloads as API servers know them.
var GVKs = map[history.Kind]schema.GroupVersionKind{
	history.CloneSet:            {Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
	history.Deployment:          {Group: "apps", Version: "v1", Kind: "Deployment"},
	history.AdvancedStatefulSet: {Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
}

// LabelKey is the label by which a workload chooses its clusters.
func LabelKey(k history.Key) string {
	return fmt.Sprintf("soak.example.com/%s.%s", k.Namespace, k.Name)
}

// FleetWorkload is the object that asks for the spec.
func FleetWorkload(k history.Key, s history.Spec) (*v1alpha1.FleetWorkload, error) {
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}}
	replicas := int32(s.Replicas)
	fw.Spec = v1alpha1.FleetWorkloadSpec{
		Backend: s.Backend, Replicas: &replicas, Placement: placement(k, s), Overrides: overrides(s), Migration: migration(s.Waves),
		DeletionPolicy: v1alpha1.DeletionPolicyDelete, ConflictPolicy: v1alpha1.ConflictPolicyFail,
		Dependencies: v1alpha1.DependencyPolicyIgnore, Suspend: &s.Suspended,
	}
	if s.Orphan {
		fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	}
	if s.Adopt {
		fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	}
	if s.Dependencies {
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	}
	var err error
	if fw.Spec.Template, err = raw(template(k, s)); err != nil {
		return nil, fmt.Errorf("template of %s: %w", k, err)
	}
	for _, c := range Companions(k)[:s.Companions] {
		companion, err := raw(c)
		if err != nil {
			return nil, fmt.Errorf("companion of %s: %w", k, err)
		}
		fw.Spec.Companions = append(fw.Spec.Companions, companion)
	}
	return fw, nil
}

func raw(o object) (runtime.RawExtension, error) {
	data, err := json.Marshal(o)
	return runtime.RawExtension{Raw: data}, err
}

// Companions are what may travel along with a workload, the first ones first.
func Companions(k history.Key) []map[string]any {
	return []map[string]any{
		{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": k.Name},
			"spec": object{"selector": object{appLabel: k.Name}, "ports": []any{object{"port": 80}}},
		},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": k.Name + "-notes"}, "data": object{"of": k.Name}},
	}
}

func template(k history.Key, s history.Spec) object {
	labels := object{appLabel: k.Name}
	spec := object{
		"selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{object{
			"name": container, "image": repository + s.Pods.Image,
			"env":       []any{object{"name": variable, "value": s.Pods.Env}},
			"envFrom":   []any{object{"configMapRef": object{"name": Settings, "optional": true}}},
			"resources": object{"requests": object{"cpu": "10m", "memory": "16Mi"}},
		}}}},
	}
	switch s.Kind {
	case history.CloneSet:
		spec["updateStrategy"] = object{"type": "InPlaceIfPossible", "maxUnavailable": "50%"}
	case history.AdvancedStatefulSet:
		spec["serviceName"] = "none"
		spec["podManagementPolicy"] = "Parallel"
	case history.Deployment:
	}
	gvk := GVKs[s.Kind]
	return object{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": object{"labels": object{"team": "soak"}}, "spec": spec}
}

func on(names ...string) *v1alpha1.ClusterSelector { return &v1alpha1.ClusterSelector{Names: names} }

func placement(k history.Key, s history.Spec) v1alpha1.Placement {
	selector := &v1alpha1.ClusterSelector{Names: s.Clusters.Names, Exclude: s.Clusters.Exclude}
	if s.Clusters.ByLabel {
		selector.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{LabelKey(k): "on"}}
	}
	p := v1alpha1.Placement{Clusters: selector}
	if !s.Divided {
		return p
	}
	p.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided}
	for _, name := range slices.Sorted(maps.Keys(s.Weights)) {
		weight := int32(s.Weights[name])
		p.Division.Weights = append(p.Division.Weights, v1alpha1.ClusterWeight{Clusters: on(name), Weight: &weight})
	}
	return p
}

func overrides(s history.Spec) []v1alpha1.Override {
	var all []v1alpha1.Override
	for _, name := range slices.Sorted(maps.Keys(s.Overrides)) {
		o := s.Overrides[name]
		override := v1alpha1.Override{Name: name, Clusters: on(name)}
		if o.Image != "" {
			override.Images = []v1alpha1.ImageOverride{{Container: container, Tag: o.Image}}
		}
		if o.Env != "" {
			override.Env = []v1alpha1.EnvOverride{{Container: container, Set: []v1alpha1.EnvVar{{Name: variable, Value: o.Env}}}}
		}
		if o.Label != "" {
			override.Labels = &v1alpha1.MetadataOverride{Set: map[string]string{"channel": o.Label}}
		}
		all = append(all, override)
	}
	return all
}

func migration(w history.Waves) *v1alpha1.MigrationStrategy {
	if w.Size == "" {
		return nil
	}
	size := intstr.Parse(w.Size)
	return &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{
		{Name: "first", Size: &size, Soak: &v1alpha1.Duration{Duration: time.Duration(w.Soak) * time.Second}},
	}}
}

// Container reads what decides a pod from a container of its spec.
func Container(c any) history.Template {
	fields, _ := c.(object)
	image, _ := fields["image"].(string)
	t := history.Template{Image: strings.TrimPrefix(image, repository)}
	env, _ := fields["env"].([]any)
	for _, e := range env {
		if v, _ := e.(object); v["name"] == variable {
			t.Env, _ = v["value"].(string)
		}
	}
	return t
}

// Object reads what matters to pods from a member object: its replicas, its template, and a text of the whole pod template
// in which nothing counts that is empty. That means the same: one backend leaves out the {} and "" that a webhook or a
// controller has filled in for the other.
func Object(obj *unstructured.Unstructured) (replicas int, pods history.Template, whole string, err error) {
	n, _, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if err != nil {
		return 0, pods, "", fmt.Errorf("read replicas of %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	podTemplate, _, err := unstructured.NestedMap(obj.Object, "spec", "template")
	if err != nil {
		return 0, pods, "", fmt.Errorf("read the pod template of %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	containers, _, _ := unstructured.NestedSlice(podTemplate, "spec", "containers")
	for _, c := range containers {
		pods = Container(c)
	}
	text, err := json.Marshal(filled(podTemplate))
	return int(n), pods, string(text), err
}

// filled is a value without what is empty in it.
func filled(value any) any {
	switch v := value.(type) {
	case object:
		out := object{}
		for key, field := range v {
			if below := filled(field); below != nil {
				out[key] = below
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, filled(item))
		}
		if len(out) > 0 {
			return out
		}
	case string:
		if v != "" {
			return v
		}
	default:
		return value
	}
	return nil
}

// resolution stays on an object that Karmada was told to leave (cleanupPolicyClaimMetadata in karmada pkg/controllers/execution).
// Without its label it means nothing.
const resolution = "work.karmada.io/conflict-resolution"

// Marks are what other backends than the one that carries a member object have left on it. Of a workload that never moved,
// the object was adopted as an earlier FleetWorkload left it: nobody was there to take the last word of Karmada away.
func Marks(obj *unstructured.Unstructured, carrier string, moved bool) []string {
	var marks []string
	for _, o := range obj.GetOwnerReferences() {
		if carrier != history.OCM && o.Kind == "AppliedManifestWork" {
			marks = append(marks, "owner "+o.Name)
		}
	}
	for _, metadata := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if carrier != history.Karmada && strings.Contains(key, "karmada.io/") && (moved || key != resolution) {
				marks = append(marks, key)
			}
		}
	}
	return marks
}
