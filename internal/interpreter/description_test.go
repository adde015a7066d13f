package interpreter

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const widgetText = `
group: example.io
version: v1
kind: Widget
resource: widgets
replicasPath: spec.size
podTemplatePath: spec.template
status:
- {name: observedGeneration, path: status.observedGeneration, type: long}
- {name: replicas, path: status.members.total, type: int}
- {name: ready, path: status.members.ready, type: int}
- {name: phase, path: status.phase, type: string, combine: worst, order: [Failed, Running]}
- {name: readyCondition, path: "status.conditions[type=Ready].status", type: string, combine: all}
health:
  degraded: has(status.phase) && status.phase == "Failed"
  suspended: has(spec.paused) && spec.paused
  progressing: status.members.ready < spec.size
  healthy: status.conditions.exists(c, c.type == "Ready" && c.status == "True")
feedback:
- {name: leader, path: status.members.leader}
- {name: mode, path: spec.mode.name}
`

func widget() Description {
	var d Description
	if err := yaml.UnmarshalStrict([]byte(widgetText), &d); err != nil {
		panic(err)
	}
	return d
}

func TestDescribed(t *testing.T) {
	kind := registry(t, widget()).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"})
	for name, test := range map[string]struct {
		body   string
		health v1alpha1.Health
		reason Reason
	}{
		"all is well":      {`{spec: {size: 2}, status: {observedGeneration: 2, members: {total: 2, ready: 2}, conditions: [{type: Ready, status: "True"}]}}`, healthy, ReasonRule},
		"not yet":          {`{spec: {size: 2}, status: {observedGeneration: 2, members: {total: 2, ready: 1}}}`, progressing, ReasonRule},
		"failed":           {`{spec: {size: 2}, status: {observedGeneration: 2, phase: Failed}}`, degraded, ReasonRule},
		"paused":           {`{spec: {size: 2, paused: true}, status: {observedGeneration: 2}}`, suspended, ReasonRule},
		"stale":            {`{spec: {size: 2}, status: {observedGeneration: 1, phase: Failed}}`, progressing, ReasonNotObserved},
		"a missing field":  {`{spec: {size: 2}, status: {observedGeneration: 2}}`, unknown, ReasonRuleFailed},
		"no rule holds":    {`{spec: {size: 2}, status: {observedGeneration: 2, members: {ready: 2}, conditions: []}}`, progressing, ReasonNoRule},
		"a field is wrong": {`{spec: {size: 2}, status: {observedGeneration: 2, members: {ready: two}}}`, unknown, ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			report := ReportOf(live{apiVersion: "example.io/v1", kind: "Widget", body: test.body}.object(t))
			s, err := kind.State(report)
			if s.Health != test.health || s.Reason != test.reason {
				t.Errorf("got %+v, %v", s, err)
			}
			if test.reason == ReasonRuleFailed && !strings.HasPrefix(s.Message, "kinds[0].health.progressing: no such key") {
				t.Errorf("message %q does not name the rule", s.Message)
			}
			if want := "the rule for " + string(s.Health) + " holds"; s.Reason == ReasonRule && s.Health != healthy && !strings.EqualFold(s.Message, want) {
				t.Errorf("message %q, want %q", s.Message, want)
			}
			if s.Health == healthy && (s.Message != "" || *s.Desired != 2 || *s.Replicas != 2 || *s.Ready != 2 || s.Updated != nil || s.Available != nil) {
				t.Errorf("got %+v", s)
			}
			if again, _ := kind.State(flat(kind, report)); test.reason != ReasonMalformed && test.reason != ReasonNoRule && again.Health != s.Health {
				t.Errorf("fed back by OCM it is %+v", again)
			}
		})
	}
	paths := map[string]string{}
	for _, f := range kind.Feedback() {
		paths[f.Name] = f.Path
	}
	if paths["ready"] != ".status.members.ready" || paths["leader"] != ".status.members.leader" || paths["generation"] != ".metadata.generation" {
		t.Errorf("feedback is %v", paths)
	}
	fleet := aggregated(t, kind, `{"observedGeneration":1,"members":{"total":2,"ready":2},"phase":"Running"}`,
		`{"observedGeneration":1,"ready":1,"phase":"Failed"}`)
	if s := fleet.Status(); s["phase"] != "Failed" || s["members"].(map[string]any)["ready"] != int64(3) {
		t.Errorf("the fleet is %v", s)
	}
}

// TestDescribedKindOfTheCoreGroup: a kind without a group or a namespace, and with fields that have the names of numbers without
// being numbers.
func TestDescribedKindOfTheCoreGroup(t *testing.T) {
	d := Description{
		Version: "v1", Kind: "Freezer", Resource: "freezers", Scope: ScopeCluster,
		Status: []StatusField{
			{Name: "ready", Path: "status.isReady", Type: TypeBool}, {Name: "updated", Path: "status.updatedAt", Type: TypeString},
			{Name: "available", Path: "status.cold", Type: TypeInt},
		},
		Health: Health{Healthy: "status.isReady", Degraded: "!status.isReady"},
	}
	kind := registry(t, d).For(schema.GroupVersionKind{Version: "v1", Kind: "Freezer"})
	if !kind.ClusterScoped || kindOf(t, "apps/v1", "Deployment").ClusterScoped || gadget(t).ClusterScoped {
		t.Error("only the Freezer has no namespace")
	}
	for isReady, want := range map[bool]v1alpha1.Health{true: healthy, false: degraded} {
		for name, status := range map[string]map[string]any{
			"nested": {"isReady": isReady, "updatedAt": "today", "cold": int64(3)}, "flat": {"ready": isReady, "updated": "today", "available": int64(3)},
		} {
			s, err := kind.State(Report{Status: status})
			if err != nil || s.Health != want || s.Ready != nil || s.Updated != nil || s.Available == nil || *s.Available != 3 {
				t.Errorf("%s: ready %v: got %+v, %v", name, isReady, s, err)
			}
		}
	}
}

// What a cluster runs may differ from what it is to run: the manifest is sent to it, and must stay as it is.
func TestReportsDoNotChangeTheManifest(t *testing.T) {
	kind := gadget(t)
	manifest := live{apiVersion: "example.io/v1", kind: "Widget", body: `{spec: {size: 2, mode: {name: new}}}`}.object(t)
	before := manifest.DeepCopy()
	_, err := kind.State(Report{Manifest: manifest, Status: map[string]any{"observedGeneration": int64(1), "mode": "old", "readyCondition": "True", "ready": int64(2)}})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(manifest, before) {
		t.Errorf("the manifest became %v", manifest.Object)
	}
}

func TestDescriptionErrorsNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Description){
		`kinds[1].kind: "" is not a name`:                        func(d *Description) { d.Kind = "" },
		`kinds[1].resource: "Widgets" is not a name`:             func(d *Description) { d.Resource = "Widgets" },
		`kinds[1].group: "Example.io" is not a name`:             func(d *Description) { d.Group = "Example.io" },
		`kinds[1].scope: "Planet" is neither`:                    func(d *Description) { d.Scope = "Planet" },
		`kinds[1].replicasPath: path "a[": a bracket`:            func(d *Description) { d.ReplicasPath = "a[" },
		`kinds[1].selfRemovalPath: path "a[type=b]": only names`: func(d *Description) { d.SelfRemovalPath = "a[type=b]" },
		`kinds[1].selectorPath: path "a[type=b]": only names`:    func(d *Description) { d.SelectorPath = "a[type=b]" },
		`kinds[1].status[0].type: "number" is none of`:           func(d *Description) { d.Status[0].Type = "number" },
		`kinds[1].status[0].combine: "sum" does not combine`:     func(d *Description) { d.Status[0].Combine = Sum },
		`kinds[1].status[0].path: "spec.x" does not start with`:  func(d *Description) { d.Status[0].Path = "spec.x" },
		`kinds[1].status[3].order: `:                             func(d *Description) { d.Status[3].Order = nil },
		`kinds[1].status[0].name: "generation" is not a name`:    func(d *Description) { d.Status[0].Name = "generation" },
		`kinds[1].status[0].absent: "gone" is neither`:           func(d *Description) { d.Status[0].Absent = "gone" },
		`kinds[1]: v1 Widget: phase is declared twice`:           func(d *Description) { d.Status[1].Name = "phase" },
		`kinds[1].health.degraded: ERROR`:                        func(d *Description) { d.Health.Degraded = "status.phase ==" },
		`kinds[1].health.healthy: "1 + 1" is of type int`:        func(d *Description) { d.Health.Healthy = "1 + 1" },
		`kinds[1].health.suspended: ERROR`:                       func(d *Description) { d.Health.Suspended = "nothing.here" },
		`kinds[1].health: at least one rule`:                     func(d *Description) { d.Health = Health{} },
		`kinds[1].feedback[0].path: path "" is empty`:            func(d *Description) { d.Feedback[0].Path = "" },
		`kinds[1].feedback[0].name: "ready" is a field`:          func(d *Description) { d.Feedback[0].Name = "ready" },
		`kinds[1]: example.io/v1, Kind=Gadget is described tw`:   func(d *Description) { d.Kind = "Gadget" },
		`kinds[1]: apps/v1, Kind=Deployment is built in`: func(d *Description) {
			d.Group, d.Version, d.Kind = "apps", "v1", "Deployment"
		},
	} {
		first, second := widget(), widget()
		first.Kind, first.Resource = "Gadget", "gadgets"
		change(&second)
		_, err := New(first, second)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestRulesAreBounded(t *testing.T) {
	d := widget()
	d.Health = Health{Healthy: "status.list.all(a, status.list.all(b, status.list.all(c, status.list.all(d, a + b + c + d >= 0))))"}
	d.Status, d.ReplicasPath = nil, ""
	kind := registry(t, d).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"})
	list := make([]any, 100)
	for i := range list {
		list[i] = int64(i)
	}
	s, _ := kind.State(Report{Status: map[string]any{"generation": int64(1), "list": list}})
	if s.Reason != ReasonRuleFailed || !strings.Contains(s.Message, `in the operator's configuration: it costs more here than the 50000 units`) {
		t.Errorf("got %+v", s)
	}
	d.Health.Healthy = strings.Repeat("true && ", 1000) + "true"
	if _, err := New(d); err == nil {
		t.Error("a rule of 8000 characters is too long")
	}
}

func TestGeneric(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion, kind, body string
		health                 v1alpha1.Health
		reason                 Reason
	}{
		"ready":               {"example.io/v1", "Gadget", `{status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, healthy, ReasonKstatus},
		"not ready":           {"example.io/v1", "Gadget", `{status: {observedGeneration: 2, conditions: [{type: Ready, status: "False"}]}}`, progressing, ReasonKstatus},
		"stale":               {"example.io/v1", "Gadget", `{status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, progressing, ReasonKstatus},
		"stalled":             {"example.io/v1", "Gadget", `{status: {conditions: [{type: Stalled, status: "True"}]}}`, degraded, ReasonKstatus},
		"only the generation": {"example.io/v1", "Gadget", `{status: {observedGeneration: 2}}`, healthy, ReasonKstatus},
		"no sign":             {"example.io/v1", "Gadget", `{status: {phase: Fine}}`, unknown, ReasonNoHealthSignal},
		"no status":           {"example.io/v1", "Gadget", `{}`, unknown, ReasonNoHealthSignal},
		"a crashing Pod":      {"v1", "Pod", `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: side, state: {running: {}}}, {name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, degraded, ReasonKstatus},
		"a Pod, fed back":     {"v1", "Pod", `{status: {phase: Running, conditionReady: "False", crashLooping: web}}`, degraded, ReasonKstatus},
		"a ready Pod":         {"v1", "Pod", `{status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, healthy, ReasonKstatus},
		"a Pod's part":        {"v1", "Pod", `{status: {conditions: [{type: Ready, status: "True"}]}}`, progressing, ReasonKstatus},
		"a failed Pod":        {"v1", "Pod", `{status: {phase: Failed, reason: Evicted}}`, degraded, ReasonFailed},
		"a malformed Pod":     {"v1", "Pod", `{status: {phase: Running, containerStatuses: [{name: 5, state: {}}]}}`, unknown, ReasonMalformed},
		"an unplaced Pod":     {"v1", "Pod", `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`, degraded, ReasonKstatus},
		"a pending claim":     {"v1", "PersistentVolumeClaim", `{status: {phase: Pending}}`, progressing, ReasonKstatus},
		"a bound claim":       {"v1", "PersistentVolumeClaim", `{status: {phase: Bound}}`, healthy, ReasonKstatus},
		"a silent claim":      {"v1", "PersistentVolumeClaim", `{}`, progressing, ReasonKstatus},
		"names refused":       {"apiextensions.k8s.io/v1", "CustomResourceDefinition", `{status: {conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: taken}, {type: Established, status: "False", reason: NotAccepted}]}}`, degraded, ReasonKstatus},
		"established":         {"apiextensions.k8s.io/v1", "CustomResourceDefinition", `{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, healthy, ReasonKstatus},
		"a CRD's part":        {"apiextensions.k8s.io/v1", "CustomResourceDefinition", `{status: {conditions: [{type: Established, status: "True"}]}}`, progressing, ReasonWaitingForStatus},
		"a Service":           {"v1", "Service", `{spec: {clusterIP: 10.0.0.1}, status: {loadBalancer: {}}}`, healthy, ReasonKstatus},
		"a Service, fed back": {"v1", "Service", `{spec: {type: LoadBalancer}, status: {clusterIP: 10.0.0.1}}`, healthy, ReasonKstatus},
		"a Service's part":    {"v1", "Service", `{spec: {}, status: {loadBalancer: {}}}`, progressing, ReasonWaitingForStatus},
		"a Service elsewhere": {"v1", "Service", `{spec: {type: ExternalName, externalName: example.org}, status: {loadBalancer: {}}}`, healthy, ReasonKstatus},
		"what is only there":  {"v1", "ConfigMap", `{data: {}}`, healthy, ReasonKstatus},
		"a budget":            {"policy/v1", "PodDisruptionBudget", `{status: {observedGeneration: 2, currentHealthy: 1}}`, healthy, ReasonKstatus},
		"a silent budget":     {"policy/v1", "PodDisruptionBudget", `{}`, progressing, ReasonWaitingForStatus},
		"an unknown version":  {"apps.kruise.io/v1beta1", "CloneSet", `{status: {observedGeneration: 2, replicas: 1}}`, unknown, ReasonUnknownVersion},
		"a ReplicaSet":        {"apps/v1", "ReplicaSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2, fullyLabeledReplicas: 2}}`, healthy, ReasonKstatus},
		"a starting one":      {"apps/v1", "ReplicaSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1}}`, progressing, ReasonKstatus},
	} {
		t.Run(name, func(t *testing.T) {
			kind := registry(t).For(schema.FromAPIVersionAndKind(test.apiVersion, test.kind))
			report := ReportOf(live{apiVersion: test.apiVersion, kind: test.kind, body: test.body}.object(t))
			s, err := kind.State(report)
			if s.Health != test.health || s.Reason != test.reason {
				t.Errorf("got %+v, %v", s, err)
			}
			report.Status = floats(t, report.Status)
			if again, err := kind.State(report); again.Health != s.Health || again.Reason != s.Reason {
				t.Errorf("decoded with float64 it is %+v, %v", again, err)
			}
		})
	}
}

// TestGenericMessages: a condition's message, or its reason when there is none, is what a user reads.
func TestGenericMessages(t *testing.T) {
	for body, want := range map[string]string{
		`{status: {conditions: [{type: Stalled, status: "True", reason: NoQuota, message: too many}]}}`: "too many",
		`{status: {conditions: [{type: Stalled, status: "True", reason: NoQuota}]}}`:                    "NoQuota",
		`{status: {conditions: [{type: Ready, status: "False"}]}}`:                                      "",
		`{status: {conditions: [{type: Ready, status: "True"}]}}`:                                       "",
	} {
		kind := registry(t).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Gadget"})
		s, err := kind.State(ReportOf(live{apiVersion: "example.io/v1", kind: "Gadget", body: body}.object(t)))
		if err != nil || s.Message != want {
			t.Errorf("%s: got %+v, %v, want %q", body, s, err, want)
		}
	}
}

func TestDependencies(t *testing.T) {
	const pod = `{serviceAccountName: robot, imagePullSecrets: [{name: pull}],
 initContainers: [{name: i, image: i, envFrom: [{configMapRef: {name: init}}]}],
 ephemeralContainers: [{name: e, image: e, envFrom: [{secretRef: {name: debug}}]}],
 containers: [{name: c, image: c, envFrom: [{prefix: P, secretRef: {name: maybe, optional: true}}],
  env: [{name: A, valueFrom: {configMapKeyRef: {name: conf, key: a}}}, {name: B, valueFrom: {secretKeyRef: {name: sec, key: b, optional: true}}},
   {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: D, valueFrom: {secretKeyRef: {name: sec, key: d}}}]}],
 volumes: [{name: a, configMap: {name: vol}}, {name: b, secret: {secretName: volsec}}, {name: c, persistentVolumeClaim: {claimName: data}},
  {name: d, projected: {sources: [{secret: {name: proj}}, {configMap: {name: projmap, optional: true}}, {serviceAccountToken: {path: t}}]}},
  {name: e, csi: {driver: x, nodePublishSecretRef: {name: csi}}}, {name: f, emptyDir: {}}, {name: g, azureFile: {secretName: azure, shareName: s}}]}`
	const want = "ConfigMap/conf ConfigMap/init ConfigMap/projmap? ConfigMap/vol PersistentVolumeClaim/data Secret/azure Secret/csi " +
		"Secret/debug Secret/maybe? Secret/proj Secret/pull Secret/sec Secret/volsec ServiceAccount/robot"
	for name, test := range map[string]struct{ apiVersion, kind, spec string }{
		"Deployment":           {"apps/v1", "Deployment", `{template: {spec: POD}}`},
		"CronJob":              {"batch/v1", "CronJob", `{jobTemplate: {spec: {template: {spec: POD}}}}`},
		"AdvancedCronJob":      {kruise1, "AdvancedCronJob", `{template: {broadcastJobTemplate: {spec: {template: {spec: POD}}}}}`},
		"UnitedDeployment":     {kruise1, "UnitedDeployment", `{template: {advancedStatefulSetTemplate: {spec: {template: {spec: POD}}}}}`},
		"Advanced StatefulSet": {kruise2, "StatefulSet", `{template: {spec: POD}}`},
	} {
		t.Run(name, func(t *testing.T) {
			u := live{apiVersion: test.apiVersion, kind: test.kind, body: "{spec: " + strings.ReplaceAll(test.spec, "POD", pod) + "}"}.object(t)
			if got := dependencies(t, kindOf(t, test.apiVersion, test.kind), u); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	sidecar := live{apiVersion: kruise1, kind: "SidecarSet", body: `{metadata: {name: s}, spec: {namespace: apps,
 initContainers: [{name: i, image: i, envFrom: [{configMapRef: {name: init}}]}], containers: [{name: c, image: c, podInjectPolicy: BeforeAppContainer}],
 volumes: [{name: b, secret: {secretName: volsec}}], imagePullSecrets: [{name: pull}]}}`}.object(t)
	if got, want := dependencies(t, kindOf(t, kruise1, "SidecarSet"), sidecar), "ConfigMap/init Secret/pull Secret/volsec"; got != want {
		t.Errorf("SidecarSet: got %s, want %s", got, want)
	}
	flow := live{apiVersion: "argoproj.io/v1alpha1", kind: "Workflow", body: `{spec: {serviceAccountName: argo, templates: [
 {name: a, script: {image: x, envFrom: [{secretRef: {name: s1}}]}, inputs: {artifacts: [{name: in, s3: {accessKeySecret: {name: s2, key: k}}}], parameters: [{name: p, valueFrom: {configMapKeyRef: {name: c1, key: k, optional: true}}}]}},
 {name: b, sidecars: [{name: y, env: [{name: E, valueFrom: {secretKeyRef: {name: "{{inputs.parameters.s}}", key: k}}}]}], volumes: [{name: v, secret: {secretName: s3}}, {name: w, persistentVolumeClaim: {claimName: d1}}]}]}}`}.object(t)
	if got, want := dependencies(t, kindOf(t, "argoproj.io/v1alpha1", "Workflow"), flow),
		"ConfigMap/c1? PersistentVolumeClaim/d1 Secret/s1 Secret/s2 Secret/s3 ServiceAccount/argo"; got != want {
		t.Errorf("Workflow: got %s, want %s", got, want)
	}
	bad := live{apiVersion: "apps/v1", kind: "Deployment", body: `{spec: {template: {spec: {containers: 5}}}}`}.object(t)
	if _, err := Dependencies(kindOf(t, "apps/v1", "Deployment"), bad); err == nil {
		t.Error("a pod template that cannot be read is an error")
	}
}

// TestWorkflowsAreReadToADepth: however deep an author nests a Workflow, reading it ends; what lies deeper than any real one goes is
// not found.
func TestWorkflowsAreReadToADepth(t *testing.T) {
	kind := kindOf(t, "argoproj.io/v1alpha1", "Workflow")
	inMap := func(v any) any { return map[string]any{"steps": v} }
	inList := func(v any) any { return []any{v} }
	for name, test := range map[string]struct {
		nest   func(any) any
		levels int
		want   string
	}{
		"maps": {inMap, deepest, "Secret/deep"}, "maps too deep": {inMap, deepest + 1, ""},
		"lists": {inList, deepest, "Secret/deep"}, "lists too deep": {inList, deepest + 1, ""},
	} {
		var spec any = map[string]any{"secretRef": map[string]any{"name": "deep"}}
		for range test.levels {
			spec = test.nest(spec)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "shop"}, "spec": spec}}
		if got := dependencies(t, kind, u); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func dependencies(t *testing.T, kind *Kind, u *unstructured.Unstructured) string {
	t.Helper()
	found, err := Dependencies(kind, u)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range found {
		name := d.Kind + "/" + d.Name
		if d.Optional {
			name += "?"
		}
		if want := map[bool]string{true: "apps", false: "shop"}[kind.ClusterScoped]; d.Namespace != want || d.Version != "v1" {
			t.Errorf("%s is in %s", name, d.Namespace)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestRulesAreBoundedTogether (law 11): what one member reports makes rules dear, and a thousand of them would take minutes. What is left over is not
// known, says which rule it is, and goes on without harm: numbers are read all the same.
func TestRulesAreBoundedTogether(t *testing.T) {
	d := widget()
	d.Health = Health{Degraded: "status.list.all(a, status.list.all(b, a + b < 0))", Healthy: "status.list.exists(a, a == 1)"}
	d.Status, d.ReplicasPath = []StatusField{{Name: "ready", Path: "status.ready", Type: TypeInt}}, ""
	kind := registry(t, d).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"})
	report := func(elements int, budget *Budget) Report {
		list := make([]any, elements)
		for i := range list {
			list[i] = int64(-i)
		}
		return Report{Status: map[string]any{"generation": int64(1), "ready": int64(3), "list": list}, Budget: budget}
	}
	cheap := NewBudget()
	for range 1000 {
		if s, _ := kind.State(report(5, cheap)); s.Reason == ReasonRuleFailed {
			t.Fatalf("a thousand clusters with short lists: %+v after %d", s, cheap.spent)
		}
	}
	dear, asked := NewBudget(), 0
	var last State
	for range 1000 {
		before := dear.spent
		if last, _ = kind.State(report(800, dear)); dear.spent > before {
			asked++
		}
	}
	if dear.spent > maxSpent+maxCost || asked == 0 || asked > 900 {
		t.Errorf("%d units, on %d clusters", dear.spent, asked)
	}
	if last.Health != v1alpha1.HealthUnknown || last.Reason != ReasonRuleFailed || *last.Ready != 3 ||
		last.Message != `kinds[0].health.degraded "`+d.Health.Degraded+`" in the operator's configuration: it was not asked here: on the clusters before, the kind's rules `+
			"have cost the 500000 units that they may cost on all together; go through shorter lists there, or have the kind's controller write less into the status" {
		t.Errorf("got %+v", last)
	}
	if s, _ := kind.State(report(5, nil)); s.Reason == ReasonRuleFailed {
		t.Errorf("without a budget: %+v", s)
	}
}

// TestWhatIsComparedCosts (law 11): CEL counts a comparison of values whose types it does not know as 1, however much there is to compare.
func TestWhatIsComparedCosts(t *testing.T) {
	list, objects := make([]any, 2000), make([]any, 500)
	for i := range list {
		list[i] = int64(i)
	}
	for i := range objects {
		objects[i] = map[string]any{"type": strings.Repeat("x", 40)}
	}
	status := map[string]any{"generation": int64(1), "list": list, "objects": objects, "text": strings.Repeat("x", 20_000)}
	for rule, least := range map[string]uint64{
		"object.status.list == object.status.list":                  2000,
		"object.status.objects != object.status.objects":            2500,
		"-1 in object.status.list":                                  2000,
		"(object.status.text + object.status.text) == 'x'":          4000,
		"object.status.text.size() == 1":                            2000,
		"object.status.list == object.status.objects":               1,
		"object.status.list + object.status.list == []":             1,
		"object.status.text == object.status.list":                  1,
		"'type' in object.status.objects[0] && 1 in {1: 2, 'a': 3}": 1,
	} {
		d := widget()
		d.Health, d.Status, d.ReplicasPath = Health{Healthy: rule}, nil, ""
		budget := NewBudget()
		s, _ := registry(t, d).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}).State(Report{Status: status, Budget: budget})
		if s.Reason == ReasonRuleFailed || budget.spent < least || least == 1 && budget.spent > 100 {
			t.Errorf("%s: %d units, %+v", rule, budget.spent, s)
		}
	}
}

// TestAMissingFieldCostsLittle: most clusters of a new workload have not reported yet, and that must not use the budget up.
func TestAMissingFieldCostsLittle(t *testing.T) {
	d := widget()
	d.Health, d.Status, d.ReplicasPath = Health{Healthy: "status.nothing.here"}, nil, ""
	kind, budget := registry(t, d).For(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}), NewBudget()
	s, _ := kind.State(Report{Status: map[string]any{"generation": int64(1)}, Budget: budget})
	if s.Reason != ReasonRuleFailed || budget.spent == 0 || budget.spent > 100 {
		t.Errorf("%d units: %+v", budget.spent, s)
	}
}
