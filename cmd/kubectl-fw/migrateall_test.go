package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// member is a FleetWorkload that rests on Karmada, changed.
func member(namespace, name string, changes ...func(*v1alpha1.FleetWorkload)) *v1alpha1.FleetWorkload {
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": "shop"}}}
	fw.Spec.Backend, fw.Status.Backend, fw.Status.ObservedGeneration = "karmada", "karmada", new(int64)
	fw.Status.ClusterSummary, fw.Status.DesiredReplicas = &v1alpha1.ClusterSummary{Total: ptr.To[int32](2)}, ptr.To[int32](6)
	for _, change := range changes {
		change(fw)
	}
	return fw
}

func suspendedNow(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = ptr.To(true) }

// onItsWay has its first wave through.
func onItsWay(fw *v1alpha1.FleetWorkload) {
	seen := &v1alpha1.MigrationEvidence{UID: "1", Ready: ptr.To[int32](3), Restarts: ptr.To[int32](0)}
	fw.Spec.Backend = "ocm"
	fw.Status.Migration = &v1alpha1.MigrationStatus{
		From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseVerifying, Wave: ptr.To[int32](1),
		Clusters: []v1alpha1.MigrationClusterStatus{
			{Name: "m1", Phase: v1alpha1.MigrationPhaseVerifying, Before: seen, After: seen}, {Name: "m2", Phase: v1alpha1.MigrationPhaseShadowing},
		},
	}
}

func arrivedThere(fw *v1alpha1.FleetWorkload) {
	onItsWay(fw)
	clusters := fw.Status.Migration.Clusters
	clusters[1].Before, clusters[1].After = clusters[0].Before, clusters[0].After
	fw.Status.Backend = "ocm"
	fw.Status.Migration = &v1alpha1.MigrationStatus{History: []v1alpha1.MigrationRecord{
		{From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseCompleted, FinishedAt: metav1.Now(), Clusters: clusters},
	}}
}

func notPossible(fw *v1alpha1.FleetWorkload) {
	fw.Status.Migration = &v1alpha1.MigrationStatus{From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseValidating, Problems: []string{"m2 is not known"}}
	setCondition(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNotPossible, "m2 is not known")
}

// management is a management cluster with an operator that takes FleetWorkloads on as soon as their spec asks for it.
type management struct {
	client.WithWatch
	t        *testing.T
	watching chan struct{}
	once     sync.Once
	// becomes are the states in which the operator brings each by its name; without any, it goes to the end.
	becomes map[string][]func(*v1alpha1.FleetWorkload)
	// refuses is what a write of one by its name is answered, each once.
	refuses map[string][]error
	// first is what the first watch comes to, when it is not what happens; operator is what is done for one that is asked for.
	first    *watch.FakeWatcher
	operator func(client.ObjectKey)
	// writes are the names whose spec.backend was set.
	mu     sync.Mutex
	writes []string
	busy   int
	most   int
	work   sync.WaitGroup
}

func newManagement(t *testing.T, all ...client.Object) *management {
	t.Helper()
	m := &management{t: t, watching: make(chan struct{}), becomes: map[string][]func(*v1alpha1.FleetWorkload){}, refuses: map[string][]error{}}
	m.operator = m.operate
	m.WithWatch = interceptor.NewClient(fakeClient(t, all...), interceptor.Funcs{Watch: m.watch, Patch: m.patch})
	t.Cleanup(m.work.Wait)
	return m
}

func (m *management) watch(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := c.Watch(ctx, list, opts...)
	m.once.Do(func() {
		close(m.watching)
		if m.first != nil {
			w.Stop()
			w = m.first
		}
	})
	return w, err
}

func (m *management) patch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	<-m.watching // the fake watch has no replay
	m.mu.Lock()
	defer m.mu.Unlock()
	name := obj.GetName()
	if answers := m.refuses[name]; len(answers) > 0 {
		m.refuses[name] = answers[1:]
		return answers[0]
	}
	if err := c.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	m.writes = append(m.writes, name)
	m.busy++
	m.most = max(m.most, m.busy)
	key := client.ObjectKeyFromObject(obj)
	m.work.Go(func() { m.operator(key) })
	return nil
}

// operate brings one to its states.
func (m *management) operate(key client.ObjectKey) {
	states, told := m.becomes[key.Name]
	if !told {
		states = []func(*v1alpha1.FleetWorkload){onItsWay, arrivedThere}
	}
	for i, state := range states {
		fw := &v1alpha1.FleetWorkload{}
		if err := m.Get(context.Background(), key, fw); err != nil {
			return
		}
		state(fw)
		m.mu.Lock()
		if i == len(states)-1 {
			m.busy--
		}
		err := m.Status().Update(context.Background(), fw)
		m.mu.Unlock()
		if err != nil {
			m.t.Error(err)
		}
	}
}

// migrateAll runs the command, and returns what it prints and its report.
func migrateAll(ctx context.Context, t *testing.T, m *management, change func(*manyOptions)) (string, bulk.Report, error) {
	t.Helper()
	opts := &manyOptions{all: true, atOnce: 2, maxFailures: 9, order: "name", requirements: labels.Everything(), report: filepath.Join(t.TempDir(), "move.yaml")}
	if change != nil {
		change(opts)
	}
	file, err := reportFileAt(opts.report)
	if err != nil {
		t.Fatal(err)
	}
	f, w, err := opts.gather(ctx, m, "ocm")
	if err != nil {
		t.Fatal(err)
	}
	w.from = "1" // the fake list has no version
	var out, errOut bytes.Buffer
	f.program, f.picture, w.errOut = "kubectl fw", fleetPictureOn(&out), &errOut
	ended := f.run(ctx, w, file, &out)
	raw, err := os.ReadFile(opts.report)
	if err != nil {
		t.Fatal(err)
	}
	var report bulk.Report
	if err := yaml.UnmarshalStrict(raw, &report); err != nil {
		t.Fatal(err)
	}
	return out.String(), report, ended
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func waitsForApproval(fw *v1alpha1.FleetWorkload) { onItsWay(fw); asks(fw) }

func TestMigrateAll(t *testing.T) {
	m := newManagement(t, member("app", "a"), member("app", "b"), member("app", "c"), member("shop", "d", suspendedNow),
		member("shop", "e", arrivedThere), member("shop", "f"), member("shop", "g"), member("shop", "h"))
	m.becomes["b"] = []func(*v1alpha1.FleetWorkload){waitsForApproval}
	m.becomes["c"] = []func(*v1alpha1.FleetWorkload){notPossible}
	out, report, err := migrateAll(within(t), t, m, nil)
	if err == nil || err.Error() != "not all are on backend ocm: 5 there, 1 waiting, 1 failed, 1 skipped" {
		t.Errorf("error is %v", err)
	}
	if got := strings.Join(m.writes, " "); got != "a b c f g h" || m.most > 2 {
		t.Errorf("begun: %s; %d at once", got, m.most)
	}
	for _, want := range []string{
		"8 FleetWorkloads to backend ocm: 1 there, 6 to go, 1 skipped\n",
		"  shop/d is skipped: spec.suspend is true: nothing changes hands; set it to false\n",
		"app/a is under way, from backend karmada\n",
		"app/a is on backend ocm, after ",
		"app/b waits for a person: wave 1 has passed and waits for approval; let it go on with: kubectl fw approve b -n app\n",
		"app/c has failed: MigrationNotPossible: m2 is not known; it goes on by itself when that is mended, or give it up with: kubectl fw migrate c -n app --to karmada\n",
		"[############--------] 5 of 8 there, 11 of 16 clusters\n",
		"evidence of 11 clusters: same objects on 11, others on 0; other pods' revision on 0; fewer ready on 0; 0 restarts of containers\n",
		"report: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q but\n%s", want, out)
		}
	}
	var results []string
	for _, w := range report.Workloads {
		results = append(results, w.Name+" "+string(w.Result))
	}
	want := "a Moved, b WaitsForPerson, c Failed, d Skipped, e AlreadyThere, f Moved, g Moved, h Moved"
	if got := strings.Join(results, ", "); got != want || report.Outcome != bulk.OutcomeIncomplete {
		t.Errorf("reported: %s: %s", report.Outcome, got)
	}
	if a := report.Workloads[0]; a.From != "karmada" || len(a.Phases) != 1 || len(a.Clusters) != 2 || a.Clusters[1].After.UID != "1" || a.EndedAt.IsZero() {
		t.Errorf("reported of a: %+v", a)
	}
}

// One that is refused is a failure with its reason; one that somebody else has just written is tried again.
func TestMigrateAllRefused(t *testing.T) {
	group := v1alpha1.GroupVersion.WithResource("fleetworkloads").GroupResource()
	m := newManagement(t, member("app", "a"), member("app", "b"), member("app", "c"))
	m.refuses["a"] = []error{apierrors.NewConflict(group, "a", nil), apierrors.NewServiceUnavailable("busy")}
	m.refuses["b"] = []error{apierrors.NewForbidden(group, "b", nil)}
	out, report, err := migrateAll(within(t), t, m, func(o *manyOptions) { o.maxFailures = 0 })
	if err == nil || !strings.HasPrefix(err.Error(), "stopped, more have failed than may: 1 there, 1 failed, 1 to go") {
		t.Errorf("error is %v", err)
	}
	if b := report.Workloads[1]; b.Result != bulk.Failed || !strings.Contains(b.Message, `fleetworkloads.apps.fleetworkload.io "b" is forbidden`) {
		t.Errorf("reported of b: %+v", b)
	}
	if !strings.Contains(out, "no more begin: more have failed than --max-failures 0\n") {
		t.Error(out)
	}
}

// Who is interrupted leaves a report behind, and the same command goes on from there.
func TestMigrateAllAgain(t *testing.T) {
	m := newManagement(t, member("app", "a"), member("app", "b"), member("app", "c"))
	m.becomes["b"] = []func(*v1alpha1.FleetWorkload){onItsWay}
	ctx, interrupt := context.WithCancel(within(t))
	m.becomes["c"] = []func(*v1alpha1.FleetWorkload){func(fw *v1alpha1.FleetWorkload) { onItsWay(fw); interrupt() }}
	_, report, err := migrateAll(ctx, t, m, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "interrupted: 1 there, 2 under way; what is under way goes on by itself") {
		t.Errorf("error is %v", err)
	}
	if report.Outcome != bulk.OutcomeInterrupted || report.Summary.UnderWay != 2 {
		t.Errorf("reported: %+v", report)
	}
	m.work.Wait()
	m.once, m.watching = sync.Once{}, make(chan struct{})
	for _, name := range []string{"b", "c"} {
		m.becomes[name] = []func(*v1alpha1.FleetWorkload){arrivedThere}
		m.work.Go(func() {
			<-m.watching
			m.operate(client.ObjectKey{Namespace: "app", Name: name})
		})
	}
	out, report, err := migrateAll(within(t), t, m, func(o *manyOptions) { o.from = "karmada" })
	if err != nil || report.Outcome != bulk.OutcomeComplete || len(m.writes) != 3 {
		t.Errorf("error %v, begun %v, printed\n%s", err, m.writes, out)
	}
	if a := report.Workloads[0]; a.Result != bulk.AlreadyThere || a.From != "karmada" || len(a.Clusters) != 2 {
		t.Errorf("what was moved before is not in the report: %+v", a)
	}
}

// A lost watch is begun again, and what happened meanwhile is seen.
func TestMigrateAllLostWatch(t *testing.T) {
	m := newManagement(t, member("app", "a"), member("app", "b"))
	m.first = watch.NewFake()
	m.operator = func(key client.ObjectKey) {
		if key.Name != "b" {
			return
		}
		m.operate(client.ObjectKey{Namespace: "app", Name: "a"})
		if err := m.Delete(context.Background(), member("app", "b")); err != nil {
			t.Error(err)
		}
		m.first.Stop()
	}
	out, report, err := migrateAll(within(t), t, m, nil)
	if err != nil || report.Summary.Moved != 1 || report.Summary.Deleted != 1 {
		t.Errorf("error %v, printed\n%s", err, out)
	}
}

func TestMigrateChoose(t *testing.T) {
	list := &v1alpha1.FleetWorkloadList{Items: []v1alpha1.FleetWorkload{
		*member("app", "big", func(fw *v1alpha1.FleetWorkload) { *fw.Status.ClusterSummary.Total = 9 }), *member("app", "small"),
		*member("app", "there", arrivedThere), *member("app", "k2", func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend, fw.Status.Backend = "k2", "k2" }),
	}}
	for name, tc := range map[string]struct {
		opts manyOptions
		want string
	}{
		"all":                {manyOptions{order: "name"}, "big k2 small there"},
		"by size":            {manyOptions{order: "size"}, "k2 small there big"},
		"of a backend":       {manyOptions{order: "name", from: "karmada"}, "big small there"},
		"by names":           {manyOptions{order: "name", names: []string{"small", "big"}}, "big small"},
		"one that is not":    {manyOptions{names: []string{"small", "x", "y"}, namespace: "app"}, `not found in namespace "app": FleetWorkload x, y`},
		"names of a backend": {manyOptions{order: "name", names: []string{"k2", "big"}, from: "k2"}, "k2"},
	} {
		chosen, err := tc.opts.choose(list, "ocm")
		var names []string
		for _, fw := range chosen {
			names = append(names, fw.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
