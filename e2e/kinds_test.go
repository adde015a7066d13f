//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// life is what one kind of workload goes through. All lives, on both backends, take each step together, so that what
// they wait for they wait for at once.
type life struct {
	name       string
	apiVersion string
	kind       string
	// spec of the template, without containers.
	spec string
	// pod is where the pod template's spec is in the template; nil when the step's set says all.
	pod []string
	// clusterScoped kinds carry the namespace in their name, and select by it.
	clusterScoped bool
	// replicas of each cluster; nil for kinds without.
	replicas *int32
	steps    map[string]change
}

// change is one step of a life, and what is to come of it on every cluster.
type change struct {
	// set is merged over the template's spec (RFC 7386); image and cpu make the pod's one container.
	set      string
	image    string
	cpu      string
	replicas *int32
	health   v1alpha1.Health
	// message is part of each cluster's message; empty: there is none.
	message string
	// counts are each cluster's desired/replicas/ready/updated/available; empty: the kind counts nothing.
	counts string
}

// Nothing has that many: a pod that asks for it never runs. Argo writes quantities in their canonical form, so it is in that.
const tooMuch = "100k"

// stepNames are in order.
var stepNames = []string{"create", "update", "partition", "release", "zero", "back", "pause", "resume", "stuck"}

// heldSteps must stay as they are: what they hold back may not go on.
var heldSteps = []string{"partition", "pause", "stuck"}

const (
	healthy     = v1alpha1.HealthHealthy
	progressing = v1alpha1.HealthProgressing
	suspended   = v1alpha1.HealthSuspended
	degraded    = v1alpha1.HealthDegraded

	selected = `selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}}`
)

// replicated are the steps of kinds with two replicas; partition and pause are merged over the spec for those steps. stuck
// are the counts when the first pod of an update cannot run.
func replicated(stuck, partition, release, pause, resume string) map[string]change {
	two := ptr(int32(2))
	const done, none, held = "2/2/2/2/2", "0/0/0/0/0", "2/2/2/0/2"
	steps := map[string]change{
		"create": {image: "1", health: healthy, counts: done},
		"update": {image: "2", health: healthy, counts: done},
		"zero":   {replicas: ptr(int32(0)), health: healthy, counts: none},
		"back":   {replicas: two, health: healthy, counts: done},
		"stuck":  {image: "5", cpu: tooMuch, health: progressing, message: "1 of 2 updated", counts: stuck},
	}
	if partition != "" {
		steps["partition"] = change{set: partition, image: "3", health: healthy, message: "1 of 2 updated as asked", counts: "2/2/2/1/2"}
		steps["release"] = change{set: release, health: healthy, counts: done}
	}
	if pause != "" {
		steps["pause"] = change{set: pause, image: "4", health: suspended, message: "paused with 0 of 2 updated", counts: held}
		steps["resume"] = change{set: resume, health: healthy, counts: done}
	}
	return steps
}

func lives() []life {
	podTemplate := []string{"spec", "template", "spec"}
	two := ptr(int32(2))
	// Members have three nodes.
	const oneDown, onNodes = "2/2/1/1/1", "3/3/3/3/3"
	rolling := func(fields string) string { return `{updateStrategy: {rollingUpdate: {` + fields + `}}}` }
	broadcast := func(name, spec string, create change) life {
		return life{name: name, apiVersion: "apps.kruise.io/v1alpha1", kind: "BroadcastJob", pod: podTemplate,
			spec: `{template: {metadata: {labels: {app: NAME}}, spec: {restartPolicy: Never}}, ` + spec + `}`, steps: map[string]change{"create": create}}
	}
	job := func(name, spec string, create change) life {
		return life{name: name, apiVersion: "batch/v1", kind: "Job", pod: podTemplate,
			spec: `{template: {spec: {restartPolicy: Never}}, ` + spec + `}`, steps: map[string]change{"create": create}}
	}
	workflow := func(name, resources, spec string, steps map[string]change) life {
		return life{name: name, apiVersion: "argoproj.io/v1alpha1", kind: "Workflow", steps: steps, spec: `{entrypoint: main,
templates: [{name: main, container: {image: "registry.example.com/shop/web:1", command: [run], resources: ` + resources + `}}]` + spec + `}`}
	}
	return []life{
		{name: "deployment", apiVersion: "apps/v1", kind: "Deployment", spec: `{` + selected + `}`, pod: podTemplate, replicas: two,
			steps: replicated("2/3/2/1/2", "", "", `{paused: true}`, `{paused: false}`)},
		{name: "statefulset", apiVersion: "apps/v1", kind: "StatefulSet", spec: `{serviceName: none, ` + selected + `}`, pod: podTemplate, replicas: two,
			steps: replicated(oneDown, rolling("partition: 1"), rolling("partition: 0"), "", "")},
		{name: "daemonset", apiVersion: "apps/v1", kind: "DaemonSet", spec: `{` + selected + `}`, pod: podTemplate, steps: map[string]change{
			"create": {image: "1", health: healthy, counts: onNodes}, "update": {image: "2", health: healthy, counts: onNodes},
			"stuck": {image: "3", cpu: tooMuch, health: progressing, message: "1 of 3 updated", counts: "3/3/2/1/2"},
		}},
		job("job", `completions: 2`, change{image: "1", health: healthy, message: "finished: 2 succeeded"}),
		job("job-suspended", `suspend: true`, change{image: "1", health: suspended, message: "suspended with 0 succeeded"}),
		job("job-stuck", `completions: 1`, change{image: "1", cpu: tooMuch, health: progressing, message: "1 active, 0 succeeded, 0 failed"}),
		{name: "cronjob", apiVersion: "batch/v1", kind: "CronJob", pod: []string{"spec", "jobTemplate", "spec", "template", "spec"},
			spec: `{schedule: "0 0 29 2 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}}`, steps: map[string]change{
				"create": {image: "1", health: healthy}, "update": {image: "2", health: healthy},
				"pause": {set: `{suspend: true}`, health: suspended, message: "suspended"}, "resume": {set: `{suspend: false}`, health: healthy},
			}},
		{name: "cloneset", apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet", pod: podTemplate, replicas: two,
			spec: `{updateStrategy: {type: InPlaceIfPossible}, ` + selected + `}`,
			steps: replicated(oneDown, `{updateStrategy: {partition: "50%"}}`, `{updateStrategy: {partition: 0}}`,
				`{updateStrategy: {paused: true}}`, `{updateStrategy: {paused: false}}`)},
		{name: "asts", apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", spec: `{serviceName: none, ` + selected + `}`, pod: podTemplate,
			replicas: two, steps: replicated(oneDown, rolling("partition: 1"), rolling("partition: 0"), rolling("paused: true"), rolling("paused: false"))},
		{name: "ads", apiVersion: "apps.kruise.io/v1alpha1", kind: "DaemonSet", spec: `{` + selected + `}`, pod: podTemplate, steps: map[string]change{
			"create": {image: "1", health: healthy, counts: onNodes}, "update": {image: "2", health: healthy, counts: onNodes},
			"partition": {set: rolling("partition: 1"), image: "3", health: healthy, message: "2 of 3 updated as asked", counts: "3/3/3/2/3"},
			"release":   {set: rolling("partition: 0"), health: healthy, counts: onNodes},
			"pause":     {set: rolling("paused: true"), image: "4", health: suspended, message: "paused with 0 of 3 updated", counts: "3/3/3/0/3"},
			"resume":    {set: rolling("paused: false"), health: healthy, counts: onNodes},
			"stuck":     {image: "5", cpu: tooMuch, health: progressing, message: "1 of 3 updated", counts: "3/3/2/1/2"},
		}},
		{name: "uniteddeployment", apiVersion: "apps.kruise.io/v1alpha1", kind: "UnitedDeployment", replicas: two,
			pod: []string{"spec", "template", "cloneSetTemplate", "spec", "template", "spec"},
			spec: `{selector: {matchLabels: {app: NAME}}, template: {cloneSetTemplate: {metadata: {labels: {app: NAME}},
  spec: {selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}}}}},
topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}}]}}`,
			steps: replicated(oneDown, `{updateStrategy: {type: Manual, manualUpdate: {partitions: {a: 1}}}}`,
				`{updateStrategy: {type: Manual, manualUpdate: {partitions: {a: 0}}}}`, "", "")},
		{name: "sidecarset", apiVersion: "apps.kruise.io/v1alpha1", kind: "SidecarSet", clusterScoped: true,
			spec: `{namespace: NAMESPACE, selector: {matchLabels: {app: injected}}, updateStrategy: {type: RollingUpdate, maxUnavailable: 100%}}`,
			steps: map[string]change{
				"create":    {set: sidecar("1", ""), health: healthy, message: "no pod has the sidecar yet", counts: "0/0/0/0/-"},
				"partition": {set: sidecar("2", `updateStrategy: {partition: "50%"}`), health: healthy, message: "1 of 2 updated as asked", counts: "2/2/2/1/-"},
				"release":   {set: sidecar("2", `updateStrategy: {partition: 0}`), health: healthy, counts: "2/2/2/2/-"},
				"pause":     {set: sidecar("3", `updateStrategy: {paused: true}`), health: suspended, message: "paused with 0 of 2 updated", counts: "2/2/2/0/-"},
				"resume":    {set: sidecar("3", `updateStrategy: {paused: false}`), health: healthy, counts: "2/2/2/2/-"},
			}},
		// Pods for the SidecarSet; they must come after it.
		{name: "injected", apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet", spec: `{` + selected + `}`, pod: podTemplate, replicas: two,
			steps: map[string]change{"update": {image: "1", health: healthy, counts: "2/2/2/2/2"}}},
		broadcast("broadcastjob", `completionPolicy: {type: Always}`, change{image: "1", health: healthy, message: "finished: "}),
		broadcast("broadcastjob-paused", `paused: true`, change{image: "1", health: suspended, message: "paused with 0 of"}),
		// Its controller makes pods only for nodes that have room for them.
		broadcast("broadcastjob-nowhere", `completionPolicy: {type: Always}`, change{image: "1", cpu: tooMuch, health: healthy, message: "no node matches"}),
		workflow("workflow", `{}`, "", map[string]change{"create": {health: healthy}}),
		workflow("workflow-suspended", `{}`, ", suspend: true", map[string]change{
			"create": {health: suspended, message: "suspended at"}, "resume": {set: `{suspend: false}`, health: healthy},
		}),
		workflow("workflow-stuck", `{requests: {cpu: "`+tooMuch+`"}}`, "", map[string]change{
			"create": {health: progressing, message: "running, 0/1 done"},
		}),
		{name: "advancedcronjob", apiVersion: "apps.kruise.io/v1alpha1", kind: "AdvancedCronJob",
			pod: []string{"spec", "template", "broadcastJobTemplate", "spec", "template", "spec"},
			spec: `{schedule: "0 0 29 2 *", template: {broadcastJobTemplate: {spec: {completionPolicy: {type: Always},
  template: {spec: {restartPolicy: Never}}}}}}`, steps: map[string]change{
				"create": {image: "1", health: healthy},
				"pause":  {set: `{paused: true}`, health: suspended, message: "suspended"}, "resume": {set: `{paused: false}`, health: healthy},
			}},
	}
}

func sidecar(tag, more string) string {
	if more != "" {
		more = ", " + more
	}
	return `{containers: [{name: sidecar, image: "registry.example.com/shop/proxy:` + tag + `"}]` + more + `}`
}

// livedOn is a life on one backend.
type livedOn struct {
	life
	backend string
	fw      *v1alpha1.FleetWorkload
}

func (l life) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(l.apiVersion, l.kind)
}

// starts tells whether the life begins with this step.
func (l life) starts(step string) bool {
	for _, name := range stepNames {
		if _, takes := l.steps[name]; takes {
			return name == step
		}
	}
	return false
}

// fleetWorkload is the life as it begins.
func (l life) fleetWorkload(namespace, backend string) *v1alpha1.FleetWorkload {
	GinkgoHelper()
	text := strings.NewReplacer("NAMESPACE", namespace, "NAME", l.name).Replace(l.spec)
	var spec map[string]any
	Expect(yaml.Unmarshal([]byte(text), &spec)).To(Succeed(), l.name)
	metadata := map[string]any{}
	if l.clusterScoped {
		metadata["name"] = l.name + "-" + namespace
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": l.apiVersion, "kind": l.kind, "metadata": metadata, "spec": spec})
	Expect(err).NotTo(HaveOccurred())
	return &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.name},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: backend, Replicas: l.replicas, Template: runtime.RawExtension{Raw: raw},
			Placement: v1alpha1.Placement{Clusters: on(world.members[:2]...)},
		},
	}
}

// merge applies a step to the FleetWorkload's spec.
func (l life) merge(fw *v1alpha1.FleetWorkload, c change) {
	GinkgoHelper()
	var manifest map[string]any
	Expect(json.Unmarshal(fw.Spec.Template.Raw, &manifest)).To(Succeed())
	if c.set != "" {
		var set map[string]any
		Expect(yaml.Unmarshal([]byte(c.set), &set)).To(Succeed())
		overlay(manifest["spec"].(map[string]any), set)
	}
	if c.image != "" {
		container := map[string]any{"name": "web", "image": "registry.example.com/shop/web:" + c.image}
		if c.cpu != "" {
			container["resources"] = map[string]any{"requests": map[string]any{"cpu": c.cpu}}
		}
		at := manifest
		for _, key := range l.pod {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at["containers"] = []any{container}
	}
	raw, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	fw.Spec.Template.Raw = raw
	if c.replicas != nil {
		fw.Spec.Replicas = c.replicas
	}
}

// overlay merges objects into objects.
func overlay(into, from map[string]any) {
	for key, v := range from {
		below, isObject := v.(map[string]any)
		if there, both := into[key].(map[string]any); isObject && both {
			overlay(there, below)
			continue
		}
		into[key] = v
	}
}

// take makes the step on one backend.
func (r *livedOn) take(ctx context.Context, step string) {
	GinkgoHelper()
	c, takes := r.steps[step]
	switch {
	case !takes:
	case r.starts(step):
		r.merge(r.fw, c)
		create(ctx, r.fw)
	default:
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { r.merge(fw, c) })
	}
}

// readyReasons are the reasons of Ready by the health of all clusters.
var readyReasons = map[v1alpha1.Health]string{
	healthy: v1alpha1.ReasonReady, progressing: v1alpha1.ReasonProgressing, suspended: v1alpha1.ReasonSuspended, degraded: v1alpha1.ReasonDegraded,
}

// missing says what is not yet as the step wants it; it is empty when all is.
func (r *livedOn) missing(step string) string {
	c, fw := r.steps[step], r.fw
	var all []string
	if !isObserved(fw) || len(fw.Status.Clusters) != 2 || isReady(fw) != (c.health == healthy) {
		all = append(all, "not there yet")
	}
	if got := condition(fw, v1alpha1.ConditionReady).Reason; got != readyReasons[c.health] {
		all = append(all, fmt.Sprintf("Ready for %q instead of %q", got, readyReasons[c.health]))
	}
	if got := condition(fw, v1alpha1.ConditionHealthy).Reason; got != string(c.health) {
		all = append(all, fmt.Sprintf("Healthy for %q instead of %q", got, c.health))
	}
	for _, row := range fw.Status.Clusters {
		if row.Health != c.health || !strings.Contains(row.Message, c.message) || (c.message == "") != (row.Message == "") ||
			row.Revision != fw.Status.Revision || row.Applied != metav1.ConditionTrue {
			all = append(all, fmt.Sprintf("%s is not %s, %q", row.Name, c.health, c.message))
		}
		if got, want := countsOf(row), cmp.Or(c.counts, "-/-/-/-/-"); got != want {
			all = append(all, fmt.Sprintf("%s counts %s instead of %s", row.Name, got, want))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ") + "\n" + describe(fw)
}

// countsOf a row are its desired/replicas/ready/updated/available.
func countsOf(row v1alpha1.ClusterStatus) string {
	var all []string
	for _, n := range []*int32{row.Desired, row.Replicas, row.Ready, row.Updated, row.Available} {
		all = append(all, show(n))
	}
	return strings.Join(all, "/")
}

// comparable is a status without what must differ: times, generations, the backend's name, and what is made of names.
func comparable(fw *v1alpha1.FleetWorkload) string {
	GinkgoHelper()
	s := fw.Status.DeepCopy()
	s.Backend, s.Identity, s.Revision, s.Placement, s.ObservedGeneration, s.Workload = "", "", "", nil, nil, nil
	if s.SpecRevision != nil {
		s.SpecRevision.Name, s.SpecRevision.ObservedGeneration = "", nil // the name is of the UID
	}
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime, s.Conditions[i].ObservedGeneration = metav1.Time{}, 0
		if s.Conditions[i].Type == v1alpha1.ConditionIndependent {
			s.Conditions[i].Message = "" // it names the other backend
		}
	}
	for i := range s.Clusters {
		s.Clusters[i].Revision, s.Clusters[i].LastTransitionTime = "", nil
	}
	raw, err := yaml.Marshal(s)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// Every kind, on both backends, comes to the same status at every step (law 9). A sample has half of the kinds.
var _ = Describe("Every kind's life", Label("kinds", "sweep"), long, Ordered, ContinueOnFailure, func() {
	var (
		all      [][]*livedOn // by life, by backend
		recorder *momentRecorder
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		namespaces, watched := map[string]string{}, []*livedOn{}
		for _, b := range backends {
			namespaces[b] = newNamespace(ctx, "kinds-"+b)
		}
		for _, l := range deal("lives", slices.Concat(lives(), endings()))[0] {
			var both []*livedOn
			for _, b := range backends {
				both = append(both, &livedOn{life: l, backend: b, fw: l.fleetWorkload(namespaces[b], b)})
			}
			all = append(all, both)
			watched = append(watched, both[0])
		}
		recorder = recordMoments(watched)
	})

	for _, step := range stepNames {
		It("step: "+step, func(ctx SpecContext) {
			recorder.during(step)
			for _, both := range all {
				for _, r := range both {
					r.take(ctx, step)
				}
			}
			// One wait for all, and one list of what failed.
			Eventually(func(g Gomega) {
				g.Expect(strings.Join(lacking(ctx, g, all, step), "\n")).To(BeEmpty())
			}).WithContext(ctx).WithTimeout(2 * readyTimeout).WithPolling(time.Second).Should(Succeed())
			if slices.Contains(heldSteps, step) {
				Consistently(func(g Gomega) {
					g.Expect(strings.Join(lacking(ctx, g, all, step), "\n")).To(BeEmpty())
				}).WithContext(ctx).WithTimeout(hold).WithPolling(time.Second).Should(Succeed())
			}
			for _, both := range all {
				if _, takes := both[0].steps[step]; takes {
					recordFixture(ctx, both[0], step)
				}
			}
		})
	}

	It("is deleted, and nothing is left", func(ctx SpecContext) {
		for _, both := range all {
			for _, r := range both {
				Expect(hub().Delete(ctx, r.fw)).To(Succeed())
			}
		}
		for _, both := range all {
			for _, r := range both {
				eventuallyGone(ctx, r.fw)
				for _, name := range world.members[:2] {
					eventuallyAbsent(ctx, member(name), kind{gvk: r.gvk()}, r.memberKey())
				}
			}
		}
		for i, b := range backends {
			var lived []*livedOn
			for _, both := range all {
				lived = append(lived, both[i])
			}
			nothingLeftOf(ctx, b, lived)
		}
	})
})

// lacking lists what is not as the step wants it, and where the backends differ.
func lacking(ctx context.Context, g Gomega, all [][]*livedOn, step string) []string {
	var list []string
	for _, both := range all {
		if _, takes := both[0].steps[step]; !takes {
			continue
		}
		before := len(list)
		for _, r := range both {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(r.fw), r.fw)).To(Succeed())
			if problem := r.missing(step); problem != "" {
				list = append(list, fmt.Sprintf("%s on %s: %s", r.name, r.backend, problem))
			}
		}
		if diff := gocmp.Diff(comparable(both[0].fw), comparable(both[1].fw)); len(list) == before && diff != "" {
			list = append(list, fmt.Sprintf("%s: -%s +%s\n%s", both[0].name, both[0].backend, both[1].backend, diff))
		}
	}
	return list
}

// memberKey is where the object is on members.
func (r *livedOn) memberKey() types.NamespacedName {
	if r.clusterScoped {
		return types.NamespacedName{Name: r.name + "-" + r.fw.Namespace}
	}
	return client.ObjectKeyFromObject(r.fw)
}

// withName gives a template a name of its own.
func withName(raw []byte, name string) []byte {
	GinkgoHelper()
	var manifest map[string]any
	Expect(json.Unmarshal(raw, &manifest)).To(Succeed())
	manifest["metadata"] = map[string]any{"name": name}
	out, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	return out
}
