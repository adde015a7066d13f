package karmada

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// Karmada reports nothing of a member object that it has not written. But it says why it could not write one, and that is
// how a look (R15) gets its answer: it is dispatched, with a label that no API server takes, so that nothing can come of it.
//
//	1 With conflict resolution Abort. "Karmada will not manage this resource" means that there is an object; where there is
//	  none, Karmada tries to create it, and the API server refuses the label.
//	2 Where there is one, with Overwrite. Karmada has our interpreter retain what the member's own controllers decide
//	  (Update in pkg/util/objectwatcher), and its refusal has the number in it. Where Karmada does not have that interpreter
//	  the API server refuses the label: the number is on its way when the interpreter is, or else not known.
//
// The answers stand in the Work's condition Applied, which says nothing of when; Karmada asks again at growing intervals. A
// look is listed among shadows where a Work is about to go: what it stands for may bear Karmada's label all the same.
const (
	// annotationLooks lists, on the policy, the clusters that are looked at.
	annotationLooks = "fleetworkload.io/looks"
	// lookClosely is a look where there is known to be an object. It never leaves the driver.
	lookClosely backends.Ownership = "LookClosely"
)

// setLooks records on a policy which clusters are looked at.
func setLooks(policy *unstructured.Unstructured, clusters []string) {
	setClusters(policy, annotationLooks, clusters)
}

// looksOf reads what setLooks has written.
func looksOf(policy *unstructured.Unstructured) []string { return clustersIn(policy, annotationLooks) }

// looks tells whether the cluster is only asked what it runs.
func looks(t backends.Target) bool {
	return t.Ownership == backends.OwnershipLook || t.Ownership == lookClosely
}

// lookRule makes manifests that cannot be written.
func lookRule(clusters []string) any {
	return rule(clusters, jsondiff.Op{Op: jsondiff.OpAdd, Path: jsondiff.Pointer("metadata", "labels", lua.LabelLook), Value: lua.LookOnly})
}

// isLook tells whether a manifest only asks.
func isLook(manifest *unstructured.Unstructured) bool {
	if manifest == nil {
		return false
	}
	_, is := manifest.GetLabels()[lua.LabelLook]
	return is
}

// asksClosely tells whether a manifest that asks is one of the second step.
func asksClosely(manifest *unstructured.Unstructured) bool {
	return isLook(manifest) && manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite
}

// lookingClosely returns desired with the second step where the first one has found an object.
func lookingClosely(desired backends.Desired, live world) backends.Desired {
	cloned := false
	for i, t := range desired.Targets {
		if t.Ownership != backends.OwnershipLook {
			continue
		}
		w, found := live.work(t.Cluster)
		if !found {
			continue
		}
		if manifest := w.manifest(); !asksClosely(manifest) && !w.sight(manifest, live.retains).Exists {
			continue
		}
		if !cloned {
			desired.Targets, cloned = slices.Clone(desired.Targets), true
		}
		desired.Targets[i].Ownership = lookClosely
	}
	return desired
}

// sight reads what a look has brought. retains tells whether Karmada has the interpreter, so that the number is on its way.
func (w work) sight(manifest *unstructured.Unstructured, retains bool) *backends.Sight {
	applied := w.applied()
	if !isLook(manifest) || applied == nil || applied.Status != metav1.ConditionFalse {
		return &backends.Sight{}
	}
	replicas, told := lua.LookAnswer(applied.Message)
	refused, closely := strings.Contains(applied.Message, lua.LookOnly), asksClosely(manifest)
	switch {
	case told:
		return &backends.Sight{Answered: true, Exists: true, Replicas: replicas}
	case refused:
		return &backends.Sight{Answered: !closely || !retains, Exists: closely}
	default:
		return &backends.Sight{Exists: closely || strings.Contains(applied.Message, conflictMessage)}
	}
}

// readLook is the report of a cluster that is looked at.
func (r reader) readLook(w work, manifest *unstructured.Unstructured, c backends.ClusterObservation) backends.ClusterObservation {
	c.Message = "Karmada is asked what runs there already"
	if message, lost := r.lost[w.cluster]; lost {
		c.Message = "the cluster cannot be reached: " + message
	}
	if c.Removing {
		return c
	}
	c.Sight = w.sight(manifest, r.live.retains)
	if applied := w.applied(); isLook(manifest) && !c.Sight.Exists && !c.Sight.Answered && applied != nil {
		c.Message += ", and says: " + applied.Message
	}
	return c
}

// ofEarlierLook tells whether Applied is the answer to a look, and nothing was tried since.
func ofEarlierLook(manifest *unstructured.Unstructured, applied *metav1.Condition) bool {
	if isLook(manifest) || manifest == nil || applied.Status != metav1.ConditionFalse {
		return false
	}
	_, told := lua.LookAnswer(applied.Message)
	return told || strings.Contains(applied.Message, lua.LookOnly) || strings.Contains(applied.Message, conflictMessage) &&
		manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite
}
