package karmada

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// A companion work is the Work that delivers one companion to one cluster, written by us as Karmada's own controllers write
// theirs (pkg/controllers/namespace). Karmada could send along what a template refers to by itself (propagateDeps), but
// it takes an object off the members as soon as the template no longer refers to it, while old pods run and the gate is
// closed; it knows dependencies of namespaced templates only, and only by its own interpreters; and it would take the
// right to read all Secrets of its API server, those with the members' tokens among them.
//
// Karmada does not say which content of a Work it has applied. So new content is written suspended, seen suspended, and
// then released: the Dispatching condition turns True just before the member is written (pkg/controllers/execution).
type companionWork struct {
	companion backends.Companion
	cluster   string
	// work is the Work as it is created, but for its users.
	work *workv1alpha1.Work
}

const (
	// managedLabel is on every member object that Karmada may write and delete (util.ManagedByKarmadaLabel).
	managedLabel = "karmada.io/managed"
	// overwrite is the value of Karmada's annotation for a conflict resolution that takes over.
	overwrite = workv1alpha2.ResourceConflictResolutionOverwrite
	abort     = "abort"
	// overwriting is the end of the content's hash, of a companion work that takes over what it finds.
	overwriting = "-" + overwrite
)

// companionWorkKey names the Work as Karmada would name its own for the object, so that two of them meet.
func companionWorkKey(cluster string, obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{
		Namespace: executionPrefix + cluster, Name: names.GenerateWorkName(obj.GetKind(), obj.GetName(), obj.GetNamespace()),
	}
}

// renderings keep what companions are written as: a companion may be as large as a template, and the Works of a thousand clusters differ by
// the name of the cluster alone. They are used by one caller at a time.
type renderings map[rendering][2][]byte

// rendering is what the text depends on, besides the cluster: it stands between the two parts.
type rendering struct {
	object *unstructured.Unstructured
	adopt  bool
}

// companionFor is the companion as its Work has it, without sharing what is changed.
func companionFor(at types.NamespacedName, c backends.Companion, adopt bool) *unstructured.Unstructured {
	manifest := &unstructured.Unstructured{Object: maps.Clone(c.Object.Object)}
	delete(manifest.Object, "status")
	metadata, _ := manifest.Object["metadata"].(map[string]any)
	manifest.Object["metadata"] = maps.Clone(metadata)
	resolution := abort
	if adopt {
		resolution = overwrite
	}
	setMarks(manifest, map[string]string{managedLabel: "true"}, map[string]string{
		workv1alpha2.WorkNamespaceAnnotation: at.Namespace, workv1alpha2.WorkNameAnnotation: at.Name,
		workv1alpha2.ResourceConflictResolutionAnnotation: resolution,
	})
	return manifest
}

// text is the manifest in JSON, in pieces of which clusters share most.
func (r renderings) text(at types.NamespacedName, c backends.Companion, adopt bool) ([][]byte, error) {
	as := rendering{c.Object, adopt}
	around, known := r[as]
	if !known {
		// The hash stands for the cluster: nobody can write into an object what its own hash will be.
		mark := companions.Hash(c.Object.Object)
		common, err := json.Marshal(companionFor(types.NamespacedName{Namespace: mark, Name: at.Name}, c, adopt).Object)
		if err != nil {
			return nil, err
		}
		around[0], around[1], _ = bytes.Cut(common, []byte(`"`+mark+`"`))
		r[as] = around
	}
	name, err := json.Marshal(at.Namespace)
	if err != nil {
		return nil, err
	}
	return [][]byte{around[0], name, around[1]}, nil
}

func renderCompanionWork(key backends.Key, cluster string, c backends.Companion, adopt bool) (companionWork, error) {
	return renderings{}.companionWork(key, cluster, c, adopt)
}

func (r renderings) companionWork(key backends.Key, cluster string, c backends.Companion, adopt bool) (companionWork, error) {
	made, err := r.empty(key, cluster, c, adopt)
	if err != nil {
		return companionWork{}, err
	}
	text, err := r.text(companionWorkKey(cluster, c.Object), c, adopt)
	if err != nil {
		return companionWork{}, fmt.Errorf("encode %s: %w", companions.Title(c.Object), err)
	}
	made.work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: slices.Concat(text...)}}}
	return made, nil
}

// empty is the companion work without its manifest.
func (r renderings) empty(key backends.Key, cluster string, c backends.Companion, adopt bool) (companionWork, error) {
	at := companionWorkKey(cluster, c.Object)
	text, err := r.text(at, c, false)
	if err != nil {
		return companionWork{}, fmt.Errorf("encode %s: %w", companions.Title(c.Object), err)
	}
	content := companions.HashJSON(text...)
	if adopt {
		content += overwriting
	}
	no := false
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: at.Namespace, Name: at.Name, Finalizers: []string{executionFinalizer},
			Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
				v1alpha1.LabelUID:       companions.UID(c, key), companions.Label: companions.Kind(c),
			},
			Annotations: map[string]string{companions.AnnotationContent: content},
		},
		Spec: workv1alpha1.WorkSpec{
			SuspendDispatching: &no, PreserveResourcesOnDeletion: &no,
		},
	}
	if !c.Shared {
		work.Annotations[v1alpha1.AnnotationOwner] = key.String()
	}
	return companionWork{companion: c, cluster: cluster, work: work}, nil
}

// renderCompanionWorks are the Works of all companions, as they are written where there is none yet, and dispatched. They share what companions hold,
// and what is the same on all clusters, which must not be changed.
func renderCompanionWorks(desired backends.Desired) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	adopt, written := desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt, renderings{}
	shared := map[*unstructured.Unstructured]map[string]any{}
	for _, t := range desired.Targets {
		for _, c := range desired.Companions {
			if !c.NeededOn(t.Cluster) {
				continue
			}
			companionWork, err := written.empty(desired.Key, t.Cluster, c, adopt)
			if err != nil {
				return nil, err
			}
			work := companionWork.work
			work.Annotations[companions.AnnotationUsers] = companions.Users{}.With(desired.Key).String()
			if shared[c.Object] == nil {
				if shared[c.Object], err = inFull(work, companionFor(client.ObjectKeyFromObject(work), c, adopt)); err != nil {
					return nil, err
				}
			}
			objects = append(objects, &unstructured.Unstructured{Object: like(shared[c.Object], work)})
		}
	}
	return objects, nil
}

// inFull is a Work with its manifest.
func inFull(work *workv1alpha1.Work, manifest *unstructured.Unstructured) (map[string]any, error) {
	work.APIVersion, work.Kind = workv1alpha1.SchemeGroupVersion.String(), "Work"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(work)
	if err != nil {
		return nil, fmt.Errorf("convert Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	delete(content, "status")
	content["spec"].(map[string]any)["workload"] = map[string]any{"manifests": []any{manifest.Object}}
	return content, nil
}

// like is the Work of another cluster's companion as it is for this one: the two share all that is the same.
func like(content map[string]any, work *workv1alpha1.Work) map[string]any {
	below := func(parent map[string]any, key string) map[string]any {
		own := maps.Clone(parent[key].(map[string]any))
		parent[key] = own
		return own
	}
	content = maps.Clone(content)
	metadata := below(content, "metadata")
	metadata["namespace"] = work.Namespace
	below(metadata, "annotations")[companions.AnnotationContent] = work.Annotations[companions.AnnotationContent]
	workload := below(below(content, "spec"), "workload")
	manifest := maps.Clone(workload["manifests"].([]any)[0].(map[string]any))
	workload["manifests"] = []any{manifest}
	below(below(manifest, "metadata"), "annotations")[workv1alpha2.WorkNamespaceAnnotation] = work.Namespace
	return content
}

func setMarks(obj *unstructured.Unstructured, labels, annotations map[string]string) {
	merge := func(have, more map[string]string) map[string]string {
		out := maps.Clone(have)
		if out == nil {
			out = map[string]string{}
		}
		maps.Copy(out, more)
		return out
	}
	obj.SetLabels(merge(obj.GetLabels(), labels))
	obj.SetAnnotations(merge(obj.GetAnnotations(), annotations))
}

// carried is the object that a companion work delivers; nil when it cannot be read.
func carried(w *workv1alpha1.Work) *unstructured.Unstructured { return newWork(w).manifest() }

// adopts tells whether the Work takes an object over that is somebody else's.
func adopts(w *workv1alpha1.Work) bool {
	obj := newWork(w).manifestWith(overwrite)
	return obj != nil && obj.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite
}

// companionWorkStep is the next step with one companion on one cluster.
type companionWorkStep struct {
	// create is a Work that is missing; patch is the one that is there as it should be.
	create, patch *workv1alpha1.Work
	// pending says what is awaited and comes soon; blocked says what may last, of this cluster alone.
	pending, blocked string
	// live is what it was decided on; nil where there is none.
	live *workv1alpha1.Work
}

// deliveredWithin is how long after its Dispatching condition has turned True a Work may not have been delivered. Karmada writes the member right
// after the condition, and tells of what it could not write (Reconcile in pkg/controllers/execution).
const deliveredWithin = 5 * time.Second

// moving tells whether a change may not have reached the cluster yet. Only of the first time Karmada says that it has, as the Applied condition
// stays True from then on.
func (s companionWorkStep) moving(now time.Time) bool {
	if s.live == nil {
		return false
	}
	w := newWork(s.live)
	dispatched, applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDispatching), w.applied()
	return dispatched != nil && now.Sub(dispatched.LastTransitionTime.Time) < deliveredWithin &&
		(applied == nil || !applied.LastTransitionTime.After(dispatched.LastTransitionTime.Time))
}

// nextCompanionWork decides the next step. It is pure. ready is true when the cluster is in contact.
func nextCompanionWork(live *workv1alpha1.Work, want companionWork, key backends.Key, ready bool) (companionWorkStep, error) {
	title := companions.Title(want.companion.Object)
	if live == nil {
		work := want.work.DeepCopy()
		companions.ReadNeed(nil).Owning(key, want.elsewhere()).Write(work.Annotations)
		return companionWorkStep{create: work}.waitFor(title, "Karmada to apply it", ready), nil
	}
	if live.DeletionTimestamp != nil {
		return companionWorkStep{}.waitFor(title, "its removal, after which it is made again", ready), nil
	}
	need := companions.ReadNeed(live.Annotations)
	after := withNeed(live, need.Owning(key, want.elsewhere()))
	if foreign, err := foreignCompanionWork(live, want, need.Users); err != nil || foreign {
		step := companionWorkStep{}
		if err == nil && companions.IsCompanionWork(live) {
			// Being among its users keeps it when its owner goes.
			step.patch = after
		}
		return step, err
	}
	maps.Copy(after.Labels, want.work.Labels)
	if want.companion.Shared {
		delete(after.Annotations, v1alpha1.AnnotationOwner)
	}
	after.Spec.PreserveResourcesOnDeletion = want.work.Spec.PreserveResourcesOnDeletion
	if live.Annotations[companions.AnnotationContent] != want.work.Annotations[companions.AnnotationContent] {
		after.Annotations[companions.AnnotationContent] = want.work.Annotations[companions.AnnotationContent]
		after.Spec.Workload = want.work.DeepCopy().Spec.Workload
		if contentOf(live) != want.work.Annotations[companions.AnnotationContent] {
			yes := true
			after.Spec.SuspendDispatching = &yes
			return companionWorkStep{patch: after}.waitFor(title, "Karmada to take up the change", ready), nil
		}
		// It was taken over: what it delivers stays as it is.
	}
	step, w := companionWorkStep{patch: after}, newWork(live)
	switch {
	case !w.suspended() && ready && w.unrevised():
		yes := true
		after.Spec.SuspendDispatching = &yes
		return step.waitFor(title, "Karmada to check it again", ready), nil
	case !w.suspended():
		return step.judge(live, want.companion, ready), nil
	}
	// A cluster that comes back would get everything at once, and the workload perhaps first.
	if ready && meta.IsStatusConditionFalse(live.Status.Conditions, workv1alpha1.WorkDispatching) {
		after.Spec.SuspendDispatching = want.work.Spec.SuspendDispatching
	}
	return step.waitFor(title, "Karmada to take up the change", ready), nil
}

// judge reads how far Karmada has come with a companion work that is as wanted.
func (s companionWorkStep) judge(live *workv1alpha1.Work, c backends.Companion, ready bool) companionWorkStep {
	w, title := newWork(live), companions.Title(c.Object)
	applied := w.applied()
	switch {
	case !w.dispatched() || applied == nil:
		return s.waitFor(title, "Karmada to apply it", ready)
	case applied.Status == metav1.ConditionTrue:
		return s
	case conflicts(w) && c.Shared:
		return s // it is used as it is
	case w.ofAnother():
		s.blocked = title + ": " + anotherMessage
	case conflicts(w):
		s.blocked = companions.ForeignMessage(title)
	default:
		s.blocked = title + ": " + companions.Say(c.Object.GetKind(), applied.Message)
	}
	return s
}

// waitFor says what is awaited. A cluster that is out of contact keeps only itself waiting.
func (s companionWorkStep) waitFor(title, what string, ready bool) companionWorkStep {
	if ready {
		s.pending = title + ": " + what
	} else {
		s.blocked = title + ": " + what + "; the cluster cannot be reached"
	}
	return s
}

// conflicts tells whether the member has an object of that name that Karmada leaves alone.
func conflicts(w work) bool {
	applied := w.applied()
	return applied != nil && applied.Status == metav1.ConditionFalse && strings.Contains(applied.Message, conflictMessage)
}

// foreignCompanionWork tells whether a Work is somebody else's, who still uses it. That refuses a companion of one's own.
func foreignCompanionWork(live *workv1alpha1.Work, want companionWork, users companions.Users) (bool, error) {
	owner := live.Labels[v1alpha1.LabelUID]
	_, uses := users[types.UID(owner)]
	switch {
	case companions.IsCompanionWork(live) && owner == want.work.Labels[v1alpha1.LabelUID] && !claimed(live):
		return false, nil
	case want.companion.Shared:
		return !companions.IsCompanionWork(live) || uses || claimed(live), nil
	case !companions.IsCompanionWork(live) || claimed(live):
		return false, companions.NameConflict(want.companion.Object, "a resource template on the Karmada control plane")
	default:
		return false, companions.NameConflict(want.companion.Object, companions.Whose(live))
	}
}

// refuseCarried fails when the workload is a companion on one of its clusters. Karmada gives the Works of its own the names that companion works
// have, and would make a template's Work of somebody's companion work.
func refuseCarried(desired backends.Desired, companionWorkAt func(types.NamespacedName) (*workv1alpha1.Work, error)) error {
	for _, t := range desired.Targets {
		live, err := companionWorkAt(companionWorkKey(t.Cluster, desired.Template))
		if err != nil {
			return err
		}
		if live == nil || !companions.IsCompanionWork(live) || claimed(live) {
			continue
		}
		return &backends.Error{
			Code: backends.CodeNameConflict, Field: "spec.template.metadata.name", Value: desired.Workload.Name,
			Message: fmt.Sprintf("%s is on %s already, as a companion of %s", titleOf(live), t.Cluster, companions.Whose(live)),
			Remedy:  "give this workload another name, leave that cluster out of spec.placement, or take the companion out there first",
		}
	}
	return nil
}

// claimed tells whether Karmada has made the Work one of a binding's: somebody propagates the same object.
func claimed(w *workv1alpha1.Work) bool {
	return w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] != ""
}

// withNeed is the companion work with its need written down.
func withNeed(live *workv1alpha1.Work, need companions.Need) *workv1alpha1.Work {
	after := live.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	need.Write(after.Annotations)
	return after
}

// elsewhere are those who need the companion from another backend.
func (c companionWork) elsewhere() []types.UID { return c.companion.Elsewhere[c.cluster] }

// leaveStep is the next step of one FleetWorkload out of a companion work.
type leaveStep struct {
	patch           *workv1alpha1.Work
	remove, release bool
	waiting         string
	// again is after what time the next step may be another one although nothing has happened; 0 when it is not.
	requeueAfter time.Duration
}

// nextLeaving takes one FleetWorkload off a companion work's users, and the companion off the cluster with the last of them.
func nextLeaving(
	live *workv1alpha1.Work, key backends.Key, policy v1alpha1.DeletionPolicy, fleet backends.Fleet, now time.Time,
) leaveStep {
	need := companions.ReadNeed(live.Annotations)
	if left := need.Leaving(key, policy); len(left.Users) > 0 || claimed(live) {
		after := withNeed(live, left)
		if len(left.Users) > 0 && !left.Owned() {
			giveUp(after)
		}
		return leaveStep{patch: after}
	}
	w, obj := newWork(live), carried(live)
	what := "Karmada to leave " + w.cluster
	if !fleet.InContact(w.cluster) {
		what += ", which cannot be reached"
	}
	// What another Karmada has put there has Karmada's label too, by which it would be deleted.
	orphan := obj != nil && companions.Policy(obj.GetKind(), policy) == v1alpha1.DeletionPolicyOrphan || need.Elsewhere() || w.ofAnother()
	release := orphan && untouchable(w)
	if need.Observes(key.UID) {
		// Karmada takes its marks off when it releases, and writes what the Work holds.
		marks := policy == v1alpha1.DeletionPolicyOrphan && isApplied(w)
		orphan, release = true, !marks
	}
	insists := orphan && !release && isApplied(w) && !adopts(live) // see insist
	step := leaveStep{waiting: what}
	switch {
	case w.terminating():
		step.release = release
	case w.preserved() != orphan || insists:
		// It is our own object, so nobody has to take it up before the removal.
		step.patch = withNeed(live, need)
		step.patch.Spec.PreserveResourcesOnDeletion = &orphan
		if insists {
			insist(step.patch, obj)
			step.patch.Annotations[companions.AnnotationContent] = contentOf(step.patch) + overwriting
		}
	case release && slices.Contains(live.Finalizers, executionFinalizer):
		step.release = true
	default:
		if until, unseen := w.unseen(fleet, now); unseen && !orphan {
			return leaveStep{waiting: unseenMessage([]string{w.cluster}, fleet), requeueAfter: until}
		}
		step.remove = true
	}
	return step
}

// insist has Karmada be able to release what the Work delivers twice; see deletion.insist.
func insist(after *workv1alpha1.Work, obj *unstructured.Unstructured) {
	setMarks(obj, nil, map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: overwrite})
	raw, err := obj.MarshalJSON()
	if err != nil {
		return // it was read from JSON
	}
	after.Spec.Workload.Manifests[0].Raw = raw
}

// contentOf is the hash of what a companion work delivers, whether or not it takes over what it finds.
func contentOf(w *workv1alpha1.Work) string {
	return strings.TrimSuffix(w.Annotations[companions.AnnotationContent], overwriting)
}

// giveUp makes Karmada leave what the companion work delivers as it is.
func giveUp(w *workv1alpha1.Work) {
	yes := true
	w.Spec.SuspendDispatching, w.Spec.PreserveResourcesOnDeletion = &yes, &yes
}

// releasedFor tells whether a companion work is no danger to another owner of what it delivers, as far as one FleetWorkload is
// concerned: for others that use it, it goes on being owned.
func releasedFor(w *workv1alpha1.Work, key backends.Key) bool {
	need := companions.ReadNeed(w.Annotations)
	return need.Observes(key.UID) && (need.Owned() || newWork(w).released() || w.DeletionTimestamp != nil)
}

// nextObserve decides the next step with one companion on an observed cluster. What is missing is not made: it comes
// before the workload again when that is owned. New content is held back with the rest. Karmada writes what it holds once
// when it releases the object: that must not be what another backend, which has the same companions, has left behind.
// want is nil for a companion that is no longer listed.
func nextObserve(live *workv1alpha1.Work, want *companionWork, key backends.Key) companionWorkStep {
	if live == nil || live.DeletionTimestamp != nil || !companions.IsCompanionWork(live) || claimed(live) {
		return companionWorkStep{}
	}
	need := companions.ReadNeed(live.Annotations)
	if _, uses := need.Users[key.UID]; !uses {
		return companionWorkStep{}
	}
	w, title := newWork(live), titleOf(live)
	if !w.suspended() && !w.dispatched() && !w.preserved() {
		// The Dispatching condition would say no, and Karmada may still write.
		return companionWorkStep{blocked: title + ": Karmada to take up the change"}
	}
	need = need.Observing(key)
	step := companionWorkStep{patch: withNeed(live, need)}
	if need.Owned() {
		return step
	}
	giveUp(step.patch)
	if !w.released() {
		step.blocked = title + ": Karmada to hold it back"
	}
	if want != nil && contentOf(live) != contentOf(want.work) {
		step.patch.Annotations[companions.AnnotationContent] = want.work.Annotations[companions.AnnotationContent]
		step.patch.Spec.Workload = want.work.DeepCopy().Spec.Workload
	}
	return step
}
