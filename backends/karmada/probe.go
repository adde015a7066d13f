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
// how a probe (R15) gets its answer: it is dispatched, with a label that no API server takes, so that nothing can come of it.
//
//	1 With conflict resolution Abort. "Karmada will not manage this resource" means that there is an object; where there is
//	  none, Karmada tries to create it, and the API server refuses the label.
//	2 Where there is one, with Overwrite. Karmada has our interpreter retain what the member's own controllers decide
//	  (Update in pkg/util/objectwatcher), and its refusal has the number in it. Where Karmada does not have that interpreter
//	  the API server refuses the label: the number is on its way when the interpreter is, or else not known.
//
// The answers stand in the Work's condition Applied, which says nothing of when; Karmada asks again at growing intervals. A
// probed cluster is listed among the observed ones where a Work is about to go: its object may bear Karmada's label all the same.
const (
	// annotationProbed lists, on the policy, the clusters that are probed.
	annotationProbed = "fleetworkload.io/probed"
	// probeClosely is a probe where there is known to be an object. It never leaves the driver.
	probeClosely backends.Mode = "ProbeClosely"
)

// setProbed records on a policy which clusters are probed.
func setProbed(policy *unstructured.Unstructured, clusters []string) {
	setClusters(policy, annotationProbed, clusters)
}

// probedOf reads what setProbed has written.
func probedOf(policy *unstructured.Unstructured) []string {
	return clustersIn(policy, annotationProbed)
}

// probes tells whether the cluster is only asked what it runs.
func probes(t backends.Target) bool {
	return t.Mode == backends.ModeProbe || t.Mode == probeClosely
}

// probeRule makes manifests that cannot be written.
func probeRule(clusters []string) any {
	return rule(clusters, jsondiff.Op{Op: jsondiff.OpAdd, Path: jsondiff.Pointer("metadata", "labels", lua.LabelProbe), Value: lua.ProbeOnly})
}

// isProbe tells whether a manifest only asks.
func isProbe(manifest *unstructured.Unstructured) bool {
	if manifest == nil {
		return false
	}
	_, is := manifest.GetLabels()[lua.LabelProbe]
	return is
}

// probes tells whether the Work only asks.
func (w work) probes() bool { return isProbe(w.manifestWith(lua.LabelProbe)) }

// probesClosely tells whether a manifest that asks is one of the second step.
func probesClosely(manifest *unstructured.Unstructured) bool {
	return isProbe(manifest) && manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite
}

// probingClosely returns desired with the second step where the first one has found an object.
func probingClosely(desired backends.Desired, live currentState) backends.Desired {
	cloned := false
	for i, t := range desired.Targets {
		if t.Mode != backends.ModeProbe {
			continue
		}
		w, found := live.work(t.Cluster)
		if !found {
			continue
		}
		if manifest := w.manifest(); !probesClosely(manifest) && !w.probeResult(manifest, live.retains).Exists {
			continue
		}
		if !cloned {
			desired.Targets, cloned = slices.Clone(desired.Targets), true
		}
		desired.Targets[i].Mode = probeClosely
	}
	return desired
}

// probeResult reads what a probe has brought. retains tells whether Karmada has the interpreter, so that the number is on its way.
func (w work) probeResult(manifest *unstructured.Unstructured, retains bool) *backends.ProbeResult {
	applied := w.applied()
	if !isProbe(manifest) || applied == nil || applied.Status != metav1.ConditionFalse {
		return &backends.ProbeResult{}
	}
	replicas, told := lua.ProbeAnswer(applied.Message)
	refused, closely := strings.Contains(applied.Message, lua.ProbeOnly), probesClosely(manifest)
	switch {
	case told:
		return &backends.ProbeResult{Answered: true, Exists: true, Replicas: replicas}
	case refused:
		return &backends.ProbeResult{Answered: !closely || !retains, Exists: closely}
	default:
		return &backends.ProbeResult{Exists: closely || strings.Contains(applied.Message, conflictMessage)}
	}
}

// readProbe is the report of a cluster that is probed.
func (r reader) readProbe(w work, manifest *unstructured.Unstructured, c backends.ClusterObservation) backends.ClusterObservation {
	c.Message = "Karmada is asked what runs there already"
	if message, lost := r.lost[w.cluster]; lost {
		c.Message = "the cluster cannot be reached: " + message
	}
	if c.Removing() {
		return c
	}
	c.Probe = w.probeResult(manifest, r.live.retains)
	if applied := w.applied(); isProbe(manifest) && !c.Probe.Exists && !c.Probe.Answered && applied != nil {
		c.Message += ", and says: " + applied.Message
	}
	return c
}

// ofEarlierProbe tells whether Applied is the answer to a probe, and nothing was tried since.
func ofEarlierProbe(manifest *unstructured.Unstructured, applied *metav1.Condition) bool {
	if isProbe(manifest) || manifest == nil || applied.Status != metav1.ConditionFalse {
		return false
	}
	_, told := lua.ProbeAnswer(applied.Message)
	return told || strings.Contains(applied.Message, lua.ProbeOnly) || strings.Contains(applied.Message, conflictMessage) &&
		manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite
}
