package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Health is what the operator makes of a workload on one cluster.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Suspended;Unknown
type Health string

const (
	// HealthHealthy means that the workload runs as asked.
	HealthHealthy Health = "Healthy"
	// HealthProgressing means that it is on the way there.
	HealthProgressing Health = "Progressing"
	// HealthDegraded means that it is stuck or failed.
	HealthDegraded Health = "Degraded"
	// HealthSuspended means that it waits because somebody paused it.
	HealthSuspended Health = "Suspended"
	// HealthUnknown means that there is no current report.
	HealthUnknown Health = "Unknown"
)

// FleetWorkloadStatus is the observed state of one workload on the fleet.
type FleetWorkloadStatus struct {
	// conditions tell the state: Ready, Reconciling and Stalled as kstatus reads them, then Scheduled, Applied, Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation that this status speaks about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// backend is the name of the backend that owns the member objects now.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Backend string `json:"backend,omitempty"`

	// workload is the object that this FleetWorkload carries. It is recorded before anything is sent, and does not change.
	// +optional
	Workload *WorkloadReference `json:"workload,omitempty"`

	// identity is by what backends know this FleetWorkload: the label fleetworkload.io/uid of their objects. It is the same again for a
	// FleetWorkload that is made anew, such as on a management cluster that was rebuilt.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Identity string `json:"identity,omitempty"`

	// placement is what was decided when the spec was last carried out. What goes without being asked for is measured by it.
	// +optional
	Placement *PlacementRecord `json:"placement,omitempty"`

	// revision is the hash of what decides the target manifests, replicas left out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`

	// specRevision is the version of what is shipped that was kept last. Older ones stand beside it, see spec.revisionHistoryLimit.
	// +optional
	SpecRevision *SpecRevision `json:"specRevision,omitempty"`

	// change tells what a change of the spec comes to, and whether it was approved. It is there with spec.approval Manual.
	// +optional
	Change *ChangeStatus `json:"change,omitempty"`

	// scale is what the scale subresource shows, and a HorizontalPodAutoscaler reads.
	// +optional
	Scale *ScaleStatus `json:"scale,omitempty"`

	// ready shows readyReplicas and desiredReplicas for people, such as 10/12.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Ready string `json:"ready,omitempty"`

	// clustersReady shows healthy and chosen clusters for people, such as 3/3.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	ClustersReady string `json:"clustersReady,omitempty"`

	// desiredReplicas is what all clusters together were asked to run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// replicas counts the pods the clusters report. Clusters that have not reported are not in it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas counts the ready pods the clusters report.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// updatedReplicas counts the pods of the newest revision the clusters report.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedReplicas *int32 `json:"updatedReplicas,omitempty"`

	// availableReplicas counts the available pods the clusters report.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// clusterSummary counts clusters.
	// +optional
	ClusterSummary *ClusterSummary `json:"clusterSummary,omitempty"`

	// clusters has a row for each cluster, those that need attention first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// truncated is how many clusters have no row because the list is full, or because the status would be too long. The counts are complete all the same, and placement and
	// migration tell of every cluster.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Truncated *int32 `json:"truncated,omitempty"`

	// proposal says what the spec in the annotation fleetworkload.io/propose would come to. It goes with the annotation.
	// +optional
	Proposal *ProposalStatus `json:"proposal,omitempty"`

	// migration tells how far a change of backend has come.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	// packed is there when placement.clusters, migration.clusters and migration.history[0].clusters together are too long to stand
	// here as they are. They are in it instead, whole: base64 of gzip of JSON in which a text stands once. kubectl fw status shows them.
	// +optional
	// +kubebuilder:validation:MaxLength=1048576
	Packed string `json:"packed,omitempty"`
}

// SpecRevision is a version of what a FleetWorkload ships: template, companions, dependencies and overrides.
type SpecRevision struct {
	// name of the ControllerRevision that keeps it, in the FleetWorkload's namespace. It is recorded once that is there.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// number of the version: each newer one has a greater one, and one that is returned to gets another.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number *int64 `json:"number,omitempty"`

	// older is how many older versions are kept.
	// +required
	// +kubebuilder:validation:Minimum=0
	Older *int32 `json:"older,omitempty"`

	// observedGeneration is metadata.generation of the spec that was compared with this version last.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// ChangeStatus is how a change of the spec stands that a person has to approve.
// +kubebuilder:validation:MinProperties=1
type ChangeStatus struct {
	// approvedHash is the hash of the fields of the spec that wait for approval, as they were approved last.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ApprovedHash string `json:"approvedHash,omitempty"`

	// approved is the value of the annotation fleetworkload.io/approve-change with which approvedHash was approved. It is empty where that
	// needed no approval. The annotation may keep it for as long as nobody writes another one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Approved string `json:"approved,omitempty"`

	// approval is the value that the annotation fleetworkload.io/approve-change must have for the change to be carried out. It stands for the
	// spec and for what that comes to on each cluster: when one of them changes, approval does, too. It is empty when nothing waits, and
	// when nobody can tell yet what the change comes to.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Approval string `json:"approval,omitempty"`

	// expiresAt is until when approval is good. Another one takes its place then.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// superseded is what could be approved last, before approval took its place. Whoever approves that one learns what has changed since.
	// +optional
	Superseded *SupersededChange `json:"superseded,omitempty"`

	// message says in a line what the change comes to, or why nobody can tell.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// clusters are those on which the change does something.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Clusters []PlannedCluster `json:"clusters,omitempty"`

	// truncated is how many more clusters there are than clusters lists. All of them are part of what approval stands for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Truncated *int32 `json:"truncated,omitempty"`

	// companions are the objects that travel with the workload, of the FleetWorkload's namespace: those with which the change does something,
	// and those that are left alone for a reason. One that becomes something else on other clusters is listed again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Companions []PlannedCompanion `json:"companions,omitempty"`

	// companionsTruncated is how many more entries there are than companions lists. All of them are part of what approval stands for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CompanionsTruncated *int32 `json:"companionsTruncated,omitempty"`
}

// ProposalStatus is what a spec would come to that somebody has only asked about.
type ProposalStatus struct {
	// hash is that of the annotation's value, by which who asks knows the answer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Hash string `json:"hash,omitempty"`

	// answeredAt is when the operator looked. It does not look again at the same proposal.
	// +required
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`

	// refused says why the spec would not be carried out; then there is nothing else.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Refused string `json:"refused,omitempty"`

	// message says in a line what it comes to.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// clusters are those on which it does something.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Clusters []PlannedCluster `json:"clusters,omitempty"`

	// truncated is how many more clusters there are than clusters lists.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Truncated *int32 `json:"truncated,omitempty"`

	// companions are the objects that travel with the workload, as in status.change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Companions []PlannedCompanion `json:"companions,omitempty"`

	// companionsTruncated is how many more entries there are than companions lists.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CompanionsTruncated *int32 `json:"companionsTruncated,omitempty"`
}

// SupersededChange is a change that can no longer be approved as it was shown.
type SupersededChange struct {
	// approval is the value that stood for it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Approval string `json:"approval,omitempty"`

	// reason is why another one took its place.
	// +required
	Reason SupersededReason `json:"reason,omitempty"`

	// message says in a line what it came to.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// SupersededReason is why what could be approved can no longer be.
// +kubebuilder:validation:Enum=SpecEdited;OutcomeChanged;Expired
type SupersededReason string

// Reasons why what could be approved can no longer be.
const (
	// SupersededSpecEdited means that somebody has edited the spec since.
	SupersededSpecEdited SupersededReason = "SpecEdited"
	// SupersededOutcomeChanged means that the spec is the same, and comes to something else on clusters or for companions.
	SupersededOutcomeChanged SupersededReason = "OutcomeChanged"
	// SupersededExpired means that nobody approved it in time.
	SupersededExpired SupersededReason = "Expired"
)

// PlannedCompanion is what a change comes to for one object that travels with the workload.
type PlannedCompanion struct {
	WorkloadReference `json:",inline"`

	// action is what is done with it.
	// +required
	Action CompanionAction `json:"action,omitempty"`

	// reason is why that is done, where it does not follow from spec.companions or from what the pods refer to.
	// +optional
	Reason CompanionReason `json:"reason,omitempty"`

	// clusters are some of those where it is done, by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`

	// truncated is how many more clusters there are than clusters lists.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Truncated *int32 `json:"truncated,omitempty"`

	// changes are what of the object becomes different, a field each. What a Secret holds is never told, nor are the values of other objects that
	// the pods refer to: who may read a FleetWorkload need not be allowed to read them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Changes []string `json:"changes,omitempty"`

	// changesTruncated is how many more fields there are than changes lists.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ChangesTruncated *int32 `json:"changesTruncated,omitempty"`
}

// CompanionAction is what a change does with an object that travels with the workload.
// +kubebuilder:validation:Enum=Create;CreateOrAdopt;Adopt;Update;Delete;GiveUp;Leave;Hold;Move
type CompanionAction string

const (
	// CompanionCreate means: the clusters get the object.
	CompanionCreate CompanionAction = "Create"
	// CompanionCreateOrAdopt means: the clusters get the object, and one of its name that is there already is taken over.
	CompanionCreateOrAdopt CompanionAction = "CreateOrAdopt"
	// CompanionAdopt means: somebody else's object of its name is taken over.
	CompanionAdopt CompanionAction = "Adopt"
	// CompanionUpdate means: the object becomes another one.
	CompanionUpdate CompanionAction = "Update"
	// CompanionDelete means: the object is deleted.
	CompanionDelete CompanionAction = "Delete"
	// CompanionGiveUp means: the object stays on the clusters, and belongs to nobody.
	CompanionGiveUp CompanionAction = "GiveUp"
	// CompanionLeave means: the object stays as it is, because of whose it is.
	CompanionLeave CompanionAction = "Leave"
	// CompanionHold means: the object would become another one, and something stands against that.
	CompanionHold CompanionAction = "Hold"
	// CompanionMove means: the object changes hands, to another backend.
	CompanionMove CompanionAction = "Move"
)

// CompanionReason is why something is done with an object that travels with the workload, or why nothing is.
// +kubebuilder:validation:Enum=NotListed;WorkloadRemoved;KeepsData;SomebodyElses;BlocksWorkload;OtherBackends;UsedByOthers;MayBeNeeded;DependenciesIgnored;Missing;ClusterPaused
type CompanionReason string

const (
	// CompanionNotListed means: neither spec.companions nor the pods name it any more. It goes after the change that does without it: what pods
	// refer to, or what they may still refer to, goes once the newest revision is healthy everywhere.
	CompanionNotListed CompanionReason = "NotListed"
	// CompanionWorkloadRemoved means: the workload is taken off the cluster, and the object after it.
	CompanionWorkloadRemoved CompanionReason = "WorkloadRemoved"
	// CompanionKeepsData means: it would go, and is a PersistentVolumeClaim, which is never deleted.
	CompanionKeepsData CompanionReason = "KeepsData"
	// CompanionSomebodyElses means: the cluster has somebody else's object of that name. It is used as it is.
	CompanionSomebodyElses CompanionReason = "SomebodyElses"
	// CompanionBlocksWorkload means: the cluster has somebody else's object of that name, which keeps the workload from starting there.
	CompanionBlocksWorkload CompanionReason = "BlocksWorkload"
	// CompanionOtherBackends means: another backend delivers it. It is used as it is.
	CompanionOtherBackends CompanionReason = "OtherBackends"
	// CompanionUsedByOthers means: this FleetWorkload no longer needs it, and others do.
	CompanionUsedByOthers CompanionReason = "UsedByOthers"
	// CompanionMayBeNeeded means: it would go, and a FleetWorkload may need it that was moved, or given up.
	CompanionMayBeNeeded CompanionReason = "MayBeNeeded"
	// CompanionDependenciesIgnored means: what pods refer to is no longer sent along, and what was sent stays.
	CompanionDependenciesIgnored CompanionReason = "DependenciesIgnored"
	// CompanionMissing means: the pods refer to it, and the management cluster does not have it. Nothing is started or changed on the clusters.
	CompanionMissing CompanionReason = "Missing"
	// CompanionClusterPaused means: spec.placement.paused leaves the cluster as it is.
	CompanionClusterPaused CompanionReason = "ClusterPaused"
)

// PlannedCluster is what a change comes to on one cluster.
type PlannedCluster struct {
	// name is the cluster's, as its backend has it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// action is what is done there.
	// +required
	Action PlannedAction `json:"action,omitempty"`

	// replicas is what the cluster is to run; absent for kinds without replicas, and where the workload is removed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// replicasBefore is what the cluster was asked to run so far; absent for kinds without replicas, and where there was nothing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReplicasBefore *int32 `json:"replicasBefore,omitempty"`

	// reason is why the workload is removed.
	// +optional
	Reason RemovalReason `json:"reason,omitempty"`
}

// PlannedAction is what a change does on a cluster.
// +kubebuilder:validation:Enum=Create;CreateOrAdopt;Adopt;Update;Scale;Remove;Move
type PlannedAction string

const (
	// PlannedCreate means: the cluster gets the workload.
	PlannedCreate PlannedAction = "Create"
	// PlannedCreateOrAdopt means: the cluster gets the workload, and an object of its name that is there already is taken over.
	PlannedCreateOrAdopt PlannedAction = "CreateOrAdopt"
	// PlannedAdopt means: the object that the cluster has already is taken over.
	PlannedAdopt PlannedAction = "Adopt"
	// PlannedUpdate means: the cluster gets another manifest.
	PlannedUpdate PlannedAction = "Update"
	// PlannedScale means: the cluster gets another number of replicas, and nothing else changes.
	PlannedScale PlannedAction = "Scale"
	// PlannedRemove means: the workload is taken off the cluster.
	PlannedRemove PlannedAction = "Remove"
	// PlannedMove means: the workload changes hands there, to another backend, without touching a pod.
	PlannedMove PlannedAction = "Move"
)

// ScaleStatus speaks of replicas in the unit of spec.replicas.
// +kubebuilder:validation:MinProperties=1
type ScaleStatus struct {
	// replicas is how many pods there are, as the clusters report: of all clusters when division.type is Divided, and of one cluster on
	// average, rounded up, when it is Duplicated. Clusters that have not reported do not count, nor then those with a number of their own in
	// spec.overrides, as long as there are others.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// selector is the pods' label selector.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`
}

// PlacementRecord is what was decided about clusters and replicas when the spec was last carried out.
type PlacementRecord struct {
	// group is the group of spec.placement.groups that runs the workload.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Group string `json:"group,omitempty"`

	// clustersHash is the hash of what in spec.placement decides which clusters are chosen. While it stays the same, clusters that
	// fall out of the placement did so without being asked to. It is empty while the workload moves when the record was lost meanwhile and made
	// anew from what runs.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ClustersHash string `json:"clustersHash,omitempty"`

	// divisionHash is the hash of spec.placement.division.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DivisionHash string `json:"divisionHash,omitempty"`

	// replicas is the number that was asked for; 1 for kinds without.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// clusters are what was decided for each cluster, and what that is measured by. Those of large fleets are in status.packed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	Clusters []ClusterShare `json:"clusters,omitempty"`

	// companions are the objects of spec.companions that clusters may have, with those that are listed no more and that pods may still
	// need. They are recorded before they are sent: no other FleetWorkload may then have them there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Companions []WorkloadReference `json:"companions,omitempty"`

	// confirmedRemovals is how many removals a person has confirmed. A confirmation is good for one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConfirmedRemovals *int32 `json:"confirmedRemovals,omitempty"`
}

// ClusterShare is what was decided for one cluster.
type ClusterShare struct {
	// name is the cluster's, as its backend has it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// replicas is what the cluster is to run; 1 for kinds without. It is recorded before anything is sent, and absent when the workload
	// is not to be on the cluster.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// baseline is what the cluster was to run when the spec was last carried out. Of a cluster that joined later it is what it has
	// come to run, and one that has left without being asked to keeps it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Baseline *int32 `json:"baseline,omitempty"`

	// state is Joining from when the cluster is given replicas until it reports that it runs them, and absent otherwise. Until then the
	// baseline is what it has come to run so far, or what it ran before it had left.
	// +optional
	State ClusterShareState `json:"state,omitempty"`

	// pendingBaseline is what the baseline of a Joining cluster becomes, where that is less than its replicas: the others it has taken over
	// from clusters that have left without being asked to, and their baselines count them already.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PendingBaseline *int32 `json:"pendingBaseline,omitempty"`

	// conflictPolicy is Adopt once the operator may take over an object that the cluster has already: it has asked the cluster what it runs.
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// removal is why the workload is taken off the cluster. It is recorded before anything is removed, and absent once nothing of the
	// workload is left there.
	// +optional
	Removal RemovalReason `json:"removal,omitempty"`

	// deselectedAt is since when the backend no longer chooses the cluster, although spec.placement asks for no other clusters. The
	// workload is taken off it half a minute later at the earliest.
	// +optional
	DeselectedAt *metav1.Time `json:"deselectedAt,omitempty"`

	// removalApprovedAt is when a person has approved a change of the spec that takes the workload off the cluster (spec.approval). It is
	// absent once the change was carried out.
	// +optional
	RemovalApprovedAt *metav1.Time `json:"removalApprovedAt,omitempty"`
}

// ClusterShareState is how far a cluster has come with what it was given.
// +kubebuilder:validation:Enum=Joining
type ClusterShareState string

const (
	// ClusterShareJoining means: the cluster was given replicas, and has not reported yet that it runs them.
	ClusterShareJoining ClusterShareState = "Joining"
)

// RemovalReason is why a workload is taken off a cluster.
// +kubebuilder:validation:Enum=SpecChanged;Deselected;ClusterLeft;NoReplicas;FailedOver;Confirmed
type RemovalReason string

const (
	// RemovalSpecChanged means: spec.placement was edited and does not choose the cluster any more.
	RemovalSpecChanged RemovalReason = "SpecChanged"
	// RemovalDeselected means: the cluster has changed, and spec.placement does not choose it any more.
	RemovalDeselected RemovalReason = "Deselected"
	// RemovalClusterLeft means: the backend does not know the cluster any more.
	RemovalClusterLeft RemovalReason = "ClusterLeft"
	// RemovalNoReplicas means: the cluster gets none of the replicas that are divided.
	RemovalNoReplicas RemovalReason = "NoReplicas"
	// RemovalFailedOver means: the cluster is lost or tainted, and other clusters have taken its place.
	RemovalFailedOver RemovalReason = "FailedOver"
	// RemovalConfirmed means: a person has confirmed a removal that was held.
	RemovalConfirmed RemovalReason = "Confirmed"
)

// WorkloadReference names the object that a FleetWorkload carries.
type WorkloadReference struct {
	// apiVersion of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// ClusterSummary counts clusters.
type ClusterSummary struct {
	// total is how many clusters this FleetWorkload has to do with: chosen ones, and those it is leaving.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`

	// scheduled is how many were chosen to run the workload.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Scheduled *int32 `json:"scheduled,omitempty"`

	// applied is how many have the target manifest.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Applied *int32 `json:"applied,omitempty"`

	// healthy is how many are healthy.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Healthy *int32 `json:"healthy,omitempty"`

	// stale is how many are not reachable, so that their numbers are the last known ones.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Stale *int32 `json:"stale,omitempty"`

	// upToDate is how many report for the current revision and generation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpToDate *int32 `json:"upToDate,omitempty"`
}

// ClusterStatus is one cluster's row.
type ClusterStatus struct {
	// name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// desired is how many replicas the cluster was asked to run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Desired *int32 `json:"desired,omitempty"`

	// replicas it reports; absent when it has not reported.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// ready replicas it reports.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready *int32 `json:"ready,omitempty"`

	// updated replicas it reports.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Updated *int32 `json:"updated,omitempty"`

	// available replicas it reports.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Available *int32 `json:"available,omitempty"`

	// revision that was handed to the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`

	// applied is True when the cluster has the target manifest, False when it refused it, Unknown before it said so.
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	Applied metav1.ConditionStatus `json:"applied,omitempty"`

	// health of the workload on the cluster.
	// +optional
	Health Health `json:"health,omitempty"`

	// stale is True when the cluster cannot be reached, so that its numbers are the last known ones.
	// +optional
	// +kubebuilder:validation:Enum=True;False
	Stale metav1.ConditionStatus `json:"stale,omitempty"`

	// givenUp is True when the cluster is lost and others have taken its place (spec.placement.failover). Its numbers, and
	// what becomes of it, do not count any more. Absent otherwise.
	// +optional
	// +kubebuilder:validation:Enum=True
	GivenUp metav1.ConditionStatus `json:"givenUp,omitempty"`

	// paused is True when spec.placement.paused chooses the cluster, so that it keeps what it runs. revision is then the one that it
	// runs, and desired the number of replicas that it keeps. Absent otherwise.
	// +optional
	// +kubebuilder:validation:Enum=True
	Paused metav1.ConditionStatus `json:"paused,omitempty"`

	// message says why, for a person. It ends with "..." when it is longer than there is room for: the conditions name the first
	// clusters with more of it, and the backend's own object of the cluster has the whole.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when applied, health or stale changed last.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}
