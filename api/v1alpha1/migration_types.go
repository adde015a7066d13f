package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// FailureAction says what a migration does when a wave fails.
// +kubebuilder:validation:Enum=Rollback;Pause
type FailureAction string

const (
	// FailureActionRollback hands the clusters of the failed wave back.
	FailureActionRollback FailureAction = "Rollback"
	// FailureActionPause leaves everything as it is and waits for a person.
	FailureActionPause FailureAction = "Pause"
)

// ApprovalPolicy says who lets a wave, or a change of the spec, go on.
// +kubebuilder:validation:Enum=Automatic;Manual
type ApprovalPolicy string

const (
	// ApprovalPolicyAutomatic goes on by itself; a wave does after its soak time.
	ApprovalPolicyAutomatic ApprovalPolicy = "Automatic"
	// ApprovalPolicyManual waits for a person.
	ApprovalPolicyManual ApprovalPolicy = "Manual"
)

// MigrationStrategy says how a change of backend proceeds.
type MigrationStrategy struct {
	// waves are the steps, in the order in which they stand, counted from 1; clusters that no wave selects form the last one. When absent,
	// one wave of all.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Waves []MigrationWave `json:"waves,omitempty"`

	// timeout is how long a wave may take, soak time not counted. When absent: 10m.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// onFailure says what happens when a wave fails. When absent: Rollback.
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`
}

// MigrationWave is one step of a migration.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.size)",message="set exactly one of clusters and size"
type MigrationWave struct {
	// name of the wave, by which server-side apply and kustomize find it. Waves have numbers by where they stand,
	// whatever their names.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// clusters selects the clusters of the wave.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`

	// size is how many of the remaining clusters the wave takes: a number, or a percentage of all such as 10%, rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^([1-9][0-9]?|100)%$')",message="must be a number of clusters from 1, such as 3, or a percentage such as 10%"
	Size *intstr.IntOrString `json:"size,omitempty"`

	// soak is how long the wave must stay healthy before the next one. When absent: no time.
	// +optional
	Soak *Duration `json:"soak,omitempty"`

	// approval says who lets the next wave go on. When absent: Automatic.
	// +optional
	Approval ApprovalPolicy `json:"approval,omitempty"`
}

// MigrationPhase is where a migration, or a cluster within it, stands.
// +kubebuilder:validation:Enum=Validating;Shadowing;HandingOver;Verifying;Releasing;Completed;RollingBack;RolledBack
type MigrationPhase string

const (
	// MigrationPhaseValidating looks whether the target can take the workload over; nothing has changed yet.
	MigrationPhaseValidating MigrationPhase = "Validating"
	// MigrationPhaseShadowing has the target's objects in place, and none of them may write. A cluster in this phase is
	// the source's.
	MigrationPhaseShadowing MigrationPhase = "Shadowing"
	// MigrationPhaseHandingOver has the source stop writing on the clusters of a wave, and then the target begin.
	MigrationPhaseHandingOver MigrationPhase = "HandingOver"
	// MigrationPhaseVerifying watches a wave that has been taken over. A cluster in this phase is the target's.
	MigrationPhaseVerifying MigrationPhase = "Verifying"
	// MigrationPhaseReleasing removes the source's objects; the target is the owner.
	MigrationPhaseReleasing MigrationPhase = "Releasing"
	// MigrationPhaseCompleted is the end: nothing of the source is left.
	MigrationPhaseCompleted MigrationPhase = "Completed"
	// MigrationPhaseRollingBack has the target stop writing, and then the source begin again.
	MigrationPhaseRollingBack MigrationPhase = "RollingBack"
	// MigrationPhaseRolledBack is, of a wave, that its clusters are the source's again and that it waits for a person; of
	// a migration in the history, that nothing of the target is left.
	MigrationPhaseRolledBack MigrationPhase = "RolledBack"
)

// MigrationStatus tells how far a change of backend has come.
type MigrationStatus struct {
	// from is the backend that owned the workload when the migration began.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from,omitempty"`

	// to is the backend that will own it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to,omitempty"`

	// phase is where the migration stands.
	// +optional
	Phase MigrationPhase `json:"phase,omitempty"`

	// wave is the number of the wave under way; the first one is 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wave *int32 `json:"wave,omitempty"`

	// specRevision names the ControllerRevision with the spec as it was when the migration began. Later edits wait, but for
	// those of replicas, of suspend and of migration.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SpecRevision string `json:"specRevision,omitempty"`

	// problems are all the reasons why the migration has not begun.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Problems []string `json:"problems,omitempty"`

	// failure is why a wave did not pass.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Failure string `json:"failure,omitempty"`

	// approval is the value that the annotation fleetworkload.io/approve-migration must have for the migration to go on;
	// empty when it waits for nobody.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Approval string `json:"approval,omitempty"`

	// clusters tells where each cluster stands. Those of large fleets are in status.packed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Clusters []MigrationClusterStatus `json:"clusters,omitempty"`

	// startedAt is when the migration began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// waveStartedAt is when the wave began. Time in which a backend could not be reached is left out: it is moved on then.
	// +optional
	WaveStartedAt *metav1.Time `json:"waveStartedAt,omitempty"`

	// passingSince is since when every cluster of the wave passes its checks.
	// +optional
	PassingSince *metav1.Time `json:"passingSince,omitempty"`

	// frozenSince is since when the migration stands still because a backend cannot be reached.
	// +optional
	FrozenSince *metav1.Time `json:"frozenSince,omitempty"`

	// history lists finished migrations, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []MigrationRecord `json:"history,omitempty"`
}

// MigrationClusterStatus tells where one cluster stands in a migration.
type MigrationClusterStatus struct {
	// name of the cluster on the backend that the workload leaves.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// targetName is its name on the other backend; empty when it is the same.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	TargetName string `json:"targetName,omitempty"`

	// wave is the number of its wave; the first one is 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wave *int32 `json:"wave,omitempty"`

	// phase is where the cluster stands.
	// +optional
	Phase MigrationPhase `json:"phase,omitempty"`

	// message says why, for a person. It ends with "..." when all messages together are longer than there is room for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// before is what ran when the cluster's turn came.
	// +optional
	Before *MigrationEvidence `json:"before,omitempty"`

	// after is what runs since the target took it over.
	// +optional
	After *MigrationEvidence `json:"after,omitempty"`
}

// MigrationEvidence is what a member object was at one time.
type MigrationEvidence struct {
	// uid of the member object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid,omitempty"`

	// podRevision is what the member object's controller calls the newest revision of its pods; empty for kinds without. Of a long one
	// it is the beginning and a hash.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodRevision string `json:"podRevision,omitempty"`

	// ready is the number of ready pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready *int32 `json:"ready,omitempty"`

	// restarts is how often containers of its pods had been restarted, all together. Absent when no backend of the migration
	// may look at pods, and for kinds without a selector of pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts *int32 `json:"restarts,omitempty"`

	// health is how it was; empty for kinds that show none.
	// +optional
	Health Health `json:"health,omitempty"`
}

// MigrationRecord is one finished migration.
type MigrationRecord struct {
	// from is the backend that owned the workload before.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from,omitempty"`

	// to is the backend it was moved to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to,omitempty"`

	// phase is how it ended.
	// +required
	Phase MigrationPhase `json:"phase,omitempty"`

	// finishedAt is when it ended.
	// +required
	FinishedAt metav1.Time `json:"finishedAt,omitzero"`

	// clusters is the evidence: what each cluster ran before and after. Of the newest migration only. Those of large fleets are in
	// status.packed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Clusters []MigrationClusterStatus `json:"clusters,omitempty"`
}
