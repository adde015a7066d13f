package interpreter

import (
	"fmt"
	"hash/fnv"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// kstatusKinds are the kinds that kstatus knows (cli-utils pkg/kstatus/status/core.go, legacyTypes), but for the group
// extensions, which no API server serves any more, and one that it does not know.
var kstatusKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Group: "example.io", Version: "v1", Kind: "Gadget"},
}

// disagreement is where we and kstatus say different things of one object. A * at the end stands for anything.
type disagreement struct {
	kinds  string
	ours   string // health and reason
	theirs string // status and reason
	right  string // who is
	why    string
}

const (
	us      = "we"
	neither = "either way" // ours says more
)

var disagreements = []disagreement{
	{"Deployment StatefulSet DaemonSet", "Unknown Incomplete", "*", us,
		"A number is missing that every status of the kind has: the report is a part. kstatus takes most of them for 0, which may be what was asked for."},
	{"Deployment StatefulSet DaemonSet", "Unknown Contradictory", "*", us,
		"More pods available than ready, or the like: the numbers are no evidence. kstatus compares each with what is wanted, and not with each other."},
	{"Deployment StatefulSet", "Progressing NotObserved", "*", us,
		"The status has no observedGeneration, so it may be of any generation. kstatus asks for one of a DaemonSet only."},
	{"Deployment StatefulSet", "Progressing WaitingForStatus", "Current", us,
		"There is no status."},
	{"Deployment", "Healthy Complete", "InProgress ReplicaSetNotAvailable", us,
		"All wanted pods are there, updated and available by number; the reason of the condition Progressing follows. kubectl rollout status does not ask for it either."},
	{"Deployment", "Healthy Complete", "InProgress DeploymentNotAvailable", us,
		"All wanted pods are available by number. That there is no condition Available says nothing: Karmada's own interpreter leaves conditions out."},
	{"Deployment", "Degraded ReplicaFailure", "*", us,
		"Its controller says itself that it cannot create or delete pods, which kstatus does not read."},
	{"Deployment", "Suspended Paused", "InProgress*", neither,
		"A paused Deployment does not go on until somebody lets it. kstatus has no word for that."},
	{"StatefulSet", "Healthy Complete", "InProgress RevisionMismatch", us,
		"All wanted pods are of the new revision by number; currentRevision follows when the controller closes the books."},
	{"StatefulSet", "Healthy Complete", "InProgress LessCurrent", us,
		"As above: currentReplicas is about the revision that was."},
	{"StatefulSet", "Progressing*", "Current", us,
		"kstatus takes a StatefulSet with OnDelete for current whatever it reports, does not ask for availableReplicas, and counts updated pods under a partition only."},
	{"DaemonSet", "Progressing Unavailable", "Current", us,
		"Pods run on nodes where none is wanted, and are not available."},
	{"DaemonSet", "Healthy OnDelete", "InProgress LessUpdated", us,
		"Pods are updated as they are deleted, so that nothing is under way."},
	{"Job", "Progressing*", "Current", us,
		"The job has not ended. kstatus takes it for current once it has started."},
	{"Job", "Suspended Paused", "*", neither,
		"A suspended job does not go on until somebody lets it. kstatus has no word for that."},
	{"Job", "Degraded Failed", "Current", neither,
		"It is both Complete and Failed, which cannot be; kstatus takes the condition that stands first, we the worse."},
	{"CronJob", "Suspended Paused", "Current", neither,
		"A suspended schedule starts nothing until somebody lets it. kstatus has no word for that."},
	{"Pod", "Degraded Failed", "Current", us,
		"The pod has ended, and not well. kstatus asks only whether it has ended."},
	{"ReplicaSet PodDisruptionBudget CustomResourceDefinition Service", "Progressing WaitingForStatus", "Current", us,
		"What kstatus reads is not there, so that it finds nothing wrong. A report may be a part."},
	{"Gadget", "Unknown NoHealthSignal", "Current", us,
		"kstatus takes an object that says nothing for a healthy one."},
}

// seedOf is where this run's seeds begin: other ones for each commit that CI tests, since it sets TEST_SEED.
func seedOf() int64 {
	hash := fnv.New32a()
	fmt.Fprint(hash, os.Getenv("TEST_SEED"))
	return int64(hash.Sum32())
}

// TestKstatus holds our health against that of kstatus over generated objects. What differs stands in the table.
func TestKstatus(t *testing.T) {
	used := make([]int, len(disagreements))
	for _, gvk := range kstatusKinds {
		kind := registry(t).For(gvk)
		agreed, seen := map[v1alpha1.Health]int{}, map[string]bool{}
		for i := range int64(6000) {
			seed := seedOf() + i
			object := kstatusObject(rand.New(rand.NewSource(seed)), gvk)
			ours, _ := kind.State(ReportOf(object))
			health, theirs := byKstatus(object)
			if ours.Health == health {
				agreed[health]++
				continue
			}
			mine := fmt.Sprintf("%s %s", ours.Health, ours.Reason)
			at := slices.IndexFunc(disagreements, func(d disagreement) bool {
				return slices.Contains(strings.Fields(d.kinds), gvk.Kind) && matches(d.ours, mine) && matches(d.theirs, theirs)
			})
			if at >= 0 {
				used[at]++
				continue
			}
			if key := mine + theirs; !seen[key] {
				seen[key] = true
				raw, _ := object.MarshalJSON()
				t.Errorf("TEST_SEED=%s, seed %d: %s: we say %s (%s), kstatus says %s: %s", os.Getenv("TEST_SEED"), seed, gvk.Kind, mine, ours.Message, theirs, raw)
			}
		}
		t.Logf("%s: agreed %v", gvk.Kind, agreed)
		if agreed[healthy] == 0 {
			t.Errorf("%s: the objects are not varied: %v", gvk.Kind, agreed)
		}
	}
	t.Logf("%d disagreements, and how many objects show each: %v", len(disagreements), used)
	for i, d := range disagreements {
		if used[i] == 0 {
			t.Errorf("no object shows it: %+v", d)
		}
	}
}

func matches(pattern, text string) bool {
	if before, any := strings.CutSuffix(pattern, "*"); any {
		return strings.HasPrefix(text, before)
	}
	return pattern == text
}

// byKstatus is what kstatus makes of a live object, in our word and in its own.
func byKstatus(object *unstructured.Unstructured) (v1alpha1.Health, string) {
	result, err := status.Compute(object)
	if err != nil {
		return unknown, "error"
	}
	theirs := string(result.Status)
	if len(result.Conditions) > 0 {
		theirs += " " + result.Conditions[0].Reason
	}
	switch result.Status {
	case status.CurrentStatus:
		return healthy, theirs
	case status.FailedStatus:
		return degraded, theirs
	default:
		return progressing, theirs
	}
}

// kstatusObject makes an object as an API server may store it. Most are whole and consistent; the rest lack fields, or
// contradict themselves.
func kstatusObject(r *rand.Rand, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	g := &kstatusGenerator{Rand: r, wanted: int64(r.Intn(4)), whole: r.Intn(2) == 0, steady: r.Intn(2) == 0}
	spec, status := g.specOf(gvk.Kind), g.statusOf(gvk.Kind)
	metadata := map[string]any{"name": "web", "namespace": "shop"}
	switch gvk.Kind {
	case "ConfigMap", "Secret", "Service", "PersistentVolumeClaim": // have no generation
	default:
		metadata["generation"] = int64(2)
	}
	if g.rarely(30) {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	o := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": metadata}
	if len(spec) > 0 {
		o["spec"] = spec
	}
	if len(status) > 0 {
		o["status"] = status
	}
	return &unstructured.Unstructured{Object: o}
}

type kstatusGenerator struct {
	*rand.Rand
	wanted int64
	// whole is true when no field is missing, steady when most numbers are what is wanted.
	whole, steady bool
}

func (g *kstatusGenerator) rarely(n int) bool { return g.Intn(n) == 0 }

func oneOf[T any](g *kstatusGenerator, of ...T) T { return of[g.Intn(len(of))] }

// set sets a field, or leaves it out.
func (g *kstatusGenerator) set(into map[string]any, name string, v any) {
	if g.whole || !g.rarely(5) {
		into[name] = v
	}
}

func (g *kstatusGenerator) number() int64 {
	if g.steady && !g.rarely(12) {
		return g.wanted
	}
	return int64(g.Intn(5))
}

// numbers sets counters; those that are omitted when they are zero stand after a ?.
func (g *kstatusGenerator) numbers(into map[string]any, names string) {
	for _, name := range strings.Fields(names) {
		bare, omitted := strings.CutPrefix(name, "?")
		if n := g.number(); n > 0 || !omitted {
			g.set(into, bare, n)
		}
	}
}

// condition adds one of a type, with one of the reasons.
func (g *kstatusGenerator) condition(into map[string]any, kind string, word string, reasons ...string) {
	c := map[string]any{"type": kind, "status": word}
	if len(reasons) > 0 {
		c["reason"] = oneOf(g, reasons...)
	}
	list, _ := into["conditions"].([]any)
	into["conditions"] = append(list, c)
}

func (g *kstatusGenerator) word() string {
	if g.steady && !g.rarely(8) {
		return "True"
	}
	return oneOf(g, "True", "False", "Unknown")
}

func (g *kstatusGenerator) specOf(kind string) map[string]any {
	spec := map[string]any{}
	often := func(name string, of ...any) {
		if g.rarely(4) {
			spec[name] = oneOf(g, of...)
		}
	}
	switch kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		spec["replicas"] = g.wanted
	}
	switch kind {
	case "Deployment":
		spec["progressDeadlineSeconds"] = oneOf[any](g, int64(600), int64(2147483647))
		often("paused", true, false)
	case "StatefulSet":
		often("minReadySeconds", int64(5))
		often("ordinals", map[string]any{"start": int64(1)})
		often("updateStrategy", map[string]any{"type": "OnDelete"}, map[string]any{"rollingUpdate": map[string]any{"partition": int64(g.Intn(4))}})
	case "DaemonSet":
		often("updateStrategy", map[string]any{"type": "OnDelete"}, map[string]any{"type": "RollingUpdate"})
	case "Job":
		often("completions", int64(1), int64(3))
		often("suspend", true)
	case "CronJob":
		often("suspend", true)
	case "Service":
		spec["type"] = oneOf[any](g, "ClusterIP", "LoadBalancer")
		g.set(spec, "clusterIP", oneOf[any](g, "10.0.0.1", "None"))
	case "PersistentVolumeClaim":
		spec["accessModes"] = []any{"ReadWriteOnce"}
	}
	return spec
}

func (g *kstatusGenerator) statusOf(kind string) map[string]any {
	s := map[string]any{}
	if !g.whole && g.rarely(8) {
		return s
	}
	observed := func() { g.set(s, "observedGeneration", oneOf[any](g, int64(2), int64(2), int64(2), int64(1))) }
	switch kind {
	case "Deployment":
		observed()
		g.numbers(s, "?replicas ?updatedReplicas ?readyReplicas ?availableReplicas")
		if g.whole || g.rarely(2) {
			g.condition(s, "Available", g.word())
			g.condition(s, "Progressing", g.word(), "NewReplicaSetAvailable", "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded")
		}
		if g.rarely(10) {
			g.condition(s, "ReplicaFailure", g.word(), "FailedCreate")
		}
	case "StatefulSet":
		observed()
		g.numbers(s, "replicas ?readyReplicas ?updatedReplicas ?currentReplicas availableReplicas")
		g.set(s, "currentRevision", "a")
		g.set(s, "updateRevision", oneOf[any](g, "a", "a", "b"))
	case "DaemonSet":
		observed()
		g.numbers(s, "desiredNumberScheduled currentNumberScheduled ?updatedNumberScheduled numberReady ?numberAvailable numberMisscheduled")
		if g.rarely(4) && g.wanted > 0 { // an update on its way
			s["updatedNumberScheduled"] = int64(g.Intn(int(g.wanted)))
		}
	case "ReplicaSet":
		observed()
		g.numbers(s, "replicas ?fullyLabeledReplicas ?readyReplicas ?availableReplicas")
		if g.rarely(10) {
			g.condition(s, "ReplicaFailure", g.word(), "FailedCreate")
		}
	case "PodDisruptionBudget":
		observed()
		g.numbers(s, "disruptionsAllowed currentHealthy desiredHealthy expectedPods")
	case "Job":
		g.numbers(s, "?active ?succeeded ?failed")
		g.set(s, "startTime", "2026-01-01T00:00:00Z")
		for _, c := range []string{"Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"} {
			if g.rarely(4) {
				g.condition(s, c, g.word(), "BackoffLimitExceeded")
			}
		}
	case "CronJob":
		g.set(s, "lastScheduleTime", oneOf[any](g, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
		g.set(s, "lastSuccessfulTime", "2026-01-01T00:00:09Z")
		if g.rarely(3) {
			s["active"] = []any{map[string]any{"kind": "Job", "name": "web-1"}}
		}
	case "CustomResourceDefinition":
		g.definition(s)
	case "Pod":
		g.pod(s)
	case "PersistentVolumeClaim":
		g.set(s, "phase", oneOf[any](g, "Bound", "Bound", "Pending", "Lost"))
	case "Service":
		s["loadBalancer"] = map[string]any{}
	case "Gadget":
		g.gadget(s)
	}
	return s
}

func (g *kstatusGenerator) definition(s map[string]any) {
	accepted := g.word()
	if g.whole || !g.rarely(5) {
		g.condition(s, "NamesAccepted", accepted, "NoConflicts", "PluralConflict")
	}
	established := "False"
	if accepted == "True" {
		established = g.word()
	}
	if g.whole || !g.rarely(5) {
		g.condition(s, "Established", established, "InitialNamesAccepted", "Installing", "NotAccepted")
	}
}

func (g *kstatusGenerator) pod(s map[string]any) {
	phase := oneOf(g, "Running", "Running", "Running", "Pending", "Succeeded", "Failed")
	g.set(s, "phase", phase)
	ready := g.word()
	if phase != "Running" {
		ready = "False"
	}
	if phase == "Failed" {
		s["reason"] = oneOf[any](g, "Evicted", "NodeLost")
	}
	if g.whole || !g.rarely(5) {
		g.condition(s, "Ready", ready)
	}
	if phase == "Pending" && g.rarely(2) {
		g.condition(s, "PodScheduled", "False", "Unschedulable", "SchedulingGated")
	}
	state := map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}}
	if ready != "True" && g.rarely(2) {
		state = map[string]any{"waiting": map[string]any{"reason": oneOf[any](g, "CrashLoopBackOff", "CrashLoopBackOff", "ImagePullBackOff")}}
	}
	g.set(s, "containerStatuses", []any{
		map[string]any{"name": "side", "state": map[string]any{"running": map[string]any{}}}, map[string]any{"name": "web", "state": state},
	})
}

func (g *kstatusGenerator) gadget(s map[string]any) {
	g.set(s, "observedGeneration", oneOf[any](g, int64(2), int64(2), int64(1)))
	for _, c := range []string{"Ready", "Reconciling", "Stalled"} {
		if g.rarely(2) {
			g.condition(s, c, oneOf(g, "True", "True", "False", "Unknown"), "Because")
		}
	}
}

// TestKstatusOverBackends: of a kind that kstatus judges, what a backend brings back says the same as the object itself:
// Karmada the whole status and what we ask for beside it, OCM the fields that we ask for, by the path of each.
func TestKstatusOverBackends(t *testing.T) {
	for _, gvk := range kstatusKinds {
		kind := registry(t).For(gvk)
		if kind.Known() {
			continue
		}
		for i := range int64(3000) {
			object := kstatusObject(rand.New(rand.NewSource(seedOf()+i)), gvk)
			want, _ := kind.State(ReportOf(object))
			for backend, report := range map[string]Report{"OCM": fedBack(t, kind, object), "Karmada": reflected(kind, object)} {
				// What is being deleted on the member is no field that is asked for.
				if got, _ := kind.State(report); object.GetDeletionTimestamp() == nil && (got.Health != want.Health || got.Reason != want.Reason) {
					raw, _ := object.MarshalJSON()
					t.Fatalf("seed %d: over %s %s is %+v, the object itself %+v: %s, %v", seedOf()+i, backend, gvk.Kind, got, want, raw, report.Status)
				}
			}
		}
	}
}

// sent is the manifest that an object was made from: without what the API server and controllers add.
func sent(object *unstructured.Unstructured) *unstructured.Unstructured {
	manifest := object.DeepCopy()
	unstructured.RemoveNestedField(manifest.Object, "status")
	unstructured.RemoveNestedField(manifest.Object, "metadata", "generation")
	unstructured.RemoveNestedField(manifest.Object, "spec", "clusterIP")
	return manifest
}

// fedBack is the report that OCM's agent makes (ocm pkg/work/spoke/statusfeedback/reader.go).
func fedBack(t *testing.T, kind *Kind, object *unstructured.Unstructured) Report {
	t.Helper()
	values := map[string]any{}
	for _, f := range kind.Feedback() {
		j := jsonpath.New(f.Name).AllowMissingKeys(true)
		if err := j.Parse("{" + f.Path + "}"); err != nil {
			t.Fatal(err)
		}
		results, err := j.FindResults(object.Object)
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		if len(results) == 0 || len(results[0]) == 0 {
			continue
		}
		switch v := results[0][0].Interface().(type) {
		case int64, string, bool:
			values[f.Name] = v
		default:
			t.Fatalf("%s gives a %T, which the agent refuses", f.Path, v)
		}
	}
	return Report{Manifest: sent(object), Status: values}
}

// reflected is the report that our interpreter for Karmada makes (internal/interpreter/lua/snippets/reflectwhole.lua).
func reflected(kind *Kind, object *unstructured.Unstructured) Report {
	report := ReportOf(object)
	for _, e := range kind.Extras() {
		if v, err := e.Path.lookup(object.Object); err == nil && v != nil {
			report.Status[e.Name] = v
		}
	}
	report.Manifest = sent(object)
	return report
}

// TestPartsAreNotHealthy: a part of the status of an object of which kstatus knows the kind is never Healthy when the whole is
// not. What says for which generation it is stays in, and so does the one condition that is there only when it holds.
func TestPartsAreNotHealthy(t *testing.T) {
	parts := 0
	for _, gvk := range kstatusKinds {
		kind := registry(t).For(gvk)
		if kind.Known() || !kind.knownToKstatus {
			continue
		}
		for i := range int64(4000) {
			r := rand.New(rand.NewSource(seedOf() + i))
			object := kstatusObject(r, gvk)
			whole, _ := kind.State(ReportOf(object))
			status, _ := object.Object["status"].(map[string]any)
			if whole.Health == healthy || status == nil {
				continue
			}
			part := fedBack(t, kind, object)
			for name := range part.Status {
				if name != "observed" && name != fieldGeneration && name != "conditionReplicaFailure" && r.Intn(2) == 0 {
					delete(part.Status, name)
					parts++
				}
			}
			if got, _ := kind.State(part); got.Health == healthy {
				raw, _ := object.MarshalJSON()
				t.Fatalf("seed %d: %v is healthy, and the whole is %+v: %s", seedOf()+i, part.Status, whole, raw)
			}
		}
	}
	if parts < 1000 {
		t.Errorf("only %d fields were left out", parts)
	}
}
