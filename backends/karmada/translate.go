package karmada

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// conflictMessage is part of what Karmada says of a foreign member object that it leaves alone
// (allowUpdate in pkg/util/objectwatcher/objectwatcher.go).
const conflictMessage = "Karmada will not manage this resource"

// labelRetainReplicas has Karmada leave replicas to the member, when it is true (pkg/util/constants.go).
const labelRetainReplicas = "resourcetemplate.karmada.io/retain-replicas"

// translate tells what Karmada reports about a workload. It reads the Works rather than the binding's aggregated
// status, which is made of them: flags, manifest and status of a Work are of one moment.
//
// How a report is found current (R9), with the weak spot: Karmada gives no word on when a manifest reached its member.
// The Work must not be suspended, must be rendered from the newest template and applied, and must have been taken up by
// the execution controller after the gate (its Dispatching condition turns True just before the member is written).
// Kinds whose status carries resourceTemplateGeneration then prove that the member has that very generation of the
// template. What does not change that generation, an override or a label, is proven only up to the moment between that
// condition and the write to the member. Where our interpreters are installed,
// the status brings the member object's revision back, which proves all of it.
func translate(q backends.Query, live currentState, fleet backends.Fleet) backends.Observation {
	o := backends.Observation{Found: !live.empty()}
	r := reader{query: q, live: live, suspension: policySuspension(live.policy), observed: live.observed(), lost: map[string]string{}}
	byCluster := map[string]backends.ClusterObservation{}
	if live.binding != nil {
		r.scheduled, r.mayBeDivided = scheduled(live.binding), mayBeDivided(live.binding)
		for name := range r.scheduled {
			c := backends.ClusterObservation{Cluster: name, Applied: metav1.ConditionUnknown}
			// Of a binding that is being deleted no Work is made any more.
			c.Presence = backends.PresenceOf(false, live.binding.DeletionTimestamp != nil && r.suspends(name))
			if slices.Contains(probedOf(live.policy), name) {
				c.Probe = &backends.ProbeResult{}
			}
			byCluster[name] = c
		}
	}
	for _, c := range fleet.Clusters {
		if c.Ready != metav1.ConditionTrue {
			r.lost[c.Name] = c.Message
		}
	}
	for _, w := range live.works {
		byCluster[w.cluster] = r.read(w)
	}
	if q.Counterpart != backends.CounterpartNone {
		r.readNamed(byCluster, fleet)
	}
	for _, name := range slices.Sorted(maps.Keys(byCluster)) {
		o.Clusters = append(o.Clusters, byCluster[name])
	}
	return o
}

// readNamed reports the clusters for which Karmada has no Work yet, or none any more, and will render one: at once, or as soon as it knows
// the cluster again. Nothing is to be said of one that it does not know and would not write to.
func (r reader) readNamed(byCluster map[string]backends.ClusterObservation, fleet backends.Fleet) {
	rendered := map[string]bool{}
	for _, w := range r.live.works {
		rendered[w.cluster] = true
	}
	named := slices.Collect(maps.Keys(r.scheduled))
	if r.live.policy != nil && r.live.template != nil && r.live.template.GetDeletionTimestamp() == nil {
		// What cannot be read names nobody, and where there is no template any more nothing will be rendered.
		if placement, _ := policyPlacement(r.live.policy); placement.ClusterAffinity != nil {
			named = append(named, placement.ClusterAffinity.ClusterNames...)
		}
	}
	for _, name := range named {
		_, known := fleet.Get(name)
		_, told := byCluster[name]
		switch c := (backends.ClusterObservation{Cluster: name, Applied: metav1.ConditionUnknown}); {
		case rendered[name], known && told:
		case known:
			byCluster[name] = c
		case r.suspends(name):
			delete(byCluster, name)
		default:
			c.Presence = backends.PresenceNamed
			byCluster[name] = c
		}
	}
}

// reader is what the reports of all clusters are read with.
type reader struct {
	query      backends.Query
	live       currentState
	suspension policyv1alpha1.Suspension
	observed   []string
	scheduled  map[string]int32
	// mayBeDivided is told once: a placement may name a thousand clusters.
	mayBeDivided bool
	// lost are the clusters that Karmada does not reach, with its message.
	lost map[string]string
}

func (r reader) read(w work) backends.ClusterObservation {
	c := backends.ClusterObservation{Cluster: w.cluster, Applied: metav1.ConditionUnknown}
	switch tooMuch := w.reportsTooMuch(len(r.live.works)); {
	case tooMuch > 0:
		c.Message = backends.ReportsTooMuch(tooMuch, backends.MostReported(len(r.live.works)))
	case w.reported() && w.Status.ManifestStatuses[0].Status != nil:
		var err error
		if c.Status, err = readStatus(w.Status.ManifestStatuses[0].Status.Raw); err != nil {
			c.Message = "its health is not known: the object's status there is not to be read"
		}
	}
	_, wanted := r.scheduled[w.cluster]
	final := w.terminating() || r.live.binding == nil || r.live.binding.DeletionTimestamp != nil // Karmada renders it no more
	removing := final || !wanted
	c.Held = w.suspended() && suspendsOn(r.suspension, w.cluster)
	c.Presence = backends.PresenceOf(removing, !removing && r.released(w) || final && w.wasReleased())
	if uid, brought := c.Status[lua.FieldUID].(string); brought {
		// It is of no kind's status.
		c.UID = types.UID(uid)
		delete(c.Status, lua.FieldUID)
	}
	if c.Held {
		c.Runs, _ = c.Status[lua.FieldRevision].(string)
	}
	manifest := w.manifest()
	if manifest != nil {
		c.Revision = manifest.GetAnnotations()[v1alpha1.AnnotationRevision]
		c.Asked = replicasOf(manifest, r.query.Workload.ReplicasPath)
	}
	if isProbe(manifest) || slices.Contains(probedOf(r.live.policy), w.cluster) {
		return r.readProbe(w, manifest, c)
	}
	if applied := w.applied(); applied != nil && !ofEarlierProbe(manifest, applied) {
		w.readApplied(applied, &c)
		if !removing && wasTakenUp(w, manifest, c.Status) {
			c.Applied = applied.Status
		}
	}
	if message, lost := r.lost[w.cluster]; lost {
		// Karmada keeps the conditions of a lost cluster as they were, also for manifests that came later.
		c.Applied, c.Message = metav1.ConditionUnknown, "the cluster cannot be reached: "+message
	}
	c.Current = c.Applied == metav1.ConditionTrue && len(c.Status) > 0 && r.isCurrent(w, manifest, c)
	c.Delivered = w.delivered(manifest, c)
	return c
}

// delivered is what a report proves: while a Work stays as it is, Karmada writes the member object only after somebody else has, and puts it
// back at once. That is two generations (karmada pkg/controllers/status, updateResource). The UID is brought by our interpreters alone. Where
// Karmada retains replicas, they are an autoscaler's.
func (w work) delivered(manifest *unstructured.Unstructured, c backends.ClusterObservation) *backends.Delivered {
	generation, _ := c.Status["generation"].(int64)
	if !c.Current || c.UID == "" || generation == 0 || c.Presence != backends.PresenceActive || c.Held ||
		manifest.GetLabels()[labelRetainReplicas] == "true" {
		return nil
	}
	if replicas, reported := c.Status["replicas"].(int64); c.Asked != nil && (!reported || replicas != int64(*c.Asked)) {
		return nil // it may have been written before replicas were divided anew, which leaves no other trace
	}
	return &backends.Delivered{Order: backends.Order{UID: w.UID, Generation: w.Generation}, Generation: generation}
}

// readApplied reads what Karmada says of a manifest that it could not apply.
func (w work) readApplied(applied *metav1.Condition, c *backends.ClusterObservation) {
	if applied.Status != metav1.ConditionTrue {
		c.Message = applied.Message
	}
	c.Conflict = applied.Status == metav1.ConditionFalse && strings.Contains(applied.Message, conflictMessage)
	if w.ofAnother() {
		c.Message = anotherMessage
	}
}

// wasTakenUp tells whether the Applied condition may speak about the manifest that the Work holds: the condition says
// nothing of when, and stays True from earlier manifests.
func wasTakenUp(w work, manifest *unstructured.Unstructured, status map[string]any) bool {
	if w.suspended() || !w.dispatched() || manifest == nil {
		return false
	}
	if applied := w.applied(); applied == nil || applied.Status != metav1.ConditionTrue {
		return true // it failed, with an earlier manifest or this one
	}
	annotations := manifest.GetAnnotations()
	if _, brought := status[lua.FieldRevision].(string); brought && !reflects(status, annotations[v1alpha1.AnnotationRevision]) {
		return false
	}
	reflected, reported := status["resourceTemplateGeneration"].(int64)
	held, err := strconv.ParseInt(annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey], 10, 64)
	return !reported || err != nil || reflected >= held
}

// reflects tells whether the member object bears the mark of that revision.
func reflects(status map[string]any, revision string) bool {
	return status[lua.FieldRevision] == revision
}

// isCurrent compares generations and replicas.
func (r reader) isCurrent(w work, manifest *unstructured.Unstructured, c backends.ClusterObservation) bool {
	b, live := r.live.binding, r.live
	if live.template == nil || b == nil || r.mayBeDivided || b.Spec.Resource.UID != live.template.GetUID() {
		return false
	}
	annotations := manifest.GetAnnotations()
	if !ofGeneration(annotations, live.template) ||
		annotations[v1alpha1.AnnotationRevision] != live.template.GetAnnotations()[v1alpha1.AnnotationRevision] {
		return false
	}
	// A change of replicas may be rendered once with the new generation and the numbers from before scheduling. Zero is
	// always an override of ours.
	if asked, found := r.scheduled[w.cluster]; c.Asked != nil && *c.Asked != 0 && (!found || asked != *c.Asked) {
		return false
	}
	if !observes(r.query.Workload) {
		return true // its controllers do not say what they have looked at
	}
	now, reported := c.Status["generation"].(int64)
	// Left out when it is zero: the member's controller has not looked yet.
	seen, _ := c.Status["observedGeneration"].(int64)
	return !reported || seen >= now
}

// ofGeneration tells whether a manifest was rendered from the newest generation of the template. Kinds without
// generations, such as ConfigMap, have no mark of them either (pkg/controllers/binding/common.go): the revision has to do.
func ofGeneration(annotations map[string]string, template *unstructured.Unstructured) bool {
	generation := template.GetGeneration()
	return generation == 0 || annotations[workv1alpha2.ResourceTemplateGenerationAnnotationKey] == strconv.FormatInt(generation, 10)
}

// observes tells whether the kind's status says which generation it speaks about.
func observes(w backends.Workload) bool {
	return slices.ContainsFunc(w.Feedback, func(f backends.FeedbackField) bool { return f.Path == ".status.observedGeneration" })
}

func replicasOf(obj *unstructured.Unstructured, path []string) *int32 {
	if len(path) == 0 {
		return nil
	}
	n, found, err := unstructured.NestedInt64(obj.Object, path...)
	if err != nil || !found {
		return nil
	}
	replicas := int32(n)
	return &replicas
}

// statusOf returns the member object's status as Karmada's interpreter reflected it; nil when it never was.
func statusOf(w work) map[string]any {
	if !w.reported() || w.Status.ManifestStatuses[0].Status == nil || w.reportsTooMuch(1) > 0 {
		return nil
	}
	status, _ := readStatus(w.Status.ManifestStatuses[0].Status.Raw)
	return status
}

func readStatus(raw []byte) (status map[string]any, err error) {
	if err := utiljson.Unmarshal(raw, &status); err != nil {
		return nil, err
	}
	return status, nil
}

// sizeField stands in a Work's status, in our cache, for a status that is too large to be kept; its value is its size. A status of any kind may
// have the field too: it is the first thing in ours, and all there is.
const sizeField = `{"fleetworkload.io/size":`

// boundReport drops the status of a member object that is too large. It is for what comes into the cache.
func boundReport(w *workv1alpha1.Work) {
	for i := range w.Status.ManifestStatuses {
		s := &w.Status.ManifestStatuses[i]
		if s.Status != nil && len(s.Status.Raw) > backends.MostReported(1) {
			s.Status = &runtime.RawExtension{Raw: fmt.Appendf(nil, "%s%d}", sizeField, len(s.Status.Raw))}
		}
	}
}

// reportsTooMuch is the size of a status that is not read, being one of so many; 0 when it is read.
func (w work) reportsTooMuch(clusters int) int {
	if !w.reported() || w.Status.ManifestStatuses[0].Status == nil {
		return 0
	}
	raw := w.Status.ManifestStatuses[0].Status.Raw
	if size, cut := bytes.CutPrefix(raw, []byte(sizeField)); cut {
		n, err := strconv.Atoi(strings.TrimSuffix(string(size), "}"))
		if err == nil && n > backends.MostReported(1) {
			return n
		}
	}
	if len(raw) > backends.MostReported(clusters) {
		return len(raw)
	}
	return 0
}

// removalMessage says which clusters a removal waits for, and why.
func removalMessage(works []work, fleet backends.Fleet) string {
	var waiting, lost []string
	for _, w := range works {
		if cluster, found := fleet.Get(w.cluster); found && cluster.Ready != metav1.ConditionTrue {
			lost = append(lost, w.cluster)
			continue
		}
		waiting = append(waiting, w.cluster)
	}
	slices.Sort(lost)
	slices.Sort(waiting)
	switch {
	case len(lost) > 0 && len(waiting) > 0:
		return fmt.Sprintf("Karmada to leave %s; %s cannot be reached", list(waiting), list(lost))
	case len(lost) > 0:
		return fmt.Sprintf("Karmada to leave %s, which cannot be reached", list(lost))
	default:
		return "Karmada to leave " + list(waiting)
	}
}
