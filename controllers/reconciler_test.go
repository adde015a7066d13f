package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
	"github.com/fleetworkload/fleetworkload/e2e/statuscheck"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/sources"
)

var key = types.NamespacedName{Namespace: "shop", Name: "web"}

const template = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`

// registry has one backend of each name.
type registry map[string]*memory.Backend

func (r registry) Driver(name string) (backends.Driver, error) {
	b, ok := r[name]
	switch {
	case !ok:
		return nil, backends.ErrNotConfigured
	case b == nil:
		return nil, &backends.Error{Code: backends.CodeUnavailable, Message: "connection refused", Remedy: "start it"}
	default:
		return b.Driver(), nil
	}
}

func (r registry) Names() []string {
	return slices.Sorted(maps.Keys(r))
}

// world is a management cluster with an operator and backends.
type world struct {
	t        *testing.T
	client   client.Client
	backends registry
	backend  *memory.Backend
	writes   int
	// stored are the FleetWorkloads as they were written, in order.
	stored  []*v1alpha1.FleetWorkload
	sources *fakeSources
	// versions counts what was put on the management cluster: each has a version of its own.
	versions int
	*Reconciler
}

func cluster(name, tier string) backends.Cluster {
	return backends.Cluster{Name: name, Labels: map[string]string{"tier": tier}, Ready: metav1.ConditionTrue}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sources: &fakeSources{objects: map[sources.Ref]*unstructured.Unstructured{}}, backend: memory.New(memory.Options{
		Clusters: []backends.Cluster{cluster("m1", "a"), cluster("m2", "b"), cluster("m3", "b")},
	})}
	w.backends = registry{"one": w.backend, "down": nil}
	count := func() { w.writes++ }
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.FleetWorkload{}).
		WithIndex(&v1alpha1.FleetWorkload{}, objectIndex, indexObjects).
		WithIndex(&v1alpha1.FleetWorkload{}, backendIndex, indexBackends).
		WithIndex(&v1alpha1.FleetWorkload{}, metav1.ObjectNameField, func(obj client.Object) []string { return []string{obj.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				w.countRevision(obj)
				return w.store(obj, c.Create(ctx, obj, opts...))
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				w.countRevision(obj)
				return w.store(obj, c.Update(ctx, obj, opts...))
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				w.countRevision(obj)
				return c.Delete(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				count()
				return w.store(obj, c.Patch(ctx, obj, patch, opts...))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				count()
				return w.store(obj, c.SubResource(sub).Patch(ctx, obj, patch, opts...))
			},
		}).Build()
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	w.Reconciler = &Reconciler{
		Kinds: kinds, Client: w.client, Live: w.client, Sources: w.sources, Backends: w.backends, Recorder: events.NewFakeRecorder(100),
		Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), MaxRemovalPercent: 50,
		MigrationLimiter: NewMigrationLimiter(10),
	}
	return w
}

// countRevision counts a write of a ControllerRevision. Other creations and updates are people's.
// store remembers what was written.
func (w *world) store(obj client.Object, err error) error {
	if fw, is := obj.(*v1alpha1.FleetWorkload); is && err == nil {
		w.stored = append(w.stored, fw.DeepCopy())
	}
	return err
}

func (w *world) countRevision(obj client.Object) {
	if _, is := obj.(*appsv1.ControllerRevision); is {
		w.writes++
	}
}

// fakeSources is the management cluster's objects.
type fakeSources struct {
	objects map[sources.Ref]*unstructured.Unstructured
	refs    map[types.NamespacedName][]sources.Ref
	err     error
}

func (f *fakeSources) Get(_ context.Context, ref sources.Ref) (*unstructured.Unstructured, error) {
	return f.objects[ref], f.err
}

func (f *fakeSources) Refer(name types.NamespacedName, refs []sources.Ref) {
	if f.refs == nil {
		f.refs = map[types.NamespacedName][]sources.Ref{}
	}
	f.refs[name] = refs
}

func (w *world) create(change func(*v1alpha1.FleetWorkloadSpec)) {
	w.t.Helper()
	fw := &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1", Generation: 1},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: "one", Template: runtime.RawExtension{Raw: []byte(template)},
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
		},
	}
	if change != nil {
		change(&fw.Spec)
	}
	if err := w.client.Create(context.Background(), fw); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get() *v1alpha1.FleetWorkload {
	w.t.Helper()
	fw := &v1alpha1.FleetWorkload{}
	if err := w.client.Get(context.Background(), key, fw); err != nil {
		w.t.Fatal(err)
	}
	return fw
}

// edit changes the spec as a person would.
func (w *world) edit(change func(*v1alpha1.FleetWorkload)) {
	w.t.Helper()
	fw := w.get()
	change(fw)
	fw.Generation++
	if err := w.client.Update(context.Background(), fw); err != nil {
		w.t.Fatal(err)
	}
}

// reconcile runs one pass, and checks the status that it leaves.
func (w *world) reconcile() (ctrl.Result, error) {
	w.t.Helper()
	before := &v1alpha1.FleetWorkload{}
	_ = w.client.Get(context.Background(), key, before)
	result, err := w.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	after := &v1alpha1.FleetWorkload{}
	if getErr := w.client.Get(context.Background(), key, after); getErr == nil {
		if wrong := errors.Join(statuscheck.Check(after), statuscheck.Transition(before, after)); wrong != nil {
			w.t.Errorf("the status is wrong: %v", wrong)
		}
	}
	return result, err
}

// settle lets operator and backend work until neither has anything left to do.
func (w *world) settle() {
	w.t.Helper()
	for range 50 {
		before, sent := w.writes, w.backend.Writes()
		result, err := w.reconcile()
		if err != nil {
			w.t.Fatal(err)
		}
		moved := w.backend.Step()
		switch waits := result.RequeueAfter; {
		case moved || w.writes != before || w.backend.Writes() != sent:
		case waits > 0 && waits <= numbersPace: // for numbers to be written
			w.Reconciler.Clock = clocktesting.NewFakePassiveClock(w.Clock.Now().Add(waits))
		default:
			return
		}
	}
	w.t.Fatal("it does not settle")
}

func (w *world) condition(kind string) metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.get().Status.Conditions, kind)
	if c == nil {
		w.t.Fatalf("no condition %s", kind)
	}
	return *c
}

func (w *world) expect(kind string, status metav1.ConditionStatus, reason string, message ...string) {
	w.t.Helper()
	c := w.condition(kind)
	if c.Status != status || c.Reason != reason {
		w.t.Fatalf("%s is %s %s %q, want %s %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
	for _, part := range message {
		if !strings.Contains(c.Message, part) {
			w.t.Errorf("%s says %q, without %q", kind, c.Message, part)
		}
	}
}

// member returns the workload's replicas on a cluster, or -1 when it is not there.
func (w *world) member(name string) int64 {
	w.t.Helper()
	obj, err := w.backend.Member(name).Get(context.Background(), backendtest.Ref{
		GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, NamespacedName: key,
	})
	if err != nil {
		return -1
	}
	n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return n
}

func (w *world) members() string {
	return fmt.Sprint(w.member("m1"), w.member("m2"), w.member("m3"))
}

func ptr[T any](v T) *T { return &v }

func divide(total int32) func(*v1alpha1.FleetWorkloadSpec) {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.Replicas = &total
		s.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: []v1alpha1.ClusterWeight{
			{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}, Weight: ptr(int32(2))},
			{Clusters: &v1alpha1.ClusterSelector{}, Weight: ptr(int32(1))},
		}}
	}
}

func TestAFleetBecomesReady(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.members(); got != "4 2 2" {
		t.Errorf("members run %s", got)
	}
	status := w.get().Status
	if status.Ready != "8/8" || status.ClustersReady != "3/3" || status.Backend != "one" || status.Scale.Selector != "app=web" {
		t.Errorf("status is %+v", status)
	}
	if *status.Replicas != 8 || len(status.Clusters) != 3 || status.Revision == "" || *status.ObservedGeneration != 1 {
		t.Errorf("status is %+v", status)
	}
}

func TestNothingToDoMeansNoWrite(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	before, sent := w.writes, w.backend.Writes()
	for range 3 {
		w.Reconciler.Clock = clocktesting.NewFakePassiveClock(time.Now())
		if result, err := w.reconcile(); err != nil || result != (ctrl.Result{}) {
			t.Fatalf("got %+v, %v", result, err)
		}
	}
	if w.writes != before || w.backend.Writes() != sent {
		t.Errorf("%d writes here and %d on the backend", w.writes-before, w.backend.Writes()-sent)
	}
}

func TestReadyComesOnlyWithEvidence(t *testing.T) {
	w := newWorld(t)
	w.backend.LimitReady("m2", 1)
	w.create(divide(8))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "m2")
	w.backend.LimitReady("m2", 100)
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestAnUnreachableClusterIsStale(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	lost := cluster("m2", "b")
	lost.Ready = metav1.ConditionUnknown
	w.backend.SetCluster(lost)
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonStale, "m2")
	row := w.get().Status.Clusters[0]
	if row.Name != "m2" || row.Stale != metav1.ConditionTrue || row.Ready == nil || *row.Ready != 2 || row.Health == v1alpha1.HealthHealthy {
		t.Errorf("the row is %+v", row)
	}
	w.backend.SetCluster(cluster("m2", "b"))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestEmptinessIsHeld(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "typo"}}}
	})
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNoClusterSelected, `backend "one"`, "What runs is left alone", "m1, m2, m3")
	if got := w.members(); got != "4 2 2" {
		t.Errorf("members run %s", got)
	}
}

func TestARemovalThatTheSpecAsksForGoesThrough(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: []string{"m3"}}
		fw.Spec.Placement.Division = nil
	})
	w.settle()
	if got := w.members(); got != "-1 -1 8" {
		t.Errorf("members run %s", got)
	}
}

func TestBadInputIsExplained(t *testing.T) {
	tests := map[string]struct {
		change  func(*v1alpha1.FleetWorkloadSpec)
		reason  string
		message []string
	}{
		"an unknown backend": {func(s *v1alpha1.FleetWorkloadSpec) { s.Backend = "typo" }, v1alpha1.ReasonBackendNotFound,
			[]string{`spec.backend "typo"`, "one", "Choose one of them"}},
		"an unknown cluster": {func(s *v1alpha1.FleetWorkloadSpec) { s.Placement.Clusters.Names = []string{"m1", "m9"} }, v1alpha1.ReasonClusterNotFound,
			[]string{`spec.placement.clusters.names[1] "m9"`, `backend "one"`, "correct the name"}},
		"a template without kind": {func(s *v1alpha1.FleetWorkloadSpec) { s.Template.Raw = []byte(`{"apiVersion":"apps/v1"}`) }, v1alpha1.ReasonInvalidTemplate,
			[]string{"spec.template.kind: required"}},
		"a kind that nobody may ship": {func(s *v1alpha1.FleetWorkloadSpec) {
			s.Template.Raw = []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding"}`)
		}, v1alpha1.ReasonNotSupported, []string{`spec.template.kind "rbac.authorization.k8s.io/v1 RoleBinding"`, "may not carry this kind"}},
		"a companion that grants rights": {func(s *v1alpha1.FleetWorkloadSpec) {
			s.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"}}`)}}
		}, v1alpha1.ReasonNotSupported, []string{`spec.companions[0].kind "rbac.authorization.k8s.io/v1 Role"`, "take it out"}},
		"a patch on nothing": {func(s *v1alpha1.FleetWorkloadSpec) {
			s.Overrides = []v1alpha1.Override{{Patches: []v1alpha1.PatchOperation{{Op: v1alpha1.PatchOpRemove, Path: "/spec/x/y"}}}}
		}, v1alpha1.ReasonInvalidOverride, []string{`spec.overrides[0].patches[0].path "/spec/x/y"`}},
		"a template that is too large": {func(s *v1alpha1.FleetWorkloadSpec) {
			s.Template.Raw = fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"x":%q}}`, strings.Repeat("x", 1<<20))
		}, v1alpha1.ReasonInvalidTemplate, []string{`spec.template "1025 KiB"`, "the limit is 1024 KiB", "ConfigMap"}},
		"more regions than there are": {func(s *v1alpha1.FleetWorkloadSpec) {
			least := int32(9)
			s.Placement.Spread = []v1alpha1.SpreadConstraint{{By: v1alpha1.SpreadByCluster, MinGroups: &least}}
		}, v1alpha1.ReasonPlacementNotMet, []string{`spec.placement.spread[0].minGroups "9"`, "lower minGroups"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(test.change)
			w.settle()
			w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, test.reason, test.message...)
			w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, test.reason)
			if w.backend.Writes() != 0 && test.reason != v1alpha1.ReasonPlacementNotMet { // whose selectors are good
				t.Errorf("%d writes on the backend", w.backend.Writes())
			}
			// Nothing but a change mends it, and that is an event.
			if result, err := w.reconcile(); err != nil || result.RequeueAfter != 0 {
				t.Errorf("it is looked at again: %+v, %v", result, err)
			}
		})
	}
}

func TestABadEditLeavesTheFleetAloneAndItsStatusTrue(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	sent := w.backend.Writes()
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1"}`) })
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidTemplate)
	if got := w.get().Status; got.Ready != "8/8" || len(got.Clusters) != 3 {
		t.Errorf("status is %+v", got)
	}
	if w.backend.Writes() != sent || w.members() != "4 2 2" {
		t.Errorf("the backend was written to: %s", w.members())
	}
}

func TestALostBackend(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.backends["one"] = nil
	if result, err := w.reconcile(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonBackendUnavailable, `backend "one"`, "connection refused", "start it")
	status := w.get().Status
	if *status.ReadyReplicas != 8 || status.Clusters[0].Stale != metav1.ConditionTrue {
		t.Errorf("status is %+v", status)
	}
	before := w.writes
	if _, err := w.reconcile(); err != nil || w.writes != before {
		t.Errorf("%d writes while it is lost, %v", w.writes-before, err)
	}
	w.backends["one"] = w.backend
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// TestWhatDoesNotDecodeIsLeftAlone, with the spec missing as it was read: neither is anything changed, nor may the FleetWorkload go.
func TestWhatDoesNotDecodeIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	var whole v1alpha1.FleetWorkloadSpec
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		whole, fw.Spec = *fw.Spec.DeepCopy(), v1alpha1.FleetWorkloadSpec{}
		fw.Annotations = map[string]string{"fleetworkload.io/undecodable": "spec.suspend: not a truth value"}
	})
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidObject, "spec.suspend")
	if err := w.client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.members(); got != "4 2 2" {
		t.Errorf("members run %s", got)
	}
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Annotations, fw.Spec = nil, whole })
	for range 20 {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.backend.Step()
	}
	if got := w.members(); got != "-1 -1 -1" {
		t.Errorf("corrected, and not deleted: members run %s", got)
	}
}

func TestTheBackendCanChangeWhileNothingRuns(t *testing.T) {
	w := newWorld(t)
	other := memory.New(memory.Options{Auto: true})
	w.backends["two"] = other
	w.create(func(s *v1alpha1.FleetWorkloadSpec) { s.Backend = "two" })
	w.settle()
	w.settle() // what is written there does not count for the first
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNoClusterSelected, "knows no clusters")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "one" })
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if status := w.get().Status; status.Backend != "one" || w.members() != "1 1 1" {
		t.Errorf("members run %s, status is %+v", w.members(), status)
	}
	left, err := other.Owned(context.Background(), backends.Query{Key: backends.Key{NamespacedName: key, UID: "uid-1"}})
	if err != nil || len(left) > 0 {
		t.Errorf("left on the other backend: %v, %v", left, err)
	}
}

func TestTheWorkloadOfAFleetCannotChange(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.Replace(template, `"spec"`, `"metadata":{"name":"other"},"spec"`, 1))
	})
	w.settle()
	w.expect(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidTemplate, `cannot change from apps/v1 Deployment "web" to apps/v1 Deployment "other"`)
}

// TestWhatAnotherFleetWorkloadHasIsLeft (law 5): through another backend, too, and be it a companion. What one has is recorded before it
// is sent, so that the next one finds it.
func TestWhatAnotherFleetWorkloadHasIsLeft(t *testing.T) {
	companion := func(s *v1alpha1.FleetWorkloadSpec) {
		divide(8)(s)
		s.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)}}
	}
	workload := v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: key.Name}
	settings := v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}
	other := v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "other"}
	for name, test := range map[string]struct {
		workload   v1alpha1.WorkloadReference
		companions []v1alpha1.WorkloadReference
		want       string
	}{
		"the workload":                     {workload, nil, "Deployment web"},
		"a companion":                      {other, []v1alpha1.WorkloadReference{settings}, "ConfigMap settings"},
		"a companion that is its workload": {settings, nil, "ConfigMap settings"},
		"nothing":                          {other, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rival := &v1alpha1.FleetWorkload{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "rival", UID: "uid-2"},
				Spec:       v1alpha1.FleetWorkloadSpec{Backend: "two", Template: runtime.RawExtension{Raw: []byte(template)}},
				Status: v1alpha1.FleetWorkloadStatus{Backend: "two", Workload: &test.workload, Placement: &v1alpha1.PlacementRecord{
					Clusters: []v1alpha1.ClusterShare{{Name: "m2", Replicas: ptr(int32(2))}}, Companions: test.companions,
				}},
			}
			status := rival.Status
			if err := w.client.Create(t.Context(), rival); err != nil {
				t.Fatal(err)
			}
			rival.Status = status
			if err := w.client.Status().Update(t.Context(), rival); err != nil {
				t.Fatal(err)
			}
			w.create(companion)
			w.settle()
			if test.want != "" {
				w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict,
					"FleetWorkload "+key.Namespace+"/rival has "+test.want, "on m2", `"two"`)
				if got := w.members(); got != "-1 -1 -1" {
					t.Errorf("members run %s", got)
				}
				if p := w.get().Status.Placement; p != nil && len(p.Companions) > 0 {
					t.Errorf("it has recorded %v", p.Companions)
				}
			}
			if err := w.client.Delete(t.Context(), rival); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			if got := w.get().Status.Placement.Companions; !slices.Equal(got, []v1alpha1.WorkloadReference{settings}) {
				t.Errorf("recorded %v", got)
			}
		})
	}
}

func TestSuspendFreezes(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Suspend = ptr(true)
		fw.Spec.Replicas = ptr(int32(4))
		fw.Spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", "nginx:2", 1))
	})
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	if got := w.members(); got != "4 2 2" {
		t.Errorf("members run %s", got)
	}
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = nil })
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if got := w.members(); got != "2 1 1" {
		t.Errorf("members run %s", got)
	}
}

func TestDelete(t *testing.T) {
	for policy, left := range map[v1alpha1.DeletionPolicy]string{
		"": "-1 -1 -1", v1alpha1.DeletionPolicyDelete: "-1 -1 -1", v1alpha1.DeletionPolicyOrphan: "4 2 2",
	} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			w := newWorld(t)
			w.create(divide(8))
			w.settle()
			w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.DeletionPolicy = policy })
			if err := w.client.Delete(context.Background(), w.get()); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				w.backend.Step()
			}
			err := w.client.Get(context.Background(), key, &v1alpha1.FleetWorkload{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				t.Fatalf("it is still there: %v", err)
			}
			if got := w.members(); got != left {
				t.Errorf("members run %s, want %s", got, left)
			}
		})
	}
}

func TestDeleteWaitsForALostBackendAndNeedsNoneWhenNothingWasSent(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	w.backends["one"] = nil
	if err := w.client.Delete(context.Background(), w.get()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.expect(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonBackendUnavailable)

	w = newWorld(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) { s.Backend = "down" })
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonBackendUnavailable)
	if err := w.client.Delete(context.Background(), w.get()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(context.Background(), key, &v1alpha1.FleetWorkload{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it is still there: %v", err)
	}
}

func TestEveryFailedCallIsTriedAgain(t *testing.T) {
	for _, op := range []memory.Operation{memory.OpClusters, memory.OpObserve, memory.OpApply} {
		t.Run(string(op), func(t *testing.T) {
			w := newWorld(t)
			w.create(divide(8))
			for range 3 { // finalizer, claim, first observation
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			w.backend.FailNext(op, errors.New("boom"))
			if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "boom") {
				t.Errorf("got %v", err)
			}
			w.expect(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonInternalError, "boom")
			w.settle()
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		})
	}
}

// TestPositionsAreNotReadFromConditions drops every condition between passes (law 6).
func TestPositionsAreNotReadFromConditions(t *testing.T) {
	plain, forgetful := newWorld(t), newWorld(t)
	for _, w := range []*world{plain, forgetful} {
		w.create(divide(8))
		for range 12 {
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.backend.Step()
			if w == forgetful {
				fw := w.get()
				fw.Status.Conditions = nil
				if err := w.client.Status().Update(context.Background(), fw); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if plain.backend.Writes() != forgetful.backend.Writes() {
		t.Errorf("%d writes, and %d without conditions", plain.backend.Writes(), forgetful.backend.Writes())
	}
	if diff := cmp.Diff(plain.get().Status, forgetful.get().Status); diff != "" {
		t.Error(diff)
	}
}
