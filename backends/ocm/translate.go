package ocm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// conditionFeedbackSynced is set by the agent on each manifest (ocm pkg/work/spoke/controllers/statuscontroller).
const conditionFeedbackSynced = "StatusFeedbackSynced"

// report is a workload's ManifestWork with the parts of its status taken apart.
type report struct {
	name    string
	cluster string
	uid     string
	// workUID is the ManifestWork's own.
	workUID    types.UID
	generation int64
	deleting   bool
	// wasReleased is true of one that is being deleted and was released before: deleting it changes nothing on the cluster.
	wasReleased bool
	// ours are the annotations that say what it was rendered as.
	ours marks
	// strategy is empty when the ManifestWork names none.
	strategy workv1.UpdateStrategyType
	forced   bool
	// deletion is empty when the ManifestWork says nothing about it.
	deletion workv1.DeletePropagationPolicyType
	// manifest is the target manifest that the hub holds.
	manifest map[string]any
	// applied and available are the whole work's, for its newest generation only; nil otherwise.
	applied, available *metav1.Condition
	// conditions and values are those of the one manifest.
	conditions []metav1.Condition
	// objectUID is the member object's, empty when the values are not from a look at the object; the other values are without it.
	objectUID types.UID
	values    map[string]any
	// tooMuch is the size of a status that is not read; 0 when it is.
	tooMuch int
}

// reported is what the status of a ManifestWork says. Many have one that is the same, and share it: it must not be changed.
type reported struct {
	conditions []metav1.Condition
	// manifest are the conditions of the one manifest, values what is fed back of its object but for the UID.
	manifest []metav1.Condition
	values   map[string]any
	uid      types.UID
}

func readStatus(status workv1.ManifestWorkStatus) reported {
	r := reported{conditions: status.Conditions}
	for _, m := range status.ResourceStatus.Manifests {
		if m.ResourceMeta.Ordinal == 0 {
			r.manifest = m.Conditions
			r.uid, r.values = feedbackValues(m.StatusFeedbacks.Values)
		}
	}
	return r
}

func readWork(obj *unstructured.Unstructured) (report, error) {
	status, err := statusOf(obj)
	if err != nil {
		return report{}, err
	}
	return reportOf(obj, readStatus(status)), nil
}

// reportOf is what a ManifestWork with that status comes to.
func reportOf(obj *unstructured.Unstructured, status reported) report {
	r := report{
		name: obj.GetName(), cluster: obj.GetNamespace(), uid: obj.GetLabels()[v1alpha1.LabelUID], workUID: obj.GetUID(), generation: obj.GetGeneration(),
		deleting: !obj.GetDeletionTimestamp().IsZero(), ours: marksOf(obj),
		manifest: firstManifest(obj), strategy: strategyOf(obj), forced: forced(configOf(obj)),
		conditions: status.manifest, objectUID: status.uid, values: status.values,
	}
	if dropped, _ := obj.Object["status"].(map[string]any); dropped != nil {
		size, _ := dropped[sizeField].(int64)
		r.tooMuch = int(size)
	}
	policy, _, _ := unstructured.NestedString(obj.Object, "spec", "deleteOption", "propagationPolicy")
	r.deletion = workv1.DeletePropagationPolicyType(policy)
	since := func(generation int64, conditionType string) *metav1.Condition {
		c := meta.FindStatusCondition(status.conditions, conditionType)
		if c == nil || c.ObservedGeneration < generation {
			return nil
		}
		return c
	}
	r.applied, r.available = since(obj.GetGeneration(), workv1.WorkApplied), since(obj.GetGeneration(), workv1.WorkAvailable)
	if r.deleting {
		// The deletion is a generation of its own (apiserver pkg/registry/generic/registry, markAsDeleting), which the agent does
		// not apply.
		last := r
		last.deleting = false
		last.applied = since(obj.GetGeneration()-1, workv1.WorkApplied)
		last.available = since(obj.GetGeneration()-1, workv1.WorkAvailable)
		r.wasReleased = last.state().released()
	}
	return r
}

// strategyOf is the strategy by which a ManifestWork of ours applies its one manifest.
func strategyOf(obj *unstructured.Unstructured) workv1.UpdateStrategyType {
	strategy, _, _ := unstructured.NestedString(configOf(obj), "updateStrategy", "type")
	return workv1.UpdateStrategyType(strategy)
}

// configOf is how a ManifestWork of ours has its one manifest applied, as it is in obj; nil when it does not say.
func configOf(obj *unstructured.Unstructured) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "manifestConfigs")
	configs, _ := value.([]any)
	if len(configs) == 0 {
		return nil
	}
	config, _ := configs[0].(map[string]any)
	return config
}

// firstManifest is the only manifest of a ManifestWork of ours, as it is in obj.
func firstManifest(obj *unstructured.Unstructured) map[string]any {
	manifests, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "workload", "manifests")
	list, _ := manifests.([]any)
	if len(list) == 0 {
		return nil
	}
	manifest, _ := list[0].(map[string]any)
	return manifest
}

func feedbackValues(values []workv1.FeedbackValue) (uid types.UID, read map[string]any) {
	if len(values) == 0 {
		return "", nil
	}
	read = make(map[string]any, len(values))
	for _, value := range values {
		switch f := value.Value; {
		case f.String != nil && value.Name == feedbackUID:
			uid = types.UID(*f.String)
		case f.Integer != nil:
			read[value.Name] = *f.Integer
		case f.String != nil:
			read[value.Name] = *f.String
		case f.Boolean != nil:
			read[value.Name] = *f.Boolean
		case f.JsonRaw != nil:
			var parsed any
			if utiljson.Unmarshal([]byte(*f.JsonRaw), &parsed) == nil {
				read[value.Name] = parsed
			}
		}
	}
	return uid, read
}

// state reads where the workload stands; see next.
func (r report) state() state {
	s := state{
		exists: true, deleting: r.deleting, wasReleased: r.wasReleased, held: r.ours.held != "",
		observe:  r.ours.observe != "",
		probe:    r.ours.observe == probeOfObserved,
		strategy: workv1.UpdateStrategyTypeUpdate, deletion: workv1.DeletePropagationPolicyTypeForeground,
		applied: metav1.ConditionUnknown, object: r.presence(), owned: true, forced: r.forced,
	}
	if r.strategy != "" {
		s.strategy = r.strategy
	}
	if r.deletion != "" {
		s.deletion = r.deletion
	}
	if r.applied != nil {
		s.applied = r.applied.Status
		s.appliedMessage, s.others = r.message(), r.others()
		s.notServed = r.applied.Status == metav1.ConditionFalse && kindNotServed(r.manifestMessage())
		s.conflict = r.applied.Status == metav1.ConditionFalse && s.strategy == workv1.UpdateStrategyTypeServerSideApply &&
			lostToOthers(r.manifestMessage())
	}
	runs, _ := r.values[feedbackRevision].(string)
	s.undelivered = runs != "" && runs != r.revision()
	s.untouched = r.generation == 1 && s.strategy == workv1.UpdateStrategyTypeReadOnly
	s.asked, s.again = askedOf(r.ours.removing), asksAgain(r.ours.removing)
	s.managed, s.marks = r.isManaged(), r.toTake()
	s.taking, s.leaving = len(takenBy(r.manifest)) > 0, r.ours.removing != ""
	s.elsewhere = r.uid == backends.SharedUID && r.isManaged()
	if _, reported := r.values[feedbackOwner]; !reported && r.object(metav1.ConditionTrue) && r.feedbackSynced() {
		s.owned = false
	}
	return s
}

// object tells whether the agent has looked for the object since the newest generation, with that outcome. Available
// of a manifest has no generation of its own; that of the work is stamped in the same pass
// (ocm pkg/work/spoke/conditions, AggregateManifestConditions).
func (r report) object(found metav1.ConditionStatus) bool {
	return r.applied != nil && r.available != nil &&
		meta.IsStatusConditionPresentAndEqual(r.conditions, workv1.ManifestAvailable, found)
}

func (r report) feedbackSynced() bool {
	return meta.IsStatusConditionTrue(r.conditions, conditionFeedbackSynced)
}

func (r report) presence() presence {
	switch {
	case r.object(metav1.ConditionFalse):
		return presenceMissing
	case !r.object(metav1.ConditionTrue) || r.objectUID == "":
		return presenceUnknown
	case r.uid != "" && r.values[feedbackWorkload] == r.uid:
		return presenceOurs
	default:
		return presenceForeign
	}
}

// observe translates the ManifestWork into one cluster's report.
func (r report) observe(workload backends.Workload) backends.ClusterObservation {
	s := r.state()
	o := backends.ClusterObservation{
		Cluster: r.cluster, Asked: r.replicas(workload), Revision: r.revision(), Applied: metav1.ConditionUnknown,
		Status: r.status(workload), Held: s.held, Marks: r.marks(),
		Presence: backends.PresenceOf(s.deleting || r.ours.removing != "" ||
			s.deletion == workv1.DeletePropagationPolicyTypeForeground, s.released()),
	}
	o.UID = r.objectUID
	if s.probe && !o.Removing() {
		o.Probe = r.probed(s)
	}
	switch {
	case s.probe:
		o.Message = "the agent is asked what runs there already"
	case s.observe:
		o.Message = "another backend may write the object"
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && s.object == presenceForeign && !o.Removing():
		o.Conflict, o.Applied, o.Message = true, metav1.ConditionFalse, conflictMessage
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && s.applied != metav1.ConditionFalse:
		// ReadOnly reports Applied without having written anything.
		o.Message = "the agent is asked whether the object exists already"
	case s.conflict && !s.held:
		o.Message = s.appliedMessage
	default:
		o.Applied = s.applied
		if s.applied == metav1.ConditionFalse {
			o.Message = s.appliedMessage
		}
	}
	if r.tooMuch > 0 {
		o.Message = backends.ReportsTooMuch(r.tooMuch, backends.MostReported(1))
	}
	o.Current = o.Applied == metav1.ConditionTrue && r.current(workload, o)
	o.Delivered = r.delivered(s, o)
	if o.Message == "" && o.Applied == metav1.ConditionTrue && !o.Current {
		o.Message = cmp.Or(r.staleMessage(), r.otherReplicas(o))
	}
	return o
}

// delivered is what the agent's word proves: it applies again every few minutes, without force, and an API server that refuses that after it
// had accepted the very same names who has changed which field. The member object's generation proves less: what no manager of the manifest
// has may be changed by anybody, and an annotation of a Deployment raises it.
func (r report) delivered(s state, o backends.ClusterObservation) *backends.Delivered {
	if s.strategy != workv1.UpdateStrategyTypeServerSideApply || s.forced || s.observe || o.UID == "" || o.Presence != backends.PresenceActive {
		return nil
	}
	d := &backends.Delivered{Order: backends.Order{UID: r.workUID, Generation: r.generation}}
	if s.conflict {
		d.Others = r.others()
	}
	if s.applied != metav1.ConditionTrue && d.Others == "" {
		return nil
	}
	return d
}

// probed is what a probe has brought. Where the kind is not served there can be no object.
func (r report) probed(s state) *backends.ProbeResult {
	found := s.object == presenceOurs || s.object == presenceForeign
	result := &backends.ProbeResult{
		Answered: s.notServed || s.applied == metav1.ConditionTrue && (s.object == presenceMissing || found && r.feedbackSynced()),
		Exists:   found,
	}
	if n, told := r.values[feedbackReplicas].(int64); told && found {
		replicas := int32(n)
		result.Replicas = &replicas
	}
	return result
}

// current tells whether the values speak about the manifest that the hub holds. The agent stamps the generation of the
// ManifestWork on conditions even when it has looked at the object before writing it, so only what comes from the object
// itself proves anything (ocm#1237).
func (r report) current(workload backends.Workload, o backends.ClusterObservation) bool {
	if !r.object(metav1.ConditionTrue) || !r.feedbackSynced() ||
		!meta.IsStatusConditionTrue(r.conditions, workv1.ManifestApplied) {
		return false
	}
	if revision, _ := r.values[feedbackRevision].(string); revision != o.Revision {
		return false
	}
	if o.Asked != nil && r.values[feedbackReplicas] != int64(*o.Asked) {
		return false
	}
	return r.settled(workload)
}

// settled tells whether the object's controller has seen it as it is.
func (r report) settled(workload backends.Workload) bool {
	// A kind has a field of this name when its controller reports what it has observed; kstatus reads it of others too, of
	// which many never have it.
	observes := slices.ContainsFunc(workload.Feedback, func(f backends.FeedbackField) bool {
		return f.Name == "observedGeneration"
	})
	return !observes || r.values[feedbackGeneration] == r.values[feedbackObservedGeneration]
}

// staleMessage is what the agent says of why there is no newer report.
func (r report) staleMessage() string {
	if c := meta.FindStatusCondition(r.conditions, conditionFeedbackSynced); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	if c := meta.FindStatusCondition(r.conditions, workv1.ManifestAvailable); c != nil && c.Status != metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// otherReplicas says that the object has other replicas than the manifest, which it otherwise agrees with.
func (r report) otherReplicas(o backends.ClusterObservation) string {
	runs, _ := r.values[feedbackRevision].(string)
	if n, told := r.values[feedbackReplicas].(int64); told && o.Asked != nil && n != int64(*o.Asked) && runs == o.Revision {
		return fmt.Sprintf("its object asks for %d replicas, not %d: the agent has yet to apply that, or somebody has changed it on the cluster", n, *o.Asked)
	}
	return ""
}

func (r report) revision() string {
	revision, _, _ := unstructured.NestedString(r.manifest, "metadata", "annotations", v1alpha1.AnnotationRevision)
	return revision
}

func (r report) replicas(workload backends.Workload) *int32 {
	if len(workload.ReplicasPath) == 0 {
		return nil
	}
	n, found, err := unstructured.NestedInt64(r.manifest, workload.ReplicasPath...)
	if !found || err != nil {
		return nil
	}
	replicas := int32(n)
	return &replicas
}

// status holds the kind's feedback fields; what the driver reads for itself is left out.
func (r report) status(workload backends.Workload) map[string]any {
	if r.values == nil {
		return nil
	}
	status := map[string]any{}
	for _, field := range workload.Feedback {
		if value, reported := r.values[field.Name]; reported {
			status[field.Name] = value
		}
	}
	return status
}

func (r report) manifestMessage() string {
	if c := meta.FindStatusCondition(r.conditions, workv1.ManifestApplied); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}

// message says why the manifest is not applied, with a remedy where there is one.
func (r report) message() string {
	text := r.manifestMessage()
	if text == "" && r.applied != nil {
		text = r.applied.Message
	}
	switch {
	case kindNotServed(text):
		return fmt.Sprintf("the cluster does not serve %s %s: install what serves it there%s", r.manifest["apiVersion"],
			r.manifest["kind"], installHint(fmt.Sprint(r.manifest["apiVersion"])))
	case lostToOthers(text) && r.ours.held != "":
		return "somebody has changed it on the cluster, where it is held: " + text
	case lostToOthers(text):
		return "somebody has changed it on the cluster, and it is put back: " + text
	case strings.Contains(text, "forbidden") && strings.Contains(text, "cannot "):
		return text + "; give the work agent's service account this right on the cluster"
	default:
		return text
	}
}

// kindNotServed recognizes the agent's words (ocm pkg/work/helper, BuildResourceMeta) and an API server's.
func kindNotServed(message string) bool {
	for _, words := range []string{
		"the server doesn't have a resource type", "no matches for kind", "the server could not find the requested resource",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

func installHint(apiVersion string) string {
	if strings.HasPrefix(apiVersion, "apps.kruise.io/") {
		return " (OpenKruise)"
	}
	return ""
}
