package v1alpha1

// Verbs of RBAC beyond those of the API server, each asked by an admission policy of the installation.
const (
	// VerbUse on a ServiceAccount lets somebody name it in spec.serviceAccountName.
	VerbUse = "use"
	// VerbApprove on a FleetWorkload lets somebody write the annotations that confirm a removal, or let a migration or a change go on, and set
	// spec.approval from Manual to something else.
	VerbApprove = "approve"
)
