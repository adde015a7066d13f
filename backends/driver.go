// Package backends is the contract between the operator and what carries workloads to clusters: the driver interface,
// the data that crosses it, typed errors, and features. Drivers live in sub-packages and never import each other; the
// conformance suite in backendtest holds every one of them to the rules of docs/driver-contract.md.
package backends

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Driver carries workloads out through one connected backend. Its rules, numbered as in docs/driver-contract.md:
//
//	R1  Idempotent: Apply of what is already there makes no mutating request, also in a new process.
//	R2  Non-blocking: no method waits for convergence; Observe reports it and results say what is awaited. A request
//	    without an answer is given up.
//	R3  Stateless: positions are read from backend objects, so a call may be cut off between any two writes.
//	R4  Polite: objects and fields of others are left alone; an object of that name without our UID is NameConflict.
//	R5  Expected failures are *Error; any other error counts as transient.
//	R6  Arguments are not changed; methods may be called concurrently for different keys.
//	R7  Emptiness removes nothing: Apply with no targets, or of a selection not settled, leaves members as they are.
//	R8  One change reaches a member once: a member sees the old manifest or the final one, nothing between.
//	R9  A report counts only for the newest revision and generation; unreported is nil, never zero.
//	R10 Delete waits: it is Done only when the backend has nothing of the key left, and the policy was carried out.
//	R11 A held cluster's member object does not change, whatever else of Desired changes.
//	R12 Reads are served from caches; before they are filled, methods fail with NotReady.
//	R13 Companions come before the workload and go after it; a shared one goes with its last user, or is given up.
//	R14 Observing is no danger: what is observed is neither written nor removed, and Released is said only when that is so.
//	R15 A probe only asks: the member object is neither written nor created nor removed, and what it runs is told.
//	R16 Removal is said: a cluster that is not among the targets stays as it is, and one whose mode is Remove is left.
//	R17 With Report, what others change on a member stays until there is something new to deliver there, and is told.
type Driver interface {
	// Features tells what this driver can do. It is constant.
	Features() Features

	// Clusters returns the fleet as this backend knows it. It reads only.
	Clusters(ctx context.Context) (Fleet, error)

	// Observe tells what the backend reports about one workload, and which clusters it chooses for the placement.
	// It reads only. A workload never applied is Found=false and a nil error.
	Observe(ctx context.Context, query Query) (Observation, error)

	// Apply takes the next step towards desired, and tells whether a further step waits for the backend. It is called on every pass.
	Apply(ctx context.Context, desired Desired) (Progress, error)

	// Delete takes the next step towards having nothing of the workload on the backend. It is called until Done;
	// having nothing to delete is Done.
	Delete(ctx context.Context, query Query, policy v1alpha1.DeletionPolicy) (Progress, error)
}

// Runner is a driver that holds watches. Run blocks until ctx ends; it calls notify with the FleetWorkload whose
// backend objects changed, and with the zero name when the fleet of clusters changed.
type Runner interface {
	Run(ctx context.Context, notify func(types.NamespacedName)) error
}

// DryRunner is a driver that can tell beforehand what stands against carrying a workload out.
type DryRunner interface {
	// DryRun lists, for a person, why Apply of desired would be refused or could not be carried out, as far as it can be told
	// without a write: having the API server try a request (dry run) is none. It says nothing of what it cannot know.
	DryRun(ctx context.Context, desired Desired) (against []string, err error)
}

// Bringer is a driver that can tell what a workload needs on clusters and has from the backend, by somebody else's doing.
type Bringer interface {
	// Brought lists what would go from these clusters with the backend although the workload needs it: the definition (CRD) of its kind. It
	// may be a minute old. What the driver has brought for the workload is not among it: that stays when the workload is handed over.
	Brought(ctx context.Context, workload Workload, clusters []string) ([]Dependent, error)
}

// PodReader is a driver that can look at the pods of members.
type PodReader interface {
	// Restarts tells how often containers of the pods that run in a cluster have been restarted, all together; nil when the
	// driver is not to look at pods. It asks the member, through the backend, on every call.
	Restarts(ctx context.Context, cluster, namespace string, pods labels.Selector) (*int32, error)
}

// Surveyor is a driver that can tell what clusters serve, without a workload that is to be sent there.
type Surveyor interface {
	// Served lists what each cluster serves of an API group, as far as the backend tells. A cluster of which it tells nothing is left out. It
	// reads only.
	Served(ctx context.Context, group string) (map[string]Served, error)
}

// Served is what a cluster serves of an API group.
type Served struct {
	// Resources in each of their versions, sorted by version, then by name.
	Resources []schema.GroupVersionResource
	// Whole is true when the cluster serves nothing else of the group. When false there may be more, for which nobody has asked.
	Whole bool
}

// Feature is something only some drivers, or only some versions of them, can do.
type Feature string

const (
	// FeatureHold means that ModeHold is honoured.
	FeatureHold Feature = "Hold"
	// FeatureModes means that ModeAdopt, ModeObserve and ModeProbe are honoured.
	FeatureModes Feature = "Modes"
	// FeatureClusterScoped means that cluster-scoped templates can be carried.
	FeatureClusterScoped Feature = "ClusterScoped"
	// FeatureDriftReport means that Query.Drift may be Report (R17).
	FeatureDriftReport Feature = "DriftReport"
	// FeatureKarmadaMarks means that objects on members bear Karmada's marks, by which another backend sees whose they are. Two Karmadas
	// leave the same marks.
	FeatureKarmadaMarks Feature = "KarmadaMarks"
	// FeatureOCMMarks means that they bear those of OCM.
	FeatureOCMMarks Feature = "OCMMarks"
)

// Features is a set of features.
type Features map[Feature]bool

// Progress tells how far a write has come.
type Progress struct {
	// Done is true when there is nothing left to write and nothing to wait for before writing.
	Done bool
	// Waiting says what is awaited, for a person. It is empty when Done and does not change while the world does not.
	Waiting string
	// RequeueAfter is after what time the next step may be another one although nothing has happened; 0 when it is not.
	RequeueAfter time.Duration
}

// Sooner is the shorter of two such times.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
