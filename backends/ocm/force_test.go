package ocm

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/drift"
)

// shared is one object on a member, whose fields are several managers'. Who has which, and what is a conflict, is decided by the code of
// Kubernetes' API server.
type shared struct {
	t      *testing.T
	member client.Client
	// work is the object's ManifestWork on the hub.
	work *unstructured.Unstructured
	base *unstructured.Unstructured
	// contests are the driver's, writes its changes of the ManifestWork.
	contests contests
	writes   int
}

// These write the object besides OCM's agent, as the API server calls them.
const (
	karmadaManager = "karmada-controller-manager"
	kubectlManager = "kubectl-edit"
)

func newShared(t *testing.T, manifest *unstructured.Unstructured) *shared {
	t.Helper()
	s := &shared{t: t, member: fake.NewClientBuilder().WithReturnManagedFields().Build()}
	s.renders(manifest)
	return s
}

// renders makes the driver want another manifest.
func (s *shared) renders(manifest *unstructured.Unstructured) {
	s.t.Helper()
	w := backends.Workload{
		GVK: manifest.GroupVersionKind(), Resource: "deployments", Namespace: manifest.GetNamespace(), Name: manifest.GetName(),
		ReplicasPath: []string{"spec", "replicas"},
	}
	d := backends.Desired{}
	d.Key.Namespace, d.Key.Name, d.Key.UID, d.Workload = "shop", "web", "u1", w
	config, err := renderConfig(d, false)
	if err != nil {
		s.t.Fatal(err)
	}
	work, err := renderWork(d, backends.Target{Cluster: "m1", Manifest: manifest}, config, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.base = work
}

// pass is the driver's, and tells what it waits for.
func (s *shared) pass(in intent) move {
	s.t.Helper()
	var st state
	if s.work != nil {
		r, err := readWork(s.work)
		if err != nil {
			s.t.Fatal(err)
		}
		st = r.state()
		in.contested = s.contests.goesOn(s.work, st)
		in.changes = changes(s.work, s.base)
	}
	m := next(st, in)
	if m.write != writeWork {
		s.t.Fatalf("it does not write: %+v", m)
	}
	if s.work != nil {
		s.contests.note(s.work, st, m)
	}
	wanted := variant(s.base, m)
	if s.work != nil && cmp.Equal(s.work.Object["spec"], wanted.Object["spec"]) {
		return m
	}
	s.writes++
	before := s.work
	s.work = wanted
	s.work.SetUID("w1")
	s.work.SetGeneration(1)
	if before != nil {
		s.work.SetGeneration(before.GetGeneration() + 1)
		s.work.Object["status"] = before.Object["status"]
	}
	return m
}

// looks is the agent's apply controller (ocm pkg/work/spoke/controllers/manifestcontroller).
func (s *shared) looks() {
	s.t.Helper()
	condition := metav1.Condition{Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, ObservedGeneration: s.work.GetGeneration()}
	if strategyOf(s.work) == workv1.UpdateStrategyTypeServerSideApply {
		manager, _, _ := unstructured.NestedString(configOf(s.work), "updateStrategy", "serverSideApply", "fieldManager")
		options := []client.ApplyOption{client.FieldOwner(manager)}
		if forced(configOf(s.work)) {
			options = append(options, client.ForceOwnership)
		}
		manifest := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(firstManifest(s.work))}
		err := s.member.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(manifest), options...)
		if err != nil && !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
		if err != nil {
			condition.Status, condition.Message = metav1.ConditionFalse, fmt.Sprintf("Failed to apply manifest: %v", err)
		}
	}
	status := workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{condition},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			Conditions: []metav1.Condition{condition}, StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
				{Name: feedbackUID, Value: workv1.FieldValue{Type: workv1.String, String: new(string)}},
			}},
		}}},
	}
	*status.ResourceStatus.Manifests[0].StatusFeedbacks.Values[0].Value.String = "o1"
	var err error
	if s.work.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&status); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shared) live() *unstructured.Unstructured {
	s.t.Helper()
	obj := s.base.DeepCopy()
	obj = &unstructured.Unstructured{Object: firstManifest(obj)}
	if err := s.member.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// written is the object without what the API server adds.
func (s *shared) written() *unstructured.Unstructured {
	s.t.Helper()
	obj := s.live()
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")
	return obj
}

// write changes the object as another manager does, by an update.
func (s *shared) write(manager string, change func(obj *unstructured.Unstructured)) {
	s.t.Helper()
	obj := s.live()
	change(obj)
	if err := s.member.Update(s.t.Context(), obj, client.FieldOwner(manager)); err != nil {
		s.t.Fatal(err)
	}
}

// becomes has Karmada write a manifest over what is there, and its mark.
func (s *shared) becomes(manifest *unstructured.Unstructured) {
	s.t.Helper()
	s.write(karmadaManager, func(obj *unstructured.Unstructured) {
		version := obj.GetResourceVersion()
		obj.Object = runtime.DeepCopyJSON(manifest.Object)
		obj.SetResourceVersion(version)
		labels := obj.GetLabels()
		labels[managedByKarmada] = "true"
		obj.SetLabels(labels)
	})
}

// settle lets driver and agent go on until neither has anything to do, and returns how often the ManifestWork was written.
func (s *shared) settle(in intent) int {
	s.t.Helper()
	before := s.writes
	for range 10 {
		was := s.writes
		s.pass(in)
		s.looks()
		if s.writes == was {
			return was - before
		}
	}
	s.t.Fatal("it does not settle")
	return 0
}

func (s *shared) image() string {
	containers, _, _ := unstructured.NestedSlice(s.live().Object, "spec", "template", "spec", "containers")
	image, _ := containers[0].(map[string]any)["image"].(string)
	return image
}

// deploymentOf is a target manifest of a revision, which is its image too.
func deploymentOf(revision string, replicas int64) *unstructured.Unstructured {
	labels := map[string]any{"app": "web"}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": maps.Clone(labels)},
			"template": map[string]any{"metadata": map[string]any{"labels": maps.Clone(labels)}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": revision}},
			}},
		},
	}}
	obj.SetNamespace("shop")
	obj.SetName("web")
	obj.SetLabels(map[string]string{v1alpha1.LabelUID: "u1"})
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationRevision: revision})
	return obj
}

func setImage(image string) func(obj *unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"name": "main", "image": image}}, "spec", "template", "spec", "containers")
	}
}

// TestAHubFromABackup: what has moved to Karmada is not written again by the agents of a hub that is back from a backup.
func TestAHubFromABackup(t *testing.T) {
	with := func(obj *unstructured.Unstructured, change func(annotations map[string]string)) *unstructured.Unstructured {
		annotations := obj.GetAnnotations()
		change(annotations)
		obj.SetAnnotations(annotations)
		return obj
	}
	settings := func(revision string, data map[string]any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		obj.SetNamespace("shop")
		obj.SetName("settings")
		obj.SetLabels(map[string]string{v1alpha1.LabelUID: "u1"})
		obj.SetAnnotations(map[string]string{v1alpha1.AnnotationRevision: revision})
		return obj
	}
	note := func(annotations map[string]string) { annotations["note"] = "old" }
	for name, test := range map[string]struct {
		moved, since *unstructured.Unstructured
		refused      bool
	}{
		"another image":             {deploymentOf("one", 2), deploymentOf("two", 2), true},
		"other replicas":            {deploymentOf("one", 2), deploymentOf("one", 3), true},
		"something was taken out":   {with(deploymentOf("one", 2), note), deploymentOf("two", 2), true},
		"nothing has changed since": {deploymentOf("one", 2), deploymentOf("one", 2), false},
		"a companion's key less":    {settings("r1", map[string]any{"a": "1", "b": "2"}), settings("r2", map[string]any{"a": "1"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, test.moved)
			s.settle(adopt)
			backup := s.work.DeepCopy()
			s.becomes(test.moved)
			s.becomes(test.since)
			before := s.written()

			s.work = backup
			for range 3 {
				s.looks()
				if diff := cmp.Diff(before.Object, s.written().Object); diff != "" {
					t.Fatalf("the agent has written it again:\n%s", diff)
				}
			}
			r, err := readWork(s.work)
			if err != nil {
				t.Fatal(err)
			}
			if r.state().conflict != test.refused {
				t.Errorf("refused is %v: %s", r.state().conflict, r.manifestMessage())
			}
			// Karmada goes on with it.
			next := test.since.DeepCopy()
			with(next, func(annotations map[string]string) { annotations[v1alpha1.AnnotationRevision] = "next" })
			s.becomes(next)
			before = s.written()
			s.looks()
			if diff := cmp.Diff(before.Object, s.written().Object); diff != "" {
				t.Errorf("the agent has written it again:\n%s", diff)
			}
		})
	}
}

// TestOthersChangesAreUndone: what somebody changes on a member is put back when the agent looks, and an edit reaches what another backend
// had before. Afterwards the agent is no longer told to force.
func TestOthersChangesAreUndone(t *testing.T) {
	born := func(t *testing.T) *shared {
		t.Helper()
		s := newShared(t, deploymentOf("one", 2))
		s.work = variant(s.base, deliver) // the agent has told that nothing is there
		s.work.SetUID("w1")
		s.looks()
		return s
	}
	adopted := func(t *testing.T) *shared {
		t.Helper()
		s := newShared(t, deploymentOf("one", 2))
		karmadas := deploymentOf("one", 2)
		if err := s.member.Create(t.Context(), karmadas, client.FieldOwner(karmadaManager)); err != nil {
			t.Fatal(err)
		}
		s.pass(moving)
		if !forced(configOf(s.work)) {
			t.Fatal("a hand-over does not take over")
		}
		s.settle(moving)
		if !forced(configOf(s.work)) {
			t.Fatal("a hand-over that goes on takes nothing over any more")
		}
		s.settle(want)
		return s
	}
	nothing := func(*shared) {}
	for name, test := range map[string]struct {
		begin   func(t *testing.T) *shared
		change  func(s *shared)
		renders string
		// writes are the driver's, at most.
		writes int
	}{
		"nothing":                 {born, nothing, "one", 0},
		"an edit":                 {born, nothing, "two", 1},
		"changed by hand":         {born, func(s *shared) { s.write(kubectlManager, setImage("by hand")) }, "one", 2},
		"changed and edited":      {born, func(s *shared) { s.write(kubectlManager, setImage("by hand")) }, "two", 3},
		"taken over":              {adopted, nothing, "one", 0},
		"taken over, then edited": {adopted, nothing, "two", 3},
		"taken over, and changed": {adopted, func(s *shared) { s.write(kubectlManager, setImage("by hand")) }, "one", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.begin(t)
			if forced(configOf(s.work)) {
				t.Fatal("at rest the agent is told to force")
			}
			test.change(s)
			s.renders(deploymentOf(test.renders, 2))
			s.looks()
			if n := s.settle(want); n > test.writes {
				t.Errorf("%d writes", n)
			}
			if image := s.image(); image != test.renders {
				t.Errorf("it has %q, want %q", image, test.renders)
			}
			if forced(configOf(s.work)) {
				t.Error("the agent is still told to force")
			}
		})
	}
}

// TestWhatIsPutBackIsTold: what others have changed is told of while it is put back, although nobody has looked between the agent's word and the
// order to win.
func TestWhatIsPutBackIsTold(t *testing.T) {
	s := newShared(t, deploymentOf("one", 2))
	s.pass(adopt)
	s.looks()
	s.settle(want)
	lost := func() *backends.Delivered {
		t.Helper()
		r, err := readWork(s.work)
		if err != nil {
			t.Fatal(err)
		}
		return s.contests.lost(r)
	}
	if got := lost(); got != nil {
		t.Errorf("nothing was changed, and told is %+v", got)
	}
	s.write(kubectlManager, setImage("by hand"))
	s.looks()
	order := s.work.GetGeneration()
	s.pass(want)
	got := lost()
	if got == nil || got.Order != (backends.Order{UID: "w1", Generation: order}) || !strings.Contains(got.Others, `"kubectl-edit"`) {
		t.Errorf("while it is put back, told is %+v", got)
	}
	s.looks()
	s.settle(want)
	if got := lost(); got != nil || s.image() != "one" {
		t.Errorf("it is put back: %q, and told is %+v", s.image(), got)
	}
}

// TestOthersChangesStay: with spec.drift Report, what somebody has changed stays as long as there is nothing new to deliver, and an edit is
// delivered whole, whether the change was noticed before or not.
func TestOthersChangesStay(t *testing.T) {
	leaving, adopting := want, adopt
	leaving.leaves, adopting.leaves = true, true
	byHand := func(s *shared) { s.write(kubectlManager, setImage("by hand")) }
	scaled := func(s *shared) {
		s.write(kubectlManager, func(obj *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(obj.Object, int64(5), "spec", "replicas")
		})
	}
	takenOut := func(s *shared) {
		s.write(kubectlManager, func(obj *unstructured.Unstructured) { unstructured.RemoveNestedField(obj.Object, "spec", "replicas") })
	}
	edited := func(s *shared) { s.renders(deploymentOf("two", 2)) }
	for name, test := range map[string]struct {
		happens  []func(s *shared)
		image    string
		replicas int64
		left     string
		// writes are the driver's, at most.
		writes int
	}{
		"nothing":                   {nil, "one", 2, "", 0},
		"an edit":                   {[]func(s *shared){edited}, "two", 2, "", 2},
		"changed by hand":           {[]func(s *shared){byHand}, "by hand", 2, `.spec.template.spec.containers[name="main"].image`, 0},
		"scaled by hand":            {[]func(s *shared){scaled}, "one", 5, ".spec.replicas", 0},
		"changed, then edited":      {[]func(s *shared){scaled, edited}, "two", 2, "", 2},
		"edited, then changed":      {[]func(s *shared){edited, byHand}, "by hand", 2, `.spec.template.spec.containers[name="main"].image`, 2},
		"changed, and changed back": {[]func(s *shared){byHand, func(s *shared) { s.write(kubectlManager, setImage("one")) }}, "one", 2, "", 0},
		"taken out":                 {[]func(s *shared){takenOut}, "one", 2, "", 0}, // it is nobody's, so that nobody can be told
		"taken out, and changed": {[]func(s *shared){func(s *shared) { takenOut(s); byHand(s) }}, "by hand", 0,
			`.spec.template.spec.containers[name="main"].image`, 0},
		"changed and edited at once": {[]func(s *shared){func(s *shared) { scaled(s); edited(s) }}, "two", 2, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, deploymentOf("one", 2))
			s.pass(adopting)
			s.looks()
			s.settle(leaving)
			before := s.writes
			for _, happens := range test.happens {
				happens(s)
				s.pass(leaving)
				s.looks()
				s.settle(leaving)
			}
			if n := s.writes - before; n > test.writes {
				t.Errorf("%d writes", n)
			}
			replicas, _, _ := unstructured.NestedInt64(s.live().Object, "spec", "replicas")
			if s.image() != test.image || replicas != test.replicas || forced(configOf(s.work)) {
				t.Errorf("it has %q and %d replicas, forced: %t", s.image(), replicas, forced(configOf(s.work)))
			}
			r, err := readWork(s.work)
			if err != nil {
				t.Fatal(err)
			}
			o := r.asLeft(r.observe(backends.Workload{}), backends.Workload{})
			if o.Applied != metav1.ConditionTrue || (o.Left != nil) != (test.left != "") {
				t.Fatalf("it is reported as %+v", o)
			}
			if o.Left != nil && !strings.HasSuffix(o.Left.Others, `"kubectl-edit" using apps/v1: `+test.left) {
				t.Errorf("told is %q", o.Left.Others)
			}
			if m := s.pass(leaving); m.waiting != "" {
				t.Errorf("it waits for %s", m.waiting)
			}
			// With Correct it is put back after all.
			s.settle(want)
			if image := s.image(); image == "by hand" {
				t.Error("it is not put back")
			}
		})
	}
}

// TestTheFirstDeliveryGoesOverWhatIsThere: what was never delivered cannot stay as it is, also when it is the first that a new ManifestWork
// does: it was lost, with what it had delivered, and the workload may have been edited meanwhile.
func TestTheFirstDeliveryGoesOverWhatIsThere(t *testing.T) {
	leaving := want
	leaving.leaves = true
	asked := state{
		exists: true, strategy: workv1.UpdateStrategyTypeReadOnly, deletion: workv1.DeletePropagationPolicyTypeOrphan, applied: metav1.ConditionTrue,
		object: presenceOurs,
	}
	for in, force := range map[intent]bool{want: false, leaving: true} {
		if m := next(asked, in); m.write != writeWork || m.strategy != workv1.UpdateStrategyTypeServerSideApply || m.force != force {
			t.Errorf("leaves %t: %+v", in.leaves, m)
		}
	}
}

// TestWhatALeftObjectReports: the status is about the object as it is, with its own number of replicas, whatever it bears of ours. During a
// removal and while another backend may write nothing is left.
func TestWhatALeftObjectReports(t *testing.T) {
	lost := manifestCondition(workv1.ManifestApplied, metav1.ConditionFalse, fieldsLost)
	w := backends.Workload{ReplicasPath: []string{"spec", "replicas"}}
	for name, test := range map[string]struct {
		change func(r *report)
		left   bool
	}{
		"changed":                             {func(*report) {}, true},
		"held, and changed":                   {func(r *report) { r.ours.held = "true" }, true},
		"its revision is gone":                {func(r *report) { delete(r.values, feedbackRevision) }, true},
		"it is of the revision before":        {func(r *report) { r.values[feedbackRevision] = "r0" }, false},
		"it is being removed":                 {func(r *report) { r.ours.removing = "Delete" }, false},
		"another backend may write it":        {func(r *report) { r.ours.observe = "true" }, false},
		"the agent is about to put it back":   {func(r *report) { r.forced = true }, false},
		"the agent could not apply it at all": {func(r *report) { r.conditions[0].Message = "no" }, false},
	} {
		r := loadWork(t, lost)
		r.forced, r.values[feedbackReplicas] = false, int64(7)
		test.change(&r)
		o := r.asLeft(r.observe(w), w)
		if (o.Left != nil) != test.left {
			t.Errorf("%s: left is %+v", name, o.Left)
		}
		if o.Left != nil && (o.Left.Replicas == nil || *o.Left.Replicas != 7 || !o.Current || o.Applied != metav1.ConditionTrue || o.Message != "") {
			t.Errorf("%s: it is reported as %+v", name, o)
		}
	}
}

// TestWhoHasChangedItIsTold: somebody who changes a field of the manifest on a member is named, with the field, and once. An edit of ours is
// nobody's change, also of what another backend had before; nor is what the manifest says nothing of. When it is put back, that is told.
func TestWhoHasChangedItIsTold(t *testing.T) {
	byHand := func(s *shared) { s.write(kubectlManager, setImage("by hand")) }
	annotated := func(s *shared) {
		s.write(kubectlManager, func(obj *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(obj.Object, "now", "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		})
	}
	edited := func(s *shared) { s.renders(deploymentOf("two", 2)) }
	const named = `m1: conflict with "kubectl-edit" using apps/v1: .spec.template.spec.containers[name="main"].image`
	const back = "cluster m1: the object there is what is delivered again, 2s after the change was seen"
	for name, test := range map[string]struct {
		adopted bool
		happens []func(s *shared)
		want    []string
	}{
		"changed by hand":                    {false, []func(*shared){byHand}, []string{named, back}},
		"changed by hand twice":              {false, []func(*shared){byHand, byHand}, []string{named, back, named, back}},
		"changed by hand and edited":         {false, []func(*shared){func(s *shared) { byHand(s); edited(s); s.pass(adopt) }}, nil},
		"edited, and changed by hand":        {false, []func(*shared){edited, byHand}, []string{named, back}},
		"edited":                             {false, []func(*shared){edited}, nil},
		"nothing that is in the manifest":    {false, []func(*shared){annotated}, nil},
		"taken over, and edited":             {true, []func(*shared){edited}, nil},
		"taken over, edited, and changed":    {true, []func(*shared){edited, byHand}, []string{named, back}},
		"taken over, and written again":      {true, []func(*shared){func(s *shared) { s.becomes(deploymentOf("one", 2)) }}, nil},
		"taken over, and changed and edited": {true, []func(*shared){byHand, edited}, []string{named, back}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, deploymentOf("one", 2))
			if test.adopted {
				if err := s.member.Create(t.Context(), deploymentOf("one", 2), client.FieldOwner(karmadaManager)); err != nil {
					t.Fatal(err)
				}
			}
			var memory drift.Memory
			var told []string
			now := time.Unix(1000, 0)
			look := func() {
				r, err := readWork(s.work)
				if err != nil {
					t.Fatal(err)
				}
				var changes []drift.Change
				var back []drift.PutBack
				now = now.Add(time.Second)
				memory, changes, back = drift.Look(memory, []backends.ClusterObservation{r.observe(backends.Workload{})}, true, now)
				for _, change := range changes {
					told = append(told, change.Cluster+": "+change.Others)
				}
				for _, object := range back {
					if s.image() == "by hand" {
						t.Errorf("it is still changed when it is told: %s", object)
					}
					told = append(told, object.String())
				}
			}
			goOn := func() {
				for range 5 {
					s.pass(adopt)
					s.looks()
					look()
				}
			}
			goOn()
			for _, happens := range test.happens {
				happens(s)
				s.looks()
				look()
				goOn()
				s.contests = contests{} // a while has passed
			}
			if diff := cmp.Diff(test.want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAContestGoesOnSlowly: against somebody who changes the object as soon as it is written, a manifest is put through once in a while,
// and a new one at once.
func TestAContestGoesOnSlowly(t *testing.T) {
	s := newShared(t, deploymentOf("one", 2))
	s.pass(adopt)
	s.looks()
	fight := func() {
		for range 30 {
			s.write(kubectlManager, setImage("theirs"))
			s.looks()
			s.pass(want)
			s.looks()
		}
	}
	before := s.writes
	fight()
	if n := s.writes - before; n > 3 {
		t.Errorf("%d writes", n)
	}
	r, err := readWork(s.work)
	if err != nil {
		t.Fatal(err)
	}
	if m := s.pass(want); !r.state().conflict || m.waiting == "" || forced(configOf(s.work)) {
		t.Errorf("the contest is over: %+v", m)
	}
	if o := r.observe(backends.Workload{}); o.Applied != metav1.ConditionUnknown || o.Message == "" || o.Current {
		t.Errorf("it is reported as %+v", o)
	}

	past := s.contests.by["w1"]
	past.at = past.at.Add(-contestPace)
	s.contests.by["w1"] = past
	s.pass(want)
	s.looks()
	if s.image() != "one" {
		t.Error("after a while it is not put through again")
	}
	fight()
	s.renders(deploymentOf("two", 2))
	s.settle(want)
	if s.image() != "two" {
		t.Error("an edit waits for the contest")
	}
	s.contests.forget("w1")
	if s.contests.fought("w1", hashOf(firstManifest(s.work)), time.Now()) {
		t.Error("it remembers what is gone")
	}
}

// TestACompanionThatSomebodyChanged is on its way again, and has not failed.
func TestACompanionThatSomebodyChanged(t *testing.T) {
	r := loadWork(t, manifestCondition(workv1.ManifestApplied, metav1.ConditionFalse, fieldsLost))
	companionWork := companionWorkOf(r.manifest)
	for was, want := range map[metav1.ConditionStatus]metav1.ConditionStatus{
		metav1.ConditionTrue: metav1.ConditionUnknown, metav1.ConditionUnknown: metav1.ConditionUnknown, metav1.ConditionFalse: metav1.ConditionFalse,
	} {
		o := backends.ClusterObservation{Applied: was, Current: true, Revision: "r1"}
		r.companion(companionWork, &o)
		if o.Applied != want || o.Current {
			t.Errorf("%s becomes %s, current %v: %s", was, o.Applied, o.Current, o.Message)
		}
	}
}

func companionWorkOf(manifest map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": []any{manifest}}}}}
}

// TestForces: when the agent is told to win over others.
func TestForces(t *testing.T) {
	ssa, readOnly := workv1.UpdateStrategyTypeServerSideApply, workv1.UpdateStrategyTypeReadOnly
	contested := want
	contested.contested = true
	leaving, editing := want, want
	leaving.leaves, editing.leaves, editing.changes = true, true, true
	for name, test := range map[string]struct {
		s    state
		in   intent
		want bool
	}{
		"a hand-over":                   {state{strategy: ssa, applied: metav1.ConditionTrue}, moving, true},
		"it begins":                     {state{strategy: readOnly}, want, false},
		"it begins, and adopts":         {state{strategy: readOnly}, adopt, true},
		"at rest":                       {state{strategy: ssa, applied: metav1.ConditionTrue}, adopt, false},
		"others have changed it":        {state{strategy: ssa, applied: metav1.ConditionFalse, conflict: true}, want, true},
		"they have changed it again":    {state{strategy: ssa, applied: metav1.ConditionFalse, conflict: true}, contested, false},
		"it goes on until it is won":    {state{strategy: ssa, applied: metav1.ConditionUnknown, forced: true}, want, true},
		"it is refused for its content": {state{strategy: ssa, applied: metav1.ConditionFalse}, want, false},
		"it is won":                     {state{strategy: ssa, applied: metav1.ConditionTrue, forced: true}, want, false},
		"it begins, and is to stay":     {state{strategy: readOnly}, leaving, true},
		"what is changed stays":         {state{strategy: ssa, applied: metav1.ConditionFalse, conflict: true}, leaving, false},
		"but not to an edit":            {state{strategy: ssa, applied: metav1.ConditionFalse, conflict: true}, editing, true},
		"nor before it was delivered":   {state{strategy: ssa, applied: metav1.ConditionFalse, conflict: true, undelivered: true}, leaving, true},
		"an edit at rest":               {state{strategy: ssa, applied: metav1.ConditionTrue}, editing, true},
		"an edit that is on its way":    {state{strategy: ssa, applied: metav1.ConditionUnknown, forced: true}, leaving, true},
	} {
		if got := test.s.forces(test.in); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
