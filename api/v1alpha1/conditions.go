package v1alpha1

// Condition types of a FleetWorkload. Every one is set on every pass.
const (
	// ConditionReady is True when every chosen cluster runs the current revision, healthy and reachable.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator or a backend is on the way to the wanted state.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will happen until a person acts.
	ConditionStalled = "Stalled"
	// ConditionScheduled is True when clusters are chosen and replicas are divided.
	ConditionScheduled = "Scheduled"
	// ConditionApplied is True when every chosen cluster has the target manifest.
	ConditionApplied = "Applied"
	// ConditionHealthy is True when every chosen cluster reports the workload healthy.
	ConditionHealthy = "Healthy"
	// ConditionMigrating is True while the workload moves to another backend, and is not there otherwise.
	ConditionMigrating = "Migrating"
	// ConditionIndependent is True when a migration has ended, and with it the workload, its companions and their namespace have ceased to
	// depend on the other backend, which the message names: the one that it was moved from, or had to come back from. It is False from when
	// it is to move until it has, Unknown when it runs on clusters that the migration has not looked at, and not there when it has never
	// moved.
	ConditionIndependent = "Independent"
	// ConditionDrifted is True while clusters keep what somebody else has changed there (spec.drift Report), and is not there otherwise.
	ConditionDrifted = "Drifted"
)

// Reasons of Ready.
const (
	// ReasonReady surfaces when every cluster runs the current revision, healthy.
	ReasonReady = "Ready"
	// ReasonProgressing surfaces when clusters are still on the way.
	ReasonProgressing = "Progressing"
	// ReasonDegraded surfaces when at least one cluster reports failure.
	ReasonDegraded = "Degraded"
	// ReasonStale surfaces when at least one chosen cluster cannot be reached.
	ReasonStale = "Stale"
	// ReasonSuspended surfaces when spec.suspend freezes dispatching and the fleet differs from the spec.
	ReasonSuspended = "Suspended"
	// ReasonAwaitingApproval surfaces while a change of the spec waits for a person to approve it (spec.approval).
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonPaused surfaces when all clusters but those of spec.placement.paused are as the spec asks.
	ReasonPaused = "Paused"
	// ReasonDeleting surfaces while a deleted FleetWorkload waits for its backend.
	ReasonDeleting = "Deleting"
)

// Reasons of Reconciling and Stalled when there is nothing else to say.
const (
	// ReasonIndependent surfaces when a migration has ended and nothing that the workload has depends on the other backend any more.
	ReasonIndependent = "Independent"
	// ReasonJoinedSince surfaces when the workload runs on clusters that its last migration has not looked at, such as those chosen since.
	ReasonJoinedSince = "JoinedSince"
	// ReasonChangedOnCluster surfaces in Drifted while somebody else's change of the object on a cluster stays (spec.drift Report).
	ReasonChangedOnCluster = "ChangedOnCluster"
	// ReasonPutBackOnCluster surfaces in an event, and in no condition, when an object on a cluster is what is delivered again after
	// somebody else has changed it.
	ReasonPutBackOnCluster = "PutBackOnCluster"
	// ReasonReconciled surfaces when there is nothing left to do.
	ReasonReconciled = "Reconciled"
	// ReasonNotStalled surfaces when no person needs to act.
	ReasonNotStalled = "NotStalled"
)

// Reasons for which a person must act; they surface in Stalled, and in Ready as the reason why not.
const (
	// ReasonBackendNotFound surfaces when spec.backend names no configured backend.
	ReasonBackendNotFound = "BackendNotFound"
	// ReasonNotSupported surfaces when the spec has a field that this version, or the backend, cannot carry out.
	ReasonNotSupported = "NotSupported"
	// ReasonNotAllowed surfaces when an administrator does not allow the namespace to use the backend, the kind or dependencies.
	ReasonNotAllowed = "NotAllowed"
	// ReasonInvalidObject surfaces when the API server has a value that does not fit the type of its field.
	ReasonInvalidObject = "InvalidObject"
	// ReasonInvalidTemplate surfaces when spec.template is not a manifest that can be sent.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonInvalidOverride surfaces when an override cannot be applied to the template.
	ReasonInvalidOverride = "InvalidOverride"
	// ReasonInvalidPlacement surfaces when the placement contradicts itself or leaves nothing to place on.
	ReasonInvalidPlacement = "InvalidPlacement"
	// ReasonPlacementNotMet surfaces when the clusters there are cannot meet what the placement asks for, such as a spread
	// over more regions than there are; what runs is left alone.
	ReasonPlacementNotMet = "PlacementNotMet"
	// ReasonInsufficientCapacity surfaces when the chosen clusters have no room for the replicas, or their room is not known.
	ReasonInsufficientCapacity = "InsufficientCapacity"
	// ReasonInvalidOptions surfaces when backendOptions cannot be merged into the backend's objects.
	ReasonInvalidOptions = "InvalidOptions"
	// ReasonKindNotServed surfaces when the backend does not serve the template's kind.
	ReasonKindNotServed = "KindNotServed"
	// ReasonClusterNotFound surfaces when the placement names a cluster that the backend does not know.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonNoClusterSelected surfaces when the placement chooses no cluster; what runs is left alone.
	ReasonNoClusterSelected = "NoClusterSelected"
	// ReasonRemovalHeld surfaces when a large part of the running replicas would go away without a change of the spec.
	ReasonRemovalHeld = "RemovalHeld"
	// ReasonAdoptionHeld surfaces when conflictPolicy is Adopt and taking a running workload over would take pods away from it;
	// nothing was written.
	ReasonAdoptionHeld = "AdoptionHeld"
	// ReasonNameConflict surfaces when the backend has an object of that name that is not this FleetWorkload's.
	ReasonNameConflict = "NameConflict"
	// ReasonMemberConflict surfaces when a member cluster has such an object and conflictPolicy is Fail.
	ReasonMemberConflict = "MemberConflict"
	// ReasonBackendForbidden surfaces when the operator's credentials lack a right on the backend.
	ReasonBackendForbidden = "BackendForbidden"
	// ReasonBackendRejected surfaces when the backend's API server refuses an object as invalid.
	ReasonBackendRejected = "BackendRejected"
	// ReasonServiceAccountForbidden surfaces when spec.serviceAccountName may not create what is to be shipped.
	ReasonServiceAccountForbidden = "ServiceAccountForbidden"
	// ReasonDependencyMissing surfaces when pods refer to an object that the FleetWorkload's namespace lacks; what would
	// start without it waits.
	ReasonDependencyMissing = "DependencyMissing"
	// ReasonDependencyForbidden surfaces when the operator may not read what pods refer to on the management cluster.
	ReasonDependencyForbidden = "DependencyForbidden"
	// ReasonMigrationNotPossible surfaces when spec.backend differs from status.backend and the workload cannot be handed
	// over as things are.
	ReasonMigrationNotPossible = "MigrationNotPossible"
	// ReasonMigrationSpecLost surfaces when the spec from the beginning of a migration is gone, or somebody else's.
	ReasonMigrationSpecLost = "MigrationSpecLost"
	// ReasonMigrationFailed surfaces when a wave of a migration did not pass; a person decides how to go on.
	ReasonMigrationFailed = "MigrationFailed"
	// ReasonMigrationNeedsApproval surfaces when a wave of a migration has passed and a person is to let the next one begin.
	ReasonMigrationNeedsApproval = "MigrationNeedsApproval"
)

// Reasons that pass by themselves.
const (
	// ReasonBackendUnavailable surfaces when the backend cannot be reached; nothing is changed until it can.
	ReasonBackendUnavailable = "BackendUnavailable"
	// ReasonBackendNotReady surfaces when the backend was reached but lacks its CRDs or has not synchronised.
	ReasonBackendNotReady = "BackendNotReady"
	// ReasonMigrating surfaces while the workload moves to another backend; it runs on as it was.
	ReasonMigrating = "Migrating"
	// ReasonScheduling surfaces while the backend chooses clusters.
	ReasonScheduling = "Scheduling"
	// ReasonScheduled surfaces when clusters are chosen.
	ReasonScheduled = "Scheduled"
	// ReasonApplying surfaces while target manifests are on their way to clusters.
	ReasonApplying = "Applying"
	// ReasonApplied surfaces when all clusters have the target manifest.
	ReasonApplied = "Applied"
	// ReasonApplyFailed surfaces when a cluster refused the target manifest.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonHealthy surfaces when all clusters report the workload healthy.
	ReasonHealthy = "Healthy"
	// ReasonUnknown surfaces when there is no current report.
	ReasonUnknown = "Unknown"
	// ReasonInternalError surfaces when the operator failed in a way it did not expect; it tries again.
	ReasonInternalError = "InternalError"
)
