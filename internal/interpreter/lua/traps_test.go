package lua_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative/luavm"
	"github.com/karmada-io/karmada/pkg/util/helper"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

const kruise1 = "apps.kruise.io/v1alpha1"

func pairOf(tb testing.TB, apiVersion, kind string) *pair {
	tb.Helper()
	for _, k := range kinds(tb) {
		if k.GVK() == schema.FromAPIVersionAndKind(apiVersion, kind) {
			return &pair{kind: k, scripts: generate(tb, k), vm: luavm.New(false, 1), seen: map[string]int{}}
		}
	}
	tb.Fatalf("%s %s is not known", apiVersion, kind)
	return nil
}

func parse(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	return &u
}

// natural is where Lua and Go cannot agree. docs/health.md has the list.
type natural struct {
	what, inLua, why string
	// differ fails when the difference is not there.
	differ func(t *testing.T)
}

// byNature are the differences between Lua and Go that nothing can be done about.
var byNature = []natural{
	{"a list without elements where an object belongs, or the other way round", "empty",
		"An empty table is both in Lua. No API server stores one for the other.",
		healthDiffers("batch/v1", "CronJob", `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"generation":1},"status":[]}`, true)},
	{"null in a list", "not there", "Karmada leaves nulls out when it makes a table of a list. A list of conditions has none.",
		healthDiffers("batch/v1", "Job", `{"apiVersion":"batch/v1","kind":"Job","metadata":{},"status":{"conditions":[null,{"type":"Complete","status":"True"}]}}`, true)},
	{"an object that has nulls alone, where its presence counts", "absent", "A table has no nulls, and an empty one counts as absent.",
		healthDiffers(kruise1, "SidecarSet", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","metadata":{"generation":1},
			"spec":{"updateStrategy":{"selector":{"matchLabels":null}}},"status":{"observedGeneration":1,"matchedPods":2,"updatedPods":0}}`, false)},
	{"a generation of 2^53", "too large", "Lua's numbers are float64, so it cannot be told from 2^53+1, which Go refuses too.",
		healthDiffers(kruise1, "CloneSet", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{"generation":9007199254740992},
			"spec":{"replicas":0},"status":{"observedGeneration":9007199254740992,"replicas":0,"readyReplicas":0,"updatedReplicas":0,"availableReplicas":0}}`, false)},
	{"`spec.replicas: null`", "left out, so 1", "A table has no nulls; to an API server they are the same too.", replicasDiffer(`null`, 1)},
	{"`spec.replicas: 3.0`", "3", "Lua has one type of number.", replicasDiffer(`3.0`, 3)},
	{"references of a cluster-scoped workload that does not say where its pods are", "left out",
		"Karmada cannot find an object without its namespace, and tries again for ever.", namespaceDiffers},
	{"a pod template that Kubernetes cannot read", "what can be read", "Lua does not know the type of every field. Go gives an error.", templateDiffers},
}

// healthDiffers makes sure that Lua gives that answer and Go the other.
func healthDiffers(apiVersion, kind, text string, inLua bool) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		p, object := pairOf(t, apiVersion, kind), parse(t, text)
		state, _ := p.kind.State(interpreter.ReportOf(object))
		got, err := p.vm.InterpretHealth(object, p.scripts.HealthInterpretation)
		if err != nil || got != inLua || (state.Health == "Healthy") == inLua {
			t.Errorf("Lua says %t, %v; Go says %+v", got, err, state)
		}
	}
}

func replicasDiffer(text string, want int32) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		p := pairOf(t, "apps/v1", "Deployment")
		object := parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":`+text+`}}`)
		_, _, errGo := interpreter.Replicas(p.kind, object)
		if got, _, err := p.vm.GetReplicas(object, p.scripts.ReplicaResource); err != nil || got != want || errGo == nil {
			t.Errorf("Lua says %d, %v; Go says %v", got, err, errGo)
		}
	}
}

func namespaceDiffers(t *testing.T) {
	t.Helper()
	p := pairOf(t, kruise1, "SidecarSet")
	object := parse(t, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","spec":{"imagePullSecrets":[{"name":"pull"}]}}`)
	inGo, errGo := interpreter.Dependencies(p.kind, object)
	inLua, err := p.vm.GetDependencies(object, p.scripts.DependencyInterpretation)
	if err != nil || errGo != nil || len(inGo) != 1 || len(inLua) != 0 {
		t.Errorf("Lua says %v, %v; Go says %v, %v", inLua, err, inGo, errGo)
	}
}

func templateDiffers(t *testing.T) {
	t.Helper()
	p := pairOf(t, "apps/v1", "Deployment")
	object := parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop"},
		"spec":{"template":{"spec":{"hostNetwork":"x","imagePullSecrets":[{"name":"pull"}]}}}}`)
	_, errGo := interpreter.Dependencies(p.kind, object)
	inLua, err := p.vm.GetDependencies(object, p.scripts.DependencyInterpretation)
	if err != nil || errGo == nil || len(inLua) != 1 {
		t.Errorf("Lua says %v, %v; Go says %v", inLua, err, errGo)
	}
}

func TestByNature(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range byNature {
		t.Run(n.what, n.differ)
		if row := fmt.Sprintf("| %s | %s | %s |\n", n.what, n.inLua, n.why); !strings.Contains(string(raw), row) {
			t.Errorf("docs/health.md lacks the row %s", row)
		}
	}
}

// probe lists the globals, with what they are.
const probe = `function Probe()
  local names = {}
  for name, v in pairs(_G) do
    names[#names + 1] = name .. "=" .. tostring(v)
  end
  table.sort(names)
  return table.concat(names, "\n")
end`

func globals(t *testing.T, vm *luavm.VM) []string {
	t.Helper()
	out, err := vm.RunScript(probe, "Probe", 1)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(out[0].String(), "\n"), func(line string) bool { return strings.HasPrefix(line, "Probe=") })
}

// TestNoGlobals: Karmada's states are used again for other scripts, of other people too. Nothing but the one function
// may stay behind.
func TestNoGlobals(t *testing.T) {
	for _, kind := range kinds(t) {
		p := &pair{kind: kind, scripts: generate(t, kind), vm: luavm.New(false, 1), seen: map[string]int{}}
		before := globals(t, p.vm)
		for seed := range int64(25) {
			if err := p.compare(newGenerator(seeded(seed), kind)); err != nil {
				t.Fatal(err)
			}
		}
		if p.scripts.Retention != "" {
			if _, err := p.vm.Retain(parse(t, broadcastJob), parse(t, broadcastJob), p.scripts.Retention); err != nil {
				t.Fatal(err)
			}
		}
		functions := []string{"GetReplicas", "ReviseReplica", "ReflectStatus", "AggregateStatus", "InterpretHealth", "GetDependencies", "Retain"}
		after := slices.DeleteFunc(globals(t, p.vm), func(line string) bool {
			name, _, _ := strings.Cut(line, "=")
			return slices.Contains(functions, name)
		})
		if err := same(before, after); err != nil {
			t.Errorf("%s: %v", kind.GVK(), err)
		}
	}
}

const broadcastJob = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"BroadcastJob","spec":{"template":{"metadata":{"labels":{"app":"old","uid":"u"}}}}}`

func TestRetention(t *testing.T) {
	p := pairOf(t, "apps.kruise.io/v1beta1", "BroadcastJob")
	for desired, want := range map[string]string{
		`{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"volumes":[{"emptyDir":{}}]}}}`: `{"template":{"metadata":{"labels":{"app":"web","uid":"u"}},"spec":{"volumes":[{"emptyDir":{}}]}}}`,
		`{"template":{}}`: `{"template":{"metadata":{"labels":{"app":"old","uid":"u"}}}}`,
		`{"template":5}`:  `{"template":5}`,
	} {
		object := func(spec string) *unstructured.Unstructured {
			return parse(t, `{"apiVersion":"apps.kruise.io/v1beta1","kind":"BroadcastJob","spec":`+spec+`}`)
		}
		got, err := p.vm.Retain(object(desired), parse(t, broadcastJob), p.scripts.Retention)
		if err != nil {
			t.Fatal(err)
		}
		if err := same(normal(object(want).Object), normal(got.Object)); err != nil {
			t.Error(err)
		}
	}
}

// TestRetentionAnswersAProbe: and nothing else is retained, but for replicas that are asked for. That Karmada overwrites is said to no member.
func TestRetentionAnswersAProbe(t *testing.T) {
	for _, kind := range kinds(t) {
		if kind.Replicas != "spec.replicas" {
			continue
		}
		p := pairOf(t, kind.GVK().GroupVersion().String(), kind.Definition.Kind)
		if !strings.Contains(p.scripts.Retention, lua.LabelProbe) {
			continue // it has no replicas on Karmada
		}
		object := func(labels, spec string) *unstructured.Unstructured {
			return parse(t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"web","labels":%s},"spec":%s}`,
				kind.GVK().GroupVersion(), kind.Definition.Kind, labels, spec))
		}
		probe := fmt.Sprintf(`{%q:%q}`, lua.LabelProbe, lua.ProbeOnly)
		for spec, want := range map[string]string{`{"replicas":5}`: "5", `{"replicas":0}`: "0", `{}`: "?", `{"replicas":"x"}`: "?", `5`: "?"} {
			_, err := p.vm.Retain(object(probe, `{"replicas":2}`), object(`{}`, spec), p.scripts.Retention)
			if err == nil {
				t.Fatalf("%s: %s is not refused", kind.GVK(), spec)
			}
			got := "?"
			n, answered := lua.ProbeAnswer(err.Error())
			if n != nil {
				got = fmt.Sprint(*n)
			}
			if !answered || got != want {
				t.Errorf("%s: %s: %v", kind.GVK(), spec, err)
			}
		}
		for found, want := range map[string]string{"overwrite": "abort", "abort": "abort"} {
			desired := object(`{"app":"web"}`, `{"replicas":2}`)
			desired.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": found, "a": "overwrite"})
			got, err := p.vm.Retain(desired, object(`{}`, `{"replicas":5}`), p.scripts.Retention)
			if err != nil {
				t.Fatal(err)
			}
			desired.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": want, "a": "overwrite"})
			if err := same(normal(desired.Object), normal(got.Object)); err != nil {
				t.Errorf("%s: %v", kind.GVK(), err)
			}
		}
		for labels, want := range map[string]int64{`{"app":"web"}`: 2, `{"resourcetemplate.karmada.io/retain-replicas":"true"}`: 5} {
			got, err := p.vm.Retain(object(labels, `{"replicas":2,"template":{"spec":{"volumes":[{"emptyDir":{}}]}}}`), object(`{}`, `{"replicas":5}`), p.scripts.Retention)
			if err != nil {
				t.Fatal(err)
			}
			if err := same(normal(object(labels, fmt.Sprintf(`{"replicas":%d,"template":{"spec":{"volumes":[{"emptyDir":{}}]}}}`, want)).Object), normal(got.Object)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAnothersObjectIsRefused, of every kind that has Retain: one with Karmada's label that is neither the FleetWorkload's nor the binding's,
// also when it is probed, unless Karmada is told to overwrite. What is no FleetWorkload's is none of our business.
func TestAnothersObjectIsRefused(t *testing.T) {
	const (
		ours    = `"fleetworkload.io/uid":"u1"`
		theirs  = `"fleetworkload.io/uid":"u2"`
		karmada = `"karmada.io/managed":"true"`
		binding = `"resourcebinding.karmada.io/permanent-id":"b1","clusterresourcebinding.karmada.io/permanent-id":"b1"`
		other   = `"resourcebinding.karmada.io/permanent-id":"b2","clusterresourcebinding.karmada.io/permanent-id":"b2"`
		unbound = `"resourcebinding.karmada.io/permanent-id":"","clusterresourcebinding.karmada.io/permanent-id":""`
	)
	for _, kind := range kinds(t) {
		p := &pair{kind: kind, scripts: generate(t, kind), vm: luavm.New(false, 1), seen: map[string]int{}}
		if p.scripts.Retention == "" {
			if kind.BuiltIn() || kind.Replicas != "" {
				t.Errorf("%s: another Karmada's object would be written", kind.GVK())
			}
			continue
		}
		for name, c := range map[string]struct {
			desired, observed string
			refused           bool
		}{
			"another FleetWorkload's":               {ours + "," + binding, karmada + "," + theirs + "," + other, true},
			"nobody's that we know":                 {ours + "," + binding, karmada + "," + other, true},
			"without a binding":                     {ours + "," + binding, karmada, true},
			"neither knows its binding":             {ours + "," + unbound, karmada + "," + unbound, true},
			"told to overwrite":                     {ours + "," + binding, karmada + "," + theirs, false},
			"probed":                                {ours + "," + binding + `,"fleetworkload.io/probe":"x"`, karmada + "," + theirs, true},
			"ours, from a Karmada before this one":  {ours + "," + binding, karmada + "," + ours + "," + other, false},
			"ours, and somebody took our label off": {ours + "," + binding, karmada + "," + binding, false},
			"no Karmada's":                          {ours + "," + binding, theirs + "," + other, false},
			"nothing has labels":                    {"", "", false},
			"a manifest that is no FleetWorkload's": {binding, karmada + "," + other, false},
		} {
			object := func(labels, resolution string) *unstructured.Unstructured {
				return parse(t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"web","namespace":"shop","labels":{%s},"annotations":{%q:%q}},"spec":{"replicas":2}}`,
					kind.GVK().GroupVersion(), kind.Definition.Kind, labels, "work.karmada.io/conflict-resolution", resolution))
			}
			resolution := "abort"
			if name == "told to overwrite" {
				resolution = "overwrite"
			}
			_, err := p.vm.Retain(object(c.desired, resolution), object(c.observed, "abort"), p.scripts.Retention)
			if refused := err != nil && strings.Contains(err.Error(), lua.Another); refused != c.refused || err != nil && !refused {
				t.Errorf("%s, %s: %v", kind.GVK(), name, err)
			}
		}
	}
}

// TestAJobKeepsItsSelector, and the labels of its pods, as Karmada's own interpreter has it.
func TestAJobKeepsItsSelector(t *testing.T) {
	p := pairOf(t, "batch/v1", "Job")
	job := func(spec string) *unstructured.Unstructured {
		return parse(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"once"},"spec":`+spec+`}`)
	}
	const live = `{"selector":{"matchLabels":{"uid":"u"}},"template":{"metadata":{"labels":{"app":"old","uid":"u"}},"spec":{"volumes":[{"emptyDir":{}}]}}}`
	for desired, want := range map[string]string{
		`{"parallelism":2,"template":{"metadata":{"labels":{"app":"new"}},"spec":{"volumes":[{"emptyDir":{}}]}}}`: `{"parallelism":2,` + live[1:],
		`{"template":{}}`: `{"selector":{"matchLabels":{"uid":"u"}},"template":{"metadata":{"labels":{"app":"old","uid":"u"}}}}`,
		`{"template":5}`:  `{"selector":{"matchLabels":{"uid":"u"}},"template":5}`,
	} {
		got, err := p.vm.Retain(job(desired), job(live), p.scripts.Retention)
		if err != nil {
			t.Fatal(err)
		}
		if err := same(normal(job(want).Object), normal(got.Object)); err != nil {
			t.Error(err)
		}
		if got, err = p.vm.Retain(job(desired), job(`{}`), p.scripts.Retention); err != nil || same(normal(job(desired).Object), normal(got.Object)) != nil {
			t.Errorf("%s: %v, %v", desired, got, err)
		}
	}
}

// TestRequirements: what a pod asks for reaches Karmada's scheduler, but not of a workload of 0 replicas: with
// requirements the scheduler would send that nowhere, and so delete it everywhere.
func TestRequirements(t *testing.T) {
	const template = `{"spec":{"nodeSelector":{"disk":"ssd"},"containers":[{"name":"a","resources":{"requests":{"cpu":"250m","memory":"1Gi"}}}]}}`
	var pod corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(template), &pod); err != nil {
		t.Fatal(err)
	}
	want := helper.GenerateReplicaRequirements(&pod)
	for _, test := range []struct{ apiVersion, kind, at string }{
		{"apps/v1", "Deployment", template}, {kruise1, "CloneSet", template}, {"apps.kruise.io/v1beta1", "StatefulSet", template},
		{kruise1, "UnitedDeployment", `{"cloneSetTemplate":{"spec":{"template":` + template + `}}}`},
	} {
		p := pairOf(t, test.apiVersion, test.kind)
		for _, n := range []int32{0, 3} {
			object := parse(t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"spec":{"replicas":%d,"template":%s}}`, test.apiVersion, test.kind, n, test.at))
			got, requirements, err := p.vm.GetReplicas(object, p.scripts.ReplicaResource)
			if err != nil || got != n {
				t.Fatalf("%s: %d, %v", test.kind, got, err)
			}
			expect := want
			if n == 0 {
				expect = nil
			}
			if dump(requirements) != dump(expect) {
				t.Errorf("%s of %d: want %s, got %s", test.kind, n, dump(expect), dump(requirements))
			}
		}
	}
	p := pairOf(t, kruise1, "CloneSet")
	object := parse(t, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"replicas":3,"template":{"spec":"x"}}}`)
	if n, requirements, err := p.vm.GetReplicas(object, p.scripts.ReplicaResource); n != 3 || requirements != nil || err != nil {
		t.Errorf("of a malformed pod template: %d, %v, %v", n, requirements, err)
	}
}

// TestRefusals: what Karmada shows to people says what is wrong.
func TestRefusals(t *testing.T) {
	p := pairOf(t, kruise1, "UnitedDeployment")
	object := parse(t, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"UnitedDeployment","spec":{"topology":{"subsets":[{"name":"a","replicas":2}]}}}`)
	if _, err := p.vm.ReviseReplica(object, 3, p.scripts.ReplicaRevision); err == nil || !strings.Contains(err.Error(), "sum up to 2, so that OpenKruise refuses 3") {
		t.Error(err)
	}
	p = pairOf(t, kruise1, "CloneSet")
	object = parse(t, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"replicas":-1}}`)
	if _, _, err := p.vm.GetReplicas(object, p.scripts.ReplicaResource); err == nil || !strings.Contains(err.Error(), "spec.replicas must be a whole number") {
		t.Error(err)
	}
}

// TestParallelismIsNotReplicas: Karmada's own interpreters would divide it, and set it to 1 where it is not given.
func TestParallelismIsNotReplicas(t *testing.T) {
	for _, kind := range kinds(t) {
		s := generate(t, kind)
		switch name := kind.Definition.Kind; name {
		case "Job", "BroadcastJob", "Workflow":
			p := &pair{kind: kind, scripts: s, vm: luavm.New(false, 1)}
			object := parse(t, `{"apiVersion":"x/v1","kind":"Job","spec":{"parallelism":5}}`)
			if n, requirements, err := p.vm.GetReplicas(object, s.ReplicaResource); n != 0 || requirements != nil || err != nil {
				t.Errorf("%s: %d, %v, %v", kind.GVK(), n, requirements, err)
			}
			got, err := p.vm.ReviseReplica(object, 1, s.ReplicaRevision)
			if err != nil || same(normal(object.Object), normal(got.Object)) != nil {
				t.Errorf("%s: %v, %v", kind.GVK(), got, err)
			}
		default:
			if (kind.Replicas == "") != (s.ReplicaResource == "") || (kind.Replicas == "") != (s.ReplicaRevision == "") {
				t.Errorf("%s: replicas at %q, and scripts %q and %q", kind.GVK(), kind.Replicas, s.ReplicaResource, s.ReplicaRevision)
			}
		}
	}
}

// TestManyClusters: a thousand clusters are far inside the second that Karmada gives a script.
func TestManyClusters(t *testing.T) {
	p := pairOf(t, kruise1, "CloneSet")
	items := make([]workv1alpha2.AggregatedStatusItem, 1000)
	for i := range items {
		items[i] = workv1alpha2.AggregatedStatusItem{ClusterName: fmt.Sprint("m", i), Status: &runtime.RawExtension{Raw: []byte(
			`{"observedGeneration":4,"generation":4,"resourceTemplateGeneration":2,"replicas":2000000,"updatedReplicas":1,"updateRevision":"r"}`)}}
	}
	target := parse(t, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{"generation":2}}`)
	if err := p.aggregation(target, items); err != nil {
		t.Error(err)
	}
	if want := expected(p.kind, target, items); want["replicas"] != int64(2000000000) || want["observedGeneration"] != int64(2) {
		t.Errorf("got %v", want)
	}
}

// TestSchema: a status has what the CRD requires (config/crd/bases of OpenKruise v1.8.3) once any cluster has reported.
func TestSchema(t *testing.T) {
	for kind, required := range map[string][]string{
		"CloneSet":         {"availableReplicas", "readyReplicas", "replicas", "updatedReadyReplicas", "updatedReplicas"},
		"UnitedDeployment": {"currentRevision", "replicas", "updatedReplicas"},
		"DaemonSet":        {"currentNumberScheduled", "daemonSetHash", "desiredNumberScheduled", "numberMisscheduled", "numberReady", "updatedNumberScheduled"},
		"SidecarSet":       {"matchedPods", "readyPods", "updatedPods"},
		"BroadcastJob":     {"active", "desired", "failed", "phase", "succeeded"},
	} {
		p := pairOf(t, kruise1, kind)
		items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(`{"generation":1,"observedGeneration":1,"desired":1}`)}}, {ClusterName: "m2"}}
		got, err := p.vm.AggregateStatus(parse(t, `{"apiVersion":"x/v1","kind":"X","metadata":{"generation":1}}`), items, p.scripts.StatusAggregation)
		if err != nil {
			t.Fatal(err)
		}
		status, _ := got.Object["status"].(map[string]any)
		for _, field := range required {
			if status[field] == nil {
				t.Errorf("%s: no %s in %v", kind, field, status)
			}
		}
		for _, foreign := range []string{"generation", "resourceTemplateGeneration", lua.FieldRevision, lua.FieldUID} {
			if status[foreign] != nil {
				t.Errorf("%s: %s is not a field of the status", kind, foreign)
			}
		}
	}
}

// TestDescribed: a kind of the configuration has scripts for what its description says, and none for what is CEL.
func TestDescribed(t *testing.T) {
	r, err := interpreter.New(interpreter.Description{
		Group: "example.io", Version: "v1", Kind: "Widget", Resource: "widgets", ReplicasPath: "spec.size",
		Feedback: []interpreter.FeedbackPath{{Name: "mode", Path: "data.mode"}},
		Health:   interpreter.Health{Healthy: `object.data.mode == "on"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	widget := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}
	kind := r.For(widget)
	s, err := lua.Generate(kind)
	if err != nil || s.HealthInterpretation != "" || s.StatusAggregation != "" || s.DependencyInterpretation != "" {
		t.Fatalf("%v, %+v", err, s)
	}
	vm := luavm.New(false, 1)
	object := parse(t, `{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4,"uid":"u1",
		"annotations":{"fleetworkload.io/revision":"r1","resourcetemplate.karmada.io/generation":"3"}},
		"spec":{"size":5},"data":{"mode":"on"},"status":{"list":[1,2],"phase":"Running"}}`)
	raw, err := vm.ReflectStatus(object, s.StatusReflection)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw.Raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"list": []any{1.0, 2.0}, "phase": "Running", "mode": "on", "generation": 4.0,
		"resourceTemplateGeneration": 3.0, lua.FieldRevision: "r1", lua.FieldUID: "u1"}
	if err := same(normal(want), normal(got)); err != nil {
		t.Error(err)
	}
	if state, err := kind.State(interpreter.Report{Manifest: object, Status: got}); err != nil || state.Health != "Healthy" {
		t.Errorf("%+v, %v", state, err)
	}
	if n, _, err := vm.GetReplicas(object, s.ReplicaResource); err != nil || n != 5 {
		t.Errorf("%d replicas, %v", n, err)
	}
	other, err := lua.Generate(r.For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Other"}))
	if err != nil || (other != lua.Scripts{StatusReflection: other.StatusReflection}) || other.StatusReflection == "" {
		t.Errorf("a kind that nobody described has %+v, %v", other, err)
	}
}

// TestGolden shows what the scripts of two kinds look like. Write them anew with -update.
func TestGolden(t *testing.T) {
	for _, of := range [][2]string{{kruise1, "CloneSet"}, {kruise1, "UnitedDeployment"}} {
		s := pairOf(t, of[0], of[1]).scripts
		var b strings.Builder
		for _, part := range []struct{ name, text string }{
			{"retention", s.Retention}, {"replicaResource", s.ReplicaResource}, {"replicaRevision", s.ReplicaRevision},
			{"statusReflection", s.StatusReflection}, {"statusAggregation", s.StatusAggregation},
			{"healthInterpretation", s.HealthInterpretation}, {"dependencyInterpretation", s.DependencyInterpretation},
		} {
			fmt.Fprintf(&b, "---------- %s ----------\n%s\n", part.name, part.text)
		}
		path := filepath.Join("testdata", of[1]+".golden.lua")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := same(string(want), b.String()); err != nil {
			t.Errorf("%s is not what is generated; run: go test ./internal/interpreter/lua -run TestGolden -update: %v", path, err)
		}
	}
}

// TestRetainWorkflow: the status is kept, and a member's suspension unless the template decides it.
func TestRetainWorkflow(t *testing.T) {
	p := pairOf(t, "argoproj.io/v1alpha1", "Workflow")
	workflow := func(spec, more string) *unstructured.Unstructured {
		return parse(t, `{"apiVersion":"argoproj.io/v1alpha1","kind":"Workflow","spec":`+spec+more+`}`)
	}
	for desired, want := range map[string]any{`{}`: true, `{"suspend":false}`: false, `{"suspend":true}`: true} {
		got, err := p.vm.Retain(workflow(desired, ""), workflow(`{"suspend":true}`, `,"status":{"phase":"Running"}`), p.scripts.Retention)
		if err != nil {
			t.Fatal(err)
		}
		suspend, _, _ := unstructured.NestedFieldNoCopy(got.Object, "spec", "suspend")
		phase, _, _ := unstructured.NestedString(got.Object, "status", "phase")
		if suspend != want || phase != "Running" {
			t.Errorf("%s: suspend %v, want %v; phase %q", desired, suspend, want, phase)
		}
	}
}
