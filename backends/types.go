package backends

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Key identifies a FleetWorkload.
type Key struct {
	types.NamespacedName
	// UID is its identity: the same for one that is made anew under the same name by the same installation of the operator, and another
	// one for everybody else's (v1alpha1.Identity).
	UID types.UID
	// Installation is that of the operator, for a person; empty when it has no name. Drivers write it as an annotation next to the owner.
	Installation string
}

// Annotations tell a person whose an object on a backend is.
func (k Key) Annotations() map[string]string {
	annotations := map[string]string{v1alpha1.AnnotationOwner: k.String()}
	if k.Installation != "" {
		annotations[v1alpha1.AnnotationInstallation] = k.Installation
	}
	return annotations
}

// EarlierLife is the remedy for an object of a FleetWorkload of this name that another installation of the operator has made, or this one
// under another name; empty when the object is not of that kind. What runs is not to be deleted for it.
func (k Key) EarlierLife(annotations map[string]string) string {
	was := annotations[v1alpha1.AnnotationInstallation]
	if was == "" || was == k.Installation || annotations[v1alpha1.AnnotationOwner] != k.String() {
		return ""
	}
	return fmt.Sprintf("it belongs to installation %q of the operator, and this one is %q. If this management cluster replaces that one, which "+
		"is gone, set installation: %s in the operator's configuration, and nothing is touched; otherwise rename this FleetWorkload", was, k.Installation, was)
}

// Workload names the workload object and what a driver must know of its kind.
type Workload struct {
	GVK schema.GroupVersionKind
	// Resource is the plural of the kind, such as clonesets.
	Resource string
	// Namespace is empty for cluster-scoped kinds.
	Namespace string
	// NamespaceLabels are those with which the namespace is made where it is missing: its Pod Security levels on the management cluster.
	// A namespace that is there keeps what it has.
	NamespaceLabels map[string]string
	Name            string
	// ReplicasPath leads to the number of replicas, such as spec, replicas. It is empty for kinds without replicas.
	ReplicasPath []string
	// Feedback are the status fields to bring back. Drivers whose backend returns the whole status may ignore them.
	Feedback []FeedbackField
}

// FeedbackField is one scalar of an object.
type FeedbackField struct {
	// Name is the key under which the value appears in ClusterObservation.Status.
	Name string
	// Path is a JSONPath without braces, such as .status.readyReplicas.
	Path string
}

// Query is what a driver needs to find and read one workload.
type Query struct {
	Key      Key
	Workload Workload
	// Selectors choose clusters: those that any one of them chooses. A driver whose backend has no engine for it evaluates
	// them with Fleet.Select. Which of the chosen clusters run the workload is decided above the drivers.
	Selectors []v1alpha1.ClusterSelector
	// Options are spec.backendOptions; a driver reads its own part.
	Options *v1alpha1.BackendOptions
	// ServiceAccount is spec.serviceAccountName: an account of the workload's namespace, or empty.
	ServiceAccount string
	// Counterpart is what another backend has of the workload.
	Counterpart Counterpart
	// Drift is Correct when empty.
	Drift v1alpha1.DriftPolicy
	// Companions has Observe tell what the backend has of the workload's companions, for a plan (R13).
	Companions bool
}

// LeavesDrift tells whether what others have changed on members stays (R17). In a hand-over it does not: two backends are to have one
// manifest.
func (q Query) LeavesDrift() bool {
	return q.Drift == v1alpha1.DriftPolicyReport && q.Counterpart == CounterpartNone
}

// Counterpart is what another backend has of a workload. There is one only for the time of a hand-over.
type Counterpart string

const (
	// CounterpartNone means that no workload is handed over.
	CounterpartNone Counterpart = ""
	// CounterpartActive means that another backend has something of the workload too. Observe asks the backend's API server and no
	// cache: a word that is no longer true would make two owners.
	CounterpartActive Counterpart = "Active"
	// CounterpartGone means that the other backend had the workload and has nothing left. Delete takes the clusters that are only
	// observed for owned, since their member objects would be nobody's; Apply takes all marks that the other backend has left.
	CounterpartGone Counterpart = "Gone"
	// CounterpartHeir means that the other backend owns what is given up here and will take the marks away. Delete with Orphan leaves
	// the clusters that are only observed altogether alone, marks included. Without, it may write a member object once more to take
	// them off.
	CounterpartHeir Counterpart = "Heir"
)

// Alone tells whether the other backend of a hand-over has nothing left.
func (q Query) Alone() bool { return q.Counterpart == CounterpartGone }

// Desired is everything a driver needs to carry one workload out, already decided.
type Desired struct {
	Query
	// Template is the workload object for the fleet: names and marks set, replicas the number of spec.replicas.
	// Read-only.
	Template *unstructured.Unstructured
	// Revision is the value of the annotation fleetworkload.io/revision in every manifest.
	Revision string
	// Targets say what is to become of clusters, sorted by name. A cluster that is not listed stays as it is (R16). Empty means
	// that the selection is not known yet: the driver sets up the placement and leaves members as they are.
	Targets []Target
	// ConflictPolicy is never empty.
	ConflictPolicy v1alpha1.ConflictPolicy
	// Division is never empty.
	Division v1alpha1.DivisionType
	// Companions travel with the workload, sorted by kind and name. They come before it and go after it (R13).
	Companions []Companion
	// Prune says which companions go that are no longer listed.
	Prune Prune
}

// SharedUID is the value of the label fleetworkload.io/uid on a companion that several FleetWorkloads may ship.
const SharedUID = "shared"

// Companion is an object that travels with a workload: one of spec.companions, or something that its pods refer to.
type Companion struct {
	// Object is namespaced and has its marks: labels that say whose it is, and of one that is not shared the annotation
	// with its owner. Read-only.
	Object *unstructured.Unstructured
	// Resource is the plural of its kind.
	Resource string
	// Shared is true for what pods refer to: several FleetWorkloads may ship it, all with the same content.
	Shared bool
	// Clusters are the targets that need it, sorted. Nil means all of them.
	Clusters []string
	// Elsewhere are, of a shared one and by cluster, the FleetWorkloads that need it there from another backend, during a
	// hand-over. It may be taken over from that backend, and is given up and not deleted as long as one of them may need it.
	Elsewhere map[string][]types.UID
	// Foreign are the clusters on which the other backend of a hand-over uses a shared one as it is, since it is somebody
	// else's. Adopt does not take it over there.
	Foreign []string
}

// NeededOn tells whether the companion is for that target.
func (c Companion) NeededOn(cluster string) bool {
	return c.Clusters == nil || slices.Contains(c.Clusters, cluster)
}

// Prune says which companions go that are no longer listed.
type Prune string

const (
	// PruneNone leaves all of them as they are: pods may still need them.
	PruneNone Prune = ""
	// PruneOwn takes those away that are the FleetWorkload's own, and leaves those that are shared.
	PruneOwn Prune = "Own"
	// PruneAll takes all of them away.
	PruneAll Prune = "All"
)

// Takes tells whether a companion that is no longer listed goes.
func (p Prune) Takes(shared bool) bool { return p == PruneAll || p == PruneOwn && !shared }

// Mode says what is to become of one cluster's member object, and of its companions there. Hand-overs and cluster-by-cluster
// rollouts stand on it.
type Mode string

const (
	// ModeOwn writes the member object, and creates it when missing. The empty mode is ModeOwn.
	ModeOwn Mode = "Own"
	// ModeAdopt owns, and takes a running member object over whatever the conflict policy says.
	ModeAdopt Mode = "Adopt"
	// ModeHold leaves the member object as it is, whatever the manifest says, until the mode is another one (R11). Whose it is stays
	// as it was.
	ModeHold Mode = "Hold"
	// ModeObserve holds the manifest and reports, and neither writes nor removes the member object, also when it was
	// owned before (R14).
	ModeObserve Mode = "Observe"
	// ModeProbe asks the cluster whether the member object is there and how many replicas it is to run, and neither
	// writes nor creates nor removes it (R15). It is for clusters on which the workload is not owned.
	ModeProbe Mode = "Probe"
	// ModeRemove takes the workload off the cluster, the member object with it where it is owned (R16).
	ModeRemove Mode = "Remove"
)

// Owns tells whether the member object is, or becomes, the workload's own.
func (m Mode) Owns() bool { return m == "" || m == ModeOwn || m == ModeAdopt || m == ModeHold }

// Target is what is to become of one cluster.
type Target struct {
	Cluster string
	// Mode is Own when empty.
	Mode Mode
	// Reason is why the workload is taken off the cluster; empty unless the mode is Remove.
	Reason v1alpha1.RemovalReason
	// Replicas is nil for kinds without replicas.
	Replicas *int32
	// Manifest is the target manifest: template, replicas and overrides of this cluster. Read-only. It is nil when the mode is Remove.
	Manifest *unstructured.Unstructured
}

// Wanted are the targets that are to have the workload.
func (d Desired) Wanted() []Target {
	if !slices.ContainsFunc(d.Targets, Target.removes) {
		return d.Targets
	}
	return slices.DeleteFunc(slices.Clone(d.Targets), Target.removes)
}

// Removes tells whether the workload is to be taken off the cluster.
func (d Desired) Removes(cluster string) bool {
	return slices.ContainsFunc(d.Targets, func(t Target) bool { return t.Cluster == cluster && t.removes() })
}

func (t Target) removes() bool { return t.Mode == ModeRemove }

// Selection are the clusters of the backend that Query.Selectors choose.
type Selection struct {
	// Clusters are the chosen ones, sorted, whether or not they can be reached, or have taints.
	Clusters []string
	// Unsupported are chosen clusters that cannot run the kind, by the reason for a person. They are in Clusters too.
	Unsupported map[string]string
	// Serves are the versions in which chosen clusters serve the kind, sorted, of clusters of which that is known. Kinds
	// that come with Kubernetes are left out.
	Serves map[string][]string
	// Settled is true when the choice is for the selectors asked about, and complete.
	Settled bool
	// Message says why it is not settled or is empty, for a person.
	Message string
}

// Without is the reason in Selection.Unsupported of clusters that do not serve a kind.
func Without(gvk schema.GroupVersionKind) string {
	return "without " + gvk.GroupVersion().String() + " " + gvk.Kind
}

// NotServed is the error that a kind is not served, for a reason.
func NotServed(gvk schema.GroupVersionKind, why, remedy string) error {
	return &Error{
		Code: CodeKindNotServed, Field: "spec.template.kind", Value: gvk.GroupVersion().String() + " " + gvk.Kind, Message: why, Remedy: remedy,
	}
}

// Observation is what a backend reports about one workload.
type Observation struct {
	// Found is true when the backend has any object of this workload.
	Found bool
	// Selection is the choice of clusters for Query.Selectors.
	Selection Selection
	// Clusters are those that the backend has something of this workload for, sorted by name.
	Clusters []ClusterObservation
	// Earlier is why Apply would refuse the workload: the backend has nothing of it, and something of a FleetWorkload of this name that another
	// installation of the operator, or an earlier one, has made. It is nil when there is none.
	Earlier error
	// Notes say, for a person, what on the backend may make reports other than they should be, and what to do about it.
	// They do not change while the world does not.
	Notes []string
}

// Running tells of each cluster whether it has the workload and is to keep it.
func (o Observation) Running() map[string]bool {
	running := make(map[string]bool, len(o.Clusters))
	for _, c := range o.Clusters {
		running[c.Cluster] = !c.Removing() && (c.Probe == nil || c.Probe.Exists)
	}
	return running
}

// Replicas are what the clusters that have the workload were asked to run, by whomever.
func (o Observation) Replicas() map[string]int32 {
	replicas := make(map[string]int32, len(o.Clusters))
	for _, c := range o.Clusters {
		n := c.Asked
		if c.Probe != nil {
			n = c.Probe.Replicas
		}
		if !c.Removing() && n != nil {
			replicas[c.Cluster] = *n
		}
	}
	return replicas
}

// Of returns the report of one cluster.
func (o Observation) Of(cluster string) (ClusterObservation, bool) {
	i := slices.IndexFunc(o.Clusters, func(c ClusterObservation) bool { return c.Cluster == cluster })
	if i < 0 {
		return ClusterObservation{}, false
	}
	return o.Clusters[i], true
}

// ProbeResult is what a cluster has answered when it was asked (R15).
type ProbeResult struct {
	// Answered is false until the cluster has told.
	Answered bool
	// Exists is true when the cluster has a member object of that name, whosever it is.
	Exists bool
	// Replicas are what it is to run; nil when that could not be told.
	Replicas *int32
}

// ClusterObservation is one cluster's report, not yet interpreted.
type ClusterObservation struct {
	Cluster string
	// Asked is what the backend asks the cluster to run; nil when it does not say.
	Asked *int32
	// Revision of the manifest that the backend holds for the cluster; empty when unknown.
	Revision string
	// Runs is the revision that the member object bears, where that is reported and may be another one than the driver holds (R11).
	Runs string
	// Applied is Unknown until the backend has said so for the manifest it holds.
	Applied metav1.ConditionStatus
	// Conflict is true when the cluster has a foreign object of that name and it was left alone.
	Conflict bool
	// Current is true when Status speaks about Revision and about the member object's newest generation.
	Current bool
	// Status holds the feedback fields by name; nil when nothing was reported.
	Status map[string]any
	// Delivered is what the report proves of what others do with the member object; nil when it proves nothing.
	Delivered *Delivered
	// CompanionsDelivered are what the report proves of what others do with companions, by their kind and name: nil where it proves nothing of
	// one. It has none of those of which the driver can never tell.
	CompanionsDelivered map[string]*Delivered
	// Left is what others have changed there and the backend leaves as it is; nil when nothing is. Applied is True then: it had the manifest.
	Left *Left
	// Presence is how the backend has the workload there.
	Presence Presence
	// Held is true while writes to the member object are held back.
	Held bool
	// Probe is nil but on a cluster that is only asked (R15).
	Probe *ProbeResult
	// UID of the member object; empty when it is not reported.
	UID types.UID
	// Marks are the labels and annotations on the member object, sorted, that another backend has put there and that are on
	// their way out. They are reported of targets that adopt, by drivers to which backends leave any (R14).
	Marks []string
	// Serves are the FleetWorkloads for which the backend goes on with shared companions of this one, by the companion's kind
	// and name: it is Released all the same (R14).
	Serves map[string][]types.UID
	// Foreign are the shared companions, by kind and name, that are somebody else's there and used as they are.
	Foreign []string
	// Companions are those that the backend has for the workload there, sorted by kind and name. They are told when the query asks for it.
	Companions []CompanionObservation
	// Message is the backend's own word, for a person.
	Message string
}

// CompanionObservation is what a backend has of one companion on one cluster.
type CompanionObservation struct {
	// Object is what the backend delivers, with its marks. Read-only.
	Object *unstructured.Unstructured
	// Shared is true for what several FleetWorkloads may ship.
	Shared bool
	// Others is true when other FleetWorkloads use it on this backend: it stays when this one does without it.
	Others bool
	// Elsewhere is true when a FleetWorkload that is no user may need it: it is given up and not deleted.
	Elsewhere bool
	// Theirs is whose object is in its place.
	Theirs Theirs
	// Removing is true when it is on its way out.
	Removing bool
}

// Theirs says that an object on a member is not the backend's to write, and whose it is.
type Theirs string

const (
	// TheirsNot means that it is the backend's to write, or that nothing else is known.
	TheirsNot Theirs = ""
	// TheirsForeign means that it is somebody else's.
	TheirsForeign Theirs = "Foreign"
	// TheirsBackend means that another backend delivers it.
	TheirsBackend Theirs = "Backend"
)

// SortCompanions puts companions of one cluster in order.
func SortCompanions(list []CompanionObservation) {
	slices.SortFunc(list, func(a, b CompanionObservation) int {
		return cmp.Or(cmp.Compare(a.Object.GetKind(), b.Object.GetKind()), cmp.Compare(a.Object.GetName(), b.Object.GetName()),
			cmp.Compare(a.Object.GetAPIVersion(), b.Object.GetAPIVersion()))
	})
}

// Left is what others have changed on a member object and a driver leaves as it is (R17).
type Left struct {
	// Others are who has changed what, in the words of the cluster's API server.
	Others string
	// Replicas are those that the object asks for now; nil when that is not reported, or the kind has none.
	Replicas *int32
}

// Delivered is what a report proves of what others do with a member object that the backend writes. Where Others is empty, the object has all
// that the backend delivers. It takes two reports of one order to tell that somebody else has changed it: one could be of the first write.
type Delivered struct {
	// Order is another one as soon as the backend is to write the object in any other way.
	Order Order
	// Generation is the member object's, of a backend that writes it again only after somebody else has; 0 of others.
	Generation int64
	// Others are who has changed what, in the words of the cluster's API server; empty when it has refused nothing for that.
	Others string
}

// Order is what a backend was told to write on one cluster: an object of its own, in one generation.
type Order struct {
	UID        types.UID
	Generation int64
}

// Presence is how a backend has a workload on a cluster.
type Presence string

const (
	// PresenceActive means that it may write the member object, or has not confirmed yet that it does not.
	PresenceActive Presence = ""
	// PresenceReleased means confirmed: the backend neither writes the member object nor would remove it (R14).
	PresenceReleased Presence = "Released"
	// PresenceRemoving means that the workload is being taken off the cluster.
	PresenceRemoving Presence = "Removing"
	// PresenceLeaving means that what was released is being taken away, and stays no danger to another owner meanwhile (R14).
	PresenceLeaving Presence = "Leaving"
	// PresenceAbsent means that the backend has nothing there. It is not found in an Observation.
	PresenceAbsent Presence = "Absent"
	// PresenceUnknown means that the backend does not know the cluster, and has nothing there. It is not found in an Observation.
	PresenceUnknown Presence = "Unknown"
	// PresenceNamed means that the backend does not know the cluster and has nothing there, and that its placement still names it: were
	// the cluster back, the backend would write there. It is told with a counterpart alone, and ends with the next Apply (R14).
	PresenceNamed Presence = "Named"
)

// PresenceOf is the presence of something that is there.
func PresenceOf(removing, released bool) Presence {
	switch {
	case removing && released:
		return PresenceLeaving
	case removing:
		return PresenceRemoving
	case released:
		return PresenceReleased
	default:
		return PresenceActive
	}
}

// Removing tells whether the workload is being taken away, released before or not.
func (p Presence) Removing() bool { return p == PresenceRemoving || p == PresenceLeaving }

// Released tells whether it is confirmed that the backend neither writes the member object nor would remove it.
func (p Presence) Released() bool { return p == PresenceReleased || p == PresenceLeaving }

// Removing tells whether the workload is being taken off the cluster.
func (c ClusterObservation) Removing() bool { return c.Presence.Removing() }

// Released tells whether it is confirmed that the backend neither writes the member object nor would remove it.
func (c ClusterObservation) Released() bool { return c.Presence.Released() }

const (
	// mostReported is how many bytes of an object's status, as JSON, are read of one cluster, and mostReportedOfAll of all clusters of a
	// FleetWorkload together: in memory it is five to ten times as much. A member's controllers write what they like there.
	mostReported      = 64 << 10
	mostReportedOfAll = 8 << 20
)

// MostReported is how many bytes of a status are read of each of so many clusters.
func MostReported(clusters int) int {
	return min(mostReported, mostReportedOfAll/max(clusters, 1))
}

// ReportsTooMuch says that a status is not read.
func ReportsTooMuch(size, most int) string {
	return fmt.Sprintf("its health is not known: the object's status there takes %d KiB, and %d KiB are read; have its controller write less into it",
		(size+1<<10-1)>>10, most>>10)
}
