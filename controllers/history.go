package controllers

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pointer "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// versionsAtOnce bounds how many versions are in memory at once: each may be as large as an object can be.
const versionsAtOnce = 5

// remember keeps what is shipped, when it is new. What stands against it is told, and holds nothing up.
func (r *Reconciler) remember(ctx context.Context, fw *v1alpha1.FleetWorkload, d *pass.Decision) {
	if d.History == nil {
		r.shipped.forget(client.ObjectKeyFromObject(fw))
		return
	}
	record, err := r.shipped.of(fw, d.History), error(nil)
	if record == nil {
		record, err = r.keepVersion(ctx, fw, d.History)
	}
	d.Remembered(record, err)
	if conflict(err) {
		return
	}
	if err == nil {
		r.shipped.note(fw, record)
	}
	switch changes := r.unkept.note(client.ObjectKeyFromObject(fw), err); {
	case changes && err != nil:
		log.FromContext(ctx).Error(err, "What is shipped is not kept for undo")
	case changes:
		log.FromContext(ctx).Info("What is shipped is kept for undo again")
	}
	if err != nil {
		r.Recorder.Eventf(fw, nil, "Warning", "HistoryNotKept", "Keep", "%s",
			brief.Note(fmt.Sprintf("what is shipped now cannot be returned to by undo, and is shipped all the same: %v", err)))
	}
}

// shipped are versions that are kept and whose record waits to be written with the numbers. Until then they are looked for no more.
type shipped struct {
	mu sync.Mutex
	by map[types.NamespacedName]keptAs
}

// keptAs is a record, and the FleetWorkload that it was made for as it was then: after any other change it may be another's turn to be the newest.
type keptAs struct {
	uid            types.UID
	generation     int64
	before, record *v1alpha1.SpecRevision
}

// note takes the record of what is kept now.
func (s *shipped) note(fw *v1alpha1.FleetWorkload, record *v1alpha1.SpecRevision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[types.NamespacedName]keptAs{}
	}
	s.by[client.ObjectKeyFromObject(fw)] = keptAs{fw.UID, fw.Generation, fw.Status.SpecRevision.DeepCopy(), record.DeepCopy()}
}

// of is the record when what is wanted was kept for this very FleetWorkload, and nil otherwise.
func (s *shipped) of(fw *v1alpha1.FleetWorkload, want *pass.History) *v1alpha1.SpecRevision {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, known := s.by[client.ObjectKeyFromObject(fw)]
	if !known || k.uid != fw.UID || k.generation != fw.Generation || k.record.Name != want.Name || pointer.Deref(k.record.Older, 0) > want.Limit ||
		!equality.Semantic.DeepEqual(k.before, fw.Status.SpecRevision) {
		return nil
	}
	return k.record.DeepCopy()
}

func (s *shipped) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, key)
}

// unkept are the FleetWorkloads of which what is shipped could not be kept the last time, and why. It is tried again each minute, and the log
// says it once.
type unkept struct {
	mu sync.Mutex
	by map[types.NamespacedName]string
}

// note takes what came of the last try, and tells whether that is something else than before.
func (u *unkept) note(key types.NamespacedName, err error) (changes bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.by[key]
	if err == nil {
		delete(u.by, key)
		return known
	}
	if u.by == nil {
		u.by = map[types.NamespacedName]string{}
	}
	u.by[key] = err.Error()
	return before != err.Error()
}

// keepVersion makes a version the newest one that is kept, and then removes those that are too many. Cut off anywhere, it ends the same when
// it is done again.
func (r *Reconciler) keepVersion(ctx context.Context, fw *v1alpha1.FleetWorkload, history *pass.History) (*v1alpha1.SpecRevision, error) {
	kept, err := r.versions(ctx, fw, history.Name)
	if err != nil {
		return nil, err
	}
	next := revisions.Decide(kept.all, history.Name, history.Limit)
	switch {
	case next.Write && kept.same != nil:
		err = r.renumber(ctx, kept.same, next.Number)
	case next.Write:
		err = r.createVersion(ctx, history.Object(fw, next.Number))
	}
	if err != nil {
		return nil, err
	}
	for _, name := range next.Delete {
		tooOld := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: name}}
		uid := kept.uids[name]
		if err := r.Delete(ctx, tooOld, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete ControllerRevision %s, which is too old to be kept: %w", client.ObjectKeyFromObject(tooOld), err)
		}
	}
	return &v1alpha1.SpecRevision{Name: history.Name, Number: pointer.To(next.Number), Older: pointer.To(next.Older)}, nil
}

func (r *Reconciler) renumber(ctx context.Context, kept *appsv1.ControllerRevision, number int64) error {
	kept.Revision = number
	if err := r.Update(ctx, kept); err != nil {
		return fmt.Errorf("give ControllerRevision %s the number %d: %w", client.ObjectKeyFromObject(kept), number, err)
	}
	return nil
}

func (r *Reconciler) createVersion(ctx context.Context, version *appsv1.ControllerRevision) error {
	switch err := r.Create(ctx, version); {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("ControllerRevision %s/%s is somebody else's, or was written over; delete it: kubectl delete controllerrevision %s -n %s",
			version.Namespace, version.Name, version.Name, version.Namespace)
	case err != nil:
		return fmt.Errorf("create ControllerRevision %s/%s: %w", version.Namespace, version.Name, err)
	default:
		return nil
	}
}

// versions are those that are kept.
type versions struct {
	all  []revisions.Kept
	uids map[string]types.UID
	// same is the one with what is shipped now; nil when there is none.
	same *appsv1.ControllerRevision
}

// versions reads those of a FleetWorkload. What only looks like one is left alone.
func (r *Reconciler) versions(ctx context.Context, fw *v1alpha1.FleetWorkload, same string) (versions, error) {
	found, next := versions{uids: map[string]types.UID{}}, ""
	for {
		page := &appsv1.ControllerRevisionList{}
		if err := r.List(ctx, page, client.InNamespace(fw.Namespace), client.MatchingLabels{v1alpha1.LabelHistoryOf: string(fw.UID)},
			client.Limit(versionsAtOnce), client.Continue(next)); err != nil {
			return versions{}, fmt.Errorf("list ControllerRevisions in %s: %w", fw.Namespace, err)
		}
		for i := range page.Items {
			object := &page.Items[i]
			if _, ours := revisions.Read(fw, object); !ours {
				continue
			}
			found.all = append(found.all, revisions.Kept{Name: object.Name, Number: object.Revision})
			found.uids[object.Name] = object.UID
			if object.Name == same {
				found.same = object.DeepCopy() // not the whole page with it
			}
		}
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}
