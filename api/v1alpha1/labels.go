package v1alpha1

// Marks that the operator puts on objects. All are labels unless they say otherwise.
const (
	// LabelManagedBy is on every object the operator creates on a backend; caches are filtered by it.
	LabelManagedBy = "fleetworkload.io/managed-by"
	// ManagedByOperator is the value of LabelManagedBy.
	ManagedByOperator = "fleetworkload"
	// LabelUID is the identity of the FleetWorkload an object belongs to: see Identity.
	LabelUID = "fleetworkload.io/uid"
	// LabelHistoryOf is on ControllerRevisions of the management cluster that keep what a FleetWorkload has shipped: its UID.
	LabelHistoryOf = "fleetworkload.io/history-of"
	// AnnotationOwner is the namespace/name of the FleetWorkload an object belongs to.
	AnnotationOwner = "fleetworkload.io/owner"
	// AnnotationInstallation is the installation of the operator whose FleetWorkload an object belongs to.
	AnnotationInstallation = "fleetworkload.io/installation"
	// AnnotationRevision is an annotation on target manifests, the revision they were rendered from, and on companions, a hash of them.
	AnnotationRevision = "fleetworkload.io/revision"
	// AnnotationConfirmRemoval is an annotation a person puts on a FleetWorkload to let a held removal proceed. Its
	// value is the token that the condition shows.
	AnnotationConfirmRemoval = "fleetworkload.io/confirm-removal"
	// AnnotationApproveMigration is an annotation a person puts on a FleetWorkload to let a migration go on. Its value is
	// status.migration.approval.
	AnnotationApproveMigration = "fleetworkload.io/approve-migration"
	// AnnotationApproveChange is an annotation a person puts on a FleetWorkload to let a change of its spec be carried out. Its value is
	// status.change.approval.
	AnnotationApproveChange = "fleetworkload.io/approve-change"
	// AnnotationPropose is an annotation a person puts on a FleetWorkload to learn what another spec would come to: status.proposal answers. Its value
	// is the spec as JSON, compressed by gzip and encoded as base64. Nothing is carried out. kubectl fw plan -f writes it, and takes it away.
	AnnotationPropose = "fleetworkload.io/propose"
	// Finalizer keeps a FleetWorkload until its backend has nothing of it left.
	Finalizer = "fleetworkload.io/finalizer"
)
