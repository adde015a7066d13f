package importer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/importer"
)

// policy is one of Karmada's policies, with a spec written as YAML.
func policy(t *testing.T, kind, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	objects, err := read([]byte(fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)))
	if err != nil {
		t.Fatal(err)
	}
	objects[0].SetNamespace(namespace)
	return objects[0]
}

// inYAML is a value as a person writes it, in one line.
func inYAML(t *testing.T, v any) string {
	t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	raw, err = yaml.YAMLToJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The policy of a template is the one that has claimed it, or the one that Karmada would choose.
func TestClaimant(t *testing.T) {
	const kind = "apiVersion: apps/v1, kind: Deployment"
	byName, byLabels, byKind := "{"+kind+", name: web}", "{"+kind+", labelSelector: {matchLabels: {app: web}}}", "{"+kind+"}"
	selects := func(priority int, selector string) string {
		return fmt.Sprintf("{priority: %d, resourceSelectors: [%s], propagateDeps: true}", priority, selector)
	}
	one := func(name, spec string) *unstructured.Unstructured {
		return policy(t, "PropagationPolicy", "shop", name, spec)
	}
	wide := func(name, spec string) *unstructured.Unstructured {
		return policy(t, "ClusterPropagationPolicy", "", name, spec)
	}
	ours := func(p *unstructured.Unstructured) *unstructured.Unstructured {
		p.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
		p.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: "shop/web"})
		return p
	}
	for name, tc := range map[string]struct {
		claim    map[string]string
		policies []*unstructured.Unstructured
		want     string
	}{
		"the claim counts":                 {map[string]string{"propagationpolicy.karmada.io/name": "a", "propagationpolicy.karmada.io/namespace": "shop"}, []*unstructured.Unstructured{one("a", selects(0, byKind)), one("b", selects(9, byName))}, "PropagationPolicy shop/a"},
		"a cluster-wide claim":             {map[string]string{"clusterpropagationpolicy.karmada.io/name": "a"}, []*unstructured.Unstructured{one("a", selects(0, byName)), wide("a", selects(0, byKind))}, "ClusterPropagationPolicy a"},
		"the claim of one that is gone":    {map[string]string{"clusterpropagationpolicy.karmada.io/name": "a"}, []*unstructured.Unstructured{one("a", selects(0, byName))}, "Deployment shop/web is claimed by ClusterPropagationPolicy a, which is not among what was read"},
		"the claim of the operator's own":  {map[string]string{"clusterpropagationpolicy.karmada.io/name": "a"}, []*unstructured.Unstructured{ours(wide("a", selects(0, byName)))}, "ClusterPropagationPolicy a is FleetWorkload shop/web's already"},
		"the operator's own is another's":  {map[string]string{"clusterpropagationpolicy.karmada.io/name": "a"}, []*unstructured.Unstructured{wide("a", selects(0, byName)), ours(wide("b", selects(0, byName)))}, "ClusterPropagationPolicy a"},
		"the highest priority":             {nil, []*unstructured.Unstructured{one("a", selects(1, byName)), one("b", selects(3, byKind)), one("c", selects(2, byName))}, "PropagationPolicy shop/b"},
		"a low priority is one":            {nil, []*unstructured.Unstructured{one("a", selects(-1, byKind)), one("b", selects(-2, byName))}, "PropagationPolicy shop/a"},
		"the most precise one":             {nil, []*unstructured.Unstructured{one("a", selects(0, byKind)), one("b", selects(0, byLabels)), one("c", selects(0, byKind))}, "PropagationPolicy shop/b"},
		"a name is more than labels":       {nil, []*unstructured.Unstructured{one("a", selects(0, byLabels)), one("b", selects(0, byName)), one("c", selects(0, byLabels))}, "PropagationPolicy shop/b"},
		"the first name":                   {nil, []*unstructured.Unstructured{one("b", selects(0, byName)), one("a", selects(0, byName)), one("c", selects(0, byName))}, "PropagationPolicy shop/a"},
		"its namespace's before all":       {nil, []*unstructured.Unstructured{one("a", selects(0, byKind)), wide("b", selects(9, byName))}, "PropagationPolicy shop/a"},
		"other labels":                     {nil, []*unstructured.Unstructured{one("a", selects(9, "{"+kind+", labelSelector: {matchLabels: {app: api}}}")), wide("b", selects(0, byKind))}, "ClusterPropagationPolicy b"},
		"labels that nobody understands":   {nil, []*unstructured.Unstructured{one("a", selects(9, "{"+kind+", labelSelector: {matchExpressions: [{key: app, operator: Like}]}}"))}, "Deployment shop/web: nothing carries it"},
		"the kind in another namespace":    {nil, []*unstructured.Unstructured{one("a", selects(9, "{"+kind+", namespace: bank}"))}, "Deployment shop/web: nothing carries it"},
		"a policy in another namespace":    {nil, []*unstructured.Unstructured{policy(t, "PropagationPolicy", "bank", "a", selects(0, "{"+kind+", namespace: shop}"))}, "Deployment shop/web: nothing carries it"},
		"several selectors, one is enough": {nil, []*unstructured.Unstructured{one("a", selects(0, byName+", {apiVersion: v1, kind: Service}")), one("b", selects(0, byLabels))}, "PropagationPolicy shop/a"},
	} {
		web := workload(3)
		web.SetAnnotations(tc.claim)
		result, err := importer.Karmada(request(t), append([]*unstructured.Unstructured{web}, tc.policies...))
		got := fmt.Sprint(err)
		if err == nil {
			kind, rest, _ := strings.Cut(strings.TrimPrefix(result.TakeOver[2].Commands[0], "kubectl patch "), " ")
			words := strings.Fields(rest)
			got = map[string]string{"propagationpolicy": "PropagationPolicy shop/", "clusterpropagationpolicy": "ClusterPropagationPolicy "}[kind] + words[0]
		}
		if !strings.HasPrefix(got, tc.want) || err == nil && got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What one rule of an override policy makes of a Deployment with two containers becomes the override of the clusters.
func TestOverriders(t *testing.T) {
	for name, tc := range map[string]struct{ overriders, want, told string }{
		"registry and tag of one image": {
			`{imageOverrider: [{component: Registry, operator: replace, value: m.example.com, predicate: {path: /spec/template/spec/containers/0/image}},
				{component: Tag, operator: replace, value: v2, predicate: {path: /spec/template/spec/containers/0/image}}]}`,
			`{"images":[{"container":"web","registry":"m.example.com","tag":"v2"}]}`, "",
		},
		"parts of two images": {
			`{imageOverrider: [{component: Tag, operator: replace, value: v2}, {component: Tag, operator: replace, value: v3, predicate: {path: /spec/template/spec/containers/1/image}}]}`,
			`{"images":[{"container":"web","tag":"v2"},{"container":"side","tag":"v3"}]}`, "",
		},
		"a registry taken away by nothing in its place": {
			`{imageOverrider: [{component: Registry, operator: replace, value: "", predicate: {path: /spec/template/spec/containers/1/image}}]}`,
			`{"patches":[{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"side:v1"}]}`, "",
		},
		"nothing added": {
			`{imageOverrider: [{component: Tag, operator: add, value: "", predicate: {path: /spec/template/spec/containers/1/image}}]}`,
			`{"images":[{"container":"side","tag":"v1"}]}`, "",
		},
		"commands of two containers, one of them twice": {
			`{commandOverrider: [{containerName: web, operator: add, value: [-a]}, {containerName: side, operator: add, value: [-b]}, {containerName: web, operator: add, value: [-c]}]}`,
			`{"commands":[{"command":["run","-b"],"container":"side"},{"command":["nginx","-a","-c"],"container":"web"}]}`, "",
		},
		"arguments of two containers, one of them twice": {
			`{argsOverrider: [{containerName: web, operator: add, value: [-a]}, {containerName: side, operator: add, value: [-b]}, {containerName: web, operator: add, value: [-c]}]}`,
			`{"args":[{"args":["-x","-b"],"container":"side"},{"args":["-a","-c"],"container":"web"}]}`, "",
		},
		"no word of a command is left": {
			`{commandOverrider: [{containerName: web, operator: remove, value: [nginx]}]}`,
			`{"patches":[{"op":"replace","path":"/spec/template/spec/containers/0/command","value":[]}]}`, "",
		},
		"no argument is left where there was none": {
			`{argsOverrider: [{containerName: web, operator: remove, value: [-v]}]}`,
			`{"patches":[{"op":"add","path":"/spec/template/spec/containers/0/args","value":[]}]}`, "",
		},
		"a label put in place of one that is there, and of none": {
			`{labelsOverrider: [{operator: replace, value: {app: api, none: a}}]}`,
			`{"labels":{"set":{"app":"api"}}}`, "",
		},
		"a label put, and taken away again": {
			`{labelsOverrider: [{operator: add, value: {tier: a}}, {operator: remove, value: {tier: a}}, {operator: remove, value: {app: a}}, {operator: add, value: {app: b}}]}`,
			`{"labels":{"remove":["tier"],"set":{"app":"b"}}}`, "",
		},
		"a part of a file": {
			`{fieldOverrider: [{fieldPath: /metadata/annotations/a, json: [{subPath: /a, operator: add, value: 1}]}]}`,
			"", "spec.overrideRules[0].overriders.fieldOverrider[0]",
		},
		"a patch of another sort": {
			`{plaintext: [{path: /spec/minReadySeconds, operator: copy, value: 1}]}`,
			"", "spec.overrideRules[0].overriders.plaintext[0].operator",
		},
	} {
		t.Run(name, func(t *testing.T) {
			web := workload(3)
			containers := []any{
				map[string]any{"name": "web", "image": "nginx:1.27", "command": []any{"nginx"}},
				map[string]any{"name": "side", "image": "r.example.com/side:v1", "command": []any{"run"}, "args": []any{"-x"}},
			}
			if err := unstructured.SetNestedSlice(web.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				t.Fatal(err)
			}
			rules := policy(t, "OverridePolicy", "shop", "o", "{overrideRules: [{overriders: "+tc.overriders+"}]}")
			result, err := importer.Karmada(request(t), []*unstructured.Unstructured{web, propagation(web), rules})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, o := range result.FleetWorkload.Spec.Overrides {
				o.Name = ""
				got += strings.Replace(inYAML(t, o), `,"name":""`, "", 1)
			}
			got = strings.Replace(got, `"name":"",`, "", 1)
			if got != tc.want {
				t.Errorf("overrides %s\nwant      %s", got, tc.want)
			}
			var told []string
			for _, u := range result.Unexpressed {
				told = append(told, u.Field)
			}
			if joined := strings.Join(told, " "); joined != tc.told {
				t.Errorf("told %q, want %q", joined, tc.told)
			}
		})
	}
}

// A part that every cluster gets can be another one on some; what adds to a part that an earlier rule has set cannot be said.
func TestRulesOneAfterTheOther(t *testing.T) {
	tag := func(operator, value string) string {
		return "overriders: {imageOverrider: [{component: Tag, operator: " + operator + ", value: " + value + "}]}"
	}
	for name, tc := range map[string]struct{ first, second, told string }{
		"set twice":             {tag("replace", "v2"), tag("replace", "v3"), ""},
		"set, then added to":    {tag("replace", "v2"), tag("add", "-alpine"), "spec.overrideRules[1].overriders.imageOverrider[0]"},
		"added to, then set":    {tag("add", "-alpine"), tag("replace", "v3"), ""},
		"set, then taken away":  {tag("replace", "v2"), tag("remove", `""`), "spec.overrideRules[1].overriders.imageOverrider[0]"},
		"set, then set to none": {tag("replace", "v2"), tag("replace", `""`), "spec.overrideRules[1].overriders.imageOverrider[0]"},
	} {
		rules := policy(t, "OverridePolicy", "shop", "o", "{overrideRules: [{"+tc.first+"}, {targetCluster: {clusterNames: [member2]}, "+tc.second+"}]}")
		result, err := importer.Karmada(request(t), []*unstructured.Unstructured{workload(3), propagation(workload(3)), rules})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, u := range result.Unexpressed {
			told = append(told, u.Field)
		}
		if got := strings.Join(told, " "); got != tc.told {
			t.Errorf("%s: told %q, want %q", name, got, tc.told)
		}
	}
}

// A policy's placement is spec.placement, in the API's words.
func TestKarmadaPlacement(t *testing.T) {
	const spread = "spreadConstraints: [{spreadByField: region, minGroups: 2}]"
	static := "weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [member1]}, weight: 1000000}]}"
	weights := `"division":{"type":"Divided","weights":[{"clusters":{"names":["member1"]},"weight":1000000}]}`
	bySpread := `"spread":[{"by":"Region","minGroups":2}]`
	for name, tc := range map[string]struct {
		placement, want string
		// told are fields of Unexpressed, and notes begin with the policy.
		told  []string
		notes int
	}{
		"everywhere":                       {"{}", `{"clusters":{}}`, nil, 0},
		"labels and an expression":         {"{clusterAffinity: {labelSelector: {matchLabels: {env: prod}, matchExpressions: [{key: tier, operator: Exists}]}}}", `{"clusters":{"selector":{"matchExpressions":[{"key":"tier","operator":"Exists"}],"matchLabels":{"env":"prod"}}}}`, nil, 0},
		"an expression":                    {"{clusterAffinity: {labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}}}", `{"clusters":{"selector":{"matchExpressions":[{"key":"tier","operator":"Exists"}]}}}`, nil, 0},
		"no labels":                        {"{clusterAffinity: {labelSelector: {}}}", `{"clusters":{}}`, nil, 0},
		"regions":                          {"{clusterAffinity: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu-west]}]}}}", `{"clusters":{"attributes":[{"key":"Region","operator":"In","values":["eu-west"]}]}}`, nil, 0},
		"regions, and none is named":       {"{clusterAffinity: {fieldSelector: {matchExpressions: [{key: region, operator: In}]}}}", `{"clusters":{}}`, []string{"spec.placement.clusterAffinity.fieldSelector.matchExpressions"}, 0},
		"spread":                           {"{" + spread + "}", `{"clusters":{},` + bySpread + "}", nil, 0},
		"spread, at most":                  {"{spreadConstraints: [{spreadByField: zone, maxGroups: 1}]}", `{"clusters":{},"spread":[{"by":"Zone","maxGroups":1}]}`, nil, 0},
		"spread to more than can be":       {"{spreadConstraints: [{spreadByField: zone, maxGroups: 1001, minGroups: 1001}]}", `{"clusters":{},"spread":[{"by":"Zone","maxGroups":1000,"minGroups":1000}]}`, nil, 0},
		"spread, duplicated":               {"{" + spread + ", replicaScheduling: {replicaSchedulingType: Duplicated, replicaDivisionPreference: Weighted, " + static + "}}", `{"clusters":{},` + bySpread + "}", nil, 0},
		"spread, aggregated":               {"{" + spread + ", replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}", `{"clusters":{},"division":{"preference":"Aggregated","type":"Divided"},` + bySpread + "}", nil, 0},
		"spread, by available replicas":    {"{" + spread + ", replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}", `{"clusters":{},"division":{"preference":"AvailableCapacity","type":"Divided"},` + bySpread + "}", nil, 0},
		"spread, by both sorts of weights": {"{" + spread + ", replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas, staticWeightList: [{targetCluster: {}, weight: 1}]}}}", `{"clusters":{},"division":{"preference":"AvailableCapacity","type":"Divided"},` + bySpread + "}", nil, 1},
		"spread, and no weights":           {"{" + spread + ", replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {}}}", `{"clusters":{},"division":{"type":"Divided"},` + bySpread + "}", nil, 0},
		"spread, beside static weights":    {"{" + spread + ", replicaScheduling: {replicaDivisionPreference: Weighted, " + static + "}}", `{"clusters":{},` + weights + "}", nil, 1},
		"spread, and equal weights":        {"{" + spread + ", replicaScheduling: {replicaDivisionPreference: Weighted}}", `{"clusters":{},"division":{"type":"Divided"}}`, nil, 1},
		"too great a weight, and too small": {
			"{replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {}, weight: 1000001}, {targetCluster: {}, weight: 0}, {targetCluster: {}, weight: 1}]}}}",
			`{"clusters":{},"division":{"type":"Divided","weights":[{"clusters":{},"weight":1}]}}`,
			[]string{"spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight", "spec.placement.replicaScheduling.weightPreference.staticWeightList[1].weight"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy(t, "PropagationPolicy", "shop", "p", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], conflictResolution: Overwrite, placement: "+tc.placement+"}")
			result, err := importer.Karmada(request(t), []*unstructured.Unstructured{workload(3), p})
			if err != nil {
				t.Fatal(err)
			}
			if got := inYAML(t, result.FleetWorkload.Spec.Placement); got != tc.want {
				t.Errorf("placement %s\nwant      %s", got, tc.want)
			}
			var told []string
			for _, u := range result.Unexpressed {
				told = append(told, u.Field)
			}
			if diff := cmp.Diff(tc.told, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			about := slices.DeleteFunc(result.Notes, func(n string) bool { return !strings.HasPrefix(n, "PropagationPolicy shop/p: ") })
			if len(about) != tc.notes {
				t.Errorf("notes %v", about)
			}
		})
	}
}
