package lua_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative/luavm"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

var update = flag.Bool("update", false, "write the golden files anew")

// statuses is how many objects and status sets a kind the differential test makes.
func statuses() int {
	if testing.Short() {
		return 300
	}
	return 1_000
}

// first is where the seeds of this run begin: other ones for each commit that CI tests, since it sets TEST_SEED.
func first() int64 {
	hash := fnv.New32a()
	fmt.Fprint(hash, os.Getenv("TEST_SEED"))
	return int64(hash.Sum32())
}

func kinds(tb testing.TB) []*interpreter.Kind {
	tb.Helper()
	r, err := interpreter.New()
	if err != nil {
		tb.Fatal(err)
	}
	return r.Kinds()
}

func generate(tb testing.TB, kind *interpreter.Kind) lua.Scripts {
	tb.Helper()
	s, err := lua.Generate(kind)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// pair is a kind's Go core beside its Lua in Karmada's virtual machine.
type pair struct {
	kind    *interpreter.Kind
	scripts lua.Scripts
	vm      *luavm.VM
	// loaded is true once the state has all functions. Karmada reads a script again on every call; to read it here a
	// few times is enough, and several times faster.
	loaded bool
	// seen counts outcomes, so that a test that compares nothing fails.
	seen map[string]int
}

// text is the script to run, or none when its function is in the state already.
func (p *pair) text(script string) string {
	if p.loaded {
		return ""
	}
	return script
}

// parsed is how many times each script is read anew.
const parsed = 30

// TestDifferential: on generated objects, with absent, null, wrong-typed and huge fields, Lua and Go say the same.
func TestDifferential(t *testing.T) {
	n, begin := statuses(), first()
	for i, kind := range kinds(t) {
		t.Run(strings.ReplaceAll(kind.GVK().GroupVersion().String(), "/", "_")+"_"+kind.Definition.Kind, func(t *testing.T) {
			t.Parallel()
			p := &pair{kind: kind, scripts: generate(t, kind), vm: luavm.New(false, 1), seen: map[string]int{}}
			for j := range n {
				p.loaded = j >= parsed
				seed := int64(i)*1_000_000_007 + begin + int64(j)
				problem := p.compare(newGenerator(seeded(seed), kind))
				if problem != nil {
					t.Fatalf("TEST_SEED=%s, seed %d: %v", os.Getenv("TEST_SEED"), seed, problem)
				}
			}
			t.Logf("%d objects and status sets: %v", n, p.seen)
			p.checkVariety(t)
		})
	}
}

func (p *pair) checkVariety(t *testing.T) {
	t.Helper()
	wanted := []string{"healthy", "unhealthy", "malformed", "dependencies"}
	if p.kind.Replicas != "" {
		wanted = append(wanted, "replicas", "replicas refused", "revised")
	}
	if p.scripts.StatusAggregation != "" {
		wanted = append(wanted, "aggregated", "nothing reported")
	}
	for _, what := range wanted {
		if p.seen[what] == 0 {
			t.Errorf("never %s: %v", what, p.seen)
		}
	}
}

func (p *pair) compare(g *generator) error {
	object := &unstructured.Unstructured{Object: g.object()}
	for what, f := range map[string]func(*unstructured.Unstructured) error{
		"health": p.health, "reflection": p.reflection, "replicas": p.replicas, "dependencies": p.dependencies,
	} {
		if err := f(object); err != nil {
			return fmt.Errorf("%s of %s: %w", what, dump(object.Object), err)
		}
	}
	if err := p.revision(object, int32(g.Intn(6))); err != nil {
		return fmt.Errorf("revision of %s: %w", dump(object.Object), err)
	}
	items := g.items()
	if err := p.aggregation(g.target(), items); err != nil {
		return fmt.Errorf("aggregation of %s: %w", dump(items), err)
	}
	return nil
}

// target is the template that a status is written to.
func (g *generator) target() *unstructured.Unstructured {
	o := map[string]any{"apiVersion": g.kind.GVK().GroupVersion().String(), "kind": g.kind.Definition.Kind,
		"metadata": map[string]any{"name": "web", "namespace": "shop", "generation": g.generation}}
	if g.percent(50) {
		o["status"] = map[string]any{"observedGeneration": int64(1), "replicas": int64(7)}
	}
	return &unstructured.Unstructured{Object: o}
}

func (g *generator) items() []workv1alpha2.AggregatedStatusItem {
	items := make([]workv1alpha2.AggregatedStatusItem, g.Intn(5))
	for i := range items {
		items[i] = workv1alpha2.AggregatedStatusItem{ClusterName: fmt.Sprint("m", i), Applied: true}
		var raw []byte
		switch {
		case g.percent(5):
			continue
		case g.percent(4):
			raw = []byte(pick(g, `null`, `{}`, `[]`, `[1]`, `"x"`, `5`, `{"fleetworkload.io/malformed":"a list"}`, `{"unheard":"of"}`))
		default:
			raw, _ = json.Marshal(g.status(false))
		}
		items[i].Status = &runtime.RawExtension{Raw: raw}
	}
	return items
}

func dump(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (p *pair) health(object *unstructured.Unstructured) error {
	state, errGo := p.kind.State(interpreter.ReportOf(object))
	want := state.Health == "Healthy"
	got, err := p.vm.InterpretHealth(object, p.text(p.scripts.HealthInterpretation))
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("Lua says %t, Go says %+v", got, state)
	}
	switch {
	case errGo != nil:
		p.seen["malformed"]++
	case want:
		p.seen["healthy"]++
	default:
		p.seen["unhealthy"]++
	}
	return nil
}

// reflection: what is reflected gives the same state as the object itself.
func (p *pair) reflection(object *unstructured.Unstructured) error {
	want, errGo := p.kind.State(interpreter.ReportOf(object))
	raw, err := p.vm.ReflectStatus(object, p.text(p.scripts.StatusReflection))
	if err != nil {
		return err
	}
	var status map[string]any
	if err := json.Unmarshal(raw.Raw, &status); err != nil {
		return err
	}
	got, errLua := p.kind.State(interpreter.Report{Manifest: object, Status: status})
	if unreadable := errGo != nil && errLua != nil; unreadable {
		return nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("of %s: %s", raw.Raw, diff)
	}
	mark, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "annotations", "fleetworkload.io/revision")
	if _, isText := mark.(string); !isText {
		mark = nil
	}
	if _, marked := object.Object["status"].([]any); !marked && status[lua.FieldRevision] != mark {
		return fmt.Errorf("the mark is %v, not %v", status[lua.FieldRevision], mark)
	}
	return nil
}

func (p *pair) replicas(object *unstructured.Unstructured) error {
	if p.scripts.ReplicaResource == "" {
		return nil
	}
	want, given, errGo := interpreter.Replicas(p.kind, object)
	if errGo == nil && !given && p.kind.Replicas != "" {
		want, errGo = interpreter.DefaultReplicas(p.kind, object)
	}
	if want > 1_000_000 {
		errGo = fmt.Errorf("%d replicas", want)
	}
	if raw, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas"); found && raw == nil {
		return nil // null is absence: see byNature
	}
	got, _, err := p.vm.GetReplicas(object, p.text(p.scripts.ReplicaResource))
	if (err == nil) != (errGo == nil) || (err == nil && got != want) {
		return fmt.Errorf("Lua says %d, %v; Go says %d, %v", got, err, want, errGo) //nolint:errorlint // one of them may be nil
	}
	if err != nil {
		p.seen["replicas refused"]++
	} else {
		p.seen["replicas"]++
	}
	return nil
}

func (p *pair) revision(object *unstructured.Unstructured, n int32) error {
	if p.scripts.ReplicaRevision == "" {
		return nil
	}
	if spec, found := object.Object["spec"]; found && spec == nil {
		return nil // null is absence: see byNature
	}
	object = object.DeepCopy()
	delete(object.Object, "status") // a template has none
	want := object.DeepCopy()
	errGo := interpreter.SetReplicas(p.kind, want, n)
	got, err := p.vm.ReviseReplica(object, int64(n), p.text(p.scripts.ReplicaRevision))
	switch refused := err != nil; {
	case refused != (errGo != nil):
		return fmt.Errorf("Lua says %v, Go says %v", err, errGo) //nolint:errorlint // one of them is nil
	case refused:
		return nil //nolint:nilerr // both refuse
	}
	p.seen["revised"]++
	return same(normal(want.Object), normal(got.Object))
}

func (p *pair) dependencies(object *unstructured.Unstructured) error {
	want := map[string]bool{}
	list, errGo := interpreter.Dependencies(p.kind, object)
	for _, d := range list {
		if d.Namespace != "" { // see byNature
			want[fmt.Sprint(d.GroupVersion(), d.Kind, d.Namespace, d.Name)] = true
		}
	}
	refs, err := p.vm.GetDependencies(object, p.text(p.scripts.DependencyInterpretation))
	if err != nil {
		return err
	}
	if errGo != nil {
		return nil //nolint:nilerr // the pod template is malformed: Lua gives what can be read
	}
	got := map[string]bool{}
	for _, r := range refs {
		got[fmt.Sprint(r.APIVersion, r.Kind, r.Namespace, r.Name)] = true
	}
	p.seen["dependencies"] += len(got)
	return same(want, got)
}

func (p *pair) aggregation(target *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) error {
	if p.scripts.StatusAggregation == "" {
		return nil
	}
	want := expected(p.kind, target, items)
	before, _ := target.Object["status"].(map[string]any)
	if want == nil {
		p.seen["nothing reported"]++
		want = before
	} else {
		p.seen["aggregated"]++
	}
	got, err := p.vm.AggregateStatus(target, items, p.text(p.scripts.StatusAggregation))
	if err != nil {
		return err
	}
	status, _ := got.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	if want == nil {
		want = map[string]any{}
	}
	return same(normal(want), normal(status))
}

// expected is what Go makes of the items; nil when no cluster has reported.
func expected(kind *interpreter.Kind, target *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) map[string]any {
	reports := make([]map[string]any, len(items))
	for i, item := range items {
		// What cannot be read has not reported.
		if item.Status != nil && utiljson.Unmarshal(item.Status.Raw, &reports[i]) != nil {
			reports[i] = nil
		}
	}
	fleet := kind.Aggregate(reports)
	if fleet.Reported == 0 {
		return nil
	}
	status := fleet.Status()
	if status == nil {
		status = map[string]any{}
	}
	for _, f := range kind.Status {
		if f.Name != "observedGeneration" {
			continue
		}
		if before, found, _ := unstructured.NestedInt64(target.Object, "status", "observedGeneration"); found {
			status["observedGeneration"] = before
		}
		if fleet.Observed(target.GetGeneration()) {
			status["observedGeneration"] = target.GetGeneration()
		}
	}
	return status
}

func same(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("want -, got +:\n%s", diff)
	}
	return nil
}

// normal is a JSON value as Lua has it: without nulls, and without objects that have nothing else.
func normal(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	return withoutNulls(out)
}

// onlyNulls tells whether an object has nulls alone: Lua sees an empty table, and Karmada drops it.
func onlyNulls(v any) bool {
	object, ok := v.(map[string]any)
	for _, below := range object {
		ok = ok && below == nil
	}
	return ok && len(object) > 0
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if below == nil || onlyNulls(below) {
				delete(v, key)
				continue
			}
			v[key] = withoutNulls(below)
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}
