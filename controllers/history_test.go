package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// image is an edit that ships another image.
func image(n int) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", fmt.Sprint("nginx:", n), 1))
	}
}

func keepOlder(n int32) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) { fw.Spec.RevisionHistoryLimit = &n }
}

// kept are the versions that there are, as NUMBER:IMAGE in the order of their numbers, and the record of them.
func (w *world) kept() (versions, record string) {
	w.t.Helper()
	list, fw := &appsv1.ControllerRevisionList{}, w.get()
	if err := w.client.List(context.Background(), list, client.HasLabels{v1alpha1.LabelHistoryOf}); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var all []string
	for i := range list.Items {
		shipped, ours := revisions.Read(fw, &list.Items[i])
		if !ours {
			all = append(all, "foreign")
			continue
		}
		_, of, _ := strings.Cut(string(shipped.Template.Raw), "nginx:")
		of, _, _ = strings.Cut(of, `"`)
		all = append(all, fmt.Sprintf("%d:%s", list.Items[i].Revision, of))
		if r := fw.Status.SpecRevision; r != nil && r.Name == list.Items[i].Name {
			record = fmt.Sprintf("%d:%s and %d older", *r.Number, of, *r.Older)
		}
	}
	return strings.Join(all, " "), record
}

func (w *world) expectKept(versions, record string) {
	w.t.Helper()
	if v, r := w.kept(); v != versions || r != record {
		w.t.Errorf("%q are kept, and %q is on record; want %q, %q", v, r, versions, record)
	}
}

// through has the reconciler use its client through functions.
func (w *world) through(funcs interceptor.Funcs) {
	w.t.Helper()
	c, is := w.client.(client.WithWatch)
	if !is {
		w.t.Fatal("the client cannot watch")
	}
	w.Client = interceptor.NewClient(c, funcs)
}

// restart has another operator go on, which remembers nothing.
func (w *world) restart() {
	r := w.Reconciler
	w.Reconciler = &Reconciler{
		Kinds: r.Kinds, Client: r.Client, Sources: r.Sources, Backends: r.Backends, Recorder: r.Recorder, Clock: r.Clock,
		MaxRemovalPercent: r.MaxRemovalPercent, MigrationLimiter: NewMigrationLimiter(10),
	}
}

// TestWhatIsShippedIsKept: so many versions and no more, each once, the newest on record.
func TestWhatIsShippedIsKept(t *testing.T) {
	w := newWorld(t)
	w.create(func(s *v1alpha1.FleetWorkloadSpec) { s.RevisionHistoryLimit = ptr(int32(3)) })
	w.settle()
	w.expectKept("1:1", "1:1 and 0 older")
	for n := 2; n <= 12; n++ {
		w.edit(image(n))
		w.settle()
	}
	w.expectKept("9:9 10:10 11:11 12:12", "12:12 and 3 older")
	w.edit(image(10))
	w.settle()
	w.expectKept("9:9 11:11 12:12 13:10", "13:10 and 3 older")
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas, fw.Spec.Suspend = ptr(int32(3)), ptr(true) })
	w.settle()
	w.expectKept("9:9 11:11 12:12 13:10", "13:10 and 3 older")
	w.edit(keepOlder(1))
	w.settle()
	w.expectKept("12:12 13:10", "13:10 and 1 older")
	w.edit(keepOlder(0))
	w.settle()
	w.expectKept("13:10", "13:10 and 0 older")
	w.edit(image(12))
	w.settle()
	w.expectKept("14:12", "14:12 and 0 older")
	w.edit(keepOlder(50))
	w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1"}`) })
	w.settle()
	w.expectKept("14:12", "14:12 and 0 older")

	owner := metav1.GetControllerOf(&w.versionNamed(w.get().Status.SpecRevision.Name).ObjectMeta)
	if owner == nil || owner.UID != w.get().UID || owner.Kind != "FleetWorkload" {
		t.Errorf("it does not go with its FleetWorkload: %+v", owner)
	}
}

func (w *world) versionNamed(name string) *appsv1.ControllerRevision {
	w.t.Helper()
	version := &appsv1.ControllerRevision{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: key.Namespace, Name: name}, version); err != nil {
		w.t.Fatal(err)
	}
	return version
}

// TestHistoryAtRest (law 3): when nothing new is shipped, versions are neither read nor written, after a restart neither.
func TestHistoryAtRest(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	w.settle()
	w.edit(image(2))
	w.settle()
	asked := 0
	w.through(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*appsv1.ControllerRevision); is {
				asked++
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*appsv1.ControllerRevisionList); is {
				asked++
			}
			return c.List(ctx, list, opts...)
		},
	})
	before := w.writes
	w.settle()
	w.restart()
	w.settle()
	if asked != 0 || w.writes != before {
		t.Errorf("%d reads of versions, %d writes", asked, w.writes-before)
	}
	w.edit(image(3))
	w.settle()
	if asked == 0 {
		t.Error("reads are not seen")
	}
}

// TestHistoryIsCutOff (law 6): with any one write failing, and another operator going on, the same versions are kept.
func TestHistoryIsCutOff(t *testing.T) {
	told := func(cut int) (versions, record string, done bool) {
		w := newWorld(t)
		fail := func(obj client.Object) error {
			_, version := obj.(*appsv1.ControllerRevision)
			_, workload := obj.(*v1alpha1.FleetWorkload)
			if cut--; cut == -1 && (version || workload) {
				return errors.New("cut off")
			}
			return nil
		}
		w.through(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				return errors.Join(fail(obj), unlessFailed(cut, func() error { return c.Create(ctx, obj, opts...) }))
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				return errors.Join(fail(obj), unlessFailed(cut, func() error { return c.Update(ctx, obj, opts...) }))
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				return errors.Join(fail(obj), unlessFailed(cut, func() error { return c.Delete(ctx, obj, opts...) }))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return errors.Join(fail(obj), unlessFailed(cut, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) }))
			},
		})
		w.create(func(s *v1alpha1.FleetWorkloadSpec) { s.RevisionHistoryLimit = ptr(int32(1)) })
		for _, n := range []int{1, 2, 3, 2} {
			w.edit(image(n))
			for range 8 {
				if _, err := w.reconcile(); err != nil || cut == -1 {
					w.restart()
				}
				w.backend.Step()
			}
		}
		versions, record = w.kept()
		return versions, record, cut >= 0
	}
	want, wantRecord, _ := told(1000)
	if want != "3:3 4:2" || wantRecord != "4:2 and 1 older" {
		t.Fatalf("uninterrupted: %q, and %q on record", want, wantRecord)
	}
	for cut := 0; ; cut++ {
		versions, record, done := told(cut)
		if versions != want || record != wantRecord {
			t.Errorf("cut off at write %d: %q are kept, and %q is on record", cut+1, versions, record)
		}
		if done {
			if cut < 10 {
				t.Errorf("only %d writes were cut off", cut)
			}
			return
		}
	}
}

// unlessFailed does what has not just been cut off.
func unlessFailed(cut int, do func() error) error {
	if cut == -1 {
		return nil
	}
	return do()
}

// TestHistoryThatCannotBeKept holds nothing up, is told, and is kept once that is possible.
func TestHistoryThatCannotBeKept(t *testing.T) {
	w := newWorld(t)
	recorder := events.NewFakeRecorder(100)
	w.Recorder = recorder
	w.create(nil)
	w.settle()
	forbidden := true
	w.through(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if forbidden {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, obj.GetName(), errors.New("exceeded quota"))
		}
		return c.Create(ctx, obj, opts...)
	}})
	w.edit(image(2))
	w.settle()
	w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.expectKept("1:1", "1:1 and 0 older")
	if result, err := w.reconcile(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("it is not tried again: %+v, %v", result, err)
	}
	if told := recorded(recorder, "HistoryNotKept"); !strings.Contains(told, "exceeded quota") {
		t.Errorf("the event is %q", told)
	}
	forbidden = false
	w.settle()
	w.expectKept("1:1 2:2", "2:2 and 1 older")
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("it looks again: %+v, %v", result, err)
	}
}

// TestWhatIsNotKeptIsLoggedWhenThatBeginsChangesAndEnds, and not with each of the tries between.
func TestWhatIsNotKeptIsLoggedWhenThatBeginsChangesAndEnds(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	w.settle()
	var why error
	w.through(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if why != nil {
			return why
		}
		return c.Create(ctx, obj, opts...)
	}})
	var logged []string
	logger := funcr.New(func(_, line string) {
		if strings.Contains(line, "for undo") {
			logged = append(logged, line)
		}
	}, funcr.Options{})
	for n, step := range []struct {
		why  error
		says string
	}{
		{errors.New("quota"), "quota"}, {errors.New("no answer"), "no answer"}, {nil, "again"}, {nil, ""},
		{apierrors.NewConflict(schema.GroupResource{}, "web", nil), ""}, {errors.New("no answer"), "no answer"}, {nil, "again"},
	} {
		if why, logged = step.why, nil; why != nil {
			w.edit(image(n + 2))
		}
		for range 4 { // the record, the carrying out, and twice nothing new
			if _, err := w.Reconcile(log.IntoContext(t.Context(), logger), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			w.backend.Step()
		}
		if all := strings.Join(logged, "; "); len(logged) > 1 || (step.says == "") != (all == "") || !strings.Contains(all, step.says) {
			t.Errorf("step %d: it says %q, want %q once", n+1, all, step.says)
		}
	}
}

// recorded is the first event with a word among those that were recorded; empty when there is none.
func recorded(recorder *events.FakeRecorder, word string) string {
	for {
		select {
		case event := <-recorder.Events:
			if strings.Contains(event, word) {
				return event
			}
		default:
			return ""
		}
	}
}

// passes lets operator and backend work for a while: one that tries again and again does not settle.
func (w *world) passes(n int) {
	w.t.Helper()
	for range n {
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
		w.backend.Step()
	}
}

// TestAPlantedVersion is neither believed nor removed: it is in nobody's way but its own version's.
func TestAPlantedVersion(t *testing.T) {
	for name, plant := range map[string]func(*appsv1.ControllerRevision){
		"of nobody":      func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
		"of another":     func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "uid-0" },
		"without labels": func(r *appsv1.ControllerRevision) { r.Labels, r.OwnerReferences = nil, nil },
		"with other content": func(r *appsv1.ControllerRevision) {
			r.Data = runtime.RawExtension{Raw: []byte(`{"template":{"kind":"Evil"}}`)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(func(s *v1alpha1.FleetWorkloadSpec) { s.RevisionHistoryLimit = ptr(int32(0)) })
			w.edit(image(2))
			w.settle()
			planted := w.versionNamed(w.get().Status.SpecRevision.Name)
			planted.ResourceVersion = ""
			w.edit(image(1))
			w.settle()
			w.expectKept("2:1", "2:1 and 0 older")
			plant(planted)
			if err := w.client.Create(t.Context(), planted); err != nil {
				t.Fatal(err)
			}
			before := w.versionNamed(planted.Name)
			w.edit(image(2))
			w.passes(8)
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			if r := w.get().Status.SpecRevision; r.Name == planted.Name {
				t.Errorf("it is believed: %+v", r)
			}
			w.edit(image(3))
			w.settle()
			if r := w.get().Status.SpecRevision; *r.Number != 3 || *r.Older != 0 {
				t.Errorf("it counts: %d, %d older", *r.Number, *r.Older)
			}
			if diff := cmp.Diff(before, w.versionNamed(planted.Name)); diff != "" {
				t.Errorf("it was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestWhatIsKeptIsLookedForOnce: beside others, the record of what is kept waits for the next status that is written anyway. Until then nobody looks
// again what is kept, unless something has changed since.
func TestWhatIsKeptIsLookedForOnce(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile        func(w *world)
		looked           int
		versions, record string
	}{
		"nothing":             {meanwhile: func(*world) {}, looked: 1, versions: "1:1"},
		"another is shipped":  {meanwhile: func(w *world) { w.edit(image(2)) }, looked: 2, versions: "1:1 2:2", record: "2:2 and 1 older"},
		"the operator starts": {meanwhile: (*world).restart, looked: 2, versions: "1:1", record: "1:1 and 0 older"},
		"replicas change":     {meanwhile: func(w *world) { w.edit(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) }) }, looked: 2, versions: "1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			w, looked := newWorld(t), 0
			w.through(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, is := list.(*appsv1.ControllerRevisionList); is {
					looked++
				}
				return c.List(ctx, list, opts...)
			}})
			others := func() {
				for i := range 3 {
					w.begun.note(types.NamespacedName{Namespace: key.Namespace, Name: fmt.Sprint(i)}, v1alpha1.FleetWorkloadStatus{}, w.Clock.Now())
				}
			}
			others()
			w.create(nil)
			for range 5 {
				if kept, _ := w.kept(); kept == "" {
					w.passes(1)
				}
			}
			w.expectKept("1:1", "")
			c.meanwhile(w)
			others()
			for range 3 { // nothing moves on the backend
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			if w.expectKept(c.versions, c.record); looked != c.looked {
				t.Errorf("looked for what is kept %d times, want %d", looked, c.looked)
			}
			w.later(int(longestPace.Seconds()))
			w.passes(3)
			if _, record := w.kept(); record == "" {
				t.Error("there is no record of what is kept")
			}
		})
	}
}

// TestShipped: what was kept for another FleetWorkload, or before something else was, is looked for.
func TestShipped(t *testing.T) {
	record := &v1alpha1.SpecRevision{Name: "v2", Number: ptr(int64(2)), Older: ptr(int32(1))}
	for name, c := range map[string]struct {
		change func(fw *v1alpha1.FleetWorkload, want *pass.History)
		known  bool
	}{
		"the same":                 {change: func(*v1alpha1.FleetWorkload, *pass.History) {}, known: true},
		"another of the same name": {change: func(fw *v1alpha1.FleetWorkload, _ *pass.History) { fw.UID = "u2" }},
		"a spec in between":        {change: func(fw *v1alpha1.FleetWorkload, _ *pass.History) { fw.Generation = 4 }},
		"another operator's turn in between": {change: func(fw *v1alpha1.FleetWorkload, _ *pass.History) {
			fw.Status.SpecRevision = &v1alpha1.SpecRevision{Name: "v3"}
		}},
		"another version":       {change: func(_ *v1alpha1.FleetWorkload, want *pass.History) { want.Name = "v3" }},
		"fewer are to be kept":  {change: func(_ *v1alpha1.FleetWorkload, want *pass.History) { want.Limit = 0 }},
		"another FleetWorkload": {change: func(fw *v1alpha1.FleetWorkload, _ *pass.History) { fw.Name = "api" }},
	} {
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u1", Generation: 2}}
		fw.Status.SpecRevision = &v1alpha1.SpecRevision{Name: "v1"}
		want := &pass.History{Version: revisions.Version{Name: "v2"}, Limit: 1}
		var s shipped
		s.note(fw, record)
		c.change(fw, want)
		if got := s.of(fw, want); (got != nil) != c.known || c.known && !cmp.Equal(got, record) {
			t.Errorf("%s: %+v", name, got)
		}
		s.forget(client.ObjectKeyFromObject(fw))
		if got := s.of(fw, want); got != nil {
			t.Errorf("%s: %+v, once forgotten", name, got)
		}
	}
}
