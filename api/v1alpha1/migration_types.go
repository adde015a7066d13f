package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FailureAction says what a migration does when a wave fails.
// +kubebuilder:validation:Enum=Rollback;Pause
type FailureAction string

const (
	// FailureActionRollback hands the clusters of the failed wave back.
	FailureActionRollback FailureAction = "Rollback"
	// FailureActionPause leaves everything as it is and waits for a person.
	FailureActionPause FailureAction = "Pause"
)

// ApprovalPolicy says who lets a wave go on.
// +kubebuilder:validation:Enum=Automatic;Manual
type ApprovalPolicy string

const (
	// ApprovalPolicyAutomatic goes on after the soak time.
	ApprovalPolicyAutomatic ApprovalPolicy = "Automatic"
	// ApprovalPolicyManual waits for a person.
	ApprovalPolicyManual ApprovalPolicy = "Manual"
)

// MigrationStrategy says how a change of backend proceeds.
type MigrationStrategy struct {
	// waves are the steps, in order; clusters that no wave selects form the last one. When absent, one wave of all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Waves []MigrationWave `json:"waves,omitempty"`

	// timeout is how long a wave may take, soak time not counted. When absent: 10m.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// onFailure says what happens when a wave fails. When absent: Rollback.
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`
}

// MigrationWave is one step of a migration.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.size)",message="set exactly one of clusters and size"
type MigrationWave struct {
	// clusters selects the clusters of the wave.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`

	// size is how many of the remaining clusters the wave takes: a number, or a percentage of all such as "10%".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*|[1-9][0-9]?%|100%)$`
	Size string `json:"size,omitempty"`

	// soak is how long the wave must stay healthy before the next one. When absent: no time.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// approval says who lets the next wave go on. When absent: Automatic.
	// +optional
	Approval ApprovalPolicy `json:"approval,omitempty"`
}

// MigrationPhase is where a migration, or a cluster within it, stands.
// +kubebuilder:validation:Enum=Validating;Shadowing;HandingOver;Verifying;Releasing;Completed;RollingBack;RolledBack
type MigrationPhase string

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

	// wave is the number of the wave under way, from 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wave *int32 `json:"wave,omitempty"`

	// clusters tells where each cluster stands.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Clusters []MigrationClusterStatus `json:"clusters,omitempty"`

	// startedAt is when the migration began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// history lists finished migrations, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []MigrationRecord `json:"history,omitempty"`
}

// MigrationClusterStatus tells where one cluster stands in a migration.
type MigrationClusterStatus struct {
	// name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// phase is where the cluster stands.
	// +optional
	Phase MigrationPhase `json:"phase,omitempty"`

	// message says why, for a person.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
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
}
