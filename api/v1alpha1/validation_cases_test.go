// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// validationCase is one object that the API server must accept or reject. The CEL rule it is about is named by the
// rule's message; cases without one are about the rest of the schema.
type validationCase struct {
	name string
	// rule is the start of the message of the CEL rule under test.
	rule   string
	mutate func(fw *v1alpha1.FleetWorkload)
	// rejected is what the error must contain; empty when the object must be accepted. With a rule it is the message.
	rejected string
}

const (
	ruleName        = "metadata.name must be at most 63 characters: backends use it in labels"
	ruleKind        = "the kind of spec.template cannot change once the operator carries the workload; create another FleetWorkload for another kind"
	ruleObject      = "metadata.name of spec.template cannot change once the operator carries the workload; create another FleetWorkload for another object"
	ruleImageParts  = "set at least one of registry, repository, tag and digest"
	ruleTagOrDigest = "tag and digest exclude each other"
	rulePlacement   = "set exactly one of clusters and groups"
	ruleToleration  = "value must be empty when operator is Exists"
	ruleAnyTaint    = "a toleration without a key needs operator Exists"
	rulePatience    = "tolerationSeconds needs failover, without which nothing leaves a cluster"
	ruleSpreadLabel = "label is required when by is Label, and not allowed otherwise"
	ruleSpreadRange = "minGroups must not be above maxGroups"
	ruleWeightsType = "weights need type Divided"
	rulePreference  = "preference needs type Divided"
	ruleWeightsPref = "weights need preference Weighted"
	ruleValue       = "value and valueFrom exclude each other"
	ruleValueFrom   = "set exactly one of secretKeyRef, configMapKeyRef and fieldRef"
	ruleWave        = "set exactly one of clusters and size"
	ruleReplicas    = "replicas are for clusters that are chosen by clusters.names alone"
	rulePartition   = "must be a number of pods such as 3, or a percentage such as 50%"
	ruleSize        = "must be a number of clusters from 1, such as 3, or a percentage such as 10%"
	ruleExecutor    = "backendOptions.ocm.executor needs serviceAccountName: the account to write as"
	ruleDuration    = "must be a duration such as 90s, 10m or 1h30m"
)

// minimal is the least that the API server accepts.
func minimal() *v1alpha1.FleetWorkload {
	return &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend:   "karmada",
			Template:  runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{}}`)},
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
		},
	}
}

// templated has another template, whose rest is the minimal one's.
func templated(apiVersion, kind, name string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		metadata := "{}"
		if name != "" {
			metadata = fmt.Sprintf(`{"name":%q}`, name)
		}
		fw.Spec.Template.Raw = []byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":%s,"spec":{}}`, apiVersion, kind, metadata))
	}
}

// carriedCases are edits of a FleetWorkload named carried that the operator carries.
func carriedCases() []validationCase {
	return []validationCase{
		{name: "another spec", rule: ruleKind, mutate: func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"paused":true}}`)
		}},
		{name: "another version", rule: ruleKind, mutate: templated("apps/v2", "Deployment", "")},
		{name: "another kind", rule: ruleKind, mutate: templated("apps/v1", "StatefulSet", ""), rejected: ruleKind},
		{name: "another group", rule: ruleKind, mutate: templated("apps.kruise.io/v1", "Deployment", ""), rejected: ruleKind},
		{name: "no group", rule: ruleKind, mutate: templated("v1", "Deployment", ""), rejected: ruleKind},
		{name: "the name that it has by default", rule: ruleObject, mutate: templated("apps/v1", "Deployment", "carried")},
		{name: "another name", rule: ruleObject, mutate: templated("apps/v1", "Deployment", "other"), rejected: ruleObject},
	}
}

func ptr[T any](v T) *T { return &v }

func named(name string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) { fw.Name = name }
}

func executing(account string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.ServiceAccountName = account
		fw.Spec.BackendOptions = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{Executor: v1alpha1.ExecutorServiceAccount}}
	}
}

func variable(v v1alpha1.EnvVar) func(*v1alpha1.FleetWorkload) {
	v.Name = "A"
	return override(v1alpha1.Override{Env: []v1alpha1.EnvOverride{{Container: "nginx", Set: []v1alpha1.EnvVar{v}}}})
}

func image(o v1alpha1.ImageOverride) func(*v1alpha1.FleetWorkload) {
	o.Container = "nginx"
	return override(v1alpha1.Override{Images: []v1alpha1.ImageOverride{o}})
}

func patch(op v1alpha1.PatchOp, value string) func(*v1alpha1.FleetWorkload) {
	p := v1alpha1.PatchOperation{Op: op, Path: "/spec/paused"}
	if value != "" {
		p.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return override(v1alpha1.Override{Patches: []v1alpha1.PatchOperation{p}})
}

func override(o v1alpha1.Override) func(*v1alpha1.FleetWorkload) {
	o.Name = "eu"
	return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides = []v1alpha1.Override{o} }
}

func ownReplicas(s *v1alpha1.ClusterSelector) func(*v1alpha1.FleetWorkload) {
	return override(v1alpha1.Override{Clusters: s, Replicas: ptr(int32(0))})
}

func overridesNamed(names ...string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		for _, name := range names {
			fw.Spec.Overrides = append(fw.Spec.Overrides, v1alpha1.Override{Name: name})
		}
	}
}

func wavesNamed(names ...string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Migration = &v1alpha1.MigrationStrategy{}
		for _, name := range names {
			fw.Spec.Migration.Waves = append(fw.Spec.Migration.Waves, v1alpha1.MigrationWave{Name: name, Clusters: &v1alpha1.ClusterSelector{}})
		}
	}
}

func placement(p v1alpha1.Placement) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement = p }
}

func byAttribute(key v1alpha1.Attribute) *v1alpha1.ClusterSelector {
	return &v1alpha1.ClusterSelector{Attributes: []v1alpha1.AttributeRequirement{
		{Key: key, Operator: v1alpha1.AttributeOperatorIn, Values: []string{"eu-west"}},
	}}
}

func toleration(t v1alpha1.ClusterToleration) func(*v1alpha1.FleetWorkload) {
	return placement(v1alpha1.Placement{
		Clusters: &v1alpha1.ClusterSelector{}, Tolerations: []v1alpha1.ClusterToleration{t},
	})
}

func patience(f *v1alpha1.Failover) func(*v1alpha1.FleetWorkload) {
	return placement(v1alpha1.Placement{
		Clusters: &v1alpha1.ClusterSelector{}, Failover: f,
		Tolerations: []v1alpha1.ClusterToleration{{Key: "k", Operator: "Exists", TolerationSeconds: ptr(int32(60))}},
	})
}

func spread(s v1alpha1.SpreadConstraint) func(*v1alpha1.FleetWorkload) {
	return placement(v1alpha1.Placement{
		Clusters: &v1alpha1.ClusterSelector{}, Spread: []v1alpha1.SpreadConstraint{s},
	})
}

func paused(s v1alpha1.ClusterSelector) func(*v1alpha1.FleetWorkload) {
	return placement(v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}, Paused: &s})
}

func division(d v1alpha1.Division) func(*v1alpha1.FleetWorkload) {
	return placement(v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}, Division: &d})
}

func wave(w v1alpha1.MigrationWave) func(*v1alpha1.FleetWorkload) {
	w.Name = "canary"
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{w}}
	}
}

func group() []v1alpha1.ClusterGroup {
	return []v1alpha1.ClusterGroup{{Name: "first", Clusters: &v1alpha1.ClusterSelector{}}}
}

func weights(n int32) []v1alpha1.ClusterWeight {
	return []v1alpha1.ClusterWeight{{Clusters: &v1alpha1.ClusterSelector{}, Weight: &n}}
}

// celCases are about CEL rules.
func celCases() []validationCase { return append(ruleCases(), amountCases()...) }

func ruleCases() []validationCase {
	all := &v1alpha1.ClusterSelector{}
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	key, podIP := &v1alpha1.KeyReference{Name: "keys", Key: "a", Optional: ptr(true)}, &v1alpha1.FieldReference{FieldPath: "status.podIP"}
	from := func(source v1alpha1.EnvVarSource) func(*v1alpha1.FleetWorkload) {
		return variable(v1alpha1.EnvVar{ValueFrom: &source})
	}
	return []validationCase{
		{"name of 63 characters", ruleName, named(strings.Repeat("a", 63)), ""},
		{"name of 64 characters", ruleName, named(strings.Repeat("a", 64)), ruleName},

		{"replicas of named clusters", ruleReplicas, ownReplicas(&v1alpha1.ClusterSelector{Names: []string{"m1", "m2"}}), ""},
		{"replicas of every cluster", ruleReplicas, ownReplicas(nil), ruleReplicas},
		{"replicas of any cluster", ruleReplicas, ownReplicas(all), ruleReplicas},
		{"replicas by a label", ruleReplicas, ownReplicas(&v1alpha1.ClusterSelector{Selector: labelled}), ruleReplicas},
		{"replicas of names with a label", ruleReplicas, ownReplicas(&v1alpha1.ClusterSelector{Names: []string{"m1"}, Selector: labelled}), ruleReplicas},
		{"replicas of all but one", ruleReplicas, ownReplicas(&v1alpha1.ClusterSelector{Exclude: []string{"m1"}}), ruleReplicas},
		{"replicas of names but one", ruleReplicas, ownReplicas(&v1alpha1.ClusterSelector{Names: []string{"m1"}, Exclude: []string{"m2"}}), ruleReplicas},
		{"replicas by region", ruleReplicas, ownReplicas(byAttribute("Region")), ruleReplicas},
		{"image with a registry", ruleImageParts, image(v1alpha1.ImageOverride{Registry: "example.com:5000"}), ""},
		{"image with a repository", ruleImageParts, image(v1alpha1.ImageOverride{Repository: "library/nginx"}), ""},
		{"image without any part", ruleImageParts, image(v1alpha1.ImageOverride{}), ruleImageParts},
		{"image with a tag", ruleTagOrDigest, image(v1alpha1.ImageOverride{Tag: "1.27"}), ""},
		{"image with a digest", ruleTagOrDigest, image(v1alpha1.ImageOverride{Digest: "sha256:0"}), ""},
		{"image with tag and digest", ruleTagOrDigest, image(v1alpha1.ImageOverride{Tag: "1.27", Digest: "sha256:0"}), ruleTagOrDigest},

		{"placement with clusters", rulePlacement, placement(v1alpha1.Placement{Clusters: all}), ""},
		{"placement with groups", rulePlacement, placement(v1alpha1.Placement{Groups: group()}), ""},
		{"placement with both", rulePlacement, placement(v1alpha1.Placement{Clusters: all, Groups: group()}), rulePlacement},
		{"placement with neither", rulePlacement, placement(v1alpha1.Placement{NumberOfClusters: ptr[int32](1)}), rulePlacement},

		{"toleration by value", ruleToleration, toleration(v1alpha1.ClusterToleration{Key: "k", Operator: "Equal", Value: "v"}), ""},
		{"toleration of a key", ruleToleration, toleration(v1alpha1.ClusterToleration{Key: "k", Operator: "Exists"}), ""},
		{"toleration without operator", ruleToleration, toleration(v1alpha1.ClusterToleration{Key: "k", Value: "v"}), ""},
		{"toleration of every taint", ruleAnyTaint, toleration(v1alpha1.ClusterToleration{Operator: "Exists"}), ""},
		{"toleration without key and operator", ruleAnyTaint, toleration(v1alpha1.ClusterToleration{Value: "v"}), ruleAnyTaint},
		{"toleration without key", ruleAnyTaint, toleration(v1alpha1.ClusterToleration{Operator: "Equal"}), ruleAnyTaint},
		{"toleration for a while, with failover", rulePatience, patience(&v1alpha1.Failover{}), ""},
		{"toleration for a while", rulePatience, patience(nil), rulePatience},
		{"toleration of a key with a value", ruleToleration, toleration(v1alpha1.ClusterToleration{Key: "k", Operator: "Exists", Value: "v"}), ruleToleration},

		{"spread by label", ruleSpreadLabel, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByLabel, Label: "tier"}), ""},
		{"spread by region", ruleSpreadLabel, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByRegion}), ""},
		{"spread by no label", ruleSpreadLabel, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByLabel}), ruleSpreadLabel},
		{"spread by region and label", ruleSpreadLabel, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByRegion, Label: "tier"}), ruleSpreadLabel},
		{"spread over a range", ruleSpreadRange, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByZone, MinGroups: ptr[int32](2), MaxGroups: ptr[int32](2)}), ""},
		{"spread over at most", ruleSpreadRange, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByZone, MaxGroups: ptr[int32](1)}), ""},
		{"spread over an empty range", ruleSpreadRange, spread(v1alpha1.SpreadConstraint{By: v1alpha1.SpreadByZone, MinGroups: ptr[int32](3), MaxGroups: ptr[int32](2)}), ruleSpreadRange},

		{"divided by weights", ruleWeightsType, division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: weights(2)}), ""},
		{"duplicated with weights", ruleWeightsType, division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDuplicated, Weights: weights(2)}), ruleWeightsType},
		{"weights without type", ruleWeightsType, division(v1alpha1.Division{Weights: weights(2)}), ruleWeightsType},
		{"divided by capacity", rulePreference, division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: v1alpha1.DivisionPreferenceAvailableCapacity}), ""},
		{"duplicated by capacity", rulePreference, division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDuplicated, Preference: v1alpha1.DivisionPreferenceAvailableCapacity}), rulePreference},
		{"preference without type", rulePreference, division(v1alpha1.Division{Preference: v1alpha1.DivisionPreferenceWeighted}), rulePreference},
		{"weighted by weights", ruleWeightsPref, division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: v1alpha1.DivisionPreferenceWeighted, Weights: weights(1)}), ""},
		{"aggregated by weights", ruleWeightsPref, division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: v1alpha1.DivisionPreferenceAggregated, Weights: weights(1)}), ruleWeightsPref},

		{"variable with a value", ruleValue, variable(v1alpha1.EnvVar{Value: "a"}), ""},
		{"variable with both", ruleValue, variable(v1alpha1.EnvVar{Value: "a", ValueFrom: &v1alpha1.EnvVarSource{FieldRef: podIP}}), ruleValue},
		{"variable from a Secret", ruleValueFrom, from(v1alpha1.EnvVarSource{SecretKeyRef: key}), ""},
		{"variable from a ConfigMap", ruleValueFrom, from(v1alpha1.EnvVarSource{ConfigMapKeyRef: key}), ""},
		{"variable from the pod", ruleValueFrom, from(v1alpha1.EnvVarSource{FieldRef: podIP}), ""},
		{"variable from nowhere", ruleValueFrom, from(v1alpha1.EnvVarSource{}), ruleValueFrom},
		{"variable from two", ruleValueFrom, from(v1alpha1.EnvVarSource{SecretKeyRef: key, ConfigMapKeyRef: key}), ruleValueFrom},

		{"wave of clusters", ruleWave, wave(v1alpha1.MigrationWave{Clusters: all}), ""},
		{"wave of a size", ruleWave, wave(v1alpha1.MigrationWave{Size: ptr(intstr.FromString("10%"))}), ""},
		{"wave of both", ruleWave, wave(v1alpha1.MigrationWave{Clusters: all, Size: ptr(intstr.FromInt32(1))}), ruleWave},
		{"wave of neither", ruleWave, wave(v1alpha1.MigrationWave{Approval: v1alpha1.ApprovalPolicyManual}), ruleWave},

		{"executor", ruleExecutor, executing("deployer"), ""},
		{"executor without account", ruleExecutor, executing(""), ruleExecutor},

		{"wave with soak", ruleDuration, wave(v1alpha1.MigrationWave{Clusters: all, Soak: &v1alpha1.Duration{Duration: 90 * time.Second}}), ""},
		{"wave with soak in the past", ruleDuration, wave(v1alpha1.MigrationWave{Clusters: all, Soak: &v1alpha1.Duration{Duration: -time.Second}}), ruleDuration},
	}
}

// amountCases are numbers and percentages, in the two places that take either.
func amountCases() []validationCase {
	var cases []validationCase
	add := func(value intstr.IntOrString, partition, size bool) {
		verdict := func(accepted bool, rule string) string {
			if accepted {
				return ""
			}
			return rule
		}
		text := fmt.Sprintf("of %s, type %d", value.String(), value.Type)
		cases = append(cases,
			validationCase{"partition " + text, rulePartition, override(v1alpha1.Override{Partition: &value}), verdict(partition, rulePartition)},
			validationCase{"wave " + text, ruleSize, wave(v1alpha1.MigrationWave{Size: &value}), verdict(size, ruleSize)})
	}
	for _, n := range []int32{1, 3, 1_000_000} {
		add(intstr.FromInt32(n), true, true)
	}
	add(intstr.FromInt32(0), true, false)
	for _, n := range []int32{-1, 1_000_001} {
		add(intstr.FromInt32(n), false, false)
	}
	for _, percentage := range []string{"1%", "50%", "100%"} {
		add(intstr.FromString(percentage), true, true)
	}
	add(intstr.FromString("0%"), true, false)
	for _, text := range []string{"", "half", "1", "50", "101%", "-1%", "1.5%", "50 %", "%"} {
		add(intstr.FromString(text), false, false)
	}
	return cases
}

func schemaCases() []validationCase {
	spec := func(f func(*v1alpha1.FleetWorkloadSpec)) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) { f(&fw.Spec) }
	}
	return []validationCase{
		{"minimal", "", named("web"), ""},
		{"no replicas", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.Replicas = ptr[int32](0) }), ""},
		{"negative replicas", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.Replicas = ptr[int32](-1) }), "spec.replicas"},
		{"no backend", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.Backend = "" }), "spec.backend"},
		{"backend with capitals", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.Backend = "Karmada" }), "spec.backend"},
		{"no template", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.Template = runtime.RawExtension{} }), "spec.template"},
		{"template without kind", "", templated("apps/v1", "", ""), "spec.template.kind"},
		{"template without apiVersion", "", templated("", "Deployment", ""), "spec.template.apiVersion"},
		{"template with a name that is none", "", templated("apps/v1", "Deployment", "a/b"), "spec.template.metadata.name"},
		{"no placement", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.Placement = v1alpha1.Placement{} }), "spec.placement"},
		{"unknown conflict policy", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.ConflictPolicy = "Ask" }), "spec.conflictPolicy"},
		{"weight of zero", "", division(v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: weights(0)}), "weight"},
		{"variable from a Secret without a key", "", variable(v1alpha1.EnvVar{ValueFrom: &v1alpha1.EnvVarSource{
			SecretKeyRef: &v1alpha1.KeyReference{Name: "keys"}}}), "secretKeyRef.key"},
		{"labels and annotations of pods", "", override(v1alpha1.Override{
			PodLabels:      &v1alpha1.MetadataOverride{Set: map[string]string{"team": "shop"}},
			PodAnnotations: &v1alpha1.MetadataOverride{Remove: []string{"example.com/note"}},
		}), ""},
		{"negative replicas of a cluster", "", override(v1alpha1.Override{
			Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Replicas: ptr[int32](-1)}), "spec.overrides[0].replicas"},
		{"overrides with names", "", overridesNamed("eu", "eu-2", strings.Repeat("a", 63)), ""},
		{"override without a name", "", overridesNamed(""), "spec.overrides[0].name"},
		{"override named in capitals", "", overridesNamed("EU"), "spec.overrides[0].name"},
		{"override with a long name", "", overridesNamed(strings.Repeat("a", 64)), "spec.overrides[0].name"},
		{"two overrides of one name", "", overridesNamed("eu", "us", "eu"), "spec.overrides[2]: Duplicate value"},
		{"waves with names", "", wavesNamed("canary", "2", strings.Repeat("a", 63)), ""},
		{"wave without a name", "", wavesNamed(""), "spec.migration.waves[0].name"},
		{"wave with a name of two parts", "", wavesNamed("eu.west"), "spec.migration.waves[0].name"},
		{"wave with a long name", "", wavesNamed(strings.Repeat("a", 64)), "spec.migration.waves[0].name"},
		{"two waves of one name", "", wavesNamed("canary", "canary"), "spec.migration.waves[1]: Duplicate value"},
		{"patch adds a value", "", patch(v1alpha1.PatchOpAdd, `{"a":[1]}`), ""},
		{"patch replaces with false", "", patch(v1alpha1.PatchOpReplace, `false`), ""},
		{"patch removes", "", patch(v1alpha1.PatchOpRemove, ""), ""},
		{"patch moves", "", patch("move", `1`), "op"},
		{"clusters by region", "", placement(v1alpha1.Placement{Clusters: byAttribute("Region")}), ""},
		{"clusters by region, in lower case", "", placement(v1alpha1.Placement{Clusters: byAttribute("region")}), "attributes[0].key"},
		{"cluster named twice", "", placement(v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1", "m1"}}}), "names"},
		{"paused by name", "", paused(v1alpha1.ClusterSelector{Names: []string{"m1"}, Exclude: []string{"m2"}}), ""},
		{"all paused", "", paused(v1alpha1.ClusterSelector{}), ""},
		{"paused by region, in lower case", "", paused(*byAttribute("region")), "paused.attributes[0].key"},
		{"paused twice", "", paused(v1alpha1.ClusterSelector{Names: []string{"m1", "m1"}}), "paused.names"},
		{"too many paused", "", paused(v1alpha1.ClusterSelector{Names: make([]string, 1001)}), "paused.names"},
		{"empty options", "", spec(func(s *v1alpha1.FleetWorkloadSpec) { s.BackendOptions = &v1alpha1.BackendOptions{} }), "backendOptions"},
	}
}
